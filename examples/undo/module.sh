# A module: input on stdin, result on stdout. The queue says which module it is, `do` whether to make or to take back.
# What was made is a file in the folder `made`, so that everybody can see it.
input=$(cat)
get() { printf %s "$input" | jq -r ".$1 // empty"; }
made=made
mkdir -p "$made"
thing="$STARBRIDGE_QUEUE-$(get name)"
case $(get do) in
  add)
    # It may have been half made when it fails, so it is made first.
    touch "$made/$thing"
    if [ "$(get fail)" = "$STARBRIDGE_QUEUE" ]; then
      echo "{\"error\": \"Module.Failed\", \"cause\": \"$STARBRIDGE_QUEUE could not be made\"}"
      exit 1
    fi
    case $STARBRIDGE_QUEUE in
      network) echo '{"address": "10.0.0.7"}' ;;
      disk) echo '{"disk": "vol-7"}' ;;
      boot) echo "{\"machine\": \"$(get name) at $(get address) on $(get disk)\"}" ;;
    esac ;;
  remove)
    # Taking back what is not there is no error: this may come twice.
    if [ -e "$made/stuck" ]; then
      echo '{"error": "Module.Stuck", "cause": "somebody uses it"}'
      exit 1
    fi
    rm -f "$made/$thing"
    echo '{}' ;;
esac
