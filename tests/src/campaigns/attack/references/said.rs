//! References that a definition says: they are followed where they may be, and what comes back of them is hidden.

use super::{CANARY, REFERENCE, Seen, setup, task, with_programs, with_secret, write_program};
use crate::campaigns::attack::peer::{Peer, Reply};
use crate::campaigns::attack::server::{Ground, Server, Setup, pause, shows_canary};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) async fn own_token(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    let peer = Peer::echo().await?;
    let mut waits = task("a", &peer.url("a"));
    waits["pattern"] = json!("waitForCallback");
    waits["inputMappings"] = json!([{"target": "token", "source": "$context.task.token"}]);
    server.flow("f", &json!([waits])).await?;
    let id = server.start("f", &json!({})).await?;
    for _ in 0..200 {
        if let Some(call) = peer.calls().first() {
            let sent: Value = serde_json::from_str(&call.body).unwrap_or_default();
            let answer = server.succeed(&sent, &json!({"done": true})).await;
            let ended = server.end_of(&id, Duration::from_secs(5)).await;
            let held = answer.status == 204 && ended["status"] == "Succeeded";
            return Ok(Seen::new(
                held,
                format!("the report: {}, then {}", answer.status, ended["status"]),
            ));
        }
        pause(20).await;
    }
    Err("the function was never called".to_owned())
}

pub(super) async fn echoed(ground: Ground) -> Result<Seen, String> {
    let server = with_secret(&ground).await?;
    let peer = Peer::start(|call, _| {
        let got = call.header("x-k");
        let around = format!("Basic {got}, said twice: {got}");
        Reply::Json(
            200,
            json!({"got": got, "around": around, format!("key {got}"): 1}).to_string(),
        )
    })
    .await?;
    let mut calls = task("a", &peer.url("a"));
    calls["serviceParams"] = json!({"headers": {"X-K": REFERENCE}});
    server.flow("f", &json!([calls, {"type": "pass", "name": "b"}])).await?;
    let id = server.start("f", &json!({})).await?;
    let ended = server.end_of(&id, Duration::from_secs(5)).await;
    if !peer.heard().contains(CANARY) {
        return Ok(Seen::new(
            false,
            format!("the definition's own secret did not arrive: {ended}"),
        ));
    }
    let mut wrong = server.leaks(&id).await;
    if ended["output"]["got"] != REFERENCE {
        wrong.push(format!("the output has {} in its place", ended["output"]["got"]));
    }
    Ok(Seen::unless(&wrong, "it has the reference in its place"))
}

pub(super) async fn echoed_in_error(ground: Ground) -> Result<Seen, String> {
    write_program(&ground, "fail.sh", "#!/bin/sh\necho \"no: $K\" >&2\nexit 3\n")?;
    let server = ground.server_with(with_programs(&ground, setup())).await?;
    let peer = Peer::start(|call, _| {
        let got = call.header("x-k");
        Reply::Json(
            500,
            json!({"error": format!("Bad.{got}"), "cause": format!("no {got}")}).to_string(),
        )
    })
    .await?;
    let mut calls = task("a", &peer.url("a"));
    calls["serviceParams"] = json!({"headers": {"X-K": REFERENCE}});
    server.flow("f", &json!([calls])).await?;
    let mut runs = task("a", "cmd:./fail.sh");
    runs["serviceParams"] = json!({"env": {"K": REFERENCE}});
    server.flow("c", &json!([runs])).await?;
    let mut wrong = Vec::new();
    for flow in ["f", "c"] {
        let id = server.start(flow, &json!({})).await?;
        let ended = server.end_of(&id, Duration::from_secs(5)).await;
        wrong.extend(server.leaks(&id).await);
        if ended["status"] != "Failed" {
            wrong.push(format!("it should have failed: {ended}"));
        }
    }
    Ok(Seen::unless(&wrong, "it stands nowhere"))
}

/// A flow that sends a secret in a header, as that flow, and whether it arrived. A definition may be refused at once.
async fn sends(server: &Server, peer: &Peer, flow: &str, secret: &str) -> Result<Result<(), String>, String> {
    let before = peer.calls().len();
    let mut calls = task("a", &peer.url(flow));
    calls["serviceParams"] = json!({"headers": {"X-K": format!("secret://{secret}")}});
    let definition = json!({"version": "v1", "type": "flow", "steps": [calls]});
    let put = server.put(&format!("/v1/flows/{flow}"), &definition).await;
    if put.refused() {
        return Ok(Err("FnF.NoSuchResource".to_owned()));
    }
    put.well("the flow")?;
    let ended = server.outcome(flow, &json!({})).await?;
    let error = ended["error"].as_str().unwrap_or("no error").to_owned();
    let arrived = peer.calls().len() > before;
    Ok(if arrived { Ok(()) } else { Err(error) })
}

