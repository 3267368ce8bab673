#!/bin/sh
# Counts the lines of a file.
echo "counting in $1" >&2
echo "{\"file\": \"$1\", \"lines\": $(wc -l < "$1")}"
