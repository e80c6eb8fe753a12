#!/usr/bin/env python3
"""Signs each request: the URL gets a time of expiry and a signature, the request a header.

The key is in the file that the argument names, because a program gets none of fk's environment but PATH, HOME, LANG and TMPDIR.

    fk middleware add --stage request --name sign -- python3 sign.py key.txt
"""
import hashlib
import hmac
import json
import sys
import time
import urllib.parse

task = json.load(sys.stdin)
with open(sys.argv[1], "rb") as file:
    key = file.read().strip()
if not key:
    sys.exit("the key is empty")  # Exit status 1: the reason goes to standard error, and the task fails.

url = urllib.parse.urlsplit(task["url"])
expires = int(time.time()) + 60
signature = hmac.new(key, f"{url.path}{expires}".encode(), hashlib.sha256).hexdigest()
json.dump(
    {
        "url": url._replace(query=f"expires={expires}&sig={signature}").geturl(),
        "headers": {"X-Signature": signature, "X-Attempt": str(task["attempt"])},
    },
    sys.stdout,
)
