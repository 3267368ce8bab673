use crate::harness::{Answer, Running, asleep, definition, refusing, sent};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
pub async fn the_same_start_again_is_the_same_execution() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let start = json!({"name": "one", "input": {"a": 1}, "labels": {"userId": "7"}});
    let first = server.post("/v1/flows/f/executions", start.clone()).await;
    assert_eq!((first.status, &first.body["status"]), (201, &json!("Running")));
    let again = server.post("/v1/flows/f/executions", start).await;
    assert_eq!((again.status, &again.body["id"]), (200, &first.body["id"]));
    let other = server
        .post("/v1/flows/f/executions", json!({"name": "one", "input": {"a": 2}}))
        .await;
    assert_eq!(other.code(), (409, "ExecutionAlreadyExists"));
    let id = first.body["id"].as_str().unwrap();
    assert_eq!(
        server.post(&format!("/v1/executions/{id}/stop"), json!({})).await.body["status"],
        "Stopped"
    );
    let ended = server
        .post(
            "/v1/flows/f/executions?wait=5",
            json!({"name": "one", "input": {"a": 1}}),
        )
        .await;
    assert_eq!(
        (ended.status, &ended.body["id"], &ended.body["status"]),
        (200, &json!(id), &json!("Stopped"))
    );
    for other in [
        json!({"name": "one", "input": {"a": 2}}),
        json!({"name": "one", "input": {"a": 1}, "version": 2}),
    ] {
        let other = server.post("/v1/flows/f/executions", other).await;
        assert_eq!(other.code(), (409, "ExecutionAlreadyExists"));
    }
    assert_eq!(
        server
            .post(&format!("/v1/executions/{id}/stop"), json!({}))
            .await
            .code(),
        (409, "AlreadyEnded")
    );
    let named = server.get("/v1/flows/f/executions/one").await;
    assert_eq!(
        (&named.body["id"], &named.body["error"]),
        (&json!(id), &json!("FnF.Stopped"))
    );
}

#[tokio::test]
async fn a_start_that_has_ended_is_answered_with_its_result() {
    let server = Running::start().await;
    server
        .flow(
            "f",
            json!([{"type": "pass", "name": "p", "outputMappings": [{"target": "x", "source": 1}]}]),
        )
        .await;
    let uuid = "0b9f7a3e-6a54-4c0e-9d1c-2a7f5b1e8c11";
    for name in ["7", uuid] {
        let start = json!({"name": name, "input": {"a": 1}});
        let first = server.post("/v1/flows/f/executions?wait=5", start.clone()).await;
        let again = server.post("/v1/flows/f/executions?wait=5", start.clone()).await;
        assert_eq!((first.status, again.status), (201, 200));
        assert_eq!(again.body["output"], first.body["output"]);
        assert_eq!(again.body["id"], first.body["id"]);
        let named = server.get(&format!("/v1/flows/f/executions/{name}")).await;
        assert_eq!(named.body["id"], first.body["id"]);
        // A batch has the same effect as its starts.
        let batch = server
            .post(
                "/v1/executions/batch",
                json!([{"flow": "f", "name": name, "input": {"a": 1}}]),
            )
            .await;
        assert_eq!(batch.body["items"][0]["status"], 200);
        // A name is not an id.
        assert_eq!(server.get(&format!("/v1/executions/{name}")).await.status, 404);
    }
    // An id is the name of an execution without a given name: no other execution gets it.
    let unnamed = server
        .post("/v1/flows/f/executions?wait=5", json!({"input": {"a": 1}}))
        .await;
    let taken = server
        .post(
            "/v1/flows/f/executions",
            json!({"name": unnamed.body["id"], "input": {}}),
        )
        .await;
    assert_eq!(taken.code(), (409, "ExecutionAlreadyExists"));
}

#[tokio::test]
async fn idempotent_start_of_one_name_starts_one() {
    let server = std::sync::Arc::new(Running::start().await);
    server.flow("f", asleep()).await;
    let mut starts = Vec::new();
    for _ in 0..20 {
        let server = server.clone();
        starts.push(tokio::spawn(async move {
            server.post("/v1/flows/f/executions", json!({"name": "one"})).await
        }));
    }
    let mut ids = Vec::new();
    let mut created = 0;
    for start in starts {
        let answer = start.await.unwrap();
        created += usize::from(answer.status == 201);
        ids.push(answer.body["id"].as_str().unwrap_or_default().to_owned());
    }
    ids.dedup();
    assert_eq!((created, ids.len()), (1, 1), "{ids:?}");
}

