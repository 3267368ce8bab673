use crate::harness::{Running, asleep, definition, sent};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
pub async fn a_version_is_made_only_of_what_is_new() {
    let server = Running::start().await;
    let one = definition(json!([{"type": "pass", "name": "a"}]));
    let first = server.put("/v1/flows/f", one.clone()).await;
    assert_eq!((first.status, &first.body["version"]), (201, &json!(1)));
    let same = server.put("/v1/flows/f", one).await;
    assert_eq!((same.status, &same.body["version"]), (200, &json!(1)));
    let second = server
        .put("/v1/flows/f", definition(json!([{"type": "pass", "name": "b"}])))
        .await;
    assert_eq!((second.status, &second.body["version"]), (201, &json!(2)));
    let versions = server.get("/v1/flows/f/versions").await;
    assert_eq!(versions.body["items"][0]["version"], 2);
    let old = server.get("/v1/flows/f?version=1").await;
    assert_eq!(old.body["definition"]["steps"][0]["name"], "a");
    assert_eq!(server.get("/v1/flows/f?version=3").await.code(), (404, "NoSuchFlow"));
}

#[tokio::test]
async fn flow_version_of_a_running_execution_stays() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({})).await;
    server
        .put("/v1/flows/f", definition(json!([{"type": "pass", "name": "other"}])))
        .await;
    let state = server
        .get(&format!("/v1/executions/{}/state", begun.body["id"].as_str().unwrap()))
        .await;
    assert_eq!(state.body["steps"][0]["step"], "sleep", "{state:?}");
    let new = server.post("/v1/flows/f/executions?wait=5", json!({})).await;
    assert_eq!(
        (&new.body["status"], &new.body["version"]),
        (&json!("Succeeded"), &json!(2))
    );
}

#[tokio::test]
pub async fn a_hidden_flow_is_not_started_and_not_listed() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    assert_eq!(server.ask(Method::DELETE, "/v1/flows/f", None).await.status, 204);
    assert_eq!(
        server.post("/v1/flows/f/executions", json!({})).await.code(),
        (404, "NoSuchFlow")
    );
    assert_eq!(server.get("/v1/flows").await.body["items"], json!([]));
    assert_eq!(
        server.ask(Method::DELETE, "/v1/flows/none", None).await.code(),
        (404, "NoSuchFlow")
    );
}

#[tokio::test]
pub async fn a_bad_definition_says_everything_that_is_wrong() {
    let server = Running::start().await;
    let bad = json!({"version": "v1", "type": "flow", "steps": [{"type": "pas", "name": "a"}, {"type": "pass", "name": "a"}, {"type": "wait", "name": "w"}]});
    let answer = server.put("/v1/flows/f", bad).await;
    assert_eq!(answer.code(), (422, "InvalidDefinition"));
    let found = answer.body["diagnostics"].as_array().unwrap();
    assert!(found.len() >= 3, "{answer:?}");
    assert!(
        found
            .iter()
            .all(|found| found["code"].is_string() && found["line"].is_number())
    );
    assert_eq!(
        server.put("/v1/flows/1f", definition(asleep())).await.code(),
        (400, "BadRequest")
    );
}

#[tokio::test]
async fn flow_in_yaml_is_read() {
    let server = Running::start().await;
    let yaml = "version: v1\ntype: flow\nsteps:\n  - type: pass\n    name: a\n";
    let request = server.request(Method::PUT, "/v1/flows/y").body(yaml);
    let response = sent(request.header("content-type", "application/yaml")).await;
    assert_eq!(response.status().as_u16(), 201);
    let ended = server.post("/v1/flows/y/executions?wait=5", json!({})).await;
    assert_eq!(ended.body["status"], "Succeeded");
}

#[tokio::test]
pub async fn what_cannot_be_honoured_is_refused() {
    let server = Running::start().await;
    let mut flow = definition(asleep());
    flow["concurrency"] = json!([{"key": "$.k", "limit": 1}]);
    assert_eq!(server.put("/v1/flows/f", flow).await.code(), (201, ""));
    let answer = server.post("/v1/flows/f/executions", json!({})).await;
    assert_eq!(answer.code(), (422, "InvalidConcurrencyKey"));
    assert!(answer.body["detail"].as_str().unwrap().contains("`$.k` finds nothing"));
    let mut flow = definition(asleep());
    flow["concurrency"] = json!([{"key": "k-{$input.k}", "limit": 1}]);
    assert_eq!(server.put("/v1/flows/t", flow).await.code(), (201, ""));
    for (k, kind) in [
        (json!(null), "null"),
        (json!({}), "an object"),
        (json!(true), "a boolean"),
    ] {
        let answer = server.post("/v1/flows/t/executions", json!({"input": {"k": k}})).await;
        assert_eq!(answer.code(), (422, "InvalidConcurrencyKey"));
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("`$input.k`, which is {kind}")), "{detail}");
    }
    for k in [json!("a"), json!(7)] {
        let answer = server.post("/v1/flows/t/executions", json!({"input": {"k": k}})).await;
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let nobody = "0190b3e4-0000-7000-8000-000000000000";
    let start = json!({"input": {"k": "a"}, "after": [nobody]});
    let answer = server.post("/v1/flows/f/executions", start).await;
    assert_eq!(answer.code(), (422, "UnknownDependency"));
    assert!(answer.body["detail"].as_str().unwrap().contains(nobody));
}

#[tokio::test]
pub async fn definition_is_checked_and_not_kept() {
    let server = Running::start().await;
    let good = definition(json!([{"type": "pass", "name": "a"}]));
    let checked = server.post("/v1/flows/f/check", good.clone()).await;
    assert_eq!(checked.status, 200, "{checked:?}");
    assert_eq!(
        (&checked.body["latestVersion"], &checked.body["same"]),
        (&Value::Null, &json!(false))
    );
    assert_eq!(server.get("/v1/flows/f").await.code(), (404, "NoSuchFlow"));
    server.put("/v1/flows/f", good.clone()).await;
    let again = server.post("/v1/flows/f/check", good.clone()).await.body;
    assert_eq!((&again["latestVersion"], &again["same"]), (&json!(1), &json!(true)));
    let wrong = server
        .post("/v1/flows/f/check", definition(json!([{"type": "odd", "name": "a"}])))
        .await;
    assert_eq!(wrong.code(), (422, "InvalidDefinition"));
    assert!(!wrong.body["diagnostics"].as_array().unwrap().is_empty());
    let kept = server.get("/v1/flows/f?text=true").await.body;
    assert_eq!(kept["text"], good.to_string());
    assert_eq!(server.get("/v1/flows/f").await.body.get("text"), None);
}
