//! Pages that are one table: queues, keys, schedules and the like.

use crate::answers::Answers;
use crate::bulk::job_state;
use crate::executions::argument;
use crate::frame::Frame;
use crate::plain::{done, written};
use crate::read::{count, duration, is_set, items, next, number, path_part, text};
use crate::schedule::next_time;
use crate::words::{State, reason, state, waits};
use crate::zone::Reader;
use askama::Template;
use starbridge_flow::time::{Millis, Seconds};
use starbridge_flow::value::{Object, Value};

pub(crate) enum Cell {
    Text(String),
    Link(String, String),
    /// A number of failures, with the list of them.
    Failed(String, String),
    State(State),
    Code(String),
    Act(Act),
    /// A field with a number that can be set.
    Set(Act, String),
    /// A text in lines.
    Plain(String),
    /// Several lines, behind the first.
    Lines(String, Vec<String>),
}

/// A button that does one thing, or why it cannot be used.
pub(crate) struct Act {
    action: String,
    word: &'static str,
    why: Option<String>,
}

#[derive(Template)]
#[template(path = "table.html")]
struct Table<'a> {
    f: &'a Frame,
    t: Reader,
    title: &'a str,
    said: &'static str,
    empty: &'static str,
    command: &'static str,
    heads: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    older: Option<String>,
    live: &'static str,
    /// What is asked and can be answered here; nothing where the page is not for that.
    answers: Option<Answers>,
}

/// A table of what a page of the API has, a row for each item.
struct Listed<'a> {
    frame: &'a Frame,
    title: &'static str,
    /// What is said where there is nothing, and a command that changes that.
    empty: (&'static str, &'static str),
    heads: Vec<&'static str>,
    path: &'static str,
    answers: Option<Answers>,
}

impl Listed<'_> {
    fn written(self, page: &Value, row: impl Fn(&Value) -> Vec<Cell>) -> String {
        let older = next(page).map(|next| format!("{}?cursor={}", self.path, path_part(&next)));
        let said = self.frame.here.split_once("done=").map_or("", |(_, action)| action);
        written(&Table {
            f: self.frame,
            t: self.frame.t(),
            title: self.title,
            said: done(self.frame, said).unwrap_or_default(),
            empty: self.empty.0,
            command: self.empty.1,
            heads: self.heads,
            rows: items(page, "items").iter().map(row).collect(),
            older,
            live: match self.path {
                "/queues" => "queues",
                "/bulk" => "bulk",
                "/audit" => "audit",
                "/inbox" | "/keys" | "/schedules" | "/flows" => "executions",
                _ => "",
            },
            answers: self.answers,
        })
    }
}

fn cell(value: &Value, key: &str) -> Cell {
    Cell::Text(text(value, key).to_owned())
}

fn counted(value: &Value, key: &str) -> Cell {
    Cell::Text(count(value, key))
}

fn at(value: &Value, key: &str, t: Reader) -> Cell {
    Cell::Text(t.moment(value, key))
}

fn code(value: &Value, key: &str) -> Cell {
    Cell::Code(value.get(key).map(Value::to_json).unwrap_or_default())
}

fn execution(id: &str, shown: &str) -> Cell {
    match id {
        "" => Cell::Text("–".to_owned()),
        id => Cell::Link(format!("/executions/{}", path_part(id)), shown.to_owned()),
    }
}

fn flow_link(name: &str) -> Cell {
    Cell::Link(format!("/flows/{}", path_part(name)), name.to_owned())
}

fn pause(value: &Value, t: Reader) -> Cell {
    match is_set(value, "paused") {
        true => Cell::State(State {
            class: "wait",
            sign: "wait",
            word: t.paused,
        }),
        false => Cell::Text("–".to_owned()),
    }
}

/// So many flows are counted at most: of one that is not among them nothing is known.
const COUNTED: usize = 100;

