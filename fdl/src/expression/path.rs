//! The paths of mappings and templates: a root's name, and JSONPath after it (section "data").

use crate::expression_error::ExpressionError;
use crate::graph::{Exhausted, Fault, Output, Program, Scope};
use crate::path::Query;
use crate::value::{Text, Value};

/// The data in which a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathRoot {
    /// `$input`
    Input,
    /// `$local`
    Local,
    /// `$context`
    Context,
}

/// A query over one of the roots that mappings know.
#[derive(Clone, Debug)]
pub struct Path {
    root: PathRoot,
    query: Query,
}

impl PathRoot {
    const ALL: [Self; 3] = [Self::Input, Self::Local, Self::Context];

    /// The name, with its `$`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Input => "$input",
            Self::Local => "$local",
            Self::Context => "$context",
        }
    }

    /// The root at the beginning of a text, regardless of what follows.
    pub(crate) fn of(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|root| text.starts_with(root.name()))
    }
}

impl Path {
    /// Whether a mapping's source is a path: a root's name alone, or followed by `.` or `[`.
    pub fn is_path(text: &str) -> bool {
        PathRoot::of(text)
            .and_then(|root| text.strip_prefix(root.name()))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
    }

    /// Parses a path.
    ///
    /// # Errors
    ///
    /// An [`ExpressionError`] with the place if the text is not a path.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        match PathRoot::of(text) {
            Some(root) if Self::is_path(text) => {
                let query = Query::after_root(text, root.name().len())?;
                Ok(Self { root, query })
            }
            _ => {
                let len = text.find(['.', '[']).unwrap_or(text.len());
                Err(ExpressionError::new(
                    0,
                    len,
                    "a path here starts with `$input`, `$local` or `$context`",
                ))
            }
        }
    }

    /// Parses the longest path from byte `start` on, where a root's name must stand. Returns the
    /// path and its end.
    pub(super) fn prefix(text: &str, start: usize, root: PathRoot) -> Result<(Self, usize), ExpressionError> {
        let (query, end) = Query::prefix(text, start, start + root.name().len())?;
        Ok((Self { root, query }, end))
    }

    /// Its result, as with [`Query::find`].
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if the search takes more steps than are left.
    pub fn find(&self, scope: &Scope<'_>) -> Result<Option<Value>, Exhausted> {
        match self.root {
            PathRoot::Input => self.query.find(scope.input, scope.budget),
            PathRoot::Local => self.query.find(scope.variables, scope.budget),
            PathRoot::Context => self.query.find_in_context(scope.context, scope.budget),
        }
    }

    /// The root it starts from.
    pub fn root(&self) -> PathRoot {
        self.root
    }

    /// The part after the root; its text is that of the whole path.
    pub fn query(&self) -> &Query {
        &self.query
    }

    /// Whether its form allows at most one value: keys and indices only.
    pub fn is_singular(&self) -> bool {
        self.query.is_singular()
    }

    /// The path as written.
    pub fn text(&self) -> &Text {
        self.query.text()
    }
}

/// The result of a path, as the member `value`.
#[derive(Debug)]
pub struct ValueAt(pub Path);

impl Program for ValueAt {
    fn run(&self, scope: &Scope<'_>) -> Result<Output, Fault> {
        let found = scope.budget.within(self.0.text(), self.0.find(scope))?;
        let member = found.map(|found| (Text::from("value"), found));
        Ok(Output {
            value: member.into_iter().collect(),
            missing: Vec::new(),
        })
    }

    fn may_fail(&self) -> bool {
        !self.0.is_singular()
    }
}

#[cfg(test)]
mod tests;
