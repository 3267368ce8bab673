//! Several nodes over one database: one has the store, the others pass on what they are asked, and take over when it is gone.

use crate::nodes::{Node, command, until};
use crate::stand::Stand;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A flow that ends by itself, one that waits for a worker, and one that goes on in the middle of a pause of its node.
fn put_flows(node: &Node) {
    let flows = [
        (
            "quick",
            json!([{"type": "pass", "name": "p"}, {"type": "succeed", "name": "s"}]),
        ),
        (
            "tasks",
            json!([{"type": "task", "name": "t", "resource": "queue:q"}, {"type": "succeed", "name": "s"}]),
        ),
        (
            "late",
            json!([{"type": "wait", "name": "w", "duration": 2}, {"type": "succeed", "name": "s"}]),
        ),
    ];
    for (name, steps) in flows {
        let flow = json!({"version": "v1", "type": "flow", "steps": steps});
        let (status, said) = node.ask("PUT", &format!("/v1/flows/{name}"), &flow.to_string());
        assert_eq!(status, 201, "{said}");
    }
}

fn start(node: &Node, flow: &str, name: &str) -> u16 {
    let body = json!({"name": name, "input": {}}).to_string();
    node.ask("POST", &format!("/v1/flows/{flow}/executions"), &body).0
}

/// Whether a start is acknowledged: begun now, or before an answer was lost.
fn begun(status: u16) -> bool {
    matches!(status, 200 | 201 | 409)
}

/// The number of executions of a flow in this status.
fn count(stand: &Stand, schema: &str, flow: &str, status: &str) -> u64 {
    let sql =
        format!("select count(*) from {schema}.executions_readable where flow = '{flow}' and status = '{status}'");
    stand.sql(&sql).parse().unwrap()
}

fn three(stand: &Stand, schema: &str) -> [Node; 3] {
    let nodes = ["a", "b", "c"].map(|name| Node::start(stand, schema, name));
    assert!(nodes[0].owns() && !nodes[1].owns() && !nodes[2].owns());
    nodes
}

/// The owner among these nodes, once there is one.
fn owner_of(nodes: &[Node]) -> usize {
    until(|| nodes.iter().position(Node::owns))
}

/// The names of all nodes.
fn names(node: &Node) -> BTreeSet<String> {
    until(|| {
        let seen = node.json("/v1/cluster");
        let nodes = seen["nodes"].as_array()?.iter();
        let names = nodes.map(|node| node["name"].as_str().unwrap_or_default().to_owned());
        Some(names.collect())
    })
}

/// The numbers of the events of a stream, to its end.
fn numbers(node: &Node, id: &str, first: impl FnOnce()) -> Vec<u64> {
    let mut stream = TcpStream::connect(("127.0.0.1", node.port)).unwrap();
    let head = format!(
        "GET /v1/executions/{id}/history HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = Some(first);
    let mut numbers = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap();
        if let Some(number) = line.strip_prefix("id:") {
            numbers.push(number.trim().parse().unwrap());
            if let Some(first) = first.take() {
                first();
            }
        }
        if line == "event: end" {
            return numbers;
        }
    }
    panic!("the stream broke after {numbers:?}");
}

