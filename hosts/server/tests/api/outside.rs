//! Which addresses flows can make a server call.

use crate::harness::Running;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::any;
use serde_json::{Value, json};
use starbridge_node::config::Config;
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A function that redirects to another one, and how often the other was called.
async fn detour() -> (String, Arc<AtomicUsize>) {
    let arrived = Arc::new(AtomicUsize::new(0));
    let counted = arrived.clone();
    let elsewhere = async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        "{}"
    };
    let away = async |status: StatusCode| (status, [(header::LOCATION, "/elsewhere")]).into_response();
    let router = Router::new()
        .route("/301", any(move || away(StatusCode::MOVED_PERMANENTLY)))
        .route("/302", any(move || away(StatusCode::FOUND)))
        .route("/307", any(move || away(StatusCode::TEMPORARY_REDIRECT)))
        .route("/308", any(move || away(StatusCode::PERMANENT_REDIRECT)))
        .route("/elsewhere", any(elsewhere));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (base, arrived)
}

async fn call(server: &Running, target: &str) -> Value {
    let steps = json!([{"type": "task", "name": "t", "resourceArn": target}]);
    assert!(
        server
            .put("/v1/flows/f", crate::harness::definition(steps))
            .await
            .status
            < 300
    );
    server.post("/v1/flows/f/executions?wait=20", json!({})).await.body
}

#[tokio::test]
async fn redirect_to_another_origin_is_not_followed() {
    let (base, arrived) = detour().await;
    let server = Running::start().await;
    for status in [301, 302, 307, 308] {
        let ended = call(&server, &format!("{base}/{status}")).await;
        assert_eq!(ended["status"], "Failed", "{ended}");
        assert_eq!(ended["error"], format!("HTTP.{status}"), "{ended}");
    }
    assert_eq!(arrived.load(Ordering::SeqCst), 0);
    assert_eq!(call(&server, &format!("{base}/elsewhere")).await["status"], "Succeeded");
}

#[tokio::test]
async fn private_address_is_refused_unless_allowed() {
    let (base, arrived) = detour().await;
    let port = base.rsplit(':').next().unwrap();
    let guarded = Running::with(Access::default(), |settings| {
        settings.http = Config::default().node(in_memory()).unwrap().http;
    })
    .await;
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0.0.0.0",
        "2130706433",
        "10.0.0.1",
        "169.254.169.254",
    ] {
        let ended = call(&guarded, &format!("http://{host}:{port}/elsewhere")).await;
        assert_eq!(ended["error"], "FnF.NoSuchResource", "{host}: {ended}");
        let cause = ended["cause"].as_str().unwrap();
        assert!(
            cause.contains("is not public") && cause.contains("`http.allow`"),
            "{host}: {cause}"
        );
    }
    assert_eq!(arrived.load(Ordering::SeqCst), 0);
    let mut config = Config::default();
    config.http.allow = vec!["127.0.0.0/8".to_owned()];
    let allowing = Running::with(Access::default(), |settings| {
        settings.http = config.node(in_memory()).unwrap().http;
    })
    .await;
    assert_eq!(
        call(&allowing, &format!("{base}/elsewhere")).await["status"],
        "Succeeded"
    );
    assert_eq!(arrived.load(Ordering::SeqCst), 1);
}

/// A function that fails under the interpreter's own name for a call that was not sent, and how often it was called
/// to undo.
async fn liar() -> (String, Arc<AtomicUsize>) {
    let undone = Arc::new(AtomicUsize::new(0));
    let counted = undone.clone();
    let undo = async move || {
        counted.fetch_add(1, Ordering::SeqCst);
        "{}"
    };
    let lie = async || {
        let said = json!({"error": "FnF.NoSuchResource", "cause": "never called"});
        (StatusCode::INTERNAL_SERVER_ERROR, said.to_string())
    };
    let router = Router::new().route("/lie", any(lie)).route("/undo", any(undo));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (base, undone)
}

#[tokio::test]
async fn rollback_of_a_failed_task_hangs_on_no_name() {
    let (base, undone) = liar().await;
    let server = Running::start().await;
    let called = |pattern: &str| {
        (
            format!("{base}/lie"),
            pattern.to_owned(),
            "Function.FnF.NoSuchResource",
            1,
        )
    };
    for (resource, pattern, error, undoes) in [
        called("requestResponse"),
        called("waitForCallback"),
        (
            "acs:fc:::nobody".to_owned(),
            "requestResponse".to_owned(),
            "FnF.NoSuchResource",
            0,
        ),
        ("flow:nobody".to_owned(), "sync".to_owned(), "FnF.NoSuchResource", 0),
    ] {
        let step = json!({"type": "task", "name": "t", "resourceArn": resource, "pattern": pattern,
            "rollback": {"resourceArn": format!("{base}/undo")}});
        let put = server
            .put("/v1/flows/f", crate::harness::definition(json!([step])))
            .await;
        assert!(put.status < 300, "{put:?}");
        undone.store(0, Ordering::SeqCst);
        let ended = server.post("/v1/flows/f/executions?wait=20", json!({})).await.body;
        assert_eq!(
            (&ended["status"], &ended["error"]),
            (&json!("Failed"), &json!(error)),
            "{ended}"
        );
        assert_eq!(undone.load(Ordering::SeqCst), undoes, "{resource} {pattern}: {ended}");
        let history = server
            .get(&format!("/v1/executions/{}/history", ended["id"].as_str().unwrap()))
            .await
            .body
            .to_string();
        assert_eq!(history.contains(r#""notSent":true"#), undoes == 0, "{history}");
    }
}
