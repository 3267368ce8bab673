//! The examples that are run while their server is killed, and what their READMEs allow.

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// An example, and what its README allows.
pub(super) struct Example {
    /// Its folder below `examples/`.
    pub(super) folder: &'static str,
    /// Its flows; the first one is started, or all of them by turns.
    pub(super) flows: &'static [&'static str],
    pub(super) by_turns: bool,
    /// The queues of its workers, with the program of each.
    pub(super) workers: &'static [(&'static str, &'static str)],
    /// The consumers of its streams, with the program of each. An example with consumers has a Redis of its own.
    pub(super) consumers: &'static [(&'static str, &'static str)],
    /// The programs of its HTTP functions, or the file of their answers.
    pub(super) functions: &'static [&'static str],
    /// Its workers that ask the server themselves.
    pub(super) scripts: &'static [&'static str],
    /// The configuration of its server.
    pub(super) config: Option<&'static str>,
    /// The variables of the environment that its flows set.
    pub(super) variables: &'static [&'static str],
    /// The programs it can't do without.
    pub(super) tools: &'static [&'static str],
    /// How many jobs run at once. Those that share a file run alone.
    pub(super) together: u64,
    /// What a job is started with.
    pub(super) start: fn(u64) -> Value,
    /// What is wrong with the end of a job. The folder is where its programs ran.
    pub(super) wrong: fn(&Path, &Job) -> Option<String>,
}

/// A job that has ended.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) number: u64,
    pub(super) shown: Value,
}

impl Job {
    pub(super) fn status(&self) -> &str {
        self.shown["status"].as_str().unwrap_or_default()
    }
}

/// An example without anything.
const PLAIN: Example = Example {
    folder: "",
    flows: &[],
    by_turns: false,
    workers: &[],
    consumers: &[],
    functions: &[],
    scripts: &[],
    config: None,
    variables: &[],
    tools: &[],
    together: 1,
    start: |_| Value::Null,
    wrong: |_, _| None,
};

