"""The functions of the migration. A snapshot takes a while: whoever asks for it is told to ask again. Notices go to a file."""
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

asked = {}
def snapshot(job):
    name = f"{job['cluster']}-{job['shard']}"
    asked[name] = asked.get(name, 0) + 1
    if asked[name] % 3: return {"state": "running"}
    return {"state": "done", "snapshot": f"snap-{name}"}
def notice(told):
    with open("notices", "a") as notices: notices.write(f"{told['flow']}/{told['name']} {told['status']}\n")
    return {}
FUNCTIONS = {"/snapshot": snapshot, "/host": lambda job: {"host": f"host-{job['shard'] % 2}"}, "/notices": notice}

class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        answer = FUNCTIONS[self.path](json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

ThreadingHTTPServer(("127.0.0.1", 9000), Handler).serve_forever()
