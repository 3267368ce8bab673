# Does one stage of a film: input on stdin. `long.avi` takes a minute the first time, `busy.avi` can't be converted at once.
file=$(jq -r .file)
echo "$STARBRIDGE_STEP $file" >> journal
if [ "$STARBRIDGE_STEP $file $STARBRIDGE_ATTEMPT" = "convert long.avi 1" ]; then
  sleep 60
fi
if [ "$STARBRIDGE_STEP $file $STARBRIDGE_ATTEMPT" = "convert busy.avi 1" ]; then
  echo '{"error": "Convert.Busy", "cause": "all cores are taken"}'
  exit 1
fi
echo '{}'
