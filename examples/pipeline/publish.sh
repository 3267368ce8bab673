#!/bin/sh
# Publishes a file of the folder it runs in.
cp "$1" published.txt
echo '{"path": "published.txt"}'
