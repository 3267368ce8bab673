//! The list of executions: a filter that stands in the address, and a table.

use crate::frame::Frame;
use crate::plain::written;
use crate::read::{items, moment, next, number, path_part, span, text, time};
use crate::texts::Texts;
use crate::words::{REASONS, STATUSES, State, reason, state};
use askama::Template;
use starbridge_flow::value::Value;

/// What executions can be filtered by, as the API calls it.
pub const FILTERS: [&str; 14] = [
    "flow",
    "status",
    "reason",
    "reasonOf",
    "name",
    "label",
    "from",
    "to",
    "error",
    "step",
    "endedFrom",
    "endedTo",
    "parent",
    "root",
];

/// The filters that have no field of their own.
const KEPT: [&str; 3] = ["reasonOf", "parent", "root"];

/// One row of a table of executions.
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) id: String,
    pub(crate) href: String,
    pub(crate) name: String,
    pub(crate) flow: String,
    pub(crate) flow_href: String,
    pub(crate) version: u64,
    /// Where it failed, the error, and what is said besides.
    pub(crate) step: String,
    pub(crate) error: String,
    pub(crate) says: String,
    pub(crate) started: String,
    pub(crate) took: String,
}

impl Row {
    pub(crate) fn of(item: &Value, frame: &Frame) -> Self {
        let waiting = item.get("waitingFor");
        let says = match waiting {
            Some(waiting) => text(waiting, "text"),
            None => text(item, "cause"),
        };
        let begun = time(item, "startedTime");
        Self {
            state: state(text(item, "status"), frame.t()),
            id: text(item, "id").to_owned(),
            href: format!("/executions/{}", path_part(text(item, "id"))),
            name: text(item, "name").to_owned(),
            flow: text(item, "flow").to_owned(),
            flow_href: format!("/flows/{}", path_part(text(item, "flow"))),
            version: number(item, "version").unwrap_or_default(),
            step: text(item, "step").to_owned(),
            error: text(item, "error").to_owned(),
            says: says.to_owned(),
            started: moment(item, "startedTime"),
            took: span(begun, time(item, "endedTime").or(Some(frame.now))),
        }
    }

    pub(crate) fn all(page: &Value, frame: &Frame) -> Vec<Self> {
        items(page, "items").iter().map(|item| Self::of(item, frame)).collect()
    }
}

struct Choice {
    value: &'static str,
    word: &'static str,
    chosen: bool,
}

struct View {
    href: String,
    word: &'static str,
    current: bool,
}

struct Chip {
    what: &'static str,
    value: String,
    without: String,
}

#[derive(Template)]
#[template(path = "executions.html")]
struct Executions<'a> {
    f: &'a Frame,
    t: &'static Texts,
    views: Vec<View>,
    flow: &'a str,
    name: &'a str,
    label: &'a str,
    from: &'a str,
    to: &'a str,
    error: &'a str,
    step: &'a str,
    ended_from: &'a str,
    ended_to: &'a str,
    statuses: Vec<Choice>,
    reasons: Vec<Choice>,
    kept: Vec<(&'a str, &'a str)>,
    used: Vec<(&'a str, &'a str)>,
    may_not_operate: Option<String>,
    bulk: Vec<(&'static str, &'static str, Option<String>)>,
    chips: Vec<Chip>,
    rows: Vec<Row>,
    live: &'static str,
    command: String,
    paged: bool,
    newest: String,
    older: Option<String>,
}

