#!/bin/sh
# Takes messages of a queue and reports by their tokens, through another queue or else over HTTP: carrier.sh QUEUE [REPLIES]
server=${STARBRIDGE_SERVER:-http://127.0.0.1:7878}/v1 here=$(dirname "$0")
sqs() { sh "$here/sqs.sh" "$@"; }
url() { sqs GetQueueUrl "{\"QueueName\": \"$1\"}" | jq -er .QueueUrl; }
report() {
  if [ "$replies" ]; then
    sqs SendMessage "$(jq -nc --arg QueueUrl "$replies" --arg MessageBody "$1" '{$QueueUrl, $MessageBody}')"
  else
    curl -sSf -H "Authorization: Bearer $STARBRIDGE_TOKEN" -d "{\"reports\": [$1]}" "$server/callbacks"
  fi
}
queue=$(url "$1") || exit 1
[ -z "$2" ] || replies=$(url "$2") || exit 1
while :; do
  message=$(sqs ReceiveMessage "{\"QueueUrl\": \"$queue\", \"WaitTimeSeconds\": 20, \"VisibilityTimeout\": 10}" |
    jq -c '.Messages[0] // empty')
  [ "$message" ] || { sleep 1; continue; }
  said=$(printf %s "$message" | jq -c '.Body | fromjson | {token, output: {tracking: "t-\(.order)"}}')
  # Deleted only once it is reported: else it comes again.
  report "$said" && sqs DeleteMessage "$(printf %s "$message" | jq -c --arg QueueUrl "$queue" '{$QueueUrl, ReceiptHandle}')"
done
