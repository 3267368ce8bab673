#!/bin/sh
# Asks SQS by its own protocol: sqs.sh ACTION JSON. Region, credentials and endpoint come from the environment; curl signs.
: "${AWS_REGION:?is not set}" "${AWS_ACCESS_KEY_ID:?is not set}" "${AWS_SECRET_ACCESS_KEY:?is not set}"
printf %s "$2" | curl -sS --fail-with-body --aws-sigv4 "aws:amz:$AWS_REGION:sqs" \
  --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" ${AWS_SESSION_TOKEN:+-H "X-Amz-Security-Token: $AWS_SESSION_TOKEN"} \
  -H "X-Amz-Target: AmazonSQS.$1" -H 'Content-Type: application/x-amz-json-1.0' -d @- \
  "${AWS_ENDPOINT_URL:-https://sqs.$AWS_REGION.amazonaws.com}/" && echo