#[tokio::test]
async fn wait_answers_with_the_end_or_the_status() {
    let server = Running::start().await;
    server
        .flow("short", json!([{"type": "wait", "name": "w", "duration": 0.2}, {"type": "fail", "name": "no", "error": "Not.Today", "cause": "rain"}]))
        .await;
    let ended = server.post("/v1/flows/short/executions?wait=10", json!({})).await;
    assert_eq!(ended.body["status"], "Failed");
    assert_eq!(
        (&ended.body["error"], &ended.body["cause"], &ended.body["step"]),
        (&json!("Not.Today"), &json!("rain"), &json!("no"))
    );
    server.flow("long", asleep()).await;
    let running = server.post("/v1/flows/long/executions?wait=1", json!({})).await;
    assert_eq!((running.status, &running.body["status"]), (201, &json!("Running")));
    assert_eq!(
        server.post("/v1/flows/long/executions?wait=61", json!({})).await.status,
        400
    );
}

#[tokio::test]
pub async fn a_batch_answers_each_by_itself() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let batch = json!([{"flow": "f", "name": "a"}, {"flow": "none"}, {"flow": "f", "inputs": {}}, 7]);
    let answer = server.post("/v1/executions/batch", batch).await;
    let statuses: Vec<u64> = items(&answer.body)
        .iter()
        .map(|item| item["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 404, 400, 400]);
    assert!(
        answer.body["items"][2]["problem"]["detail"]
            .as_str()
            .unwrap()
            .contains("did you mean `input`?")
    );
}

/// Many times, since the starts of a batch are carried out at the same time.
#[tokio::test]
async fn first_of_a_batch_wins_its_key_and_its_name() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let several = |round: u32, member: &str, others: Value| -> Value {
        let entry = |n: u32| json!({"flow": "f", member: format!("{member}-{round}"), "labels": {"n": n.to_string()}});
        let mut entries: Vec<Value> = (0..8).map(entry).collect();
        entries.extend(others.as_array().cloned().unwrap_or_default());
        entries.into()
    };
    for round in 0..40 {
        for member in ["onceKey", "name"] {
            let other = json!([{"flow": "f", member: format!("{member}-{round}"), "input": {"x": 1}}]);
            let answer = server.post("/v1/executions/batch", several(round, member, other)).await;
            let items = items(&answer.body);
            let statuses: Vec<u64> = items.iter().map(|item| item["status"].as_u64().unwrap()).collect();
            // A name is bound to one input.
            let odd = if member == "name" { 409 } else { 200 };
            assert_eq!(statuses, [201, 200, 200, 200, 200, 200, 200, 200, odd], "{answer:?}");
            let first = &items[0]["execution"];
            assert_eq!(first["labels"]["n"], "0");
            assert!(items[1..8].iter().all(|item| item["execution"]["id"] == first["id"]));
        }
    }
}

#[tokio::test]
pub async fn lists_come_in_pages_and_by_what_is_asked() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    server.flow("g", json!([{"type": "pass", "name": "p"}])).await;
    for number in 0..5 {
        let start = json!({"name": format!("n{number}"), "labels": {"parity": (number % 2).to_string()}});
        server.post("/v1/flows/f/executions", start).await;
    }
    server.post("/v1/flows/g/executions?wait=5", json!({})).await;
    let mut names = Vec::new();
    let mut path = "/v1/executions?flow=f&limit=2".to_owned();
    loop {
        let page = server.get(&path).await;
        names.extend(
            items(&page.body)
                .iter()
                .map(|item| item["name"].as_str().unwrap().to_owned()),
        );
        match page.body["next"].as_str() {
            Some(next) => path = format!("/v1/executions?flow=f&limit=2&cursor={next}"),
            None => break,
        }
    }
    names.sort();
    assert_eq!(names, ["n0", "n1", "n2", "n3", "n4"]);
    let count = async |query: &str| items(&server.get(&format!("/v1/executions?{query}")).await.body).len();
    assert_eq!(count("status=Succeeded").await, 1);
    assert_eq!(count("status=Running,Succeeded").await, 6);
    assert_eq!(count("label=parity:1").await, 2);
    assert_eq!(count("name=n3").await, 1);
    assert_eq!(
        server.get("/v1/executions?status=Sleeping").await.code(),
        (400, "BadRequest")
    );
    assert_eq!(
        server.get("/v1/executions?state=Running").await.code(),
        (400, "BadRequest")
    );
}