/// The list. `filter`: what stands in the address, `page`: what the API answers for it.
pub fn executions(frame: &Frame, filter: &[(String, String)], page: &Value) -> String {
    let t = frame.t();
    let given = |key: &str| {
        filter
            .iter()
            .find(|(known, _)| known == key)
            .map_or("", |(_, value)| value)
    };
    let used: Vec<(&str, &str)> = filter
        .iter()
        .filter(|(key, value)| FILTERS.contains(&key.as_str()) && !value.is_empty())
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let choice = |key: &str, value: &'static str, word| Choice {
        value,
        word,
        chosen: given(key) == value,
    };
    let older = next(page).map(|next| {
        let mut all = used.clone();
        all.push(("cursor", next.as_str()));
        address(&all)
    });
    written(&Executions {
        f: frame,
        t,
        views: views(&used, t),
        flow: given("flow"),
        name: given("name"),
        label: given("label"),
        from: given("from"),
        to: given("to"),
        error: given("error"),
        step: given("step"),
        ended_from: given("endedFrom"),
        ended_to: given("endedTo"),
        statuses: STATUSES
            .iter()
            .map(|status| choice("status", status, state(status, t).word))
            .collect(),
        reasons: REASONS
            .iter()
            .map(|word| choice("reason", word, reason(word, t).1))
            .collect(),
        kept: used.iter().copied().filter(|(key, _)| KEPT.contains(key)).collect(),
        may_not_operate: frame.lacks("operate"),
        bulk: vec![
            ("redrive", t.redrive, None),
            ("stop", t.stop, None),
            ("pause", t.pause, None),
            ("resume", t.resume, None),
            ("skip", t.skip_undo, None),
            ("delete", t.delete, frame.lacks("admin")),
        ],
        chips: chips(&used, t),
        rows: Row::all(page, frame),
        live: if given("cursor").is_empty() { "executions" } else { "" },
        command: command(&used),
        paged: !given("cursor").is_empty(),
        newest: address(&used),
        older,
        used,
    })
}

fn views(used: &[(&str, &str)], t: &'static Texts) -> Vec<View> {
    let views: [(&[(&str, &str)], &'static str); 4] = [
        (&[], t.view_all),
        (&[("status", "Failed")], t.view_failed),
        (&[("reason", "manual")], t.view_manual),
        (&[("status", "Running")], t.view_running),
    ];
    let view = |(filter, word): (&[(&str, &str)], &'static str)| View {
        href: address(filter),
        word,
        current: filter == used,
    };
    views.into_iter().map(view).collect()
}

fn chips(used: &[(&str, &str)], t: &'static Texts) -> Vec<Chip> {
    let chip = |(at, (key, value)): (usize, &(&str, &str))| {
        let others = used.iter().enumerate().filter(|(other, _)| *other != at);
        let others: Vec<(&str, &str)> = others.map(|(_, pair)| *pair).collect();
        Chip {
            what: match *key {
                "flow" => t.flow,
                "status" => t.state,
                "reason" => t.reason,
                "name" => t.name_begins,
                "label" => t.labels,
                "from" => t.from,
                "to" => t.to,
                "error" => t.error,
                "step" => t.step,
                "endedFrom" => t.ended_from,
                "endedTo" => t.ended_to,
                "reasonOf" => t.reason_of,
                "parent" => t.parent,
                _ => t.root,
            },
            value: (*value).to_owned(),
            without: address(&others),
        }
    };
    used.iter().enumerate().map(chip).collect()
}

fn address(filter: &[(&str, &str)]) -> String {
    let pairs: Vec<String> = filter
        .iter()
        .map(|(key, value)| format!("{key}={}", path_part(value)))
        .collect();
    match pairs.is_empty() {
        true => "/executions".to_owned(),
        false => format!("/executions?{}", pairs.join("&")),
    }
}

/// The command that lists the same.
fn command(filter: &[(&str, &str)]) -> String {
    command_of("starbridge list", filter)
}

/// A command with a flag for each pair.
pub(crate) fn command_of(begin: &str, pairs: &[(&str, &str)]) -> String {
    let mut command = begin.to_owned();
    for (key, value) in pairs {
        let plain = value
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "-_.:/".contains(letter));
        let value = match plain {
            true => (*value).to_owned(),
            false => format!("'{}'", value.replace('\'', "'\\''")),
        };
        let flag = match *key {
            "reasonOf" => "of",
            "endedFrom" => "ended-from",
            "endedTo" => "ended-to",
            key => key,
        };
        command.push_str(&format!(" --{flag} {value}"));
    }
    command
}
