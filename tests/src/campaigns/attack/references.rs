//! Data that looks like a reference: to a secret, or to a task's token. Only what a definition says is one.

mod said;

use super::peer::{Peer, Reply};
use super::programs::{programs_of, write_program};
use super::server::{CANARY, Ground, Server, Setup, shows_canary};
use super::{Seen, Try};
use serde_json::{Value, json};
use std::time::Duration;

const REFERENCE: &str = "secret://K";
const STAYS: &str = "what leaves has the string as it is";

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "references/input-to-worker",
        "an input names a secret, a worker holds the task",
        STAYS,
        |ground| Box::pin(input_to_worker(ground)),
    ),
    Try::quick(
        "references/input-to-function",
        "the same through body, header and query of a call",
        STAYS,
        |ground| Box::pin(input_to_function(ground)),
    ),
    Try::quick(
        "references/report",
        "a worker reports it, and holds the next step",
        STAYS,
        |ground| Box::pin(report(ground)),
    ),
    Try::quick(
        "references/answer",
        "a function answers it, and the next step sends it on",
        STAYS,
        |ground| Box::pin(answer(ground)),
    ),
    Try::quick(
        "references/item",
        "an item of a foreach, and a label, name it",
        STAYS,
        |ground| Box::pin(item(ground)),
    ),
    Try::quick(
        "references/program",
        "an input names it, a program gets it",
        STAYS,
        |ground| Box::pin(program(ground)),
    ),
    Try::quick(
        "references/child",
        "a child's input and its call name it",
        STAYS,
        |ground| Box::pin(child(ground)),
    ),
    Try::quick("references/key", "a key of an object names it", STAYS, |ground| {
        Box::pin(key(ground))
    }),
    Try::quick(
        "references/token-between-queues",
        "the worker of one queue reports the reference of another branch's token",
        "no signed token; the other task is not reported",
        |ground| Box::pin(token_between_queues(ground)),
    ),
    Try::quick(
        "references/token-by-function",
        "a function answers the reference of another branch's token",
        "no signed token leaves",
        |ground| Box::pin(token_by_function(ground)),
    ),
    Try::quick(
        "references/token-in-input",
        "an input has the reference of the execution's own token",
        "no signed token leaves",
        |ground| Box::pin(token_in_input(ground)),
    ),
    Try::quick(
        "references/own-token",
        "`$context.task.token` of a waitForCallback",
        "arrives signed; a report with it is taken",
        |ground| Box::pin(said::own_token(ground)),
    ),
    Try::quick(
        "references/echoed",
        "a function gives the definition's secret back in its result",
        "arrives there; no byte of it in answers, log (debug), store",
        |ground| Box::pin(said::echoed(ground)),
    ),
    Try::quick(
        "references/echoed-in-error",
        "the same in error and cause, from functions and programs",
        "no byte of it in answers, log (debug), store",
        |ground| Box::pin(said::echoed_in_error(ground)),
    ),
    Try::quick(
        "references/configured",
        "a flow names the secret that signs notifications",
        "FnF.NoSuchResource, nothing sent",
        |ground| Box::pin(said::configured(ground)),
    ),
    Try::quick(
        "references/use",
        "`[secrets.use]` lets `pay-*` have `STRIPE_*`",
        "those do, others and other secrets FnF.NoSuchResource, nothing sent",
        |ground| Box::pin(said::allowed_use(ground)),
    ),
    Try::quick(
        "references/misplaced",
        "`idempotency` and `cwd` are a secret",
        "refused; the message names the reference, not the value",
        |ground| Box::pin(said::misplaced(ground)),
    ),
];

/// A server that has the secret.
async fn with_secret(ground: &Ground) -> Result<Server, String> {
    ground.server_with(setup()).await
}

fn setup() -> Setup {
    Setup {
        variables: vec![("STARBRIDGE_SECRET_K", CANARY.to_owned())],
        log: "debug",
        ..Setup::default()
    }
}

fn task(name: &str, resource: &str) -> Value {
    json!({"type": "task", "name": name, "resourceArn": resource})
}

/// The data that reached somebody outside: it must have the string, and not the secret.
fn judge(reached: &str) -> Seen {
    if shows_canary(reached) {
        return Seen::new(false, "the secret left");
    }
    match reached.contains(REFERENCE) {
        true => Seen::new(true, "the string"),
        false => Seen::new(false, format!("neither secret nor string: {reached}")),
    }
}

async fn input_to_worker(ground: Ground) -> Result<Seen, String> {
    let server = with_secret(&ground).await?;
    server.flow("q", &json!([task("a", "queue:j")])).await?;
    server
        .start(
            "q",
            &json!({"x": REFERENCE, "deep": [{"y": REFERENCE}], "text": "Bearer secret://K"}),
        )
        .await?;
    Ok(judge(&server.hold("j").await?["input"].to_string()))
}

