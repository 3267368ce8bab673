//! Worker processes and server processes: some of both are killed, and their work is completed.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The time limit for everything that the test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

#[allow(
    clippy::disallowed_methods,
    reason = "files and processes say nothing when they come and go"
)]
fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

fn wait_for(what: &str, mut come: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !come() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come");
        pause(20);
    }
}

/// A folder, and the server whose store is in it.
struct Place {
    folder: tempfile::TempDir,
    address: String,
}

/// A process that ends with its test, and its lines on stderr.
struct Running {
    child: Child,
    said: Receiver<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

impl Running {
    /// SIGKILL: the process does nothing more.
    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn signal(&self, signal: &str) {
        signal_to(self.child.id(), signal);
    }

    /// The next line with these words.
    fn says(&self, words: &str) -> String {
        loop {
            let line = self.said.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("nobody says `{words}`"));
            if line.contains(words) {
                return line;
            }
        }
    }
}

fn signal_to(process: u32, signal: &str) -> bool {
    let kill = format!("kill -s {signal} {process} 2>&1");
    let sent = Command::new("sh").args(["-c", &kill]).output().unwrap();
    sent.status.success()
}

impl Place {
    fn new(step: &str) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            address: free.to_string(),
        };
        let flow = format!(r#"{{"version": "v1", "type": "flow", "name": "work", "steps": [{step}]}}"#);
        std::fs::write(place.path("work.json"), flow).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starbridge"));
        command
            .args(arguments)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("STARBRIDGE_SERVER", format!("http://{}", self.address))
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command
    }

    fn begin(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (say, said) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).all(|line| say.send(line).is_ok()));
        Running { child, said }
    }

    fn serve(&self) -> Running {
        let server = self.begin(&["serve", "--db", "flows.db", "--listen", &self.address]);
        server.says("listening on");
        server
    }

    /// The output of a command that must succeed.
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// How many executions are in that state.
    fn count(&self, status: &str) -> usize {
        let listed = self.run(&["list", "--all", "--json", "--status", status]);
        listed.matches("\"startedTime\"").count()
    }

    /// The id of a process that a program recorded.
    fn pid(&self, file: &str) -> u32 {
        let mut pid = None;
        wait_for(file, || {
            let text = std::fs::read_to_string(self.path(file)).unwrap_or_default();
            pid = text.strip_suffix('\n').and_then(|text| text.parse().ok());
            pid.is_some()
        });
        pid.unwrap()
    }
}

/// A flow of one task, with a lease of a second.
const SHORT: &str = r#"{"type": "task", "name": "t", "resourceArn": "queue:jobs", "heartbeatSeconds": 1}"#;
/// Records its process id, and takes its time.
const SLOW: [&str; 4] = ["--", "sh", "-c", "echo $$ > pid; exec sleep 60"];

fn wait_for_the_end_of(process: u32) {
    wait_for("the end of the program", || !signal_to(process, "0"));
}

#[test]
fn a_second_signal_kills_what_runs() {
    let place = Place::new(SHORT);
    let _server = place.serve();
    place.run(&["flow", "put", "work.json"]);
    place.run(&["start", "work"]);
    let mut worker = place.begin(&[&["worker", "--queue", "jobs"][..], &SLOW[..]].concat());
    let program = place.pid("pid");
    worker.signal("INT");
    worker.says("interrupted: finishing what runs");
    assert!(signal_to(program, "0"), "one signal kills nothing");
    worker.signal("TERM");
    assert_eq!(worker.child.wait().unwrap().code(), Some(130));
    wait_for_the_end_of(program);
}

#[test]
fn a_task_that_is_stopped_is_killed_at_its_worker() {
    let place = Place::new(SHORT);
    let _server = place.serve();
    place.run(&["flow", "put", "work.json"]);
    let execution = place.run(&["start", "work"]);
    let worker = place.begin(&[&["worker", "--queue", "jobs"][..], &SLOW[..]].concat());
    let program = place.pid("pid");
    place.run(&["stop", execution.trim()]);
    worker.says("it is ours no longer (TaskTimedOut): its program is killed");
    wait_for_the_end_of(program);
}

#[test]
fn a_server_that_hears_of_nobody_for_a_lease_costs_what_runs() {
    let place = Place::new(SHORT);
    let server = place.serve();
    place.run(&["flow", "put", "work.json"]);
    place.run(&["start", "work"]);
    let worker = place.begin(&[&["worker", "--queue", "jobs"][..], &SLOW[..]].concat());
    let program = place.pid("pid");
    server.signal("STOP");
    worker.says("no heartbeat got through for a whole lease: its program is killed");
    wait_for_the_end_of(program);
    std::fs::remove_file(place.path("pid")).unwrap();
    server.signal("CONT");
    assert_ne!(place.pid("pid"), program, "the task comes again");
}

