//! Cases that can run in real time, with functions behind HTTP: no operator, no clock of their own, no long waits, nothing that
//! is told by chance or by the real time.

use serde_json::{Value, json};
use starbridge_flow::limits::Limits;
use starbridge_flow::time::Millis;
use starbridge_flow::value::Text;
use starbridge_machine::{Event, EventKind};
use starbridge_simulator::{Case, Flows, Simulation, TestFile};
use starbridge_tests::{conformance, data};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A case.
pub struct Tried {
    pub title: String,
    /// The name of the flow under test.
    pub flow: String,
    /// The flow.
    pub definition: Value,
    /// Its children by name.
    pub children: Vec<(String, Value)>,
    pub input: Value,
    /// The answers of functions: by step, or `flow/step`.
    pub mocks: Value,
    /// Whether calls are out at once.
    pub wide: bool,
    /// The calls of functions a simulation makes, by flow: the numbers of their events. Flows that run more than once are not here.
    pub calls: Calls,
}

/// Numbers of calls by flow.
pub type Calls = BTreeMap<String, BTreeSet<u64>>;

/// The longest a case may take.
const LONGEST: Millis = Millis(1_100);
/// Words of definitions that ask for more than hosts have in common, or for chance.
const NOT_HERE: [&str; 13] = [
    // A name outlives its case on a server.
    "ExecutionName",
    "waitForCallback",
    "manual",
    "\"concurrency\":[",
    "jitter",
    "random",
    "uuid",
    "secret://",
    "queue:",
    "timestamp",
    "$context.execution.startTime",
    "$context.now",
    "now(",
];

/// All of them, of conformance cases and of examples.
pub fn all() -> Vec<Tried> {
    let mut found = Vec::new();
    for folder in [data::folder().join("conformance"), data::root().join("examples")] {
        for path in data::files(&folder, ".test.json") {
            let text = std::fs::read_to_string(&path).unwrap();
            let shown = path.strip_prefix(data::root()).unwrap_or(&path).display().to_string();
            found.extend(of_file(&text, &path, &shown));
        }
    }
    found
}

fn of_file(text: &str, path: &Path, shown: &str) -> Vec<Tried> {
    let raw: Value = serde_json::from_str(text).unwrap();
    let file = TestFile::parse(text).unwrap();
    if raw.get("limits").is_some() {
        return Vec::new();
    }
    let Ok(flows) = conformance::load(&file, path) else {
        return Vec::new();
    };
    let mut tried = Vec::new();
    for (case, raw) in file.cases.iter().zip(raw["cases"].as_array().into_iter().flatten()) {
        let definition = read(&flows.flow.definition.to_json());
        let children: Vec<(String, Value)> = flows
            .children
            .iter()
            .map(|(name, flow)| (name.clone(), read(&flow.definition.to_json())))
            .collect();
        let flow = definition["name"].as_str().unwrap_or("f").to_owned();
        let Some(histories) = simulated(&flows, case, raw, &definition, &children) else {
            continue;
        };
        let all = definition.to_string() + &children.iter().map(|(_, child)| child.to_string()).collect::<String>();
        tried.push(Tried {
            title: format!("{shown}: {}", case.name),
            calls: calls_of(&histories, &flow),
            flow,
            definition,
            children,
            input: raw.get("input").cloned().unwrap_or_else(|| json!({})),
            mocks: raw.get("mocks").cloned().unwrap_or_else(|| json!({})),
            wide: all.contains("\"parallel\"") || all.contains("\"foreach\""),
        });
    }
    tried
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// The calls of functions in these histories. The one without a parent is of `root`.
fn calls_of(histories: &BTreeMap<Text, Vec<Event>>, root: &str) -> Calls {
    let mut calls = Calls::new();
    let mut twice = BTreeSet::new();
    for events in histories.values() {
        let Some(EventKind::ExecutionStarted(started)) = events.first().map(|event| &event.detail) else {
            continue;
        };
        let flow = match started.parent {
            None => root.to_owned(),
            Some(_) => started.flow.to_string(),
        };
        let of_function = |event: &&Event| match &event.detail {
            EventKind::TaskScheduled(scheduled) => !scheduled.resource.starts_with("flow:"),
            _ => false,
        };
        let numbers = events.iter().filter(of_function).map(|event| event.id.0).collect();
        if calls.insert(flow.clone(), numbers).is_some() {
            twice.insert(flow);
        }
    }
    calls.retain(|flow, _| !twice.contains(flow));
    calls
}

/// The histories of a case in virtual time, if it can run in real time as well.
fn simulated(
    flows: &Flows,
    case: &Case,
    raw: &Value,
    definition: &Value,
    children: &[(String, Value)],
) -> Option<BTreeMap<Text, Vec<Event>>> {
    if ["stop", "pause", "startTime", "labels", "executionName"]
        .iter()
        .any(|member| raw.get(member).is_some())
    {
        return None;
    }
    let late = |mock: &Value| {
        mock.get("never").is_some() || mock.get("delaySeconds").is_some() || mock.get("retryAfterSeconds").is_some()
    };
    let mocks = raw.get("mocks").and_then(Value::as_object).into_iter().flatten();
    if mocks
        .flat_map(|(_, mocks)| mocks.as_array().into_iter().flatten())
        .any(late)
    {
        return None;
    }
    let text = definition.to_string() + &children.iter().map(|(_, child)| child.to_string()).collect::<String>();
    if NOT_HERE.iter().any(|word| text.contains(word)) {
        return None;
    }
    let mut simulation = Simulation::new(flows.clone(), case.clone(), Limits::default());
    let outcome = simulation.run().ok()?;
    let fits = outcome.status != "Refused" && outcome.elapsed <= LONGEST && outcome.events.len() < 2_000;
    fits.then(|| simulation.histories().clone())
}
