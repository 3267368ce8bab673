//! Without a table: a flow runs within one invocation.

use crate::function::Function;
use serde_json::{Value, json};

pub fn flow(steps: Value) -> Value {
    let mut flow = json!({"version": "v1", "type": "flow"});
    flow["steps"] = steps;
    flow
}

fn ten() -> Value {
    let step = |number: u32| json!({"type": "pass", "name": format!("p{number}")});
    flow((0..10).map(step).collect())
}

#[test]
fn a_flow_of_the_package_is_run_cold_and_warm() {
    let function = Function::start(&[("ten", ten())], 10, &[]);
    for _ in 0..3 {
        let answer = function.invoke(&json!({"flow": "ten", "input": {"n": 1}}));
        assert_eq!(answer["status"], "Succeeded", "{answer}");
        assert_eq!(answer["history"].as_array().unwrap().len(), 42);
    }
    assert!(function.resident() < 60 << 20, "{}", function.resident());
}

#[test]
fn a_definition_that_comes_along_is_run() {
    let function = Function::start(&[], 10, &[]);
    let definition =
        flow(json!([{"type": "wait", "name": "w", "duration": 1}, {"type": "fail", "name": "f", "error": "No"}]));
    let answer = function.invoke(&json!({"definition": definition}));
    assert_eq!(
        (&answer["status"], &answer["error"]),
        (&"Failed".into(), &"No".into()),
        "{answer}"
    );
    let bad = flow(json!([{"type": "wiat", "name": "w"}]));
    let answer = function.invoke(&json!({"definition": bad}));
    assert_eq!(answer["errorType"], "InvalidDefinition");
    assert!(
        answer["errorMessage"].as_str().unwrap().contains("error[FDL0107]"),
        "{answer}"
    );
}

#[test]
fn what_does_not_end_in_time_is_said() {
    let function = Function::start(
        &[("long", flow(json!([{"type": "wait", "name": "w", "duration": 60}])))],
        2,
        &[],
    );
    let answer = function.invoke(&json!({"flow": "long"}));
    assert_eq!(answer["errorType"], "NotEnded", "{answer}");
    // The next one is not delayed by it.
    let answer = function.invoke(&json!({"definition": ten()}));
    assert_eq!(answer["status"], "Succeeded", "{answer}");
}

#[test]
fn there_are_no_worker_queues() {
    let function = Function::start(&[], 10, &[]);
    let task = flow(json!([{"type": "task", "name": "t", "resourceArn": "queue:q"}]));
    let answer = function.invoke(&json!({"definition": task}));
    assert_eq!(
        (&answer["status"], &answer["error"]),
        (&"Failed".into(), &"FnF.NoSuchResource".into()),
        "{answer}"
    );
}

#[test]
fn rubbish_is_answered_with_words() {
    let function = Function::start(&[("ten", ten())], 10, &[]);
    for (event, kind, word) in [
        (json!([]), "UnknownEvent", "an array"),
        (json!({"flow": "ten", "inptu": {}}), "BadEvent", "did you mean `input`?"),
        (json!({"flow": 7}), "BadEvent", "`flow`"),
        (json!({"flow": "ten", "async": 1}), "BadEvent", "`async`"),
        (
            json!({"flow": "ten", "async": true}),
            "NoTable",
            "STARBRIDGE_LAMBDA_TABLE",
        ),
        (json!({"flow": "ten", "durability": "none"}), "BadEvent", "`durability`"),
        (json!({"flow": "none"}), "NoSuchFlow", "`none`"),
        (json!({"flow": "ten", "input": 7}), "BadRequest", "`input`"),
        (json!({"flow": "ten", "name": "a b"}), "BadRequest", "a b"),
        (
            json!({"Records": [{"eventSource": "aws:kinesis"}]}),
            "UnknownEvent",
            "aws:kinesis",
        ),
    ] {
        let answer = function.invoke(&event);
        assert_eq!(answer["errorType"], kind, "{event}: {answer}");
        assert!(
            answer["errorMessage"].as_str().unwrap().contains(word),
            "{event}: {answer}"
        );
    }
    let large = "x".repeat(5 << 20);
    let answer = function.invoke(&json!({"flow": "ten", "input": {"text": large}}));
    // The answer would contain it twice.
    assert_eq!(answer["errorType"], "AnswerTooLarge");
}

#[test]
fn a_bad_setting_is_said_at_each_event() {
    let function = Function::start(&[], 10, &[("STARBRIDGE_LAMBDA_TABEL", "x")]);
    let answer = function.invoke(&json!({"flow": "ten"}));
    assert_eq!(answer["errorType"], "BadConfiguration");
    assert!(
        answer["errorMessage"]
            .as_str()
            .unwrap()
            .contains("did you mean `STARBRIDGE_LAMBDA_TABLE`?"),
        "{answer}"
    );
}

#[test]
fn one_that_is_killed_is_there_again() {
    let function = Function::start(&[("ten", ten())], 10, &[]);
    assert_eq!(function.invoke(&json!({"flow": "ten"}))["status"], "Succeeded");
    function.killer()();
    crate::function::pause(300);
    let again = (0..5).find_map(|_| {
        function
            .invoked(&json!({"flow": "ten"}))
            .filter(|answer| answer["status"] == "Succeeded")
    });
    assert!(again.is_some(), "{}", function.said());
}

#[test]
fn lines_and_figures_are_json() {
    let failing = flow(json!([{"type": "fail", "name": "no", "error": "No"}]));
    let set = [("STARBRIDGE_LAMBDA_METRICS", "true"), ("STARBRIDGE_LOG_LEVEL", "debug")];
    let function = Function::start(&[("failing", failing)], 10, &set);
    let answer = function.invoke(&json!({"flow": "failing"}));
    crate::function::pause(300);
    let said = function.said();
    let lines: Vec<Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let figures = lines
        .iter()
        .find(|line| line["_aws"].is_object())
        .unwrap_or_else(|| panic!("{said}"));
    assert_eq!(
        (&figures["Event"], &figures["Started"], &figures["Ended"]),
        (&"Direct".into(), &1.into(), &1.into())
    );
    let failed = lines
        .iter()
        .find(|line| line["execution"] == answer["id"] && line["step"] == "no");
    assert_eq!(failed.unwrap_or_else(|| panic!("{said}"))["error"], "No");
}

/// Does the same as a panic: this signal ends the process in the middle of an invocation.
#[test]
fn one_that_is_aborted_fails_the_event_and_is_there_again() {
    let slow = flow(json!([{"type": "wait", "name": "w", "duration": 4}]));
    let function = Function::start(&[("ten", ten()), ("slow", slow)], 20, &[]);
    assert_eq!(function.invoke(&json!({"flow": "ten"}))["status"], "Succeeded");
    let abort = function.signaller("-ABRT");
    let aborting = std::thread::spawn(move || {
        crate::function::pause(1_000);
        abort();
    });
    let answer = function.invoked(&json!({"flow": "slow"})).unwrap_or_default();
    aborting.join().unwrap();
    assert_ne!(answer["status"], "Succeeded", "{answer}");
    let again = (0..5).find_map(|_| {
        let answer = function.invoked(&json!({"flow": "ten"}))?;
        (answer["status"] == "Succeeded").then_some(answer)
    });
    assert!(again.is_some(), "{}", function.said());
}
