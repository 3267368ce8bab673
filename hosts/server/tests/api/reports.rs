use crate::harness::{Answer, Running};
use crate::mailbox::{Mailbox, ended, eventually};
use serde_json::{Value, json};

async fn asked(names: &[&str]) -> (Running, Mailbox) {
    let server = Running::start().await;
    let mailbox = Mailbox::open().await;
    server.flow("f", json!([mailbox.ask("ask")])).await;
    for name in names {
        start(&server, name).await;
    }
    (server, mailbox)
}

async fn start(server: &Running, name: &str) {
    let started = server.post("/v1/flows/f/executions", json!({"name": name})).await;
    assert_eq!(started.status, 201, "{started:?}");
}

async fn report(server: &Running, reports: Vec<Value>) -> Answer {
    server.post("/v1/callbacks", json!({"reports": reports})).await
}

/// The status and code of each, in order.
fn results(answer: &Answer) -> Vec<(u64, &str)> {
    assert_eq!(answer.status, 200, "{answer:?}");
    let results = answer.body["results"].as_array().unwrap();
    results
        .iter()
        .map(|result| {
            (
                result["status"].as_u64().unwrap(),
                result["code"].as_str().unwrap_or_default(),
            )
        })
        .collect()
}

#[tokio::test]
pub async fn a_batch_is_answered_in_order_each_by_itself() {
    let (server, mailbox) = asked(&["a", "b", "c", "d"]).await;
    let [a, b, c, d] = [
        mailbox.token("a").await,
        mailbox.token("b").await,
        mailbox.token("c").await,
        mailbox.token("d").await,
    ];
    let forged = format!("{}x", d.get(..d.len() - 1).unwrap());
    let answer = report(
        &server,
        vec![
            json!({"token": b, "output": {"n": 1}}),
            json!({"token": "guess", "output": {}}),
            json!({"token": c, "heartbeat": true}),
            json!({"token": a, "error": "No.Thanks", "cause": "rain"}),
            json!({"token": b, "output": {"n": 2}}),
            json!({"token": forged, "output": {}}),
            json!({"token": d}),
            json!(7),
            json!({"output": {}}),
            json!({"token": c, "output": {"n": 3}}),
            json!({"token": c, "heartbeat": true}),
        ],
    )
    .await;
    assert_eq!(
        results(&answer),
        [
            (204, ""),
            (404, "InvalidToken"),
            (204, ""),
            (204, ""),
            (409, "TaskAlreadyCompleted"),
            (404, "InvalidToken"),
            (400, "BadReport"),
            (400, "BadReport"),
            (400, "BadReport"),
            (204, ""),
            (409, "TaskAlreadyCompleted"),
        ]
    );
    let failed = ended(&server, "f", "a").await;
    assert_eq!(
        (&failed["error"], &failed["cause"]),
        (&json!("No.Thanks"), &json!("rain"))
    );
    assert_eq!(ended(&server, "f", "b").await["output"], json!({"n": 1}));
    assert_eq!(ended(&server, "f", "c").await["output"], json!({"n": 3}));
    assert_eq!(server.get("/v1/flows/f/executions/d").await.body["status"], "Running");
}

#[tokio::test]
pub async fn an_entry_that_says_two_things_says_nothing() {
    let (server, mailbox) = asked(&["a"]).await;
    let token = mailbox.token("a").await;
    let answer = report(
        &server,
        vec![
            json!({"token": token, "output": {"n": 1}, "heartbeat": false}),
            json!({"token": token, "output": {"n": 1}, "error": "Both"}),
            json!({"token": token, "heartbeat": true, "error": "Both"}),
            json!({"token": token, "heartbeat": false}),
            json!({"token": token, "output": 7}),
            json!({"token": token, "error": 7}),
            json!({"token": token, "output": {}, "ouput": {}}),
        ],
    )
    .await;
    assert_eq!(results(&answer), [(400, "BadReport"); 7]);
    let hint = answer.body["results"][6]["detail"].as_str().unwrap();
    assert!(hint.contains("did you mean `output`?"), "{hint}");
    assert_eq!(server.get("/v1/flows/f/executions/a").await.body["status"], "Running");
    for (verb, body, word) in [
        ("succeed", json!({"approved": true}), "output"),
        ("succeed", json!({"output": 1}), "object"),
        ("fail", json!({"eror": "E"}), "did you mean `error`?"),
        ("fail", json!({}), "error"),
        ("finish", json!({}), "heartbeat"),
    ] {
        let answer = server.post(&format!("/v1/callbacks/{token}/{verb}"), body).await;
        assert_eq!(answer.code(), (400, "BadReport"), "{verb}: {answer:?}");
        assert!(answer.body["detail"].as_str().unwrap().contains(word), "{answer:?}");
    }
    assert_eq!(server.get("/v1/flows/f/executions/a").await.body["status"], "Running");
}

