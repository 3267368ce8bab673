//! The function is killed at each request it makes. It goes on, and the history is the same except for times and ids.

use crate::alone::flow;
use crate::function::{Function, request};
use crate::stand::{Stand, Way};
use crate::table::functions;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All moments, or only some of them.
fn moments(count: usize) -> Vec<usize> {
    match std::env::var("STARBRIDGE_BOOTSTRAP_MOMENTS").as_deref() {
        Ok("all") => (1..=count).collect(),
        _ => (1..=count).step_by((count / 4).max(1)).collect(),
    }
}

/// The types and steps of events, which must not differ.
fn shape(events: &[Value]) -> Vec<String> {
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    events
        .iter()
        .map(|event| format!("{} {}", text(event, "type"), text(event, "step")))
        .collect()
}

fn definition(url: &str) -> Value {
    flow(json!([
        {"type": "task", "name": "one", "resourceArn": format!("{url}/one"), "outputMappings": [{"target": "one", "source": "$local.ok"}]},
        {"type": "wait", "name": "pause", "duration": 1},
        {"type": "task", "name": "two", "resourceArn": format!("{url}/two"), "outputMappings": [{"target": "two", "source": "$local.ok"}]},
    ]))
}

/// Runs the flow once, and kills the function at its request with this number, before or after it was sent. Returns
/// the history's shape, what was called, and how many requests there were.
fn run(kill_at: usize, after: bool) -> (Vec<String>, BTreeMap<String, usize>, usize) {
    let stand = Stand::start();
    let (server, heard) = functions(|_, _| (200, json!({"ok": true})));
    let function = Function::over(
        &stand,
        &[("f", definition(&server.url()))],
        3,
        &[("STARBRIDGE_LAMBDA_LINGER_MS", "100")],
    );
    // Reads and writes that only happen at the first event are not tested here.
    function.invoke(&request("GET", "/v1/flows", &Value::Null));
    stand.counted();
    let kill = function.killer();
    let mut number = 0;
    stand.watch(move |_, _| {
        number += 1;
        match number == kill_at {
            false => Way::On,
            true => {
                kill();
                if after { Way::AnswerLost } else { Way::Cut }
            }
        }
    });
    // A caller without an answer asks again, under the same name.
    let begun = (0..20).find_map(|_| {
        let answer = function.invoked(&json!({"flow": "f", "name": "once"}))?;
        answer["id"].as_str().map(str::to_owned)
    });
    let id = begun.unwrap_or_else(|| panic!("{kill_at} {after}: {}", function.said()));
    let ended = function.until_ended(&stand, &id);
    assert_eq!(ended["status"], "Succeeded", "{kill_at} {after}: {ended}");
    let requests = stand.counted().requests;
    let mut calls = BTreeMap::new();
    for key in heard.lock().unwrap().iter() {
        *calls.entry(key.clone()).or_default() += 1;
    }
    (shape(&function.history(&id)), calls, requests)
}

#[test]
fn killed_at_any_request_it_goes_on() {
    let (expected, calls, requests) = run(0, false);
    assert_eq!(calls.values().copied().collect::<Vec<usize>>(), [1, 1]);
    for moment in moments(requests.min(30)) {
        for after in [false, true] {
            let (history, calls, _) = run(moment, after);
            assert_eq!(history, expected, "killed at request {moment}, after: {after}");
            assert_eq!(calls.len(), 2, "one key a call: {calls:?}");
            assert!(
                calls.values().sum::<usize>() <= 3,
                "killed once, so at most one call came twice: {calls:?}"
            );
        }
    }
}
