//! What a task calls: the forms of `resourceArn` and `action` (section "tasks").

use super::Checker;
use super::cursor::Cursor;
use super::habits::has_otherwise;
use super::paths::helped;
use crate::diagnostics::Code;
use crate::expression::{NotInResource, Params, Path, ResourceName};
use crate::graph::{Call, Parameters, Pattern, ResourceTemplate};
use crate::limits::is_name;
use crate::syntax::{NodeKind, Span};
use crate::value::Text;
use std::sync::Arc;

/// The kind of a resource, as far as it is known without the resource map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// A child flow.
    Child,
    /// The built-in worker queue.
    Queue,
    /// A function over HTTP.
    Http,
    /// Another connector's.
    Other,
    /// The resource map decides.
    Mapped,
}

impl Reach {
    /// The kind of a resource as it is written.
    pub(super) fn of(resource: &str) -> Self {
        let scheme = resource.split(':').next().unwrap_or("");
        match scheme {
            "flow" => Self::Child,
            "queue" => Self::Queue,
            "http" | "https" => Self::Http,
            "sqs" | "redis" | "lambda" | "cmd" => Self::Other,
            _ if resource == "fnf:StartExecution" => Self::Child,
            _ if resource.starts_with("acs:fnf:") && resource.contains(":flow/") => Self::Child,
            _ => Self::Mapped,
        }
    }

    /// Whether it is this kind, or may be by way of the resource map.
    pub(super) fn may_be(self, other: Self) -> bool {
        self == other || self == Self::Mapped
    }
}

