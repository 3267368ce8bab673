#!/bin/sh
# Says what is done in the file `journal`. Some things can't be done; the input says which.
input=$(cat)
get() { printf %s "$input" | jq -r ".$1 // empty"; }
full() {
  echo '{"error": "Host.Full", "cause": "no room"}'
  exit 1
}
echo "$1 $(get host)$(get user)" | sed 's/ $//' >> journal
case $1 in
  attach) [ "$(get attempt)" = 3 ] || full ;;
  place) [ "$(get host)" = c ] || full ;;
  tell) [ "$(get user)" != nobody ] || { echo '{"error": "No.Such.User"}'; exit 1; } ;;
esac
echo '{}'
