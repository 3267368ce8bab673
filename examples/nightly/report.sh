#!/bin/sh
# Writes the report of a region: input on stdin.
input=$(cat)
echo "{\"report\": \"$(printf %s "$input" | jq -r .region) of $(printf %s "$input" | jq -r .of)\"}"
