use crate::harness::{Running, definition};
use crate::held::Held;
use crate::mailbox::{Mailbox, ended, eventually};
use serde_json::json;
use starbridge_node::stores::in_memory;
use starbridge_server::Access;
use tokio::net::TcpListener;

/// Half of them wait for a time, the others for a report.
const EACH: usize = 25;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asleep_execution_is_left_to_the_store_and_comes_back() {
    let store = Held::over(in_memory());
    let kept = store.clone();
    let server = Running::with(Access::default(), |settings| {
        settings.store = kept;
        settings.hot_executions = 2;
        settings.owners = 1;
    })
    .await;
    let mailbox = Mailbox::open().await;
    let timed = json!([{"type": "wait", "name": "w", "duration": "$.seconds"}, {"type": "pass", "name": "p"}]);
    server.flow("timed", timed).await;
    server
        .flow("asked", json!([mailbox.ask("ask"), {"type": "pass", "name": "p"}]))
        .await;
    for number in 0..EACH {
        let seconds = 1 + number % 2;
        let start = json!({"name": format!("t{number}"), "input": {"seconds": seconds}});
        assert_eq!(server.post("/v1/flows/timed/executions", start).await.status, 201);
        let start = json!({"name": format!("a{number}")});
        assert_eq!(server.post("/v1/flows/asked/executions", start).await.status, 201);
    }
    for number in 0..EACH {
        mailbox.token(&format!("a{number}")).await;
    }
    looked_at_while_asleep(&server).await;
    let before = store.loaded();
    for number in 0..EACH {
        let path = format!("/v1/callbacks/{}/succeed", mailbox.token(&format!("a{number}")).await);
        let body = json!({"output": {"number": number}});
        // A second report, after the execution was left to the store again, gets the corresponding
        // answer.
        assert_eq!(server.post(&path, body.clone()).await.status, 204);
        assert_eq!(server.post(&path, body).await.code(), (409, "TaskAlreadyCompleted"));
    }
    // Each came from the store, except at most two that were still in memory.
    assert!(store.loaded() >= before + EACH - 2, "{before}, {}", store.loaded());
    for number in 0..EACH {
        let asked = ended(&server, "asked", &format!("a{number}")).await;
        assert_eq!(
            (&asked["status"], &asked["output"]),
            (&json!("Succeeded"), &json!({"number": number}))
        );
        assert_eq!(
            ended(&server, "timed", &format!("t{number}")).await["status"],
            "Succeeded"
        );
    }
    for flow in ["timed", "asked"] {
        let list = server
            .get(&format!("/v1/executions?flow={flow}&status=Succeeded"))
            .await;
        assert_eq!(list.body["items"].as_array().unwrap().len(), EACH);
    }
}

