"""Takes tasks of a queue, up to ten at a time: worker.py QUEUE"""
import json, os, sys, threading, time, urllib.request
SERVER = os.environ.get("STARBRIDGE_SERVER", "http://127.0.0.1:7878") + "/v1"
HEADERS = {"Authorization": "Bearer " + os.environ.get("STARBRIDGE_TOKEN", "")}
def post(path, body):
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), HEADERS)
    while True:
        try:
            return json.load(urllib.request.urlopen(request, timeout=90))
        except OSError as error:  # a server that is away is asked again; one that refuses is not
            if getattr(error, "code", 500) < 500: raise
        time.sleep(1)
def work(task): return {"output": {"sent": f"{task['input']['to']}: {task['input']['text']}"}}
def beat(tasks, done):
    while not done.wait(10): post("/callbacks", {"reports": [{"token": t["token"], "heartbeat": True} for t in tasks]})
while True:
    tasks = post(f"/queues/{sys.argv[1]}/hold", {"worker": "python", "limit": 10})["tasks"]
    threading.Thread(target=beat, args=(tasks, done := threading.Event()), daemon=True).start()
    post("/callbacks", {"reports": [{"token": task["token"], **work(task)} for task in tasks]})
    done.set()
