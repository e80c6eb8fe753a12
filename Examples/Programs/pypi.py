#!/usr/bin/env python3
"""Lists the files of a project on PyPI, as a source of fk. The argument is another index of the same form.

    fk source add pypi -- python3 pypi.py
    fk get -r pypi:requests --include '*.whl'
"""
import json
import sys
import urllib.request

question = json.load(sys.stdin)
name, _, version = question["source"].removeprefix("pypi:").partition("@")
index = sys.argv[1] if len(sys.argv) > 1 else "https://pypi.org/pypi"
try:
    with urllib.request.urlopen(f"{index}/{name}/{version + '/' if version else ''}json") as answer:
        project = json.load(answer)
except OSError as error:
    sys.exit(f"{name}: {error}")  # Exit status 1: the reason goes to standard error, and nothing is fetched.
for file in project["urls"]:
    print(json.dumps({"url": file["url"], "name": file["filename"], "size": file["size"], "sha256": file["digests"]["sha256"]}))
print(json.dumps({"version": project["info"]["version"]}))