impl Checker<'_> {
    /// Resource, pattern and parameters of a task or rollback.
    pub(super) fn call(&self, cursor: &Cursor<'_>, whose: &str) -> Option<Call> {
        let pattern = cursor.member("pattern").and_then(|pattern| {
            let word = self.word(&pattern, &["requestResponse", "sync", "waitForCallback"])?;
            Pattern::parse(&word)
        });
        let params = cursor.member("serviceParams").and_then(|params| self.params(&params));
        let (resource, template) = self.resource(cursor, whose)?;
        if let Some(params) = cursor.member("serviceParams") {
            self.check_params(&params, &resource);
        }
        Some(Call {
            resource,
            template: template.map(|template| Arc::new(template) as Arc<dyn ResourceTemplate>),
            pattern: pattern.unwrap_or(Pattern::RequestResponse),
            params: params.map(|params| Arc::new(params) as Arc<dyn Parameters>),
        })
    }

    fn resource(&self, cursor: &Cursor<'_>, whose: &str) -> Option<(Text, Option<ResourceName>)> {
        let Some((_, field)) = self.one_of(cursor, &["resourceArn", "resource", "action"], false) else {
            if has_otherwise(cursor.node, "resourceArn") {
                return None;
            }
            let found = cursor.problem_of_whole(Code::NoResource, format!("the {whose} does not say what it calls"));
            self.report(found.help("give it a `resourceArn`, such as `http://…` or `queue:NAME`, or an `action`"));
            return None;
        };
        let resource = self.filled(&field)?;
        let template = self.parts_of_resource(&field, &resource)?;
        if let Some(placeholder) = placeholder(&resource) {
            let offset = resource.find(placeholder).unwrap_or(0);
            let message = format!("the placeholder `{placeholder}` was not filled in");
            let found = self.inside(&field, Code::Placeholder, offset, placeholder.len(), message);
            self.report(found.help("running the flow fails here until it is replaced"));
        } else if Path::is_path(&resource) || resource.starts_with("$.") || resource.starts_with("$[") {
            let message = format!("`{resource}` is taken as it stands, it is no path here");
            let found = field.problem(Code::LooksLikePath, message);
            self.report(found.help(
                "write the resource itself: data may fill its name, as in `queue:{$input.x}`, and a `choice` leads to one of several tasks",
            ));
        } else if let Some((message, help)) = fault_of_filled(&resource, template.as_ref()) {
            self.report(
                field
                    .problem(Code::BadResource, format!("`{resource}` {message}"))
                    .help(help),
            );
        } else if let Some(program) = resource.strip_prefix("cmd:").filter(|name| name.trim().contains(' ')) {
            let message = format!("`{program}` is taken as the name of one program");
            let found = field.problem(Code::CommandWithBlank, message);
            self.report(found.help("there is no shell: arguments go to `args` in `serviceParams`"));
        } else if let Some(why) = match self.answers {
            Some(answers) => answers(&resource),
            // Another tool replaces what has its tag.
            None => needs_the_map(&resource).filter(|_| !self.is_tagged(field.node.span)),
        } {
            self.unanswered(&field, &resource, why);
        }
        Some((resource, template))
    }

    /// The parts of a resource that are filled in; `None` if one is wrong.
    fn parts_of_resource(&self, field: &Cursor<'_>, resource: &str) -> Option<Option<ResourceName>> {
        let found = match ResourceName::compile(resource) {
            Ok(name) => match short_part(resource) {
                None => return Some(name),
                Some((offset, len)) => {
                    let part = resource.get(offset..offset + len).unwrap_or_default();
                    let meant = part.replacen("{$", "{$input", 1);
                    let message = format!("`{part}` is not filled in");
                    let found = self.inside(field, Code::PartMisplaced, offset, len, message);
                    let span = found.span;
                    let title = format!("write `{meant}`");
                    found
                        .help("a path here starts with `$input`, the step's own input")
                        .fix(title, span, meant)
                }
            },
            Err(NotInResource::Template(error)) => {
                let found = self.inside(field, Code::BadTemplate, error.offset, error.len, error.message);
                helped(found, error.help)
            }
            Err(NotInResource::Root { offset, len }) => {
                let path = resource.get(offset..offset + len).unwrap_or_default();
                let message = format!("`{path}` can't be seen here");
                let found = self.inside(field, Code::PartMisplaced, offset, len, message);
                found.help("only the step's own input can: bring it there with `inputMappings`, then write `{$input…}`")
            }
            Err(NotInResource::Place { offset, len, within }) => {
                let message = format!("{within} is fixed: no data decides it");
                let found = self.inside(field, Code::PartMisplaced, offset, len, message);
                found.help(match within {
                    "the query" => "write it as a path in `query` of `serviceParams`: `{\"id\": \"$.id\"}`",
                    "this resource" => {
                        "names of `queue:`, `redis:`, `sqs:` and `flow:` and the path of a URL can be filled in"
                    }
                    _ => "a `choice` leads to one of several tasks",
                })
            }
        };
        self.report(found);
        None
    }

    /// Whether a tag of YAML stands before the value, such as `!Ref`. Looks at a few bytes only: there may be thousands of
    /// resources, and all of the text on one line.
    fn is_tagged(&self, span: Span) -> bool {
        const LONGEST_TAG: usize = 100;
        let text = self.source.text().as_bytes();
        let before = text.get(..span.start).unwrap_or_default().iter().rev();
        let word = before.skip_while(|byte| matches!(byte, b' ' | b'\t')).take(LONGEST_TAG);
        let first = word.take_while(|byte| !byte.is_ascii_whitespace()).last();
        first == Some(&b'!')
    }

    /// Records an unanswered resource. Of those with the same beginning, one is reported, with the
    /// number of others.
    fn unanswered(&self, cursor: &Cursor<'_>, resource: &str, why: String) {
        let group = group_of(resource);
        let mut all = self.unanswered.borrow_mut();
        if let Some(known) = all.get_mut(group) {
            known.1 += 1;
            return;
        }
        let found = cursor.problem(Code::NotAnswered, why);
        let found = match address_meant(resource) {
            Some(Meant { address, method: None }) => found.help(format!(
                "an address begins with `http://` or `https://`: did you mean `{address}`?"
            )),
            Some(Meant {
                address,
                method: Some(method),
            }) => found.help(format!(
                "write `{address}`, and the method in `serviceParams`: `{{\"method\": \"{method}\"}}`"
            )),
            None if resource.starts_with('/') => {
                found.help(format!("an address has its host, too: `http://HOST{resource}`"))
            }
            None if found.message.contains("`http.allow`") => found.help(
                "permit the address in `http.allow`, or lead the resource elsewhere by an entry of `[resources]`; until then the call fails with FnF.NoSuchResource",
            ),
            None => found.help(
                "an entry of `[resources]` can lead it elsewhere; until then the call fails with FnF.NoSuchResource",
            ),
        };
        all.insert(group.to_owned(), (found, 0));
    }

    /// Reports the unanswered resources.
    pub(super) fn report_unanswered(&self) {
        let all = std::mem::take(&mut *self.unanswered.borrow_mut());
        for (group, (mut found, others)) in all {
            if others > 0 {
                found.message += &format!("; {others} more that begin with `{group}` likewise");
            }
            self.report(found);
        }
    }

    fn params(&self, cursor: &Cursor<'_>) -> Option<Params> {
        if !self.is_object(cursor) {
            return None;
        }
        self.check_data(cursor)?;
        self.check_secrets(cursor);
        self.check_param_texts(cursor);
        match Params::compile(&cursor.node.to_value()) {
            Ok(params) => Some(params),
            Err(errors) => {
                for error in errors {
                    self.bad_param(cursor, &error.pointer, error.error);
                }
                None
            }
        }
    }

    /// Warns of text that contains more than the name of a secret: it is sent as it is. The depth
    /// was checked.
    fn check_secrets(&self, cursor: &Cursor<'_>) {
        match &cursor.node.kind {
            NodeKind::String(text) if text.find("secret://").is_some_and(|at| at > 0) => self.report(
                cursor
                    .problem(Code::SecretNotResolved, "a secret in a longer text is not resolved")
                    .help("make the whole text the secret: `secret://NAME`, and nothing before it"),
            ),
            NodeKind::Array(_) => cursor.items().for_each(|item| self.check_secrets(&item)),
            NodeKind::Object(_) => cursor.members().for_each(|(_, member)| self.check_secrets(&member)),
            _ => {}
        }
    }

    /// The node at `pointer` below `cursor`, reported. The walk is as long as the pointer, which
    /// the data depth bounds.
    fn bad_param(&self, cursor: &Cursor<'_>, pointer: &str, error: crate::expression_error::ExpressionError) {
        let Some(rest) = pointer.strip_prefix('/') else {
            let found = self.inside(cursor, Code::BadParam, error.offset, error.len, error.message);
            self.report(helped(found, error.help));
            return;
        };
        let (key, rest) = match rest.find('/') {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        };
        let key = key.replace("~1", "/").replace("~0", "~");
        let item = key.parse().ok().and_then(|index| cursor.items().nth(index));
        if let Some(inner) = item.or_else(|| cursor.member(&key)) {
            self.bad_param(&inner, rest, error);
        }
    }
}