async fn input_to_function(ground: Ground) -> Result<Seen, String> {
    let server = with_secret(&ground).await?;
    let peer = Peer::echo().await?;
    let mut through = task("a", &peer.url("a"));
    through["serviceParams"] = json!({
        "headers": {"X-M": "$.m"}, "query": {"m": "$.m"}, "body": {"m": "$.m", "all": "$"},
    });
    server.flow("f", &json!([through, task("b", &peer.url("b"))])).await?;
    let ended = server.outcome("f", &json!({"m": REFERENCE})).await?;
    if peer.calls().len() != 2 {
        return Err(format!("{} calls of 2 came: {ended}", peer.calls().len()));
    }
    Ok(judge(&format!("{}{ended}", peer.heard())))
}

async fn report(ground: Ground) -> Result<Seen, String> {
    let server = with_secret(&ground).await?;
    server
        .flow("q", &json!([task("a", "queue:one"), task("b", "queue:two")]))
        .await?;
    server.start("q", &json!({})).await?;
    let first = server.hold("one").await?;
    server
        .succeed(&first, &json!({"x": REFERENCE}))
        .await
        .well("the report")?;
    Ok(judge(&server.hold("two").await?["input"].to_string()))
}

async fn answer(ground: Ground) -> Result<Seen, String> {
    let server = with_secret(&ground).await?;
    let stranger = Peer::start(|_, _| Reply::Json(200, json!({"x": REFERENCE}).to_string())).await?;
    let next = Peer::echo().await?;
    let mut relays = task("c", &next.url("c"));
    relays["serviceParams"] = json!({"headers": {"Authorization": "$.x"}, "body": {"x": "$.x"}});
    server
        .flow(
            "f",
            &json!([task("a", &stranger.url("a")), task("b", &next.url("b")), relays]),
        )
        .await?;
    server.outcome("f", &json!({})).await?;
    Ok(judge(&next.heard()))
}

async fn item(ground: Ground) -> Result<Seen, String> {
    let server = with_secret(&ground).await?;
    let peer = Peer::echo().await?;
    let mut each = task("a", &peer.url("a"));
    each["inputMappings"] = json!([
        {"target": "item", "source": "$input.item"},
        {"target": "label", "source": "$context.execution.labels.of"},
        {"target": "name", "source": "$context.execution.name"},
        {"target": "made", "template": "{$input.scheme}://K"},
    ]);
    let steps = json!([{
        "type": "foreach", "name": "each", "steps": [each],
        "iterationMapping": {"collection": "$.items", "item": "item"},
    }]);
    server.flow("f", &steps).await?;
    let start = json!({"labels": {"of": REFERENCE}, "input": {"items": [REFERENCE], "scheme": "secret"}});
    let started = server.post("/v1/flows/f/executions", &start).await;
    started.well("the start")?;
    let id = started.json()["id"].as_str().unwrap_or_default().to_owned();
    server.end_of(&id, Duration::from_secs(5)).await;
    Ok(judge(&peer.heard()))
}

/// The server may run what is in that folder, and a flow may set a variable of it.
fn with_programs(ground: &Ground, setup: Setup) -> Setup {
    let sections = format!("{}\n{}variables = [\"X\"]\n", setup.sections, programs_of(ground));
    Setup { sections, ..setup }
}

async fn program(ground: Ground) -> Result<Seen, String> {
    let all = "#!/bin/sh\ncd \"$(dirname \"$0\")\"\n{ cat; env; echo \"$@\"; } > got\necho '{}'\n";
    write_program(&ground, "all.sh", all)?;
    let server = ground.server_with(with_programs(&ground, setup())).await?;
    let mut runs = task("a", "cmd:./all.sh");
    runs["serviceParams"] = json!({"args": ["$.x", "x"], "env": {"X": "$.x"}});
    server.flow("c", &json!([runs])).await?;
    let ended = server.outcome("c", &json!({"x": REFERENCE})).await?;
    let got = std::fs::read_to_string(ground.path("programs/got"));
    Ok(judge(&got.map_err(|error| {
        format!("the program did not run: {error}: {ended}")
    })?))
}

async fn child(ground: Ground) -> Result<Seen, String> {
    let server = with_secret(&ground).await?;
    let peer = Peer::echo().await?;
    let mut calls = task("call", &peer.url("child"));
    calls["serviceParams"] = json!({"headers": {"X-M": "$.x"}, "body": "$"});
    server.flow("leaf", &json!([calls])).await?;
    let mut starts = task("a", "flow:leaf");
    starts["pattern"] = json!("sync");
    starts["serviceParams"] = json!({"Input": {"x": "$.x"}});
    server.flow("root", &json!([starts])).await?;
    let ended = server.outcome("root", &json!({"x": REFERENCE})).await?;
    Ok(judge(&format!("{}{ended}", peer.heard())))
}