/// State, history and steps of the one that was put to sleep first, which is no longer in memory.
async fn looked_at_while_asleep(server: &Running) {
    let path = eventually("a call that is submitted", async || {
        let shown = server.get("/v1/flows/asked/executions/a0").await;
        let path = format!("/v1/executions/{}", shown.body["id"].as_str().unwrap());
        let history = server.get(&format!("{path}/history")).await;
        let items = history.body["items"].as_array().unwrap();
        items
            .iter()
            .any(|event| event["type"] == "TaskSubmitted")
            .then_some(path)
    })
    .await;
    let state = server.get(&format!("{path}/state")).await;
    assert_eq!(
        (state.status, &state.body["steps"][0]["step"]),
        (200, &json!("ask")),
        "{state:?}"
    );
    let steps = server.get(&format!("{path}/steps")).await;
    assert_eq!(steps.body["items"][0]["step"], "ask", "{steps:?}");
    assert_eq!(server.get(&path).await.body["status"], "Running");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn asleep_parents_and_children_are_left_to_the_store() {
    let server = Running::with(Access::default(), |settings| {
        settings.hot_executions = 0;
        settings.owners = 2;
    })
    .await;
    let mailbox = Mailbox::open().await;
    server
        .flow(
            "child",
            json!([{"type": "wait", "name": "w", "duration": 1}, mailbox.ask("ask")]),
        )
        .await;
    let call = json!([{"type": "task", "name": "call", "resourceArn": "flow:child", "pattern": "sync",
        "serviceParams": {"ExecutionName": "$.child"}, "inputMappings": [{"target": "child", "source": "$input.child"}]}]);
    assert_eq!(server.put("/v1/flows/parent", definition(call)).await.status, 201);
    for number in 0..10 {
        let start = json!({"name": format!("p{number}"), "input": {"child": format!("c{number}")}});
        assert_eq!(server.post("/v1/flows/parent/executions", start).await.status, 201);
    }
    for number in 0..10 {
        let token = mailbox.token(&format!("c{number}")).await;
        let body = json!({"output": {"number": number}});
        assert_eq!(
            server
                .post(&format!("/v1/callbacks/{token}/succeed"), body)
                .await
                .status,
            204
        );
    }
    for number in 0..10 {
        let parent = ended(&server, "parent", &format!("p{number}")).await;
        assert_eq!(
            (&parent["status"], &parent["output"]["number"]),
            (&json!("Succeeded"), &json!(number)),
            "{parent}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
pub async fn large_executions_have_room_together() {
    const ROOM: usize = 512 << 10;
    let store = Held::over(in_memory());
    let kept = store.clone();
    let server = Running::with(Access::default(), |settings| {
        settings.store = kept;
        settings.hot_bytes = ROOM;
        settings.owners = 1;
    })
    .await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let call = format!("http://{}/f", silent.local_addr().unwrap());
    let call = json!([{"type": "task", "name": "call", "resourceArn": call}]);
    server.flow("call", call).await;
    let wait = json!([{"type": "wait", "name": "w", "duration": 3600}]);
    server.flow("wait", wait).await;
    let fail = json!([{"type": "fail", "name": "f", "error": "No"}]);
    server.flow("fail", fail).await;
    let text = "x".repeat(ROOM * 2 / 5);
    let start = async |flow: &str, name: &str| {
        let start = json!({"name": name, "input": {"text": text}});
        server.post(&format!("/v1/flows/{flow}/executions"), start).await
    };

    // Those that only wait make room for others, and are read when they are needed.
    for number in 0..8 {
        let start = start("wait", &format!("w{number}")).await;
        assert_eq!(start.status, 201, "{start:?}");
    }
    let before = store.loaded();
    let first = server.get("/v1/flows/wait/executions/w0").await;
    assert_eq!(first.body["status"], "Running", "{}", first.body["error"]);
    let first = format!("/v1/executions/{}", first.body["id"].as_str().unwrap());
    let stop = server.post(&format!("{first}/stop"), json!({})).await;
    assert_eq!(stop.status, 200, "{stop:?}");
    assert!(store.loaded() > before);

    // Those that run can't make room.
    let failed = server
        .post("/v1/flows/fail/executions?wait=20", json!({"name": "f"}))
        .await;
    let failed = format!("/v1/executions/{}", failed.body["id"].as_str().unwrap());
    let large = start("fail", "large").await;
    let large = format!("/v1/executions/{}", large.body["id"].as_str().unwrap());
    assert_eq!(ended(&server, "fail", "large").await["status"], "Failed");
    let mut running = Vec::new();
    for number in 0..3 {
        let start = start("call", &format!("c{number}")).await;
        assert_eq!(start.status, 201, "{start:?}");
        running.push(format!("/v1/executions/{}", start.body["id"].as_str().unwrap()));
    }
    let full = (503, "TooManyLargeExecutions");
    assert_eq!(start("wait", "late").await.code(), full);
    assert_eq!(server.post(&format!("{large}/redrive"), json!({})).await.code(), full);
    assert_eq!(server.post(&format!("{failed}/redrive"), json!({})).await.status, 200);
    assert_eq!(
        server.post(&format!("{failed}/fork"), json!({"event": 1})).await.code(),
        full
    );
    let small = json!({"name": "small"});
    assert_eq!(server.post("/v1/flows/wait/executions", small).await.status, 201);
    for path in &running {
        assert_eq!(server.post(&format!("{path}/stop"), json!({})).await.status, 200);
    }
    assert_eq!(start("wait", "late").await.status, 201);
    assert_eq!(server.post(&format!("{large}/redrive"), json!({})).await.status, 200);
}

/// The names of so many executions of a flow. Those with a timer are started only as long as there is room.
async fn started(server: &Running, flow: &str, many: usize, text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for number in 0..many {
        let name = format!("{flow}{number}");
        let start = json!({"name": name, "input": {"text": text}});
        let path = format!("/v1/flows/{flow}/executions");
        let status = async || server.post(&path, start.clone()).await.status;
        // On a slow machine the first ones go on before the last ones begin; calls to the first mailbox are soon answered.
        if flow == "timed" {
            if status().await == 503 {
                break;
            }
        } else {
            eventually("a start", async || (status().await == 201).then_some(())).await;
        }
        names.push(name);
    }
    names
}

/// Executions of which three have room; what they call does not answer before the door is opened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_executions_come_back_as_there_is_room() {
    const ROOM: usize = 512 << 10;
    const MANY: usize = 8;
    const FIT: usize = 3;
    let server = Running::with(Access::default(), |settings| {
        settings.hot_bytes = ROOM;
        settings.owners = 1;
    })
    .await;
    let (mailbox, first) = (Mailbox::open().await, Mailbox::open().await);
    let wait = json!({"type": "wait", "name": "w", "duration": 1,
        "inputMappings": [{"target": "n", "source": 1}]});
    server.flow("timed", json!([wait, mailbox.ask("ask")])).await;
    server
        .flow("asked", json!([first.ask("first"), mailbox.ask("ask")]))
        .await;
    let mut queued = definition(json!([mailbox.ask("ask")]));
    queued["concurrency"] = json!([{"key": "one", "limit": 1}]);
    assert_eq!(server.put("/v1/flows/queued", queued).await.status, 201);
    let text = "x".repeat(ROOM * 2 / 5);
    let report = async |of: &Mailbox, name: &str| {
        let path = format!("/v1/callbacks/{}/succeed", of.token(name).await);
        server.post(&path, json!({})).await
    };
    for flow in ["timed", "asked", "queued"] {
        mailbox.close_door();
        let before = mailbox.count();
        let mut names = started(&server, flow, MANY, &text).await;
        match flow {
            "asked" => {
                let mut taken = 0;
                for name in &names {
                    let reported = report(&first, name).await;
                    assert!(matches!(reported.status, 204 | 503), "{reported:?}");
                    taken += usize::from(reported.status == 204);
                }
                assert!((FIT..=FIT + 1).contains(&taken), "{taken}");
            }
            "queued" => {
                let more = server.put("/v1/keys/queued/one", json!({"limit": 100})).await;
                assert_eq!(more.status, 200, "{more:?}");
            }
            _ => {}
        }
        let called = || mailbox.count() - before;
        eventually("calls", async || (called() >= FIT).then_some(())).await;
        // Time for calls that must not come.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        assert!((FIT..=FIT + 1).contains(&called()), "{flow}: {}", called());
        // A small one is not held up, and a stop of one that is held off neither.
        let small = format!("small-{flow}");
        let begun = server.post("/v1/flows/asked/executions", json!({"name": small})).await;
        assert_eq!(begun.status, 201, "{begun:?}");
        first.token(&small).await;
        let last = names.pop().unwrap();
        let last = server.get(&format!("/v1/flows/{flow}/executions/{last}")).await;
        let last = format!("/v1/executions/{}/stop", last.body["id"].as_str().unwrap());
        assert_eq!(server.post(&last, json!({})).await.status, 200);
        mailbox.open_door();
        for name in &names {
            if flow == "asked" {
                let taken = async || (report(&first, name).await.status != 503).then_some(());
                eventually("a report that is taken", taken).await;
            }
            let taken = async || (report(&mailbox, name).await.status == 204).then_some(());
            eventually("a report that is taken", taken).await;
            assert_eq!(ended(&server, flow, name).await["status"], "Succeeded");
        }
    }
}
