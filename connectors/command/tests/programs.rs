//! Programs that exist on every machine, run and cancelled.

use starbridge_connector_command::{CommandConnector, CommandSettings, Programs, Supervisor};
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::{FaultKind, Pattern};
use starbridge_flow::value::Value;
use starbridge_ports::{CallIds, Connector, Outcome, Request, ResourceFamily};
use std::path::Path;
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn request(target: &str, params: Option<Value>) -> Request {
    Request {
        target: target.to_owned(),
        via: ResourceFamily::Direct,
        pattern: Pattern::RequestResponse,
        input: value("{\"a\":1}"),
        params,
        keys: CallIds {
            idempotency: "exec-1:7".to_owned(),
            step_visit: "exec-1:5".to_owned(),
            execution: "exec-1".to_owned(),
            flow: "order".to_owned(),
            step: "count words".to_owned(),
            traceparent: None,
        },
        attempt: 2,
        rollback: false,
        polling: false,
        follow: false,
        timeout_at: None,
        answer_limit: 1024,
    }
}

fn script(text: &str) -> Request {
    request(
        "cmd:sh",
        Some(value(&format!("{{\"args\": [\"-c\", {}]}}", Value::from(text)))),
    )
}

type Setting = fn(&Path) -> CommandSettings;

fn settings(folder: &Path) -> CommandSettings {
    CommandSettings::in_folder(folder.to_path_buf())
}

fn supervised(folder: &Path) -> CommandSettings {
    CommandSettings {
        supervisor: Some(Supervisor::of(env!("CARGO_BIN_EXE_supervisor"), "supervise")),
        ..settings(folder)
    }
}

async fn run_with(settings: CommandSettings, request: Request) -> Outcome {
    CommandConnector::new(settings).call(request).await
}

/// The outcome, which must be the same with and without a supervisor.
async fn run(folder: &Path, request: Request) -> Outcome {
    let alone = run_with(settings(folder), request.clone()).await;
    let outcome = run_with(supervised(folder), request).await;
    assert_eq!(alone, outcome, "a supervisor makes a difference");
    outcome
}

async fn of(request: Request) -> Outcome {
    let folder = TempDir::new().unwrap();
    run(folder.path(), request).await
}

async fn shell(text: &str) -> Outcome {
    of(script(text)).await
}

fn result(text: &str) -> Outcome {
    Outcome::Result(value(text))
}

fn failure(outcome: Outcome) -> (String, String) {
    match outcome {
        Outcome::NotSent { error, cause } => (FAULT_NAMES.name(&error).to_string(), cause),
        Outcome::Failed { error, cause, .. } => {
            assert_ne!(error, FaultKind::Resource, "who names it so was not called: {cause}");
            (FAULT_NAMES.name(&error).to_string(), cause)
        }
        other => panic!("expected a failure, not {other:?}"),
    }
}

#[tokio::test]
async fn input_goes_in_and_json_comes_out() {
    assert_eq!(of(request("cmd:cat", None)).await, result("{\"a\":1}"));
    assert_eq!(
        shell("echo 'noise' >&2; echo ' {\"b\": [1]} '").await,
        result("{\"b\":[1]}")
    );
    assert_eq!(
        shell("echo 7").await,
        result("7"),
        "the machine decides about what is no object"
    );
    assert_eq!(shell("true").await, result("{}"));
    assert_eq!(shell("printf ' \\n'").await, result("{}"));
}

#[tokio::test]
async fn a_large_input_may_go_unread() {
    let mut request = script("echo '{}'; exec <&-");
    request.input = value(&format!("{{\"a\": \"{}\"}}", "x".repeat(1 << 20)));
    assert_eq!(of(request.clone()).await, result("{}"));
    request.target = "cmd:cat".to_owned();
    request.params = None;
    request.answer_limit = 2 << 20;
    let expected = Outcome::Result(request.input.clone());
    assert_eq!(of(request).await, expected);
}

