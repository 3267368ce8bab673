//! The workers of `examples/workers` against a server that is busy: a report refused with 429 is
//! sent again, an impossible task is reported, and no token is on a command line.
#![cfg(target_os = "linux")]

use serde_json::{Value, json};
use starbridge_tests::data;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// The pause that the server asks for after a report.
const LATER: Duration = Duration::from_secs(2);
const TOKEN: &str = "token-of-the-worker";

/// A worker that ends with its test, and all it started with it.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let kill = format!("kill -KILL -{}", self.0.id());
        let _ = Command::new("sh").args(["-c", &kill]).status();
        let _ = self.0.wait();
    }
}

/// A report as it came.
struct Report {
    at: Instant,
    path: String,
    body: Value,
}

/// The answer to a request: status, further headers, body.
type Answer = (u16, String, Value);

/// A server that is busy at the first request for tasks and at the first report, then hands out these tasks one by one.
struct Busy {
    tasks: Vec<Value>,
    holds: usize,
    reports: usize,
    said: Sender<Report>,
    shown: Sender<String>,
}

impl Busy {
    fn answer(&mut self, path: String, body: Value) -> Answer {
        let busy = |after: u64| (429, format!("Retry-After: {after}\r\n"), json!({"code": "Busy"}));
        if path.ends_with("/hold") {
            self.holds += 1;
            if self.holds == 1 {
                return busy(1);
            }
            let task = (!self.tasks.is_empty()).then(|| self.tasks.remove(0));
            return (200, String::new(), json!({"tasks": task.as_slice()}));
        }
        self.reports += 1;
        let results = json!({"results": [{"status": 204}]});
        let _ = self.said.send(Report {
            at: Instant::now(),
            path,
            body,
        });
        match self.reports {
            1 => busy(LATER.as_secs()),
            _ => (200, String::new(), results),
        }
    }

    /// Command lines of all processes that show a token. The asking process is waiting, so it is
    /// among them.
    fn look(&self) {
        for process in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(TOKEN) || line.contains("token-of-a-task") {
                let _ = self.shown.send(line);
            }
        }
    }

    fn serve(mut self, listener: &TcpListener) {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let Some((path, body)) = request(&stream) else { continue };
            self.look();
            let (status, headers, body) = self.answer(path, body);
            let body = body.to_string();
            let head = format!(
                "HTTP/1.1 {status} Said\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = (&stream).write_all((head + &body).as_bytes());
        }
    }
}

/// Path and body of a request.
fn request(stream: &TcpStream) -> Option<(String, Value)> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(text) = header.strip_prefix("content-length:") {
            length = text.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Whether the programs are there that a worker needs.
fn are_there(tools: &[&str]) -> bool {
    let found = |tool: &&str| {
        Command::new(tool)
            .arg("--version")
            .output()
            .is_ok_and(|ran| ran.status.success())
    };
    tools.iter().all(found)
}

/// Runs a worker on these inputs: the reports, until there are three of them, and what command lines showed.
fn run(program: &str, arguments: &[&str], inputs: [Value; 2]) -> (Vec<Report>, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (said, reports) = channel();
    let (shown, lines) = channel();
    let tasks = inputs.into_iter().enumerate();
    let busy = Busy {
        tasks: tasks
            .map(|(number, input)| json!({"token": format!("token-of-a-task-{number}"), "input": input}))
            .collect(),
        holds: 0,
        reports: 0,
        said,
        shown,
    };
    std::thread::spawn(move || busy.serve(&listener));
    let mut worker = Command::new(program);
    worker
        .args(arguments)
        .current_dir(data::root().join("examples/workers"))
        .env("STARBRIDGE_SERVER", format!("http://{address}"))
        .env("STARBRIDGE_TOKEN", TOKEN)
        .stdout(Stdio::null())
        .process_group(0);
    let _worker = Worker(worker.spawn().unwrap());
    let three = (0..3).map(|_| reports.recv_timeout(PATIENCE).expect("the worker reports no more"));
    (three.collect(), lines)
}

/// The first report came again, later and unchanged.
fn came_again(reports: &[Report]) {
    let [first, again, _] = reports else {
        panic!("there are three reports");
    };
    assert_eq!((&first.path, &first.body), (&again.path, &again.body));
    let pause = again.at - first.at;
    assert!(
        pause >= LATER - Duration::from_millis(100),
        "it came again after {pause:?}"
    );
}

#[test]
fn the_worker_in_python_reports_what_it_can_not_do_and_goes_on() {
    if !are_there(&["python3"]) {
        eprintln!("left out, there is no `python3` here");
        return;
    }
    let inputs = [json!({"text": "hello"}), json!({"to": "Ada", "text": "hello"})];
    let (reports, _) = run("python3", &["worker.py", "notify"], inputs);
    came_again(&reports);
    let failed = json!({"token": "token-of-a-task-0", "error": "KeyError", "cause": "'to'"});
    assert_eq!(reports[0].body["reports"], json!([failed]));
    let done = json!({"token": "token-of-a-task-1", "output": {"sent": "Ada: hello"}});
    assert_eq!(reports[2].body["reports"], json!([done]));
}

#[test]
fn the_worker_in_shell_shows_no_token() {
    if !are_there(&["curl", "jq"]) {
        eprintln!("left out, there is no `curl` or no `jq` here");
        return;
    }
    let inputs = [json!({"photo": "cat.txt"}), json!({"photo": "cat.jpg"})];
    let (reports, shown) = run("sh", &["worker.sh", "resize", "sh", "resize.sh"], inputs);
    came_again(&reports);
    assert_eq!(reports[0].path, "/v1/callbacks/token-of-a-task-0/fail");
    assert_eq!(reports[0].body, json!({"error": "Resize.NoImage", "cause": "cat.txt"}));
    assert_eq!(reports[2].path, "/v1/callbacks/token-of-a-task-1/succeed");
    assert_eq!(reports[2].body, json!({"output": {"small": "small-cat.jpg"}}));
    let shown: Vec<String> = shown.try_iter().collect();
    assert!(shown.is_empty(), "{shown:?}");
}