/// The flows, with what was counted of each in the last hour.
pub fn flows(frame: &Frame, page: &Value, stats: &Value) -> String {
    let t = frame.t();
    let listed = Listed {
        frame,
        title: t.flows,
        empty: (t.no_flows, "starbridge flow put FILE"),
        heads: vec![
            t.flow,
            t.version,
            t.started_hour,
            t.failed_hour,
            t.p95,
            t.created,
            t.hash,
        ],
        path: "/flows",
        answers: None,
    };
    let figures = items(stats, "flows");
    let since = path_part(text(stats, "since"));
    listed.written(page, |item| {
        let name = text(item, "name");
        let own = figures.iter().find(|figures| text(figures, "flow") == name);
        let counted_of = |key: &str| match own {
            Some(own) => count(own, key),
            None if figures.len() < COUNTED => "0".to_owned(),
            None => "–".to_owned(),
        };
        let failed = counted_of("failed");
        let within = own.and_then(|own| number(own, "p95Ms"));
        vec![
            flow_link(name),
            counted(item, "version"),
            Cell::Text(counted_of("started")),
            match failed.as_str() {
                "0" | "–" => Cell::Text(failed),
                _ => Cell::Failed(
                    format!(
                        "/executions?flow={}&status=Failed,TimedOut,RollbackFailed&endedFrom={since}",
                        path_part(name)
                    ),
                    failed,
                ),
            },
            Cell::Text(within.map_or_else(|| "–".to_owned(), |span| duration(Millis(span)))),
            at(item, "createdTime", t),
            Cell::Code(text(item, "hash").chars().take(19).collect()),
        ]
    })
}

/// A row for each queue.
pub fn queues(frame: &Frame, page: &Value) -> String {
    let t = frame.t();
    let listed = Listed {
        frame,
        title: t.queues,
        empty: (t.no_queues, "starbridge worker"),
        heads: vec![t.queue, t.waiting, t.oldest, t.held, t.workers, t.dead, t.paused],
        path: "/queues",
        answers: None,
    };
    listed.written(page, |item| {
        let age = number(item, "ageSeconds").map(|age| duration(Millis::from(Seconds(age))));
        let name = text(item, "name");
        vec![
            Cell::Link(format!("/queues/{}", path_part(name)), name.to_owned()),
            counted(item, "waiting"),
            Cell::Text(age.unwrap_or_else(|| "–".to_owned())),
            counted(item, "held"),
            counted(item, "workers"),
            counted(item, "dead"),
            pause(item, t),
        ]
    })
}

/// The concurrency keys.
pub fn keys(frame: &Frame, page: &Value) -> String {
    let t = frame.t();
    let listed = Listed {
        frame,
        title: t.keys,
        empty: (t.no_keys, ""),
        heads: vec![t.pool, t.key, t.limit, t.held, t.waiting, t.paused, t.set_limit],
        path: "/keys",
        answers: None,
    };
    listed.written(page, |item| {
        let limit = match number(item, "limit") {
            Some(limit) => limit.to_string(),
            None => t.no_limit.to_owned(),
        };
        vec![
            cell(item, "pool"),
            Cell::Link(format!("/keys/{}", key_part(item)), text(item, "key").to_owned()),
            Cell::Text(limit),
            counted(item, "held"),
            waiting_for_key(item),
            pause(item, t),
            // Keys of a pool with `@` belong to the server.
            match text(item, "pool").starts_with('@') {
                true => Cell::Text("–".to_owned()),
                false => Cell::Set(
                    Act {
                        action: format!("/keys/{}/set", key_part(item)),
                        word: t.save,
                        why: frame.lacks("admin"),
                    },
                    number(item, "setLimit").map_or_else(String::new, |limit| limit.to_string()),
                ),
            },
        ]
    })
}

/// A key in an address.
fn key_part(key: &Value) -> String {
    format!("{}/{}", path_part(text(key, "pool")), path_part(text(key, "key")))
}

/// How many wait for a key, with the list of them.
fn waiting_for_key(key: &Value) -> Cell {
    match number(key, "waiting") {
        None | Some(0) => counted(key, "waiting"),
        Some(_) => Cell::Link(
            format!("/executions?reason=key&reasonOf={}", path_part(text(key, "key"))),
            count(key, "waiting"),
        ),
    }
}

