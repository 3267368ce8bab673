//! An execution on a time line: a lane for each visit, or bands for many.

use super::route::Route;
use super::steps::{AT, at};
use crate::App;
use crate::scope::Scope;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use starbridge_flow::graph::Flow;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::reading::Query;
use starbridge_node::problem::{Answer, Problem};
use starbridge_node::visits::{Outline, Row, SpanEnd, Spanned, Visits};
use std::collections::BTreeMap;
use std::sync::Arc;

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// The route of the time line.
pub(super) const ROUTES: &[Route] = &[Route {
    method: "GET",
    path: "/v1/executions/{id}/timeline",
    scope: Some(Scope::Read),
    summary: "Its visits on a line of time: a lane for each, with attempts, pauses and undoing; a foreach with many iterations has bands",
    query: &[
        ("from", "what ended before this time is left out (RFC 3339)"),
        ("to", "what began at this time or later is left out (RFC 3339)"),
        ("lanes", "how many at most: 1 to 1000, 200 where none is given"),
        ("cursor", "`next` of the page before"),
        AT,
    ],
    body: None,
    answers: &[
        (200, "the lanes", Some("Timeline")),
        (404, "there is no such execution", Some("Problem")),
    ],
    handler: Some(|| get(timeline)),
}];

/// A composite with more children has bands instead of a lane for each step inside.
const CHILDREN: usize = 8;
/// The number of bands.
const BANDS: u64 = 48;

/// `GET /v1/executions/{id}/timeline`
async fn timeline(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["from", "to", "lanes", "cursor", "at"])?;
    let lanes = usize::try_from(query.number("lanes", 200, 1, 1000)?).unwrap_or(200);
    let after = query.number("cursor", 0, 0, u64::MAX)?;
    let (from, to, at) = (query.time("from")?, query.time("to")?, at(&query)?);
    let make_of = app.clone();
    let make = move || {
        let folded = make_of.folds.get(&make_of.node, &id, at)?;
        let visits = folded.visits();
        let is_now = folded.fold.last == folded.end && !folded.ended;
        let now = if is_now { make_of.node.now() } else { visits.time() };
        let window = Window {
            from: from.or_else(|| first_entered(&visits)).unwrap_or(now),
            to: to.unwrap_or(now),
            now,
        };
        Ok::<_, Problem>(window.shown(&folded.flow, &visits, after, lanes))
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}

/// The time span of the answer.
struct Window {
    from: Timestamp,
    to: Timestamp,
    /// Open spans last until now.
    now: Timestamp,
}

impl Window {
    fn has(&self, from: Timestamp, to: Timestamp) -> bool {
        to >= self.from && from <= self.to
    }

    fn has_row(&self, row: &Row) -> bool {
        let undone = row
            .spans()
            .last()
            .map_or(row.entered_time(), |span| span.until(self.now));
        let end = row.ended_time().unwrap_or(self.now).max(undone);
        self.has(row.entered_time(), end)
    }