#[test]
fn three_nodes_are_one_server_that_survives_its_owner() {
    const STARTS: usize = 400;
    let stand = Stand::start();
    let schema = "three";
    let mut nodes = three(&stand, schema);
    put_flows(&nodes[1]);
    assert!(begun(start(&nodes[2], "tasks", "streamed")));
    let id = nodes[1].json("/v1/flows/tasks/executions/streamed")["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let (next, streaming) = (AtomicUsize::new(0), AtomicBool::new(false));
    let [a, b, c] = &mut nodes;
    let (b, c) = (&*b, &*c);
    let took = std::thread::scope(|scope| {
        let stream = scope.spawn(|| numbers(c, &id, || streaming.store(true, Ordering::SeqCst)));
        for node in [b, c] {
            let next = &next;
            scope.spawn(move || {
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= STARTS {
                        return;
                    }
                    until(|| begun(start(node, "quick", &format!("n{number}"))).then_some(()));
                }
            });
        }
        until(|| (next.load(Ordering::SeqCst) > STARTS / 4 && streaming.load(Ordering::SeqCst)).then_some(()));
        a.kill();
        let killed = Instant::now();
        until(|| begun(start(b, "quick", "after")).then_some(()));
        let took = killed.elapsed();
        let held = until(|| {
            let (status, text) = b.ask(
                "POST",
                "/v1/queues/q/hold",
                &json!({"worker": "w", "waitSeconds": 1}).to_string(),
            );
            let held: Value = serde_json::from_str(&text).unwrap_or_default();
            (status == 200)
                .then(|| held["tasks"][0]["token"].as_str().map(str::to_owned))
                .flatten()
        });
        let (status, said) = c.ask("POST", &format!("/v1/callbacks/{held}/succeed"), r#"{"output": {}}"#);
        assert!((200..300).contains(&status), "{status} {said}");
        let numbers = stream.join().unwrap();
        assert_eq!(
            numbers,
            (1..=numbers.len() as u64).collect::<Vec<_>>(),
            "every number once"
        );
        took
    });
    eprintln!("first start {} ms after the owner was killed", took.as_millis());
    until(|| (count(&stand, schema, "quick", "Succeeded") == STARTS as u64 + 1).then_some(()));
    assert_eq!(count(&stand, schema, "tasks", "Succeeded"), 1);
    let left = names(c);
    assert!(left.contains("b") && left.contains("c"), "{left:?}");
    let forwarded: u64 = [b, c]
        .map(|node| node.metric("starbridge_cluster_requests_forwarded_total "))
        .iter()
        .sum();
    assert!(forwarded > 0);
}

#[test]
fn an_owner_that_stood_still_is_fenced_and_stands_by() {
    let stand = Stand::start();
    let schema = "still";
    let nodes = three(&stand, schema);
    put_flows(&nodes[0]);
    for number in 0..20 {
        assert!(begun(start(&nodes[1], "late", &format!("l{number}"))));
    }
    nodes[0].signal("-STOP");
    let next = owner_of(&nodes[1..]) + 1;
    nodes[0].signal("-CONT");
    let said = until(|| nodes[0].ready().filter(|said| said.contains("standing by")));
    assert!(said.contains(nodes[next].name), "{said}");
    until(|| (nodes[0].metric("starbridge_cluster_appends_fenced_total ") > 0).then_some(()));
    until(|| (count(&stand, schema, "late", "Succeeded") == 20).then_some(()));
    assert!(begun(start(&nodes[0], "quick", "again")), "it passes requests on");
}

#[test]
fn a_node_that_is_told_to_stop_hands_over() {
    let stand = Stand::start();
    let schema = "told";
    let mut nodes = three(&stand, schema);
    put_flows(&nodes[2]);
    let over = AtomicBool::new(false);
    let [a, b, c] = &mut nodes;
    let (b, c) = (&*b, &*c);
    let slowest = std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut slowest = Duration::ZERO;
            let mut number = 0;
            while !over.load(Ordering::SeqCst) || number < 50 {
                let asked = Instant::now();
                assert_eq!(start(c, "quick", &format!("n{number}")), 201, "{number}");
                slowest = slowest.max(asked.elapsed());
                number += 1;
            }
            (slowest, number)
        });
        until(|| (count(&stand, schema, "quick", "Succeeded") > 20).then_some(()));
        a.signal("-TERM");
        assert!(a.ended_well());
        until(|| (b.owns() || c.owns()).then_some(()));
        over.store(true, Ordering::SeqCst);
        let (slowest, number) = client.join().unwrap();
        until(|| (count(&stand, schema, "quick", "Succeeded") == number).then_some(()));
        slowest
    });
    eprintln!("slowest request while the owner left: {} ms", slowest.as_millis());
}

