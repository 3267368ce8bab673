//! Cases in which an operator takes part: `*.operated.json` files below `tests/conformance/`.
//!
//! Each is a test file (docs/language/testing.md) whose cases have more **legs**: after the first has ended, what an operator
//! does, and how it goes on then. Steps, events and seconds that a leg expects are those of the leg alone.
//!
//! | member of an entry of `then` | meaning |
//! |---|---|
//! | `redrive: true`, `by`?, `inputs`? | the execution is redriven, with these inputs for steps it enters again: `{"event", "input"}` each |
//! | `skip: CAUSE` | the undo that failed is left out |
//! | `fork: N`, `executionName`? | a new execution goes on from the turn of event N of the one before |
//! | `resolve: {action, …}` | the step that waits for an operator is resolved |
//! | `reorder: {priority?, orderTime?, startNow?, after?}` | it goes in another order |
//! | `laterSeconds`? | how much later that is |
//! | `mocks`, `stop`, `expect` | as in a case; mocks and the time of the stop start again |
//! | `from`?, `again`? | what the event of a redrive must say |
//!
//! A leg ends with the execution, or where nothing more will happen, and one that expects `Manual` where an operator is waited
//! for. An operator who is refused ends the leg with `status` `NotRedrivable` or `Refused`.

mod run;

use crate::conformance::{self, Report, golden};
use crate::data;
use run::{Run, Way};
use serde_json::Value;
use starbridge_flow::graph::Flow;
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Millis;
use starbridge_machine::{EditedInput, Event, EventId, NewOrder};
use starbridge_simulator::{Case, Expect, TestFile, compare};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An operator's action.
#[derive(Clone, Debug)]
enum Act {
    Redrive {
        by: Option<String>,
        inputs: Vec<EditedInput>,
    },
    Skip(String),
    Fork {
        event: u64,
        name: String,
    },
    Resolve(Value),
    Reorder(NewOrder),
}

/// The action that begins a leg, and the expected event.
#[derive(Clone, Debug)]
struct Leg {
    act: Act,
    later: Millis,
    from: Option<u64>,
    again: Option<Vec<String>>,
    case: Case,
}

/// A case with its legs.
struct Operated {
    case: Case,
    then: Vec<Leg>,
}

/// The files, in order.
pub fn files() -> Vec<PathBuf> {
    data::files(&data::folder().join("conformance"), ".operated.json")
}

/// Runs the cases of a file; `wanted` as in [`conformance::run`].
pub(crate) fn run_file(path: &Path, file: &str, wanted: Option<&str>, report: &mut Report) {
    let (flow, limits, cases) = match read(path) {
        Ok(read) => read,
        Err(problem) => {
            report.cases += 1;
            report.fault(file, "(the file)", problem);
            return;
        }
    };
    for (index, operated) in cases.iter().enumerate() {
        let name = &operated.case.name;
        if wanted.is_some_and(|wanted| !file.contains(wanted) && !name.contains(wanted)) {
            continue;
        }
        report.cases += 1;
        match run_case(&flow, &limits, operated, report) {
            Ok((problems, straight)) => {
                let recorded =
                    (index == 0).then(|| golden::compare_lines(file, &flow, straight.id(), straight.events()));
                for problem in problems.into_iter().chain(recorded.flatten()) {
                    report.fault(file, name, problem);
                }
            }
            Err(problem) => report.fault(file, name, problem),
        }
    }
}

/// Every execution of a file's cases: its flow, id and events.
pub fn histories(path: &Path) -> Result<Vec<Run>, String> {
    let (flow, limits, cases) = read(path)?;
    let runs = cases.iter().map(|operated| {
        let mut run = Run::new(&flow, &limits, Way::Straight);
        legs(&mut run, operated)?;
        Ok(run)
    });
    runs.collect()
}

/// Redrives what comes of a test file's one case so often, with the same answers each time; says what does not hold. A task
/// without an answer waits for ever.
pub fn redriven(file: &Value, times: usize) -> Result<Vec<Event>, String> {
    let parsed = parse(file)?;
    let flow = conformance::load(&parsed, Path::new(""))?.flow;
    let limits = Arc::new(parsed.limits.over(Limits::default()));
    let case = parsed.cases.into_iter().next().ok_or("there is no case")?;
    let leg = Leg {
        act: Act::Redrive {
            by: None,
            inputs: Vec::new(),
        },
        later: Millis(1_000),
        from: None,
        again: None,
        case: Case {
            expect: Expect::default(),
            ..case
        },
    };
    let operated = Operated {
        case: leg.case.clone(),
        then: vec![leg; times],
    };
    let mut report = Report::default();
    let (problems, straight) = run_case(&flow, &limits, &operated, &mut report)?;
    match problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => Ok(straight.events().to_vec()),
    }
}