/// A `{$.a}` in a resource: offset and length.
fn short_part(resource: &str) -> Option<(usize, usize)> {
    let offset = ["{$.", "{$["].iter().filter_map(|open| resource.find(open)).min()?;
    let end = resource.get(offset..)?.find('}')?;
    Some((offset, end + 1))
}

/// What is wrong with a resource, no matter how its parts are filled in.
fn fault_of_filled(resource: &str, template: Option<&ResourceName>) -> Option<(&'static str, &'static str)> {
    let Some(template) = template else {
        return fault_of(resource);
    };
    // A version is a number, a name begins with a letter.
    fault_of(&template.sample("a")).filter(|_| fault_of(&template.sample("1")).is_some())
}

/// A `${x}` or `<x>` in a resource.
fn placeholder(resource: &str) -> Option<&str> {
    let between = |open: &str, close: char| {
        let start = resource.find(open)?;
        let rest = resource.get(start..)?;
        let end = rest.find(close)?;
        rest.get(..=end).filter(|found| found.len() > open.len() + 1)
    };
    between("${", '}').or_else(|| between("<", '>'))
}

/// The prefix that a resource shares with others of the same service: `acs:mns:`, `redis:`.
fn group_of(resource: &str) -> &str {
    let colons = match resource.starts_with("acs:") || resource.starts_with("arn:") {
        true => 2,
        false => 1,
    };
    let end = resource.match_indices(':').nth(colons - 1).map(|(at, _)| at + 1);
    resource.get(..end.unwrap_or(resource.len())).unwrap_or(resource)
}

