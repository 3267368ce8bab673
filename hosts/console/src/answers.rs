//! What steps ask of a person, with a form for each answer.

use crate::frame::Frame;
use crate::read::{items, number, path_part, pretty, text};
use crate::words::waits;
use crate::zone::Reader;
use starbridge_flow::value::Value;

/// So many bytes of a step's input are shown.
const INPUT_BYTES: usize = 8 * 1024;

/// A step that waits for an operator, or for a report.
pub(crate) struct Question {
    /// The event that an answer names.
    pub(crate) event: u64,
    pub(crate) step: String,
    pub(crate) error: String,
    pub(crate) cause: String,
    /// The page with its attempts.
    pub(crate) href: String,
    /// What the step works on; empty where that is not known.
    pub(crate) input: String,
}

/// The questions of an execution.
pub(crate) struct Answers {
    pub(crate) id_part: String,
    /// Steps that wait for an operator.
    pub(crate) decisions: Vec<Question>,
    /// Steps that wait for a report.
    pub(crate) awaited: Vec<Question>,
    pub(crate) lacks: Option<String>,
    /// Its name, where the page is about others, too.
    pub(crate) name: String,
    /// The list to which an answer leads back; empty: the page of the execution.
    pub(crate) from: &'static str,
}

impl Answers {
    /// The questions of an execution: its steps that wait for an operator, those among which some wait for a report, and
    /// visits of them, whose inputs are shown.
    pub(crate) fn of(frame: &Frame, id: &str, manual: &Value, awaiting: &Value, visits: &[Value]) -> Self {
        let t = frame.t();
        let question = |item: &Value| question(id, item, visits, t);
        let reports = |item: &&Value| {
            let waiting = item.get("waitingFor");
            waiting.is_some_and(|why| text(why, "reason") == "callback")
        };
        Self {
            id_part: path_part(id),
            decisions: items(manual, "items").iter().map(question).collect(),
            awaited: items(awaiting, "items").iter().filter(reports).map(question).collect(),
            lacks: frame.lacks("operate"),
            name: String::new(),
            from: "",
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.decisions.is_empty() && self.awaited.is_empty()
    }
}

fn question(id: &str, item: &Value, visits: &[Value], t: Reader) -> Question {
    let waiting = item.get("waitingFor").unwrap_or(&Value::Null);
    let entered = number(item, "event");
    let visit = visits.iter().find(|visit| number(visit, "event") == entered);
    let input = visit.and_then(|visit| items(visit, "tries").last()?.get("input"));
    let visit = entered.unwrap_or_default();
    Question {
        // An answer to an operator's question names the question, so that it is not taken for a later one of the same step.
        event: match text(waiting, "reason") {
            "callback" => visit,
            _ => number(waiting, "request").unwrap_or(visit),
        },
        step: text(item, "step").to_owned(),
        error: text(item, "error").to_owned(),
        cause: match text(waiting, "reason") {
            "callback" => waits(waiting, t),
            _ => text(item, "cause").to_owned(),
        },
        href: format!("/executions/{}?visit={visit}#visit", path_part(id)),
        input: input.map_or_else(String::new, |input| pretty(input, INPUT_BYTES)),
    }
}
