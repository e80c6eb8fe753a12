#!/bin/sh
# Tells of finished and failed tasks: a line in a file, and a message on the desktop where there is one.
#
#     fk middleware add --stage download --name notify -- ./notify.sh done.log
set -eu
line=$(python3 -c '
import json, sys
task = json.load(sys.stdin)
if task["state"] in ("complete", "error"):
    print(task["state"], task["url"], task.get("error", {}).get("message", ""))
')
[ -n "$line" ] || exit 0
printf '%s\n' "$line" >> "$1"
if command -v notify-send > /dev/null; then notify-send "fk" "$line" || true; fi
