//! The list of executions: a filter that stands in the address, and a table.

use crate::frame::Frame;
use crate::plain::{done, written};
use crate::pulse::{Figure, Group, STEP, hours, most};
use crate::read::{items, next, number, path_part, span, text, time};
use crate::words::{REASONS, STATUSES, State, reason, state, waits};
use crate::zone::Reader;
use askama::Template;
use starbridge_flow::time::Timestamp;
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

/// The filters that are folded away.
const FOLDED: [&str; 6] = ["from", "to", "error", "step", "endedFrom", "endedTo"];

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
            Some(waiting) => waits(waiting, frame.t()),
            None => text(item, "cause").to_owned(),
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
            says,
            started: frame.t().moment(item, "startedTime"),
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

struct View<'a> {
    href: String,
    word: &'a str,
    current: bool,
}

/// What the list is made of: what stands in the address, and what the API answers.
#[derive(Debug)]
pub struct ListParts<'a> {
    /// The parameters of the address.
    pub filter: &'a [(String, String)],
    /// The page of executions.
    pub page: &'a Value,
    /// What was counted in the last day.
    pub stats: &'a Value,
    /// How many executions there are, by status.
    pub counts: &'a Value,
    /// The views that were saved: their names and filters.
    pub views: &'a [(String, Vec<(String, String)>)],
}

/// How many ended in the last day.
struct Pulse<'a> {
    hours: Vec<Group>,
    marks: Vec<(usize, String)>,
    width: usize,
    /// The part of the picture that the filter is for.
    chosen: Option<(usize, usize)>,
    most: u64,
    since: String,
    /// What a script needs to choose a span: when the first bar begins, and the address without a span.
    begin: i64,
    within: String,
    of: &'a str,
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
    t: Reader,
    views: Vec<View<'a>>,
    /// The saved view that is shown.
    saved: Option<&'a str>,
    pulse: Pulse<'a>,
    tallies: Vec<Figure>,
    said: Option<&'static str>,
    looked: String,
    flow: &'a str,
    name: &'a str,
    label: &'a str,
    from: String,
    to: String,
    error: &'a str,
    step: &'a str,
    ended_from: String,
    ended_to: String,
    /// Whether one of the filters is used that are folded away.
    more_used: bool,
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

/// The list.
pub fn executions(frame: &Frame, parts: &ListParts<'_>) -> String {
    let t = frame.t();
    let ListParts { filter, page, .. } = *parts;
    let given = |key: &str| {
        filter
            .iter()
            .find(|(known, _)| known == key)
            .map_or("", |(_, value)| value)
    };
    let local = |key: &str| by_clocks(key, given(key), t);
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
        views: views(&used, parts.views, t),
        saved: saved(parts.views, &used),
        pulse: pulse(parts.stats, &used, given("flow"), t),
        tallies: tallies(parts.counts, t),
        said: done(frame, given("done")),
        looked: match text(page, "looked") {
            "" => String::new(),
            _ => t.moment(page, "looked"),
        },
        flow: given("flow"),
        name: given("name"),
        label: given("label"),
        from: local("from"),
        to: local("to"),
        error: given("error"),
        step: given("step"),
        ended_from: local("endedFrom"),
        ended_to: local("endedTo"),
        more_used: used.iter().any(|(key, _)| FOLDED.contains(key)),
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
        bulk: bulk_acts(frame),
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

/// What can be done to many: the action, its word, and why it can't be done.
fn bulk_acts(frame: &Frame) -> Vec<(&'static str, &'static str, Option<String>)> {
    let t = frame.t();
    vec![
        ("redrive", t.redrive, None),
        ("stop", t.stop, None),
        ("pause", t.pause, None),
        ("resume", t.resume, None),
        ("skip", t.skip_undo, None),
        ("delete", t.delete, frame.lacks("admin")),
    ]
}

/// The name of the saved view that has this filter.
fn saved<'a>(views: &'a [(String, Vec<(String, String)>)], used: &[(&str, &str)]) -> Option<&'a str> {
    let mut same = views.iter().filter(|(_, filter)| is_same(filter, used));
    same.next().filter(|_| !used.is_empty()).map(|(name, _)| name.as_str())
}

/// Whether two filters have the same parts, in whichever order.
fn is_same(saved: &[(String, String)], used: &[(&str, &str)]) -> bool {
    let mut saved: Vec<(&str, &str)> = saved
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    let mut used = used.to_vec();
    saved.sort_unstable();
    used.sort_unstable();
    saved == used
}

