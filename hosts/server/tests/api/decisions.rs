//! What operators decide: steps that wait for them, undos that are skipped, inputs that are changed, versions of forks.

use crate::harness::{Running, definition, refusing};
use serde_json::{Value, json};
use std::time::Duration;

/// Waits until an execution has this status.
async fn stands(server: &Running, id: &str, status: &str) -> Value {
    for _ in 0..500 {
        let found = server.get(&format!("/v1/executions/{id}")).await.body;
        if found["status"] == status {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the execution {id} does not become {status}");
}

async fn started(server: &Running, flow: &str, input: Value) -> String {
    let path = format!("/v1/flows/{flow}/executions");
    let started = server.post(&path, json!({"input": input})).await;
    assert_eq!(started.status, 201, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

/// The event of the last row of a step.
async fn event_of(server: &Running, id: &str, step: &str) -> u64 {
    let steps = server.get(&format!("/v1/executions/{id}/steps")).await.body;
    let rows = steps["items"].as_array().unwrap();
    let row = rows.iter().rfind(|row| row["step"] == step).unwrap();
    row["event"].as_u64().unwrap()
}

#[tokio::test]
pub async fn operator_resolves_a_step_once() {
    let server = Running::start().await;
    let nobody = refusing();
    let target = format!("http://{}/pay", nobody.local_addr().unwrap());
    let pay = json!({"type": "task", "name": "pay", "resourceArn": target, "retry": [],
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]});
    server.flow("f", json!([{"type": "pass", "name": "before"}, pay])).await;
    let id = started(&server, "f", json!({})).await;
    stands(&server, &id, "Manual").await;
    let event = event_of(&server, &id, "pay").await;
    let path = |event: &str| format!("/v1/executions/{id}/steps/{event}/resolve");
    let own = path(&event.to_string());
    for wrong in [
        json!({}),
        json!({"action": "again"}),
        json!({"action": "retry", "output": {}}),
        json!({"action": "succeed", "error": "E"}),
        json!({"action": "fail", "output": {}}),
        json!({"action": "fail", "cause": "without a name"}),
    ] {
        assert_eq!(server.post(&own, wrong).await.code(), (400, "BadRequest"));
    }
    let retry = json!({"action": "retry"});
    assert_eq!(server.post(&path("x"), retry.clone()).await.code(), (400, "BadRequest"));
    assert_eq!(
        server.post(&path("999"), retry.clone()).await.code(),
        (404, "NoSuchEvent")
    );
    let before = event_of(&server, &id, "before").await.to_string();
    assert_eq!(
        server.post(&path(&before), retry.clone()).await.code(),
        (409, "NotManual")
    );
    let elsewhere = server.post("/v1/executions/none/steps/1/resolve", retry.clone()).await;
    assert_eq!(elsewhere.code(), (404, "NoSuchExecution"));
    let large = json!({"action": "succeed", "output": {"text": "x".repeat(300_000)}});
    assert_eq!(server.post(&own, large).await.code(), (413, "OutputTooLarge"));

    assert_eq!(server.post(&own, retry).await.status, 200);
    stands(&server, &id, "Manual").await;
    let paid = json!({"action": "succeed", "output": {"paid": true}, "note": "by phone"});
    assert_eq!(server.post(&own, paid.clone()).await.status, 200);
    let ended = stands(&server, &id, "Succeeded").await;
    assert_eq!(ended["output"]["paid"], true);
    let second = server.post(&own, paid).await;
    assert_eq!(second.code(), (409, "AlreadyResolved"));
    assert_eq!(
        (&second.body["by"], &second.body["action"]),
        (&json!("local"), &json!("succeed"))
    );
    let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
    let resolved: Vec<&Value> = (history["items"].as_array().unwrap().iter())
        .filter(|event| event["type"] == "ManualResolved")
        .collect();
    assert_eq!(resolved.len(), 2);
    assert_eq!(
        resolved[1]["detail"],
        json!({"action": "succeed", "by": "local", "output": {"paid": true}, "note": "by phone"})
    );
    let state = server.get(&format!("/v1/executions/{id}/state")).await.body;
    assert_eq!(state["machine"], 2);
}

#[tokio::test]
async fn an_answer_is_for_the_question_that_it_names() {
    let server = Running::start().await;
    let nobody = refusing();
    let target = format!("http://{}/pay", nobody.local_addr().unwrap());
    let pay = json!({"type": "task", "name": "pay", "resourceArn": target, "retry": [],
        "catch": [{"errors": ["FnF.ALL"], "manual": true}]});
    server.flow("f", json!([pay])).await;
    let id = started(&server, "f", json!({})).await;
    stands(&server, &id, "Manual").await;
    let event = event_of(&server, &id, "pay").await;
    let path = |event: &str| format!("/v1/executions/{id}/steps/{event}/resolve");
    let retry = json!({"action": "retry"});
    let asked = async || {
        let steps = server
            .get(&format!("/v1/executions/{id}/steps?status=manual"))
            .await
            .body;
        steps["items"][0]["waitingFor"]["request"].as_u64()
    };
    let first = asked().await.unwrap();
    assert_ne!(first, event);
    let answer = path(&first.to_string());
    assert_eq!(server.post(&answer, retry.clone()).await.status, 200);
    // The step asks again, and an answer to the first question is none to the second.
    while asked().await.is_none_or(|now| now == first) {}
    let late = server.post(&answer, json!({"action": "succeed"})).await;
    assert_eq!(late.code(), (409, "AlreadyResolved"), "{late:?}");
    assert_eq!(
        (
            &late.body["by"],
            &late.body["action"],
            late.body["resolvedTime"].is_string()
        ),
        (&json!("local"), &json!("retry"), true)
    );
    let answer = path(&asked().await.unwrap().to_string());
    assert_eq!(server.post(&answer, json!({"action": "succeed"})).await.status, 200);
    stands(&server, &id, "Succeeded").await;
}

#[tokio::test]
pub async fn undo_that_failed_is_skipped() {
    let server = Running::start().await;
    let nobody = refusing();
    let target = format!("http://{}/undo", nobody.local_addr().unwrap());
    let book = json!({"type": "task", "name": "book", "resourceArn": "queue:jobs",
        "rollback": {"resourceArn": target, "retry": []}});
    server
        .flow(
            "f",
            json!([book, {"type": "fail", "name": "no", "error": "Shop.No", "cause": "closed"}]),
        )
        .await;
    let id = started(&server, "f", json!({})).await;
    let hold = json!({"worker": "w", "waitSeconds": 20});
    let held = server.post("/v1/queues/jobs/hold", hold).await.body;
    let token = held["tasks"][0]["token"].as_str().unwrap();
    server
        .post(&format!("/v1/callbacks/{token}/succeed"), json!({"output": {}}))
        .await;
    let failed = stands(&server, &id, "RollbackFailed").await;
    assert_eq!(failed["rollback"]["step"], "book");
    let path = format!("/v1/executions/{id}/skip");
    let skipped = server.post(&path, json!({"cause": "called them"})).await;
    assert_eq!((skipped.status, &skipped.body["status"]), (200, &json!("Failed")));
    assert_eq!(skipped.body["error"], "Shop.No");
    assert!(skipped.body.get("rollback").is_none(), "{skipped:?}");
    assert_eq!(server.post(&path, json!({})).await.code(), (409, "NothingToSkip"));
    let history = server.get(&format!("/v1/executions/{id}/history")).await.body;
    let events = history["items"].as_array().unwrap();
    let event = events.iter().find(|event| event["type"] == "RollbackSkipped").unwrap();
    let call = events.iter().find(|event| event["type"] == "TaskScheduled").unwrap();
    assert_eq!(
        (&event["step"], &event["detail"]),
        (
            &json!("book"),
            &json!({"of": call["id"], "by": "local", "cause": "called them"})
        )
    );
}

#[tokio::test]
pub async fn redrive_gives_a_step_another_input() {
    let server = Running::start().await;
    let each = json!({"type": "foreach", "name": "all", "iterationMapping": {"collection": "$.items", "item": "n"},
        "outputMappings": [{"target": "seen", "source": "$local[*].n"}],
        "steps": [{"type": "pass", "name": "one", "outputMappings": [{"target": "n", "source": "$input.n"}]}]});
    server
        .flow("f", json!([{"type": "pass", "name": "before"}, each]))
        .await;
    let id = started(&server, "f", json!({"items": "none"})).await;
    stands(&server, &id, "Failed").await;
    let path = format!("/v1/executions/{id}/redrive");
    let (before, all) = (
        event_of(&server, &id, "before").await,
        event_of(&server, &id, "all").await,
    );
    for wrong in [
        json!(1),
        json!([1]),
        json!([{"event": all}]),
        json!([{"event": all, "input": 1}]),
    ] {
        assert_eq!(
            server.post(&path, json!({"inputs": wrong})).await.code(),
            (400, "BadRequest")
        );
    }
    let later = server.post(&path, json!({"input": {}})).await;
    assert_eq!(later.code(), (422, "NotSupported"));
    let refused = server
        .post(&path, json!({"inputs": [{"event": before, "input": {}}]}))
        .await;
    assert_eq!(refused.code(), (422, "NotEnteredAgain"));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains(&format!("began at event {all}")), "{detail}");
    let given = json!({"inputs": [{"event": all, "input": {"items": [3, 4]}}]});
    assert_eq!(server.post(&path, given).await.status, 200);
    let ended = stands(&server, &id, "Succeeded").await;
    assert_eq!(ended["output"]["seen"], json!([3, 4]));
    let audit = server.get("/v1/audit?action=redrive&limit=1").await.body;
    assert_eq!(audit["items"][0]["detail"], json!({"inputs": [all]}), "{audit}");
}

#[tokio::test]
pub async fn fork_runs_another_version_that_fits() {
    let server = Running::start().await;
    let pass = |name: &str, value: u64| json!({"type": "pass", "name": name, "outputMappings": [{"target": name, "source": value}]});
    server.flow("f", json!([pass("a", 1), pass("b", 1)])).await;
    server.flow("f", json!([pass("a", 1), pass("b", 2)])).await;
    let path = "/v1/flows/f/executions?wait=10";
    let first = server.post(path, json!({"version": 1})).await.body;
    let id = first["id"].as_str().unwrap();
    let b = event_of(&server, id, "b").await;
    let path = format!("/v1/executions/{id}/fork");
    let missing = server.post(&path, json!({"event": 1, "version": 9})).await;
    assert_eq!(missing.code(), (404, "NoSuchFlow"));
    let refused = server
        .post(&path, json!({"event": 1, "definition": definition(json!([]))}))
        .await;
    assert_eq!(refused.code(), (422, "InvalidDefinition"));
    let refused = server.post(&path, json!({"event": b, "version": 2})).await;
    assert_eq!(refused.code(), (422, "DefinitionDoesNotFit"));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(
        detail.ends_with("; a fork from an earlier event can have it"),
        "{detail}"
    );
    let (recorded, expected) = (&refused.body["recorded"], &refused.body["expected"]);
    assert_eq!(refused.body["event"], recorded["id"], "{refused:?}");
    assert_eq!(
        (&recorded["detail"]["output"], &expected["detail"]["output"]),
        (&json!({"b": 1}), &json!({"b": 2}))
    );
    let same = server.post(&path, json!({"event": b, "version": 1})).await;
    assert_eq!((same.status, &same.body["version"]), (201, &json!(1)), "{same:?}");
}

#[tokio::test]
async fn fork_has_another_input_where_nothing_before_depends_on_it() {
    let server = Running::start().await;
    let shown = json!({"type": "pass", "name": "b", "outputMappings": [{"target": "n", "source": "$input.n"}]});
    server.flow("f", json!([{"type": "pass", "name": "a"}, shown])).await;
    let first = server
        .post("/v1/flows/f/executions?wait=10", json!({"input": {"n": 1}}))
        .await
        .body;
    let id = first["id"].as_str().unwrap();
    let b = event_of(&server, id, "b").await;
    let path = format!("/v1/executions/{id}/fork");
    // All of it is one turn, whose events show the input.
    let refused = server.post(&path, json!({"event": b, "input": {"n": 2}})).await;
    assert_eq!(refused.code(), (422, "DefinitionDoesNotFit"));
    assert_eq!(refused.body["expected"]["detail"]["output"], json!({"n": 2}));
    let same = server.post(&path, json!({"event": b, "input": {"n": 1}})).await;
    assert_eq!((same.status, &same.body["input"]), (201, &json!({"n": 1})));

    server
        .flow("g", json!([{"type": "wait", "name": "w", "duration": 1}, shown]))
        .await;
    let old = server
        .post("/v1/flows/g/executions", json!({"input": {"n": 1}}))
        .await
        .body;
    let path = format!("/v1/executions/{}/fork", old["id"].as_str().unwrap());
    let fork = server.post(&path, json!({"event": 3, "input": {"n": 2}})).await.body;
    let fork = stands(&server, fork["id"].as_str().unwrap(), "Succeeded").await;
    assert_eq!((&fork["input"], &fork["output"]["n"]), (&json!({"n": 2}), &json!(2)));
}

#[tokio::test]
pub async fn fork_of_what_waits_goes_on_with_the_new_version() {
    let server = Running::start().await;
    let wait = json!({"type": "wait", "name": "w", "duration": 1});
    let after = |value: u64| json!({"type": "pass", "name": "p", "outputMappings": [{"target": "x", "source": value}]});
    server.flow("f", json!([wait, after(1)])).await;
    server.flow("f", json!([wait, after(2)])).await;
    let old = server.post("/v1/flows/f/executions", json!({"version": 1})).await.body;
    let path = format!("/v1/executions/{}/fork", old["id"].as_str().unwrap());
    let fork = server.post(&path, json!({"event": 4, "version": 2})).await.body;
    let fork = stands(&server, fork["id"].as_str().unwrap(), "Succeeded").await;
    assert_eq!((&fork["version"], &fork["output"]), (&json!(2), &json!({"x": 2})));
    let old = stands(&server, old["id"].as_str().unwrap(), "Succeeded").await;
    assert_eq!((&old["version"], &old["output"]), (&json!(1), &json!({"x": 1})));
}

#[tokio::test]
pub async fn redrive_goes_on_with_another_version_that_fits() {
    let server = Running::start().await;
    let with = |first: Value, pay: Value| json!([first, pay, {"type": "pass", "name": "end"}]);
    let first = |n: u32| json!({"type": "pass", "name": "first", "outputMappings": [{"target": "n", "source": n}]});
    let fails = json!({"type": "fail", "name": "pay", "error": "No.Money"});
    let pays = json!({"type": "pass", "name": "pay", "outputMappings": [{"target": "paid", "source": "yes"}]});
    server.flow("f", with(first(1), fails.clone())).await;
    let path = "/v1/flows/f/executions?wait=5";
    let failed = server.post(path, json!({})).await.body;
    assert_eq!(failed["status"], "Failed", "{failed}");
    for steps in [
        with(first(2), pays.clone()),
        with(first(1), json!({"type": "pass", "name": "other"})),
        with(first(1), pays),
    ] {
        assert_eq!(server.put("/v1/flows/f", definition(steps)).await.status, 201);
    }
    let id = failed["id"].as_str().unwrap();
    let path = format!("/v1/executions/{id}/redrive");
    let missing = server.post(&path, json!({"version": 9})).await;
    assert_eq!(missing.code(), (404, "NoSuchFlow"));
    let rubbish = server.post(&path, json!({"version": "newest"})).await;
    assert_eq!(rubbish.code(), (400, "BadRequest"));
    for version in [2, 3] {
        let refused = server.post(&path, json!({"version": version})).await;
        assert_eq!(refused.code(), (422, "DefinitionDoesNotFit"), "{refused:?}");
        assert!(refused.body["event"].as_u64().unwrap() > 1, "{refused:?}");
        assert!(refused.body["recorded"].is_object(), "{refused:?}");
    }
    assert_eq!(server.get(&format!("/v1/executions/{id}")).await.body["version"], 1);
    let redriven = server.post(&path, json!({"version": "latest"})).await;
    assert_eq!(
        (redriven.status, &redriven.body["version"]),
        (200, &json!(4)),
        "{redriven:?}"
    );
    let ended = stands(&server, id, "Succeeded").await;
    assert_eq!(
        (&ended["version"], &ended["output"]["paid"]),
        (&json!(4), &json!("yes")),
        "{ended}"
    );
    let history = server
        .get(&format!("/v1/executions/{id}/history?limit=1000"))
        .await
        .body;
    let events = history["items"].as_array().unwrap();
    let event = events
        .iter()
        .find(|event| event["type"] == "ExecutionRedriven")
        .unwrap();
    assert_eq!(event["detail"]["version"], 4, "{event}");
    let audit = server.get("/v1/audit?action=redrive&limit=1").await.body;
    assert_eq!(audit["items"][0]["detail"]["version"], 4, "{audit}");
    assert!(event["detail"]["definitionHash"].is_string(), "{event}");
    // An execution that succeeded is not redriven, with any version.
    assert_eq!(
        server.post(&path, json!({"version": 1})).await.code(),
        (409, "NotRedrivable")
    );
    // A fork of it runs its current version.
    let fork = server
        .post(&format!("/v1/executions/{id}/fork"), json!({"event": 3}))
        .await;
    assert_eq!((fork.status, &fork.body["version"]), (201, &json!(4)), "{fork:?}");
}

/// What an earlier redrive has done again need not fit, whichever version it was.
#[tokio::test]
async fn redrive_with_another_version_after_redrives_that_failed_again() {
    let server = Running::start().await;
    let with = |first: u32, pay: Value| {
        let first = json!({"type": "pass", "name": "first", "outputMappings": [{"target": "n", "source": first}]});
        json!([first, pay, {"type": "pass", "name": "end"}])
    };
    let fails = |error: &str| json!({"type": "fail", "name": "pay", "error": error});
    let pays = json!({"type": "pass", "name": "pay", "outputMappings": [{"target": "paid", "source": "yes"}]});
    let versions = [
        with(1, fails("No.Money")),
        with(1, fails("No.Card")),
        with(2, pays.clone()),
        with(1, pays),
    ];
    for steps in versions {
        assert_eq!(server.put("/v1/flows/f", definition(steps)).await.status, 201);
    }
    for earlier in [json!([{}]), json!([{"version": 2}]), json!([{}, {"version": 2}, {}])] {
        let failed = server
            .post("/v1/flows/f/executions?wait=5", json!({"version": 1}))
            .await
            .body;
        let id = failed["id"].as_str().unwrap();
        let path = format!("/v1/executions/{id}/redrive");
        for redrive in earlier.as_array().unwrap() {
            assert_eq!(server.post(&path, redrive.clone()).await.status, 200);
            stands(&server, id, "Failed").await;
        }
        let refused = server.post(&path, json!({"version": 3})).await;
        assert_eq!(refused.code(), (422, "DefinitionDoesNotFit"), "{earlier}");
        let redriven = server.post(&path, json!({"version": 4})).await;
        assert_eq!(redriven.status, 200, "{earlier}: {redriven:?}");
        let ended = stands(&server, id, "Succeeded").await;
        assert_eq!(ended["output"], json!({"n": 1, "paid": "yes"}));
    }
}

#[tokio::test]
async fn what_has_succeeded_is_not_undone_by_a_stop() {
    let server = Running::start().await;
    server.flow("f", json!([{"type": "pass", "name": "a"}])).await;
    let id = started(&server, "f", json!({})).await;
    stands(&server, &id, "Succeeded").await;
    for rollback in [false, true] {
        let stopped = server
            .post(&format!("/v1/executions/{id}/stop"), json!({"rollback": rollback}))
            .await;
        assert_eq!(stopped.code(), (409, "AlreadyEnded"), "{rollback}: {stopped:?}");
    }
    assert_eq!(stands(&server, &id, "Succeeded").await["error"], json!(null));
}
