"""Takes a thousand tasks of the queue at a time, does them, and reports them together."""
import json, os, time, urllib.error, urllib.request

SERVER = os.environ.get("STARBRIDGE_SERVER", "http://127.0.0.1:7878") + "/v1"

def post(path, body):
    while True:  # a server that is away or busy is sent the same again
        try:
            return json.load(urllib.request.urlopen(urllib.request.Request(SERVER + path, json.dumps(body).encode()), timeout=90))
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise
        except OSError:
            pass
        time.sleep(1)

def resize(task):
    picture = task["input"]["picture"]
    if picture.endswith("13.jpg"):
        return {"token": task["token"], "error": "Resize.NoImage", "cause": picture}
    return {"token": task["token"], "output": {"bytes": 1000 + len(picture)}}

while True:
    tasks = post("/queues/resize-all/hold", {"worker": f"python-{os.getpid()}", "limit": 1000})["tasks"]
    if tasks:
        post("/callbacks", {"reports": [resize(task) for task in tasks]})
