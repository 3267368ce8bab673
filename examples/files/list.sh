#!/bin/sh
# Lists the files of a folder as {"files": [...]}.
set -eu
printf '{"files": ['
comma=
for file in "$1"/*; do
  printf '%s"%s"' "$comma" "$file"
  comma=', '
done
printf ']}\n'
