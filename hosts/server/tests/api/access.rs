use crate::harness::{Answer, Running, sent};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::Digest;
use starbridge_server::{Access, Scope, TokenHash, openapi};

const SCOPES: [Scope; 5] = [Scope::Read, Scope::Start, Scope::Worker, Scope::Operate, Scope::Admin];

pub fn access() -> Access {
    let mut access = Access::default();
    for scope in SCOPES {
        access.grant(
            scope.as_str(),
            TokenHash::of(&format!("token-{}", scope.as_str())),
            vec![scope],
        );
    }
    access
}

/// Each operation of the document: its method, its path with values for the parameters, and the scope it needs:
/// [`Scope::Any`]'s word if any token will do, `None` if none is needed.
pub fn operations() -> Vec<(Method, String, Option<String>)> {
    let document = openapi();
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let path = path.replace("{verb}", "heartbeat");
        let path = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part });
        let path = path.collect::<Vec<_>>().join("/");
        for (method, operation) in methods.as_object().unwrap() {
            let scopes = operation["security"][0]["bearer"].as_array();
            let scope = scopes.map(|scopes| scopes.first().map_or("any", |scope| scope.as_str().unwrap()).to_owned());
            operations.push((method.to_uppercase().parse().unwrap(), path.clone(), scope));
        }
    }
    operations
}

async fn ask(server: &Running, method: &Method, path: &str, token: Option<&str>) -> Answer {
    let mut request = server.request(method.clone(), path);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    Answer::of(sent(request).await).await
}

