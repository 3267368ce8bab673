#!/bin/sh
# Reserves what the order needs.
echo '{"reservation": "r-7"}'
