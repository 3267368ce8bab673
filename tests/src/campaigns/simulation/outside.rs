//! The world outside the processes: clients that start, functions, clients that report. It keeps
//! the book.

use starbridge_flow::fnv::fnv1a_64;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::{CallToSend, EventId, Signal};
use std::collections::{BTreeMap, BTreeSet};

/// A call as it is known outside.
pub(super) type Key = (Text, EventId);

/// The record of a call.
#[derive(Clone, Debug)]
pub(super) struct Called {
    /// The call that was sent the first time.
    pub(super) call: CallToSend,
    /// When it first came, in true milliseconds.
    pub(super) first: u64,
    pub(super) times: u64,
}

/// The book.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// Ids of executions by name, as they were acknowledged.
    pub(super) acknowledged: BTreeMap<String, Text>,
    pub(super) calls: BTreeMap<Key, Called>,
    /// Keys under which calls came.
    pub(super) keys: BTreeSet<String>,
    /// Calls that are to be reported on, and how often that was tried.
    pub(super) reports: BTreeMap<Key, u32>,
    /// Reports that were acknowledged.
    pub(super) reported: BTreeSet<Key>,
    /// Second reports that were taken.
    pub(super) second_taken: u64,
    pub(super) problems: Vec<String>,
}

/// A number that depends on nothing but the call.
pub(super) fn number_of((execution, call): &Key) -> u64 {
    fnv1a_64(format!("{execution}/{call}").bytes())
}

/// The name a result says it is of.
pub(super) fn name_of((execution, call): &Key) -> String {
    format!("{execution}/{call}")
}

fn saying(member: &str, key: &Key) -> Object {
    [(Text::from(member), Value::from(name_of(key)))].into_iter().collect()
}

/// The answer of a function.
pub(super) fn answer(call: &CallToSend, key: &Key) -> Signal {
    let number = key.1;
    let failed = |error: &str| Signal::Failed {
        call: number,
        error: error.to_owned(),
        cause: name_of(key),
        retry_after: None,
        not_sent: false,
        holder: None,
    };
    match &*call.resource {
        "witness:broken" => failed("Broken"),
        "witness:flaky" if number_of(key).is_multiple_of(3) => failed("Flaky"),
        "witness:later" => Signal::Submitted {
            call: number,
            receipt: None,
            execution: None,
            version: None,
        },
        _ => Signal::Succeeded {
            call: number,
            result: saying("key", key).into(),
            worker: None,
            held_time: None,
        },
    }
}

/// A function that can't be reached any more.
pub(super) fn lost(key: &Key) -> Signal {
    Signal::Failed {
        call: key.1,
        error: "HTTP.ConnectionFailed".to_owned(),
        cause: name_of(key),
        retry_after: None,
        not_sent: false,
        holder: None,
    }
}

/// The report on a call; a second report has another content.
pub(super) fn report(key: &Key, second: bool) -> Signal {
    let result = if second {
        [(Text::from("said"), Value::from("again"))].into_iter().collect()
    } else {
        saying("said", key)
    };
    Signal::Succeeded {
        call: key.1,
        result: result.into(),
        worker: None,
        held_time: None,
    }
}