#[tokio::test]
pub async fn rubbish_is_refused_with_words() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    for (body, word) in [
        ("[1]", "object"),
        ("{\"input\": 7}", "`input` must be an object"),
        ("{\"name\": \"no blanks\"}", "no name"),
        ("{\"labels\": {\"a\": 1}}", "`labels`"),
        ("{\"nmae\": \"x\"}", "did you mean `name`?"),
        ("{", "JSON"),
    ] {
        let response = server
            .raw(Method::POST, "/v1/flows/f/executions", Some(body.to_owned()))
            .await;
        let answer = Answer::of(response).await;
        assert_eq!(answer.code(), (400, "BadRequest"), "{body}");
        assert!(
            answer.body["detail"].as_str().unwrap().contains(word),
            "{body}: {answer:?}"
        );
    }
    let negative = server.post("/v1/flows/f/executions", json!({"version": -1})).await;
    assert_eq!(
        negative.body["detail"],
        "`version` must be a whole number from 0, not `-1`"
    );
    for path in [
        "/v1/flows/%ff",
        "/v1/flows/f/executions/%c3%28",
        "/v1/executions/%fe/history",
    ] {
        assert_eq!(server.get(path).await.code(), (400, "BadRequest"), "{path}");
    }
    let umlaut = server.get("/v1/flows/%C3%A4").await;
    assert_eq!(umlaut.code(), (404, "NoSuchFlow"));
    let schema = json!({"version": "v1", "type": "flow", "steps": asleep(),
        "inputSchema": {"type": "object", "required": ["id"]}});
    server.put("/v1/flows/s", schema).await;
    assert_eq!(
        server.post("/v1/flows/s/executions", json!({})).await.code(),
        (422, "InvalidInput")
    );
    assert_eq!(server.get("/v1/executions/none").await.code(), (404, "NoSuchExecution"));
    assert_eq!(server.get("/v1/nowhere").await.code(), (404, "NoSuchRoute"));
    assert_eq!(
        server.post("/healthz", json!({})).await.code(),
        (405, "MethodNotAllowed")
    );
}

#[tokio::test]
async fn child_is_started_and_waited_for() {
    let server = Running::start().await;
    server
        .flow(
            "child",
            json!([{"type": "pass", "name": "c", "outputMappings": [{"target": "twice", "source": "$input.n"}]}]),
        )
        .await;
    server
        .flow(
            "parent",
            json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync"}]),
        )
        .await;
    let ended = server
        .post("/v1/flows/parent/executions?wait=10", json!({"input": {"n": 3}}))
        .await;
    assert_eq!(ended.body["output"], json!({"twice": 3}), "{ended:?}");
    let children = server.get("/v1/executions?flow=child").await;
    assert_eq!(children.body["items"][0]["parent"]["execution"], ended.body["id"]);
}

fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap()
}

#[tokio::test]
pub async fn what_failed_goes_on_from_where_it_failed() {
    let server = Running::start().await;
    let nobody = refusing();
    let target = format!("http://{}/f", nobody.local_addr().unwrap());
    server
        .flow(
            "f",
            json!([{"type": "pass", "name": "before", "outputMappings": [{"target": "x", "source": 1}]},
            {"type": "task", "name": "call", "resourceArn": target}]),
        )
        .await;
    let failed = server.post("/v1/flows/f/executions?wait=10", json!({})).await;
    assert_eq!(
        (&failed.body["status"], &failed.body["error"]),
        (&json!("Failed"), &json!("HTTP.ConnectionFailed"))
    );
    let id = failed.body["id"].as_str().unwrap();
    let again = server.post(&format!("/v1/executions/{id}/redrive"), json!({})).await;
    assert_eq!(again.status, 200, "{again:?}");
    let ended = server.get(&format!("/v1/executions/{id}?wait=10")).await;
    assert_eq!(ended.body["status"], "Failed");
    let steps = server.get(&format!("/v1/executions/{id}/steps")).await;
    let names: Vec<&str> = items(&steps.body)
        .iter()
        .map(|row| row["step"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["before", "call", "call"]);
    server.flow("g", json!([{"type": "pass", "name": "p"}])).await;
    let well = server.post("/v1/flows/g/executions?wait=5", json!({})).await;
    let path = format!("/v1/executions/{}/redrive", well.body["id"].as_str().unwrap());
    let refused = server.post(&path, json!({})).await;
    assert_eq!(refused.code(), (409, "NotRedrivable"));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("stop one") && detail.contains("fork one"), "{detail}");
}

