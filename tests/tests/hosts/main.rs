//! One flow, three hosts, one history: `exec`, `serve` and the function of Lambda run the same cases over HTTP functions, and
//! their histories differ in times and ids only.

mod cases;
mod functions;
mod running;

use cases::Tried;
use functions::Functions;
use running::{Exec, Host, Lambda, Serve};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Which part of the cases is run; all, where nothing is said.
fn part() -> usize {
    std::env::var("STARBRIDGE_HOSTS_PART")
        .ok()
        .and_then(|part| part.parse().ok())
        .unwrap_or(1)
}

#[test]
fn three_hosts_write_one_history() {
    let functions = Functions::start();
    let cases: Vec<Tried> = cases::all().into_iter().step_by(part()).collect();
    let (exec, serve, lambda) = (
        Exec::new(&functions),
        Serve::start(&functions),
        Lambda::start(&functions),
    );
    let hosts: [(&str, &dyn Host); 3] = [("exec", &exec), ("serve", &serve), ("lambda", &lambda)];
    let mut wrong = Vec::new();
    for case in &cases {
        let mut found = differences(&functions, &hosts, case);
        // On a busy machine calls that leave together may come so far apart that they are answered in another order.
        if case.wide && !found.is_empty() {
            found = differences(&functions, &hosts, case);
        }
        wrong.extend(found);
    }
    println!("{} cases on {} hosts", cases.len(), hosts.len());
    assert!(
        wrong.is_empty(),
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
    assert!(cases.len() * part() >= 500, "{} cases", cases.len());
}

/// Runs a case on each host. Answers in what their histories differ.
fn differences(functions: &Functions, hosts: &[(&str, &dyn Host)], case: &Tried) -> Vec<String> {
    let (mut wrong, mut histories) = (Vec::new(), Vec::new());
    for (name, host) in hosts {
        functions.expect(case);
        match host.run(case) {
            Ok(history) => histories.push((name, shown(&history))),
            Err(problem) => wrong.push(format!("{} on {name}: {problem}", case.title)),
        }
    }
    if let Some((first, expected)) = histories.first() {
        for (name, history) in histories.iter().skip(1) {
            if let Some(difference) = difference(expected, history) {
                wrong.push(format!("{}: {first} and {name} differ: {difference}", case.title));
            }
        }
    }
    wrong
}

/// Events as they are compared: without times, with ids by the order they come in.
fn shown(events: &[Value]) -> Vec<String> {
    let mut ids = BTreeMap::new();
    events.iter().map(|event| plain(event, &mut ids).to_string()).collect()
}

/// Members that are times, made by chance, or say how often something was put.
const LEFT_OUT: [&str; 4] = ["time", "seed", "heldTime", "version"];

fn plain(value: &Value, ids: &mut BTreeMap<String, usize>) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()));
            let kept: Map<String, Value> = kept.map(|(key, value)| (key.clone(), plain(value, ids))).collect();
            kept.into()
        }
        Value::Array(items) => items.iter().map(|item| plain(item, ids)).collect(),
        Value::String(text) => named(text, ids).into(),
        other => other.clone(),
    }
}

/// A text in which ids are numbers and times are all the same.
fn named(text: &str, ids: &mut BTreeMap<String, usize>) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        if let Some(id) = rest.get(..36).filter(|part| is_id(part)) {
            let known = ids.len();
            let number = *ids.entry(id.to_owned()).or_insert(known);
            shown.push_str(&format!("<id {number}>"));
            rest = rest.get(36..).unwrap_or_default();
        } else if let Some(after) = after_time(rest) {
            shown.push_str("<time>");
            rest = after;
        } else {
            shown.push(next);
            rest = rest.get(next.len_utf8()..).unwrap_or_default();
        }
    }
    shown
}

fn is_id(part: &str) -> bool {
    let hyphen = |place: usize| matches!(place, 8 | 13 | 18 | 23);
    part.bytes().enumerate().all(|(place, byte)| match hyphen(place) {
        true => byte == b'-',
        false => byte.is_ascii_hexdigit(),
    })
}

/// What follows a time like `2026-01-02T03:04:05.678Z`, if a text begins with one.
fn after_time(text: &str) -> Option<&str> {
    let digits = |from: usize, to: usize| {
        text.get(from..to)
            .is_some_and(|part| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let begins =
        digits(0, 4) && text.get(4..5) == Some("-") && digits(5, 7) && text.get(10..11) == Some("T") && digits(11, 13);
    let end = begins.then(|| text.find('Z')).flatten().filter(|end| *end <= 24)?;
    text.get(end + 1..)
}

fn difference(expected: &[String], found: &[String]) -> Option<String> {
    let place = expected.iter().zip(found).position(|(one, other)| one != other);
    match place {
        Some(place) => Some(format!(
            "event {}\n    {}\n    {}",
            place + 1,
            expected[place],
            found[place]
        )),
        None if expected.len() != found.len() => Some(format!("{} and {} events", expected.len(), found.len())),
        None => None,
    }
}