#[tokio::test]
async fn callback_report_may_come_before_the_answer() {
    let (server, mailbox) = asked(&[]).await;
    mailbox.close_door();
    start(&server, "early").await;
    let token = mailbox.token("early").await;
    let answer = report(&server, vec![json!({"token": token, "output": {"n": 1}})]).await;
    assert_eq!(results(&answer), [(204, "")]);
    assert_eq!(ended(&server, "f", "early").await["output"], json!({"n": 1}));
    mailbox.open_door();
    let answer = report(&server, vec![json!({"token": token, "error": "Late"})]).await;
    assert_eq!(results(&answer), [(409, "TaskAlreadyCompleted")]);
    assert_eq!(
        server.get("/v1/flows/f/executions/early").await.body["status"],
        "Succeeded"
    );
}

#[tokio::test]
async fn callback_report_for_a_call_given_up_is_refused() {
    let server = Running::start().await;
    let mailbox = Mailbox::open().await;
    let mut ask = mailbox.ask("ask");
    ask["timeoutSeconds"] = json!(1);
    ask["retry"] = json!([{"errors": ["FnF.TaskTimeout"], "intervalSeconds": 1, "maxAttempts": 1}]);
    server.flow("f", json!([ask])).await;
    start(&server, "a").await;
    let first = mailbox.token("a").await;
    let second = eventually("a second token", async || {
        let token = mailbox.token("a").await;
        (token != first).then_some(token)
    })
    .await;
    let answer = report(
        &server,
        vec![
            json!({"token": first, "heartbeat": true}),
            json!({"token": first, "output": {"n": 1}}),
            json!({"token": first, "output": {"n": 1}}),
            json!({"token": first, "error": "Late"}),
            json!({"token": first, "heartbeat": true}),
            json!({"token": second, "output": {"n": 2}}),
        ],
    )
    .await;
    // The late one is recorded once, and gets the same answer each time.
    let mut expected = vec![(410, "TaskTimedOut"); 5];
    expected.push((204, ""));
    assert_eq!(results(&answer), expected);
    assert_eq!(ended(&server, "f", "a").await["output"], json!({"n": 2}));
    let again = report(
        &server,
        vec![
            json!({"token": first, "output": {"n": 1}}),
            json!({"token": second, "output": {"n": 1}}),
        ],
    )
    .await;
    assert_eq!(results(&again), [(410, "TaskTimedOut"), (409, "TaskAlreadyCompleted")]);
    let id = server.get("/v1/flows/f/executions/a").await.body["id"].clone();
    let path = format!("/v1/executions/{}/history", id.as_str().unwrap());
    let history = server.get(&path).await.body;
    let late = |event: &&Value| event["type"] == "LateResultIgnored";
    assert_eq!(history["items"].as_array().unwrap().iter().filter(late).count(), 1);
}

#[tokio::test]
async fn rate_limit_counts_each_wrong_token_of_a_batch() {
    let (server, mailbox) = asked(&["a", "b"]).await;
    let wrong = |number: usize| json!({"token": format!("guess{number}"), "output": {}});
    let mut reports: Vec<Value> = (0..999).map(wrong).collect();
    reports.push(json!({"token": mailbox.token("a").await, "output": {"n": 1}}));
    let answer = report(&server, reports).await;
    let results = results(&answer);
    assert_eq!(results[..50], [(404, "InvalidToken"); 50]);
    assert_eq!(results[998], (429, "TooManyFailures"));
    // A sender with a valid token can use it, in the same batch or elsewhere.
    assert_eq!(results[999], (204, ""));
    assert_eq!(ended(&server, "f", "a").await["output"], json!({"n": 1}));
    let token = mailbox.token("b").await;
    let told = server
        .post(&format!("/v1/callbacks/{token}/succeed"), json!({"output": {}}))
        .await;
    assert_eq!(told.status, 204, "{told:?}");
    assert_eq!(server.get("/v1/flows").await.status, 200);
}

#[tokio::test]
pub async fn a_body_with_a_wrong_token_is_not_read() {
    let server = Running::start().await;
    // A malformed body, and one that is too large: the token is checked first.
    for body in ["nothing".to_owned(), "x".repeat(4 * 1024 * 1024)] {
        let path = "/v1/callbacks/guess/succeed";
        let answer = Answer::of(server.raw(reqwest::Method::POST, path, Some(body)).await).await;
        assert_eq!(answer.code(), (404, "InvalidToken"));
    }
}