#[tokio::test]
async fn arguments_are_not_looked_at_by_a_shell() {
    let params = value(r#"{"args": ["-c", "printf '[\"%s\",\"%s\",\"%s\"]' \"$@\"", "sh", "$HOME; `id`", 7.5, true]}"#);
    assert_eq!(
        of(request("cmd:sh", Some(params))).await,
        result(r#"["$HOME; `id`","7.5","true"]"#)
    );
}

#[tokio::test]
async fn the_environment_is_what_is_said() {
    let folder = TempDir::new().unwrap();
    let connector = CommandConnector::new(CommandSettings::in_folder(folder.path().to_path_buf()));
    let names = r#"{"args": ["-c", "env | cut -d= -f1 | sort | tr '\n' ' ' >&2; exit 3"],
                    "env": {"N": 5, "HOME": null, "LANG": "C", "STARBRIDGE_TYPE": "forged"}}"#;
    let mut request = request("cmd:sh", Some(value(names)));
    request.rollback = true;
    request.keys.traceparent = Some("00-a-b-01".to_owned());
    let (error, names) = failure(connector.call(request.clone()).await);
    assert_eq!(error, "CMD.3");
    let names: Vec<&str> = names
        .split(' ')
        .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_", "TMPDIR"].contains(name))
        .collect();
    let expected = [
        "LANG",
        "N",
        "PATH",
        "STARBRIDGE_ATTEMPT",
        "STARBRIDGE_EXECUTION",
        "STARBRIDGE_FLOW",
        "STARBRIDGE_IDEMPOTENCY_KEY",
        "STARBRIDGE_STEP",
        "STARBRIDGE_STEP_KEY",
        "STARBRIDGE_TYPE",
        "TRACEPARENT",
    ];
    assert_eq!(names, expected);
    let text = r#"{"args": ["-c", "printf '[\"%s\",\"%s\",\"%s\",\"%s\",\"%s\",\"%s\",\"%s\"]' \"$N\" \"$STARBRIDGE_TYPE\" \"$STARBRIDGE_STEP\" \"$STARBRIDGE_ATTEMPT\" \"$STARBRIDGE_IDEMPOTENCY_KEY\" \"$STARBRIDGE_STEP_KEY\" \"$STARBRIDGE_EXECUTION\""], "env": {"N": 5, "STARBRIDGE_TYPE": "forged"}}"#;
    request.params = Some(value(text));
    let expected = r#"["5","rollback","count words","2","exec-1:7","exec-1:5","exec-1"]"#;
    assert_eq!(connector.call(request).await, result(expected));
}

#[tokio::test]
async fn programs_and_folders_are_relative_to_the_flow() {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    std::os::unix::fs::symlink("/", folder.path().join("out")).unwrap();
    std::os::unix::fs::symlink("/bin/cat", folder.path().join("copy")).unwrap();
    assert_eq!(
        run(folder.path(), request("cmd:./copy", None)).await,
        result("{\"a\":1}")
    );
    assert_eq!(
        run(folder.path(), request("cmd:/bin/cat", None)).await,
        result("{\"a\":1}")
    );
    let inner = value(r#"{"args": ["-c", "printf '\"%s\"' \"${PWD##*/}\""], "cwd": "inner/../inner"}"#);
    assert_eq!(
        run(folder.path(), request("cmd:sh", Some(inner))).await,
        result("\"inner\"")
    );
    for cwd in ["..", "/", "/tmp", "out", "out/tmp", "missing", "copy", "inner/../.."] {
        let params = Value::from(
            [("cwd".into(), cwd.into())]
                .into_iter()
                .collect::<starbridge_flow::value::Object>(),
        );
        let (error, cause) = failure(run(folder.path(), request("cmd:cat", Some(params))).await);
        assert_eq!(error, "FnF.NoSuchResource", "{cwd}");
        assert_eq!(cause, format!("`cwd` `{cwd}` is no folder inside the flow's own"));
    }
    let (error, _) = failure(run(&folder.path().join("gone"), request("cmd:cat", None)).await);
    assert_eq!(error, "FnF.NoSuchResource");
}

#[tokio::test]
async fn what_is_no_program_is_no_resource() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("text"), "no program").unwrap();
    for target in [
        "cmd:",
        "cmd:starbridge-has-no-such-program",
        "cmd:./missing",
        "cmd:./text",
        "cmd:./",
    ] {
        let (error, cause) = failure(run(folder.path(), request(target, None)).await);
        assert_eq!(error, "FnF.NoSuchResource", "{target}");
        assert!(!cause.contains("os error"), "{cause}");
    }
}

