//! Single requests at the edges of what is allowed, and words that are shown to people.

use super::peer::{Peer, Reply};
use super::server::{CANARY, Ground, Setup, pause};
use super::wire::send;
use super::{Seen, Try};
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "requests/last-event",
        "`Last-Event-ID` at and beyond the largest number",
        "400; nothing panics",
        |ground| Box::pin(last_event(ground)),
    ),
    Try::quick("requests/labels", "a list with 1,500 labels", "400", |ground| {
        Box::pin(labels(ground))
    }),
    Try::quick("requests/cursor", "cursors nobody gave out", "400", |ground| {
        Box::pin(cursor(ground))
    }),
    Try::quick(
        "requests/unknown-member",
        "an unknown member of 5 MB",
        "4xx in less than 2 KB",
        |ground| Box::pin(unknown_member(ground)),
    ),
    Try::quick(
        "requests/old-token",
        "the token of a lease that ended, before and after another worker's report",
        "410 both times",
        |ground| Box::pin(old_token(ground)),
    ),
    Try::quick(
        "requests/control-characters",
        "a function's error with ESC and line ends, shown by `list`, `show` and the log",
        "no ESC, no line of its own",
        |ground| Box::pin(control_characters(ground)),
    ),
    Try::quick(
        "requests/bearer",
        "`Bearer secret://KEY` in a definition's header",
        "a diagnostic, or the secret is put in",
        |ground| Box::pin(bearer(ground)),
    ),
    Try::quick(
        "requests/forged-tokens",
        "300 callback tokens, each a digit away from a right one",
        "none taken; the right one is, once",
        |ground| Box::pin(forged(ground)),
    ),
    Try::quick(
        "requests/one-name",
        "40 starts of one name at once",
        "one 201, the others 200, one id",
        |ground| Box::pin(one_name(ground)),
    ),
    Try::quick(
        "requests/oversized",
        "100 MB; bodies with millions of levels",
        "4xx, memory grows by less than 150 MB",
        |ground| Box::pin(oversized(ground)),
    ),
];

async fn last_event(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server
        .flow("f", &json!([{"type": "wait", "name": "w", "duration": 60}]))
        .await?;
    let id = server.start("f", &json!({})).await?;
    let mut wrong = Vec::new();
    for number in ["18446744073709551615", "18446744073709551616", "-1", "x"] {
        let request = server.request("GET", &format!("/v1/executions/{id}/history"));
        let request = request
            .header("Accept", "text/event-stream")
            .header("Last-Event-ID", number);
        let status = send(server.port(), &request.patience(Duration::from_secs(3)))
            .await
            .status;
        wrong.extend((status != 400).then(|| format!("{number}: {status}")));
    }
    let panicked = server.log().contains("panicked");
    wrong.extend(panicked.then(|| "the log has a panic".to_owned()));
    Ok(Seen::unless(&wrong, "4 of 4 refused"))
}

async fn labels(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let labels: Vec<String> = (0..1_500).map(|number| format!("label=a{number}:b")).collect();
    let answer = server.get(&format!("/v1/executions?{}", labels.join("&"))).await;
    let told = answer.text.contains("x.db") || answer.text.contains("SQL");
    let text = format!("{} {}", answer.status, answer.text);
    Ok(Seen::new(answer.status == 400 && !told, text))
}

async fn cursor(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("f", &json!([{"type": "pass", "name": "a"}])).await?;
    server.start("f", &json!({})).await?;
    let mut wrong = Vec::new();
    for cursor in ["zzz", "1/../..", "%00", "99999999999999999999", "-1"] {
        let answer = server.get(&format!("/v1/executions?cursor={cursor}")).await;
        wrong.extend((answer.status != 400).then(|| format!("`{cursor}`: {}", answer.status)));
    }
    Ok(Seen::unless(&wrong, "6 of 6 refused"))
}

