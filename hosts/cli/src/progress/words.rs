//! The texts of progress, with colours.

use crate::table::distance_words;
use starbridge_fdl::expression::Condition;
use starbridge_flow::graph::{Choice, Flow, Root};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_flow::value::{Text, Value};
use starbridge_machine::{Child, Failure, StepPath};
use starbridge_node::escaping::escaped;

/// The number of characters of a condition that are shown.
const CONDITION_CHARS: usize = 80;
/// The number of characters of data that are shown.
const DATA_CHARS: usize = 2_000;
/// The number of targets that are named.
const MAX_TARGETS: usize = 5;

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const CYAN: &str = "36";

/// A mark in its colour.
pub(super) fn mark(mark: char) -> String {
    let colour = match mark {
        '✓' => GREEN,
        '✗' => RED,
        '→' | '◇' | '…' | '?' => CYAN,
        _ => YELLOW,
    };
    format!("\x1b[{colour}m{mark}\x1b[0m")
}

/// The condition of the chosen arm.
pub(super) fn arm(choice: Option<&Choice>, arm: Option<Option<u32>>) -> String {
    match arm {
        None => "no condition holds".to_owned(),
        Some(None) => "default".to_owned(),
        Some(Some(number)) => {
            let arm = choice.and_then(|choice| choice.arms.get(number as usize));
            arm.map_or_else(|| format!("arm {number}"), |arm| short(&arm.text, CONDITION_CHARS))
        }
    }
}

/// Paths in the evaluated conditions that found nothing in that input.
pub(super) fn unfound(choice: &Choice, taken: Option<Option<u32>>, input: &Value) -> Vec<Text> {
    let tried = match taken {
        Some(Some(number)) => number as usize + 1,
        _ => choice.arms.len(),
    };
    let mut unfound: Vec<Text> = Vec::new();
    for arm in choice.arms.iter().take(tried) {
        let Ok(condition) = Condition::parse(&arm.text) else {
            continue;
        };
        for path in condition.unfound(Root::from(input)) {
            if !unfound.contains(&path) {
                unfound.push(path);
            }
        }
    }
    unfound
}

/// A note about targets that are not set because nothing was found for them: ` (not set: t, u)`.
pub(super) fn not_set(targets: &[Text]) -> String {
    in_brackets("not set", targets)
}

/// A note about paths of conditions that found nothing: ` (not found: $.a)`.
pub(super) fn not_found(paths: &[Text]) -> String {
    in_brackets("not found", paths)
}

fn in_brackets(what: &str, names: &[Text]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let named: Vec<String> = names
        .iter()
        .take(MAX_TARGETS)
        .map(|name| short(name, CONDITION_CHARS))
        .collect();
    let more = if names.len() > MAX_TARGETS { " and more" } else { "" };
    format!(" \x1b[2m({what}: {}{more})\x1b[0m", named.join(", "))
}

/// An error with its cause, if it has one.
pub(super) fn failure(failure: &Failure) -> String {
    let text = match failure.cause.as_str() {
        "" => failure.error.to_string(),
        cause => format!("{}: {cause}", failure.error),
    };
    escaped(&text).into_owned()
}

/// Data as JSON, shortened.
pub(super) fn data(value: &Value) -> String {
    short(&value.to_json(), DATA_CHARS)
}

/// The text without control sequences, cut if it is long.
fn short(text: &str, characters: usize) -> String {
    let cut = match text.char_indices().nth(characters) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    };
    escaped(&cut).into_owned()
}

/// The place of a step in iterations and branches: ` (each[3])`.
pub fn place(flow: &Flow, path: &StepPath) -> String {
    let parts: Vec<String> = path
        .items()
        .iter()
        .filter_map(|item| {
            let step = flow.step(item.step)?;
            let name = escaped(&step.name);
            match item.child {
                Child::Branch(number) | Child::Iteration(number) => Some(format!("{name}[{number}]")),
                Child::Arm(_) => None,
            }
        })
        .collect();
    if parts.is_empty() {
        String::new()
    } else {
        format!(" ({})", parts.join(" › "))
    }
}

/// The end of a wait: the remaining time for live viewers, the point in time for later readers.
pub(super) fn wait(now: Timestamp, until: Timestamp, live: bool) -> String {
    if !live {
        return format!("waits until {until}");
    }
    let text = until.to_string();
    let clock = match (text.get(..10) == now.to_string().get(..10), text.get(11..19)) {
        (true, Some(clock)) => format!("{clock} UTC"),
        _ => text,
    };
    format!("waits for {} (until {clock})", distance_words(until.since(now)))
}

pub(super) fn took(span: Millis) -> String {
    if span == Millis::ZERO {
        String::new()
    } else {
        format!(" ({span})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_from_now_where_somebody_looks_on() {
        let now = Timestamp::parse("2026-01-02T03:16:10.000Z").unwrap();
        let soon = now.plus(Millis(2_000));
        assert_eq!(wait(now, soon, false), "waits until 2026-01-02T03:16:12.000Z");
        assert_eq!(wait(now, soon, true), "waits for 2 s (until 03:16:12 UTC)");
        let later = now.plus(Millis::from_days(3));
        assert_eq!(
            wait(now, later, true),
            "waits for 3 days (until 2026-01-05T03:16:10.000Z)"
        );
    }

    #[test]
    fn what_found_nothing_is_named_but_not_all_of_it() {
        let plain = |targets: &[&str]| {
            let targets: Vec<Text> = targets.iter().map(|target| Text::from(*target)).collect();
            anstream::adapter::strip_str(&not_set(&targets)).to_string()
        };
        assert_eq!(plain(&[]), "");
        assert_eq!(plain(&["t", "u"]), " (not set: t, u)");
        assert_eq!(
            plain(&["a", "b", "c", "d", "e", "f"]),
            " (not set: a, b, c, d, e and more)"
        );
    }
}
