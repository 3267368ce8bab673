//! Compares the expectations with the outcome.

use super::case::Expect;
use super::outcome::Outcome;
use starbridge_flow::value::Value;

/// The differences, for people; empty if everything is as expected.
pub fn compare(expect: &Expect, outcome: &Outcome) -> Vec<String> {
    let mut problems = Vec::new();
    let failure = outcome.failure.as_ref();
    let context = match (failure, &outcome.refusal) {
        (Some(failure), _) => format!(" ({}: {})", failure.error, failure.cause),
        (None, Some(refusal)) => format!(" ({refusal})"),
        (None, None) => String::new(),
    };
    if let Some(status) = &expect.status
        && *status != outcome.status
    {
        problems.push(format!("status: expected {status}, got {}{context}", outcome.status));
    }
    if let Some(expected) = &expect.output {
        let got = outcome.output.clone();
        if got.as_ref() != Some(expected) {
            difference(&mut problems, expected, got.as_ref());
        }
    }
    text(
        &mut problems,
        "error",
        expect.error.as_deref(),
        failure.map(|failure| failure.error.as_str()),
    );
    text(
        &mut problems,
        "cause",
        expect.cause.as_deref(),
        failure.map(|failure| failure.cause.as_str()),
    );
    list(&mut problems, "steps", expect.steps.as_deref(), &outcome.steps);
    list(
        &mut problems,
        "rollbacks",
        expect.rollbacks.as_deref(),
        &outcome.rollbacks,
    );
    list(&mut problems, "events", expect.events.as_deref(), &outcome.events);
    if let Some(seconds) = expect.elapsed_seconds {
        let got = outcome.elapsed.as_secs_f64();
        if (got - seconds).abs() > 0.000_5 {
            problems.push(format!("elapsedSeconds: expected {seconds}, got {got}"));
        }
    }
    problems
}

fn text(problems: &mut Vec<String>, what: &str, expected: Option<&str>, got: Option<&str>) {
    if let Some(expected) = expected
        && got != Some(expected)
    {
        let got = got.map_or_else(|| "none".to_owned(), |got| format!("`{got}`"));
        problems.push(format!("{what}: expected `{expected}`, got {got}"));
    }
}

/// The first difference of two lists, with its context.
fn list(problems: &mut Vec<String>, what: &str, expected: Option<&[String]>, got: &[String]) {
    let Some(expected) = expected else {
        return;
    };
    if expected == got {
        return;
    }
    let at = expected.iter().zip(got).take_while(|(a, b)| a == b).count();
    let show = |list: &[String]| match list.get(at) {
        Some(there) => format!("`{there}`"),
        None => "the end".to_owned(),
    };
    problems.push(format!(
        "{what}: at {} expected {}, got {}\n    expected {}\n    got      {}",
        at + 1,
        show(expected),
        show(got),
        expected.join(" "),
        got.join(" ")
    ));
}

/// The first difference of two outputs, by JSON pointer.
fn difference(problems: &mut Vec<String>, expected: &Value, got: Option<&Value>) {
    const MAX_DIFFERENCES: usize = 10;
    let Some(got) = got else {
        problems.push(format!("output: expected {expected}, got none"));
        return;
    };
    let mut open = vec![(String::new(), expected, got)];
    let mut found = 0;
    while let Some((pointer, expected, got)) = open.pop() {
        if expected == got || found >= MAX_DIFFERENCES {
            continue;
        }
        match (expected, got) {
            (Value::Object(a), Value::Object(b)) => {
                for (key, value) in a {
                    match b.get(key) {
                        Some(there) => open.push((format!("{pointer}/{key}"), value, there)),
                        None => {
                            found += 1;
                            problems.push(format!("output{pointer}/{key}: expected {value}, got nothing"));
                        }
                    }
                }
                for (key, value) in b {
                    if !a.contains_key(key) {
                        found += 1;
                        problems.push(format!("output{pointer}/{key}: expected nothing, got {value}"));
                    }
                }
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
                for (index, (a, b)) in a.values().iter().zip(b.values()).enumerate() {
                    open.push((format!("{pointer}/{index}"), a, b));
                }
            }
            _ => {
                found += 1;
                problems.push(format!("output{pointer}: expected {expected}, got {got}"));
            }
        }
    }
}
