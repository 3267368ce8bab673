# What an agent does with a task: input on stdin, result on stdout.
file=$(jq -r .file)
if [ "$file" = missing ]; then
  echo '{"error": "File.Missing", "cause": "there is no such file"}'
  exit 1
fi
echo "$file" >> journal
echo "{\"file\": \"$file\"}"
