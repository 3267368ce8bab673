//! Over a table and a queue: work that does not end within an invocation goes on in another one.

use crate::alone::flow;
use crate::function::{Function, batch, body, pause, request, sweep};
use crate::stand::Stand;
use serde_json::{Value, json};
use starbridge_services::{Answering, Said};
use std::sync::{Arc, Mutex};

/// A function server: each answer is `{"n": …}`, and what it received is kept.
pub fn functions(
    answer: impl Fn(usize, &Value) -> (u16, Value) + Send + Sync + 'static,
) -> (Answering, Arc<Mutex<Vec<String>>>) {
    let heard: Arc<Mutex<Vec<String>>> = Arc::default();
    let keys = heard.clone();
    let server = Answering::start(move |request| {
        let key = request.header("idempotency-key").unwrap_or_default().to_owned();
        let number = {
            let mut keys = keys.lock().unwrap();
            keys.push(key);
            keys.len()
        };
        let asked = serde_json::from_slice(&request.body).unwrap_or_default();
        let (status, said) = answer(number, &asked);
        Said::Answer(
            status,
            vec![("Content-Type", "application/json".to_owned())],
            said.to_string(),
        )
    });
    (server.unwrap(), heard)
}

/// The token of a call, once it has arrived.
type Token = Arc<Mutex<Option<String>>>;

/// A function server that keeps the token it gets.
fn told() -> (Answering, Token) {
    let token = Token::default();
    let told = token.clone();
    let (server, _) = functions(move |_, asked| {
        *told.lock().unwrap() = asked["token"].as_str().map(str::to_owned);
        (200, json!({}))
    });
    (server, token)
}

fn calls(url: &str, count: u32) -> Value {
    let step =
        |number: u32| json!({"type": "task", "name": format!("t{number}"), "resourceArn": format!("{url}/t{number}")});
    flow((0..count).map(step).collect())
}

#[test]
fn ten_calls_cost_twelve_writes_and_express_one() {
    let stand = Stand::start();
    let (server, heard) = functions(|_, _| (200, json!({"ok": true})));
    let function = Function::over(&stand, &[("ten", calls(&server.url(), 10))], 20, &[]);
    // The first one stores the flow.
    assert_eq!(
        function.invoke(&json!({"flow": "ten"}))["status"],
        "Succeeded",
        "{}",
        function.said()
    );
    stand.counted();
    let answer = function.invoke(&json!({"flow": "ten"}));
    assert_eq!(answer["status"], "Succeeded", "{answer}");
    let counted = stand.counted();
    assert!(counted.items <= 12, "{counted:?}");
    assert_eq!(counted.messages, 0, "{counted:?}");
    let answer = function.invoke(&json!({"flow": "ten", "durability": "express", "history": true}));
    assert_eq!(answer["status"], "Succeeded", "{answer}");
    let counted = stand.counted();
    assert!(counted.items <= 2, "{counted:?}");
    assert_eq!(counted.messages, 0, "{counted:?}");
    assert_eq!(heard.lock().unwrap().len(), 30);
    // Its history is complete.
    assert_eq!(
        answer["history"].as_array().unwrap().len(),
        function.history(answer["id"].as_str().unwrap()).len()
    );
    let answer = function.invoke(&json!({"flow": "ten", "async": true}));
    assert_eq!(answer["status"], "Running", "{answer}");
    assert_eq!(heard.lock().unwrap().len(), 30, "nothing is sent yet");
    let seen = function.until_ended(&stand, answer["id"].as_str().unwrap());
    assert_eq!(seen["status"], "Succeeded");
    assert_eq!(heard.lock().unwrap().len(), 40);
    assert!(stand.counted().messages <= 2);
}

