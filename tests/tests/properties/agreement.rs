//! The machine against the model: what comes of a case must be what the naive interpreter says.

use crate::model::{OPEN, Told, tell};
use crate::promises;
use crate::random::EVENTS;
use serde_json::{Value, json};
use starbridge_simulator::{Outcome, Simulation};

/// Runs a test file on both; says where they differ. `Ok(false)`: the case can't be compared.
pub fn compare(file: &Value) -> Result<bool, String> {
    let (flows, case, limits) = promises::read(file)?;
    let mut simulation = Simulation::new(flows, case, limits);
    let outcome = simulation
        .run()
        .map_err(|error| format!("does not come to an end: {error}"))?;
    // The model counts no events, so it does not know when a history is full.
    if outcome.events.len() as u64 + 1 >= EVENTS {
        return Ok(false);
    }
    let told = tell(file);
    match difference(&told, &outcome) {
        None => Ok(true),
        Some(difference) => Err(format!(
            "{difference}\n  model   {told:?}\n  machine {}",
            shown(&outcome)
        )),
    }
}

/// The case as the model expects it, to be kept as a conformance case.
pub fn expected(file: &Value) -> Value {
    let told = tell(file);
    let mut expect = json!({
        "status": told.status,
        "steps": told.steps,
        "rollbacks": told.rollbacks,
        "elapsedSeconds": told.elapsed.as_secs_f64(),
    });
    if let Some(output) = told.output.filter(|output| !output.to_string().contains("\\u0000")) {
        expect["output"] = output;
    }
    if let Some((error, cause)) = told.failure {
        expect["error"] = json!(error);
        if !cause.contains(OPEN) {
            expect["cause"] = json!(cause);
        }
    }
    let mut file = file.clone();
    file["cases"][0]["expect"] = expect;
    file
}

fn difference(told: &Told, outcome: &Outcome) -> Option<&'static str> {
    let failure = outcome.failure.as_ref();
    let output = outcome.output.clone().map(|output| Value::from(&output));
    let failures_agree = match (&told.failure, failure) {
        (None, None) => true,
        (Some((error, cause)), Some(failure)) => text(error, &failure.error) && text(cause, &failure.cause),
        _ => false,
    };
    let outputs_agree = match (&told.output, &output) {
        (None, None) => true,
        (Some(told), Some(output)) => same(told, output),
        _ => false,
    };
    [
        (told.status == outcome.status, "another status"),
        (told.steps == outcome.steps, "other steps"),
        (failures_agree, "another error"),
        (told.rollbacks == outcome.rollbacks, "other rollbacks"),
        (outputs_agree, "another output"),
        (told.elapsed == outcome.elapsed, "another time"),
    ]
    .into_iter()
    .find(|(agrees, _)| !agrees)
    .map(|(_, what)| what)
}

/// Whether a text is what is told, as far as it is told. The model's objects do not keep the order of their members.
fn text(told: &str, text: &str) -> bool {
    let as_object = |text: &str| serde_json::from_str(text).ok().filter(Value::is_object);
    told == text || told.contains(OPEN) || as_object(told).is_some_and(|told| as_object(text) == Some(told))
}

fn same(told: &Value, value: &Value) -> bool {
    match (told, value) {
        (Value::String(told), Value::String(value)) => text(told, value),
        (Value::Array(told), Value::Array(value)) => {
            told.len() == value.len() && told.iter().zip(value).all(|(told, value)| same(told, value))
        }
        (Value::Object(told), Value::Object(value)) => {
            told.len() == value.len()
                && told
                    .iter()
                    .all(|(key, told)| value.get(key).is_some_and(|value| same(told, value)))
        }
        (Value::Number(told), Value::Number(value)) => told.as_f64() == value.as_f64(),
        _ => told == value,
    }
}

fn shown(outcome: &Outcome) -> String {
    format!(
        "{} {:?} {:?} steps {:?} rollbacks {:?} {} ms",
        outcome.status, outcome.output, outcome.failure, outcome.steps, outcome.rollbacks, outcome.elapsed
    )
}
