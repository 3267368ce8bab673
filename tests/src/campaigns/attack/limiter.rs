//! Strangers who guess tokens: they are slowed down, and no other client is.

use super::server::{Ground, Server, Setup};
use super::{Seen, Try};
use serde_json::json;

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "limiter/wrong-tokens",
        "200 wrong tokens from one address, between them right ones and probes",
        "right ones, /healthz, /readyz 200 throughout; wrong ones 429 at some time",
        |ground| Box::pin(wrong_tokens(ground)),
    ),
    Try::quick(
        "limiter/callbacks",
        "200 reports under tokens nobody made, between them right API tokens",
        "429 at some time; right ones 200 throughout",
        |ground| Box::pin(wrong_callbacks(ground)),
    ),
    Try::quick(
        "limiter/batches",
        "batches of 1,000 wrong callback tokens",
        "429 at some time; right API tokens 200 throughout",
        |ground| Box::pin(batches(ground)),
    ),
    Try::quick(
        "limiter/proxy",
        "wrong tokens through a trusted proxy, for one of its clients",
        "that one 429, another 401; who is not the proxy can't say who it is",
        |ground| Box::pin(proxy(ground)),
    ),
];

fn with_tokens() -> Setup {
    Setup {
        tokens: true,
        ..Setup::default()
    }
}

/// The fault in the service to clients who made no mistake, if there is one.
async fn innocent(server: &Server) -> Option<String> {
    for path in ["/v1/flows", "/healthz", "/readyz"] {
        let status = server.get(path).await.status;
        if status != 200 {
            return Some(format!("{path} with a right token: {status}"));
        }
    }
    let bare = server.request("GET", "/healthz").without_header("Authorization");
    let status = server.send(&bare).await.status;
    (status != 200).then(|| format!("/healthz without a token: {status}"))
}

fn verdict(wrong: &[String], slowed: usize, tried: usize) -> Seen {
    if slowed == 0 {
        return Seen::new(false, format!("none of {tried} wrong ones was slowed"));
    }
    Seen::unless(wrong, format!("429 for {slowed} of {tried} wrong ones, right ones 200"))
}

async fn wrong_tokens(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(with_tokens()).await?;
    let mut wrong = Vec::new();
    let mut slowed = 0;
    for number in 0..200 {
        let guess = server.request("GET", "/v1/flows").without_header("Authorization");
        let answer = server
            .send(&guess.header("Authorization", &format!("Bearer x{number}")))
            .await;
        match answer.status {
            429 => slowed += 1,
            401 => {}
            status => wrong.push(format!("a wrong token: {status}")),
        }
        if number % 10 == 9 {
            wrong.extend(innocent(&server).await);
        }
    }
    Ok(verdict(&wrong, slowed, 200))
}

async fn wrong_callbacks(ground: Ground) -> Result<Seen, String> {
    let server = ground.server_with(with_tokens()).await?;
    let mut wrong = Vec::new();
    let mut slowed = 0;
    for number in 0..200 {
        let path = format!("/v1/callbacks/303132{number:04}.00112233/succeed");
        let guess = server
            .request("POST", &path)
            .without_header("Authorization")
            .body("{\"output\":{}}");
        slowed += usize::from(server.send(&guess).await.status == 429);
        if number % 20 == 19 {
            wrong.extend(innocent(&server).await);
        }
    }
    Ok(verdict(&wrong, slowed, 200))
}

async fn batches(ground: Ground) -> Result<Seen, String> {
    const BATCHES: usize = 15;
    let server = ground.server_with(with_tokens()).await?;
    let reports: Vec<_> = (0..1_000)
        .map(|number| json!({"token": format!("303132{number:04}.00112233"), "output": {}}))
        .collect();
    let body = json!({"reports": reports}).to_string();
    let mut wrong = Vec::new();
    let mut slowed = 0;
    for _ in 0..BATCHES {
        let batch = server
            .request("POST", "/v1/callbacks")
            .without_header("Authorization")
            .body(body.clone());
        let answer = server.send(&batch).await;
        // All of a batch, or some of it.
        slowed += usize::from(answer.status == 429 || answer.text.contains("\"status\":429"));
        wrong.extend(innocent(&server).await);
    }
    Ok(verdict(&wrong, slowed, BATCHES))
}

async fn guess_through(server: &Server, client: &str) -> u16 {
    let guess = server.request("GET", "/v1/flows").without_header("Authorization");
    let guess = guess
        .header("X-Forwarded-For", client)
        .header("Authorization", "Bearer x");
    server.send(&guess).await.status
}

async fn proxy(ground: Ground) -> Result<Seen, String> {
    let setup = Setup {
        server: "trusted_proxies = [\"127.0.0.1\"]",
        ..with_tokens()
    };
    let server = ground.server_with(setup).await?;
    let mut slowed = false;
    for _ in 0..200 {
        slowed |= guess_through(&server, "203.0.113.1").await == 429;
    }
    let other = guess_through(&server, "203.0.113.2").await;
    let bare = server.request("GET", "/v1/flows").without_header("Authorization");
    let forwarded = bare
        .header("Forwarded", "for=203.0.113.3;proto=https")
        .header("Authorization", "Bearer x");
    let forwarded = server.send(&forwarded).await.status;
    drop(server);
    let mut text = format!("the one slowed: {slowed}, another {other}, by `Forwarded` {forwarded}");
    // Without the setting the header is only a stranger's word.
    let server = ground.server_with(with_tokens()).await?;
    let mut liar = false;
    for number in 0..200 {
        liar |= guess_through(&server, &format!("203.0.113.{number}")).await == 429;
    }
    text.push_str(&format!(", who only pretends slowed: {liar}"));
    Ok(Seen::new(slowed && other == 401 && forwarded == 401 && liar, text))
}
