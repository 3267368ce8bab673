//! Recovery: reading on after a JSON text breaks the rules.

use super::super::problems::{excerpt, problem};
use super::super::{MAX_DEPTH, Node, NodeKind, Span};
use super::{Bracket, Content, Expect, Frame, Parser};
use crate::syntax::code::SyntaxCode;

/// The maximum number of open containers that a message about the end of the text points at.
const MAX_LABELS: usize = 8;

impl Parser<'_> {
    fn after_last(&self) -> Span {
        Span {
            start: self.last_end,
            end: self.last_end,
        }
    }

    /// The key whose colon or value is expected.
    fn pending_key(&self) -> String {
        match self.frames.last().map(|frame| &frame.content) {
            Some(Content::Object {
                key: Some((key, _)), ..
            }) => excerpt(key),
            _ => String::new(),
        }
    }

    /// Whether the text before `span` and the text that begins there are certainly two values, and
    /// not one word or number with a stray blank or quote inside.
    fn is_between_values(&self, span: Span) -> bool {
        let text = self.scan.text;
        let quoted = text
            .get(span.start..)
            .is_some_and(|next| next.starts_with(['"', '{', '[']));
        quoted && !self.last_mended
    }

    /// Whether the texts around the place of a missing `mark` contain it. It may then just stand on
    /// the wrong side of a quote.
    fn is_mark_swapped(&self, span: Span, mark: char) -> bool {
        let before = self.scan.text.get(..self.last_end).unwrap_or_default();
        let after = self.scan.text.get(span.start..).unwrap_or_default();
        let inner = |text: &str, quote: Option<&str>| quote.is_some_and(|text| text.contains(mark)) && !text.is_empty();
        inner(
            before,
            before.strip_suffix('"').and_then(|text| text.rsplit('"').next()),
        ) || inner(after, after.strip_prefix('"').and_then(|text| text.split('"').next()))
    }

    /// A value or key directly follows another: reading goes on as after a comma.
    pub(super) fn missing_comma(&mut self, span: Span) {
        let place = self.after_last();
        let at = Span {
            start: span.start,
            end: span.start,
        };
        let at = if place.start <= at.start { place } else { at };
        let sure = self.is_between_values(span) && !self.is_mark_swapped(span, ',');
        self.scan.problems.add(
            problem(SyntaxCode::Syntax, place, "a `,` is missing here")
                .label(span, "before this")
                .fixed_by("insert the comma".to_owned(), at, ",".to_owned(), sure),
        );
        self.expect = match self.frames.last().map(Frame::bracket) {
            Some(Bracket::List) => Expect::Item { comma: Some(place) },
            Some(Bracket::Object) => Expect::Key { comma: Some(place) },
            None => Expect::Nothing,
        };
    }

    /// A value directly follows its key: reading goes on as after a colon.
    pub(super) fn missing_colon(&mut self, span: Span) {
        let place = self.after_last();
        let message = format!("a `:` is missing after the key `{}`", self.pending_key());
        let sure = !self.is_mark_swapped(span, ':');
        self.scan.problems.add(
            problem(SyntaxCode::Syntax, place, message)
                .label(span, "before this")
                .fixed_by("insert the colon".to_owned(), place, ":".to_owned(), sure),
        );
        self.expect = Expect::Value;
    }

    /// A key has no value: `null` is taken for it.
    pub(super) fn missing_value(&mut self, span: Span) {
        let message = format!("the value of `{}` is missing", self.pending_key());
        self.scan.problems.add(problem(SyntaxCode::Syntax, span, message));
        self.place_problems();
        let span = self.after_last();
        self.attach(Node {
            span,
            kind: NodeKind::Null,
        });
    }

    /// A colon where none is allowed.
    pub(super) fn stray_colon(&mut self, span: Span) {
        let bracket = self.frames.last().map(Frame::bracket);
        let wrong = match (self.expect, bracket) {
            (Expect::Value, _) => problem(SyntaxCode::Syntax, span, "a second `:`").fix("remove it", span, ""),
            (Expect::Key { .. }, _) => problem(SyntaxCode::Syntax, span, "a `:` without a key before it"),
            (_, Some(Bracket::List)) => {
                problem(SyntaxCode::Syntax, span, "a `:` in a list").help("keys go into an object: `{` and `}`")
            }
            _ => problem(SyntaxCode::Syntax, span, "unexpected `:`"),
        };
        self.scan.problems.add(wrong);
        self.place_problems();
        self.expect = match (self.expect, bracket) {
            (Expect::Key { .. } | Expect::Next, Some(Bracket::Object)) => Expect::Value,
            (_, Some(Bracket::List)) => Expect::Item { comma: None },
            (other, _) => other,
        };
    }

    /// `{` or `[` where a key belongs. A `{` in an object that is a list's item is most likely the
    /// next item after a forgotten bracket; anything else is a value without a key.
    pub(super) fn opened_without_key(&mut self, span: Span, bracket: Bracket) {
        let in_list = self.frames.last().map(Frame::bracket) == Some(Bracket::List);
        if in_list {
            self.missing_comma(span);
            return;
        }
        let outer = self
            .frames
            .len()
            .checked_sub(2)
            .and_then(|index| self.frames.get(index));
        let next_item = bracket == Bracket::Object && outer.map(Frame::bracket) == Some(Bracket::List);
        let has_members = matches!(
            self.frames.last().map(|frame| &frame.content),
            Some(Content::Object { members, .. }) if !members.is_empty()
        );
        if next_item && has_members {
            let (place, inserted) = match self.expect {
                Expect::Key { comma: Some(comma) } => (
                    Span {
                        start: comma.start,
                        end: comma.start,
                    },
                    "}",
                ),
                _ => (self.after_last(), "},"),
            };
            let opener = self.frames.last().map(Frame::opener).unwrap_or_default();
            self.scan.problems.add(
                problem(SyntaxCode::Syntax, place, "a `}` is missing here")
                    .label(opener, "opened here")
                    .guess("close the object", place, inserted),
            );
            self.pop(place.start);
            self.expect = Expect::Item { comma: None };
            return;
        }
        if let Expect::Next = self.expect {
            self.missing_comma(span);
        } else {
            let message = format!("{} without a key before it", bracket.name());
            self.scan.problems.add(problem(SyntaxCode::Syntax, span, message));
        }
        self.place_problems();
        self.expect = Expect::Value;
    }

    /// A container that is nested too deep: reads past it and takes `null` for it.
    pub(super) fn too_deep(&mut self, span: Span) {
        let message = format!("more than {MAX_DEPTH} lists and objects inside each other");
        self.scan
            .problems
            .add(problem(SyntaxCode::NestedTooDeep, span, message));
        self.place_problems();
        let closed = self.scan.skip_container();
        self.attach(Node {
            span: self.scan.since(span.start),
            kind: NodeKind::Null,
        });
        if !closed {
            self.truncated = true;
            self.close_all(self.scan.at);
        }
    }

    /// Makes a closing bracket fit: afterwards the innermost container is the one it closes.
    /// Returns false if it closes nothing.
    pub(super) fn closes_something(&mut self, span: Span, bracket: Bracket) -> bool {
        let Some(innermost) = self.frames.last().map(Frame::bracket) else {
            self.stray_closer(span, bracket);
            return false;
        };
        if innermost == bracket {
            return true;
        }
        let rest_is_empty = self.scan.rest().trim_start().is_empty();
        let open = match bracket {
            Bracket::List => self.lists,
            Bracket::Object => self.frames.len() - self.lists,
        };
        let closes_root = open == 1 && self.frames.first().map(Frame::bracket) == Some(bracket);
        if open > 0 && (rest_is_empty || !closes_root) {
            self.close_forgotten(span, bracket);
            return true;
        }
        // No container of that kind is open. Closing the outermost one would leave the rest of the
        // text outside.
        if self.frames.len() > 1 || rest_is_empty {
            let opener = self.frames.last().map(Frame::opener).unwrap_or_default();
            let message = format!(
                "`{}` where {} ends with `{}`",
                bracket.closer(),
                innermost.name(),
                innermost.closer()
            );
            self.scan.problems.add(
                problem(SyntaxCode::Syntax, span, message)
                    .label(opener, "opened here")
                    .guess(format!("write `{}`", innermost.closer()), span, innermost.closer()),
            );
            return true;
        }
        self.stray_closer(span, bracket);
        false
    }

    fn stray_closer(&mut self, span: Span, bracket: Bracket) {
        let message = format!("a `{}` that closes nothing", bracket.closer());
        self.scan
            .problems
            .add(problem(SyntaxCode::Syntax, span, message).guess("remove it", span, ""));
    }

    /// Closes containers without a closing bracket, up to the one that this bracket closes.
    fn close_forgotten(&mut self, span: Span, bracket: Bracket) {
        while let Some(frame) = self.frames.last().filter(|frame| frame.bracket() != bracket) {
            let (opener, closer) = (frame.opener(), frame.bracket().closer());
            if let Expect::Colon | Expect::Value = self.expect {
                self.missing_value(span);
            }
            let (place, end) = match self.expect {
                Expect::Item { comma: Some(comma) } | Expect::Key { comma: Some(comma) } => (comma, comma.start),
                _ => (self.after_last(), self.last_end),
            };
            let at = Span { start: end, end };
            self.scan.problems.add(
                problem(SyntaxCode::Syntax, at, format!("a `{closer}` is missing here"))
                    .label(opener, "opened here")
                    .guess(format!("insert `{closer}`"), place, closer),
            );
            self.pop(end);
        }
    }

    /// The text ends. The open containers are one problem, whose fix closes all of them.
    pub(super) fn end(&mut self) {
        let Some(innermost) = self.frames.last() else {
            if self.scan.problems.is_empty() {
                let span = Span::default();
                let message = "there is nothing in the file";
                self.scan.problems.add(
                    problem(SyntaxCode::Empty, span, message)
                        .help("a flow is an object with `version`, `type` and `steps`"),
                );
            }
            self.expect = Expect::Nothing;
            return;
        };
        self.truncated = true;
        let message = match self.expect {
            Expect::Colon | Expect::Value => format!("the text ends before the value of `{}`", self.pending_key()),
            _ => format!("the text ends inside {}", innermost.bracket().name()),
        };
        let place = self.after_last();
        let mut wrong = problem(SyntaxCode::Syntax, place, message);
        for frame in self.frames.iter().rev().take(MAX_LABELS) {
            wrong = wrong.label(frame.opener(), "not closed");
        }
        let closers: String = self.frames.iter().rev().map(|frame| frame.bracket().closer()).collect();
        let replaced = match self.expect {
            Expect::Item { comma: Some(comma) } | Expect::Key { comma: Some(comma) } => Some(Span {
                start: comma.start,
                end: self.last_end,
            }),
            Expect::Colon | Expect::Value => None,
            _ => Some(place),
        };
        if let Some(replaced) = replaced {
            let title = format!("close with `{closers}`");
            wrong = wrong.guess(
                if closers.len() > 20 {
                    "close them".to_owned()
                } else {
                    title
                },
                replaced,
                closers,
            );
        }
        self.scan.problems.add(wrong);
        self.place_problems();
        if let Expect::Colon | Expect::Value = self.expect {
            self.attach(Node {
                span: place,
                kind: NodeKind::Null,
            });
        }
        self.close_all(place.end);
    }

    /// Leaves the rest of a text with too many problems unread.
    pub(super) fn give_up(&mut self) {
        self.truncated = true;
        self.place_problems();
        self.scan.problems.leave_off();
        self.close_all(self.scan.at);
    }

    /// Closes everything without a report.
    fn close_all(&mut self, end: usize) {
        while !self.frames.is_empty() {
            self.pop(end);
        }
    }

    /// Looks at the text after the document. Returns whether there may be more to look at.
    pub(super) fn after_the_end(&mut self) -> bool {
        self.scan.skip_blank();
        let rest = self.scan.rest();
        let Some(first) = rest.chars().next() else {
            self.place_problems();
            return false;
        };
        let start = self.scan.at;
        let bracket = match first {
            '}' => Some(Bracket::Object),
            ']' => Some(Bracket::List),
            _ => None,
        };
        self.scan.at += first.len_utf8();
        let span = self.scan.since(start);
        if let Some(bracket) = bracket {
            self.stray_closer(span, bracket);
        } else {
            self.truncated = true;
            let line = rest.split(['\n', '\r']).next().unwrap_or_default().trim_end();
            let span = Span {
                start,
                end: start + line.len(),
            };
            let message = "text after the end of the document";
            self.scan
                .problems
                .add(problem(SyntaxCode::Syntax, span, message).help("a file holds one definition"));
        }
        self.place_problems();
        bracket.is_some()
    }
}