async fn unknown_member(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("f", &json!([{"type": "pass", "name": "a"}])).await?;
    let name = "m".repeat(5_000_000);
    let body = json!({"input": {}, name: 1}).to_string();
    let mut wrong = Vec::new();
    for (method, path) in [("POST", "/v1/flows/f/executions"), ("POST", "/v1/executions/batch")] {
        let request = server.request(method, path).body(body.clone());
        let answer = server.send(&request).await;
        if !answer.refused() || answer.text.len() >= 2_000 {
            wrong.push(format!("{path}: {} in {} KB", answer.status, answer.text.len() / 1_000));
        }
    }
    // As large as a definition may be.
    let definition = json!({"version": "v1", "type": "flow", "steps": [], "m".repeat(1_000_000): 1});
    let answer = server.put("/v1/flows/g", &definition).await;
    if !answer.refused() || answer.text.len() >= 4_000 {
        wrong.push(format!(
            "a definition: {} in {} KB",
            answer.status,
            answer.text.len() / 1_000
        ));
    }
    Ok(Seen::unless(&wrong, "3 refused in short"))
}

async fn old_token(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let task = json!({"type": "task", "name": "a", "resourceArn": "queue:j", "heartbeatSeconds": 1});
    server.flow("q", &json!([task])).await?;
    server.start("q", &json!({})).await?;
    let old = server.hold("j").await?;
    let new = server.hold("j").await?;
    let first = server.succeed(&old, &json!({})).await.status;
    let good = server.succeed(&new, &json!({})).await.status;
    let second = server.succeed(&old, &json!({})).await.status;
    let held = first == 410 && second == 410 && good == 204;
    Ok(Seen::new(held, format!("{first}, the other's {good}, then {second}")))
}

async fn control_characters(ground: Ground) -> Result<Seen, String> {
    let setup = Setup {
        log: "debug",
        ..Setup::default()
    };
    let server = ground.server_with(setup).await?;
    let peer = Peer::start(|_, _| {
        let error = "Bad\u{1b}[31m\nfake line: Succeeded\r\u{202e}";
        Reply::Json(500, json!({"error": error, "cause": error}).to_string())
    })
    .await?;
    server.calling("f", &peer.url("a")).await?;
    let id = server.start("f", &json!({})).await?;
    server.end_of(&id, Duration::from_secs(5)).await;
    let url = format!("http://127.0.0.1:{}", server.port());
    let mut wrong = Vec::new();
    let mut look = |what: &str, text: &str| {
        let own_line = text.lines().any(|line| line.trim_start().starts_with("fake line"));
        wrong.extend(own_line.then(|| format!("{what}: a line of its own")));
        wrong.extend(text.contains('\u{1b}').then(|| format!("{what}: ESC")));
    };
    for arguments in [
        vec!["list"],
        vec!["show", id.as_str()],
        vec!["show", id.as_str(), "--steps"],
    ] {
        let shown = Command::new(ground.program())
            .args(&arguments)
            .args(["--server", &url])
            .stdin(Stdio::null())
            .output()
            .map_err(|error| error.to_string())?;
        let text = format!(
            "{}{}",
            String::from_utf8_lossy(&shown.stdout),
            String::from_utf8_lossy(&shown.stderr)
        );
        look(arguments[0], &text);
    }
    look("the log", &server.log());
    Ok(Seen::unless(&wrong, "escaped everywhere"))
}