#[test]
fn a_task_that_takes_too_long_is_killed_at_its_worker() {
    let step = SHORT.replace(
        '}',
        r#", "timeoutSeconds": 1, "catch": [{"errors": ["FnF.TaskTimeout"], "goto": "end"}]}"#,
    );
    let place = Place::new(&format!(r#"{step}, {{"type": "succeed", "name": "end"}}"#));
    let _server = place.serve();
    place.run(&["flow", "put", "work.json"]);
    let execution = place.run(&["start", "work"]);
    let slow = ["--", "sh", "-c", "echo halfway >&2; echo $$ > pid; exec sleep 60"];
    let worker = place.begin(&[&["worker", "--queue", "jobs"][..], &slow[..]].concat());
    let program = place.pid("pid");
    worker.says("its program is killed");
    wait_for_the_end_of(program);
    wait_for("the end of the flow", || place.count("Succeeded") == 1);
    wait_for("what the program printed", || {
        place.run(&["logs", execution.trim()]).contains("halfway")
    });
}

#[test]
fn what_a_program_printed_that_its_server_killed_is_kept() {
    let place = Place::new(r#"{"type": "task", "name": "t", "resourceArn": "cmd:slow.sh", "timeoutSeconds": 2}"#);
    let program = place.path("slow.sh");
    std::fs::write(&program, "#!/bin/sh\necho halfway >&2\nexec sleep 60\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(place.path("starbridge.toml"), "[commands]\nfolder = \".\"\n").unwrap();
    let server = place.begin(&[
        "serve",
        "--config",
        "starbridge.toml",
        "--db",
        "flows.db",
        "--listen",
        &place.address,
    ]);
    server.says("listening on");
    place.run(&["flow", "put", "work.json"]);
    let execution = place.run(&["start", "work"]);
    wait_for("the end of the flow", || place.count("Failed") == 1);
    wait_for("what the program printed", || {
        let logs = place.run(&["logs", execution.trim(), "--json"]);
        logs.contains("halfway") && logs.contains(r#""step":"t""#) && logs.contains(r#""attempt":1"#)
    });
}

#[test]
fn what_ends_while_the_server_is_away_is_reported_when_it_is_back() {
    let place = Place::new(r#"{"type": "task", "name": "t", "resourceArn": "queue:jobs"}"#);
    let mut server = place.serve();
    place.run(&["flow", "put", "work.json"]);
    let execution = place.run(&["start", "work"]);
    let script = "echo $$ > pid; while [ ! -e go ]; do sleep 0.05; done; echo '{\"done\": true}'";
    let worker = place.begin(&["worker", "--queue", "jobs", "-v", "--", "sh", "-c", script]);
    place.pid("pid");
    server.end();
    std::fs::write(place.path("go"), "").unwrap();
    worker.says("trying again");
    let _server = place.serve();
    worker.says("is there again");
    wait_for("the end of the flow", || place.count("Succeeded") == 1);
    let history = place.run(&["history", execution.trim()]);
    assert_eq!(history.matches("TaskScheduled").count(), 1, "{history}");
}

/// Records each key under which it is run. A folder can be created only once.
const WITNESS: &str = r#"
key=$(echo "$STARBRIDGE_IDEMPOTENCY_KEY" | tr / -)
mkdir "keys/$key" || echo "$key" >> twice
sleep 0.1
echo '{"done": true}'
"#;
const EXECUTIONS: usize = 20;
const ITEMS: usize = 10;

#[test]
fn all_ends_well_while_workers_and_servers_are_killed() {
    let task = SHORT.replace(
        '}',
        r#", "retry": [{"errors": ["FnF.HeartbeatTimeout"], "intervalSeconds": 0, "maxAttempts": 100}]}"#,
    );
    let place = Place::new(&format!(
        r#"{{"type": "foreach", "name": "all", "iterationMapping": {{"collection": "$.items", "item": "item"}}, "steps": [{task}]}}"#
    ));
    std::fs::write(place.path("witness.sh"), WITNESS).unwrap();
    std::fs::create_dir(place.path("keys")).unwrap();
    let mut server = place.serve();
    place.run(&["flow", "put", "work.json"]);
    let items = format!(r#"{{"items": {:?}}}"#, (0..ITEMS).collect::<Vec<_>>());
    for number in 0..EXECUTIONS {
        place.run(&["start", "work", "--name", &format!("w-{number}"), "--input", &items]);
    }
    let work = |name: &str| {
        place.begin(&[
            "worker",
            "--queue",
            "jobs",
            "--concurrency",
            "4",
            "--name",
            name,
            "--",
            "sh",
            "witness.sh",
        ])
    };
    let mut killed = work("killed");
    let _others = [work("one"), work("two")];
    let runs = || std::fs::read_dir(place.path("keys")).unwrap().count();
    let mut restarted = false;
    wait_for("the end of all", || {
        pause(150);
        if !restarted && runs() > EXECUTIONS * ITEMS / 3 {
            server.end();
            server = place.serve();
            restarted = true;
        }
        killed = work("killed");
        place.count("Succeeded") == EXECUTIONS
    });
    assert!(restarted, "the server was never restarted");
    assert!(runs() > EXECUTIONS * ITEMS, "no worker was killed at work");
    let twice = std::fs::read_to_string(place.path("twice")).unwrap_or_default();
    assert!(twice.is_empty(), "run twice under one key: {twice}");
}
