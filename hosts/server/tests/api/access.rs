use crate::harness::{Answer, Running};
use reqwest::Method;
use serde_json::Value;
use starbridge_server::{Access, Scope, TokenHash, openapi};

const SCOPES: [Scope; 5] = [Scope::Read, Scope::Start, Scope::Worker, Scope::Operate, Scope::Admin];

fn access() -> Access {
    let mut access = Access::default();
    for scope in SCOPES {
        access.grant(TokenHash::of(&format!("token-{}", scope.as_str())), vec![scope]);
    }
    access
}

/// Each operation of the document: method, a path with something in place of each parameter, and the scope it needs.
fn operations() -> Vec<(Method, String, Option<String>)> {
    let document = openapi();
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.replace("{verb}", "heartbeat");
        let path = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        for (method, operation) in methods.as_object().unwrap() {
            let scope = operation["security"][0]["bearer"][0].as_str().map(str::to_owned);
            operations.push((method.to_uppercase().parse().unwrap(), path.clone(), scope));
        }
    }
    operations
}

async fn ask(server: &Running, method: &Method, path: &str, token: Option<&str>) -> Answer {
    let mut request = server.client.request(method.clone(), format!("{}{path}", server.base));
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test]
async fn every_route_wants_the_scope_the_document_names() {
    for (method, path, wanted) in operations() {
        // Each with its own server: strangers who fail too often are turned away.
        let server = Running::with(access(), |_| {}).await;
        let stranger = ask(&server, &method, &path, None).await;
        assert_eq!(
            stranger.status == 401,
            wanted.is_some(),
            "{method} {path}: {stranger:?}"
        );
        assert_eq!(
            ask(&server, &method, &path, Some("guess")).await.status == 401,
            wanted.is_some()
        );
        let Some(wanted) = wanted else {
            continue;
        };
        for scope in SCOPES {
            let token = format!("token-{}", scope.as_str());
            let answer = ask(&server, &method, &path, Some(&token)).await;
            let may = scope.as_str() == wanted || scope == Scope::Admin;
            assert_eq!(
                answer.status != 403 && answer.status != 401,
                may,
                "{method} {path} as {}: {answer:?}",
                scope.as_str()
            );
        }
    }
}

#[tokio::test]
async fn who_fails_too_often_is_turned_away() {
    let server = Running::with(access(), |_| {}).await;
    assert!(turned_away(&server, Method::GET, "/v1/flows").await);
    let server = Running::start().await;
    assert!(turned_away(&server, Method::POST, "/v1/callbacks/guess/succeed").await);
}

/// Whether guesses are turned away at last, however slowly they come.
async fn turned_away(server: &Running, method: Method, path: &str) -> bool {
    for _ in 0..2_000 {
        if ask(server, &method, path, Some("guess")).await.status == 429 {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn a_page_from_elsewhere_gets_nothing_under_its_own_name() {
    let server = Running::start().await;
    let request = server.client.get(format!("{}/v1/flows", server.base));
    let response = request.header("host", "rebound.example:80").send().await.unwrap();
    assert_eq!(Answer::of(response).await.code(), (403, "HostNotAllowed"));
    for name in ["localhost:1", "127.0.0.1", "[::1]:8"] {
        let request = server.client.get(format!("{}/v1/flows", server.base));
        let response = request.header("host", name).send().await.unwrap();
        assert_eq!(response.status().as_u16(), 200, "{name}");
    }
}

#[tokio::test]
async fn off_the_loopback_nobody_listens_without_tokens() {
    let settings = starbridge_server::ServerSettings::default();
    let bound = starbridge_server::Server::bind("0.0.0.0:0".parse().unwrap(), settings).await;
    assert!(matches!(bound, Err(starbridge_server::BindError::Unprotected(_))));
}

#[tokio::test]
async fn the_document_describes_what_it_names() {
    let document = openapi();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let mut named = Vec::new();
    references(&document, &mut named);
    for name in &named {
        assert!(schemas.contains_key(name), "{name}");
    }
    for name in schemas.keys() {
        assert!(named.contains(name), "{name} is not used");
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(reference) = members.get("$ref").and_then(Value::as_str) {
                found.push(reference.rsplit('/').next().unwrap_or_default().to_owned());
            }
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
