//! Random data: inputs, mappings, conditions, answers.
//!
//! Keys of one letter hold small values; `r` and `list` hold what composites bring about and are never mapped on, so that
//! no loop makes data grow without end.

use super::Chance;
use serde_json::{Map, Value, json};

const KEYS: [&str; 5] = ["a", "b", "c", "n", "t"];
const ERRORS: [&str; 3] = ["E1", "E2", "E3"];
/// Errors of tasks. The last one says that nothing was sent.
const TASK_ERRORS: [&str; 7] = ["E1", "E2", "E3", "E1", "E2", "E3", "FnF.NoSuchResource"];

pub fn input(chance: &mut Chance) -> Value {
    let mut input = json!({
        "items": (0..chance.below(5)).map(|_| small(chance)).collect::<Vec<_>>(),
        "pairs": (0..chance.below(4)).map(|_| pair(chance)).collect::<Vec<_>>(),
    });
    for key in KEYS {
        if chance.of(60) {
            input[key] = small(chance);
        }
    }
    input
}

fn pair(chance: &mut Chance) -> Value {
    json!({"k": small(chance), "list": (0..chance.below(3)).map(|_| small(chance)).collect::<Vec<_>>()})
}

fn small(chance: &mut Chance) -> Value {
    match chance.below(8) {
        0 => json!("x"),
        1 => json!("2"),
        2 => json!(true),
        3 => json!(false),
        4 => Value::Null,
        5 => json!(1.5),
        _ => json!(chance.below(4)),
    }
}

/// So many milliseconds as seconds.
fn seconds(millis: u32) -> Value {
    json!(f64::from(millis) / 1000.0)
}

pub fn stop(chance: &mut Chance) -> Value {
    let mut stop = json!({"atSeconds": seconds(chance.below(15_000)), "rollback": chance.of(60)});
    if chance.of(50) {
        stop["error"] = json!("Stop.Enough");
        stop["cause"] = json!("no more");
    }
    stop
}

pub fn wait(chance: &mut Chance) -> Value {
    if chance.of(20) {
        let timestamp = chance.pick(&["2024-01-01T00:00:03Z", "2023-12-31T00:00:00+01:00", "$.b"]);
        return json!({"type": "wait", "timestamp": timestamp});
    }
    let fixed = [
        json!(0.5),
        json!(3),
        json!(1.001),
        json!(0),
        json!(1),
        json!(0.25),
        json!("2"),
        json!(7),
        json!("$.a"),
        json!("$.it"),
        json!("$.n"),
    ];
    json!({"type": "wait", "duration": chance.pick(&fixed)})
}

pub fn fail(chance: &mut Chance) -> Value {
    let mut fail = json!({"type": "fail"});
    if chance.of(85) {
        fail["error"] = json!(chance.pick(&["E1", "E2", "E3", "$input.b"]));
    }
    if chance.of(50) {
        fail["cause"] = json!(chance.pick(&["because", "$input.a", "$input.it"]));
    }
    fail
}

/// Mostly one that is there; `inside` a foreach there are more.
pub fn collection(chance: &mut Chance, inside: bool) -> &'static str {
    match chance.weighted(&[50, 25, if inside { 30 } else { 1 }, 3]) {
        0 => "$.items",
        1 => "$.pairs",
        2 => "$.it.list",
        _ => "$.missing",
    }
}

pub fn condition(chance: &mut Chance) -> String {
    let atom = |chance: &mut Chance| {
        let atoms = [
            "$.a == 1",
            "$.a < 2",
            "$.b == \"x\"",
            "$.t",
            "$.n >= 2",
            "$.missing != 1",
            "$.it.k > 1",
            "1 in $.items",
            "'k' in $.it",
            "true",
            "$.items[0] == 1",
            "$.a == $.c",
            "$.b != null",
            "-1 < $.c",
            "$.items[-1] <= 'x'",
        ];
        chance.pick(&atoms).to_owned()
    };
    let first = atom(chance);
    match chance.below(6) {
        0 => format!("{first} && {}", atom(chance)),
        1 => format!("{first} || {}", atom(chance)),
        2 => format!("!({first})"),
        3 => format!("!({first} || {}) && {}", atom(chance), atom(chance)),
        _ => first,
    }
}