/// What the writer of a resource without a known scheme probably means.
struct Meant {
    address: String,
    /// The method before the address: `POST http://…`.
    method: Option<String>,
}

/// The address that a resource without a known scheme probably means: `localhost:9000/pay`.
fn address_meant(resource: &str) -> Option<Meant> {
    let plain = |address: String| Meant { address, method: None };
    // A scheme is written in small letters here.
    for scheme in ["http://", "https://"] {
        let parts = resource.split_at_checked(scheme.len());
        if let Some((begin, rest)) = parts.filter(|(begin, _)| begin.eq_ignore_ascii_case(scheme)) {
            return (begin != scheme).then(|| plain(format!("{scheme}{rest}")));
        }
    }
    if let Some((method, address)) = resource.split_once(' ')
        && is_method(method)
    {
        let address = address.trim();
        let is_address = address.starts_with("http://") || address.starts_with("https://");
        let meant = match is_address {
            true => Some(address.to_owned()),
            false => bare_address(address),
        };
        return meant.map(|address| Meant {
            address,
            method: Some(method.to_ascii_uppercase()),
        });
    }
    bare_address(resource).map(plain)
}

/// Whether it is a method of HTTP.
fn is_method(word: &str) -> bool {
    let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
    methods.iter().any(|method| method.eq_ignore_ascii_case(word))
}

/// Why a resource needs an entry of the resource map wherever the flow runs; `None` if it names a kind of resource.
fn needs_the_map(resource: &str) -> Option<String> {
    let named = resource.contains(':') && !resource.starts_with('/');
    let alone = !named || address_meant(resource).is_some();
    alone.then(|| format!("nothing answers to `{resource}` by itself: it names no kind of resource, such as `http:`"))
}

/// The address of a text without a scheme.
fn bare_address(resource: &str) -> Option<String> {
    let rest = resource.strip_prefix("//").unwrap_or(resource);
    let (authority, path) = rest
        .split_once('/')
        .map_or((rest, None), |(host, path)| (host, Some(path)));
    let (host, port) = authority
        .split_once(':')
        .map_or((authority, None), |(host, port)| (host, Some(port)));
    let is_host = host == "localhost" || host.contains('.') && !host.starts_with('.') && !host.ends_with('.');
    let is_spelled = host
        .bytes()
        .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'.'));
    let is_port = port.is_none_or(|port| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()));
    // A name with a dot alone is no address.
    let is_more = port.is_some() || path.is_some();
    (is_host && is_spelled && is_port && is_more).then(|| format!("http://{rest}"))
}

/// What is wrong with a resource of a known form.
fn fault_of(resource: &str) -> Option<(&'static str, &'static str)> {
    let (scheme, rest) = resource.split_once(':')?;
    match scheme {
        "http" | "https" => {
            let host = rest
                .strip_prefix("//")
                .map(|rest| rest.split(['/', '?', '#']).next().unwrap_or(""));
            let named = host.is_some_and(|host| !host.is_empty() && !host.starts_with(':'));
            (!named).then_some(("is no address", "write `http://host/path`"))
        }
        "flow" => fault_of_child(rest),
        "queue" => (!is_name(rest)).then_some(("names no queue", "write `queue:NAME`")),
        "sqs" | "redis" | "lambda" | "cmd" => {
            (rest.trim().is_empty()).then_some(("names nothing", "write the name after the colon"))
        }
        _ => None,
    }
}

fn fault_of_child(name: &str) -> Option<(&'static str, &'static str)> {
    let (name, version) = match name.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (name, None),
    };
    if name != "$self" && !is_name(name) {
        return Some((
            "names no flow",
            "write `flow:NAME`, `flow:NAME@VERSION` or `flow:$self`",
        ));
    }
    let counted = |version: &str| version.parse::<u64>().is_ok_and(|number| number > 0);
    version
        .filter(|version| !counted(version))
        .map(|_| ("names no version", "versions are numbers from 1, as in `flow:NAME@3`"))
}
