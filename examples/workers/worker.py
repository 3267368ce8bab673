"""Takes tasks of a queue, up to ten at a time: worker.py QUEUE"""
import http.client, json, os, sys, threading, time, urllib.error, urllib.request
SERVER = os.environ.get("STARBRIDGE_SERVER", "http://127.0.0.1:7878") + "/v1"
HEADERS = {"Authorization": "Bearer " + os.environ.get("STARBRIDGE_TOKEN", "")}
def post(path, body):
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), HEADERS)
    while True:  # a server that is away or busy is sent the same again; one that refuses is not
        pause = 1
        try:
            return json.load(urllib.request.urlopen(request, timeout=90))
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429: raise
            pause = float(error.headers.get("Retry-After") or 1)
        except (OSError, http.client.HTTPException): pass
        time.sleep(pause)
def report(reports):
    while reports:
        results = post("/callbacks", {"reports": reports})["results"]
        reports = [said for said, result in zip(reports, results) if result["status"] == 429 or result["status"] >= 500]
        if reports: time.sleep(1)
def work(task): return {"sent": f"{task['input']['to']}: {task['input']['text']}"}
def outcome(task):
    try: return {"token": task["token"], "output": work(task)}
    except Exception as error:  # a task that can't be done fails; the worker goes on
        return {"token": task["token"], "error": type(error).__name__, "cause": str(error)}
def beat(tasks, done):
    while not done.wait(10): post("/callbacks", {"reports": [{"token": t["token"], "heartbeat": True} for t in tasks]})
while True:
    tasks = post(f"/queues/{sys.argv[1]}/hold", {"worker": "python", "limit": 10})["tasks"]
    threading.Thread(target=beat, args=(tasks, done := threading.Event()), daemon=True).start()
    report([outcome(task) for task in tasks])
    done.set()
