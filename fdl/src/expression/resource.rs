//! Resources with parts made of a call's input: `queue:agent-{$input.unit}`, `http://host/orders/{$input.id}` (section
//! "tasks").
//!
//! Data fills in a name or a segment of a path, and nothing else: text that could lead the call to
//! another route is escaped or refused.

use super::path::PathRoot;
use super::template::{Piece, Template, TemplateError};
use crate::graph::{Budget, Fault, FaultKind, ResourceTemplate, Root};
use crate::limits::is_name;
use crate::value::{Text, Value};
use std::fmt::Write as _;

/// The maximum length of the name of a Redis stream, in bytes.
const STREAM_BYTES: usize = 512;
/// The maximum length of the name of an SQS queue, in characters.
const SQS_CHARS: usize = 80;
/// How many bytes of a value a cause quotes.
const QUOTED: usize = 64;

/// A resource that is filled in.
#[derive(Clone, Debug)]
pub struct ResourceName {
    template: Template,
    place: Place,
}

/// Where the parts stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In the path of a URL.
    Path,
    /// In the name of a worker queue.
    Queue,
    /// In the name of an SQS queue.
    Sqs,
    /// In the name of a Redis stream.
    Stream,
    /// In the name or version of a flow.
    Flow,
}

/// Why a resource can't have these parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotInResource {
    /// A part is not a path.
    Template(TemplateError),
    /// A part starts from a root that is unknown when the call is made.
    Root {
        /// Where the path stands, in bytes.
        offset: usize,
        /// How long it is.
        len: usize,
    },
    /// A part stands where none is allowed.
    Place {
        /// Where the part stands, in bytes.
        offset: usize,
        /// How long it is.
        len: usize,
        /// The component it stands in.
        within: &'static str,
    },
}

impl ResourceName {
    /// Compiles a resource; `None` if it has no parts.
    ///
    /// # Errors
    ///
    /// [`NotInResource`] for the first part that is not allowed.
    pub fn compile(resource: &str) -> Result<Option<Self>, NotInResource> {
        let template = Template::parse(resource).map_err(NotInResource::Template)?;
        let Some(first) = template
            .paths()
            .next()
            .map(|(offset, path)| (offset, path.text().len()))
        else {
            return Ok(None);
        };
        let scheme = resource.split(':').next().unwrap_or_default();
        let place = match scheme {
            "http" | "https" => Place::Path,
            "queue" => Place::Queue,
            "sqs" => Place::Sqs,
            "redis" => Place::Stream,
            "flow" => Place::Flow,
            _ => {
                return Err(misplaced(
                    first,
                    if first.0 < scheme.len() {
                        "the scheme"
                    } else {
                        "this resource"
                    },
                ));
            }
        };
        for (offset, path) in template.paths() {
            let part = (offset, path.text().len());
            if path.root() != PathRoot::Input {
                return Err(NotInResource::Root {
                    offset: part.0,
                    len: part.1,
                });
            }
            if let Some(within) = (place == Place::Path).then(|| not_path(resource, offset)).flatten() {
                return Err(misplaced(part, within));
            }
        }
        Ok(Some(Self { template, place }))
    }

    /// The resource with this text in place of each part.
    pub fn sample(&self, part: &str) -> String {
        let pieces = self.template.pieces().iter();
        pieces
            .map(|piece| match piece {
                Piece::Plain(text) => text,
                Piece::Path(..) => part,
            })
            .collect()
    }

    /// The paths in it, each with the offset of its `$`.
    pub fn paths(&self) -> impl Iterator<Item = (usize, &super::path::Path)> {
        self.template.paths()
    }
}

/// The part with its braces.
fn misplaced((offset, len): (usize, usize), within: &'static str) -> NotInResource {
    NotInResource::Place {
        offset: offset.saturating_sub(1),
        len: len + 2,
        within,
    }
}

/// The component of a URL, other than its path, that has the byte at `offset`.
fn not_path(url: &str, offset: usize) -> Option<&'static str> {
    let before = url.get(..offset).unwrap_or_default();
    let after_scheme = before.split_once("://").map_or("", |(_, rest)| rest);
    if !after_scheme.contains('/')
        || after_scheme.find(['?', '#']) < after_scheme.find('/') && after_scheme.contains(['?', '#'])
    {
        return Some("the host");
    }
    after_scheme.contains(['?', '#']).then_some("the query")
}

