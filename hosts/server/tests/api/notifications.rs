//! Notifications, from the change of a status to the target.

use crate::harness::{Running, asleep, refusing};
use crate::held::Held;
use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};
use starbridge_flow::time::Timestamp;
use starbridge_node::node::{NodeSettings, ShownTarget};
use starbridge_node::notify::{Target, TargetConfig, signature};
use starbridge_node::stores::in_memory;
use starbridge_ports::{Secret, Secrets, Store};
use starbridge_server::Access;
use std::io::Write;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;

const KEY: &str = "canary-8e1f07";

struct Cage;

impl Secrets for Cage {
    fn get(&self, name: &str) -> Option<Secret> {
        (name == "KEY").then(|| Secret::new(KEY))
    }
}

/// A delivery: its path, its headers, and its body as it was sent.
#[derive(Clone, Debug)]
struct Came {
    path: String,
    headers: HeaderMap,
    body: String,
}

/// Takes notifications, and answers calls of flows: `/silent` never answers, `/slow` after a while.
#[derive(Default)]
struct Receiver {
    came: Mutex<Vec<Came>>,
    /// Paths at which the next delivery is refused.
    refusing: Mutex<Vec<&'static str>>,
}

impl Receiver {
    async fn start() -> (Arc<Self>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let receiver = Arc::new(Self::default());
        receiver.clone().listen(listener);
        (receiver, address)
    }

    fn listen(self: Arc<Self>, listener: TcpListener) {
        let router = Router::new().fallback(Self::take).with_state(self);
        tokio::spawn(async move { axum::serve(listener, router).await });
    }

    async fn take(
        State(own): State<Arc<Self>>,
        uri: Uri,
        headers: HeaderMap,
        body: String,
    ) -> (StatusCode, &'static str) {
        let path = uri.path().to_owned();
        own.came.lock().unwrap().push(Came {
            path: path.clone(),
            headers,
            body,
        });
        match path.as_str() {
            "/silent" => std::future::pending().await,
            "/slow" => tokio::time::sleep(Duration::from_millis(100)).await,
            _ => {}
        }
        let mut refusing = own.refusing.lock().unwrap();
        match refusing.iter().position(|refused| *refused == path) {
            Some(place) => {
                refusing.remove(place);
                (StatusCode::INTERNAL_SERVER_ERROR, "")
            }
            None => (StatusCode::OK, "{}"),
        }
    }

    fn at(&self, path: &str) -> Vec<Came> {
        let came = self.came.lock().unwrap();
        came.iter().filter(|came| came.path == path).cloned().collect()
    }

    /// The statuses of an execution that were delivered to a path, in order.
    fn statuses(&self, path: &str, execution: &str) -> Vec<String> {
        let came = self.at(path).into_iter().map(|came| came.message());
        let of = came.filter(|message| message["execution"] == execution);
        of.map(|message| message["status"].as_str().unwrap().to_owned())
            .collect()
    }
}

impl Came {
    fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

fn target(name: &str, to: String, statuses: &[&str]) -> Target {
    let config = TargetConfig {
        name: name.to_owned(),
        secret: if to.starts_with("http") { "secret://KEY" } else { "" }.to_owned(),
        to,
        statuses: statuses.iter().map(|&word| word.to_owned()).collect(),
        events: Vec::new(),
    };
    Target::read(&config).unwrap()
}

/// A server that notifies these paths of a receiver about all statuses.
async fn telling(address: SocketAddr, paths: &[&str]) -> Running {
    let targets = paths
        .iter()
        .map(|path| target(path, format!("http://{address}/{path}"), &[]));
    let targets: Vec<Target> = targets.collect();
    with(|settings| settings.notifications = targets).await
}

async fn with(change: impl FnOnce(&mut NodeSettings)) -> Running {
    let change = |settings: &mut NodeSettings| {
        settings.secrets = Arc::new(Cage);
        change(settings);
    };
    Running::with(Access::default(), change).await
}

/// Starts an execution and returns its id.
async fn start(server: &Running, flow: &str, wait: u32) -> String {
    let path = format!("/v1/flows/{flow}/executions?wait={wait}");
    let started = server.post(&path, json!({})).await;
    assert!(started.status < 300, "{started:?}");
    started.body["id"].as_str().unwrap().to_owned()
}

async fn until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(30), "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn shown(server: &Running, name: &str) -> ShownTarget {
    let all = server.node.notifications().unwrap();
    all.into_iter().find(|target| target.name == name).unwrap()
}