/// The fault, if a flow sent something that it may not, or did not fail with the right name.
async fn must_not(server: &Server, peer: &Peer, flow: &str, secret: &str) -> Result<Option<String>, String> {
    Ok(match sends(server, peer, flow, secret).await? {
        Ok(()) => Some(format!("the flow `{flow}` sent the secret `{secret}`")),
        Err(error) if error == "FnF.NoSuchResource" => None,
        Err(error) => Some(format!("the flow `{flow}` failed with `{error}`")),
    })
}

async fn must(server: &Server, peer: &Peer, flow: &str, secret: &str) -> Result<Option<String>, String> {
    let sent = sends(server, peer, flow, secret).await?;
    Ok(sent
        .err()
        .map(|error| format!("the flow `{flow}` may send `{secret}`, but {error}")))
}

/// A server with a notification that is signed, and two secrets more.
fn signing(peer: &Peer, rest: &str) -> Setup {
    let sections = format!(
        "[[notifications]]\nname = \"ops\"\nto = \"http://127.0.0.1:{}/told\"\n\
         statuses = [\"RollbackFailed\"]\nsecret = \"secret://HOOK_KEY\"\n{rest}",
        peer.port()
    );
    let secrets = [
        "STARBRIDGE_SECRET_HOOK_KEY",
        "STARBRIDGE_SECRET_STRIPE_KEY",
        "STARBRIDGE_SECRET_OTHER",
    ];
    Setup {
        sections,
        variables: secrets.map(|name| (name, CANARY.to_owned())).to_vec(),
        ..Setup::default()
    }
}

pub(super) async fn configured(ground: Ground) -> Result<Seen, String> {
    let peer = Peer::echo().await?;
    let server = ground.server_with(signing(&peer, "")).await?;
    let mut wrong = Vec::new();
    wrong.extend(must_not(&server, &peer, "thief", "HOOK_KEY").await?);
    if shows_canary(&peer.heard()) {
        wrong.push("the secret left".to_owned());
    }
    wrong.extend(must(&server, &peer, "honest", "OTHER").await?);
    Ok(Seen::unless(
        &wrong,
        "refused by name; a secret of nobody else's arrives",
    ))
}

pub(super) async fn allowed_use(ground: Ground) -> Result<Seen, String> {
    let peer = Peer::echo().await?;
    let table = "[secrets.use]\n\"pay-*\" = [\"STRIPE_*\"]\n\"ops\" = [\"HOOK_KEY\"]\n";
    let server = ground.server_with(signing(&peer, table)).await?;
    let mut wrong = Vec::new();
    wrong.extend(must(&server, &peer, "pay-1", "STRIPE_KEY").await?);
    wrong.extend(must(&server, &peer, "ops", "HOOK_KEY").await?);
    wrong.extend(must_not(&server, &peer, "other", "STRIPE_KEY").await?);
    wrong.extend(must_not(&server, &peer, "pay-1", "OTHER").await?);
    wrong.extend(must_not(&server, &peer, "pay-1", "HOOK_KEY").await?);
    Ok(Seen::unless(&wrong, "2 may, 3 may not"))
}

pub(super) async fn misplaced(ground: Ground) -> Result<Seen, String> {
    write_program(&ground, "ok.sh", "#!/bin/sh\necho '{}'\n")?;
    let server = ground.server_with(with_programs(&ground, setup())).await?;
    let peer = Peer::echo().await?;
    let cases = [
        ("idempotency", peer.url("a"), json!({"idempotency": REFERENCE})),
        ("cwd", "cmd:./ok.sh".to_owned(), json!({"cwd": REFERENCE})),
    ];
    let mut wrong = Vec::new();
    for (member, resource, parameters) in cases {
        let mut calls = task("a", &resource);
        calls["serviceParams"] = parameters;
        let definition = json!({"version": "v1", "type": "flow", "steps": [calls]});
        let put = server.put(&format!("/v1/flows/{member}"), &definition).await;
        if put.refused() {
            let told = put.text.contains(REFERENCE) && !shows_canary(&put.text);
            wrong.extend((!told).then(|| format!("{member}: {}", put.text)));
            continue;
        }
        let id = server.start(member, &json!({})).await?;
        let ended = server.end_of(&id, Duration::from_secs(5)).await;
        wrong.extend(
            server
                .leaks(&id)
                .await
                .into_iter()
                .map(|leak| format!("{member}: {leak}")),
        );
        let cause = ended["cause"].as_str().unwrap_or_default();
        if ended["status"] != "Failed" || !cause.contains(REFERENCE) {
            wrong.push(format!("{member}: {} {cause}", ended["status"]));
        }
    }
    Ok(Seen::unless(&wrong, "both refused by their names"))
}
