//! Events that come twice, too late or out of order, and an invocation that runs out of time.

use crate::alone::flow;
use crate::function::{Function, batch, body, pause, request};
use crate::stand::{Message, Stand, Way};
use crate::table::functions;
use serde_json::{Value, json};

fn message(id: &str, text: &Value) -> Message {
    Message {
        id: id.to_owned(),
        body: text.to_string(),
        handle: String::new(),
        received: "1".to_owned(),
        reason: None,
    }
}

fn task(url: &str) -> Value {
    flow(json!([{"type": "task", "name": "one", "resourceArn": format!("{url}/one")}]))
}

fn id_of(function: &Function, name: &str) -> String {
    let path = format!("/v1/flows/f/executions/{name}");
    let found = body(&function.invoke(&request("GET", &path, &Value::Null)));
    found["id"].as_str().unwrap_or_else(|| panic!("{found}")).to_owned()
}

#[test]
fn messages_that_come_twice_or_late_change_nothing() {
    let stand = Stand::start();
    let (server, heard) = functions(|_, _| (200, json!({})));
    let function = Function::over(&stand, &[("f", task(&server.url()))], 20, &[]);
    let start = message("first", &json!({"flow": "f", "input": {"n": 1}}));
    for _ in 0..2 {
        let answer = function.invoke(&batch(std::slice::from_ref(&start)));
        assert_eq!(answer["batchItemFailures"], json!([]), "{answer}");
    }
    // Also twice in one batch.
    let answer = function.invoke(&batch(&[start.clone(), start]));
    assert_eq!(answer["batchItemFailures"], json!([]), "{answer}");
    assert_eq!(heard.lock().unwrap().len(), 1, "one message, one execution");
    let id = id_of(&function, "m-first");
    let before = function.history(&id).len();
    // Continuations of executions that have ended, that never existed, and for a time in the past.
    let late = |execution: &str| json!({"continue": {"execution": execution, "at": "2020-01-01T00:00:00Z"}});
    let words = [
        message("a", &late(&id)),
        message("b", &late("0190b3e4-8c1d-7abc-9def-0123456789ab")),
        message("c", &late(&id)),
    ];
    let answer = function.invoke(&batch(&words));
    assert_eq!(answer["batchItemFailures"], json!([]), "{answer}");
    assert_eq!(function.history(&id).len(), before);
    assert_eq!(stand.received(&stand.queue).len(), 0, "no word leaves word");
}

#[test]
fn start_in_a_message_is_in_the_trace_of_its_attribute() {
    let stand = Stand::start();
    let function = Function::over(&stand, &[("f", flow(json!([{"type": "pass", "name": "p"}])))], 20, &[]);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let cases = [
        ("given", trace, json!({"flow": "f"}), Some(trace)),
        ("wrong", "none", json!({"flow": "f"}), None),
        ("named", trace, json!({"flow": "f", "traceparent": other}), Some(other)),
    ];
    for (id, attribute, start, expected) in cases {
        let mut event = batch(&[message(id, &start)]);
        event["Records"][0]["messageAttributes"] =
            json!({"traceparent": {"dataType": "String", "stringValue": attribute}});
        let answer = function.invoke(&event);
        assert_eq!(answer["batchItemFailures"], json!([]), "{answer}");
        let history = function.history(&id_of(&function, &format!("m-{id}")));
        assert_eq!(history[0]["detail"]["traceparent"].as_str(), expected, "{id}");
    }
}

#[test]
fn an_invocation_that_runs_out_of_time_is_gone_on_with() {
    let stand = Stand::start();
    let (server, heard) = functions(|_, _| (200, json!({})));
    let function = Function::over(&stand, &[("f", task(&server.url()))], 2, &[]);
    function.invoke(&request("GET", "/v1/flows", &Value::Null));
    // Writing the end of the flow takes longer than the function has.
    stand.watch(|target, _| {
        if target.ends_with("TransactWriteItems") {
            pause(4_000);
            return Way::Cut;
        }
        Way::On
    });
    let killed = function.invoked(&json!({"flow": "f"}));
    let words = killed.map(|answer| answer.to_string()).unwrap_or_default();
    assert!(!words.contains("Succeeded"), "{words}");
    stand.unwatch();
    pause(2_500);
    let listed = body(&function.invoke(&request("GET", "/v1/executions?flow=f", &Value::Null)));
    let id = listed["items"][0]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{listed}\n{}", function.said()));
    let ended = function.until_ended(&stand, id);
    assert_eq!(ended["status"], "Succeeded", "{ended}");
    let mut keys = heard.lock().unwrap().clone();
    assert!(keys.len() <= 2, "{keys:?}");
    keys.dedup();
    assert_eq!(keys.len(), 1, "the call that came again has its key");
}

#[test]
fn behind_one_that_failed_its_group_keeps_its_order() {
    let stand = Stand::start();
    let (server, _) = functions(|_, _| (200, json!({})));
    let function = Function::over(&stand, &[("f", task(&server.url()))], 20, &[]);
    let record = |id: &str, group: &str, body: &Value| {
        json!({"messageId": id, "receiptHandle": id, "body": body.to_string(), "eventSource": "aws:sqs",
            "attributes": {"ApproximateReceiveCount": "1", "MessageGroupId": group}})
    };
    let start = |name: &str| json!({"flow": "f", "name": name});
    let records = json!({"Records": [
        record("1", "a", &start("first")),
        record("2", "a", &json!({"nothing": 1})),
        record("3", "a", &start("behind")),
        record("4", "b", &start("other")),
    ]});
    let answer = function.invoke(&records);
    assert_eq!(
        answer["batchItemFailures"],
        json!([{"itemIdentifier": "2"}, {"itemIdentifier": "3"}]),
        "{answer}"
    );
    for name in ["first", "other"] {
        assert_eq!(function.execution(&id_of(&function, name))["status"], "Succeeded");
    }
    let behind = function.invoke(&request("GET", "/v1/flows/f/executions/behind", &Value::Null));
    assert_eq!(behind["statusCode"], 404, "it waits for the one before it");
}
