#!/bin/sh
# Counts the words of a file as {"file": ..., "words": ...}.
set -eu
words=$(wc -w <"$1")
printf '{"file": "%s", "words": %d}\n' "$1" "$words"
