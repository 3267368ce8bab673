//! Functions, workers and names that give answers which the server must not believe.

use super::peer::{Peer, Reply};
use super::probe::Probe;
use super::server::{Ground, Server, Setup, pause};
use super::{Seen, Try};
use serde_json::{Value, json};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "peers/retry-after",
        "503 with `Retry-After: 99999999999999999999`, a policy with maxIntervalSeconds 1",
        "a day at most: an answer's word counts above the policy's",
        |ground| Box::pin(retry_after(ground)),
    ),
    Try::quick(
        "peers/retry-after-unbounded",
        "`Retry-After` of years, dates and nonsense, a policy without a maximum",
        "due in the future, within 366 days; there after a restart",
        |ground| Box::pin(retry_after_unbounded(ground)),
    ),
    Try::quick(
        "peers/informational",
        "answers 100 Continue for ever, timeoutSeconds 60",
        "the call fails within 5 s with HTTP.ConnectionFailed; starts of others within 2 s; SIGTERM within drain + 3 s",
        |ground| Box::pin(informational(ground)),
    ),
    Try::quick(
        "peers/error-names",
        "a function fails with names of the engine's and with none",
        "they get a prefix; none is empty",
        |ground| Box::pin(error_names(ground)),
    ),
    Try::quick(
        "peers/reported-names",
        "a worker and a callback report them",
        "refused, or a prefix",
        |ground| Box::pin(reported_names(ground)),
    ),
    Try::quick(
        "peers/inner-names",
        "a flow calls names that lead inside",
        "refused; no address in the cause",
        |ground| Box::pin(inner_names(ground)),
    ),
    Try::quick(
        "peers/notified",
        "a notification's target is on a private address",
        "refused at the start, or said in the log at `info`",
        |ground| Box::pin(notified(ground)),
    ),
];

async fn call(server: &Server, url: &str, rest: &Value) -> Result<String, String> {
    let mut task = json!({"type": "task", "name": "a", "resourceArn": url});
    for (name, value) in rest.as_object().into_iter().flatten() {
        task[name.as_str()] = value.clone();
    }
    server.flow("f", &json!([task])).await?;
    server.start("f", &json!({})).await
}

async fn retry_after(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let peer = Peer::start(|_, before| match before {
        0 => Reply::With(503, "Retry-After: 99999999999999999999", "{}".to_owned()),
        _ => Reply::Json(200, "{}".to_owned()),
    })
    .await?;
    let policy = json!({"errors": ["FnF.ALL"], "intervalSeconds": 1, "maxIntervalSeconds": 1, "maxAttempts": 2});
    let id = call(&server, &peer.url("a"), &json!({"retry": [policy]})).await?;
    let mut retry = Vec::new();
    for _ in 0..80 {
        retry = server.events(&id, "RetryScheduled").await;
        if !retry.is_empty() {
            break;
        }
        pause(100).await;
    }
    let detail = retry.first().map(|event| event["detail"].clone()).unwrap_or_default();
    let delay = detail["delayMs"].as_u64().unwrap_or(u64::MAX);
    Ok(Seen::new(delay <= 24 * 60 * 60 * 1000, detail.to_string()))
}

/// The year of an RFC 3339 time.
fn year(time: &str) -> u64 {
    time.split('-').next().and_then(|year| year.parse().ok()).unwrap_or(0)
}

/// This year, near enough.
fn this_year() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    1970 + since.as_secs() / 31_556_952
}

async fn retry_after_unbounded(ground: Ground) -> Result<Seen, String> {
    const LINES: [&str; 5] = [
        "Retry-After: 40000000",
        "Retry-After: 99999999999999999999",
        "Retry-After: 18446744073709551615",
        "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT",
        "Retry-After: -1",
    ];
    let mut server = ground.server().await?;
    let peer = Peer::start(|call, _| {
        let which = call.path.trim_start_matches('/').parse().unwrap_or(0);
        Reply::With(503, LINES.get(which).copied().unwrap_or_default(), "{}".to_owned())
    })
    .await?;
    let mut wrong = Vec::new();
    let mut started = Vec::new();
    let policy = json!({"errors": ["FnF.ALL"], "intervalSeconds": 60, "maxAttempts": 2});
    for (which, line) in LINES.iter().enumerate() {
        let id = call(&server, &peer.url(&which.to_string()), &json!({"retry": [policy]})).await?;
        let mut due = String::new();
        for _ in 0..100 {
            let events = server.events(&id, "RetryScheduled").await;
            if let Some(event) = events.first() {
                due = event["detail"]["due"].as_str().unwrap_or_default().to_owned();
                break;
            }
            pause(20).await;
        }
        if !(this_year()..=this_year() + 2).contains(&year(&due)) {
            wrong.push(format!("{line}: due `{due}`"));
        }
        started.push(id);
    }
    server.kill();
    server.again().await?;
    for id in started {
        let shown = server.get(&format!("/v1/executions/{id}")).await.json();
        if shown["status"] != "Running" {
            wrong.push(format!("after a restart it is {}", shown["status"]));
        }
    }
    Ok(Seen::unless(&wrong, "all due within the bound"))
}

