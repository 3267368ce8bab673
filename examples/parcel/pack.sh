# The input on stdin, the output on stdout.
order=$(sed 's/.*"order":\([0-9]*\).*/\1/')
echo "{\"box\": \"box-$order\"}"