/// Mappings, each to another target of `targets`.
fn mappings(chance: &mut Chance, targets: &[&str], made: impl Fn(&mut Chance) -> (&'static str, Value)) -> Value {
    let mut list = Vec::new();
    for target in targets {
        if chance.of(45) {
            let (member, value) = made(chance);
            let mut mapping = json!({"target": target, member: value});
            if chance.of(6) {
                mapping["required"] = json!(true);
            }
            list.push(mapping);
        }
    }
    json!(list)
}

fn source(chance: &mut Chance, root: &str) -> (&'static str, Value) {
    let key = chance.pick(&KEYS);
    match chance.below(9) {
        0 => ("source", small(chance)),
        1 => ("source", json!("$context.step.attempt")),
        2 => (
            "source",
            json!(chance.pick(&["$context.step.visit", "$context.foreach.index", "$context.step.name"])),
        ),
        3 => ("template", json!(format!("<{{{root}.{key}}}>"))),
        4 => ("source", json!("$input.it.k")),
        5 => ("source", json!(format!("$input.{key}"))),
        _ => ("source", json!(format!("{root}.{key}"))),
    }
}

pub fn input_mappings(chance: &mut Chance) -> Value {
    let made = mappings(chance, &KEYS, |chance| source(chance, "$local"));
    let mut list = made.as_array().cloned().unwrap_or_default();
    for key in ["items", "pairs", "it"] {
        if chance.of(80) {
            list.push(json!({"target": key, "source": format!("$input.{key}")}));
        }
    }
    json!(list)
}

pub fn output_mappings(chance: &mut Chance) -> Value {
    mappings(chance, &KEYS, |chance| source(chance, "$local"))
}

pub fn array_mappings(chance: &mut Chance) -> Value {
    mappings(chance, &["r", "list", "a", "b"], |chance| {
        let paths = [
            "$local",
            "$local[0]",
            "$local[*].a",
            "$local[-1].error",
            "$local[1:].b",
            "$local[0].a",
            "$local[*].t",
        ];
        ("source", json!(chance.pick(&paths)))
    })
}

pub fn error_mappings(chance: &mut Chance) -> Value {
    mappings(chance, &["b", "c", "t"], |chance| {
        let paths = [
            "$local.error",
            "$local.cause",
            "$input.a",
            "$context.step.attempt",
            "$local.none",
        ];
        ("source", json!(chance.pick(&paths)))
    })
}

pub fn rollback_mappings(chance: &mut Chance) -> Value {
    mappings(chance, &["a", "why"], |chance| {
        (
            "source",
            json!(chance.pick(&["$context.error", "$local.a", "$input.a", "$context.cause"])),
        )
    })
}

pub fn flow_input(chance: &mut Chance) -> Value {
    let mut list: Vec<Value> = Vec::new();
    for key in ["a", "b", "items", "pairs"] {
        if chance.of(80) {
            list.push(json!({"target": key, "source": format!("$input.{key}")}));
        }
    }
    json!(list)
}

pub fn flow_output(chance: &mut Chance) -> Value {
    mappings(chance, &["all", "first", "a", "r"], |chance| {
        (
            "source",
            json!(chance.pick(&[
                "$local",
                "$input",
                "$local.a",
                "$input.items[*]",
                "$local.r",
                "$local.n"
            ])),
        )
    })
}

/// One or two groups of error names that have none in common.
pub fn distinct_errors(chance: &mut Chance) -> Vec<Value> {
    let all = json!(["FnF.ALL"]);
    let some = [
        json!(["E1"]),
        json!(["E2", "E3"]),
        json!(["FnF.TaskTimeout"]),
        json!(["FnF.BranchFailed", "FnF.InvalidLocal"]),
        json!(["FnF.PollFailed", "FnF.HeartbeatTimeout"]),
    ];
    let first = chance.below(5);
    let mut groups = vec![some[first as usize].clone()];
    if chance.of(40) {
        groups.push(some[((first + 1 + chance.below(4)) % 5) as usize].clone());
    }
    match chance.below(5) {
        0 => vec![all],
        1 => {
            groups.push(all);
            groups
        }
        _ => groups,
    }
}

fn result(chance: &mut Chance) -> Value {
    let mut object = Map::new();
    for key in KEYS {
        if chance.of(35) {
            object.insert(key.to_owned(), small(chance));
        }
    }
    json!(object)
}

/// One to three answers of a task; `never` only where something ends the waiting.
pub fn answers(chance: &mut Chance, bounded: bool) -> Value {
    let count = chance.from(1, 3);
    let list: Vec<Value> = (0..count)
        .map(|_| {
            let answer = match chance.weighted(&[74, 20, 2, if bounded { 8 } else { 0 }]) {
                0 => json!({"result": result(chance)}),
                1 => json!({"error": chance.pick(&TASK_ERRORS), "cause": "of the world"}),
                2 => json!({"result": [1]}),
                _ => json!({"never": true}),
            };
            delayed(chance, answer)
        })
        .collect();
    json!(list)
}

/// The same for what undoes a task: it mostly can.
pub fn undo_answers(chance: &mut Chance, bounded: bool) -> Value {
    let count = chance.from(1, 2);
    let list: Vec<Value> = (0..count)
        .map(|_| {
            let answer = match chance.weighted(&[90, 8, if bounded { 4 } else { 0 }]) {
                0 => json!({"result": result(chance)}),
                1 => json!({"error": chance.pick(&ERRORS), "cause": "cannot undo"}),
                _ => json!({"never": true}),
            };
            delayed(chance, answer)
        })
        .collect();
    json!(list)
}

fn delayed(chance: &mut Chance, mut answer: Value) -> Value {
    if answer.get("never").is_none() && chance.of(55) {
        let whole = chance.of(30);
        let millis = if whole {
            1000 * chance.below(8)
        } else {
            chance.below(9_000)
        };
        answer["delaySeconds"] = seconds(millis);
    }
    answer
}