async fn informational(ground: Ground) -> Result<Seen, String> {
    let mut server = ground.server().await?;
    server.flow("other", &json!([{"type": "pass", "name": "a"}])).await?;
    let peer = Peer::start(|_, _| Reply::Informs).await?;
    let before = server.memory();
    let begun = Instant::now();
    let id = call(&server, &peer.url("a"), &json!({"timeoutSeconds": 60})).await?;
    let probe = Probe::starts(&server, "other");
    let ended = server.end_of(&id, Duration::from_secs(10)).await;
    let took = begun.elapsed();
    let mut wrong: Vec<String> = probe.finish().await.wrong(Duration::from_secs(2)).into_iter().collect();
    if ended["error"] != "HTTP.ConnectionFailed" || took > Duration::from_secs(5) {
        let (status, error) = (&ended["status"], &ended["error"]);
        wrong.push(format!("{status} with {error} after {} ms", took.as_millis()));
    }
    let grown = server.peak().saturating_sub(before);
    wrong.extend((grown > 100).then(|| format!("{grown} MB more")));
    call(&server, &peer.url("b"), &json!({})).await?;
    pause(200).await;
    server.signal("TERM")?;
    if server
        .wait(Duration::from_secs(super::server::DRAIN_SECONDS + 3))
        .await?
        .is_none()
    {
        wrong.push("SIGTERM took longer".to_owned());
    }
    Ok(Seen::unless(
        &wrong,
        format!("{} after {} ms", ended["error"], took.as_millis()),
    ))
}

const ENGINES: [&str; 5] = [
    "FnF.LimitExceeded",
    "FnF.Stopped",
    "FnF.TaskTimeout",
    "fnf.ExecutionAlreadyExists",
    "",
];

/// The fault in a name that came from outside, if there is one.
fn believed(sent: &str, error: &str) -> Option<String> {
    let taken = error == sent || error.is_empty();
    taken.then(|| format!("`{sent}` became `{error}`"))
}

async fn error_names(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let peer = Peer::start(|call, _| {
        let which = call.path.trim_start_matches('/').parse().unwrap_or(0);
        let error = ENGINES.get(which).copied().unwrap_or_default();
        Reply::Json(500, json!({"error": error, "cause": "mine"}).to_string())
    })
    .await?;
    let mut wrong = Vec::new();
    let mut became = Vec::new();
    for (which, sent) in ENGINES.iter().enumerate().filter(|(_, sent)| !sent.starts_with("fnf.")) {
        let id = call(&server, &peer.url(&which.to_string()), &json!({})).await?;
        let ended = server.end_of(&id, Duration::from_secs(5)).await;
        let error = ended["error"].as_str().unwrap_or_default().to_owned();
        wrong.extend(believed(sent, &error));
        for event in server.events(&id, "TaskFailed").await {
            let error = event["detail"]["error"].as_str().unwrap_or_default();
            wrong.extend(believed(sent, error).map(|wrong| format!("in the history {wrong}")));
        }
        became.push(error);
    }
    Ok(Seen::unless(&wrong, became.join(", ")))
}

async fn reported_names(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let mut wrong = Vec::new();
    let mut became = Vec::new();
    for sent in ["FnF.LimitExceeded", "FnF.Stopped", ""] {
        let id = call(&server, "queue:j", &json!({})).await?;
        let task = server.hold("j").await?;
        let token = task["token"].as_str().unwrap_or_default();
        let body = json!({"error": sent, "cause": "mine"});
        let answer = server.post(&format!("/v1/callbacks/{token}/fail"), &body).await;
        if answer.refused() {
            became.push(answer.status.to_string());
            continue;
        }
        let ended = server.end_of(&id, Duration::from_secs(5)).await;
        let error = ended["error"].as_str().unwrap_or_default().to_owned();
        wrong.extend(believed(sent, &error));
        became.push(error);
    }
    Ok(Seen::unless(&wrong, became.join(", ")))
}

async fn inner_names(ground: Ground) -> Result<Seen, String> {
    // Without tokens a server on the loopback lets flows call the loopback.
    let setup = Setup {
        private: false,
        tokens: true,
        ..Setup::default()
    };
    let server = ground.server_with(setup).await?;
    let peer = Peer::echo().await?;
    let mut wrong = Vec::new();
    let mut causes = Vec::new();
    for host in ["localhost", "localhost.", "LOCALHOST"] {
        let url = format!("http://{host}:{}/a", peer.port());
        let id = call(&server, &url, &json!({})).await?;
        let ended = server.end_of(&id, Duration::from_secs(8)).await;
        let history = server.history(&id).await.to_string();
        if ended["status"] != "Failed" {
            wrong.push(format!("{host}: {}", ended["status"]));
        }
        if history.contains("127.0.0.1") || history.contains("::1") {
            wrong.push(format!("{host}: {}", ended["cause"]));
        }
        causes.push(ended["cause"].as_str().unwrap_or_default().to_owned());
    }
    if !peer.calls().is_empty() {
        wrong.push("a call went inside".to_owned());
    }
    Ok(Seen::unless(&wrong, causes.first().cloned().unwrap_or_default()))
}

async fn notified(ground: Ground) -> Result<Seen, String> {
    let setup = Setup {
        private: false,
        sections: "[[notifications]]\nname = \"ops\"\nto = \"http://10.255.255.1:9/told\"\n".to_owned(),
        ..Setup::default()
    };
    let mut server = ground.begin(&setup, "x")?;
    if let Err(refused) = server.until_ready().await {
        return Ok(Seen::new(
            refused.contains("10.255.255.1") || refused.contains("ops"),
            refused,
        ));
    }
    server.flow("f", &json!([{"type": "pass", "name": "a"}])).await?;
    server.start("f", &json!({})).await?;
    for _ in 0..60 {
        let log = server.log();
        let line = log
            .lines()
            .find(|line| line.contains("ops") || line.contains("10.255.255.1"));
        if let Some(line) = line {
            return Ok(Seen::new(true, line));
        }
        pause(100).await;
    }
    Ok(Seen::new(false, "nothing is said"))
}