fn views<'a>(used: &[(&str, &str)], saved: &'a [(String, Vec<(String, String)>)], t: Reader) -> Vec<View<'a>> {
    let own: [(&[(&str, &str)], &'static str); 4] = [
        (&[], t.view_all),
        (&[("status", "Failed")], t.view_failed),
        (&[("reason", "manual")], t.view_manual),
        (&[("status", "Running")], t.view_running),
    ];
    let own = own.into_iter().map(|(filter, word)| View {
        href: address(filter),
        word,
        current: filter == used,
    });
    let saved = saved.iter().map(|(name, filter)| View {
        href: address_of(filter),
        word: name,
        current: is_same(filter, used),
    });
    own.chain(saved).collect()
}

fn pulse<'a>(stats: &Value, used: &[(&str, &str)], flow: &'a str, t: Reader) -> Pulse<'a> {
    let none = Value::Null;
    let day = stats.get("day").unwrap_or(&none);
    let quarters = items(day, "quarters");
    let others: Vec<(&str, &str)> = used
        .iter()
        .copied()
        .filter(|(key, _)| !matches!(*key, "endedFrom" | "endedTo"))
        .collect();
    let mut within = address(&others);
    within.push(if others.is_empty() { '?' } else { '&' });
    let at = |key: &str| {
        let time = used.iter().find(|(known, _)| *known == key)?;
        let time = Timestamp::parse(time.1)?;
        let before = quarters
            .iter()
            .filter(|quarter| self::time(quarter, "time").is_some_and(|begin| begin < time));
        Some(before.count() * STEP)
    };
    let width = quarters.len() * STEP;
    let chosen = (at("endedFrom"), at("endedTo"));
    let chosen = (chosen != (None, None)).then(|| {
        let from = chosen.0.unwrap_or_default();
        (from, chosen.1.unwrap_or(width).saturating_sub(from))
    });
    let hours = hours(quarters, &within, t);
    let every = |(at, group): (usize, &Group)| {
        let quarter = quarters.get(group.x / STEP)?;
        let hour: usize = t.clock(quarter, "time").get(..2)?.parse().ok()?;
        (hour.is_multiple_of(6) && at > 0).then(|| (group.x, t.clock(quarter, "time")))
    };
    Pulse {
        marks: hours.iter().enumerate().filter_map(every).collect(),
        hours,
        width,
        chosen,
        most: most(quarters),
        since: t.moment(day, "since"),
        begin: quarters
            .first()
            .and_then(|first| time(first, "time"))
            .unwrap_or_default()
            .0,
        within,
        of: flow,
    }
}

/// How many executions there are, each number with the filter that lists them.
fn tallies(counts: &Value, t: Reader) -> Vec<Figure> {
    let none = Value::Null;
    let statuses = counts.get("statuses").unwrap_or(&none);
    let all: [(&[&str], &'static str); 8] = [
        (&["Running"], t.running),
        (&["Queued", "Blocked", "Delayed"], t.not_begun),
        (&["Manual"], t.manual),
        (&["RollingBack"], t.rolling_back),
        (&["Succeeded"], t.succeeded),
        (&["Failed", "TimedOut"], t.failed),
        (&["RollbackFailed"], t.rollback_failed),
        (&["Stopped", "RolledBack"], t.stopped),
    ];
    let figure = |(of, word): (&[&str], &'static str)| {
        let count: u64 = of.iter().filter_map(|status| number(statuses, status)).sum();
        let shown = state(of.first().unwrap_or(&""), t);
        Figure {
            class: shown.class,
            sign: shown.sign,
            count: count.to_string(),
            word,
            href: format!("/executions?status={}", of.join(",")),
        }
    };
    all.into_iter().map(figure).collect()
}

fn chips(used: &[(&str, &str)], t: Reader) -> Vec<Chip> {
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
            value: by_clocks(key, value, t),
            without: address(&others),
        }
    };
    used.iter().enumerate().map(chip).collect()
}

/// What a filter says, with times by the clocks of whoever reads it.
fn by_clocks(key: &str, value: &str, t: Reader) -> String {
    let is_time = matches!(key, "from" | "to" | "endedFrom" | "endedTo");
    let time = Timestamp::parse(value).filter(|_| is_time);
    time.map_or_else(|| value.to_owned(), |time| t.clocks.whole(time))
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

/// The address of the list with this filter.
pub fn address_of(filter: &[(String, String)]) -> String {
    let pairs: Vec<(&str, &str)> = filter
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    address(&pairs)
}

/// The command that lists the same.
fn command(filter: &[(&str, &str)]) -> String {
    command_of("starbridge list", filter)
}

/// A text as one argument of a command.
pub(crate) fn argument(value: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:/".contains(letter);
    match !value.is_empty() && value.chars().all(is_plain) {
        true => value.to_owned(),
        false => format!("'{}'", value.replace('\'', "'\\''")),
    }
}

/// A command with a flag for each pair.
pub(crate) fn command_of(begin: &str, pairs: &[(&str, &str)]) -> String {
    let mut command = begin.to_owned();
    for (key, value) in pairs {
        let value = argument(value);
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
