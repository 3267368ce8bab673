//! Programs: which may run, and what is left of them.

use super::server::{CANARY, Ground, Server, Setup, pause, shows_canary};
use super::{Seen, Try};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "programs/fence",
        "absolute, `..`, from `PATH`, through a link, a folder, a device",
        "FnF.NoSuchResource each; one in the folder runs",
        |ground| Box::pin(fence(ground)),
    ),
    Try::quick(
        "programs/left-behind",
        "a program leaves one behind in a session of its own, which holds its output",
        "the call is over within 5 s, and nothing of it runs",
        |ground| Box::pin(left_behind(ground)),
    ),
    Try::quick(
        "programs/timed-out",
        "the same, and the program itself does not end: timeoutSeconds 1",
        "over within 6 s, and nothing of it runs",
        |ground| Box::pin(timed_out(ground)),
    ),
    Try::quick(
        "programs/of-a-killed-server",
        "SIGKILL of the server while its program runs",
        "gone within 5 s, or at the next start",
        |ground| Box::pin(of_a_killed_server(ground)),
    ),
    Try::quick(
        "programs/environment",
        "a program reads the environment of the server",
        "no byte of a secret",
        |ground| Box::pin(environment(ground)),
    ),
];

/// Puts a program into the folder of programs.
pub(super) fn write_program(ground: &Ground, name: &str, text: &str) -> Result<(), String> {
    let file = ground.path("programs").join(name);
    let written = std::fs::create_dir_all(file.parent().unwrap_or(&file))
        .and_then(|()| std::fs::write(&file, text))
        .and_then(|()| std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)));
    written.map_err(|error| error.to_string())
}

/// The section that lets a server run what is in that folder.
pub(super) fn programs_of(ground: &Ground) -> String {
    let folder = ground.path("programs");
    format!("[commands]\nfolder = \"{}\"\n", folder.display())
}

/// Puts programs into the folder and starts a server that may run them.
async fn with_programs(ground: &Ground, programs: &[(&str, &str)], setup: Setup) -> Result<Server, String> {
    for (name, text) in programs {
        write_program(ground, name, text)?;
    }
    let sections = programs_of(ground);
    ground.server_with(Setup { sections, ..setup }).await
}

fn runs(program: &str, rest: &Value) -> Value {
    let mut task = json!({"type": "task", "name": "a", "resourceArn": format!("cmd:{program}")});
    for (name, value) in rest.as_object().into_iter().flatten() {
        task[name.as_str()] = value.clone();
    }
    json!([task])
}

async fn fence(ground: Ground) -> Result<Seen, String> {
    let ok = "#!/bin/sh\necho '{\"ran\":true}'\n";
    let server = with_programs(&ground, &[("ok.sh", ok), ("inside/ok.sh", ok)], Setup::default()).await?;
    let folder = ground.path("programs");
    std::fs::write(ground.path("outside.sh"), ok).map_err(|error| error.to_string())?;
    let linked = symlink("/bin/cat", folder.join("link")).and_then(|()| symlink("/bin", folder.join("bin")));
    linked.map_err(|error| error.to_string())?;
    let outside = [
        "/bin/cat",
        "../../../../../../bin/cat",
        "../outside.sh",
        "./inside/../../outside.sh",
        "cat",
        "./link",
        "./bin/cat",
        "./inside",
        "/dev/null",
        "/proc/self/exe",
    ];
    let mut wrong = Vec::new();
    for program in outside {
        let definition = json!({"version": "v1", "type": "flow", "steps": runs(program, &json!({}))});
        if server.put("/v1/flows/c", &definition).await.refused() {
            continue;
        }
        let ended = server.outcome("c", &json!({})).await?;
        if ended["error"] != "FnF.NoSuchResource" {
            wrong.push(format!("{program}: {} {}", ended["status"], ended["error"]));
        }
    }
    for program in ["./ok.sh", "./inside/ok.sh"] {
        server.flow("c", &runs(program, &json!({}))).await?;
        let ended = server.outcome("c", &json!({})).await?;
        if ended["output"]["ran"] != true {
            wrong.push(format!("{program} may run: {} {}", ended["error"], ended["cause"]));
        }
    }
    Ok(Seen::unless(&wrong, "10 refused, 2 ran"))
}

/// The ids of processes that a program wrote down.
fn noted(file: &Path) -> Vec<u32> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.trim().parse().ok()).collect()
}

/// Whether a process runs; one that has ended and was not waited for does not.
fn runs_still(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let state = status.rsplit(')').next().unwrap_or_default().trim_start();
    !state.is_empty() && !state.starts_with('Z')
}