/// A key: who holds it, since when, and what each of them waits for itself.
pub fn key(frame: &Frame, key: &Value, holders: &[Value]) -> String {
    let t = frame.t();
    let holder = |item: &Value| {
        let waiting = item.get("waitingFor");
        vec![
            Cell::State(state(text(item, "status"), t)),
            execution(text(item, "id"), text(item, "name")),
            flow_link(text(item, "flow")),
            Cell::Text(waiting.map_or_else(String::new, |waiting| waits(waiting, t))),
            at(item, "startedTime", t),
        ]
    };
    let mut rows: Vec<Vec<Cell>> = holders.iter().map(holder).collect();
    rows.push(vec![
        Cell::Text(t.waiting.to_owned()),
        waiting_for_key(key),
        Cell::Link("/keys".to_owned(), t.keys.to_owned()),
        Cell::Code(format!(
            "starbridge key show {} {}",
            argument(text(key, "pool")),
            argument(text(key, "key"))
        )),
        Cell::Text(String::new()),
    ]);
    written(&Table {
        f: frame,
        t,
        title: text(key, "key"),
        said: "",
        empty: "",
        command: "",
        heads: vec![t.held, t.execution, t.flow, t.current_state, t.started],
        rows,
        older: None,
        live: "executions",
        answers: None,
    })
}

/// When a schedule triggers next.
fn next_times(item: &Value, t: Reader) -> Cell {
    let times = items(item, "nextTimes").iter().map(|time| next_time(time, t));
    Cell::Lines(t.moment(item, "nextTime"), times.collect())
}

/// A row for each schedule.
pub fn schedules(frame: &Frame, page: &Value) -> String {
    let t = frame.t();
    let listed = Listed {
        frame,
        title: t.schedules,
        empty: (t.no_schedules, "starbridge schedule put"),
        heads: vec![
            t.name,
            t.flow,
            t.cron,
            t.next_time,
            t.latest,
            t.error,
            t.paused,
            t.action,
            "",
        ],
        path: "/schedules",
        answers: None,
    };
    let act = |item: &Value, verb: &str, word| {
        Cell::Act(Act {
            action: format!("/schedules/{}/{verb}", path_part(text(item, "name"))),
            word,
            why: frame.lacks("operate"),
        })
    };
    listed.written(page, |item| {
        let name = text(item, "name");
        vec![
            Cell::Link(format!("/schedules/{}", path_part(name)), name.to_owned()),
            flow_link(text(item, "flow")),
            Cell::Code(text(item, "cron").to_owned()),
            next_times(item, t),
            execution(text(item, "latestExecution"), &t.moment(item, "latestTime")),
            cell(item, "latestError"),
            pause(item, t),
            match is_set(item, "paused") {
                true => act(item, "resume", t.resume),
                false => act(item, "pause", t.pause),
            },
            act(item, "run", t.fire_now),
        ]
    })
}

/// What the inbox is made of: what the API answers.
#[derive(Clone, Copy, Debug)]
pub struct InboxParts<'a> {
    /// Executions with a step that waits for an operator.
    pub manual: &'a Value,
    /// Those that wait for a report.
    pub callbacks: &'a Value,
    /// The execution whose questions are answered; null where none is chosen.
    pub chosen: &'a Value,
    /// Its steps that wait for an operator.
    pub deciding: &'a Value,
    /// Those among which some wait for a report.
    pub awaiting: &'a Value,
    /// Visits of them, with their inputs.
    pub visits: &'a [Value],
}

/// What asks a person, with the forms that answer one execution.
pub fn inbox(frame: &Frame, parts: &InboxParts<'_>) -> String {
    let t = frame.t();
    let chosen = text(parts.chosen, "id");
    let answers = (!chosen.is_empty()).then(|| Answers {
        from: "inbox",
        name: format!("{} / {}", text(parts.chosen, "flow"), text(parts.chosen, "name")),
        ..Answers::of(frame, chosen, parts.deciding, parts.awaiting, parts.visits)
    });
    let listed = Listed {
        frame,
        title: t.inbox,
        empty: (t.no_inbox, ""),
        heads: vec![t.state, t.execution, t.flow, t.current_state, t.started, t.action],
        path: "/inbox",
        answers,
    };
    let all = items(parts.manual, "items")
        .iter()
        .chain(items(parts.callbacks, "items"));
    let members = [
        ("items".into(), all.cloned().collect::<Vec<_>>().into()),
        ("next".into(), parts.manual.get("next").cloned().unwrap_or_default()),
    ];
    let both = Value::from(members.into_iter().collect::<Object>());
    listed.written(&both, |item| {
        let id = text(item, "id");
        let waiting = item.get("waitingFor").unwrap_or(&Value::Null);
        let (what, word) = match text(waiting, "reason") {
            "callback" => ("callback", t.report),
            _ => ("manual", t.resolve),
        };
        vec![
            Cell::State(State {
                class: "man",
                sign: reason(what, t).0,
                word: reason(what, t).1,
            }),
            execution(id, text(item, "name")),
            flow_link(text(item, "flow")),
            Cell::Text(waits(waiting, t)),
            at(item, "startedTime", t),
            Cell::Link(format!("/inbox?of={}", path_part(id)), word.to_owned()),
        ]
    })
}

