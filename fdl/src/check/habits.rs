//! Words that people bring from other languages: fields with other names, and features that work
//! differently here.

use super::Checker;
use super::cursor::Cursor;
use crate::diagnostics::{Code, Diagnostic};
use crate::path::Query;
use crate::syntax::{Format, Node, NodeKind, Span};

/// Fields under other names: the field, what others call it (in lower case), and whether the value is the same.
const NAMES: &[(&str, &[&str], bool)] = &[
    ("name", &["id", "label", "title", "taskreferencename", "stepname"], true),
    (
        "description",
        &["comment", "note", "notes", "doc", "docs", "documentation"],
        true,
    ),
    (
        "resourceArn",
        &["url", "uri", "endpoint", "function", "arn", "functionname"],
        true,
    ),
    ("source", &["value", "from", "path", "valuefrom"], true),
    ("target", &["to", "key", "as", "into"], true),
    ("condition", &["if", "when", "expression", "expr", "test"], true),
    ("error", &["code", "errorcode", "errorname"], true),
    ("cause", &["message", "reason", "errormessage"], true),
    ("errors", &["errorequals", "on", "errornames"], true),
    (
        "multiplier",
        &["backoffrate", "backoff_rate", "backoffcoefficient", "factor"],
        true,
    ),
    (
        "maxAttempts",
        &[
            "attempts",
            "maxretries",
            "max_retries",
            "retrycount",
            "retry_count",
            "maximumattempts",
            "limit",
        ],
        true,
    ),
    ("concurrency", &["maxconcurrency"], true),
    (
        "tolerance",
        &[
            "toleratedfailurecount",
            "toleratedfailurepercentage",
            "tolerated_failures",
            "maxfailures",
            "allowedfailures",
        ],
        false,
    ),
    ("dependsOn", &["needs", "after", "depends_on", "depends"], true),
    ("default", &["else", "otherwise"], true),
    (
        "steps",
        &[
            "body",
            "do",
            "then",
            "states",
            "tasks",
            "jobs",
            "stages",
            "iterator",
            "itemprocessor",
        ],
        false,
    ),
    ("goto", &["next", "transition", "gotostep"], true),
    (
        "timeoutSeconds",
        &[
            "timeout",
            "timeoutms",
            "deadline",
            "executiontimeout",
            "starttoclosetimeout",
            "start_to_close_timeout",
            "responsetimeoutseconds",
        ],
        false,
    ),
    (
        "totalTimeoutSeconds",
        &["scheduletoclosetimeout", "schedule_to_close_timeout"],
        false,
    ),
    (
        "waitSeconds",
        &[
            "scheduletostarttimeout",
            "schedule_to_start_timeout",
            "polltimeoutseconds",
        ],
        false,
    ),
    (
        "heartbeatSeconds",
        &["heartbeat", "heartbeattimeout", "heartbeat_timeout"],
        false,
    ),
    (
        "intervalSeconds",
        &[
            "interval",
            "delay",
            "backoff_seconds",
            "initialinterval",
            "initial_interval",
            "retrydelayseconds",
        ],
        false,
    ),
    (
        "maxIntervalSeconds",
        &["maximuminterval", "maximum_interval", "maxdelayseconds"],
        false,
    ),
    ("duration", &["delay", "seconds", "sleep", "for"], false),
    ("timestamp", &["until", "time", "at"], false),
    (
        "retry",
        &[
            "retries",
            "retrypolicy",
            "retrypolicies",
            "max_retries",
            "maxretries",
            "retrycount",
            "retry_count",
        ],
        false,
    ),
    ("catch", &["onerror", "on_error", "catchers", "onfailure"], false),
    (
        "rollback",
        &["undo", "compensate", "compensation", "compensatedby"],
        false,
    ),
    ("serviceParams", &["params", "args", "arguments", "with"], false),
    ("choices", &["cases", "rules", "conditions", "decisioncases"], false),
    ("branches", &["forktasks"], false),
    (
        "iterationMapping",
        &["items", "itemspath", "collection", "in", "iterate"],
        false,
    ),
    ("inputMappings", &["input", "inputs", "inputparameters"], false),
    ("outputMappings", &["output", "outputs", "outputparameters"], false),
];