/// The processes that still run after a while. They are ended: this try started them.
async fn survivors(processes: &[u32], patience: Duration) -> usize {
    let begun = Instant::now();
    while begun.elapsed() < patience && processes.iter().any(|process| runs_still(*process)) {
        pause(50).await;
    }
    let left: Vec<_> = processes.iter().filter(|process| runs_still(**process)).collect();
    for process in &left {
        // It may be gone by now.
        drop(Command::new("kill").args(["-KILL", &process.to_string()]).status());
    }
    left.len()
}

const LEAVES: &str = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n\
    setsid sh -c 'echo $$ >> left; exec sleep 900' &\n\
    (setsid sh -c 'echo $$ >> left; trap \"\" TERM HUP INT; sleep 901 & echo $! >> left; wait' &)\n\
    while [ \"$(wc -l < left 2>/dev/null || echo 0)\" -lt 3 ]; do sleep 0.05; done\n";

/// How a program that leaves others behind ended.
struct Left {
    ended: Value,
    took: Duration,
    processes: usize,
    run_on: usize,
}

impl Left {
    /// Runs one that goes on so when it has left them behind.
    async fn by(ground: &Ground, then: &str, more: &Value) -> Result<Self, String> {
        let program = format!("{LEAVES}{then}\n");
        let server = with_programs(ground, &[("leaves.sh", &program)], Setup::default()).await?;
        server.flow("c", &runs("./leaves.sh", more)).await?;
        let begun = Instant::now();
        let id = server.start("c", &json!({})).await?;
        let ended = server.end_of(&id, Duration::from_secs(8)).await;
        let took = begun.elapsed();
        let processes = noted(&ground.path("programs/left"));
        let run_on = survivors(&processes, Duration::from_secs(2)).await;
        Ok(Self {
            ended,
            took,
            processes: processes.len(),
            run_on,
        })
    }

    fn seen(&self, held: bool) -> Seen {
        let Self {
            ended,
            took,
            processes,
            run_on,
        } = self;
        let text = format!(
            "{} {} after {} ms, {run_on} of {processes} run on",
            ended["status"],
            ended["error"],
            took.as_millis()
        );
        Seen::new(held && *run_on == 0, text)
    }
}

async fn left_behind(ground: Ground) -> Result<Seen, String> {
    let left = Left::by(&ground, "echo '{}'", &json!({})).await?;
    let over = left.ended["status"] == "Succeeded" && left.took < Duration::from_secs(5);
    Ok(left.seen(over && left.processes == 3))
}

async fn timed_out(ground: Ground) -> Result<Seen, String> {
    let left = Left::by(&ground, "sleep 902", &json!({"timeoutSeconds": 1})).await?;
    let over = left.ended["status"] == "Failed" && left.took < Duration::from_secs(6);
    Ok(left.seen(over && left.processes > 0))
}

async fn of_a_killed_server(ground: Ground) -> Result<Seen, String> {
    let program = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\necho $$ >> ran\nexec sleep 903\n";
    let mut server = with_programs(&ground, &[("long.sh", program)], Setup::default()).await?;
    server.flow("c", &runs("./long.sh", &json!({}))).await?;
    server.start("c", &json!({})).await?;
    let file = ground.path("programs/ran");
    for _ in 0..200 {
        if !noted(&file).is_empty() {
            break;
        }
        pause(20).await;
    }
    let first = noted(&file);
    server.kill();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(5) && first.iter().any(|process| runs_still(*process)) {
        pause(50).await;
    }
    let by_itself = !first.iter().any(|process| runs_still(*process));
    server.again().await?;
    let left = survivors(&first, Duration::from_secs(3)).await;
    let all = noted(&file);
    server.kill();
    // Processes of the second life do not matter here.
    survivors(&all, Duration::from_secs(3)).await;
    let text = format!(
        "{left} of {} run on; gone before the next start: {by_itself}",
        first.len()
    );
    Ok(Seen::new(left == 0 && !first.is_empty(), text))
}

async fn environment(ground: Ground) -> Result<Seen, String> {
    let program = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n\
        { tr '\\0' '\\n' < /proc/$PPID/environ; env; tr '\\0' '\\n' < /proc/$PPID/cmdline; } > got 2>&1\necho '{}'\n";
    let setup = Setup {
        variables: vec![("STARBRIDGE_SECRET_K", CANARY.to_owned())],
        // Nothing is hidden from root.
        as_nobody: true,
        ..Setup::default()
    };
    let server = with_programs(&ground, &[("env.sh", program)], setup).await?;
    server.flow("c", &runs("./env.sh", &json!({}))).await?;
    let ended = server.outcome("c", &json!({})).await?;
    let got = std::fs::read_to_string(ground.path("programs/got"));
    let got = got.map_err(|error| format!("the program did not run: {error}: {ended}"))?;
    let text = if shows_canary(&got) {
        "the secret stands there"
    } else {
        "it does not stand there"
    };
    Ok(Seen::new(!shows_canary(&got), text))
}
