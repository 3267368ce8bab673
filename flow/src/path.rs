//! Paths: JSONPath (RFC 9535) after a root that a language names.

#[cfg(test)]
mod bounds;
mod decide;
mod evaluate;
#[cfg(test)]
mod examples;
mod filter;
mod parse;
mod parts;
mod pattern;
mod segment;
#[cfg(test)]
mod tests;

use crate::expression_error::ExpressionError;
use crate::graph::{Budget, Context, Exhausted, Fault, Lookup, Pointer, Root};
use crate::value::{Object, Text, Value};
use evaluate::{Node, Search, walk};
use parse::Parser;
pub use parts::{FilterPath, FilterPaths, PathPart};
use segment::{Segment, singular};

/// The maximum length of a path, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// A JSONPath query over a value that the caller provides.
#[derive(Clone, Debug)]
pub struct Query {
    text: Text,
    segments: Box<[Segment]>,
    singular: bool,
    /// Whether a filter refers to the root.
    absolute: bool,
}

impl Query {
    /// Parses `$`, which is the whole, or `$` with segments after it.
    ///
    /// # Errors
    ///
    /// An [`ExpressionError`] with the place if the text is not a path.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        if !text.starts_with('$') {
            let len = text.chars().next().map_or(0, char::len_utf8);
            return Err(*ExpressionError::boxed(0, len, "a path starts with `$`")
                .with_help("write `$` for the whole, `$.a` for a member"));
        }
        Self::after_root(text, 1)
    }

    /// Parses the whole text; the root's name ends before byte `at`.
    ///
    /// # Errors
    ///
    /// An [`ExpressionError`] with the place if the rest is not a path.
    pub fn after_root(text: &str, at: usize) -> Result<Self, ExpressionError> {
        if text.len() > MAX_PATH_BYTES {
            return Err(too_long(0, text));
        }
        let (query, end) = Self::prefix(text, 0, at)?;
        if end == text.len() {
            return Ok(query);
        }
        let parser = Parser::new(text, end);
        let blank = text.get(end..).is_some_and(|rest| rest.trim().is_empty());
        Err(*if blank {
            ExpressionError::boxed(end, text.len() - end, "blank space after the path").with_help("remove it")
        } else {
            let help = match text.get(end..).is_some_and(|rest| rest.starts_with('(')) {
                true => "functions such as `length()` stand in filters only: `$.list[?length(@.name) > 1]`",
                false => {
                    "a name with other characters than letters, digits and `_` stands in brackets and quotes: `['a-b']`"
                }
            };
            parser.unexpected("`.`, `[` or the end of the path").with_help(help)
        })
    }

    /// Parses the longest path. Its root's name stands from byte `start` to byte `at`. Returns the
    /// path and its end; the caller handles the rest.
    ///
    /// # Errors
    ///
    /// An [`ExpressionError`] with the place if no path begins there.
    pub fn prefix(text: &str, start: usize, at: usize) -> Result<(Self, usize), ExpressionError> {
        let mut parser = Parser::new(text, at);
        let segments = parser.segments().map_err(|error| *error)?;
        let written = text.get(start..parser.at).unwrap_or_default();
        if written.len() > MAX_PATH_BYTES {
            return Err(too_long(start, written));
        }
        let query = Self {
            text: Text::from(written),
            singular: singular(&segments),
            segments: segments.into(),
            absolute: parser.absolute,
        };
        Ok((query, parser.at))
    }

    /// Its result. A singular query gives its value or `None`; any other gives an array of all
    /// matches, `[]` if there are none. A singular query costs nothing, unless it is the whole root
    /// and the root would have to be copied.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if the search takes more steps than are left.
    pub fn find(&self, root: Root<'_>, budget: &Budget) -> Result<Option<Value>, Exhausted> {
        if self.singular {
            return match walk(Node::Root(root), &self.segments) {
                Some(Node::Value(value)) => Ok(Some(value.clone())),
                Some(Node::Root(root)) => {
                    budget.keep(root.copied())?;
                    Ok(root.to_value())
                }
                None => Ok(None),
            };
        }
        let found = Search::new(root, budget).all(&self.segments)?;
        Ok(Some(Value::Array(found.into_iter().cloned().collect())))
    }

    /// The result of a singular query, by reference; `None` for any other query, and for the root
    /// itself.
    pub fn find_below<'a>(&self, root: Root<'a>) -> Option<&'a Value> {
        match walk(Node::Root(root), &self.segments)? {
            Node::Value(value) => Some(value),
            Node::Root(_) => None,
        }
    }

    /// Whether it is the root itself.
    pub fn is_whole(&self) -> bool {
        self.segments.is_empty()
    }

    /// Whether its form allows at most one value: keys and indices only.
    pub fn is_singular(&self) -> bool {
        self.singular
    }

    /// The query as written.
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// Its first key, if it begins with one.
    pub fn first_key(&self) -> Option<&Text> {
        match self.segments.first() {
            Some(Segment::Key(key)) => Some(key),
            _ => None,
        }
    }

    /// The place it reads, if it is the same place for any data: keys, and indices from the
    /// beginning.
    pub fn pointer(&self) -> Option<Pointer> {
        let key = |segment: &Segment| match segment {
            Segment::Key(key) => Some(key.clone()),
            Segment::Index(index @ 0..) => Some(Text::from(index.to_string())),
            _ => None,
        };
        self.segments
            .iter()
            .map(key)
            .collect::<Option<Vec<_>>>()
            .map(Pointer::of)
    }

    /// Its result in a context. Asks the context for no more than needed.
    ///
    /// # Errors
    ///
    /// [`Exhausted`] if the search takes more steps than are left.
    pub fn find_in_context(&self, context: &dyn Context, budget: &Budget) -> Result<Option<Value>, Exhausted> {
        let whole = |names: &[&str]| -> Object {
            names
                .iter()
                .filter_map(|name| Some((Text::from(*name), context.member(name)?)))
                .collect()
        };
        match self.segments.split_first() {
            Some((Segment::Key(key), rest)) if self.singular => {
                let found = |member: Value| walk(Node::Value(&member), rest).and_then(Node::to_value);
                Ok(context.member(key).and_then(found))
            }
            Some((Segment::Key(key), _)) if !self.absolute => self.find(Root::Object(&whole(&[key.as_str()])), budget),
            _ => self.find(Root::Object(&whole(&context.names())), budget),
        }
    }
}

impl Lookup for Query {
    fn find(&self, data: Root<'_>, budget: &Budget) -> Result<Option<Value>, Fault> {
        budget.within(&self.text, Self::find(self, data, budget))
    }

    fn text(&self) -> &Text {
        &self.text
    }
}

fn too_long(offset: usize, text: &str) -> ExpressionError {
    ExpressionError::new(
        offset,
        text.len(),
        format!("a path of {} bytes; {MAX_PATH_BYTES} are the most", text.len()),
    )
}
