//! Templates: text with `{$input.a}` parts (section "data").

use super::path::{Path, PathRoot};
use crate::expression_error::ExpressionError;
use crate::graph::{Fault, Scope};
use crate::value::{Text, Value};

/// Text with parts that are filled in.
#[derive(Clone, Debug)]
pub struct Template {
    text: Text,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
pub(super) enum Piece {
    Plain(Text),
    /// A path, and the offset of its `$` in the text.
    Path(usize, Path),
}

/// An error in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// Where, in bytes from the start of the text.
    pub offset: usize,
    /// How many bytes are concerned; 0 at the end of the text.
    pub len: usize,
    /// The error.
    pub message: String,
    /// The advice.
    pub help: Option<String>,
}

impl std::fmt::Display for TemplateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}

impl From<ExpressionError> for TemplateError {
    fn from(error: ExpressionError) -> Self {
        let ExpressionError {
            offset,
            len,
            message,
            help,
        } = error;
        Self {
            offset,
            len,
            message,
            help,
        }
    }
}

impl Template {
    /// Parses a template. A `{` that does not begin `{$input`, `{$local` or `{$context` is text like any other.
    ///
    /// # Errors
    ///
    /// A [`TemplateError`] with the place if the text is not a template.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut pieces = Vec::new();
        let mut plain = 0;
        let mut at = 0;
        while let Some(found) = text.get(at..).and_then(|rest| rest.find("{$")) {
            let start = at + found + 1;
            let Some(root) = text.get(start..).and_then(PathRoot::of) else {
                at = start;
                continue;
            };
            if let Some(before) = text.get(plain..start - 1).filter(|before| !before.is_empty()) {
                pieces.push(Piece::Plain(Text::from(before)));
            }
            let (path, end) = part(text, start, root)?;
            pieces.push(Piece::Path(start, path));
            plain = end;
            at = end;
        }
        if let Some(after) = text.get(plain..).filter(|after| !after.is_empty()) {
            pieces.push(Piece::Plain(Text::from(after)));
        }
        Ok(Self {
            text: Text::from(text),
            pieces,
        })
    }

    /// The template as written.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// Its pieces, in order.
    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The paths in it, each with the offset of its `$` in the text.
    pub fn paths(&self) -> impl Iterator<Item = (usize, &Path)> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Plain(_) => None,
            Piece::Path(offset, path) => Some((*offset, path)),
        })
    }

    /// The text with its parts filled in: a string as it is, another value as compact JSON. `None`
    /// if a part finds nothing. Nothing is written before its size, together with the place's other
    /// templates, is known to be within the limit.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if a part takes too many steps or the text grows beyond its limit.
    pub fn render(&self, scope: &Scope<'_>) -> Result<Option<String>, Fault> {
        let mut found = Vec::with_capacity(self.pieces.len());
        let mut bytes = 0_usize;
        for (_, path) in self.paths() {
            let Some(value) = scope.budget.within(path.text(), path.find(scope))? else {
                return Ok(None);
            };
            bytes = bytes.saturating_add(value.json_len());
            found.push(value);
        }
        scope.budget.write(bytes)?;
        let mut rendered = String::with_capacity(self.text.len().saturating_add(bytes));
        let mut found = found.into_iter();
        for piece in &self.pieces {
            match piece {
                Piece::Plain(text) => rendered.push_str(text),
                Piece::Path(..) => match found.next() {
                    Some(Value::String(text)) => rendered.push_str(&text),
                    Some(other) => rendered.push_str(&other.to_json()),
                    None => {}
                },
            }
        }
        Ok(Some(rendered))
    }
}

/// The path at byte `start`, and where the text goes on after its `}`.
fn part(text: &str, start: usize, root: PathRoot) -> Result<(Path, usize), TemplateError> {
    let (path, end) = Path::prefix(text, start, root)?;
    let open = text.get(start - 1..end).unwrap_or_default();
    let rest = text.get(end..).unwrap_or_default();
    let Some(next) = rest.chars().next() else {
        return Err(TemplateError {
            offset: start - 1,
            len: open.len(),
            message: format!("`{open}` has no end"),
            help: Some("close it with `}`".to_owned()),
        });
    };
    if next != '}' {
        return Err(TemplateError {
            offset: end,
            len: next.len_utf8(),
            message: format!("expected `.`, `[` or `}}` in `{open}…`, found `{next}`"),
            help: Some("between `{` and `}` stands a path and nothing else".to_owned()),
        });
    }
    if !path.is_singular() {
        return Err(TemplateError {
            offset: start,
            len: path.text().len(),
            message: format!("`{}` may find several values, and here is place for one", path.text()),
            help: Some("use keys and indices only".to_owned()),
        });
    }
    Ok((path, end + 1))
}

#[cfg(test)]
#[path = "template/tests.rs"]
mod tests;
