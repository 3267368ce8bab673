# Input on stdin, output on stdout; another exit code than 0 fails the task.
input=$(cat)
photo=$(printf %s "$input" | sed 's/.*"photo":"\([^"]*\)".*/\1/')
case $photo in
  *.jpg) echo "{\"small\": \"small-$photo\"}" ;;
  *) echo "{\"error\": \"Resize.NoImage\", \"cause\": \"$photo\"}"; exit 1 ;;
esac
