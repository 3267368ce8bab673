# Takes messages of the topic `approvals`: what it prints is the report.
album=$(jq -r .MessageBody.album)
echo "{\"by\": \"ada, album $album\"}"
