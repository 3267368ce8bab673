//! The messages for a text that is not YAML.

use super::super::Span;
use super::super::problems::{problem, shown};
use super::scalar::quoted;
use crate::diagnostics::Diagnostic;
use crate::syntax::code::SyntaxCode;
use granit_parser::{ErrorKind, ScanError};

/// The message for people about a parser's error.
pub(super) fn of(error: &ScanError, text: &str) -> Diagnostic<SyntaxCode> {
    let at = text.floor_char_boundary(error.marker().byte_offset().unwrap_or(text.len()));
    let next = text.get(at..).and_then(|rest| rest.chars().next());
    let length = next
        .filter(|&letter| letter != '\n' && letter != '\r')
        .map_or(0, char::len_utf8);
    let span = Span {
        start: at,
        end: at + length,
    };
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => problem(
            SyntaxCode::NestedTooDeep,
            span,
            format!("more than {} lists and objects inside each other", super::MAX_DEPTH),
        ),
        ErrorKind::BomInsideDocument => problem(SyntaxCode::Encoding, span, "a byte order mark inside the text")
            .help("it may stand at the very beginning only"),
        kind => {
            let (message, help) = words(kind);
            let mut wrong = problem(SyntaxCode::Yaml, span, message);
            wrong.help = help.map(str::to_owned);
            out_of_line(&wrong, text, at).unwrap_or_else(|| add_fix(wrong, kind, text, at))
        }
    }
}

/// The message, and the advice.
fn words(kind: &ErrorKind) -> (String, Option<&'static str>) {
    if let Some((message, help)) = of_structure(kind).or_else(|| of_text(kind)) {
        return (message.to_owned(), help);
    }
    match kind {
        ErrorKind::UnclosedFlowCollection { open } => (format!("a `{open}` that is not closed"), None),
        ErrorKind::MismatchedFlowCollectionEnd { open, close } => {
            (format!("a `{open}` is closed with `{close}`"), None)
        }
        ErrorKind::UnexpectedCharacter { character } => {
            let help = "a text that begins with a sign goes in quotes";
            (format!("a text can't begin with `{}`", shown(*character)), Some(help))
        }
        other => (format!("not YAML: {}", plain(&other.to_string())), None),
    }
}

type Words = (&'static str, Option<&'static str>);

/// Keys, items, brackets, indentation.
fn of_structure(kind: &ErrorKind) -> Option<Words> {
    Some(match kind {
        ErrorKind::MappingValueNotAllowed => (
            "a `:` where no key can be",
            Some("put a text that holds `: ` in quotes, or check the indentation"),
        ),
        ErrorKind::TabNotAllowed
        | ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabAtBlockScalarStart
        | ErrorKind::TabInPlainScalar => ("a tab where YAML wants blanks", Some("indent with blanks only")),
        ErrorKind::MisplacedFlowCollectionEnd => ("a bracket that closes nothing", None),
        ErrorKind::ExpectedBlockMappingKey => (
            "this fits neither the object before it nor any around it",
            Some("check the indentation: the keys of one object begin in the same column"),
        ),
        ErrorKind::ExpectedBlockSequenceEntry => (
            "this fits neither the list before it nor anything around it",
            Some("check the indentation: the `-` of one list stand in the same column"),
        ),
        ErrorKind::InvalidIndentation | ErrorKind::InvalidBlockScalarIndent | ErrorKind::InvalidFlowScalarIndent => (
            "wrong indentation",
            Some("what belongs together begins in the same column"),
        ),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (
            "a key without a `:`",
            Some("write `key: value`; a text over several lines is indented deeper than its key"),
        ),
        ErrorKind::ExpectedFlowMappingSeparator => ("a `,` or `}` is missing before this", None),
        ErrorKind::ExpectedFlowSequenceSeparator => ("a `,` or `]` is missing before this", None),
        ErrorKind::BlockSequenceEntryNotAllowed | ErrorKind::BlockEntryInFlowCollection => (
            "a `-` where no item can be",
            Some("a list begins in a line of its own, under its key"),
        ),
        ErrorKind::MappingKeyNotAllowed => ("a key where none can be", None),
        ErrorKind::ExpectedNodeContent => ("a value is missing here", None),
        ErrorKind::ExpectedDocumentStart => (
            "a `---` is missing before this",
            Some("a flow is one value; what follows it, or follows a line that begins with `%`, begins with `---`"),
        ),
        ErrorKind::InvalidDocumentEnd => ("text after `...`", None),
        _ => return None,
    })
}

