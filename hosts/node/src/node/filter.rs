//! The filter for executions, as lists and bulk jobs take it.

use super::reasons::{FineReason, OF_ADMISSION};
use serde::{Deserialize, Deserializer};
use starbridge_flow::diagnostics::quoted;
use starbridge_flow::limits::LABELS;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::Status;
use starbridge_ports::{Query, WaitingReason};
use std::collections::BTreeMap;

/// The longest filter that is kept, as text.
pub(super) const FILTER_BYTES: usize = 16 * 1024;

/// Which executions are meant: those that match everything that is given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct ExecutionFilter {
    /// The name of their flow.
    pub flow: Option<Text>,
    /// The statuses that they may have; any if there is none.
    pub status: Vec<Text>,
    /// Why they do not go on.
    pub reason: Option<Text>,
    /// What they wait for: a key, flow, queue, step or execution.
    pub reason_of: Option<Text>,
    /// Their name begins with this.
    pub name: Option<Text>,
    /// The id of the execution that started them.
    pub parent: Option<Text>,
    /// The id of the execution at the root of their family.
    pub root: Option<Text>,
    /// They have all these labels.
    #[serde(deserialize_with = "labels")]
    pub labels: Vec<(Text, Text)>,
    /// They were started at this time or later (RFC 3339).
    pub from: Option<Text>,
    /// They were started before this time (RFC 3339).
    pub to: Option<Text>,
    /// The name of the error with which they ended.
    pub error: Option<Text>,
    /// The name of the step in which that error arose.
    pub step: Option<Text>,
    /// They ended at this time or later (RFC 3339).
    pub ended_from: Option<Text>,
    /// They ended before this time (RFC 3339).
    pub ended_to: Option<Text>,
}

/// Reads an object of labels. A list may ask for two values of one label, which nothing has.
fn labels<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(Text, Text)>, D::Error> {
    Ok(BTreeMap::<Text, Text>::deserialize(from)?.into_iter().collect())
}

/// What a filter asks a store for, and what is left to check for each execution that it finds.
#[derive(Clone, Debug)]
pub struct Selection {
    /// What the store is asked for.
    pub query: Query,
    refined: Option<WaitingReason>,
    of: Option<Text>,
}

impl Selection {
    /// Whether records do not tell the reason from others, so that each execution has to be checked.
    pub fn is_refined(&self) -> bool {
        self.refined.is_some()
    }

    /// Whether an execution that does not go on for this reason is meant.
    pub fn fits(&self, why: Option<FineReason>) -> bool {
        let Some(wanted) = self.refined else { return true };
        why.is_some_and(|why| why.reason == wanted && (self.of.is_none() || self.of == why.of))
    }
}

impl ExecutionFilter {
    /// Reads a filter, as a request has it.
    ///
    /// # Errors
    ///
    /// What is wrong, for people.
    pub fn read(filter: &Object) -> Result<Self, String> {
        let json: serde_json::Value =
            serde_json::from_str(&Value::from(filter.clone()).to_json()).map_err(|error| error.to_string())?;
        let read: Self = serde_json::from_value(json).map_err(|error| error.to_string())?;
        read.selection().map(|_| read)
    }

    /// Whether every execution matches.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether no text is empty. An empty one would match everything, and often comes from a
    /// variable that is not set.
    ///
    /// # Errors
    ///
    /// Which one is empty, for people.
    pub fn check_texts(&self) -> Result<(), String> {
        let texts = [
            ("flow", &self.flow),
            ("reason", &self.reason),
            ("reasonOf", &self.reason_of),
            ("name", &self.name),
            ("parent", &self.parent),
            ("root", &self.root),
            ("error", &self.error),
            ("step", &self.step),
        ];
        match texts.iter().find(|(_, text)| text.as_deref() == Some("")) {
            Some((key, _)) => Err(format!("`{key}` is empty: leave it out")),
            None => Ok(()),
        }
    }

    /// What the store is asked for; `None` if no execution can match.
    ///
    /// # Errors
    ///
    /// What is wrong, for people.
    pub fn selection(&self) -> Result<Option<Selection>, String> {
        if self.labels.len() > LABELS {
            // An execution has no other members.
            return Err(format!("at most {LABELS} labels can be asked for (`label`)"));
        }
        let mut statuses = Vec::new();
        for word in &self.status {
            statuses.push(status_of(word)?);
        }
        let reason = self.reason.as_deref().map(reason_of).transpose()?;
        self.check_reason_of(reason)?;
        let admission = reason.filter(|reason| OF_ADMISSION.contains(reason));
        if admission.is_some() {
            let waiting = [Status::Queued, Status::Blocked].into_iter();
            statuses = waiting
                .filter(|status| statuses.is_empty() || statuses.contains(status))
                .collect();
        }
        // A task that a worker holds is in its queue.
        let stored = match reason.filter(|reason| *reason != WaitingReason::Broken && admission.is_none()) {
            Some(WaitingReason::Worker) => Some(WaitingReason::Queue),
            reason => reason,
        };
        let refined = reason
            .filter(|reason| admission.is_some() || matches!(reason, WaitingReason::Worker | WaitingReason::Queue));
        let query = Query {
            flow: self.flow.clone(),
            statuses,
            broken: reason == Some(WaitingReason::Broken),
            reasons: stored.into_iter().collect(),
            reason_of: self.reason_of.clone().filter(|_| stored.is_some()),
            name: self.name.clone(),
            parent: self.parent.clone(),
            root: self.root.clone(),
            labels: self.labels.clone(),
            from: time("from", self.from.as_ref())?,
            to: time("to", self.to.as_ref())?,
            error: self.error.clone(),
            step: self.step.clone(),
            ended_from: time("endedFrom", self.ended_from.as_ref())?,
            ended_to: time("endedTo", self.ended_to.as_ref())?,
            cursor: None,
            limit: 0,
        };
        let nothing = admission.is_some() && query.statuses.is_empty();
        Ok((!nothing).then(|| Selection {
            query,
            refined,
            of: self.reason_of.clone(),
        }))
    }

