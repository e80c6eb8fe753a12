#!/bin/sh
# Unpacks each finished .tar.gz into a folder of its name. The archive stays where it is.
#
#     fk middleware add --stage response --name unpack --time-limit 600 -- ./unpack.sh unpacked
#
# It unpacks into a temporary folder and renames that one, so it may be killed at any moment and run again.
set -eu
target=$1
path=$(python3 -c 'import json, sys; sys.stdout.write(json.load(sys.stdin)["path"])')
name=$(basename "$path" .tar.gz)
case $path in *.tar.gz) ;; *) exit 0 ;; esac
[ ! -d "$target/$name" ] || exit 0
mkdir -p "$target"
rm -rf "$target/.$FK_TASK_ID"
mkdir "$target/.$FK_TASK_ID"
tar -xzf "$path" -C "$target/.$FK_TASK_ID"
mv "$target/.$FK_TASK_ID" "$target/$name"