    fn shown(&self, flow: &Flow, visits: &Visits, after: u64, most: usize) -> Value {
        let crowded = visits.composites().filter(|(_, children)| children.len() > CHILDREN);
        let crowded: Vec<Arc<Row>> = crowded.filter_map(|(event, _)| visits.row(event)).collect();
        let mut lanes = Vec::new();
        let mut next = None;
        'all: for block in visits.blocks_after(after) {
            let outline = block.outline();
            if outline.is_some_and(|block| crowded.iter().any(|composite| block.is_inside(composite))) {
                continue;
            }
            let rows = block.rows();
            for row in rows.iter().filter(|row| row.event() > after && self.has_row(row)) {
                if crowded.iter().any(|composite| is_inside(row, composite)) {
                    continue;
                }
                if lanes.len() == most {
                    next = lanes.last().map(|(event, _)| *event);
                    break 'all;
                }
                let mut lane = self.lane(flow, row);
                if let Some(children) = visits.children(row.event()) {
                    lane.insert("children".into(), (children.len() as u64).into());
                    if children.len() > CHILDREN {
                        lane.insert("bands".into(), self.bands(visits, row).into());
                    }
                }
                lanes.push((row.event(), lane));
            }
        }
        let lanes: Vec<Value> = lanes.into_iter().map(|(_, lane)| lane.into()).collect();
        let mut shape = Object::new();
        shape.insert("from".into(), self.from.to_string().into());
        shape.insert("to".into(), self.to.to_string().into());
        shape.insert("items".into(), lanes.into());
        shape.insert("next".into(), next.map(Value::from).unwrap_or_default());
        shape.into()
    }

    fn lane(&self, flow: &Flow, row: &Row) -> Object {
        let spans = row.spans().iter();
        let spans = spans.filter(|span| self.has(span.from, span.until(self.now)));
        let spans: Vec<Value> = spans.map(|span| span.to_value()).collect();
        let mut lane = Object::new();
        let mut set = |key: &str, value: Value| drop(lane.insert(key.into(), value));
        set("event", row.event().into());
        set("step", Text::from(row.step()).into());
        set("path", row.path(flow));
        set("status", Text::from(row.status()).into());
        set("enteredTime", row.entered_time().to_string().into());
        let ended = row.ended_time().map(|ended| ended.to_string().into());
        set("endedTime", ended.unwrap_or_default());
        set("spans", spans.into());
        lane
    }

    /// The part of the window that a time is in.
    fn band(&self, time: Timestamp) -> u64 {
        let whole = self.to.since(self.from).0.max(1);
        (time.since(self.from).0.saturating_mul(BANDS) / whole).min(BANDS - 1)
    }

    /// How many visits inside a composite were open, and how many of these failed, in each part of
    /// the window.
    fn bands(&self, visits: &Visits, composite: &Row) -> Vec<Value> {
        let mut counts = vec![(0_u64, 0_u64); usize::try_from(BANDS).unwrap_or(0)];
        let mut count = |at: u64, all: u64, failed: u64| {
            if let Some(count) = counts.get_mut(usize::try_from(at).unwrap_or(usize::MAX)) {
                count.0 += all;
                count.1 += failed;
            }
        };
        for block in visits.blocks_after(composite.event()) {
            let whole = block.outline().filter(|outline| outline.is_inside(composite));
            // Most blocks are short, and fit in one band.
            if let Some(spans) = whole.and_then(|outline| self.in_one_band(outline)) {
                count(self.band(spans.from), spans.rows, spans.failed);
                continue;
            }
            let rows = block.rows();
            for row in rows.iter().filter(|row| is_inside(row, composite)) {
                for (at, failed) in self.met(row) {
                    count(at, 1, u64::from(failed));
                }
            }
        }
        let each = counts
            .into_iter()
            .map(|(all, failed)| Value::from(vec![all.into(), failed.into()]));
        each.collect()
    }

    /// The spans of a block, if all are in the window and in the same band.
    fn in_one_band(&self, block: &Outline) -> Option<Spanned> {
        let spans = block.spans()?;
        let is_one = spans.from >= self.from && spans.to <= self.to && self.band(spans.from) == self.band(spans.to);
        is_one.then_some(spans)
    }

    /// The bands of a visit, and whether it failed there. With several spans in a band it counts once.
    fn met(&self, row: &Row) -> BTreeMap<u64, bool> {
        let mut met = BTreeMap::new();
        for span in row.spans() {
            let until = span.until(self.now);
            if self.has(span.from, until) {
                let last = self.band(until);
                for at in self.band(span.from).min(last)..=last {
                    *met.entry(at).or_insert(false) |= span.end == SpanEnd::Failed;
                }
            }
        }
        met
    }
}

/// When the first visit began.
fn first_entered(visits: &Visits) -> Option<Timestamp> {
    let entered = visits.blocks_after(0).filter_map(|block| match block.outline() {
        Some(outline) => Some(outline.entered()),
        None => block.rows().iter().map(|row| row.entered_time()).min(),
    });
    entered.min()
}

/// Whether a visit is inside a composite: its path is longer by an item of the composite's step.
fn is_inside(row: &Row, composite: &Row) -> bool {
    let (path, around) = (row.place().items(), composite.place().items());
    let step = path.get(around.len()).map(|item| item.step);
    path.starts_with(around) && step == Some(composite.number()) && row.event() > composite.event()
}