/// Each node in turn ends and is started again. A client of another node may have to ask once more.
#[test]
fn a_rolling_restart_loses_no_request_that_is_sent_again() {
    let stand = Stand::start();
    let schema = "rolling";
    let mut nodes = Vec::from(three(&stand, schema));
    put_flows(&nodes[0]);
    let mut started = 0;
    for _ in 0..3 {
        let mut leaving = nodes.remove(0);
        let name = leaving.name;
        let over = AtomicBool::new(false);
        let again = std::thread::scope(|scope| {
            let over = &over;
            let clients: Vec<_> = nodes
                .iter()
                .map(|node| {
                    scope.spawn(move || {
                        let mut number = 0;
                        while !over.load(Ordering::SeqCst) || number < 20 {
                            let named = format!("{name}{}{number}", node.name);
                            let status = start(node, "quick", &named);
                            assert!(
                                begun(status) || begun(start(node, "quick", &named)),
                                "{named}: {status}"
                            );
                            number += 1;
                        }
                        number
                    })
                })
                .collect();
            leaving.signal("-TERM");
            assert!(leaving.ended_well());
            let again = Node::start(&stand, schema, name);
            over.store(true, Ordering::SeqCst);
            started += clients.into_iter().map(|client| client.join().unwrap()).sum::<u64>();
            again
        });
        nodes.push(again);
    }
    until(|| (count(&stand, schema, "quick", "Succeeded") == started).then_some(()));
    assert_eq!(nodes.iter().filter(|node| node.owns()).count(), 1);
}

#[test]
fn a_database_that_comes_back_has_the_same_cluster() {
    let mut stand = Stand::start();
    let schema = "back";
    let nodes = three(&stand, schema);
    put_flows(&nodes[1]);
    for number in 0..20 {
        assert!(begun(start(&nodes[1], "late", &format!("l{number}"))));
    }
    stand.service.kill();
    until(|| {
        nodes
            .iter()
            .all(|node| node.ask("GET", "/v1/flows", "").0 == 503)
            .then_some(())
    });
    stand.service.start_again();
    owner_of(&nodes);
    until(|| (count(&stand, schema, "late", "Succeeded") == 20).then_some(()));
    for (index, node) in nodes.iter().enumerate() {
        until(|| begun(start(node, "quick", &format!("q{index}"))).then_some(()));
    }
}

#[test]
fn who_does_not_belong_is_refused() {
    let stand = Stand::start();
    let node = Node::start(&stand, "refused", "a");
    let twin = command(&stand, "refused", "a", 0, 0).output().unwrap();
    assert!(!twin.status.success());
    let said = String::from_utf8_lossy(&twin.stderr).into_owned();
    assert!(said.contains("a node `a` is in this cluster already"), "{said}");
    let mut stranger = TcpStream::connect(("127.0.0.1", node.link)).unwrap();
    stranger.write_all(b"GET /v1/flows HTTP/1.1\r\n\r\n").unwrap();
    until(|| (node.metric("starbridge_cluster_links_refused_total ") == 1).then_some(()));
    let named = node.json("/v1/cluster");
    assert_eq!(named["owner"], "a");
    assert_eq!(named["nodes"].as_array().map(Vec::len), Some(1));
}

/// The members of a node, as another one shows them.
fn shown(node: &Node, name: &str) -> Value {
    let cluster = node.json("/v1/cluster");
    let found = cluster["nodes"].as_array().and_then(|nodes| {
        let is = |node: &&Value| node["name"] == name;
        nodes.iter().find(is).cloned()
    });
    found.unwrap_or_default()
}

/// Waits for a task as a worker does.
fn hold(node: &Node) -> u16 {
    let poll = json!({"worker": "w", "waitSeconds": 20}).to_string();
    node.ask("POST", "/v1/queues/q/hold", &poll).0
}

/// It takes the store only if no other can.
fn drained_node_is_the_last(a: &Node, b: &mut Node, c: &mut Node) {
    b.kill();
    until(|| c.owns().then_some(()));
    until(|| a.ready().filter(|said| said.contains("standing by")));
    c.kill();
    until(|| a.owns().then_some(()));
}