async fn key(ground: Ground) -> Result<Seen, String> {
    let server = with_secret(&ground).await?;
    let peer = Peer::echo().await?;
    server.flow("f", &json!([task("a", &peer.url("a"))])).await?;
    server.outcome("f", &json!({REFERENCE: 1})).await?;
    Ok(judge(&peer.heard()))
}

/// The number of the event that scheduled the call of a step.
async fn scheduled(server: &Server, execution: &str, step: &str) -> Result<u64, String> {
    for _ in 0..100 {
        let events = server.events(execution, "TaskScheduled").await;
        let of_step = events.iter().find(|event| event["step"] == step);
        if let Some(number) = of_step.and_then(|event| event["id"].as_u64()) {
            return Ok(number);
        }
        super::server::pause(20).await;
    }
    Err(format!("the step `{step}` was never scheduled"))
}

/// Whether something is a signed token, or at least no longer the reference.
fn signed(reached: &Value, reference: &str) -> bool {
    reached.as_str() != Some(reference)
}

async fn token_between_queues(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let steps = json!([{"type": "parallel", "name": "both", "branches": [
        {"name": "humans", "steps": [task("approve", "queue:humans")]},
        {"name": "jobs", "steps": [task("first", "queue:jobs"), task("second", "queue:jobs")]},
    ]}]);
    server.flow("p", &steps).await?;
    let id = server.start("p", &json!({})).await?;
    let number = scheduled(&server, &id, "approve").await?;
    // Somebody has the task in hand: a signed token would be good.
    server.hold("humans").await?;
    let reference = format!("task-token:{id}/{number}");
    let first = server.hold("jobs").await?;
    server
        .succeed(&first, &json!({"x": reference}))
        .await
        .well("the report")?;
    let second = server.hold("jobs").await?;
    let reached = &second["input"]["x"];
    let stolen = reached.as_str().unwrap_or_default();
    let used = server
        .succeed(&json!({"token": stolen.replace('/', "%2F")}), &json!({}))
        .await;
    let text = format!("{reached}; a report with it: {}", used.status);
    Ok(Seen::new(!signed(reached, &reference) && used.refused(), text))
}

async fn token_by_function(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    // It knows the execution by its header, and tries all numbers there may be.
    let stranger = Peer::start(|call, _| {
        let execution = call.header("starbridge-execution");
        let all: Vec<String> = (1..30)
            .map(|number| format!("task-token:{execution}/{number}"))
            .collect();
        Reply::Json(200, json!({"all": all}).to_string())
    })
    .await?;
    let next = Peer::echo().await?;
    let mut approval = task("approve", &next.url("approval"));
    approval["pattern"] = json!("waitForCallback");
    let steps = json!([{"type": "parallel", "name": "both", "branches": [
        {"name": "humans", "steps": [approval]},
        {"name": "others", "steps": [
            {"type": "wait", "name": "w", "duration": 0.3}, task("ask", &stranger.url("a")), task("relay", &next.url("relay")),
        ]},
    ]}]);
    server.flow("p", &steps).await?;
    let id = server.start("p", &json!({})).await?;
    scheduled(&server, &id, "relay").await?;
    left_as_they_were(&next, "/relay").await
}

/// Whether the 29 references that were data came as they were.
async fn left_as_they_were(peer: &Peer, path: &str) -> Result<Seen, String> {
    for _ in 0..100 {
        if let Some(call) = peer.calls().iter().find(|call| call.path == path) {
            let whole = call.body.matches("task-token:").count();
            let text = format!("{whole} of 29 references left as they were");
            return Ok(Seen::new(whole == 29, text));
        }
        super::server::pause(20).await;
    }
    Err("the step was never called".to_owned())
}

async fn token_in_input(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let peer = Peer::echo().await?;
    let mut waits = task("a", &peer.url("a"));
    waits["pattern"] = json!("waitForCallback");
    // The start is held back until the reference to its own token can be told: by a worker's report.
    server.flow("f", &json!([task("tell", "queue:tell"), waits])).await?;
    let id = server.start("f", &json!({})).await?;
    let tells = server.hold("tell").await?;
    let all: Vec<String> = (1..30).map(|number| format!("task-token:{id}/{number}")).collect();
    server.succeed(&tells, &json!({"all": all})).await.well("the report")?;
    scheduled(&server, &id, "a").await?;
    left_as_they_were(&peer, "/a").await
}
