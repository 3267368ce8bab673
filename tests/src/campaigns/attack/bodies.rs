//! Bodies: many that never end, and one that is small on the wire and large in memory.

use super::probe::{Met, Probe};
use super::server::{Ground, Server, Setup, pause};
use super::wire::{Request, connect, send};
use super::{Seen, Try};
use serde_json::json;
use std::time::Duration;
use tokio::io::AsyncWriteExt;

const LARGE: &str = "peak ≤ 8 × text + 64 MB, or 413, or 503; others within 2 s";

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "bodies/unfinished",
        "200 strangers leave 1.2 MB each to a callback unfinished",
        "memory grows by less than 64 MB",
        |ground| Box::pin(unfinished(ground)),
    ),
    Try::quick(
        "bodies/claimed",
        "200 with a token claim 60 MB each and send 100 KB",
        "memory grows by less than 100 MB",
        |ground| Box::pin(claimed(ground)),
    ),
    Try::quick(
        "bodies/replaced-members",
        "three strangers send a callback of 1.2 MB whose deepest member is replaced again and again",
        "they are answered; others within 2 s",
        |ground| Box::pin(replaced(ground)),
    ),
    Try::quick(
        "bodies/forms",
        "strangers send the open forms three times 20 MB of `a&`",
        "memory grows by less than 64 MB; others within 2 s",
        |ground| Box::pin(forms(ground)),
    ),
    Try::slow(
        "bodies/empty-keys",
        "a start with 20 MB of `{\"\":0},`",
        LARGE,
        |ground| Box::pin(large(ground, "{\"\":0}")),
    ),
    Try::slow("bodies/empty-lists", "a start with 20 MB of `[[],`", LARGE, |ground| {
        Box::pin(large(ground, "[]"))
    }),
    Try::slow("bodies/zeros", "a start with 20 MB of `0,`", LARGE, |ground| {
        Box::pin(large(ground, "0"))
    }),
    Try::slow(
        "bodies/given-back",
        "20 starts of 5 MB at once, all refused by their flow's schema",
        "2 s later memory is within 150 MB of before",
        |ground| Box::pin(given_back(ground)),
    ),
];

fn with_tokens() -> Setup {
    Setup {
        tokens: true,
        ..Setup::default()
    }
}

async fn unfinished(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(with_tokens()).await?;
    let before = server.memory();
    server.forget_peak();
    let request = server
        .request("POST", "/v1/callbacks/x/succeed")
        .without_header("Authorization");
    let (head, body) = (request.head(1_300_000), vec![b' '; 1_200_000]);
    let strangers = (0..200).map(|_| {
        let (head, body, port) = (head.clone(), body.clone(), server.port());
        tokio::spawn(async move {
            let mut stream = connect(port).await.ok()?;
            let leaves = async {
                // It may be refused before it is done.
                drop(stream.write_all(&head).await);
                drop(stream.write_all(&body).await);
            };
            // Data that is never read can't be written.
            drop(tokio::time::timeout(Duration::from_secs(5), leaves).await);
            Some(stream)
        })
    });
    let strangers: Vec<_> = strangers.collect();
    let mut streams = Vec::new();
    for stranger in strangers {
        streams.extend(stranger.await.ok().flatten());
    }
    pause(300).await;
    let grown = server.peak().saturating_sub(before);
    drop(streams);
    Ok(Seen::new(grown < 64, format!("{grown} MB more for 240 MB")))
}

async fn claimed(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(with_tokens()).await?;
    let before = server.memory();
    server.forget_peak();
    let request = server.request("POST", "/v1/flows/f/executions");
    let head = request.head(60_000_000);
    let mut streams = Vec::new();
    for _ in 0..200 {
        let mut stream = connect(server.port()).await.map_err(|error| error.to_string())?;
        // It may be refused at once.
        drop(stream.write_all(&head).await);
        drop(tokio::time::timeout(Duration::from_secs(1), stream.write_all(&[b' '; 100_000])).await);
        streams.push(stream);
    }
    pause(300).await;
    let grown = server.peak().saturating_sub(before);
    Ok(Seen::new(grown < 100, format!("{grown} MB more for 20 MB")))
}

async fn replaced(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(with_tokens()).await?;
    let names: String = (0..60_000).map(|n| format!("\"{n:x}\":0,")).collect();
    let body = format!(
        "{{\"output\":{{\"a\":[],{names}{}\"z\":0}}}}",
        "\"a\":1,\"a\":[],".repeat(40_000)
    );
    let request = server.request("POST", "/v1/callbacks/x/succeed");
    let request = request.without_header("Authorization").body(body);
    let (statuses, met) = three(&server, &request).await;
    let mut wrong: Vec<String> = met.wrong(Duration::from_secs(2)).into_iter().collect();
    if !statuses.iter().all(|status| matches!(status, 400..500 | 503)) {
        wrong.push(format!("answered {statuses:?}"));
    }
    let text = format!("{statuses:?}, others {} ms", met.longest.as_millis());
    Ok(Seen::unless(&wrong, text))
}