#[test]
fn waits_callbacks_and_retries_go_on_in_other_invocations() {
    let stand = Stand::start();
    let token = Token::default();
    let told = token.clone();
    let (server, heard) = functions(move |number, asked| {
        if let Some(token) = asked["token"].as_str() {
            *told.lock().unwrap() = Some(token.to_owned());
        }
        // Fails twice before it succeeds.
        if asked["try"] == true && number < 3 {
            (503, json!({"error": "Busy", "cause": "later"}))
        } else {
            (200, json!({"n": number}))
        }
    });
    let url = server.url();
    let steps = json!([
        {"type": "task", "name": "tried", "resourceArn": format!("{url}/tried"), "inputMappings": [{"target": "try", "source": true}],
            "retry": [{"errors": ["Busy"], "intervalSeconds": 1, "maxAttempts": 5, "multiplier": 3}]},
        {"type": "wait", "name": "pause", "duration": 3},
        {"type": "task", "name": "asked", "resourceArn": format!("{url}/asked"), "pattern": "waitForCallback", "timeoutSeconds": 60,
            "inputMappings": [{"target": "token", "source": "$context.task.token"}],
            "outputMappings": [{"target": "answer", "source": "$local.answer"}]},
    ]);
    let function = Function::over(
        &stand,
        &[("f", flow(steps))],
        10,
        &[("STARBRIDGE_LAMBDA_LINGER_MS", "500")],
    );
    let begun = function.invoke(&json!({"flow": "f", "name": "order-7"}));
    assert_eq!(begun["status"], "Running", "{begun}");
    let id = begun["id"].as_str().unwrap();
    let mut looks = 0;
    let token = loop {
        function.take(&stand, stand.received(&stand.queue));
        if let Some(token) = token.lock().unwrap().clone() {
            break token;
        }
        looks += 1;
        assert!(looks < 300, "{}", function.said());
        pause(100);
    };
    // Nothing runs while it waits for its callback.
    pause(1_500);
    function.take(&stand, stand.received(&stand.queue));
    let reported = function.invoke(&request(
        "POST",
        &format!("/v1/callbacks/{token}/succeed"),
        &json!({"output": {"answer": 42}}),
    ));
    assert_eq!(reported["statusCode"], 204, "{reported}");
    let seen = function.until_ended(&stand, id);
    assert_eq!(
        (&seen["status"], &seen["output"]),
        (&"Succeeded".into(), &json!({"answer": 42, "n": 3})),
        "{seen}"
    );
    let again = function.invoke(&request(
        "POST",
        &format!("/v1/callbacks/{token}/succeed"),
        &json!({"output": {}}),
    ));
    assert_eq!(again["statusCode"], 409, "{again}");
    // The same start is the same execution.
    let same = function.invoke(&json!({"flow": "f", "name": "order-7"}));
    assert_eq!(same["id"], begun["id"], "{same}");
    assert_eq!(heard.lock().unwrap().len(), 4);
    assert_eq!(stand.received(&stand.queue).len(), 0, "no word is left over");
}

#[test]
fn reports_come_through_the_queue_too_and_letters_go_where_they_are_looked_for() {
    let stand = Stand::start();
    let (server, token) = told();
    let steps = json!([{"type": "task", "name": "asked", "resourceArn": format!("{}/asked", server.url()), "pattern": "waitForCallback",
        "timeoutSeconds": 60, "inputMappings": [{"target": "token", "source": "$context.task.token"}]}]);
    let function = Function::over(&stand, &[("f", flow(steps))], 10, &[("STARBRIDGE_LAMBDA_TRIES", "2")]);
    stand.put(&json!({"flow": "f", "name": "by-message"}));
    stand.put(&json!({"token": "rubbish", "output": {}}));
    stand.put(&json!({"nothing": 1}));
    let mut failed = Vec::new();
    for _ in 0..20 {
        let messages = stand.received(&stand.queue);
        if messages.len() == 3 || !messages.is_empty() {
            failed.extend(function.take(&stand, messages));
        }
        if failed.len() >= 2 && token.lock().unwrap().is_some() {
            break;
        }
        pause(100);
    }
    assert_eq!(failed.len(), 2, "{failed:?}\n{}", function.said());
    // They arrive again, as the queue says, and then go to the dead letters with their reasons.
    let poisoned = |received: &str| {
        let message = |id: &str, text: &Value| crate::stand::Message {
            id: id.to_owned(),
            body: text.to_string(),
            handle: String::new(),
            received: received.to_owned(),
            reason: None,
        };
        batch(&[
            message("1", &json!({"token": "rubbish", "output": {}})),
            message("2", &json!({"nothing": 1})),
        ])
    };
    let answer = function.invoke(&poisoned("2"));
    assert_eq!(answer["batchItemFailures"], json!([]), "{answer}");
    let letters = stand.received(&stand.letters);
    let reasons: Vec<&str> = letters.iter().filter_map(|letter| letter.reason.as_deref()).collect();
    assert_eq!(reasons.len(), 2, "{letters:?}");
    assert!(
        reasons.iter().any(|reason| reason.contains("token is not one of ours")),
        "{reasons:?}"
    );
    assert!(reasons.iter().any(|reason| reason.contains("no report")), "{reasons:?}");
    let token = token.lock().unwrap().clone().unwrap();
    stand.put(&json!({"token": token, "output": {"well": true}}));
    let found = function.invoke(&request("GET", "/v1/flows/f/executions/by-message", &Value::Null));
    let id = body(&found)["id"].as_str().unwrap().to_owned();
    assert_eq!(function.until_ended(&stand, &id)["status"], "Succeeded");
}

