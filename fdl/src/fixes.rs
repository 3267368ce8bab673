//! Changes that fix a definition without asking: only those that leave the meaning of everything
//! else unchanged.

use crate::check::{Checked, check};
use crate::diagnostics::{Code, Fix, Severity};
use crate::limits::Limits;
use crate::syntax::{Format, LineColumn, Member, Node, NodeKind, Source, Span, parse_within};
use crate::value::Value;

/// The maximum number of rounds, because one fix may uncover another problem. What is left after
/// that is left to people.
const MAX_ROUNDS: usize = 20;
/// The maximum number of changes in one round that are tried alone if all of them together can't be
/// made.
const MAX_SINGLE_FIXES: usize = 20;

/// A change that was made.
#[derive(Clone, Debug)]
pub struct Change {
    /// The problem.
    pub code: Code,
    /// Where it was, in the text as it was before the round.
    pub place: LineColumn,
    /// The change.
    pub title: String,
}

/// A definition with all certain fixes.
#[derive(Clone, Debug)]
pub struct FixedText {
    /// Its text.
    pub source: Source,
    /// Its remaining problems.
    pub checked: Checked,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

/// A text with changes made, and their places before and after.
struct Edited {
    text: String,
    before: Vec<Span>,
    after: Vec<Span>,
    changes: Vec<Change>,
}

/// Makes all changes that are sure. If the text itself is broken so that only people can tell its
/// meaning, nothing is changed.
pub fn apply_fixes(source: Source, limits: &Limits) -> FixedText {
    let checked = check(&source, limits);
    let mut fixed = FixedText {
        source,
        checked,
        changes: Vec::new(),
    };
    if !may_be_flow(&fixed, limits) {
        return fixed;
    }
    for _ in 0..MAX_ROUNDS {
        let Some((after, checked, changes)) = round(&fixed, limits) else {
            break;
        };
        fixed.source = after;
        fixed.checked = checked;
        fixed.changes.extend(changes);
    }
    fixed
}

/// Whether a text may be a definition. Files of other programs have members with the same names;
/// they are left alone.
fn may_be_flow(fixed: &FixedText, limits: &Limits) -> bool {
    let Some(root) = parse_within(&fixed.source, limits.definition_bytes).root else {
        return true;
    };
    let members = root.members().iter();
    let has_steps = members
        .map(|member| member.key.to_lowercase())
        .any(|key| key.starts_with("step"));
    // The tree of a broken text may have only its beginning.
    let found = &fixed.checked.diagnostics;
    let broken = found
        .iter()
        .any(|found| is_of_text(found.code) && found.severity == Severity::Error);
    has_steps || (broken && fixed.source.text().contains("steps"))
}

/// The changes of one round: those of the text, or, if there are none, those of its content.
fn round(fixed: &FixedText, limits: &Limits) -> Option<(Source, Checked, Vec<Change>)> {
    let found = &fixed.checked.diagnostics;
    let unclear = |code: Code, fix: Option<&Fix>| {
        let stands_alone = matches!(code, Code::Comment | Code::DuplicateKey | Code::NumberRange);
        is_of_text(code) && code.severity() == Severity::Error && !stands_alone && !fix.is_some_and(|fix| fix.sure)
    };
    if found.iter().any(|found| unclear(found.code, found.fix.as_ref())) {
        return None;
    }
    let mut fixes: Vec<(Code, &Fix)> = found
        .iter()
        .filter_map(|found| Some((found.code, found.fix.as_ref().filter(|fix| fix.sure)?)))
        .collect();
    let of_text = fixes.iter().any(|(code, _)| is_of_text(*code));
    fixes.retain(|(code, _)| is_of_text(*code) == of_text);
    fixes.sort_by_key(|(_, fix)| (fix.span.start, fix.span.end));
    let tried = |fixes: &[(Code, &Fix)]| attempt(fixed, fixes, of_text, limits);
    tried(&fixes).or_else(|| fixes.chunks(1).take(MAX_SINGLE_FIXES).find_map(tried))
}

/// Whether a code is about the text as JSON or YAML.
fn is_of_text(code: Code) -> bool {
    code < Code::MissingField
}

/// The definition with these changes, if it then has no more errors than before and its meaning is
/// unchanged everywhere else.
fn attempt(
    fixed: &FixedText,
    fixes: &[(Code, &Fix)],
    of_text: bool,
    limits: &Limits,
) -> Option<(Source, Checked, Vec<Change>)> {
    let edited = edit(&fixed.source, fixes);
    if edited.changes.is_empty() {
        return None;
    }
    let after = Source::new(fixed.source.name(), edited.text).with_format(fixed.source.format());
    let checked = check(&after, limits);
    if errors(&checked) > errors(&fixed.checked)
        || after.text() == fixed.source.text()
        || written_by_hand(&checked) < written_by_hand(&fixed.checked)
    {
        return None;
    }
    let tree = |source: &Source| parse_within(source, limits.definition_bytes).root;
    let (before, now) = (tree(&fixed.source), tree(&after));
    let same = match (before, now) {
        // Broken YAML has only the part before the break.
        _ if of_text && after.format() == Format::Yaml => {
            !checked.diagnostics.iter().any(|found| found.code == Code::Yaml)
        }
        (Some(before), Some(now)) if of_text => before.to_value() == now.to_value(),
        (Some(before), Some(now)) => words(&before, &edited.before) == words(&now, &edited.after),
        _ => false,
    };
    same.then_some((after, checked, edited.changes))
}

/// The number of comments and duplicate keys. If it falls, something that people wrote is gone.
fn written_by_hand(checked: &Checked) -> usize {
    let found = checked.diagnostics.iter();
    found
        .filter(|found| matches!(found.code, Code::Comment | Code::DuplicateKey))
        .count()
}

fn errors(checked: &Checked) -> usize {
    let found = checked.diagnostics.iter();
    found.filter(|found| found.severity == Severity::Error).count()
}

/// Makes all changes that don't overlap, in order of place.
fn edit(source: &Source, fixes: &[(Code, &Fix)]) -> Edited {
    let mut edited = Edited {
        text: String::new(),
        before: Vec::new(),
        after: Vec::new(),
        changes: Vec::new(),
    };
    let mut done = 0;
    for (code, fix) in fixes {
        let touches = fix.span.start < done || (fix.span.start == done && !edited.changes.is_empty());
        let Some(between) = source.text().get(done..fix.span.start).filter(|_| !touches) else {
            continue;
        };
        edited.text.push_str(between);
        let start = edited.text.len();
        edited.text.push_str(&fix.replacement);
        done = fix.span.end;
        edited.before.push(fix.span);
        edited.after.push(Span {
            start,
            end: edited.text.len(),
        });
        edited.changes.push(Change {
            code: *code,
            place: source.line_column(fix.span.start),
            title: fix.title.clone(),
        });
    }
    edited.text.push_str(source.text().get(done..).unwrap_or_default());
    edited
}

/// A key or a value without contents, and the number of containers around it.
#[derive(Debug, PartialEq)]
enum Word<'n> {
    Key(usize, &'n str),
    Value(usize, Value),
}

/// The keys and values of a tree that don't touch any of these places, in order. The depth takes no
/// call stack.
fn words<'n>(root: &'n Node, places: &[Span]) -> Vec<Word<'n>> {
    let touched = |span: Span| {
        let first = places.partition_point(|place| place.end <= span.start);
        places
            .get(first)
            .is_some_and(|place| place.start < span.end && place.start < place.end)
    };
    let mut found = Vec::new();
    let mut open: Vec<(usize, Result<&'n Node, &'n Member>)> = vec![(0, Ok(root))];
    while let Some((depth, next)) = open.pop() {
        let node = match next {
            Ok(node) => node,
            Err(member) => {
                if !touched(member.key_span) {
                    found.push(Word::Key(depth, &member.key));
                }
                &member.value
            }
        };
        match &node.kind {
            NodeKind::Array(items) if !items.is_empty() => {
                open.extend(items.iter().rev().map(|item| (depth + 1, Ok(item))));
            }
            NodeKind::Object(members) if !members.is_empty() => {
                open.extend(members.iter().rev().map(|member| (depth + 1, Err(member))));
            }
            _ if touched(node.span) => {}
            _ => found.push(Word::Value(depth, node.to_value())),
        }
    }
    found
}

#[cfg(test)]
mod tests;