impl ResourceTemplate for ResourceName {
    fn fill(&self, input: Root<'_>, budget: &Budget) -> Result<Text, Fault> {
        let mut filled = String::with_capacity(self.template.text().len());
        for piece in self.template.pieces() {
            match piece {
                Piece::Plain(text) => filled.push_str(text),
                Piece::Path(_, path) => {
                    let found = budget.within(path.text(), path.query().find(input, budget))?;
                    let text = text_of(path.text(), found)?;
                    budget.write(text.len())?;
                    match self.place {
                        Place::Path => push_escaped(&mut filled, path.text(), &text)?,
                        _ => filled.push_str(self.of_name(path.text(), &text)?),
                    }
                }
            }
        }
        self.check(&filled)?;
        Ok(Text::from(filled))
    }
}

impl ResourceName {
    /// The text, if a name of this kind may contain it.
    fn of_name<'t>(&self, path: &str, text: &'t str) -> Result<&'t str, Fault> {
        let dot = matches!(self.place, Place::Sqs | Place::Stream);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || (dot && c == '.');
        if text.chars().all(fits) {
            return Ok(text);
        }
        let allowed = if dot {
            "letters, digits, `_`, `-` and `.`"
        } else {
            "letters, digits, `_` and `-`"
        };
        let cause = format!("`{path}` is `{}`, and a name has {allowed} only", shortened(text));
        Err(Fault::new(FaultKind::Input, cause))
    }

    /// Whether the whole is a resource of its kind.
    fn check(&self, filled: &str) -> Result<(), Fault> {
        let name = filled.split_once(':').map_or("", |(_, name)| name);
        let (fits, what) = match self.place {
            Place::Path => (
                dot_segments(filled) == dot_segments(self.template.text()),
                "a path without `.` and `..`",
            ),
            Place::Queue => (is_name(name), "the name of a queue"),
            Place::Flow => (is_flow(name), "the name of a flow"),
            Place::Sqs => {
                let plain = name.strip_suffix(".fifo").unwrap_or(name);
                (
                    !plain.is_empty() && !plain.contains('.') && name.len() <= SQS_CHARS,
                    "the name of a queue of SQS",
                )
            }
            Place::Stream => (name.len() <= STREAM_BYTES, "the name of a stream"),
        };
        if fits {
            return Ok(());
        }
        let cause = format!("`{}` is not {what}", shortened(filled));
        Err(Fault::new(FaultKind::Input, cause))
    }
}

/// Whether this names a flow, perhaps with a version.
fn is_flow(text: &str) -> bool {
    let (name, version) = match text.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (text, None),
    };
    (name == "$self" || is_name(name))
        && version.is_none_or(|version| version.parse::<u64>().is_ok_and(|number| number > 0))
}

/// The result of a part as text: a text that is not empty, a number or a boolean.
fn text_of(path: &str, found: Option<Value>) -> Result<Text, Fault> {
    let fault = |what: &str| Err(Fault::new(FaultKind::Input, format!("`{path}` of the resource {what}")));
    match found {
        None => fault("finds nothing"),
        Some(Value::String(text)) if text.is_empty() => fault("is an empty text"),
        Some(Value::String(text)) => Ok(text),
        Some(value @ (Value::Number(_) | Value::Bool(_))) => Ok(Text::from(value.to_json())),
        Some(_) => fault("is no text, number or boolean"),
    }
}

/// Adds the text as part of one segment of a path.
fn push_escaped(url: &mut String, path: &str, text: &str) -> Result<(), Fault> {
    // Some servers decode an escaped slash, and then go up at `..`.
    if text.contains(['/', '\\']) && text.split(['/', '\\']).any(is_dots) {
        let cause = format!(
            "`{path}` is `{}`, and `.` and `..` are no parts of a path",
            shortened(text)
        );
        return Err(Fault::new(FaultKind::Input, cause));
    }
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            url.push(char::from(byte));
        } else {
            // Writing to a text does not fail.
            let _ = write!(url, "%{byte:02X}");
        }
    }
    Ok(())
}

/// How many segments of a URL's path are `.` or `..`, also where they are escaped.
fn dot_segments(url: &str) -> usize {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.split(['/', '\\']).filter(|segment| is_dots(segment)).count()
}

fn is_dots(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    matches!(plain.as_str(), "." | "..")
}

fn shortened(text: &str) -> String {
    match text.char_indices().find(|(at, _)| *at >= QUOTED) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