/// The bulk jobs.
pub fn bulk(frame: &Frame, page: &Value) -> String {
    let t = frame.t();
    let listed = Listed {
        frame,
        title: t.bulk,
        empty: (t.no_bulk, ""),
        heads: vec![
            "id", t.action, t.by, t.state, t.items, t.open, t.done, t.skipped, t.failed, t.created, t.filter,
        ],
        path: "/bulk",
        answers: None,
    };
    listed.written(page, |item| {
        let id = text(item, "id");
        let mut row = vec![
            Cell::Link(format!("/bulk/{}", path_part(id)), id.to_owned()),
            cell(item, "action"),
            cell(item, "by"),
            Cell::State(job_state(item, t)),
        ];
        row.extend(["items", "open", "done", "skipped", "failed"].map(|key| counted(item, key)));
        row.push(at(item, "createdTime", t));
        row.push(code(item, "filter"));
        row
    })
}

/// What operators did.
pub fn audit(frame: &Frame, page: &Value) -> String {
    let t = frame.t();
    let listed = Listed {
        frame,
        title: t.audit,
        empty: (t.no_audit, ""),
        heads: vec![t.time, t.by, t.action, t.object, t.details],
        path: "/audit",
        answers: None,
    };
    listed.written(page, |item| {
        let object = text(item, "object");
        vec![
            at(item, "time", t),
            cell(item, "by"),
            cell(item, "action"),
            match text(item, "kind") {
                "execution" => execution(object, object),
                "flow" => flow_link(object),
                kind => Cell::Text(format!("{kind} {object}")),
            },
            code(item, "detail"),
        ]
    })
}

/// Whom the server takes the visitor for, and what it is itself. `config` is null for those who may not see it.
pub fn settings(frame: &Frame, me: &Value, stats: &Value, config: &Value) -> String {
    let t = frame.t();
    let server = stats.get("server").unwrap_or(&Value::Null);
    let words = |value: &Value, key: &str| {
        let words: Vec<&str> = items(value, key).iter().filter_map(Value::as_str).collect();
        words.join(", ")
    };
    let name = match text(me, "name") {
        "" => t.no_token.to_owned(),
        name => name.to_owned(),
    };
    let mut rows = vec![
        (t.token, Cell::Text(name)),
        (t.scopes, Cell::Text(words(me, "scopes"))),
        (t.language, Cell::Text(frame.language.own_name().to_owned())),
        (t.appearance, Cell::Text(frame.theme_word().to_owned())),
        (
            t.zone,
            Cell::Text(format!("{} ({})", frame.zone.name(), frame.offset())),
        ),
        (t.version, cell(server, "version")),
    ];
    if let Some(lacks) = frame.lacks("admin") {
        rows.push((t.configuration, Cell::Text(lacks)));
    } else {
        rows.push((
            t.build,
            Cell::Text(format!("{}: {}", text(config, "target"), words(config, "features"))),
        ));
        rows.push((t.configuration, Cell::Plain(text(config, "config").to_owned())));
    }
    rows.push((t.started, at(server, "startedTime", t)));
    rows.push((t.followers, counted(server, "followers")));
    rows.push((t.waiting_requests, counted(server, "waitingRequests")));
    // What is long stands at the end.
    rows.sort_by_key(|(_, cell)| matches!(cell, Cell::Plain(_)));
    let last = ["starbridge whoami", "starbridge whoami --config"].join("; ");
    rows.push((t.as_command, Cell::Code(last)));
    written(&Table {
        f: frame,
        t,
        title: t.settings,
        said: "",
        empty: "",
        command: "",
        heads: Vec::new(),
        rows: rows
            .into_iter()
            .map(|(word, cell)| vec![Cell::Text(word.to_owned()), cell])
            .collect(),
        older: None,
        live: "",
        answers: None,
    })
}
