//! Regular expressions of `match` and `search`: RFC 9485 (I-Regexp), bounded.

use crate::value::Value;
use regex::Regex;
use std::sync::Arc;

/// Bytes of a regular expression.
const LENGTH: usize = 256;
/// Bound of what an expression costs: about one for each character once its repetitions are written out.
const COST: u64 = 2_000;
/// What a class of characters costs, and one with a Unicode property.
const CLASS: u64 = 4;
const PROPERTY: u64 = 40;

/// A regular expression. It is built anew for each string it is asked about: built, one of a few bytes can take a
/// megabyte, and a definition has room for thousands of them.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// In the engine's own spelling.
    spelled: Arc<str>,
}

impl Pattern {
    /// Takes an expression for whole strings or for parts of them; otherwise what is wrong with it, as the rest of a
    /// sentence.
    pub(super) fn new(pattern: &str, whole: bool) -> Result<Self, &'static str> {
        if pattern.len() > LENGTH {
            return Err("is longer than the 256 bytes a regular expression may have");
        }
        if cost(pattern)? > COST {
            return Err("repeats too much for a regular expression");
        }
        let mut spelled = spelled(pattern);
        if whole {
            spelled = format!("^(?:{spelled})$");
        }
        Regex::new(&spelled).map_err(|_| "is no regular expression")?;
        Ok(Self {
            spelled: spelled.into(),
        })
    }

    /// Whether the value is a string that the expression fits.
    pub(super) fn matches(&self, value: &Value) -> bool {
        value
            .as_str()
            .is_some_and(|text| Regex::new(&self.spelled).is_ok_and(|regex| regex.is_match(text)))
    }
}

/// The expression as the engine writes it: a dot of RFC 9485 is no end of a line, neither `\n` nor `\r` (section 5.3).
fn spelled(pattern: &str) -> String {
    let mut spelled = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                spelled.push(c);
                spelled.extend(chars.next());
                continue;
            }
            '[' => in_class = true,
            ']' => in_class = false,
            '.' if !in_class => {
                spelled.push_str(r"[^\n\r]");
                continue;
            }
            _ => {}
        }
        spelled.push(c);
    }
    spelled
}

/// What an expression costs. Fails on what RFC 9485 does not have and the engine would take in its own meaning.
fn cost(pattern: &str) -> Result<u64, &'static str> {
    let mut chars = pattern.chars().peekable();
    // Sums of the groups around, the innermost last, and the cost of what a quantifier would repeat.
    let mut outer = Vec::new();
    let mut sum = 0_u64;
    let mut last = None;
    while let Some(c) = chars.next() {
        let atom = match c {
            '*' | '+' | '?' | '{' => {
                let times = if c == '{' { repetitions(&mut chars)? } else { 2 };
                let once = last.take().ok_or("has a quantifier with nothing to repeat")?;
                sum = sum.saturating_add(times.saturating_mul(once));
                continue;
            }
            '(' if chars.peek() == Some(&'?') => {
                return Err("has a group that begins with `(?`, which is not supported");
            }
            '(' => {
                outer.push(sum.saturating_add(last.take().unwrap_or(0)));
                sum = 0;
                continue;
            }
            ')' => {
                let inside = sum.saturating_add(last.take().unwrap_or(0)).max(1);
                sum = outer.pop().ok_or("has a `)` without `(`")?;
                inside
            }
            '[' => class(&mut chars)?,
            '\\' => escape(&mut chars)?,
            '.' => CLASS,
            _ => 1,
        };
        sum = sum.saturating_add(last.replace(atom).unwrap_or(0));
    }
    if !outer.is_empty() {
        return Err("has a `(` without `)`");
    }
    Ok(sum.saturating_add(last.unwrap_or(0)))
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The cost of a class, from after its `[` to after its `]`.
fn class(chars: &mut Characters<'_>) -> Result<u64, &'static str> {
    let mut cost = CLASS;
    while let Some(c) = chars.next() {
        match c {
            ']' => return Ok(cost),
            '\\' => cost = cost.saturating_add(escape(chars)?),
            _ => {}
        }
    }
    Err("has a `[` without `]`")
}

/// The cost of an escape, from after its backslash.
fn escape(chars: &mut Characters<'_>) -> Result<u64, &'static str> {
    match chars.next() {
        Some('p' | 'P') => {
            // Its name in braces, which would look like a quantifier.
            if chars.next_if_eq(&'{').is_none() || !chars.by_ref().any(|c| c == '}') {
                return Err("has a `\\p` without a property in braces");
            }
            Ok(PROPERTY)
        }
        Some('n' | 'r' | 't') => Ok(1),
        Some(c) if c.is_ascii_punctuation() => Ok(1),
        _ => Err("has an escape that RFC 9485 does not know; classes are written like `[0-9]`"),
    }
}

/// The most repetitions of a quantifier, from after its `{` to after its `}`.
fn repetitions(chars: &mut Characters<'_>) -> Result<u64, &'static str> {
    let inside: String = chars.by_ref().take_while(|&c| c != '}').collect();
    let (least, most) = inside.split_once(',').unwrap_or((&inside, &inside));
    let number = |digits: &str| {
        digits
            .parse::<u64>()
            .map_err(|_| "has a quantifier that is not `{n}`, `{n,}` or `{n,m}`")
    };
    let least = number(least)?;
    let most = if most.is_empty() {
        least.saturating_add(1)
    } else {
        number(most)?
    };
    Ok(most.max(1))
}
