# Does a job: input on stdin. What is busy fails as long as the file `busy` is there.
job=$(jq -r .do)
if [ "$job" = mail ] && [ -e busy ]; then
  echo '{"error": "Job.Busy", "cause": "the mail server is away"}'
  exit 1
fi
echo "$job" >> journal
echo "{\"done\": \"$job\"}"