#[test]
fn a_drained_owner_hands_over_and_no_request_fails() {
    let stand = Stand::start();
    let schema = "drained";
    let mut nodes = three(&stand, schema);
    put_flows(&nodes[0]);
    let over = AtomicBool::new(false);
    let [a, b, c] = &mut nodes;
    std::thread::scope(|scope| {
        let (a, b, c, over) = (&*a, &*b, &*c, &over);
        // At each node somebody starts executions, and nobody asks twice.
        let clients = [a, b, c].map(|node| {
            scope.spawn(move || {
                let (mut number, mut slowest) = (0, Duration::ZERO);
                while !over.load(Ordering::SeqCst) || number < 20 {
                    let asked = Instant::now();
                    let status = start(node, "quick", &format!("{}{number}", node.name));
                    assert_eq!(status, 201, "{} {number}", node.name);
                    slowest = slowest.max(asked.elapsed());
                    number += 1;
                }
                (number, slowest)
            })
        });
        // Workers wait for tasks, and somebody for an end that is far away. All get an answer.
        let held = [a, b, c].map(|node| scope.spawn(move || hold(node)));
        assert!(begun(start(c, "tasks", "waited")));
        let id = c.json("/v1/flows/tasks/executions/waited")["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let waited = [a, b, c].map(|node| {
            let path = format!("/v1/executions/{id}?wait=20");
            scope.spawn(move || node.ask("GET", &path, "").0)
        });
        until(|| (count(&stand, schema, "quick", "Succeeded") > 20).then_some(()));
        let (status, told) = b.ask("POST", "/v1/cluster/nodes/a/drain", "{}");
        assert_eq!(status, 202, "{told}");
        until(|| (b.owns() || c.owns()).then_some(()));
        until(|| shown(b, "a")["drained"].as_bool()?.then_some(()));
        over.store(true, Ordering::SeqCst);
        let done = clients.map(|client| client.join().unwrap());
        for asked in held.into_iter().chain(waited) {
            assert_eq!(asked.join().unwrap(), 200);
        }
        let started: u64 = done.iter().map(|(number, _)| number).sum();
        until(|| (count(&stand, schema, "quick", "Succeeded") == started).then_some(()));
        let slowest = done.iter().map(|(_, slowest)| slowest.as_millis()).max();
        let handed = a.metric("starbridge_cluster_handover_milliseconds ");
        eprintln!(
            "slowest of {started} starts while the owner was drained: {slowest:?} ms; handed over in {handed} ms"
        );
    });
    assert_eq!(count(&stand, schema, "quick", "Failed"), 0);
    // What was told is on the audit list, once.
    let audit = b.json("/v1/audit?kind=node");
    assert_eq!(audit["items"][0]["action"], "drain");
    assert_eq!(audit["items"][0]["object"], "a");
    drained_node_is_the_last(a, b, c);
    // Those that were killed count until they were silent for a while.
    let silent = |name: &str| shown(a, name)["silentBeats"].as_u64().is_none_or(|beats| beats > 10);
    until(|| (silent("b") && silent("c")).then_some(()));
    let (status, said) = a.ask("POST", "/v1/cluster/nodes/a/drain", "{}");
    assert_eq!(status, 409, "{said}");
    assert_eq!(a.ask("POST", "/v1/cluster/nodes/nobody/drain", "{}").0, 404);
}

/// Draining all nodes one after the other must not move the work to and fro.
#[test]
fn the_store_is_not_handed_to_a_node_that_was_drained() {
    let stand = Stand::start();
    let a = Node::start(&stand, "tofro", "a");
    let mut b = Node::start(&stand, "tofro", "b");
    assert_eq!(b.ask("POST", "/v1/cluster/nodes/a/drain", "{}").0, 202);
    until(|| b.owns().then_some(()));
    until(|| (shown(&b, "a")["drained"] == true).then_some(()));
    until(|| a.ready().filter(|said| said.contains("standing by")));
    let (status, said) = a.ask("POST", "/v1/cluster/nodes/b/drain", "{}");
    assert_eq!(status, 409, "{said}");
    assert!(
        said.contains("NoOtherNode") && said.contains("`a` was told to leave its work to others"),
        "{said}"
    );
    // If the other one is gone, it can take the store.
    b.kill();
    until(|| a.owns().then_some(()));
}