#[test]
fn two_invocations_at_once_do_not_run_one_execution_twice() {
    let stand = Stand::start();
    let token = Token::default();
    let told = token.clone();
    let (server, heard) = functions(move |_, asked| {
        if let Some(token) = asked["token"].as_str() {
            *told.lock().unwrap() = Some(token.to_owned());
            return (200, json!({}));
        }
        pause(2_500);
        (200, json!({}))
    });
    let url = server.url();
    let steps = json!([{"type": "parallel", "name": "both", "branches": [
        {"steps": [{"type": "task", "name": "slow", "resourceArn": format!("{url}/slow")}]},
        {"steps": [
            {"type": "task", "name": "asked", "resourceArn": format!("{url}/asked"), "pattern": "waitForCallback", "timeoutSeconds": 60,
                "inputMappings": [{"target": "token", "source": "$context.task.token"}]},
            {"type": "task", "name": "after", "resourceArn": format!("{url}/after")}]}]}]);
    let one = Arc::new(Function::over(&stand, &[("f", flow(steps.clone()))], 20, &[]));
    let other = Function::over(&stand, &[("f", flow(steps))], 20, &[]);
    let first = one.clone();
    let running = std::thread::spawn(move || first.invoke(&json!({"flow": "f", "name": "n"})));
    let token = loop {
        if let Some(token) = token.lock().unwrap().clone() {
            break token;
        }
        pause(20);
    };
    // A report from another process is left for the one that has the execution, which finds it while it still works.
    let reported = other.invoke(&request(
        "POST",
        &format!("/v1/callbacks/{token}/succeed"),
        &json!({"output": {}}),
    ));
    assert_eq!(reported["statusCode"], 202, "{reported}");
    let found = other.invoke(&request("GET", "/v1/flows/f/executions/n", &Value::Null));
    let id = body(&found)["id"].clone();
    let word = json!({"continue": {"execution": id, "at": "2026-01-01T00:00:00Z"}});
    stand.put(&word);
    other.take(&stand, stand.received(&stand.queue));
    let ended = running.join().unwrap();
    assert_eq!(ended["status"], "Succeeded", "{ended}\n{}", one.said());
    let mut keys = heard.lock().unwrap().clone();
    keys.sort();
    keys.dedup();
    assert_eq!(
        (keys.len(), heard.lock().unwrap().len()),
        (3, 3),
        "no call was made twice"
    );
}

#[test]
fn what_the_service_refuses_is_said() {
    let stand = Stand::start();
    let function = Function::over(
        &stand,
        &[("f", flow(json!([{"type": "pass", "name": "p"}])))],
        30,
        &[("STARBRIDGE_LAMBDA_TABLE", "none")],
    );
    let answer = function.invoke(&json!({"flow": "f"}));
    assert_eq!(answer["errorType"], "StoreFailed", "{answer}");
    assert!(answer["errorMessage"].as_str().unwrap().contains("`none`"), "{answer}");
    let function = Function::over(&stand, &[("f", flow(json!([{"type": "pass", "name": "p"}])))], 30, &[]);
    stand.watch(|target, _| {
        if target.starts_with("DynamoDB") {
            crate::stand::Way::Cut
        } else {
            crate::stand::Way::On
        }
    });
    let answer = function.invoke(&json!({"flow": "f"}));
    assert_eq!(answer["errorType"], "StoreFailed", "{answer}");
    stand.unwatch();
    // The next event finds everything in order.
    assert_eq!(function.invoke(&json!({"flow": "f"}))["status"], "Succeeded");
    // A sender that is not authenticated is refused.
    let mut asked = request("GET", "/v1/executions", &Value::Null);
    asked["requestContext"]["authorizer"] = Value::Null;
    assert_eq!(function.invoke(&asked)["statusCode"], 403);
    assert_eq!(
        function.invoke(&request("GET", "/v1/queues", &Value::Null))["statusCode"],
        501
    );
    assert!(function.invoke(&sweep())["continued"].is_number());
}

