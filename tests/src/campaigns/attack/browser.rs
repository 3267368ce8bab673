//! Requests that a web page can send when a user of the machine that runs the server visits it.

use super::server::{Ground, Server, pause};
use super::wire::{Answer, Request};
use super::{Seen, Try};
use serde_json::json;

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "browser/foreign-origin",
        "every route that changes something, from a page elsewhere, as a simple request",
        "403",
        |ground| Box::pin(foreign(ground, &[("Origin", "https://evil.example")])),
    ),
    Try::quick(
        "browser/null-origin",
        "the same from a sandboxed page",
        "403",
        |ground| Box::pin(foreign(ground, &[("Origin", "null")])),
    ),
    Try::quick(
        "browser/cross-site",
        "the same with `Sec-Fetch-Site: cross-site` alone",
        "403",
        |ground| Box::pin(foreign(ground, &[("Sec-Fetch-Site", "cross-site")])),
    ),
    Try::quick(
        "browser/other-port",
        "a start from a page of the same machine on another port",
        "403",
        |ground| Box::pin(other_port(ground)),
    ),
    Try::quick(
        "browser/host",
        "foreign and malformed `Host`s, on every route",
        "4xx",
        |ground| Box::pin(hosts(ground)),
    ),
    Try::quick(
        "browser/own",
        "no such headers, the server's own page, localhost",
        "2xx",
        |ground| Box::pin(own(ground)),
    ),
];

/// The routes as the server itself tells them, with something in each place.
async fn routes(server: &Server) -> Result<Vec<(String, String)>, String> {
    let answer = server.get("/v1/openapi.json").await;
    answer.well("the table of routes")?;
    let table = answer.json();
    let paths = table["paths"].as_object().ok_or("the table of routes has no paths")?;
    let mut routes = Vec::new();
    for (path, methods) in paths {
        let filled = path.replace("{verb}", "succeed");
        let parts = filled
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part });
        let filled = parts.collect::<Vec<_>>().join("/");
        for method in methods.as_object().into_iter().flatten().map(|(method, _)| method) {
            routes.push((method.to_uppercase(), filled.clone()));
        }
    }
    Ok(routes)
}

/// Whether a request of a page was refused. A callback brings a token of its own, which is wrong here.
fn refused(path: &str, answer: &Answer) -> bool {
    answer.status == 403 || (path.starts_with("/v1/callbacks") && answer.refused())
}

async fn foreign(ground: Ground, headers: &'static [(&str, &str)]) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("x", &json!([{"type": "pass", "name": "a"}])).await?;
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (method, path) in routes(&server).await?.iter().filter(|(method, _)| method != "GET") {
        for kind in ["text/plain", "application/x-www-form-urlencoded"] {
            let mut request = server
                .request(method, path)
                .header("Content-Type", kind)
                .body("{\"input\":{}}");
            for (name, value) in headers {
                request = request.header(name, value);
            }
            let answer = server.send(&request.by_stranger(tried)).await;
            tried += 1;
            if !refused(path, &answer) {
                wrong.push(format!("{method} {path}: {}", answer.status));
            }
        }
    }
    Ok(Seen::unless(&wrong, format!("{tried} of {tried} refused")))
}

async fn other_port(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("x", &json!([{"type": "pass", "name": "a"}])).await?;
    let request = server.request("POST", "/v1/flows/x/executions").body("{\"input\":{}}");
    let request = request
        .header("Content-Type", "text/plain")
        .header("Origin", "http://localhost:1");
    let answer = server.send(&request).await;
    Ok(Seen::new(answer.status == 403, answer.status.to_string()))
}

async fn hosts(ground: Ground) -> Result<Seen, String> {
    const HOSTS: [&str; 10] = [
        "evil.example",
        "evil.example:80",
        "localhost.evil.example",
        "[::1].evil.example",
        "[localhost",
        "127.0.0.1:80@evil.example",
        "127.0.0.1:port",
        "127.0.0.1:99999",
        "127.0.0.1 evil.example",
        "",
    ];
    let server = ground.server().await?;
    server.flow("x", &json!([{"type": "pass", "name": "a"}])).await?;
    let mut wrong = Vec::new();
    let mut tried = 0;
    for (method, path) in routes(&server).await? {
        // Whether it lives and is ready is no secret.
        if path == "/healthz" || path == "/readyz" {
            continue;
        }
        for host in HOSTS {
            let request = server.request(&method, &path).host(host).body("{\"input\":{}}");
            let request = if method == "GET" { request.body("") } else { request };
            let answer = server.send(&request.by_stranger(tried)).await;
            tried += 1;
            // Some parts have nothing under these names, so the refusal must not be that it was not found.
            if !answer.refused() || answer.status == 404 || answer.status == 405 {
                wrong.push(format!("{method} {path} with `{host}`: {}", answer.status));
            }
        }
    }
    Ok(Seen::unless(&wrong, format!("{tried} of {tried} refused")))
}

async fn own(ground: Ground) -> Result<Seen, String> {
    let server = ground.server().await?;
    server.flow("x", &json!([{"type": "pass", "name": "a"}])).await?;
    let port = server.port();
    let start = || server.request("POST", "/v1/flows/x/executions").body("{\"input\":{}}");
    let own_origin = format!("http://127.0.0.1:{port}");
    let localhost = format!("http://localhost:{port}");
    let requests: [(&str, Request); 5] = [
        ("no headers", start()),
        (
            "its own origin",
            start()
                .header("Origin", &own_origin)
                .header("Sec-Fetch-Site", "same-origin"),
        ),
        ("typed by the user", start().header("Sec-Fetch-Site", "none")),
        (
            "localhost",
            start().host(&format!("localhost:{port}")).header("Origin", &localhost),
        ),
        ("no port", start().host("localhost")),
    ];
    let mut wrong = Vec::new();
    for (which, request) in requests {
        let answer = server.send(&request).await;
        if answer.status != 201 {
            wrong.push(format!("{which}: {} {}", answer.status, answer.text));
        }
        pause(5).await;
    }
    Ok(Seen::unless(&wrong, "5 of 5 taken"))
}
