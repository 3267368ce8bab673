//! Conditions against shapes: comparisons that never hold or always hold, and values of types that
//! are not compared.

use super::find::{Data, find};
use super::schema::EXACT;
use super::shape::{Kinds, Known, Others};
use super::similar::likely;
use super::warn::with;
use super::{DataCheck, constant};
use crate::check::cursor::Cursor;
use crate::diagnostics::Code;
use crate::expression::{Ask, Comparison, Condition, Side};
use crate::path::Query;
use crate::syntax::Span;
use crate::value::Value;

/// A side of a comparison about which something is known.
struct Operand {
    known: Known,
    written: String,
    /// The number of its path in the condition.
    place: Option<usize>,
}

/// The result of a comparison without data.
struct Verdict {
    code: Code,
    always: bool,
}

const NEVER: Verdict = Verdict {
    code: Code::NeverTrue,
    always: false,
};
const OTHER_TYPE: Verdict = Verdict {
    code: Code::OtherType,
    always: false,
};

impl DataCheck<'_, '_> {
    /// Compares the condition in the string at `cursor` with its data.
    pub(super) fn condition(&self, cursor: &Cursor<'_>, data: &Data) {
        let Some(condition) = self.noted.conditions.get(&cursor.node.span.start) else {
            return;
        };
        let lengths = self
            .checker
            .lengths(cursor, condition, &|query| names_its_length(query, data));
        let seen = |place: usize, query: &Query| {
            if lengths.contains(&place) {
                return None;
            }
            let mut misses = Vec::new();
            let found = find(query.parts(), data, &mut misses);
            for miss in &misses {
                self.warn_of_miss(cursor, (condition.place(place).0, query), miss, data, None);
            }
            Some(found.shape)
        };
        for ask in condition.asks() {
            match ask {
                Ask::True(place, query) => {
                    let known = seen(place, query).and_then(|shape| shape.certain().cloned());
                    if let Some(known) = known {
                        self.check_flag(cursor, condition, place, query, &known);
                    }
                }
                Ask::Compare(left, comparison, right) => {
                    let operand = |side: Side<'_>| match side {
                        Side::Path(place, query) => {
                            let known = seen(place, query)?.certain()?.clone();
                            let written = query.text().as_str().to_owned();
                            let place = Some(place);
                            Some(Operand { known, written, place })
                        }
                        Side::Constant(value) => Some(Operand {
                            known: constant::shape_of(value, Span::default()).known()?.clone(),
                            written: value.to_json(),
                            place: None,
                        }),
                        Side::Condition => Some(Operand {
                            known: Known::new(Kinds::BOOL, None),
                            written: "what stands in parentheses".to_owned(),
                            place: None,
                        }),
                    };
                    let (left, right) = (operand(left), operand(right));
                    if let (Some(left), Some(right)) = (left, right)
                        && left.written != right.written
                        && let Some(verdict) = verdict(&left, comparison, &right)
                    {
                        self.compared(cursor, condition, &left, &right, &verdict);
                    }
                }
            }
        }
    }

    /// A path on its own holds where it finds `true`.
    fn check_flag(&self, cursor: &Cursor<'_>, condition: &Condition, place: usize, query: &Query, known: &Known) {
        let never = known
            .values
            .as_deref()
            .is_some_and(|values| !values.contains(&Value::Bool(true)));
        let (code, what) = match known.kinds.meets(Kinds::BOOL) {
            false => (Code::OtherType, known.kinds.in_words()),
            true if never => (Code::NeverTrue, "never `true`".to_owned()),
            true => return,
        };
        if self.checker.leaves_off(code) {
            return;
        }
        let (offset, len) = condition.place(place);
        let message = format!("`{}` never holds on its own: it is {what}", query.text());
        let found = self.checker.inside(cursor, code, offset, len, message);
        let help = "only `true` does: compare it with something".to_owned();
        let label = known.said.map(|said| (said, "it is said here".to_owned()));
        self.checker.report(with(found, label, Some(help)));
    }

    fn compared(&self, cursor: &Cursor<'_>, condition: &Condition, left: &Operand, right: &Operand, verdict: &Verdict) {
        if self.checker.leaves_off(verdict.code) {
            return;
        }
        let holds = if verdict.always {
            "always holds where there is something"
        } else {
            "never holds"
        };
        let why = format!(
            "{}, and {}",
            left.described(verdict.code),
            right.described(verdict.code)
        );
        let (about, against) = if left.place.is_some() {
            (left, right)
        } else {
            (right, left)
        };
        let (offset, len) = about
            .place
            .map_or((0, condition.text().len()), |place| condition.place(place));
        let message = format!("this comparison {holds}: {why}");
        let found = self.checker.inside(cursor, verdict.code, offset, len, message);
        let label = about
            .known
            .said
            .or(against.known.said.filter(|_| against.place.is_some()));
        let label = label.map(|said| (said, format!("`{}` is said here", about.written)));
        self.checker.report(with(found, label, advice(about, against)));
    }
}

