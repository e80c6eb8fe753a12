#!/bin/sh
# Checks the signature of each finished file with OpenSSL. A file without a signature, or with a wrong one, is rejected.
#
#     fk middleware add --stage response --name verify -- ./verify.sh public.pem signatures
#
# The signature of NAME is signatures/NAME.sig, as made by: openssl dgst -sha256 -sign private.pem -out NAME.sig NAME
set -eu
key=$1
signatures=$2
path=$(python3 -c 'import json, sys; sys.stdout.write(json.load(sys.stdin)["path"])')
signature="$signatures/$(basename "$path").sig"
if [ ! -e "$signature" ]; then
    echo "there is no $signature" >&2
    exit 75 # The signature may arrive later: ask for a retry.
fi
if ! openssl dgst -sha256 -verify "$key" -signature "$signature" "$path" > /dev/null 2>&1; then
    echo "its signature is wrong" >&2
    exit 1
fi
