//! One visit of a step: each attempt, its data, and what differs between two of them.

use super::ExecutionParts;
use super::parts::path;
use crate::escape::visible_json;
use crate::frame::Frame;
use crate::read::{count, exact, items, number, pretty, span, text, time};
use crate::texts::Texts;
use crate::words::{State, has_ended, state};
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Value;

/// So many bytes of a datum are shown.
const SHOWN: usize = 8 * 1024;
/// More lines are not compared.
const COMPARED: usize = 400;

/// An attempt in the table.
pub(super) struct Try {
    pub(super) number: String,
    pub(super) href: String,
    pub(super) chosen: bool,
    pub(super) state: State,
    pub(super) error: String,
    pub(super) cause: String,
    pub(super) resource: String,
    pub(super) worker: String,
    pub(super) sent: String,
    pub(super) took: String,
    pub(super) rollback: bool,
}

/// A datum of the attempt that is shown.
pub(super) struct Datum {
    pub(super) title: &'static str,
    pub(super) text: String,
    /// Its lines where another attempt had others: whether each is new.
    pub(super) lines: Vec<(Change, String)>,
}

/// What became of a line from one attempt to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Same,
    Gone,
    New,
}

impl Change {
    pub(super) fn sign(self) -> &'static str {
        match self {
            Self::Same => " ",
            Self::Gone => "-",
            Self::New => "+",
        }
    }
}

/// A visit that is looked into.
pub(super) struct Inspector {
    pub(super) step: String,
    pub(super) path: String,
    pub(super) state: State,
    pub(super) tries: Vec<Try>,
    pub(super) left_out: u64,
    pub(super) data: Vec<Datum>,
    /// The attempt that it is compared with.
    pub(super) with: String,
    pub(super) closed: String,
    /// The input of a visit that a redrive enters again, and its event.
    pub(super) edit: Option<(u64, String)>,
}

impl Inspector {
    /// Nothing, where no visit is chosen.
    pub(super) fn of(parts: &ExecutionParts<'_>, frame: &Frame) -> Option<Self> {
        let (visit, view, now, t) = (parts.visit, &parts.view, frame.now, frame.t());
        visit.as_object()?;
        let tries = items(visit, "tries");
        let wanted = view.attempt.unwrap_or(tries.len());
        let chosen = wanted.clamp(1, tries.len().max(1));
        let at = |number: usize| number.checked_sub(1).and_then(|place| tries.get(place));
        let before = chosen.checked_sub(1).and_then(at);
        Some(Self {
            step: text(visit, "step").to_owned(),
            path: path(visit),
            state: state(text(visit, "status"), t),
            tries: (1..)
                .zip(tries)
                .map(|(place, tried)| Try::of(tried, view.with_attempt(place), place == chosen, now, t))
                .collect(),
            left_out: number(visit, "earlierLeftOut").unwrap_or(0),
            data: at(chosen).map_or_else(Vec::new, |shown| data(shown, before, t)),
            with: before.map_or_else(String::new, |before| count(before, "attempt")),
            closed: view.without_visit(),
            edit: match frame.lacks("operate") {
                None => edited(parts.execution, visit),
                Some(_) => None,
            },
        })
    }
}

/// The input of a visit of an execution that can be redriven, for a field. One that is too large is none to edit here.
fn edited(execution: &Value, visit: &Value) -> Option<(u64, String)> {
    let status = text(execution, "status");
    let ended = has_ended(status) && status != "Succeeded";
    let again = matches!(text(visit, "status"), "failed" | "cancelled");
    let input = items(visit, "tries").last()?.get("input")?;
    let small = input.json_len() <= SHOWN;
    (ended && again && small).then(|| {
        let event = number(visit, "event").unwrap_or_default();
        (event, visible_json(&pretty(input, 8 * SHOWN)))
    })
}

impl Try {
    fn of(tried: &Value, href: String, chosen: bool, now: Timestamp, t: &'static Texts) -> Self {
        let status = match text(tried, "status") {
            "open" => "running",
            status => status,
        };
        let began = time(tried, "startedTime");
        Self {
            number: count(tried, "attempt"),
            href,
            chosen,
            state: state(status, t),
            error: text(tried, "error").to_owned(),
            cause: text(tried, "cause").to_owned(),
            resource: text(tried, "resource").to_owned(),
            worker: text(tried, "worker").to_owned(),
            sent: exact(tried, "startedTime"),
            took: span(began, time(tried, "endedTime").or(Some(now))),
            rollback: matches!(tried.get("rollback"), Some(Value::Bool(true))),
        }
    }
}

/// The data of an attempt. What the attempt before had otherwise is marked.
fn data(shown: &Value, before: Option<&Value>, t: &'static Texts) -> Vec<Datum> {
    let parts = [
        ("input", t.input),
        ("sent", t.sent),
        ("received", t.received),
        ("output", t.output),
    ];
    let each = parts.into_iter().filter_map(|(key, title)| {
        let written = written(shown, key)?;
        let earlier = before.and_then(|before| self::written(before, key));
        let lines = match earlier {
            Some(earlier) if earlier != written => compared(&earlier, &written),
            _ => Vec::new(),
        };
        Some(Datum {
            title,
            text: written,
            lines,
        })
    });
    each.collect()
}

/// A datum in lines; what is too large says where it is.
fn written(tried: &Value, key: &str) -> Option<String> {
    if let Some(value) = tried.get(key) {
        return Some(pretty(value, SHOWN));
    }
    let left = tried.get("left")?.get(key)?;
    Some(format!("… {} B", count(left, "bytes")))
}

/// What is gone and what is new from one text to another, line by line.
fn compared(before: &str, after: &str) -> Vec<(Change, String)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    if old.len() > COMPARED || new.len() > COMPARED {
        return Vec::new();
    }
    // How many lines are the same from each pair of lines on.
    let width = new.len() + 1;
    let mut same = vec![0_u32; (old.len() + 1) * width];
    let get = |same: &[u32], a: usize, b: usize| same.get(a * width + b).copied().unwrap_or(0);
    for (a, line) in old.iter().enumerate().rev() {
        for (b, other) in new.iter().enumerate().rev() {
            let best = match line == other {
                true => get(&same, a + 1, b + 1) + 1,
                false => get(&same, a + 1, b).max(get(&same, a, b + 1)),
            };
            if let Some(cell) = same.get_mut(a * width + b) {
                *cell = best;
            }
        }
    }
    let (mut a, mut b, mut lines) = (0, 0, Vec::new());
    loop {
        match (old.get(a), new.get(b)) {
            (None, None) => return lines,
            (Some(line), Some(other)) if line == other => {
                lines.push((Change::Same, (*line).to_owned()));
                a += 1;
                b += 1;
            }
            (Some(line), other) if other.is_none() || get(&same, a + 1, b) >= get(&same, a, b + 1) => {
                lines.push((Change::Gone, (*line).to_owned()));
                a += 1;
            }
            (_, Some(other)) => {
                lines.push((Change::New, (*other).to_owned()));
                b += 1;
            }
            (Some(_), None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_gone_or_new() {
        let told = compared("{\n  a\n  b\n}", "{\n  a\n  c\n}");
        let signs: String = told.iter().map(|(change, _)| change.sign()).collect();
        assert_eq!(signs, "  -+ ");
        assert_eq!(told[2].1, "  b");
        assert!(compared("", "x").iter().all(|(change, _)| *change == Change::New));
        assert!(compared(&"x\n".repeat(COMPARED + 1), "x").is_empty());
    }
}
