//! Regular expressions of `match` and `search`: RFC 9485 (I-Regexp), bounded.

use crate::graph::{Budget, Exhausted};
use crate::regex_cost;
use regex::Regex;
use std::cell::RefCell;
use std::sync::Arc;

/// The maximum length of a regular expression, in bytes.
const MAX_PATTERN_BYTES: usize = 256;
/// Bound of what an expression costs: about one for each character once its repetitions are written out.
const MAX_PATTERN_COST: usize = 2_000;

/// The steps to build an expression, for each unit of its cost.
const STEPS_PER_COST: usize = 20;
/// The maximum number of expressions kept in one search; more are built again each time.
const CACHED_PATTERNS: usize = 8;

/// A regular expression. It is built again for each search: an expression of a few bytes can take a
/// megabyte once it is built, and a definition has room for thousands of them.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    /// In the engine's own spelling.
    spelled: Arc<str>,
    cost: usize,
}

/// The expressions that one search has read and built.
#[derive(Default)]
pub(super) struct Built {
    regexes: RefCell<Vec<(Pattern, Option<Regex>)>>,
    /// Expressions from the data; `None` for a text that is not one.
    read: RefCell<Vec<(String, bool, Option<Pattern>)>>,
}

impl Built {
    /// Whether the expression fits the text. The cost of building and matching is known in advance:
    /// the engine's time is bounded by the size of the expression times that of the text.
    pub(super) fn matches(&self, pattern: &Pattern, text: &str, budget: &Budget) -> Result<bool, Exhausted> {
        let fits = |regex: &Option<Regex>| regex.as_ref().is_some_and(|regex| regex.is_match(text));
        budget.take(pattern.steps_for(text))?;
        if let Some((_, regex)) = self.regexes.borrow().iter().find(|(known, _)| known.is(pattern)) {
            return Ok(fits(regex));
        }
        budget.take(pattern.cost.saturating_mul(STEPS_PER_COST))?;
        let regex = pattern.build();
        let held = fits(&regex);
        let mut regexes = self.regexes.borrow_mut();
        if regexes.len() < CACHED_PATTERNS {
            regexes.push((pattern.clone(), regex));
        }
        Ok(held)
    }

    /// Whether a text fits an expression that comes from the data. A text that is not an expression fits nothing (RFC
    /// 9535, section 2.4.6).
    pub(super) fn matches_found(
        &self,
        pattern: &str,
        whole: bool,
        text: &str,
        budget: &Budget,
    ) -> Result<bool, Exhausted> {
        match self.read(pattern, whole, budget)? {
            Some(pattern) => self.matches(&pattern, text, budget),
            None => Ok(false),
        }
    }

    /// Reads an expression. Reading one that is too long ends at its first byte, so the cost is
    /// charged afterwards.
    fn read(&self, pattern: &str, whole: bool, budget: &Budget) -> Result<Option<Pattern>, Exhausted> {
        budget.read(pattern.len().min(MAX_PATTERN_BYTES))?;
        let same = |known: &&(String, bool, Option<Pattern>)| known.1 == whole && known.0 == pattern;
        if let Some((_, _, known)) = self.read.borrow().iter().find(same) {
            return Ok(known.clone());
        }
        let read = Pattern::new(pattern, whole).ok();
        let cost = read.as_ref().map_or(0, |read| read.cost);
        budget.take(pattern.len().min(MAX_PATTERN_BYTES) + cost)?;
        let mut all = self.read.borrow_mut();
        if all.len() < CACHED_PATTERNS && pattern.len() <= MAX_PATTERN_BYTES {
            all.push((pattern.to_owned(), whole, read.clone()));
        }
        Ok(read)
    }
}

impl Pattern {
    /// Reads an expression for whole strings or for parts of them. The error is the rest of a
    /// sentence about the expression.
    pub(super) fn new(pattern: &str, whole: bool) -> Result<Self, &'static str> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err("is longer than the 256 bytes a regular expression may have");
        }
        let cost = cost(pattern)?;
        if cost > MAX_PATTERN_COST {
            return Err("repeats too much for a regular expression");
        }
        let mut spelled = spelled(pattern);
        if whole {
            spelled = format!("^(?:{spelled})$");
        }
        // Parsing finds the errors. Building takes a hundred times as long, and may never be
        // needed.
        regex_syntax::parse(&spelled).map_err(|_| "is no regular expression")?;
        Ok(Self {
            spelled: spelled.into(),
            cost,
        })
    }

    /// Whether the other one is the same expression.
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.spelled, &other.spelled) || self.spelled == other.spelled
    }

    fn build(&self) -> Option<Regex> {
        #[cfg(test)]
        tests::BUILT.with(|built| built.set(built.get() + 1));
        Regex::new(&self.spelled).ok()
    }

    /// The steps to match it against a text.
    fn steps_for(&self, text: &str) -> usize {
        1 + regex_cost::walk(text.len(), self.cost)
    }
}

