#!/bin/sh
# Checks that a word is in a file; which one, the environment says.
if grep -q "$WORD" "$1"; then
  echo '{}'
else
  echo "there is no $WORD in $1" >&2
  exit 4
fi