/// Texts: quotes, escapes, blocks; and the signs before values.
fn of_text(kind: &ErrorKind) -> Option<Words> {
    Some(match kind {
        ErrorKind::UnclosedQuotedScalar => ("a text in quotes that is not closed", None),
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => (
            "more text after a text in quotes",
            Some("put the whole value in quotes of the other kind"),
        ),
        ErrorKind::InvalidQuotedScalarIndent => (
            "the text in quotes before this is not closed",
            Some("its further lines, if it has any, are indented deeper than its key"),
        ),
        ErrorKind::UnknownQuotedScalarEscape => (
            "an escape that YAML does not know",
            Some("write `\\\\` for a backslash, or use single quotes, which know no escapes"),
        ),
        ErrorKind::InvalidQuotedScalarHexEscape | ErrorKind::InvalidLowSurrogateHexEscape => {
            ("an escape with too few hexadecimal digits", None)
        }
        ErrorKind::InvalidLowSurrogate
        | ErrorKind::MissingLowSurrogate
        | ErrorKind::UnpairedLowSurrogate
        | ErrorKind::InvalidUnicodeEscape => ("an escape that stands for no character", None),
        ErrorKind::CommentInterceptedScalar => ("a comment inside a text over several lines", None),
        ErrorKind::CommentNotSeparated => ("a `#` right after a value", Some("write a blank before a comment")),
        ErrorKind::UndeclaredTagHandle => (
            "a tag of a kind that was not declared",
            Some("a text that begins with `!` goes in quotes"),
        ),
        ErrorKind::DocumentIndicatorInQuotedScalar => ("`---` or `...` inside a text in quotes", None),
        ErrorKind::InvalidBlockScalarHeader => (
            "text after `|` or `>`",
            Some("the text begins in the next line; put a text that begins with `|` or `>` in quotes"),
        ),
        ErrorKind::MissingAnchorOrAliasName => (
            "a `&` or `*` without a name",
            Some("a text that begins with `&` or `*` goes in quotes"),
        ),
        _ => return None,
    })
}

/// The parser's own message in the style of ours: lower case, backquotes.
fn plain(words: &str) -> String {
    let words = words.trim_end_matches('.').replace(['\'', '"'], "`");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => words,
    }
}

/// If a key stands one blank off the keys before it, says which blank that is.
fn out_of_line(wrong: &Diagnostic<SyntaxCode>, text: &str, at: usize) -> Option<Diagnostic<SyntaxCode>> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.lines().next()?;
    let (own, key) = column_of_key(line)?;
    let above = text
        .get(..start)?
        .lines()
        .rev()
        .take(LINES_ABOVE)
        .find_map(column_of_key);
    let (column, _) = above.filter(|(column, _)| column.abs_diff(own) == 1)?;
    let wrong = wrong.clone();
    if own < column {
        let place = Span { start, end: start };
        let found = wrong.help(format!("one blank is missing before `{key}`"));
        return Some(found.guess("insert the blank", place, " "));
    }
    let blank = Span { start, end: start + 1 };
    let found = wrong.help(format!("there is one blank too many before `{key}`"));
    line.starts_with(' ')
        .then(|| found.guess("remove the blank", blank, ""))
}

/// How many lines are searched backwards for the key above a line.
const LINES_ABOVE: usize = 50;