impl Operand {
    /// Its description, as far as it matters.
    fn described(&self, code: Code) -> String {
        let constant = self.place.is_none();
        match (code, self.known.values.as_deref()) {
            (Code::NeverTrue, Some(values)) if !constant => {
                let values: Vec<String> = values.iter().map(Value::to_json).collect();
                let values: Vec<&str> = values.iter().map(String::as_str).collect();
                match values.as_slice() {
                    [only] => format!("`{}` is `{only}`", self.written),
                    all => format!("`{}` is one of {}", self.written, super::super::read::in_words(all)),
                }
            }
            (Code::NeverTrue, None) if self.known.bounds != (None, None) => {
                let bound = |word: &str, bound: Option<f64>| bound.map(|bound| format!("{word} {bound}"));
                let bounds = [
                    bound("at least", self.known.bounds.0),
                    bound("at most", self.known.bounds.1),
                ];
                let bounds: Vec<String> = bounds.into_iter().flatten().collect();
                format!("`{}` is {}", self.written, bounds.join(" and "))
            }
            (Code::NeverTrue, _) if constant => format!("not `{}`", self.written),
            _ => format!("`{}` is {}", self.written, self.known.kinds.in_words()),
        }
    }
}

/// What to write instead of a constant that does not fit.
fn advice(about: &Operand, against: &Operand) -> Option<String> {
    let constant = against
        .known
        .values
        .as_deref()
        .filter(|_| against.place.is_none())?
        .first()?;
    if let (Value::String(text), Some(values)) = (constant, about.known.values.as_deref()) {
        let near = likely(text, values.iter().filter_map(Value::as_str));
        if let Some(near) = near {
            return Some(format!("did you mean `{near}`?"));
        }
    }
    let kinds = about.known.kinds;
    match constant {
        Value::String(text) if kinds.meets(Kinds::NUMBER) && text.parse::<f64>().is_ok() => {
            Some(format!("write `{text}` without quotes"))
        }
        Value::String(text) if kinds.meets(Kinds::BOOL) && matches!(text.as_str(), "true" | "false") => {
            Some(format!("write `{text}` without quotes"))
        }
        Value::Number(number) if kinds == Kinds::STRING => Some(format!("text stands in quotes: `'{number}'`")),
        _ => None,
    }
}

fn verdict(left: &Operand, comparison: Comparison, right: &Operand) -> Option<Verdict> {
    let (a, b) = (&left.known, &right.known);
    let disjoint = !a.kinds.meets(b.kinds);
    let ordered = Kinds::NUMBER.or(Kinds::STRING);
    let holds = |a: &Value, b: &Value| comparison.holds(a, b);
    match comparison {
        Comparison::In => contained(a, b),
        Comparison::Equal if disjoint => Some(OTHER_TYPE),
        Comparison::Equal if none_of(a, b, holds) || apart(a, b) => Some(NEVER),
        // Whether there is anything is asked so, too.
        Comparison::NotEqual if a.kinds == Kinds::NULL || b.kinds == Kinds::NULL => None,
        Comparison::NotEqual if disjoint => Some(Verdict {
            always: true,
            ..OTHER_TYPE
        }),
        Comparison::NotEqual if none_of(a, b, |a, b| a == b) || apart(a, b) => Some(Verdict { always: true, ..NEVER }),
        Comparison::Equal | Comparison::NotEqual => None,
        _ if !a.kinds.and(b.kinds).meets(ordered) => Some(OTHER_TYPE),
        _ => (none_of(a, b, holds) || out_of_bounds(a, comparison, b)).then_some(NEVER),
    }
}