/// Features that work differently: their name elsewhere (in lower case), and the way it is done
/// here.
const WAYS: &[(&[&str], &str)] = &[
    (
        &["next", "transition", "startat"],
        "steps run in the order they stand; `end: true` stops, a `choice` with `goto` jumps",
    ),
    (
        &["states"],
        "the states are the list `steps`, each with its `name`, in the order they run",
    ),
    (
        &["parameters", "inputpath", "arguments"],
        "what a step gets is made by its `inputMappings`; how it is called stands in `serviceParams`",
    ),
    (
        &["resultpath", "outputpath", "resultselector", "result", "assign"],
        "what a step leaves behind is made by its `outputMappings`",
    ),
    (
        &[
            "variable",
            "stringequals",
            "numericequals",
            "numericgreaterthan",
            "numericlessthan",
            "booleanequals",
            "ispresent",
            "and",
            "or",
            "not",
        ],
        "a comparison is a text: `\"condition\": \"$.total > 100 && $.paid\"`",
    ),
    (
        &["method", "httpmethod", "headers", "query", "body"],
        "how it is called stands in `serviceParams`: `{\"method\": \"PUT\"}`",
    ),
    (
        &["schedule", "schedules", "cron", "crontab", "triggers"],
        "a schedule is no part of a flow: `starbridge schedule put NAME --flow FLOW --cron '0 2 * * *'` makes one",
    ),
    (
        &["run_at", "runat", "scheduledat", "scheduled_at"],
        "a start says when it begins: `starbridge start FLOW --start-at TIME`; in a flow a `wait` step with `timestamp` waits",
    ),
    (
        &["loopover", "loopcondition"],
        "to run steps again, lead back with the `goto` of a `choice`",
    ),
];

/// The meaning of a word to those who know other languages.
pub(super) enum Habit {
    /// Nothing.
    None,
    /// A feature that is done differently here, or is already there. It was reported.
    Done,
    /// The name of this field in other languages. It was reported.
    Named(&'static str),
}

/// Whether an object has a field under a name from another language.
pub(super) fn has_otherwise(node: &Node, field: &str) -> bool {
    let words = NAMES
        .iter()
        .find(|(name, ..)| *name == field)
        .map_or(&[][..], |(_, words, _)| words);
    let mut keys = node.members().iter().map(|member| member.key.to_lowercase());
    keys.any(|key| words.contains(&key.as_str()))
}

impl Checker<'_> {
    /// Reports how a field of another language is called or done here. `has` tells which fields are
    /// allowed here; `found` is the general message about the field.
    pub(super) fn habit(
        &self,
        member: &Cursor<'_>,
        owner: &Cursor<'_>,
        has: impl Fn(&str) -> bool,
        found: &Diagnostic,
    ) -> Habit {
        let word = member.name().unwrap_or_default().to_lowercase();
        let knows = |words: &[&str]| words.contains(&word.as_str());
        let here = NAMES.iter().find(|(field, words, _)| has(field) && knows(words));
        if let Some((field, _, same)) = here {
            if owner.node.get(field).is_some() {
                let help = format!("it is called `{field}` here, and is there already");
                self.report(found.clone().help(help));
                return Habit::Done;
            }
            self.report(self.renamed(member, found.clone(), field, *same));
            return Habit::Named(field);
        }
        let Some((_, way)) = WAYS.iter().find(|(words, _)| knows(words)) else {
            return Habit::None;
        };
        let found = found.clone().help(*way);
        self.report(match self.names_the_next(member, owner) {
            true => self.removed(found, member, owner),
            false => found,
        });
        Habit::Done
    }

    fn renamed(&self, member: &Cursor<'_>, found: Diagnostic, field: &str, same: bool) -> Diagnostic {
        let key = member.key_span();
        let found = found.help(format!("it is called `{field}` here"));
        let json = self.source.format() == Format::Json;
        let span = Span {
            start: key.start,
            end: member.node.span.end,
        };
        if let ("tolerance", NodeKind::Number(number)) = (field, &member.node.kind) {
            let name = member.name().unwrap_or_default().to_lowercase();
            let inside = if name.contains("percent") { "percent" } else { "count" };
            let found = found.help(format!("it is `tolerance` with `{inside}` here"));
            let written = match json {
                true => format!("\"tolerance\": {{\"{inside}\": {number}}}"),
                false => format!("tolerance: {{{inside}: {number}}}"),
            };
            return found.fix("write `tolerance`", span, written);
        }
        if field == "iterationMapping" {
            return self.iterated(member, found, span);
        }
        if let (true, "retry", NodeKind::Number(times)) = (json, field, &member.node.kind) {
            let policy = format!("\"retry\": [{{\"errors\": [\"FnF.ALL\"], \"maxAttempts\": {times}}}]");
            return found.guess("write a policy", span, policy);
        }
        found.fixed_by(
            format!("rename it to `{field}`"),
            key,
            self.quoted_like(key, field),
            same,
        )
    }

