//! Diagnostics: the problems of a text, as data. The hosts show them.

mod quote;
mod suggest;

pub use quote::{QUOTED_CHARS, quoted, shortened};
pub use suggest::{Nearest, changes, nearest, nearest_alone};

use crate::span::Span;
use std::borrow::Cow;

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The flow can't run.
    Error,
    /// The flow runs, but probably not as intended.
    Warning,
}

impl Severity {
    /// `error` or `warning`
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// The kinds of problems that a language, or the reader of texts, finds.
pub trait DiagnosticCode: Copy {
    /// How bad a problem of this kind is.
    fn severity(self) -> Severity;
}

/// One problem of a text. Each language has codes `C` of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic<C> {
    /// Which kind of problem.
    pub code: C,
    /// Whether it keeps the text from being used.
    pub severity: Severity,
    /// Lower case, no full stop, the user's words in backquotes.
    pub message: String,
    /// The place.
    pub span: Span,
    /// JSON pointer of the value or member concerned; `""` is the whole document.
    pub pointer: String,
    /// Other places that matter, each with a message.
    pub labels: Vec<Label>,
    /// The advice.
    pub help: Option<String>,
    /// The change that fixes it, if there is a mechanical one.
    pub fix: Option<Fix>,
}

/// Another place that matters to a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The message about it.
    pub message: String,
}

/// A change of the text that fixes a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fix {
    /// What it does, in a few words.
    pub title: String,
    /// The replaced place.
    pub span: Span,
    /// The text to put in place of `span`; empty to delete it.
    pub replacement: String,
    /// Whether nothing else can be meant, so that the change needs no confirmation.
    pub sure: bool,
}

impl<C: DiagnosticCode> Diagnostic<C> {
    /// A diagnostic with the code's own severity, without labels, help and fix.
    pub fn new(code: C, span: Span, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            message: message.into(),
            span,
            pointer: pointer.into(),
            labels: Vec::new(),
            help: None,
            fix: None,
        }
    }

    /// Gives it a language's code, and the severity of that code.
    pub fn with_code<D: DiagnosticCode>(self, code: D) -> Diagnostic<D> {
        Diagnostic {
            code,
            severity: code.severity(),
            message: self.message,
            span: self.span,
            pointer: self.pointer,
            labels: self.labels,
            help: self.help,
            fix: self.fix,
        }
    }

    /// Cuts long quoted words.
    #[must_use]
    pub fn quoting_shortly(mut self) -> Self {
        let short = |text: &mut String| {
            if let Cow::Owned(cut) = quote::with_short_quotes(text) {
                *text = cut;
            }
        };
        short(&mut self.message);
        self.help.iter_mut().for_each(short);
        self.labels.iter_mut().for_each(|label| short(&mut label.message));
        self.fix.iter_mut().for_each(|fix| short(&mut fix.title));
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds a remark about another place.
    #[must_use]
    pub fn label(mut self, span: Span, message: impl Into<String>) -> Self {
        self.labels.push(Label {
            span,
            message: message.into(),
        });
        self
    }

    /// Adds a fix that needs no confirmation.
    #[must_use]
    pub fn fix(self, title: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.fixed_by(title.into(), span, replacement.into(), true)
    }

    /// Adds a fix that is only likely. It is shown, and people decide.
    #[must_use]
    pub fn guess(self, title: impl Into<String>, span: Span, replacement: impl Into<String>) -> Self {
        self.fixed_by(title.into(), span, replacement.into(), false)
    }

    /// Adds a fix that needs no confirmation only if it is `sure`.
    #[must_use]
    pub fn fixed_by(mut self, title: String, span: Span, replacement: String, sure: bool) -> Self {
        self.fix = Some(Fix {
            title,
            span,
            replacement,
            sure,
        });
        self
    }
}