    /// Only some reasons have an object.
    fn check_reason_of(&self, reason: Option<WaitingReason>) -> Result<(), String> {
        const WITHOUT: [WaitingReason; 5] = [
            WaitingReason::Admission,
            WaitingReason::Broken,
            WaitingReason::Paused,
            WaitingReason::StartTime,
            WaitingReason::Running,
        ];
        match self.reason_of.is_some() && reason.is_none_or(|reason| WITHOUT.contains(&reason)) {
            false => Ok(()),
            true => Err("`reasonOf` goes with a `reason` that has an object: the key, flow or execution before it runs, the queue of \
                `queue` and `worker`, the id of a `child`, the step of `manual`, `callback`, `retry`, `poll` and `timer`"
                .to_owned()),
        }
    }
}

/// A filter as the query of a list has it: parameters with their values.
pub fn filter_pairs(filter: &Object) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for (key, value) in filter {
        let (key, value) = match (key.as_str(), value) {
            ("labels", Value::Object(labels)) => {
                let label =
                    |(key, value): (&Text, &Value)| ("label".to_owned(), format!("{key}:{}", value.to_plain_text()));
                pairs.extend(labels.iter().map(label));
                continue;
            }
            (key, Value::Array(words)) => {
                let words = words.values().iter().map(|word| word.to_plain_text());
                (key, words.collect::<Vec<_>>().join(","))
            }
            (key, value) => (key, value.to_plain_text().to_string()),
        };
        pairs.push((key.to_owned(), value));
    }
    pairs
}

fn time(key: &str, given: Option<&Text>) -> Result<Option<Timestamp>, String> {
    let read = given.map(|given| {
        let wrong = || format!("`{key}` must be an RFC 3339 time, not {}", quoted(given));
        Timestamp::parse(given).ok_or_else(wrong)
    });
    read.transpose()
}

fn reason_of(word: &str) -> Result<WaitingReason, String> {
    let others = OF_ADMISSION.iter().chain([&WaitingReason::Worker]).copied();
    let found = others.clone().find(|reason| reason.as_str() == word);
    found.or_else(|| WaitingReason::parse_listed(word)).ok_or_else(|| {
        if WaitingReason::parse(word).is_some() {
            return format!(
                "lists have no `{word}`: ask for `reason=running`, and what one of these waits for with `GET /v1/executions/{{id}}/why`"
            );
        }
        let words: Vec<&str> = others.map(WaitingReason::as_str).collect();
        let known = format!("{}, {}", WaitingReason::listed_words(), words.join(", "));
        format!("there is no reason {} to ask for: known are {known}", quoted(word))
    })
}

fn status_of(word: &str) -> Result<Status, String> {
    Status::parse(word).ok_or_else(|| {
        let words: Vec<&str> = Status::ALL.iter().map(|status| status.as_str()).collect();
        format!("there is no status {}: known are {}", quoted(word), words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &str) -> Object {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn filter_that_makes_no_sense_is_refused() {
        assert!(ExecutionFilter::read(&Object::new()).unwrap().is_empty());
        let filter = ExecutionFilter::read(&object(r#"{"status":["Failed"],"labels":{"team":"a"}}"#)).unwrap();
        assert!(!filter.is_empty());
        for wrong in [
            r#"{"stats":["Failed"]}"#,
            r#"{"status":["Gone"]}"#,
            r#"{"from":"today"}"#,
            r#"{"endedTo":"today"}"#,
            r#"{"reason":"bored"}"#,
            r#"{"reason":"call"}"#,
            r#"{"reasonOf":"agents"}"#,
            r#"{"reason":"paused","reasonOf":"agents"}"#,
        ] {
            assert!(ExecutionFilter::read(&object(wrong)).is_err(), "{wrong}");
        }
    }

    #[test]
    fn reason_of_admission_is_for_executions_that_wait() {
        let filter = |text| ExecutionFilter::read(&object(text)).unwrap().selection().unwrap();
        assert!(filter(r#"{"reason":"key","status":["Failed"]}"#).is_none());
        let key = filter(r#"{"reason":"key","reasonOf":"k"}"#).unwrap();
        assert_eq!(key.query.statuses, [Status::Queued, Status::Blocked]);
        let why = |of: &str| {
            Some(FineReason {
                reason: WaitingReason::Key,
                of: Some(of.into()),
                pool: None,
            })
        };
        assert!(key.fits(why("k")) && !key.fits(why("other")) && !key.fits(None));
        let worker = filter(r#"{"reason":"worker","reasonOf":"q"}"#).unwrap();
        assert_eq!(worker.query.reasons, [WaitingReason::Queue]);
        assert_eq!(worker.query.reason_of.as_deref(), Some("q"));
    }
}
