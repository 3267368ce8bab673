//! The first page: what fails, what waits, and the queues.

use crate::executions::Row;
use crate::frame::Frame;
use crate::plain::written;
use crate::read::{count, items, moment, path_part, text};
use crate::texts::Texts;
use askama::Template;
use starbridge_flow::value::Value;

/// What the page is made of: pages of the API, each of a few items.
#[derive(Debug)]
pub struct OverviewParts<'a> {
    /// Executions that failed.
    pub failed: &'a Value,
    /// Executions that need a person.
    pub manual: &'a Value,
    /// Executions that run.
    pub running: &'a Value,
    /// Executions that have not begun.
    pub waiting: &'a Value,
    /// Queues.
    pub queues: &'a Value,
    /// Schedules.
    pub schedules: &'a Value,
}

struct Section {
    title: &'static str,
    all: &'static str,
    rows: Vec<Row>,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview<'a> {
    f: &'a Frame,
    t: &'static Texts,
    sections: Vec<Section>,
    queues: Vec<[String; 5]>,
    schedules: Vec<(String, String, String)>,
}

/// The first page.
pub fn overview(frame: &Frame, parts: &OverviewParts<'_>) -> String {
    let t = frame.t();
    let section = |title, all, page| Section {
        title,
        all,
        rows: Row::all(page, frame),
    };
    let queue = |item: &Value| {
        [
            text(item, "name").to_owned(),
            count(item, "waiting"),
            count(item, "held"),
            count(item, "workers"),
            count(item, "dead"),
        ]
    };
    let schedule = |item: &Value| {
        let flow = text(item, "flow");
        (text(item, "name").to_owned(), path_part(flow), moment(item, "nextTime"))
    };
    written(&Overview {
        f: frame,
        t,
        sections: vec![
            section(
                t.failed_lately,
                "/executions?status=Failed,TimedOut,RollbackFailed",
                parts.failed,
            ),
            section(t.wants_a_person, "/executions?reason=manual", parts.manual),
            section(t.not_begun, "/executions?status=Queued,Blocked,Delayed", parts.waiting),
            section(t.now_running, "/executions?status=Running", parts.running),
        ],
        queues: items(parts.queues, "items").iter().map(queue).collect(),
        schedules: items(parts.schedules, "items").iter().map(schedule).collect(),
    })
}
