#!/bin/sh
# Undoes reserve.sh.
echo '{}'