    /// What a list to iterate over is called here. If it is a path, the mapping with it is offered.
    fn iterated(&self, member: &Cursor<'_>, found: Diagnostic, span: Span) -> Diagnostic {
        let path = member.str().filter(|text| text.starts_with('$'));
        let own = path.map(|path| {
            path.strip_prefix("$input")
                .map_or(path.to_owned(), |rest| format!("${rest}"))
        });
        let collection = own.as_deref().unwrap_or("$.items");
        let help = format!(
            "it is called `iterationMapping` here, with `{{\"collection\": \"{collection}\", \"item\": \"item\"}}`"
        );
        let found = found.help(help);
        match own.filter(|own| Query::parse(own).is_ok() && !own.contains(['"', '\'', '\\'])) {
            None => found,
            Some(own) => {
                let written = match self.source.format() {
                    Format::Json => {
                        format!("\"iterationMapping\": {{\"collection\": \"{own}\", \"item\": \"item\"}}")
                    }
                    Format::Yaml => format!("iterationMapping: {{collection: \"{own}\", item: item}}"),
                };
                found.guess("write `iterationMapping`", span, written)
            }
        }
    }

    /// Whether it names the step that is next anyway.
    fn names_the_next(&self, member: &Cursor<'_>, owner: &Cursor<'_>) -> bool {
        let next = owner
            .step_id()
            .and_then(|id| self.outline.entry(id))
            .and_then(|entry| self.after(entry));
        next.is_some_and(|next| member.str() == Some(self.outline.name(next)))
    }

    /// Offers to remove a member together with its comma or line.
    fn removed(&self, found: Diagnostic, member: &Cursor<'_>, owner: &Cursor<'_>) -> Diagnostic {
        let members = owner.node.members();
        let own = members.iter().position(|other| other.key_span == member.key_span());
        let Some(own) = own else { return found };
        let span = match (
            members.get(own + 1),
            own.checked_sub(1).and_then(|before| members.get(before)),
        ) {
            (Some(next), _) => Span {
                start: member.key_span().start,
                end: next.key_span.start,
            },
            (None, Some(before)) => Span {
                start: before.value.span.end,
                end: member.node.span.end,
            },
            (None, None) => return found,
        };
        // If another step of the list has no `next`, this one may be meant as its end. People must
        // decide.
        found.guess("remove it", span, String::new())
    }

    /// Reports a field that is missing from the definition itself, and offers to write it.
    pub(super) fn missing_at_top(&self, root: &Cursor<'_>, field: &str, message: String) {
        let word = match field {
            "version" => "v1",
            "type" => "flow",
            _ => {
                self.report(root.problem_of_whole(Code::MissingField, message));
                return;
            }
        };
        let start = root.node.span.start;
        let brace = self.written(root.node.span).starts_with('{');
        let at = start + usize::from(brace);
        let first = self.written(root.node.span).chars().next();
        let end = start + first.map_or(0, char::len_utf8);
        let found = Diagnostic::new(Code::MissingField, Span { start, end }, "", message);
        let (line, place) = match (self.source.format(), brace) {
            (Format::Json, _) => (format!("\"{field}\": \"{word}\""), "json"),
            (Format::Yaml, true) => (format!("{field}: {word}"), "json"),
            (Format::Yaml, false) => (format!("{field}: {word}"), "yaml"),
        };
        let found = found.help(format!("write `{line}`"));
        let Some(first) = root.node.members().first() else {
            self.report(found);
            return;
        };
        // The new member gets the same space after the brace as the first one.
        let blank = self.written(Span {
            start: at,
            end: first.key_span.start,
        });
        let blank = if blank.trim().is_empty() { blank } else { " " };
        let version = root.member("version").filter(|_| field == "type");
        let (at, inserted) = match (place, version) {
            ("json", None) => (at, format!("{blank}{line},")),
            ("json", Some(version)) => (version.node.span.end, format!(",{blank}{line}")),
            (_, None) => (at, format!("{line}{}", self.line_end())),
            (_, Some(version)) => self.line_after(version.node.span.end, &line),
        };
        self.report(found.fix(format!("write `{field}`"), Span { start: at, end: at }, inserted));
    }

    /// The position after the line of a place, and the text of a new line there.
    fn line_after(&self, at: usize, line: &str) -> (usize, String) {
        let text = self.source.text();
        let rest = text.get(at..).unwrap_or_default();
        match rest.find('\n') {
            Some(end) => (at + end + 1, format!("{line}{}", self.line_end())),
            None => (text.len(), format!("{}{line}", self.line_end())),
        }
    }

    /// How lines end in the definition.
    fn line_end(&self) -> &'static str {
        match self.source.text().contains("\r\n") {
            true => "\r\n",
            false => "\n",
        }
    }
}