fn run_case(
    flow: &Arc<Flow>,
    limits: &Arc<Limits>,
    operated: &Operated,
    report: &mut Report,
) -> Result<(Vec<String>, Run), String> {
    let mut straight = Run::new(flow, limits, Way::Straight);
    let mut problems = legs(&mut straight, operated)?;
    for way in [Way::Folded, Way::Restored, Way::Twice] {
        report.interrupted += 1;
        let mut again = Run::new(flow, limits, way);
        legs(&mut again, operated)?;
        let (events, others) = (straight.events(), again.events());
        let same = events.iter().zip(others).take_while(|(a, b)| a == b).count();
        if same < events.len().max(others.len()) {
            problems.push(format!(
                "{way:?}: the history changes at event {}:\n    straight {:?}\n    then     {:?}",
                same + 1,
                events.get(same),
                others.get(same)
            ));
        }
    }
    problems.extend(conformance::replay(
        flow,
        straight.state(),
        straight.events(),
        limits,
        report,
    ));
    problems.extend(straight.signals_give_the_same());
    Ok((problems, straight))
}

/// Runs a case and its legs. Compares the result of each with the expected one.
fn legs(run: &mut Run, operated: &Operated) -> Result<Vec<String>, String> {
    let in_leg = |number: usize| move |problem: String| format!("leg {number}: {problem}");
    let outcome = run.first(&operated.case).map_err(in_leg(1))?;
    let mut problems = compare(&operated.case.expect, &outcome);
    for (number, leg) in (2..).zip(&operated.then) {
        let from = run.events().len();
        let outcome = run.operate(&leg.act, leg.later, &leg.case).map_err(in_leg(number))?;
        let mut found = compare(&leg.case.expect, &outcome);
        found.extend(run.redriven_from(from, leg.from, leg.again.as_deref()));
        problems.extend(found.into_iter().map(in_leg(number)));
    }
    Ok(problems)
}

type Read = (Arc<Flow>, Arc<Limits>, Vec<Operated>);

fn read(path: &Path) -> Result<Read, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let mut file: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let thens: Vec<Vec<Value>> = (file["cases"].as_array_mut().into_iter().flatten())
        .map(|case| match case.as_object_mut().and_then(|case| case.remove("then")) {
            Some(Value::Array(legs)) => legs,
            _ => Vec::new(),
        })
        .collect();
    let plain = parse(&file)?;
    let flow = conformance::load(&plain, path)?.flow;
    let limits = Arc::new(plain.limits.over(Limits::default()));
    let mut cases = Vec::new();
    for (case, legs) in plain.cases.into_iter().zip(thens) {
        if legs.is_empty() {
            return Err(format!("case `{}`: nothing in `then`", case.name));
        }
        let then: Result<Vec<Leg>, String> = legs.into_iter().map(|leg| read_leg(&file, leg)).collect();
        cases.push(Operated { case, then: then? });
    }
    Ok((flow, limits, cases))
}

fn parse(file: &Value) -> Result<TestFile, String> {
    TestFile::parse(&file.to_string()).map_err(|error| error.to_string())
}

/// The inputs of a redrive.
fn read_inputs(inputs: &Value) -> Result<Vec<EditedInput>, String> {
    let read = |given: &Value| {
        let event = given["event"].as_u64().ok_or("an input has an `event`")?;
        let input = serde_json::from_value(given["input"].clone()).map_err(|error| error.to_string())?;
        Ok(EditedInput {
            event: EventId(event),
            input,
        })
    };
    inputs.as_array().into_iter().flatten().map(read).collect()
}

fn read_order(order: &Value) -> NewOrder {
    NewOrder {
        priority: order["priority"].as_u64().and_then(|priority| priority.try_into().ok()),
        order_time: order["orderTime"].as_i64(),
        start_now: order["startNow"] == true,
        drop_after: order.get("after").is_some(),
    }
}

/// A leg: what is its own is taken out, what is left is a case.
fn read_leg(file: &Value, mut leg: Value) -> Result<Leg, String> {
    let members = leg.as_object_mut().ok_or("a leg is an object")?;
    let mut take = |key: &str| members.remove(key);
    let by = take("by").and_then(|by| by.as_str().map(str::to_owned));
    let name = take("executionName");
    let inputs = take("inputs").map_or_else(|| Ok(Vec::new()), |inputs| read_inputs(&inputs))?;
    let reorder = take("reorder");
    let act = match (take("redrive"), take("fork"), take("resolve"), take("skip")) {
        (Some(Value::Bool(true)), None, None, None) => Act::Redrive { by, inputs },
        (None, None, None, Some(Value::String(cause))) => Act::Skip(cause),
        (None, Some(event), None, None) => Act::Fork {
            event: event.as_u64().ok_or("`fork` is an event's number")?,
            name: name.as_ref().and_then(Value::as_str).unwrap_or("fork").to_owned(),
        },
        (None, None, Some(resolution), None) => Act::Resolve(resolution),
        (None, None, None, None) if reorder.is_some() => Act::Reorder(read_order(&reorder.unwrap_or_default())),
        _ => return Err("a leg has one of `redrive`, `skip`, `fork`, `resolve` and `reorder`".to_owned()),
    };
    let later = take("laterSeconds").and_then(|seconds| seconds.as_f64()).unwrap_or(0.0);
    let from = take("from").and_then(|from| from.as_u64());
    let again = take("again").and_then(|again| serde_json::from_value(again).ok());
    members.insert("name".to_owned(), Value::from("a leg"));
    let mut of_leg = file.clone();
    of_leg["cases"] = Value::Array(vec![leg]);
    let case = parse(&of_leg)?.cases.into_iter().next().ok_or("a leg is a case")?;
    Ok(Leg {
        act,
        later: Millis((later * 1000.0).round() as u64),
        from,
        again,
        case,
    })
}