/// The maximum number of pairs of possible values that a comparison looks at.
const MAX_PAIRS: usize = 1_024;

/// Whether both sides have only certain possible values, and no two of them go together. Where these are many, it is not known.
fn none_of(a: &Known, b: &Known, together: impl Fn(&Value, &Value) -> bool) -> bool {
    let listed = |known: &Known| !known.kinds.meets(Kinds::ARRAY.or(Kinds::OBJECT));
    match (&a.values, &b.values) {
        (Some(left), Some(right))
            if (listed(a) || listed(b)) && left.len().saturating_mul(right.len()) <= MAX_PAIRS =>
        {
            !left.iter().any(|left| right.iter().any(|right| together(left, right)))
        }
        _ => false,
    }
}

/// The number of a constant.
fn number(known: &Known) -> Option<f64> {
    match known.values.as_deref() {
        Some([Value::Number(number)]) => number.as_f64().filter(|number| number.abs() < EXACT),
        _ => None,
    }
}

/// Whether one side is a number that the other never is, according to its bounds.
fn apart(a: &Known, b: &Known) -> bool {
    let beyond = |number: Option<f64>, bounds: (Option<f64>, Option<f64>)| {
        number.is_some_and(|number| {
            bounds.0.is_some_and(|least| number < least) || bounds.1.is_some_and(|most| number > most)
        })
    };
    let only = |known: &Known| known.kinds == Kinds::NUMBER;
    (only(b) && beyond(number(a), b.bounds)) || (only(a) && beyond(number(b), a.bounds))
}

/// Whether the bounds leave no number for which the comparison holds.
fn out_of_bounds(a: &Known, comparison: Comparison, b: &Known) -> bool {
    let (known, constant, comparison) = match (number(a), number(b)) {
        (None, Some(constant)) => (a, constant, comparison),
        (Some(constant), None) => (b, constant, turned(comparison)),
        _ => return false,
    };
    let (least, most) = known.bounds;
    match comparison {
        Comparison::Less => least.is_some_and(|least| least >= constant),
        Comparison::LessOrEqual => least.is_some_and(|least| least > constant),
        Comparison::Greater => most.is_some_and(|most| most <= constant),
        Comparison::GreaterOrEqual => most.is_some_and(|most| most < constant),
        _ => false,
    }
}

/// The comparison with its sides swapped.
fn turned(comparison: Comparison) -> Comparison {
    match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        other => other,
    }
}

/// `a in b`: an array has a value, an object has a key.
fn contained(a: &Known, b: &Known) -> Option<Verdict> {
    let (list, object) = (b.kinds.meets(Kinds::ARRAY), b.kinds.meets(Kinds::OBJECT));
    if !list && !object {
        return Some(OTHER_TYPE);
    }
    if object && !list && !a.kinds.meets(Kinds::STRING) {
        return Some(OTHER_TYPE);
    }
    if object && !list {
        let key = match a.values.as_deref() {
            Some([Value::String(key)]) => key,
            _ => return None,
        };
        let never = b.members.others == Others::None && !b.members.quiet && b.members.get(key).is_none();
        return never.then_some(NEVER);
    }
    if object {
        return None;
    }
    let item = b.items.any();
    let item = item.certain()?;
    if !a.kinds.meets(item.kinds) {
        return Some(OTHER_TYPE);
    }
    none_of(a, item, |a, b| a == b).then_some(NEVER)
}

/// Whether a path ends at a member that the data is known to have.
fn names_its_length(query: &Query, data: &Data) -> bool {
    find(query.parts(), data, &mut Vec::new()).named
}