#[tokio::test]
pub async fn a_batch_has_an_end() {
    let (server, mailbox) = asked(&["a"]).await;
    let token = mailbox.token("a").await;
    let beat = json!({"token": token, "heartbeat": true});
    let answer = report(&server, vec![beat.clone(); 1_001]).await;
    assert_eq!(answer.code(), (413, "TooManyReports"));
    let answer = report(&server, vec![beat; 1_000]).await;
    assert_eq!(results(&answer), vec![(204, ""); 1_000]);
    assert_eq!(report(&server, Vec::new()).await.body, json!({"results": []}));
    for body in [json!([]), json!({}), json!({"reports": {}}), json!({"report": []})] {
        assert_eq!(server.post("/v1/callbacks", body).await.code(), (400, "BadReport"));
    }
    assert_eq!(mailbox.count(), 1);
}

#[tokio::test]
async fn error_name_of_a_report_is_prefixed() {
    let (server, mailbox) = asked(&["own", "none"]).await;
    let reports = vec![
        json!({"token": mailbox.token("own").await, "error": "FnF.LimitExceeded", "cause": "says who?"}),
        json!({"token": mailbox.token("none").await, "error": ""}),
    ];
    assert_eq!(results(&report(&server, reports).await), [(204, ""), (204, "")]);
    let own = ended(&server, "f", "own").await;
    assert_eq!(
        (&own["error"], &own["cause"]),
        (&json!("Callback.FnF.LimitExceeded"), &json!("says who?"))
    );
    assert_eq!(ended(&server, "f", "none").await["error"], "Callback.Unnamed");
    for (name, error, kept) in [
        ("a", "FnF.ExecutionTimeout", "Operator.FnF.ExecutionTimeout"),
        ("b", "", "Operator.Unnamed"),
        ("c", "Enough", "Enough"),
    ] {
        start(&server, name).await;
        let id = server.get(&format!("/v1/flows/f/executions/{name}")).await.body["id"].clone();
        let path = format!("/v1/executions/{}/stop", id.as_str().unwrap());
        let stopped = server.post(&path, json!({"error": error})).await;
        assert_eq!(
            (stopped.status, &stopped.body["error"]),
            (200, &json!(kept)),
            "{stopped:?}"
        );
    }
}

#[tokio::test]
pub async fn log_of_a_report_is_shown_with_step_and_attempt() {
    let (server, mailbox) = asked(&["a", "b"]).await;
    let (a, b) = (mailbox.token("a").await, mailbox.token("b").await);
    let long = format!("{}ende\u{e9}\n", "x".repeat(70_000));
    let answer = report(
        &server,
        vec![
            json!({"token": a, "output": {}, "log": "one\ntwo\n"}),
            json!({"token": b, "error": "E", "cause": "c", "log": long}),
            json!({"token": b, "heartbeat": true, "log": "x"}),
            json!({"token": b, "output": {}, "log": 7}),
        ],
    )
    .await;
    let expected = [(204, ""), (204, ""), (409, "TaskAlreadyCompleted"), (400, "BadReport")];
    assert_eq!(results(&answer), expected);
    let id = ended(&server, "f", "a").await["id"].as_str().unwrap().to_owned();
    let logs = server.get(&format!("/v1/executions/{id}/logs")).await;
    let item = &logs.body["items"][0];
    assert_eq!(
        (item["step"].as_str(), item["attempt"].as_u64()),
        (Some("ask"), Some(1)),
        "{logs:?}"
    );
    assert_eq!(item["text"], "one\ntwo\n");
    assert!(logs.body["next"].is_null() && item["time"].is_string());
    let none = server.get(&format!("/v1/executions/{id}/logs?step=other")).await;
    assert_eq!(none.body["items"], json!([]));
    let id = ended(&server, "f", "b").await["id"].as_str().unwrap().to_owned();
    let logs = server.get(&format!("/v1/executions/{id}/logs?limit=1")).await.body;
    let text = logs["items"][0]["text"].as_str().unwrap();
    assert!(text.len() <= 65_536 && text.len() > 65_000 && text.ends_with("ende\u{e9}\n"));
    let next = logs["next"].as_u64().unwrap();
    let rest = server.get(&format!("/v1/executions/{id}/logs?from={next}")).await.body;
    assert_eq!(rest["items"], json!([]));
    for (path, status) in [("nobody/logs", 404), (&*format!("{id}/logs?limit=101"), 400)] {
        assert_eq!(
            server.get(&format!("/v1/executions/{path}")).await.status,
            status,
            "{path}"
        );
    }
}