#[test]
fn silence_ends_a_call_in_another_invocation() {
    let stand = Stand::start();
    let (server, token) = told();
    let steps = json!([{"type": "task", "name": "asked", "resourceArn": format!("{}/asked", server.url()), "pattern": "waitForCallback",
        "timeoutSeconds": 60, "heartbeatSeconds": 4, "inputMappings": [{"target": "token", "source": "$context.task.token"}]}]);
    let function = Function::over(
        &stand,
        &[("f", flow(steps))],
        10,
        &[("STARBRIDGE_LAMBDA_LINGER_MS", "200")],
    );
    let begun = function.invoke(&json!({"flow": "f"}));
    assert_eq!(begun["status"], "Running", "{begun}");
    let id = begun["id"].as_str().unwrap();
    let token = token.lock().unwrap().clone().unwrap();
    // It sends two heartbeats, and lives longer than it would without.
    for _ in 0..2 {
        pause(2_500);
        function.take(&stand, stand.received(&stand.queue));
        let heard = function.invoke(&request(
            "POST",
            &format!("/v1/callbacks/{token}/heartbeat"),
            &json!({}),
        ));
        assert_eq!(heard["statusCode"], 204, "{heard}");
        assert_eq!(function.execution(id)["status"], "Running");
    }
    let ended = function.until_ended(&stand, id);
    assert_eq!(
        (&ended["status"], &ended["error"]),
        (&"Failed".into(), &"FnF.HeartbeatTimeout".into()),
        "{ended}"
    );
    assert_eq!(stand.received(&stand.queue).len(), 0, "no word is left over");
}

#[test]
fn somebody_without_permission_is_told_which() {
    let stand = Stand::start();
    let function = Function::over(&stand, &[("f", flow(json!([{"type": "pass", "name": "p"}])))], 30, &[]);
    stand.watch(|target, _| match target.ends_with("PutItem") {
        true => crate::stand::Way::Denied,
        false => crate::stand::Way::On,
    });
    let answer = function.invoke(&json!({"flow": "f"}));
    assert_eq!(answer["errorType"], "StoreFailed", "{answer}");
    let words = answer["errorMessage"].as_str().unwrap();
    assert!(
        words.contains("`flows`") && words.contains("not authorized"),
        "{answer}"
    );
}

#[test]
fn flows_come_out_of_a_bucket() {
    let stand = Stand::start();
    let put = |path: &str, body: &str| {
        let answer = starbridge_services::ask("PUT", &format!("{}{path}", stand.url()), &[], body.as_bytes()).unwrap();
        assert!(answer.status < 300, "{path}: {}", String::from_utf8_lossy(&answer.body));
    };
    put("/definitions", "");
    put(
        "/definitions/live/first.json",
        &flow(json!([{"type": "pass", "name": "p"}])).to_string(),
    );
    put(
        "/definitions/live/second.yaml",
        "version: v1\ntype: flow\nsteps:\n  - {type: succeed, name: s}\n",
    );
    put("/definitions/live/readme.md", "no flow");
    put("/definitions/live/old/third.json", "{}");
    let function = Function::over(&stand, &[], 20, &[("STARBRIDGE_LAMBDA_FLOWS", "s3://definitions/live")]);
    for (name, status) in [("first", "Succeeded"), ("second", "Succeeded")] {
        let answer = function.invoke(&json!({"flow": name}));
        assert_eq!(answer["status"], status, "{answer}");
    }
    assert_eq!(function.invoke(&json!({"flow": "third"}))["errorType"], "NoSuchFlow");
    let function = Function::over(&stand, &[], 20, &[("STARBRIDGE_LAMBDA_FLOWS", "s3://none/live")]);
    let answer = function.invoke(&json!({"flow": "first"}));
    assert_eq!(answer["errorType"], "BadFlow", "{answer}");
    assert!(
        answer["errorMessage"].as_str().unwrap().contains("the bucket `none`"),
        "{answer}"
    );
}
