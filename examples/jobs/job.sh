# A job: input on stdin, result on stdout. It writes what it has done into the file `journal`.
input=$(cat)
get() { printf %s "$input" | jq -r ".$1 // empty"; }
shard=$(get cluster)-$(get shard)
case $(get do) in
  copy)
    # The first call begins to copy; whoever asks again learns how it stands.
    if [ -e "copy-$shard" ]; then
      rm "copy-$shard"
      echo "copy $shard from $(get snapshot) to $(get host)" >> journal
      echo '{"state": "done"}'
    else
      touch "copy-$shard"
      echo '{"state": "running"}'
    fi ;;
  switch)
    if [ -e locked ]; then
      echo '{"error": "Switch.Locked", "cause": "somebody holds the lock of the router"}'
      exit 1
    fi
    echo "switch $shard to $(get host)" >> journal
    echo '{}' ;;
  tidy)
    # Longer than the window is open.
    sleep 3
    echo "tidy $(get shard)" >> journal
    echo '{}' ;;
esac