async fn bearer(ground: Ground) -> Result<Seen, String> {
    let setup = Setup {
        variables: vec![("STARBRIDGE_SECRET_K", CANARY.to_owned())],
        ..Setup::default()
    };
    let server = ground.server_with(setup).await?;
    let peer = Peer::echo().await?;
    let task = json!({
        "type": "task", "name": "a", "resourceArn": peer.url("a"),
        "serviceParams": {"headers": {"Authorization": "Bearer secret://K"}},
    });
    let put = server
        .put(
            "/v1/flows/f",
            &json!({"version": "v1", "type": "flow", "steps": [task]}),
        )
        .await;
    let told = put.text.contains("secret://");
    if put.refused() {
        return Ok(Seen::new(told, put.text));
    }
    put.well("the flow")?;
    server.outcome("f", &json!({})).await?;
    let arrived = peer.heard().contains(&format!("Bearer {CANARY}"));
    Ok(Seen::new(told || arrived, format!("told: {told}, put in: {arrived}")))
}

async fn forged(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server
        .flow("q", &json!([{"type": "task", "name": "a", "resourceArn": "queue:j"}]))
        .await?;
    server.start("q", &json!({})).await?;
    let task = server.hold("j").await?;
    let token = task["token"].as_str().unwrap_or_default().to_owned();
    let mut taken = 0;
    for number in 0..300 {
        let mut forged: Vec<char> = token.chars().collect();
        let at = number % forged.len();
        forged[at] = match forged[at] {
            '.' => 'a',
            digit => char::from_digit((digit.to_digit(16).unwrap_or(0) + 1) % 16, 16).unwrap_or('0'),
        };
        let forged: String = forged.into_iter().collect();
        let request = server
            .request("POST", &format!("/v1/callbacks/{forged}/succeed"))
            .body("{\"output\":{}}");
        taken += usize::from(!server.send(&request.by_stranger(number)).await.refused());
    }
    let right = server.succeed(&task, &json!({})).await.status;
    let again = server.succeed(&task, &json!({})).await.status;
    let held = taken == 0 && right == 204 && again == 409;
    Ok(Seen::new(
        held,
        format!("{taken} taken; the right one {right}, then {again}"),
    ))
}

async fn one_name(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server
        .flow("f", &json!([{"type": "wait", "name": "w", "duration": 30}]))
        .await?;
    let request = server
        .request("POST", "/v1/flows/f/executions")
        .body("{\"name\":\"one\",\"input\":{}}");
    let all: Vec<_> = (0..40)
        .map(|_| {
            let (request, port) = (request.clone(), server.port());
            tokio::spawn(async move { send(port, &request).await })
        })
        .collect();
    let (mut new, mut same, mut ids) = (0, 0, Vec::new());
    for one in all {
        let answer = one.await.map_err(|error| error.to_string())?;
        new += usize::from(answer.status == 201);
        same += usize::from(answer.status == 200);
        ids.push(answer.json()["id"].to_string());
    }
    ids.sort();
    ids.dedup();
    let text = format!("{new} × 201, {same} × 200, {} ids", ids.len());
    Ok(Seen::new(new == 1 && same == 39 && ids.len() == 1, text))
}

async fn oversized(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("f", &json!([{"type": "pass", "name": "a"}])).await?;
    let before = server.memory();
    server.forget_peak();
    let path = "/v1/flows/f/executions";
    let mut wrong = Vec::new();
    let bodies = [
        ("millions of levels", "[".repeat(3_000_000)),
        (
            "levels inside an input",
            format!("{{\"input\":{{\"a\":{}", "[".repeat(2_000_000)),
        ),
        ("quotes", "\"".repeat(1_000_000)),
    ];
    for (what, body) in bodies {
        let answer = server.send(&server.request("POST", path).body(body)).await;
        wrong.extend((!answer.refused()).then(|| format!("{what}: {}", answer.status)));
    }
    let whole = server.request("POST", path).body(vec![b' '; 100_000_000]);
    let answer = server.send(&whole).await;
    wrong.extend((answer.status != 413).then(|| format!("100 MB: {} {}", answer.status, answer.text)));
    pause(100).await;
    let grown = server.peak().saturating_sub(before);
    wrong.extend((grown >= 150).then(|| format!("{grown} MB more")));
    Ok(Seen::unless(&wrong, format!("4 refused, {grown} MB more")))
}
