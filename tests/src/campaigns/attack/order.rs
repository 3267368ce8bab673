//! What makes others wait: circles of starts that wait for each other, resumes with much to do, and test files whose times no
//! run can have.

use super::server::Ground;
use super::{Seen, Try};
use serde_json::{Value, json};
use std::process::Command;

pub(super) const TRIES: &[Try] = &[
    Try::quick(
        "order/circle",
        "four circles of three starts, each behind 1,000 starts that wait for one slot",
        "each start that closes one is refused with 422 `DependencyCycle`",
        |ground| Box::pin(circle(ground)),
    ),
    Try::slow(
        "order/resume",
        "an execution with 200 tasks of 100 KB in a queue is paused and resumed",
        "each task can be held once afterwards, and none before",
        |ground| Box::pin(resume(ground)),
    ),
    Try::quick(
        "order/test-times",
        "test files with times that are negative, huge or no numbers",
        "exit 2 with the place of each",
        |ground| Box::pin(test_times(ground)),
    ),
];

async fn circle(ground: Ground) -> Result<Seen, String> {
    const CIRCLES: usize = 4;
    let server = ground.server().await?;
    let flow = json!({"version": "v1", "type": "flow", "concurrency": [{"key": "one", "limit": 1}],
        "steps": [{"type": "wait", "name": "w", "duration": 3600}]});
    server.put("/v1/flows/f", &flow).await.well("the flow")?;
    let mut wrong = Vec::new();
    for circle in 0..CIRCLES {
        let batch: Vec<Value> = (0..1_000).map(|_| json!({"flow": "f"})).collect();
        server
            .post("/v1/executions/batch", &json!(batch))
            .await
            .well("a batch")?;
        for (name, after, wanted) in [("a", "b", 201), ("b", "c", 201), ("c", "a", 422)] {
            let start = json!({"name": format!("{name}{circle}"), "after": [format!("{after}{circle}")]});
            let answer = server.post("/v1/flows/f/executions", &start).await;
            let is_named = wanted == 201 || answer.json()["code"] == "DependencyCycle";
            if answer.status != wanted || !is_named {
                wrong.push(format!("{name}{circle}: {} {}", answer.status, answer.text));
            }
        }
    }
    Ok(Seen::unless(&wrong, format!("{CIRCLES} refused at the start")))
}

async fn resume(ground: Ground) -> Result<Seen, String> {
    const TASKS: usize = 200;
    let server = ground.server().await?;
    let task = json!({"type": "task", "name": "t", "resourceArn": "queue:q",
        "inputMappings": [{"target": "x", "source": "$input.n"}]});
    let all = json!({"type": "foreach", "name": "all", "concurrency": TASKS, "steps": [task],
        "iterationMapping": {"collection": "$.items", "item": "n"}});
    server.flow("f", &json!([all])).await?;
    let items: Vec<String> = (0..TASKS)
        .map(|number| format!("{number:03}{}", "x".repeat(100 << 10)))
        .collect();
    let id = server.start("f", &json!({"items": items})).await?;
    while server.get("/v1/queues/q").await.json()["waiting"] != TASKS {
        super::server::pause(50).await;
    }
    let hold = json!({"worker": "w", "limit": 1, "waitSeconds": 0});
    let act = |act: &'static str| format!("/v1/executions/{id}/{act}");
    server.post(&act("pause"), &json!({})).await.well("the pause")?;
    let mut wrong = Vec::new();
    let held = server.post("/v1/queues/q/hold", &hold).await.json();
    if held["tasks"] != json!([]) {
        wrong.push("a task of a paused execution is held".to_owned());
    }
    server.post(&act("resume"), &json!({})).await.well("the resume")?;
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..TASKS {
        let held = server.post("/v1/queues/q/hold", &hold).await.json();
        let key = held["tasks"][0]["key"].as_str().unwrap_or_default().to_owned();
        if key.is_empty() || !keys.insert(key.clone()) {
            wrong.push(format!("the task `{key}` is there again, or none"));
        }
    }
    if server.post("/v1/queues/q/hold", &hold).await.json()["tasks"] != json!([]) {
        wrong.push("there are more tasks than before".to_owned());
    }
    Ok(Seen::unless(&wrong, format!("{TASKS} tasks held, each once")))
}

async fn test_times(ground: Ground) -> Result<Seen, String> {
    let flow =
        r#"{"version": "v1", "type": "flow", "steps": [{"type": "task", "name": "t", "resourceArn": "http://x/y"}]}"#;
    let write = |name: &str, text: &str| std::fs::write(ground.path(name), text).map_err(|error| error.to_string());
    write("f.json", flow)?;
    let mut wrong = Vec::new();
    let members = [
        r#""mocks": {"t": [{"result": {}, "delaySeconds": TIME}]}"#,
        r#""mocks": {"t": [{"error": "E", "retryAfterSeconds": TIME}]}"#,
        r#""stop": {"atSeconds": TIME}"#,
        r#""pause": {"atSeconds": TIME}"#,
        r#""pause": {"atSeconds": 0, "forSeconds": TIME}"#,
        r#""expect": {"elapsedSeconds": TIME}"#,
    ];
    let times = [
        "-1",
        "-0.5",
        "1e18",
        "1e308",
        "1e400",
        "18446744073709551616",
        "\"1\"",
        "[]",
    ];
    for (member, time) in members.iter().flat_map(|member| times.map(|time| (member, time))) {
        let case = member.replace("TIME", time);
        write(
            "f.test.json",
            &format!(r#"{{"flow": "f.json", "cases": [{{"name": "a", {case}}}]}}"#),
        )?;
        let mut test = Command::new(ground.program());
        let ran = test.arg("test").arg(ground.path("f.test.json")).output();
        let ran = ran.map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&ran.stderr);
        if ran.status.code() != Some(2) || !said.contains("line 1, column ") {
            wrong.push(format!("{case}: {:?} {said}", ran.status.code()));
        }
    }
    let tried = members.len() * times.len();
    Ok(Seen::unless(&wrong, format!("{tried} refused with their places")))
}
