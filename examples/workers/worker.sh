#!/bin/sh
# Takes tasks of a queue, one at a time, and runs a program for each: worker.sh QUEUE PROGRAM [ARGUMENT…]
server=${STARBRIDGE_SERVER:-http://127.0.0.1:7878}/v1 queue=$1; shift
post() { # tokens go to curl by a file: others on this machine can see its command line
  printf %s "$2" | curl -sSf --retry 60 --retry-delay 1 --retry-connrefused -d @- -K /dev/fd/3 3<<-END
	url = "$server/$1"
	header = "Authorization: Bearer $STARBRIDGE_TOKEN"
	END
}
while :; do
  task=$(post "queues/$queue/hold" "{\"worker\": \"shell-$$\"}" | jq -c '.tasks[0] // empty')
  token=$(printf %s "$task" | jq -r .token)
  [ "$token" ] || { sleep 1; continue; }
  (while sleep 10; do post "callbacks/$token/heartbeat" ''; done) & beats=$!
  if output=$(printf %s "$task" | jq -c .input | "$@"); then
    post "callbacks/$token/succeed" "{\"output\": $output}"
  else
    post "callbacks/$token/fail" "$(jq -nc --arg error "Exit.$?" --arg cause "$output" \
      '($cause | fromjson?) // {$error, $cause}')"
  fi
  kill "$beats"
done
