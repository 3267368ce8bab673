//! One execution: where it stands, why, and what one can do.

mod excerpt;
mod incidents;
mod inspector;
mod map;
mod parts;
mod timeline;
mod view;

pub use view::{TABS, View};

use crate::answers::Answers;
use crate::frame::Frame;
use crate::plain::{done, written};
use crate::read::{count, is_set, number, path_part, pretty, span, text, time};
use crate::words::{State, has_ended, state};
use crate::zone::Reader;
use askama::Template;
use incidents::Mark;
use inspector::Inspector;
use map::Map;
use parts::{Act, ChildRow, EventRow, StepRow, Why};
use starbridge_flow::value::Value;
use timeline::Timeline;
use view::Travel;

/// So many bytes of a datum are shown.
const SHOWN_BYTES: usize = 16 * 1024;

/// What the page is made of: what the API answers, and the picture. What the open tab does not show is null.
#[derive(Clone, Copy, Debug)]
pub struct ExecutionParts<'a> {
    /// Which part of it is looked at.
    pub view: View<'a>,
    /// The latest event of the history.
    pub end: u64,
    /// At which events of all of the history something failed, was tried again or was paused.
    pub incidents: &'a Value,
    /// As `GET /v1/executions/{id}` has it.
    pub execution: &'a Value,
    /// The time line.
    pub timeline: &'a Value,
    /// A page of its steps.
    pub steps: &'a Value,
    /// A page of its events.
    pub events: &'a Value,
    /// Whether only events are shown that tell of an error.
    pub failed_only: bool,
    /// The step and the type that events are listed of; empty: all.
    pub event_filter: [&'a str; 2],
    /// The time from which events are listed, as it was written; empty: all.
    pub events_when: &'a str,
    /// The visit that is looked into.
    pub visit: &'a Value,
    /// How its iterations or branches stand, if it has some.
    pub iterations: &'a Value,
    /// What the program of the attempt that is shown printed; null where nothing is kept.
    pub log: &'a Value,
    /// The text of the definition; empty if it is gone.
    pub source: &'a str,
    /// Only iterations are listed that stand so; empty: all.
    pub items_only: &'a str,
    /// A page of the executions that it started.
    pub children: &'a Value,
    /// What its steps wait for.
    pub open: &'a Value,
    /// The steps that wait for an operator.
    pub manual: &'a Value,
    /// The steps that wait for a report.
    pub awaiting: &'a Value,
    /// The definition, if it is still there.
    pub definition: &'a Value,
    /// The picture as SVG; empty where there is none.
    pub graph: &'a str,
    /// The action that was just done, in one word.
    pub done: &'a str,
}