/// The expression in the engine's notation: a dot of RFC 9485 does not match the end of a line,
/// neither `\n` nor `\r` (section 5.3).
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
fn cost(pattern: &str) -> Result<usize, &'static str> {
    let mut chars = pattern.chars().peekable();
    // Sums of the groups around, the innermost last, and the cost of what a quantifier would repeat.
    let mut outer = Vec::new();
    let mut sum = 0_usize;
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
            '.' => regex_cost::CLASS,
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
fn class(chars: &mut Characters<'_>) -> Result<usize, &'static str> {
    let mut cost = regex_cost::CLASS;
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
fn escape(chars: &mut Characters<'_>) -> Result<usize, &'static str> {
    match chars.next() {
        Some('p' | 'P') => {
            // Its name in braces, which would look like a quantifier.
            if chars.next_if_eq(&'{').is_none() || !chars.by_ref().any(|c| c == '}') {
                return Err("has a `\\p` without a property in braces");
            }
            Ok(regex_cost::PROPERTY)
        }
        Some('n' | 'r' | 't') => Ok(1),
        Some(c) if c.is_ascii_punctuation() => Ok(1),
        _ => Err("has an escape that RFC 9485 does not know; classes are written like `[0-9]`"),
    }
}

/// The most repetitions of a quantifier, from after its `{` to after its `}`.
fn repetitions(chars: &mut Characters<'_>) -> Result<usize, &'static str> {
    let inside: String = chars.by_ref().take_while(|&c| c != '}').collect();
    let (least, most) = inside.split_once(',').unwrap_or((&inside, &inside));
    let number = |digits: &str| {
        digits
            .parse::<usize>()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use std::cell::Cell;

    thread_local! {
        /// Expressions that were built on this thread.
        pub(super) static BUILT: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn expressions_are_built_where_they_are_asked_and_not_before() {
        let patterns: Vec<_> = (0..1_000)
            .map(|at| Pattern::new(&format!("x{at}"), true).unwrap())
            .collect();
        assert_eq!(BUILT.get(), 0);
        let budget = Budget::new(&Limits::default(), 0);
        let built = Built::default();
        for _ in 0..3 {
            assert_eq!(built.matches(&patterns[7], "x7", &budget), Ok(true));
        }
        assert_eq!(BUILT.get(), 1);
    }

    #[test]
    fn an_expression_in_the_data_is_read_and_built_once_and_paid_for() {
        let budget = Budget::new(&Limits::default(), 0);
        let built = Built::default();
        let before = BUILT.get();
        assert_eq!(built.matches_found("x[0-9]", true, "x7", &budget), Ok(true));
        let first = budget.spent();
        for _ in 0..3 {
            assert_eq!(built.matches_found("x[0-9]", true, "x78", &budget), Ok(false));
            assert_eq!(built.matches_found("x[0-9]", false, "x78", &budget), Ok(true), "a part");
        }
        assert_eq!(BUILT.get() - before, 2);
        assert!(first > 100, "{first}");
        for wrong in ["(a", "(?i)a", r"\d", "((a{50}){50}){50}", &"a".repeat(257)] {
            assert_eq!(built.matches_found(wrong, false, "a", &budget), Ok(false), "{wrong}");
        }
        assert_eq!(
            built.matches_found(&"a".repeat(256), true, &"a".repeat(256), &budget),
            Ok(true)
        );
        let mut asked = 0;
        while built.matches_found(&format!("a{asked}"), false, "b", &budget).is_ok() {
            asked += 1;
        }
        assert!(asked < 1_000_000, "reading costs nothing");
    }

    #[test]
    fn what_is_parsed_can_be_built() {
        for most in [
            r"\P{L}{50}",
            r"(\p{L}|\P{N}){24}",
            "[^a]{500}",
            "(((a{10}){10}){10}){2}",
            "(.*){200}",
        ] {
            let pattern = Pattern::new(most, false).unwrap_or_else(|why| panic!("{most} {why}"));
            assert!(pattern.build().is_some(), "{most}");
        }
    }
}
