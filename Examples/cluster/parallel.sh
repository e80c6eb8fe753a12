#!/bin/sh
# Fetches a list with GNU parallel: four parts at once, on this machine or on those of --sshlogin.
#
#     parallel.sh list.txt folder
exec parallel --jobs 4 "${FK:-fk} get -i '$1' -d '$2' --shard auto --shards 4 # {}" ::: 1 2 3 4