#[derive(Template)]
#[template(path = "execution.html")]
struct Execution<'a> {
    f: &'a Frame,
    t: Reader,
    name: &'a str,
    flow: &'a str,
    id_part: String,
    flow_part: String,
    version: u64,
    state: State,
    paused: bool,
    ended: bool,
    set_aside: bool,
    acts: Vec<Act>,
    facts: Vec<(&'static str, String, Option<String>)>,
    labels: Vec<(&'a str, &'a str, String)>,
    said: Option<&'static str>,
    why: Vec<Why>,
    may_not_start: Option<String>,
    fork_at: u64,
    answers: Option<Answers>,
    live: String,
    tab: &'a str,
    tabs: Vec<(String, &'static str, bool)>,
    travel: Option<Travel>,
    marks: Vec<Mark>,
    visit: Option<u64>,
    graph: &'a str,
    timeline: Timeline,
    more_lanes: Option<String>,
    steps: Vec<StepRow>,
    more_steps: Option<String>,
    events: Vec<EventRow>,
    event_links: Vec<(String, &'static str)>,
    event_filter: [&'a str; 2],
    events_when: &'a str,
    failed_events: (String, bool),
    /// Events as they are: the number, the way there, whether it is chosen, and the JSON.
    raw: Vec<(u64, String, bool, String)>,
    children: Vec<ChildRow>,
    inspector: Option<Inspector>,
    map: Option<Map>,
    input: String,
    output: String,
    definition: String,
}

/// The page of an execution.
pub fn execution(frame: &Frame, parts: &ExecutionParts<'_>) -> String {
    let t = frame.t();
    let execution = parts.execution;
    let status = text(execution, "status");
    let id = text(execution, "id");
    let flow = text(execution, "flow");
    let shown = |key: &str| {
        let value = execution.get(key);
        value.map_or_else(|| "–".to_owned(), |value| pretty(value, SHOWN_BYTES))
    };
    let waits = |reason: &str| {
        execution
            .get("waitingFor")
            .is_some_and(|why| text(why, "reason") == reason)
    };
    let decides = !has_ended(status);
    let view = parts.view;
    let fork_at = view.at.unwrap_or(parts.end);
    let timeline = Timeline::of(parts.timeline, &view, frame.now, t);
    written(&Execution {
        f: frame,
        t,
        name: text(execution, "name"),
        flow,
        id_part: path_part(id),
        flow_part: path_part(flow),
        version: number(execution, "version").unwrap_or_default(),
        state: state(status, t),
        paused: waits("paused"),
        ended: !decides,
        set_aside: waits("broken"),
        acts: parts::acts(frame, execution, fork_at),
        facts: facts(frame, execution),
        labels: labels(execution),
        said: done(frame, parts.done),
        why: parts::why(execution, parts.open, t),
        may_not_start: frame.lacks("start"),
        fork_at,
        answers: decides.then(|| Answers::of(frame, id, parts.manual, parts.awaiting, &[])),
        live: live(status, &view),
        tab: view.tab,
        tabs: view.tabs(t),
        travel: Travel::of(&view, parts.end),
        marks: Mark::all(parts.incidents, parts.end, t),
        visit: view.visit,
        graph: parts.graph,
        more_lanes: timeline.more.as_ref().map(|next| view.further("lanes", next)),
        timeline,
        steps: StepRow::all(parts.steps, &view, frame),
        more_steps: crate::read::next(parts.steps).map(|next| view.further("steps", &next)),
        events: EventRow::all(parts.events, &view, t),
        event_links: parts::event_links(parts.events, &view, (parts.failed_only, parts.event_filter), t),
        event_filter: parts.event_filter,
        events_when: parts.events_when,
        failed_events: match parts.failed_only {
            true => (view.further("events", "1"), true),
            false => (view.further("failed", "true"), false),
        },
        raw: parts::raw(if view.tab == "raw" { parts.events } else { &Value::Null }, &view),
        children: ChildRow::all(id, parts.children, frame),
        inspector: Inspector::of(parts, frame),
        map: Map::of(parts, frame),
        input: shown("input"),
        output: shown("output"),
        definition: match parts.definition {
            Value::Null => "–".to_owned(),
            definition => pretty(definition, 4 * SHOWN_BYTES),
        },
    })
}

/// The labels, each with the list of those that have it.
fn labels(execution: &Value) -> Vec<(&str, &str, String)> {
    let labels = execution.get("labels").and_then(Value::as_object);
    let labels = labels.into_iter().flatten().filter_map(|(key, value)| {
        let value = value.as_str()?;
        let both = format!("{}:{value}", key.as_str());
        Some((key.as_str(), value, format!("/executions?label={}", path_part(&both))))
    });
    labels.collect()
}

/// What the page watches; nothing, where nothing changes any more.
fn live(status: &str, view: &View<'_>) -> String {
    match has_ended(status) || view.at.is_some() {
        true => String::new(),
        false => format!("execution:{}", view.id),
    }
}

fn facts(frame: &Frame, execution: &Value) -> Vec<(&'static str, String, Option<String>)> {
    let t = frame.t();
    let ended = time(execution, "endedTime");
    let took = span(time(execution, "startedTime"), ended.or(Some(frame.now)));
    let mut facts = vec![
        (t.started, t.moment(execution, "startedTime"), None),
        (t.duration, took, None),
    ];
    if ended.is_some() {
        facts.push((t.ended, t.moment(execution, "endedTime"), None));
    }
    facts.push((t.priority, count(execution, "priority"), None));
    for (key, word) in [("parent", t.parent), ("forkedFrom", t.forked_from)] {
        let Some(other) = execution.get(key) else { continue };
        let id = text(other, "execution");
        match is_set(other, "deleted") {
            true => facts.push((word, format!("{id} ({})", t.deleted), None)),
            false => facts.push((word, id.to_owned(), Some(format!("/executions/{}", path_part(id))))),
        }
    }
    let key = text(execution, "onceKey");
    if !key.is_empty() {
        facts.push(("onceKey", key.to_owned(), None));
    }
    facts.push(("id", text(execution, "id").to_owned(), None));
    facts
}