#[tokio::test]
pub async fn a_fork_goes_on_from_an_event_of_another() {
    let server = Running::start().await;
    server
        .flow("f", json!([{"type": "wait", "name": "w", "duration": 1}, {"type": "pass", "name": "p", "outputMappings": [{"target": "x", "source": 1}]}]))
        .await;
    let first = server
        .post("/v1/flows/f/executions?wait=10", json!({"name": "old"}))
        .await;
    assert_eq!(first.body["status"], "Succeeded");
    let path = format!("/v1/executions/{}/fork", first.body["id"].as_str().unwrap());
    assert_eq!(
        server.post(&path, json!({"event": 99})).await.code(),
        (404, "NoSuchEvent")
    );
    assert_eq!(server.post(&path, json!({})).await.code(), (400, "BadRequest"));
    let fork = server.post(&path, json!({"event": 4, "name": "new"})).await;
    assert_eq!(
        (fork.status, &fork.body["status"], &fork.body["name"]),
        (201, &json!("Running"), &json!("new")),
        "{fork:?}"
    );
    let ended = server
        .get(&format!("/v1/executions/{}?wait=10", fork.body["id"].as_str().unwrap()))
        .await;
    assert_eq!(
        (&ended.body["status"], &ended.body["output"]),
        (&json!("Succeeded"), &json!({"x": 1}))
    );
    assert_eq!(
        server.post(&path, json!({"event": 4, "name": "old"})).await.code(),
        (409, "ExecutionAlreadyExists")
    );
    assert_eq!(
        server.get("/v1/flows/f/executions/new").await.body["id"],
        fork.body["id"]
    );
}

#[tokio::test]
async fn execution_is_shown_without_its_data() {
    let server = Running::start().await;
    server.flow("f", asleep()).await;
    let begun = server.post("/v1/flows/f/executions", json!({"input": {"a": 1}})).await;
    let id = begun.body["id"].as_str().unwrap();
    let mut whole = server.get(&format!("/v1/executions/{id}")).await.body;
    let without = server.get(&format!("/v1/executions/{id}?data=none")).await;
    assert_eq!(whole.as_object_mut().unwrap().remove("input"), Some(json!({"a": 1})));
    assert_eq!((without.status, without.body), (200, whole));
    for wrong in ["data=all", "data=none&wait=1"] {
        let answer = server.get(&format!("/v1/executions/{id}?{wrong}")).await;
        assert_eq!(answer.code(), (400, "BadRequest"), "{wrong}");
    }
    assert_eq!(
        server.get("/v1/executions/x?data=none").await.code(),
        (404, "NoSuchExecution")
    );
}

#[tokio::test]
async fn fork_with_a_definition_that_fits_puts_it() {
    let server = Running::start().await;
    let steps = |last: &str| {
        json!([
            {"type": "pass", "name": "a", "outputMappings": [{"target": "n", "source": 1}]},
            {"type": "wait", "name": "w", "duration": 3600},
            {"type": "pass", "name": last},
        ])
    };
    server.flow("f", steps("b")).await;
    let started = server.post("/v1/flows/f/executions", json!({})).await.body;
    let path = format!("/v1/executions/{}/fork", started["id"].as_str().unwrap());
    // What was done would be another thing: nothing is kept.
    let mut other = definition(steps("b"));
    other["steps"][0]["outputMappings"][0]["source"] = json!(2);
    let refused = server.post(&path, json!({"event": 4, "definition": other})).await;
    assert_eq!(refused.code(), (422, "DefinitionDoesNotFit"), "{refused:?}");
    let wrong = server
        .post(&path, json!({"event": 4, "definition": {"version": "v1"}}))
        .await;
    assert_eq!(wrong.code(), (422, "InvalidDefinition"), "{wrong:?}");
    let both = json!({"event": 4, "version": 1, "definition": definition(steps("c"))});
    assert_eq!(server.post(&path, both).await.status, 400);
    let named = json!({"name": "first"});
    assert_eq!(server.post("/v1/flows/f/executions", named).await.status, 201);
    let body = json!({"event": 4, "name": "first", "definition": definition(steps("c"))});
    let taken = server.post(&path, body).await;
    assert_eq!(taken.code(), (409, "ExecutionAlreadyExists"), "{taken:?}");
    assert_eq!(server.get("/v1/flows/f").await.body["version"], 1);
    let text = definition(steps("c")).to_string();
    let forked = server.post(&path, json!({"event": 4, "definition": text})).await;
    assert_eq!((forked.status, &forked.body["version"]), (201, &json!(2)), "{forked:?}");
    assert_eq!(server.get("/v1/flows/f").await.body["version"], 2);
    let state = format!("/v1/executions/{}/history?limit=1", forked.body["id"].as_str().unwrap());
    let first = server.get(&state).await.body["items"][0]["detail"].clone();
    assert_eq!((&first["flow"], &first["version"]), (&json!("f"), &json!(2)), "{first}");
}

#[tokio::test]
async fn fork_with_a_definition_needs_the_right_to_put_it() {
    let server = Running::with(crate::access::access(), |_| {}).await;
    let body = json!({"event": 1, "definition": definition(asleep())}).to_string();
    for (scope, code) in [("operate", (403, "Forbidden")), ("admin", (404, "NoSuchExecution"))] {
        let request = server.request(Method::POST, "/v1/executions/x/fork");
        let request = request.bearer_auth(format!("token-{scope}")).body(body.clone());
        let answer = Answer::of(sent(request).await).await;
        assert_eq!(answer.code(), code, "{scope}");
    }
}
