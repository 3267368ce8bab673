//! Answers: large ones delay no other request, and all of them together are limited.

use crate::connections::{head, last_words, post, say};
use crate::harness::Running;
use crate::held::Held;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use starbridge_node::stores::in_memory;
use starbridge_server::{AnswerSettings, ServerSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A server whose answers may have this many bytes together, with a flow that sleeps.
async fn within(in_flight: usize) -> Running {
    over(in_flight, Held::over(in_memory())).await
}

async fn over(in_flight: usize, store: Arc<Held>) -> Running {
    let settings = ServerSettings {
        answers: AnswerSettings { in_flight },
        ..ServerSettings::default()
    };
    let server = Running::serving(settings, |node| node.store = store).await;
    // The step itself has none of the input, which may be too large for it.
    let asleep = json!({"type": "wait", "name": "w", "duration": 500, "inputMappings": [{"target": "n", "source": 1}]});
    server.flow("f", json!([asleep])).await;
    server
}

/// A request whose connection is closed after its answer.
fn last(request: &str) -> String {
    request.replace("host: localhost", "host: localhost\r\nconnection: close")
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

/// The working time of this thread; the rest of the machine does not affect it.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// The longest that this thread worked in one piece while something was done.
async fn longest_while(work: impl Future<Output = ()>) -> Duration {
    const OFTEN: Duration = Duration::from_millis(5);
    let over = Arc::new(AtomicBool::new(false));
    let seen = over.clone();
    let looking = tokio::spawn(async move {
        let mut longest = Duration::ZERO;
        while !seen.load(Ordering::Relaxed) {
            let before = worked();
            tokio::time::sleep(OFTEN).await;
            longest = longest.max(worked() - before);
        }
        longest
    });
    work.await;
    over.store(true, Ordering::Relaxed);
    looking.await.unwrap()
}

/// Server and clients share one thread here, so work on it delays all of them.
#[tokio::test]
async fn large_answers_block_nobody() {
    let server = within(usize::MAX).await;
    let zeros = format!("[{}0]", "0,".repeat(1_000_000));
    let start = format!("{{\"name\":\"big\",\"input\":{{\"a\":{zeros}}}}}");
    let post = |flow: &str| last(&post(&format!("/v1/flows/{flow}/executions"), start.len(), &start));
    for (request, status) in [
        (post("f"), "201"),
        (post("f"), "200"),
        (post("nobody"), "404"),
        (last(&get("/v1/flows/f/executions/big")), "200"),
        (last(&get("/v1/flows/f/executions/big")).replace("GET", "HEAD"), "200"),
        (last(&get("/v1/executions?limit=1")), "200"),
    ] {
        let begin = request.lines().next().unwrap().to_owned();
        let asking = async {
            let said = last_words(say(&server, &request).await).await;
            assert_eq!(said.get(9..12), Some(status), "{begin}");
        };
        let longest = longest_while(asking).await;
        assert!(longest < Duration::from_millis(700), "{begin}: {longest:?}");
    }
}

#[tokio::test]
pub async fn answers_have_a_budget_together() {
    const LARGE: usize = 20_000_000;
    let store = Held::over(in_memory());
    let server = over(LARGE + LARGE / 2, store.clone()).await;
    let start = |name: &str| json!({"name": name, "input": {"a": "x".repeat(LARGE)}});
    let begun = server.post("/v1/flows/f/executions", start("big")).await;
    assert_eq!(begun.status, 201);
    let path = format!("/v1/executions/{}", begun.body["id"].as_str().unwrap());
    // More than the system buffers for a connection.
    let mut untaken = say(&server, &get(&path)).await;
    assert!(head(&mut untaken).await.starts_with("HTTP/1.1 200"));
    let before = store.read();
    for part in ["", "/history"] {
        let refused = last_words(say(&server, &last(&get(&format!("{path}{part}")))).await).await;
        assert!(refused.contains("TooManyAnswers"), "{part}: {refused:.200}");
    }
    assert_eq!(store.read(), before, "what can't be answered is not read");
    for part in ["", "/state", "/history"] {
        let refused = last_words(say(&server, &last(&get(&format!("{path}{part}")))).await).await;
        assert!(
            refused.starts_with("HTTP/1.1 503") && refused.contains("TooManyAnswers"),
            "{part}: {refused:.200}"
        );
        assert!(refused.contains("retry-after: 1"), "{part}: {refused:.200}");
    }
    // A request that could not be answered is not begun.
    let refused = server.post("/v1/flows/f/executions", start("second")).await;
    assert_eq!(refused.code(), (503, "TooManyAnswers"));
    let second = server.get("/v1/flows/f/executions/second").await;
    assert_eq!(second.code(), (404, "NoSuchExecution"));
    // Small answers get through, and completed requests are answered.
    assert_eq!(server.post("/v1/flows/f/executions", json!({})).await.status, 201);
    let stopped = server.post(&format!("{path}/stop"), json!({})).await;
    assert_eq!((stopped.status, &stopped.body["status"]), (200, &json!("Stopped")));
    drop(untaken);
    // A single answer gets through with any budget.
    let mut refused = 0;
    while server.get(&path).await.status != 200 {
        refused += 1;
        assert!(refused < 100);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
