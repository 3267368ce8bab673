//! Typing mistakes in good definitions, and what fixing may make of them.

use starbridge_fdl::check;
use starbridge_fdl::fixes::{FixedText, apply_fixes};
use starbridge_flow::diagnostics::Severity;
use starbridge_flow::limits::Limits;
use starbridge_flow::syntax::{Format, Source, parse};
use starbridge_flow::value::Value;

/// Texts that are typed by mistake.
const PIECES: [&str; 18] = [
    "\"", ",", ":", "{", "}", "[", "]", " ", "\\", "'", "#", "x", "=", ";", "-", "\n", "$", "//",
];

/// A typing mistake: its place and its kind.
#[derive(Clone, Copy, Debug)]
pub struct Mistake {
    /// The character it is made at, counted from the beginning and again from there.
    pub at: usize,
    /// The kind: something is left out, typed too much, typed instead, swapped, or typed twice.
    pub kind: usize,
    /// The typed text.
    pub piece: usize,
}

/// A text with a mistake in it; nothing where the mistake would leave no trace, because a word is only one letter long.
pub fn damaged(text: &str, mistake: Mistake) -> Option<String> {
    let letters: Vec<char> = text.chars().collect();
    let at = mistake.at.checked_rem(letters.len())?;
    let word = |index: Option<usize>| {
        let letter = index.and_then(|index| letters.get(index));
        letter.is_some_and(|letter| letter.is_alphanumeric())
    };
    if word(Some(at)) && !word(at.checked_sub(1)) && !word(Some(at + 1)) {
        return None;
    }
    let piece = PIECES.get(mistake.piece % PIECES.len()).copied().unwrap_or_default();
    let (before, rest) = letters.split_at(at);
    let (first, after) = rest.split_first()?;
    let mut made: String = before.iter().collect();
    match mistake.kind % 5 {
        0 => {}
        1 => made = made + piece + &first.to_string(),
        2 => made += piece,
        3 => {
            let (second, after) = after.split_first()?;
            made.extend([second, first]);
            made.extend(after);
            return Some(made);
        }
        _ => made.extend([first, first]),
    }
    made.extend(after);
    Some(made)
}

/// The meaning of a definition; nothing if it has errors.
pub fn meaning(source: &Source) -> Option<Value> {
    let good = check(source, &Limits::default()).flow.is_some();
    let untouched = || apply_fixes(source.clone(), &Limits::default()).changes.is_empty();
    (good && untouched()).then(|| parse(source).root.map(|root| root.to_value()))?
}

/// Panics where a damaged definition that meant `meant` is fixed to another one without an error.
pub fn fixing_keeps_meaning(name: &str, format: Format, meant: &Value, damaged: &str) {
    let source = Source::new(name, damaged).with_format(format);
    let FixedText {
        source,
        checked,
        changes,
    } = apply_fixes(source, &Limits::default());
    let errors = checked
        .diagnostics
        .iter()
        .any(|found| found.severity == Severity::Error);
    if changes.is_empty() || errors {
        return;
    }
    let now = parse(&source).root.map(|root| root.to_value());
    assert!(
        now.as_ref() == Some(meant),
        "{name} means something else after {changes:?}:\n{damaged}\n{}",
        source.text()
    );
}