/// The column in which a line's key begins, after the `- ` of a list, and the key.
fn column_of_key(line: &str) -> Option<(usize, &str)> {
    let key = line.trim_start_matches([' ', '-']);
    let column = line.len() - key.len();
    let name = key.split(':').next().filter(|name| name.len() < key.len())?;
    let plain = name
        .chars()
        .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '$'));
    (plain && !name.is_empty()).then_some((column, name))
}

/// Adds the fix, if there is one.
fn add_fix(wrong: Diagnostic<SyntaxCode>, kind: &ErrorKind, text: &str, at: usize) -> Diagnostic<SyntaxCode> {
    let (tabs, value) = match kind {
        ErrorKind::TabInBlockIndentation
        | ErrorKind::TabInIndentation
        | ErrorKind::TabInPlainScalar
        | ErrorKind::TabNotAllowed => (true, false),
        ErrorKind::MappingValueNotAllowed
        | ErrorKind::UnexpectedCharacter { .. }
        | ErrorKind::InvalidTrailingDoubleQuotedScalar => (false, true),
        _ => (false, false),
    };
    if let Some((span, indented)) = tabs.then(|| without_tabs(text, at)).flatten() {
        // If some lines are indented with blanks and some with tabs, the width of a tab is unknown.
        let sure = !text.lines().any(|line| line.starts_with(' '));
        return wrong.fixed_by("write two blanks for each tab".to_owned(), span, indented, sure);
    }
    let value = value.then(|| value_of_line(text, at)).flatten();
    match value.and_then(|(span, value)| Some((span, quoted(value)?))) {
        Some((span, quoted)) => wrong.guess("put the value in quotes", span, quoted),
        None => wrong,
    }
}

/// The text from the line of a byte, or the next one that is indented with tabs, to the last that is, with blanks
/// instead. A reader stops at the first tab, so the fix also covers the tabs after it.
fn without_tabs(text: &str, at: usize) -> Option<(Span, String)> {
    let mut start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let mut lines = text.get(start..)?.split_inclusive('\n');
    let first = lines.find_map(|line| {
        let indent = indentation(line);
        if indent.contains('\t') {
            return Some(indent);
        }
        start += line.len();
        None
    })?;
    let rest = text.get(start..)?;
    let blanks = first.get(..first.find('\t')?)?;
    let mut mended = String::new();
    let (mut read, mut kept, mut end) = (0, 0, 0);
    for line in rest.split_inclusive('\n') {
        let indent = indentation(line);
        // After more blanks than the first line has, a tab can be text of a block.
        if indent.starts_with('\t') || indent.strip_prefix(blanks).is_some_and(|rest| rest.starts_with('\t')) {
            mended.push_str(rest.get(kept..read)?);
            mended.push_str(&indent.replace('\t', "  "));
            kept = read + indent.len();
            end = kept;
        }
        read += line.len();
    }
    let span = Span {
        start,
        end: start + end,
    };
    Some((span, mended))
}

fn indentation(line: &str) -> &str {
    let text = line.trim_start_matches([' ', '\t']);
    line.get(..line.len() - text.len()).unwrap_or_default()
}

/// The value in the line of a byte, if the line is `key: value` in block style and the byte is
/// inside the value.
fn value_of_line(text: &str, at: usize) -> Option<(Span, &str)> {
    let start = text.get(..at)?.rfind('\n').map_or(0, |end| end + 1);
    let line = text.get(start..)?.split(['\n', '\r']).next()?;
    let (key, value) = line.split_once(": ")?;
    let plain_key = key.trim_start_matches([' ', '-']);
    if plain_key.is_empty() || plain_key.contains(['"', '\'', '{', '[', '#']) {
        return None;
    }
    let value_start = start + line.len() - value.trim_start().len();
    let value = value.trim();
    let in_flow = value.starts_with(['{', '[', '|', '>', '&', '*', '!']);
    let ends_flow = value.ends_with([',', '}', ']']) && !value.starts_with('"');
    if in_flow || ends_flow || value.contains(" #") || at < value_start {
        return None;
    }
    let span = Span {
        start: value_start,
        end: value_start + value.len(),
    };
    Some((span, value))
}
