//! Splits a condition's text into tokens.

use super::functions::{argument, method, no_functions, no_words};
use crate::expression_error::ExpressionError;
use crate::path::Query;
use crate::string_literal::{self, Rules};
use crate::value::{Number, Value, compare_numbers};
use std::cmp::Ordering;

/// A piece of a condition and its place in bytes.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) offset: usize,
    pub(super) len: usize,
    pub(super) kind: TokenKind,
}

#[derive(Clone, Debug)]
pub(super) enum TokenKind {
    Open,
    Close,
    Not,
    And,
    Or,
    Minus,
    Compare(Comparison),
    Literal(Value),
    Path(Query),
}

/// How to compare two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
}

impl Comparison {
    /// Whether two values compare so. `In` is asked of expressions, not of values, and holds for none.
    pub(crate) fn holds(self, left: &Value, right: &Value) -> bool {
        let order = || match (left, right) {
            (Value::Number(a), Value::Number(b)) => compare_numbers(a, b),
            // UTF-8 keeps the order of code points.
            (Value::String(a), Value::String(b)) => Some(a.as_str().cmp(b.as_str())),
            _ => None,
        };
        match self {
            Self::Equal => left == right,
            Self::NotEqual => left != right,
            Self::Less => order() == Some(Ordering::Less),
            Self::LessOrEqual => order().is_some_and(Ordering::is_le),
            Self::Greater => order() == Some(Ordering::Greater),
            Self::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
            Self::In => false,
        }
    }
}

/// The signs, a longer one before what it begins with.
const SIGNS: [(&str, TokenKind); 11] = [
    ("==", TokenKind::Compare(Comparison::Equal)),
    ("!=", TokenKind::Compare(Comparison::NotEqual)),
    ("<=", TokenKind::Compare(Comparison::LessOrEqual)),
    (">=", TokenKind::Compare(Comparison::GreaterOrEqual)),
    ("<", TokenKind::Compare(Comparison::Less)),
    (">", TokenKind::Compare(Comparison::Greater)),
    ("&&", TokenKind::And),
    ("||", TokenKind::Or),
    ("!", TokenKind::Not),
    ("(", TokenKind::Open),
    (")", TokenKind::Close),
];

/// Texts that look like signs of the language but are not, each with its replacement; a longer one
/// comes before its own prefix.
const NO_SIGNS: [(&str, &str); 15] = [
    ("===", "write `==`"),
    ("!==", "write `!=`"),
    ("=~", "there are no regular expressions in conditions"),
    ("=<", "write `<=`"),
    ("=>", "write `>=`"),
    ("<>", "write `!=`"),
    ("=", "write `==` to compare"),
    ("&", "write `&&`"),
    ("|", "write `||`"),
    ("+", "there is no arithmetic in conditions"),
    ("*", "there is no arithmetic in conditions"),
    ("/", "there is no arithmetic in conditions"),
    ("%", "there is no arithmetic in conditions"),
    ("@", "paths here start at `$`"),
    ("“", "write plain quotes: `\"`"),
];

/// All tokens of a text, or its first fault.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, ExpressionError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        let Some(first) = rest.chars().next() else {
            break;
        };
        if matches!(first, ' ' | '\t' | '\n' | '\r') {
            at += 1;
            continue;
        }
        if begins_word(first)
            && let Some(before) = tokens
                .last()
                .filter(|before: &&Token| matches!(before.kind, TokenKind::Path(_)))
            && let Some(path) = text.get(before.offset..before.offset + before.len)
            && let Some(error) = no_words(at, rest, path)
        {
            return Err(error);
        }
        let (kind, end) = token(text, at, rest, first)?;
        if matches!(kind, TokenKind::Path(_))
            && text.get(end..).is_some_and(|rest| rest.starts_with('('))
            && let Some((on, name)) = text.get(at..end).and_then(method)
        {
            let on = Some(on).filter(|on| *on != "$");
            return Err(no_functions(end - name.len(), name, on));
        }
        if matches!(kind, TokenKind::Path(_)) && text.get(end..).is_some_and(|rest| rest.starts_with('-')) {
            return Err(ExpressionError::new(end, 1, "`-` right after a path").help(
                "a key with `-` in it stands in brackets and quotes, as in `$[\"a-b\"]`; there is no arithmetic in conditions",
            ));
        }
        tokens.push(Token {
            offset: at,
            len: end - at,
            kind,
        });
        at = end;
    }
    Ok(tokens)
}

/// The token at byte `at`, where `rest` begins with `first`, and where it ends.
fn token(text: &str, at: usize, rest: &str, first: char) -> Result<(TokenKind, usize), ExpressionError> {
    match first {
        '"' | '\'' => {
            let (said, end) = string_literal::read(text, at, Rules::Condition)?;
            Ok((TokenKind::Literal(Value::from(said)), end))
        }
        '`' => match rest.get(1..).and_then(|inside| inside.split_once('`')) {
            Some((inside, _)) => Ok((TokenKind::Literal(Value::from(inside)), at + inside.len() + 2)),
            None => Err(ExpressionError::new(at, rest.len(), "the string has no end")
                .help("close it with the quote it began with")),
        },
        '$' => path(text, at, rest),
        '0'..='9' => number(at, rest),
        '-' => Ok((TokenKind::Minus, at + 1)),
        '.' if rest
            .get(1..)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) =>
        {
            let written = number_like(rest);
            Err(
                ExpressionError::new(at, written.len(), format!("`{written}` is no number"))
                    .help("write a digit before the point: `0.5`"),
            )
        }
        _ if begins_word(first) => named(at, rest),
        _ => sign(at, rest, first),
    }
}

