"""Sends questions as mails with two links, and turns a click into a callback. The mails go into the folder `mail`."""
import json, os, secrets, urllib.error, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SERVER = os.environ.get("STARBRIDGE_SERVER", "http://127.0.0.1:7878") + "/v1"
MAIL = os.path.join(os.path.dirname(os.path.abspath(__file__)), "mail")
ADDRESS = ("127.0.0.1", 9000)
tokens = {}  # by a word that nobody can guess; a real one would be in a table

def send_mail(asked):
    word = secrets.token_urlsafe(16)
    tokens[word] = asked["token"]
    link = "http://%s:%d/" % ADDRESS + word
    os.makedirs(MAIL, exist_ok=True)
    with open(os.path.join(MAIL, f"question-{asked['try']}"), "w") as mail:
        mail.write(f"{asked['text']}\nyes {link}/yes\nno  {link}/no\n")

def report(token, said):
    body = json.dumps({"output": {"approved": said == "yes", "by": "ada"}}).encode()
    try:
        urllib.request.urlopen(urllib.request.Request(f"{SERVER}/callbacks/{token}/succeed", body))
        return "thank you"
    except urllib.error.HTTPError as error:
        return {409: "somebody has answered already", 410: "this question is over"}.get(error.code, "try again later")

class Handler(BaseHTTPRequestHandler):
    def answer(self, status, body, kind):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def clicked(self):
        """The token of the question and what was clicked; nothing where the link is not ours."""
        word, _, said = self.path.strip("/").partition("/")
        return (tokens.get(word), said) if said in ("yes", "no") else (None, said)

    def do_GET(self):  # a button: programs that look into mails before people do must not answer
        token, said = self.clicked()
        page = f"<form method=post><button>{said}</button></form>" if token else "no such question"
        self.answer(200 if token else 404, page, "text/html")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path == "/ask":
            send_mail(json.loads(body))
            return self.answer(202, "{}", "application/json")
        if self.path == "/pay":
            return self.answer(200, json.dumps({"receipt": f"p-{json.loads(body)['id']}"}), "application/json")
        token, said = self.clicked()
        self.answer(200 if token else 404, (report(token, said) if token else "no such question") + "\n", "text/plain")

ThreadingHTTPServer(ADDRESS, Handler).serve_forever()
