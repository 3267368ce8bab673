# Does what the messages of the stream `machines` say, and reports through the stream `replies`: consumer.sh NAME
# The journal tells who did what. A machine that a job has is a file, so that two jobs at once would be seen.
name=$1
redis() { redis-cli -u "$REDIS_URL" "$@"; }
until redis PING > pong-"$name" && grep -q PONG pong-"$name"; do sleep 1; done
redis XGROUP CREATE machines workers 0 MKSTREAM > pong-"$name"
from=0 # first what it was given before and did not finish
while :; do
  entry=$(redis XREADGROUP GROUP workers "$name" COUNT 1 BLOCK 1000 STREAMS machines "$from")
  body=$(printf '%s\n' "$entry" | sed -n '/^body$/{n;p;}')
  if [ ! "$body" ]; then from='>'; continue; fi
  id=$(printf '%s\n' "$entry" | sed -n 2p)
  get() { printf %s "$body" | jq -r ".$1"; }
  job=$(get job) machine=$(get machine) do=$(get do) said='{}' error=
  case $do in
    take) (set -C; echo "$job" > "held-$machine") 2>&- || [ "$(cat "held-$machine")" = "$job" ] || error=Machine.Taken ;;
    release) rm -f "held-$machine" ;;
    *) [ "$(cat "held-$machine")" = "$job" ] || error=Machine.NotHeld
      [ ! -e "broken-$machine" ] || error=Machine.Broken
      [ "$error" ] || echo "$do $machine" >> journal ;;
  esac
  # Acknowledged only once it is reported: else it comes again.
  if [ "$error" ]; then
    redis XADD replies '*' token "$(get token)" error "$error" cause "$machine, says $name"
  else
    redis XADD replies '*' token "$(get token)" output "$said"
  fi > pong-"$name" && redis XACK machines workers "$id" > pong-"$name"
done
