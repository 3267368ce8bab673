"""The alarm: whoever is notified writes a line for each undo that failed into the file `alarms`."""
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Alarm(BaseHTTPRequestHandler):
    def do_POST(self):
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        undo = told["rollback"]
        with open("alarms", "a") as alarms:
            alarms.write(f"{told['name']}: {undo['step']} is not undone ({undo['cause']}), left: {', '.join(undo['left'])}\n")
        self.send_response(200)
        self.end_headers()

ThreadingHTTPServer(("127.0.0.1", 9000), Alarm).serve_forever()