pub(super) const EXAMPLES: [Example; 13] = [
    Example {
        folder: "undo",
        flows: &["flow.json"],
        workers: &[("network", "module.sh"), ("disk", "module.sh"), ("boot", "module.sh")],
        tools: &["jq"],
        together: 4,
        start: |number| json!({"input": {"name": format!("job-{number}"), "fail": failing_module(number)}}),
        wrong: undo,
        ..PLAIN
    },
    Example {
        folder: "tasks",
        flows: &["flow.json"],
        workers: &[("jobs", "job.sh")],
        tools: &["jq"],
        together: 4,
        // The same key twice: both are one.
        start: |number| json!({"onceKey": format!("{}", number / 2), "input": {"do": format!("job-{}", number / 2)}}),
        wrong: |folder, job| {
            let done = format!("job-{}", job.number / 2);
            succeeded(job, &json!({"done": done})).or_else(|| journal(folder, &[&done]))
        },
        ..PLAIN
    },
    Example {
        folder: "staged",
        flows: &["flow.json"],
        workers: &[("convert", "stage.sh"), ("publish", "stage.sh")],
        tools: &["jq"],
        together: 4,
        start: |number| json!({"priority": number % 10, "input": {"file": format!("{number}.avi"), "seconds": 600}}),
        wrong: |folder, job| {
            let stages = ["convert", "publish"].map(|stage| format!("{stage} {}.avi", job.number));
            succeeded(job, &Value::Null).or_else(|| journal(folder, &stages.each_ref().map(String::as_str)))
        },
        ..PLAIN
    },
    Example {
        folder: "durable",
        flows: &["flow.json"],
        // There is one file with the token.
        together: 1,
        start: |number| json!({"input": {"id": number}}),
        wrong: |_, job| succeeded(job, &json!({"reservation": "r-7", "approved": true, "parcel": "s-7"})),
        ..PLAIN
    },
    Example {
        folder: "pipeline",
        flows: &["flow.json", "publish.json"],
        variables: &["WORD"],
        // There is one folder of texts.
        together: 1,
        start: |_| json!({"input": {"url": "http://texts.example/1", "word": "two"}}),
        wrong: |folder, job| {
            let published = fs::read_to_string(folder.join("texts/published.txt")).unwrap_or_default();
            let wrong = (published != "one\ntwo\nthree\n").then(|| format!("published is {published:?}"));
            succeeded(job, &json!({"published": "published.txt: 3 lines"})).or(wrong)
        },
        ..PLAIN
    },
    Example {
        folder: "jobs",
        flows: &["flow.json"],
        workers: &[("copy", "job.sh"), ("switch", "job.sh")],
        functions: &["functions.py"],
        tools: &["jq", "python3"],
        // More than a cluster's limit.
        together: 7,
        start: |number| json!({"input": {"cluster": "blue", "shard": number}}),
        wrong: |folder, job| {
            let (shard, host) = (job.number, job.number % 2);
            let lines = [
                format!("copy blue-{shard} from snap-blue-{shard} to host-{host}"),
                format!("switch blue-{shard} to host-{host}"),
            ];
            succeeded(job, &json!({"shard": shard, "host": format!("host-{host}")}))
                .or_else(|| journal(folder, &lines.each_ref().map(String::as_str)))
        },
        ..PLAIN
    },
    Example {
        folder: "controllers",
        flows: &["graph.json", "volume.json"],
        tools: &["jq"],
        // The journal does not say whose action it is.
        together: 1,
        start: |number| json!({"input": {"users": [if number.is_multiple_of(2) { "somebody" } else { "nobody" }]}}),
        wrong: controllers,
        ..PLAIN
    },
    Example {
        folder: "agents",
        flows: &["flow.json", "task.json", "child-task.json"],
        workers: &[("agent-north", "agent.sh"), ("agent-south", "agent.sh")],
        tools: &["jq"],
        together: 4,
        start: |number| {
            let tasks = agents_files(number).map(|(unit, files)| json!({"unit": unit, "files": files}));
            json!({"input": {"tasks": tasks}})
        },
        wrong: |folder, job| {
            let files = agents_files(job.number);
            if files
                .iter()
                .any(|(_, files)| files.iter().any(|file| file == "missing"))
            {
                let right = job.status() == "Failed" && job.shown["error"] == "File.Missing";
                return (!right).then(|| "it has to fail".to_owned());
            }
            let tasks = files
                .each_ref()
                .map(|(unit, files)| json!({"unit": unit, "copied": files}));
            let copied = || files.iter().flat_map(|(_, files)| files);
            succeeded(job, &json!({"tasks": tasks})).or_else(|| copied().find_map(|file| journal(folder, &[file])))
        },
        ..PLAIN
    },
    Example {
        folder: "nightly",
        flows: &["flow.json"],
        tools: &["jq"],
        together: 4,
        // What a schedule gives, with a second until the numbers have settled.
        start: |number| {
            let payload = json!({"region": format!("r{number}"), "seconds": number % 2});
            json!({"input": {"payload": payload, "triggerTime": "2026-03-29T01:00:00Z", "triggerName": "nightly"}})
        },
        wrong: |_, job| {
            succeeded(
                job,
                &json!({"report": format!("r{} of 2026-03-29T01:00:00Z", job.number)}),
            )
        },
        ..PLAIN
    },
    Example {
        folder: "mutex",
        flows: &["upgrade.json", "repair.json"],
        by_turns: true,
        consumers: &[("c-1", "consumer.sh"), ("c-2", "consumer.sh")],
        tools: &["jq", "redis-cli"],
        // More than there are machines.
        together: 6,
        start: |number| {
            let priority = number % 3 * 4;
            let mut job = json!({"priority": priority, "input": {"machine": machine_of(number)}});
            if let Some(before) = number.checked_sub(1).filter(|_| number % 4 == 3) {
                let before = format!("{}/job-{before}", mutex_flow(before));
                job["after"] = json!([{"execution": before, "when": "ended"}]);
            }
            job
        },
        wrong: mutex,
        ..PLAIN
    },
    Example {
        folder: "map",
        flows: &["flow.json"],
        scripts: &["worker.py"],
        tools: &["python3"],
        together: 2,
        start: |_| json!({"input": {"pictures": (0..PICTURES).map(|at| format!("p{at}.jpg")).collect::<Vec<_>>()}}),
        wrong: |_, job| succeeded(job, &json!({"failed": ["p13.jpg", "p113.jpg"], "firstBytes": 1006})),
        ..PLAIN
    },
    Example {
        folder: "approval",
        flows: &["flow.json"],
        functions: &["links.py"],
        tools: &["python3"],
        // There is one mail for each try.
        together: 1,
        start: |number| json!({"input": {"id": number, "amount": 120, "to": "Ada"}}),
        wrong: |_, job| match says(job.number) {
            "yes" => {
                let receipt = format!("p-{}", job.number);
                succeeded(job, &json!({"approved": true, "by": "ada", "receipt": receipt}))
            }
            _ => {
                let right = job.status() == "Failed" && job.shown["error"] == "Payment.Refused";
                (!right).then(|| "the answer was no".to_owned())
            }
        },
        ..PLAIN
    },
    Example {
        folder: "alibaba",
        flows: &["album.yaml", "archive.yaml"],
        functions: &["functions.json"],
        workers: &[("approvals", "approve.sh")],
        config: Some("server.toml"),
        tools: &["jq"],
        together: 4,
        start: |number| json!({"input": {"album": number, "pictures": ["a", "b"]}}),
        wrong: |_, job| {
            let by = format!("ada, album {}", job.number);
            succeeded(job, &json!({"small": ["a", "b"], "by": by, "archived": true}))
        },
        ..PLAIN
    },
];

/// How many pictures a job of `map` has: as many that one in a hundred fails.
const PICTURES: u32 = 200;

