#!/bin/sh
# Fetches a text. What it says on stderr is its log.
echo "fetching $1" >&2
printf 'one\ntwo\nthree\n' > text.txt
echo '{"file": "text.txt"}'