async fn forms(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(with_tokens()).await?;
    let before = server.memory();
    server.forget_peak();
    let (mut wrong, mut late) = (Vec::new(), 0);
    for path in ["/settings", "/signout", "/signin"] {
        let request = server.request("POST", path).without_header("Authorization");
        let request = request.header("Content-Type", "application/x-www-form-urlencoded");
        let (statuses, met) = three(&server, &request.body("a&".repeat(10_000_000))).await;
        wrong.extend(met.wrong(Duration::from_secs(2)));
        late = late.max(met.longest.as_millis());
        // A client that is refused before it has sent all may see the connection closed.
        if !statuses.iter().all(|status| matches!(status, 0 | 400..500 | 503)) {
            wrong.push(format!("{path} answered {statuses:?}"));
        }
    }
    let grown = server.peak().saturating_sub(before);
    if grown >= 64 {
        wrong.push(format!("{grown} MB more"));
    }
    Ok(Seen::unless(&wrong, format!("{grown} MB more, others {late} ms")))
}

/// Sends the same request three times at once: answers the results, and how other clients fared
/// meanwhile.
async fn three(server: &Server, request: &Request) -> (Vec<u16>, Met) {
    let probe = Probe::health(server);
    let sent = (0..3).map(|_| {
        let (request, port) = (request.clone().patience(Duration::from_secs(15)), server.port());
        tokio::spawn(async move { send(port, &request).await.status })
    });
    let sent: Vec<_> = sent.collect();
    let mut statuses = Vec::new();
    for one in sent {
        statuses.push(one.await.unwrap_or(0));
    }
    (statuses, probe.finish().await)
}

async fn large(ground: Ground, item: &str) -> Result<Seen, String> {
    const TEXT: usize = 20_000_000;
    let server = ground.server_with(with_tokens()).await?;
    server.flow("f", &json!([{"type": "pass", "name": "a"}])).await?;
    let mut body = "{\"input\":{\"a\":[".to_owned();
    while body.len() < TEXT {
        body.push_str(item);
        body.push(',');
    }
    body.push_str("0]}}");
    let before = server.memory();
    server.forget_peak();
    let probe = Probe::starts(&server, "f");
    pause(200).await;
    let request = server.request("POST", "/v1/flows/f/executions").body(body);
    let answer = send(server.port(), &request.patience(Duration::from_secs(80))).await;
    pause(500).await;
    let met = probe.finish().await;
    let grown = server.peak().saturating_sub(before);
    let bound = 8 * 20 + 64;
    let mut wrong: Vec<String> = met.wrong(Duration::from_secs(2)).into_iter().collect();
    if !matches!(answer.status, 200..300 | 400..500 | 503) {
        wrong.push(format!("the start: {} {}", answer.status, answer.text));
    }
    if grown > bound {
        wrong.push(format!("{grown} MB for 20 MB"));
    }
    let text = format!(
        "{}, {grown} MB for 20 MB, others {} ms",
        answer.status,
        met.longest.as_millis()
    );
    Ok(Seen::unless(&wrong, text))
}

async fn given_back(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(with_tokens()).await?;
    let definition = json!({"version": "v1", "type": "flow", "inputSchema": {"type": "object", "required": ["b"]},
        "steps": [{"type": "pass", "name": "a"}]});
    server.put("/v1/flows/strict", &definition).await.well("the flow")?;
    let before = server.memory();
    let body = format!("{{\"input\":{{\"a\":[{}0]}}}}", "[],".repeat(1_700_000));
    let request = server.request("POST", "/v1/flows/strict/executions").body(body);
    let request = request.patience(Duration::from_secs(60));
    let all = (0..20).map(|_| {
        let (request, port) = (request.clone(), server.port());
        tokio::spawn(async move { send(port, &request).await.status })
    });
    let all: Vec<_> = all.collect();
    let mut answers = Vec::new();
    for one in all {
        answers.push(one.await.unwrap_or(0));
    }
    answers.sort_unstable();
    answers.dedup();
    pause(2_000).await;
    let left = server.memory().saturating_sub(before);
    // One at least is read whole and refused for what it is.
    let known = answers.contains(&422) && answers.iter().all(|status| matches!(status, 413 | 422 | 503));
    let text = format!("answers {answers:?}, {left} MB more, at most {} MB", server.peak());
    Ok(Seen::new(left < 150 && known, text))
}
