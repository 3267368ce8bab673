//! Collects the problems of a text.

use super::Span;
use crate::diagnostics::Diagnostic;
use crate::syntax::code::SyntaxCode;

/// The maximum number of problems kept of one text. A text with more is not a faulty definition but
/// something else altogether.
pub(super) const MAX_PROBLEMS: usize = 100;

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Diagnostic<SyntaxCode>>,
    /// How many of them have their pointer.
    placed: usize,
    left_off: bool,
}

impl Problems {
    /// Adds a problem whose pointer is given later, by [`Problems::place`].
    pub fn add(&mut self, diagnostic: Diagnostic<SyntaxCode>) {
        if self.is_full() {
            self.left_off = true;
        } else {
            self.found.push(diagnostic);
        }
    }

    /// Whether the maximum is reached: the text is then not worth reading on.
    pub fn is_full(&self) -> bool {
        self.found.len() >= MAX_PROBLEMS
    }

    /// Reports that the rest of the text was not read and may have more problems.
    pub fn leave_off(&mut self) {
        self.left_off = true;
    }

    /// Whether there are no problems.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether problems still lack their pointer.
    pub fn is_unplaced(&self) -> bool {
        self.placed < self.found.len()
    }

    /// Sets the pointer of the problems that have none yet.
    pub fn place(&mut self, pointer: &str) {
        for diagnostic in self.found.iter_mut().skip(self.placed) {
            if diagnostic.pointer.is_empty() {
                pointer.clone_into(&mut diagnostic.pointer);
            }
        }
        self.placed = self.found.len();
    }

    /// All problems in order of place.
    pub fn into_diagnostics(mut self) -> Vec<Diagnostic<SyntaxCode>> {
        self.found.sort_by_key(|diagnostic| diagnostic.span.start);
        if self.left_off
            && let Some(last) = self.found.last_mut()
        {
            last.help = Some("there are too many problems to go on; mend these first".to_owned());
        }
        self.found
    }
}

/// A problem whose pointer is given later.
pub(super) fn problem(code: SyntaxCode, span: Span, message: impl Into<String>) -> Diagnostic<SyntaxCode> {
    Diagnostic::new(code, span, "", message)
}

/// A character as messages show it: itself, or its number if it is invisible.
pub(super) fn shown(letter: char) -> String {
    if letter.is_control() || letter.is_whitespace() || is_invisible(letter) {
        format!("U+{:04X}", u32::from(letter))
    } else {
        letter.to_string()
    }
}

/// Whether a character is invisible on the screen.
pub(super) fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{2064}' | '\u{FEFF}')
}

/// At most the first 40 characters of a text, for messages.
pub(super) fn excerpt(text: &str) -> String {
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