fn passes() -> Value {
    json!([{"type": "pass", "name": "p"}])
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_of_each_change_in_order() {
    let (receiver, address) = Receiver::start().await;
    let server = telling(address, &["hook"]).await;
    let work = |name: &str| {
        json!({"type": "task", "name": name, "resourceArn": format!("http://{address}/{name}"),
        "serviceParams": {"headers": {"X-Key": "secret://KEY"}}})
    };
    let mut undone = work("work");
    undone["rollback"] = json!({"resourceArn": format!("http://{address}/undo")});
    let fail = json!({"type": "fail", "name": "no", "error": "Out.OfStock", "cause": "none left"});
    server.flow("well", json!([work("work")])).await;
    server.flow("badly", json!([fail])).await;
    server.flow("undone", json!([undone, fail])).await;
    server.flow("stopped", asleep()).await;

    let mut expected = Vec::new();
    expected.push((start(&server, "well", 20).await, vec!["Running", "Succeeded"]));
    expected.push((
        start(&server, "undone", 20).await,
        vec!["Running", "RollingBack", "Failed"],
    ));
    let stopped = start(&server, "stopped", 0).await;
    let stop = format!("/v1/executions/{stopped}/stop");
    assert!(server.post(&stop, json!({"error": "Not.Wanted"})).await.status < 300);
    expected.push((stopped, vec!["Running", "Stopped"]));
    // It has ended within its first turn, which is one change.
    let failed = start(&server, "badly", 20).await;
    expected.push((failed.clone(), vec!["Failed"]));
    for (execution, statuses) in &expected {
        until("all is told", || {
            receiver.statuses("/hook", execution).len() >= statuses.len()
        })
        .await;
        assert_eq!(receiver.statuses("/hook", execution), *statuses);
    }
    let came = receiver.at("/hook");
    for came in &came {
        let (message, signed) = (came.message(), came.header("starbridge-signature"));
        assert_eq!(came.header("idempotency-key"), message["id"]);
        let seconds = signed
            .strip_prefix("t=")
            .and_then(|rest| rest.split_once(','))
            .unwrap()
            .0;
        let sent = Timestamp(seconds.parse::<i64>().unwrap() * 1_000);
        assert_eq!(signed, signature(KEY, sent, &came.body));
        assert!(!came.body.contains(KEY) && !format!("{:?}", came.headers).contains(KEY));
    }
    let last = came
        .iter()
        .map(Came::message)
        .find(|message| message["execution"] == failed);
    let mut last = last.unwrap();
    let time = last["time"].take();
    assert!(Timestamp::parse(time.as_str().unwrap()).is_some());
    let id = format!("{failed}/{}", last["id"].as_str().unwrap().rsplit('/').next().unwrap());
    assert_eq!(
        last,
        json!({"id": id, "execution": failed, "flow": "badly", "name": failed, "version": 1, "status": "Failed",
            "error": "Out.OfStock", "cause": "none left", "step": "no", "time": null})
    );
    until("nothing is left", || shown(&server, "hook").waiting == 0).await;
    assert_eq!(shown(&server, "hook").told, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_of_a_redrive_and_a_fork() {
    let (receiver, address) = Receiver::start().await;
    let server = telling(address, &["hook"]).await;
    let steps = json!([
        {"type": "pass", "name": "p"},
        {"type": "task", "name": "t", "resourceArn": format!("http://{address}/work"), "retry": []}
    ]);
    server.flow("f", steps).await;
    receiver.refusing.lock().unwrap().push("/work");
    let first = start(&server, "f", 0).await;
    until("it has failed", || {
        receiver.statuses("/hook", &first).contains(&"Failed".to_owned())
    })
    .await;
    let redriven = server.post(&format!("/v1/executions/{first}/redrive"), json!({})).await;
    assert!(redriven.status < 300, "{redriven:?}");
    let told = ["Running", "Failed", "Running", "Succeeded"];
    until("it has gone on", || {
        receiver.statuses("/hook", &first).len() >= told.len()
    })
    .await;
    assert_eq!(receiver.statuses("/hook", &first), told);
    let forked = server
        .post(&format!("/v1/executions/{first}/fork"), json!({"event": 3}))
        .await;
    assert!(forked.status < 300, "{forked:?}");
    let fork = forked.body["id"].as_str().unwrap();
    until("the fork has ended", || receiver.statuses("/hook", fork).len() >= 2).await;
    assert_eq!(receiver.statuses("/hook", fork), ["Running", "Succeeded"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_is_not_sent_for_a_refused_start() {
    let (receiver, address) = Receiver::start().await;
    let server = telling(address, &["hook"]).await;
    server.flow("f", asleep()).await;
    let path = "/v1/flows/f/executions";
    assert!(server.post(path, json!({"name": "one", "input": {}})).await.status < 300);
    for _ in 0..3 {
        let again = server.post(path, json!({"name": "one", "input": {"other": 1}})).await;
        assert!(again.status >= 400, "{again:?}");
    }
    until("one is told", || shown(&server, "hook").told == 1).await;
    until("nothing is left", || shown(&server, "hook").waiting == 0).await;
    assert_eq!(receiver.at("/hook").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_is_retried() {
    let (receiver, address) = Receiver::start().await;
    let server = telling(address, &["hook"]).await;
    server.flow("f", passes()).await;
    receiver.refusing.lock().unwrap().push("/hook");
    let execution = start(&server, "f", 20).await;
    until("it is told", || shown(&server, "hook").told == 1).await;
    assert_eq!(receiver.statuses("/hook", &execution), ["Succeeded", "Succeeded"]);
    let came = receiver.at("/hook");
    assert_eq!(came[0].body, came[1].body);
    assert_eq!(
        (
            came[0].header("starbridge-attempt"),
            came[1].header("starbridge-attempt")
        ),
        ("1", "2")
    );
    assert_eq!(shown(&server, "hook").failed, 1);
    let metrics = server.get("/metrics").await;
    let metrics = metrics.body.as_str().unwrap();
    assert!(
        metrics.contains("starbridge_notifications_told_total{target=\"hook\"} 1\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("starbridge_notifications_failed_total{target=\"hook\"} 1\n"),
        "{metrics}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_target_that_is_down_holds_up_no_flow() {
    let nobody = refusing();
    let address = nobody.local_addr().unwrap();
    let (other, quick) = Receiver::start().await;
    let targets = vec![
        target("down", format!("http://{address}/down"), &[]),
        target("silent", format!("http://{quick}/silent"), &[]),
        target("quick", format!("http://{quick}/quick"), &[]),
    ];
    let server = with(|settings| settings.notifications = targets).await;
    let work = json!([{"type": "task", "name": "t", "resourceArn": format!("http://{quick}/work")}]);
    server.flow("f", work).await;
    let begun = Instant::now();
    let mut executions = Vec::new();
    for _ in 0..30 {
        executions.push(start(&server, "f", 20).await);
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
    until("the quick one is told", || shown(&server, "quick").told == 60).await;
    assert_eq!((shown(&server, "down").told, shown(&server, "silent").told), (0, 0));
    assert_eq!(shown(&server, "silent").waiting, 60);
    assert!(other.at("/silent").len() <= 16, "eight at once");

    let receiver = Arc::new(Receiver::default());
    receiver.clone().listen(nobody.listen(64).unwrap());
    until("it is told when it is there again", || {
        shown(&server, "down").told == 60
    })
    .await;
    for execution in &executions {
        assert_eq!(receiver.statuses("/down", execution), ["Running", "Succeeded"]);
        assert_eq!(other.statuses("/quick", execution), ["Running", "Succeeded"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_survives_a_restart() {
    let nobody = refusing();
    let address = nobody.local_addr().unwrap();
    let store = in_memory();
    let over = async |names: &[&str]| {
        let targets: Vec<Target> = names
            .iter()
            .map(|name| target(name, format!("http://{address}/{name}"), &[]))
            .collect();
        let store = store.clone();
        with(|settings| {
            settings.store = store;
            settings.notifications = targets;
        })
        .await
    };
    let first = over(&["hook", "former"]).await;
    first.flow("f", passes()).await;
    let execution = start(&first, "f", 20).await;
    until("it is tried", || shown(&first, "hook").failed > 0).await;
    first.node.drain(Duration::from_secs(5)).await.unwrap();
    let counts = |store: &Arc<dyn Store>| store.notice_counts().unwrap();
    assert_eq!(counts(&store), [("former".into(), 1), ("hook".into(), 1)]);
    // A notice is kept longer than its execution.
    while store.clear(Timestamp(i64::MAX), 10).unwrap() > 0 {}

    let receiver = Arc::new(Receiver::default());
    receiver.clone().listen(nobody.listen(64).unwrap());
    let second = over(&["hook"]).await;
    until("it is told", || shown(&second, "hook").told == 1).await;
    assert_eq!(receiver.statuses("/hook", &execution), ["Succeeded"]);
    second.node.drain(Duration::from_secs(5)).await.unwrap();
    assert_eq!(
        counts(&store),
        [],
        "what was told is taken down before the end, and the former target's is forgotten"
    );
    assert!(receiver.at("/former").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_filter_by_status() {
    let (receiver, address) = Receiver::start().await;
    let targets = vec![
        target("ends", format!("http://{address}/ends"), &["Succeeded", "Failed"]),
        target("failures", format!("http://{address}/failures"), &["Failed"]),
    ];
    let server = with(|settings| settings.notifications = targets).await;
    let work = json!([{"type": "task", "name": "t", "resourceArn": format!("http://{address}/work")}]);
    server.flow("f", work).await;
    server
        .flow("g", json!([{"type": "fail", "name": "no", "error": "No"}]))
        .await;
    let (well, badly) = (start(&server, "f", 20).await, start(&server, "g", 20).await);
    until("all are told", || {
        shown(&server, "ends").told == 2 && shown(&server, "failures").told == 1
    })
    .await;
    until("nothing is left", || shown(&server, "ends").waiting == 0).await;
    assert_eq!(receiver.statuses("/ends", &well), ["Succeeded"]);
    assert_eq!(receiver.statuses("/ends", &badly), ["Failed"]);
    assert_eq!(receiver.at("/failures").len(), 1);
}

/// Many at once: all arrive, in order, with few writes.
#[tokio::test(flavor = "multi_thread")]
async fn notification_backlog_is_in_order() {
    let (receiver, address) = Receiver::start().await;
    let server = telling(address, &["hook", "slow"]).await;
    let items: Vec<u32> = (0..300).collect();
    let work = json!({"type": "task", "name": "t", "resourceArn": format!("http://{address}/work")});
    server.flow("child", json!([work])).await;
    let each = json!([{"type": "foreach", "name": "each", "concurrency": 50,
        "iterationMapping": {"collection": "$.items", "item": "n"},
        "steps": [{"type": "task", "name": "one", "resourceArn": "flow:child", "pattern": "sync"}]}]);
    server.flow("parent", each).await;
    let input = json!({"input": {"items": items}});
    let parent = server.post("/v1/flows/parent/executions?wait=60", input).await;
    let parent = parent.body["id"].as_str().unwrap().to_owned();
    until("all is told", || shown(&server, "hook").told == 602).await;
    assert_eq!(receiver.statuses("/hook", &parent), ["Running", "Succeeded"]);
    let came = receiver.at("/hook");
    assert_eq!(came.len(), 602, "nothing twice");
    until("nothing is left", || shown(&server, "hook").waiting == 0).await;
    let slow = shown(&server, "slow");
    assert!(
        slow.told < 602 && slow.waiting > 0,
        "the slow one holds up nobody: {slow:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn notification_store_failure_ends_the_node() {
    let (_receiver, address) = Receiver::start().await;
    let store = Held::over(in_memory());
    store.mute.store(true, Ordering::SeqCst);
    let targets = vec![target("hook", format!("http://{address}/hook"), &[])];
    let server = with(|settings| {
        settings.store = store;
        settings.notifications = targets;
    })
    .await;
    server.flow("f", asleep()).await;
    start(&server, "f", 0).await;
    let mut ended = server.node.ended();
    let end = tokio::time::timeout(Duration::from_secs(20), ended.wait_for(Option::is_some));
    let end = end.await.expect("it ends").unwrap().clone().unwrap();
    assert!(end.unwrap_err().to_string().contains("the disk is away"));
    assert_eq!(server.get("/readyz").await.status, 503);
}

/// The program in the documentation of notifications.
#[test]
fn webhook_signature_check_of_the_docs_is_right() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operations/notifications.md");
    let page = std::fs::read_to_string(page).unwrap();
    let program = page.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let now = starbridge_ports::Clock::now(&starbridge_node::system::SystemClock);
    let body = "{\"cause\":\"über\"}";
    let signed = |time: Timestamp| signature(KEY, time, body);
    let cases = [
        (signed(now), body, "True"),
        (signed(now), "{}", "False"),
        (signed(Timestamp(now.0 - 600_000)), body, "False"),
        (signature("other", now, body), body, "False"),
    ];
    for (signed, body, expected) in cases {
        let mut python = Command::new("python3")
            .args(["-", &signed, body])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let asked = format!("{program}\nimport sys\nprint(is_genuine(b'{KEY}', sys.argv[1], sys.argv[2].encode()))\n");
        python.stdin.take().unwrap().write_all(asked.as_bytes()).unwrap();
        let said = python.wait_with_output().unwrap().stdout;
        assert_eq!(String::from_utf8_lossy(&said).trim(), expected, "{signed} {body}");
    }
}