fn sign(at: usize, rest: &str, first: char) -> Result<(TokenKind, usize), ExpressionError> {
    let meant = NO_SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
    let found = SIGNS.iter().find(|(sign, _)| rest.starts_with(sign));
    match (found, meant) {
        (Some((sign, kind)), None) => Ok((kind.clone(), at + sign.len())),
        // Both match: the longer one counts.
        (Some((sign, kind)), Some((other, _))) if sign.len() >= other.len() => Ok((kind.clone(), at + sign.len())),
        (_, Some((sign, help))) => {
            Err(ExpressionError::new(at, sign.len(), format!("`{sign}` is no operator of conditions")).help(*help))
        }
        (None, None) => Err(ExpressionError::new(
            at,
            first.len_utf8(),
            format!("unexpected `{first}`"),
        )),
    }
}

fn path(text: &str, at: usize, rest: &str) -> Result<(TokenKind, usize), ExpressionError> {
    let name = rest.get(1..).map_or("", word);
    if !name.is_empty() {
        let after = rest.get(1 + name.len()..).unwrap_or_default();
        let error = ExpressionError::new(at, 1 + name.len(), format!("`${name}` is not known in conditions"));
        let help = match name {
            "input" | "local" | "context" if after.starts_with(['.', '[']) => {
                "paths here start at `$`, which is the step's own input: `$.a`".to_owned()
            }
            "input" | "local" | "context" => "paths here start at `$`, which is the step's own input".to_owned(),
            _ => format!("paths here start at `$`: write `$.{name}`"),
        };
        return Err(error.help(help));
    }
    let (query, end) = Query::prefix(text, at, at + 1)?;
    if query.is_singular() {
        return Ok((TokenKind::Path(query), end));
    }
    let message = format!("`{}` may find several values, and here is place for one", query.text());
    Err(ExpressionError::new(at, end - at, message).help("paths in conditions are keys and indices: `$.a[0].b`"))
}

/// The letters, digits and `_` at the beginning of a text.
fn word(rest: &str) -> &str {
    let len = rest
        .find(|c: char| !(c.is_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    rest.get(..len).unwrap_or_default()
}

/// The letters, digits, `_` and `.` at the start: text that was meant as a number.
fn number_like(rest: &str) -> &str {
    let len = rest
        .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')))
        .unwrap_or(rest.len());
    rest.get(..len).unwrap_or_default()
}

fn begins_word(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

fn number(at: usize, rest: &str) -> Result<(TokenKind, usize), ExpressionError> {
    let digits = |from: usize| {
        let rest = rest.as_bytes().get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let byte = |at: usize| rest.as_bytes().get(at).copied();
    let mut end = digits(0);
    if byte(end) == Some(b'.') {
        end += 1 + digits(end + 1);
    }
    if matches!(byte(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(byte(end + 1), Some(b'+' | b'-')));
        end += 1 + sign + digits(end + 1 + sign);
    }
    let more = rest.get(end..).map_or(0, |rest| number_like(rest).len());
    let written = rest.get(..end + more).unwrap_or_default();
    match written.parse::<Number>() {
        Ok(number) => Ok((TokenKind::Literal(Value::Number(number)), at + end)),
        Err(_) => Err(
            ExpressionError::new(at, written.len(), format!("`{written}` is no number"))
                .help("numbers are written as in JSON; text stands in quotes"),
        ),
    }
}

/// The number with a minus before it, from its text.
pub(super) fn negative(digits: &str) -> Option<Value> {
    format!("-{digits}").parse::<Number>().ok().map(Value::Number)
}

/// Whether a word is followed by a parenthesis and is not an operator of another language.
fn is_call(rest: &str, name: &str) -> bool {
    let after = rest.get(name.len()..).unwrap_or_default();
    let operator = ["and", "or", "not", "true", "false", "null", "in"];
    after.trim_start().starts_with('(') && !operator.contains(&name.to_ascii_lowercase().as_str())
}

fn named(at: usize, rest: &str) -> Result<(TokenKind, usize), ExpressionError> {
    let name = word(rest);
    let kind = match name {
        "true" => TokenKind::Literal(Value::Bool(true)),
        "false" => TokenKind::Literal(Value::Bool(false)),
        "null" => TokenKind::Literal(Value::Null),
        "in" => TokenKind::Compare(Comparison::In),
        _ if is_call(rest, name) => {
            let inside = rest.get(name.len()..).unwrap_or_default().trim_start();
            let on = inside.strip_prefix('(').and_then(argument);
            return Err(no_functions(at, name, on.as_deref()));
        }
        _ => {
            let help = match name.to_ascii_lowercase().as_str() {
                "and" => "write `&&`".to_owned(),
                "or" => "write `||`".to_owned(),
                "not" => "write `!`".to_owned(),
                lower @ ("true" | "false" | "null" | "in") => format!("write `{lower}`"),
                "nil" | "none" | "undefined" => "write `null`".to_owned(),
                _ => format!("text stands in quotes, and paths start at `$`: `\"{name}\"` or `$.{name}`"),
            };
            return Err(
                ExpressionError::new(at, name.len(), format!("`{name}` is not known in conditions")).help(help),
            );
        }
    };
    Ok((kind, at + name.len()))
}
