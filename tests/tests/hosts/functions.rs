//! Functions that answer as a case says, each call in its turn: of those out at once the one scheduled first is answered first.

use crate::cases::{Calls, Tried};
use serde_json::{Value, json};
use starbridge_services::{Answering, Heard, Said};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The server of functions.
pub struct Functions {
    server: Answering,
    script: Arc<Mutex<Script>>,
}

#[derive(Default)]
struct Script {
    mocks: Value,
    wide: bool,
    calls: Calls,
    /// Calls that have come: flow and number.
    come: BTreeSet<(String, u64)>,
    /// Answers given, by step.
    given: BTreeMap<String, usize>,
    /// Calls that are out: execution and number.
    out: BTreeSet<(String, u64)>,
}

/// The time until calls that leave together have all arrived, where the caller does not know which,
/// and between their answers.
const TOGETHER: Duration = Duration::from_millis(30);
const APART: Duration = Duration::from_millis(12);
/// How long a call that is known is waited for.
const LONGEST: Duration = Duration::from_secs(5);

impl Functions {
    pub fn start() -> Self {
        let script: Arc<Mutex<Script>> = Arc::default();
        let heard = script.clone();
        let server = Answering::start(move |call| answer(&heard, call)).unwrap();
        Self { server, script }
    }

    pub fn url(&self) -> String {
        self.server.url()
    }

    /// From now on it answers for this case.
    pub fn expect(&self, case: &Tried) {
        *self.script.lock().unwrap() = Script {
            mocks: case.mocks.clone(),
            wide: case.wide,
            calls: case.calls.clone(),
            ..Script::default()
        };
    }
}

impl Script {
    /// How long a call waits for those before it: not at all, once each that the simulation made has come.
    fn patience(&self, (flow, number): &(String, u64)) -> Duration {
        let Some(calls) = self.calls.get(flow).filter(|calls| calls.contains(number)) else {
            return TOGETHER;
        };
        let mut before = calls.range(..number);
        match before.all(|call| self.come.contains(&(flow.clone(), *call))) {
            true => Duration::ZERO,
            false => LONGEST,
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "answers have an order in time")]
fn answer(script: &Mutex<Script>, call: &Heard) -> Said {
    let header = |name: &str| call.header(name).unwrap_or_default().to_owned();
    let key = header("idempotency-key");
    let (execution, number) = key.rsplit_once('/').unwrap_or_default();
    let own = (execution.to_owned(), number.parse().unwrap_or(0));
    let here = (header("starbridge-flow"), own.1);
    let wide = {
        let mut script = script.lock().unwrap();
        script.out.insert(own.clone());
        script.come.insert(here.clone());
        script.wide
    };
    if wide {
        let begun = std::time::Instant::now();
        while begun.elapsed() < script.lock().unwrap().patience(&here) {
            std::thread::sleep(Duration::from_millis(2));
        }
        while script.lock().unwrap().out.first() != Some(&own) {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(APART);
    }
    let suffix = if header("starbridge-type") == "rollback" {
        ".rollback"
    } else {
        ""
    };
    let plain = format!("{}{suffix}", unescaped(&header("starbridge-step")));
    let within = format!("{}/{plain}", header("starbridge-flow"));
    let mut script = script.lock().unwrap();
    let step = if script.mocks.get(&within).is_some() {
        within
    } else {
        plain
    };
    let mocks = script
        .mocks
        .get(&step)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let given = script.given.entry(step).or_default();
    let mock = mocks
        .get(*given)
        .or(mocks.last())
        .cloned()
        .unwrap_or_else(|| json!({"error": "NoMock"}));
    *given += 1;
    script.out.remove(&own);
    let (status, said) = match mock.get("result") {
        Some(result) => (200, result.clone()),
        None => (
            500,
            json!({"error": mock["error"], "cause": mock.get("cause").cloned().unwrap_or_else(|| "".into())}),
        ),
    };
    Said::Answer(
        status,
        vec![("Content-Type", "application/json".to_owned())],
        said.to_string(),
    )
}

/// A header's text with its `%xx` read.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