#[test]
fn a_drained_node_that_stands_by_leaves() {
    let stand = Stand::start();
    let mut nodes = three(&stand, "leaving");
    let (status, told) = nodes[1].ask("POST", "/v1/cluster/nodes/c/drain", "{}");
    assert_eq!(status, 202, "{told}");
    assert!(nodes[2].ended_well());
    until(|| (names(&nodes[0]) == BTreeSet::from(["a".to_owned(), "b".to_owned()])).then_some(()));
    // Started again under its name, it is as any other.
    nodes[2] = Node::start(&stand, "leaving", "c");
    until(|| (shown(&nodes[0], "c")["drained"] == false).then_some(()));
    nodes[0].kill();
    nodes[1].kill();
    until(|| nodes[2].owns().then_some(()));
}

#[test]
fn a_node_that_others_do_not_reach_is_told_at_once() {
    let stand = Stand::start();
    let _owner = Node::start(&stand, "reached", "a");
    let mut lost = command(&stand, "reached", "b", 0, 0);
    lost.env("STARBRIDGE_CLUSTER_ADVERTISE", "127.0.0.1:1");
    let said = lost.output().unwrap();
    assert_eq!(said.status.code(), Some(3));
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        said.contains("other nodes do not reach this one at 127.0.0.1:1: the node a:")
            && said.contains("`cluster.advertise`"),
        "{said}"
    );
}

/// The library that shows another time to a program that it is loaded into.
const FAKETIME: &str = "STARBRIDGE_FAKETIME";

/// Whether this moment of a history is within ten minutes of now, as the database tells it.
fn is_now(stand: &Stand, time: &Value) -> bool {
    let time = time.as_str().unwrap();
    stand.sql(&format!(
        "select abs(extract(epoch from now() - '{time}'::timestamptz)) < 600"
    )) == "t"
}

#[test]
fn clock_of_the_database_counts_and_not_that_of_a_node() {
    let library = std::env::var(FAKETIME).expect("the variable STARBRIDGE_FAKETIME names libfaketime.so.1");
    let stand = Stand::start();
    let schema = "clocks";
    let at = |name, off| {
        let more = [
            ("LD_PRELOAD", library.as_str()),
            ("FAKETIME", off),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        Node::start_with(&stand, schema, name, &more)
    };
    let mut ahead = at("ahead", "+3600s");
    let behind = at("behind", "-3600s");
    put_flows(&ahead);
    let soon =
        stand.sql("select to_char(now() at time zone 'utc' + interval '30 minutes', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')");
    let delayed = json!({"name": "delayed", "input": {}, "startAt": soon}).to_string();
    assert_eq!(ahead.ask("POST", "/v1/flows/quick/executions", &delayed).0, 201);
    let check = |node: &Node, name: &str| {
        assert!(begun(start(node, "late", name)));
        let path = format!("/v1/flows/late/executions/{name}");
        let ended = until(|| Some(node.json(&path)).filter(|shown| shown["status"] == "Succeeded"));
        for time in ["startedTime", "endedTime"] {
            assert!(is_now(&stand, &ended[time]), "{}: {ended}", node.name);
        }
        let shown = node.json("/v1/flows/quick/executions/delayed");
        assert_eq!(shown["status"], "Delayed", "{}: {shown}", node.name);
    };
    check(&ahead, "first");
    for node in node_times(&behind) {
        assert!(is_now(&stand, &node), "{node}");
    }
    ahead.kill();
    until(|| behind.owns().then_some(()));
    check(&behind, "second");
}

/// When the nodes joined.
fn node_times(node: &Node) -> Vec<Value> {
    let cluster = node.json("/v1/cluster");
    let nodes = cluster["nodes"].as_array().unwrap().iter();
    nodes.map(|node| node["joined"].clone()).collect()
}