#[tokio::test]
pub async fn operator_reports_without_the_token() {
    let server = Running::start().await;
    let mailbox = Mailbox::open().await;
    let steps = json!([{"type": "pass", "name": "before"}, mailbox.ask("ask"), mailbox.ask("again")]);
    server.flow("f", steps).await;
    start(&server, "a").await;
    let token = mailbox.token("a").await;
    let id = server.get("/v1/flows/f/executions/a").await.body["id"].clone();
    let id = id.as_str().unwrap();
    let steps = server.get(&format!("/v1/executions/{id}/steps")).await.body;
    let path = |place: usize| format!("/v1/executions/{id}/steps/{}/report", steps["items"][place]["event"]);
    for wrong in [
        json!({}),
        json!({"action": "retry"}),
        json!({"action": "succeed", "error": "E"}),
        json!({"action": "fail"}),
        json!({"action": "fail", "error": "E", "output": {}}),
        json!({"action": "succeed", "output": 7}),
        json!({"action": "succeed", "note": 7}),
    ] {
        assert_eq!(server.post(&path(1), wrong).await.code(), (400, "BadRequest"));
    }
    let succeed = json!({"action": "succeed", "output": {"n": 7}, "note": "by phone"});
    assert_eq!(server.post(&path(0), succeed.clone()).await.code(), (409, "NotAwaited"));
    let nowhere = format!("/v1/executions/{id}/steps/999/report");
    assert_eq!(
        server.post(&nowhere, succeed.clone()).await.code(),
        (404, "NoSuchEvent")
    );
    assert_eq!(server.post(&path(1), succeed.clone()).await.status, 200);
    let told = server.get("/v1/audit?action=report").await.body;
    assert_eq!(told["items"][0]["detail"]["note"], "by phone", "{told}");
    // The token comes too late, and so does a second operator.
    let late = server.post(&format!("/v1/callbacks/{token}/succeed"), json!({})).await;
    assert_eq!(late.code(), (409, "TaskAlreadyCompleted"));
    assert_eq!(server.post(&path(1), succeed).await.code(), (409, "NotAwaited"));
    let next = || async {
        let steps = server.get(&format!("/v1/executions/{id}/steps?step=again")).await.body;
        steps["items"][0]["event"].as_u64()
    };
    let event = eventually("a second question", next).await;
    let fail = json!({"action": "fail", "error": "Not.Now", "cause": "rain"});
    let failed = server
        .post(&format!("/v1/executions/{id}/steps/{event}/report"), fail)
        .await;
    assert_eq!(failed.status, 200, "{failed:?}");
    let end = ended(&server, "f", "a").await;
    assert_eq!((&end["error"], &end["cause"]), (&json!("Not.Now"), &json!("rain")));
    let audit = server.get(&format!("/v1/audit?action=report&object={id}")).await.body;
    assert_eq!(audit["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
pub async fn tasks_of_a_queue_are_listed_with_their_inputs_and_workers() {
    let server = Running::start().await;
    let work = json!([{"type": "task", "name": "work", "resourceArn": "queue:jobs"}]);
    server.flow("f", work).await;
    for name in ["a", "b"] {
        let start = json!({"name": name, "input": {"n": name}});
        assert_eq!(server.post("/v1/flows/f/executions", start).await.status, 201);
    }
    let waiting = || async {
        let list = server.get("/v1/queues/jobs/tasks").await.body;
        (list["items"].as_array()?.len() == 2).then_some(list)
    };
    let list = eventually("two tasks", waiting).await;
    let first = &list["items"][0];
    assert_eq!(
        (&first["name"], &first["step"], &first["input"]),
        (&json!("a"), &json!("work"), &json!({"n": "a"}))
    );
    assert_eq!(server.get("/v1/queues/jobs/workers").await.body["items"], json!([]));
    let held = server
        .post("/v1/queues/jobs/hold", json!({"worker": "w", "waitSeconds": 20}))
        .await;
    assert_eq!(held.body["tasks"].as_array().unwrap().len(), 1);
    let list = server.get("/v1/queues/jobs/tasks?state=held").await.body;
    assert_eq!(
        (&list["items"][0]["worker"], &list["items"][0]["input"]),
        (&json!("w"), &json!({"n": "a"}))
    );
    assert!(
        list["items"][0]["leaseUntil"].is_string() && !list.to_string().contains("token"),
        "{list}"
    );
    let workers = server.get("/v1/queues/jobs/workers").await.body;
    assert_eq!(
        (&workers["items"][0]["held"], &workers["items"][0]["polls"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(
        server.get("/v1/queues/jobs/tasks?state=dead").await.body["items"],
        json!([])
    );
    assert_eq!(
        server.get("/v1/queues/jobs/tasks?limit=0").await.code(),
        (400, "BadRequest")
    );
}