#[tokio::test]
async fn scope_of_every_route_is_what_the_document_names() {
    for (method, path, wanted) in operations() {
        // Each with its own server, because senders that fail too often are turned away.
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
            let may = scope.as_str() == wanted || scope == Scope::Admin || wanted == "any";
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
async fn queue_named_hold_is_like_any_other() {
    let server = Running::with(access(), |_| {}).await;
    let ask = |method: Method, token: &str, body: Option<Value>| {
        let mut request = server
            .request(method, "/v1/queues/hold")
            .bearer_auth(format!("token-{token}"));
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        // The document names this path for one method only.
        async move { request.send().await.unwrap() }
    };
    let paused = json!({"paused": true});
    assert_eq!(
        ask(Method::PUT, "worker", Some(paused.clone())).await.status().as_u16(),
        403
    );
    assert_eq!(ask(Method::PUT, "operate", Some(paused)).await.status().as_u16(), 200);
    assert_eq!(ask(Method::GET, "worker", None).await.status().as_u16(), 403);
    let shown = ask(Method::GET, "read", None).await;
    assert_eq!(shown.status().as_u16(), 200);
    assert!(shown.text().await.unwrap().contains("\"paused\":true"));
    assert_eq!(ask(Method::POST, "read", Some(json!({}))).await.status().as_u16(), 403);
    assert_eq!(ask(Method::DELETE, "read", None).await.status().as_u16(), 405);
}

#[tokio::test]
async fn token_of_any_scope_for_what_is_not_there() {
    let server = Running::with(access(), |_| {}).await;
    for (method, path, expected) in [
        (Method::GET, "/", 404),
        (Method::GET, "/v1/nowhere", 404),
        (Method::POST, "/v1/flows/x/nowhere", 404),
        (Method::DELETE, "/v1/flows", 405),
        (Method::OPTIONS, "/v1/executions", 405),
        (Method::PUT, "/v1/executions/x/stop", 405),
        (Method::POST, "/metrics", 405),
    ] {
        for token in [None, Some("guess")] {
            let stranger = ask(&server, &method, path, token).await;
            assert_eq!(stranger.code(), (401, "Unauthorized"), "{method} {path}");
        }
        for scope in SCOPES {
            let token = format!("token-{}", scope.as_str());
            let answer = ask(&server, &method, path, Some(&token)).await;
            assert_eq!(answer.status, expected, "{method} {path} as {}", scope.as_str());
        }
    }
    // Paths that need no token need none for other methods either.
    for path in ["/healthz", "/v1/openapi.json", "/v1/callbacks/x/succeed"] {
        assert_eq!(ask(&server, &Method::PUT, path, None).await.status, 405, "{path}");
    }
    assert!(turned_away(&server, Method::GET, "/v1/nowhere").await);
}

#[tokio::test]
pub async fn who_fails_too_often_is_turned_away() {
    let server = Running::with(access(), |_| {}).await;
    assert!(turned_away(&server, Method::GET, "/v1/flows").await);
    // All other requests need one.
    for path in ["/v1/flows", "/metrics"] {
        assert_eq!(ask(&server, &Method::GET, path, Some("token-read")).await.status, 200);
        let beyond = ask(&server, &Method::GET, path, Some("token-start")).await;
        assert_eq!(beyond.code(), (403, "Forbidden"));
    }
    for path in ["/healthz", "/readyz", "/v1/openapi.json"] {
        assert_eq!(
            ask(&server, &Method::GET, path, Some("guess")).await.status,
            200,
            "{path}"
        );
    }
    assert!(turned_away(&server, Method::GET, "/v1/flows").await);
    let server = Running::start().await;
    assert!(turned_away(&server, Method::POST, "/v1/callbacks/guess/succeed").await);
    assert_eq!(ask(&server, &Method::GET, "/v1/flows", None).await.status, 200);
}

/// Whether guesses are finally turned away, even if they come slowly.
async fn turned_away(server: &Running, method: Method, path: &str) -> bool {
    for _ in 0..2_000 {
        if ask(server, &method, path, Some("guess")).await.status == 429 {
            return true;
        }
    }
    false
}

#[tokio::test]
async fn rate_limit_does_not_count_a_token_without_the_scope() {
    let server = Running::with(access(), |_| {}).await;
    for _ in 0..200 {
        let answer = ask(&server, &Method::GET, "/v1/flows", Some("token-start")).await;
        assert_eq!(answer.code(), (403, "Forbidden"));
    }
    assert_eq!(ask(&server, &Method::GET, "/v1/flows", Some("guess")).await.status, 401);
}

#[tokio::test]
async fn token_unknown_is_refused() {
    let server = Running::with(access(), |_| {}).await;
    let right = "token-admin";
    let hash = starbridge_flow::hex::encode(&sha2::Sha256::digest(right));
    let mut wrong: Vec<String> = (0..right.len()).map(|end| right[..end].to_owned()).collect();
    wrong.extend((1..right.len()).map(|begin| right[begin..].to_owned()));
    wrong.extend([format!("{right}x"), format!("{right}{right}"), right.to_uppercase()]);
    wrong.extend([hash.to_uppercase(), hash, "token-".to_owned()]);
    for token in wrong {
        let answer = ask(&server, &Method::GET, "/v1/flows", Some(&token)).await;
        assert!(matches!(answer.status, 401 | 429), "{token}: {answer:?}");
    }
    assert_eq!(ask(&server, &Method::GET, "/v1/flows", Some(right)).await.status, 200);
}

#[tokio::test]
async fn rate_limit_tells_clients_of_a_proxy_apart() {
    let server = Running::behind(access(), &["127.0.0.0/8"]).await;
    let from = async |client: &str, token: &str| {
        let request = server.request(Method::GET, "/v1/flows");
        let request = request.bearer_auth(token).header("x-forwarded-for", client);
        Answer::of(sent(request).await).await.status
    };
    let mut refused = 0;
    for _ in 0..2_000 {
        refused = from("1.1.1.1, 203.0.113.7", "guess").await;
        if refused == 429 {
            break;
        }
    }
    assert_eq!(refused, 429);
    assert_eq!(from("203.0.113.7", "token-read").await, 200);
    // Another client can guess as if none had before.
    assert_eq!(from("203.0.113.8", "guess").await, 401);
    assert_eq!(from("1.1.1.1", "guess").await, 401);
}

#[tokio::test]
async fn host_header_must_name_this_machine() {
    let server = Running::start().await;
    for name in ["localhost:1", "127.0.0.1", "[::1]:8"] {
        let request = server.request(Method::GET, "/v1/flows");
        let response = sent(request.header("host", name)).await;
        assert_eq!(response.status().as_u16(), 200, "{name}");
    }
}

#[tokio::test]
async fn token_is_required_off_the_loopback() {
    let settings = starbridge_server::ServerSettings::default();
    let bound = starbridge_server::Server::bind("0.0.0.0:0".parse().unwrap(), settings).await;
    assert!(matches!(bound, Err(starbridge_server::BindError::Unprotected(_))));
}

#[tokio::test]
async fn openapi_describes_what_it_names() {
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