#[tokio::test]
async fn parameters_that_mean_nothing_run_nothing() {
    for (params, says) in [
        ("[]", "`serviceParams` must be an object, not an array"),
        (r#"{"args": "x"}"#, "`args` must be an array, not a string"),
        (
            r#"{"args": [[]]}"#,
            "an item of `args` must be text or a number, not an array",
        ),
        (r#"{"args": ["a\u0000b"]}"#, "an item of `args` has a NUL in it"),
        (r#"{"env": []}"#, "`env` must be an object, not an array"),
        (r#"{"env": {"A=B": "c"}}"#, "`A=B` is no name of a variable"),
        (r#"{"env": {"": "c"}}"#, "`` is no name of a variable"),
        (
            r#"{"env": {"A": {}}}"#,
            "the variable `A` must be text or a number, not an object",
        ),
        (r#"{"cwd": 5}"#, "`cwd` must be text, not a number"),
        (
            r#"{"arg": []}"#,
            "`serviceParams` has `arg`, but programs know only `args`, `env` and `cwd`",
        ),
    ] {
        let outcome = of(request("cmd:cat", Some(value(params)))).await;
        assert_eq!(failure(outcome), ("FnF.NoSuchResource".to_owned(), says.to_owned()));
    }
}

#[tokio::test]
async fn a_code_is_an_error_with_the_end_of_stderr() {
    assert_eq!(
        failure(shell("echo no such file >&2; exit 1").await),
        ("CMD.1".into(), "no such file".into())
    );
    assert_eq!(
        failure(shell("echo ignored; exit 127").await),
        ("CMD.127".into(), "`sh` ended with 127".into())
    );
    let (error, cause) =
        failure(shell("i=0; while [ $i -lt 9000 ]; do echo line $i >&2; i=$((i+1)); done; exit 2").await);
    assert_eq!(error, "CMD.2");
    assert_eq!(cause.chars().count(), 2_000);
    assert!(cause.ends_with("line 8998\nline 8999"), "{cause}");
}

#[tokio::test]
async fn a_program_may_name_its_error() {
    for text in [
        r#"echo progress; echo '{"error": "Disk.Full", "cause": "no space"}'; echo noise >&2; exit 1"#,
        r#"echo noise >&2; echo '{"error": "Disk.Full", "cause": "no space"}' >&2; exit 1"#,
        "printf '{\\n \"error\": \"Disk.Full\",\\n \"cause\": \"no space\"\\n}'; exit 9",
    ] {
        assert_eq!(
            failure(shell(text).await),
            ("Disk.Full".into(), "no space".into()),
            "{text}"
        );
    }
    assert_eq!(failure(shell(r#"echo '{"error": 5}'; exit 4"#).await).0, "CMD.4");
    assert_eq!(failure(shell(r#"echo '{"error": " "}'; exit 4"#).await).0, "CMD.4");
    for stream in ["", ">&2"] {
        let own = format!(r#"echo '{{"error": "FnF.NoSuchResource"}}' {stream}; exit 1"#);
        assert_eq!(failure(shell(&own).await).0, "Program.FnF.NoSuchResource", "{own}");
    }
    assert_eq!(
        shell(r#"echo '{"error": "E"}'"#).await,
        result(r#"{"error": "E"}"#),
        "who ends with 0 did well"
    );
}

#[tokio::test]
async fn a_killed_program_says_by_which_signal() {
    assert_eq!(
        failure(shell("kill -TERM $$").await),
        ("CMD.Signal15".into(), "`sh` was killed by signal 15".into())
    );
    assert_eq!(
        failure(shell("echo dying >&2; kill -KILL $$").await),
        ("CMD.Signal9".into(), "dying".into())
    );
}

#[tokio::test]
async fn what_is_no_json_is_an_invalid_local() {
    let (error, cause) = failure(shell("echo hello; echo world").await);
    assert_eq!(error, "FnF.InvalidLocal");
    assert_eq!(
        cause,
        "what `sh` printed is no JSON: expected value at line 1, column 1; begins with `hello world`"
    );
}

#[tokio::test]
async fn who_prints_too_much_is_killed() {
    for text in [
        "while :; do echo xxxxxxxxxxxxxxxxxxxxxxxx; done",
        "trap '' PIPE; while :; do echo xxxxxxxx; done 2>/dev/null",
        "printf '%2000s' x; exec sleep 1000",
    ] {
        let (error, cause) = failure(shell(text).await);
        assert_eq!(error, "FnF.PayloadTooLarge", "{text}");
        assert_eq!(cause, "`sh` printed more than the 1024 bytes it may");
    }
    assert!(
        matches!(shell("printf '\"%1022s\"' x").await, Outcome::Result(_)),
        "the limit itself is allowed"
    );
}

#[tokio::test]
async fn waiting_patterns_are_accepted_when_it_ends_well() {
    for pattern in [Pattern::WaitForCallback, Pattern::Sync] {
        let with = |text| {
            let mut request = script(text);
            request.pattern = pattern;
            request
        };
        let receipt = |text| Outcome::Accepted {
            receipt: Some(value(text)),
        };
        assert_eq!(of(with("echo '{\"ticket\": 5}'")).await, receipt("{\"ticket\": 5}"));
        assert_eq!(of(with("true")).await, receipt("{}"));
        assert_eq!(of(with("echo posted")).await, Outcome::Accepted { receipt: None });
        assert_eq!(failure(of(with("exit 5")).await).0, "CMD.5");
    }
}

/// A pipe that programs hold open while they live. It has ended when none of them is left.
fn lifeline(folder: &Path) -> pipe::Receiver {
    let path = folder.join("alive");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    pipe::OpenOptions::new().open_receiver(&path).unwrap()
}

async fn rest(alive: &mut pipe::Receiver) -> String {
    let mut rest = String::new();
    alive.read_to_string(&mut rest).await.unwrap();
    rest
}

#[tokio::test]
async fn a_call_given_up_leaves_nothing_behind() {
    let group = "exec 3> alive; sh -c 'trap \"\" TERM HUP INT; sleep 1000' & sleep 1000 & echo started >&3; wait";
    let sessions = "exec 3> alive; setsid sh -c 'setsid sleep 1000 & setsid sleep 1000' & echo started >&3; wait";
    let cases: [(&str, Setting); 3] = [(group, settings), (group, supervised), (sessions, supervised)];
    for (text, settings) in cases {
        let folder = TempDir::new().unwrap();
        let mut alive = lifeline(folder.path());
        tokio::select! {
            outcome = run_with(settings(folder.path()), script(text)) => panic!("it does not end by itself: {outcome:?}"),
            started = alive.read_u8() => assert_eq!(started.unwrap(), b's'),
        }
        assert_eq!(rest(&mut alive).await, "tarted\n", "{text}");
    }
}

#[tokio::test]
async fn what_a_program_leaves_running_ends_with_it() {
    let group = "exec 3> alive; sleep 1000 & echo '{\"b\": 1}'";
    let session = "exec 3> alive; setsid sleep 1000 & echo '{\"b\": 1}'";
    let daemon =
        "exec 3> alive; setsid sh -c 'sleep 1000 & sleep 1000 & exec setsid sleep 1000 &' & wait; echo '{\"b\": 1}'";
    let cases: [(&str, Setting); 4] = [
        (group, settings),
        (group, supervised),
        (session, supervised),
        (daemon, supervised),
    ];
    for (text, settings) in cases {
        let folder = TempDir::new().unwrap();
        let mut alive = lifeline(folder.path());
        let outcome = run_with(settings(folder.path()), script(text)).await;
        assert_eq!(outcome, result("{\"b\": 1}"), "{text}");
        assert_eq!(rest(&mut alive).await, "", "{text}");
    }
}

/// Without a supervisor a program can start a process that outlives it. The call does not wait for that process.
#[tokio::test]
async fn a_pipe_held_open_does_not_hold_the_call() {
    let folder = TempDir::new().unwrap();
    let text = "setsid sleep 60 & echo $! > pid; echo '{\"b\": 1}'";
    let outcome = run_with(settings(folder.path()), script(text)).await;
    assert_eq!(outcome, result("{\"b\": 1}"));
    let pid = std::fs::read_to_string(folder.path().join("pid")).unwrap();
    let still = Path::new("/proc").join(pid.trim());
    assert!(still.exists(), "it was not waited for");
    let ended = std::process::Command::new("kill").arg(pid.trim()).status().unwrap();
    assert!(ended.success());
}

#[tokio::test]
async fn a_program_that_runs_too_long_is_ended() {
    for settings in [settings, supervised] {
        let folder = TempDir::new().unwrap();
        let mut alive = lifeline(folder.path());
        let settings = CommandSettings {
            timeout: Some(std::time::Duration::from_millis(300)),
            ..settings(folder.path())
        };
        let (error, cause) = failure(run_with(settings, script("exec 3> alive; sleep 1000")).await);
        assert_eq!(error, "FnF.TaskTimeout");
        assert!(cause.starts_with("`sh` has not ended within 0.3 s"), "{cause}");
        assert!(cause.ends_with("or set `commands.timeout_seconds`"), "{cause}");
        assert_eq!(rest(&mut alive).await, "");
    }
}

/// A file in a folder, with a mode that lets even root run it or not.
fn file(path: &Path, text: &str, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn a_folder_can_be_a_fence() {
    let place = TempDir::new().unwrap();
    let (folder, link) = (place.path().join("programs"), place.path().join("link"));
    let says = "#!/bin/sh\nprintf '\"%s\"' \"${0##*/}\"\n";
    file(&folder.join("tool"), says, 0o755);
    file(&folder.join("below/tool2"), says, 0o755);
    file(&folder.join("text"), says, 0o644);
    file(&place.path().join("outside"), says, 0o755);
    let point = std::os::unix::fs::symlink::<&Path, std::path::PathBuf>;
    point(Path::new("tool"), folder.join("alias")).unwrap();
    point(Path::new("../outside"), folder.join("leaving")).unwrap();
    point(Path::new("/bin"), folder.join("bin")).unwrap();
    point(&folder, link.clone()).unwrap();
    let connector = CommandConnector::new(CommandSettings {
        programs: Programs::OfFolder,
        ..supervised(&link)
    });
    // The path that the folder had at the start is kept.
    std::fs::remove_file(&link).unwrap();
    point(Path::new("/bin"), link).unwrap();
    let call = async |target: &str| connector.call(request(target, None)).await;
    for (target, called) in [
        ("cmd:tool", "tool"),
        ("cmd:./tool", "tool"),
        ("cmd:below/tool2", "tool2"),
        ("cmd:alias", "tool"),
    ] {
        assert_eq!(call(target).await, result(&format!("\"{called}\"")), "{target}");
    }
    for target in [
        "cmd:/bin/cat",
        "cmd:../outside",
        "cmd:below/../tool",
        "cmd:../../../../../bin/cat",
        "cmd:leaving",
        "cmd:bin/cat",
        "cmd:cat",
        "cmd:sh",
        "cmd:text",
        "cmd:below",
        "cmd:.",
        "cmd:missing",
    ] {
        let (error, cause) = failure(call(target).await);
        assert_eq!(error, "FnF.NoSuchResource", "{target}");
        let rule = ": only executable files in `commands.folder` run, by their path in it";
        assert!(cause.ends_with(rule), "{target}: {cause}");
    }
}

#[tokio::test]
async fn flows_set_only_the_variables_that_are_listed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().canonicalize().unwrap();
    file(&folder.join("tool"), "#!/bin/sh\necho '{}'\n", 0o755);
    let connector = CommandConnector::new(CommandSettings {
        programs: Programs::OfFolder,
        variables: vec!["FLOW_*".to_owned(), "KEY".to_owned()],
        ..supervised(&folder)
    });
    for (variable, admitted) in [
        ("FLOW_A", true),
        ("KEY", true),
        ("KEYS", false),
        ("BASH_ENV", false),
        ("FLOW_%%", false),
    ] {
        let params = value(&format!(r#"{{"env": {{"{variable}": "x"}}}}"#));
        let outcome = connector.call(request("cmd:tool", Some(params))).await;
        assert_eq!(
            matches!(outcome, Outcome::Result(_)),
            admitted,
            "{variable}: {outcome:?}"
        );
    }
    let preload = request("cmd:tool", Some(value(r#"{"env": {"LD_PRELOAD": "/tmp/x.so"}}"#)));
    let (error, cause) = failure(connector.call(preload).await);
    assert_eq!(error, "FnF.NoSuchResource");
    assert_eq!(
        cause,
        "the variable `LD_PRELOAD` is not for a flow to set: list it in `commands.variables`"
    );
    let outside = request("cmd:tool", Some(value(r#"{"cwd": "bin"}"#)));
    assert_eq!(failure(connector.call(outside).await).0, "FnF.NoSuchResource");
}