/// What somebody clicks who is asked whether this payment may go out.
pub(super) fn says(number: u64) -> &'static str {
    if number % 3 == 2 { "no" } else { "yes" }
}

/// Which module is to fail.
fn failing_module(number: u64) -> &'static str {
    ["", "network", "disk", "boot"][(number % 4) as usize]
}

/// Everything is made, or what was made is taken back, or it says what is left.
fn undo(folder: &Path, job: &Job) -> Option<String> {
    let name = format!("job-{}", job.number);
    let made = ["network", "disk", "boot"].into_iter();
    let made: BTreeSet<&str> = made
        .filter(|module| folder.join(format!("made/{module}-{name}")).exists())
        .collect();
    let left = job.shown["rollback"]["left"].as_array();
    let allowed = match (job.status(), failing_module(job.number)) {
        ("Succeeded", "") => made.len() == 3,
        ("Failed", failing) => !failing.is_empty() && job.shown["error"] == "Module.Failed" && made.is_empty(),
        ("RollbackFailed", _) => {
            let left: BTreeSet<&str> = left.into_iter().flatten().filter_map(Value::as_str).collect();
            made.is_subset(&left)
        }
        _ => false,
    };
    (!allowed).then(|| format!("{made:?} are there"))
}

/// A job that has to succeed. An output of null may be any.
fn succeeded(job: &Job, output: &Value) -> Option<String> {
    let right = job.status() == "Succeeded" && (output.is_null() || job.shown["output"] == *output);
    (!right).then(|| "it has to succeed".to_owned())
}

/// Whether a job's programs have written these lines, in this order. A program that was cut off writes its line again.
fn journal(folder: &Path, lines: &[&str]) -> Option<String> {
    let journal = fs::read_to_string(folder.join("journal")).unwrap_or_default();
    let mut rest = journal.lines();
    let missing = lines.iter().find(|wanted| !rest.any(|line| line == **wanted));
    missing.map(|wanted| format!("`{wanted}` does not stand in the journal where it has to"))
}

/// The files of each unit of a job. Each fifth job has one that is not there.
fn agents_files(number: u64) -> [(&'static str, Vec<String>); 2] {
    let south = match number % 5 {
        4 => "missing".to_owned(),
        _ => format!("{number}-c"),
    };
    [
        ("north", vec![format!("{number}-a"), format!("{number}-b")]),
        ("south", vec![south]),
    ]
}

/// Everything is done and nothing undone, or everything that was done was undone after it, the last one first.
fn controllers(folder: &Path, job: &Job) -> Option<String> {
    let path = folder.join("journal");
    let journal = fs::read_to_string(&path).unwrap_or_default();
    // The next job begins with an empty one.
    drop(fs::remove_file(path));
    let actions: Vec<&str> = journal.lines().filter_map(|line| line.split(' ').next()).collect();
    let last = |action: &str| actions.iter().rposition(|done| *done == action);
    let all = ["address", "create", "format", "start", "tell"];
    let undone: Vec<Option<usize>> = all.iter().map(|action| last(&format!("undo-{action}"))).collect();
    let fails = !job.number.is_multiple_of(2);
    let allowed = match (job.status(), fails) {
        ("Succeeded", false) => all.iter().all(|action| last(action).is_some()) && undone.iter().all(Option::is_none),
        ("Failed", true) => {
            let after = all.iter().zip(&undone).all(|(action, undone)| *undone > last(action));
            // The address and the volume come in no order.
            let volume = undone.get(1..).unwrap_or_default();
            job.shown["error"] == "No.Such.User" && after && volume.is_sorted_by(|one, next| one > next)
        }
        _ => false,
    };
    (!allowed).then(|| format!("the journal has {actions:?}"))
}

/// The machine of a job, one of two.
fn machine_of(number: u64) -> String {
    format!("m-{}", number / 2 % 2)
}

/// The flow of a job: they are started by turns.
fn mutex_flow(number: u64) -> &'static str {
    ["upgrade", "repair"][(number % 2) as usize]
}

/// A job works on its machine and gives it back. Its consumer refuses a machine that another job has: such a job would fail, or
/// ask an operator for ever. Each fifth job leaves a machine that is broken, so that the next one asks an operator.
fn mutex(folder: &Path, job: &Job) -> Option<String> {
    let (machine, flow) = (machine_of(job.number), mutex_flow(job.number));
    let holder = fs::read_to_string(folder.join(format!("held-{machine}"))).unwrap_or_default();
    let keeps = job.shown["id"] == holder.trim();
    if job.number % 5 == 4
        && let Err(error) = fs::write(folder.join(format!("broken-{machine}")), "")
    {
        return Some(error.to_string());
    }
    succeeded(job, &json!({"machine": machine, "done": flow}))
        .or_else(|| journal(folder, &[&format!("{flow} {machine}")]))
        .or_else(|| keeps.then(|| format!("it has ended, and has {machine} still")))
}
