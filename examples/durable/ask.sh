#!/bin/sh
# Asks somebody: whoever has the token may answer. A real one would send it by mail; this one keeps it in a file.
set -eu
sed 's/.*"token": *"\([^"]*\)".*/\1/' >token.new
mv token.new token
echo '{}'
