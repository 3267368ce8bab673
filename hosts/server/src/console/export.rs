//! An execution as a file: what `starbridge history --export` and `--as-test` write.

use super::answer::PageRefusal;
use super::page::Page;
use crate::answers::aside;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use starbridge_flow::value::Value;
use starbridge_machine::EventId;
use starbridge_machine::history::HISTORY_FORMAT;
use starbridge_node::export::{ExportedHistory, export_head};
use starbridge_node::node::Node;
use starbridge_node::problem::{Answer, Problem};
use starbridge_node::test_case::{pretty, test_file};
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio_stream::Stream;

/// So many events are read at a time: each may have as much data as a step.
const AT_ONCE: usize = 50;

/// `GET /executions/{id}/history.jsonl`
pub async fn history(page: Page, Path(id): Path<String>) -> Response {
    let of = id.clone();
    let begun = aside(&page.app.node, move |node| begin(node, &of)).await;
    match begun.flatten() {
        Ok((head, last)) => {
            let place = Place {
                node: page.app.node.clone(),
                id: id.clone(),
                next: EventId(1),
                last,
            };
            let lines = Lines(Some(Box::pin(async move { (Ok(Bytes::from(head)), Some(place)) })));
            let headers = [
                (header::CONTENT_TYPE, "application/jsonl".to_owned()),
                (header::CONTENT_DISPOSITION, attachment(&id, "jsonl")),
            ];
            (headers, Body::from_stream(lines)).into_response()
        }
        Err(problem) => PageRefusal::from(problem).page(&page.frame),
    }
}

/// A longer history does not become a test case here.
const MOST_EVENTS: u64 = 100_000;

/// `GET /executions/{id}/case.test.json`
pub async fn test_case(page: Page, Path(id): Path<String>) -> Response {
    let of = id.clone();
    match aside(&page.app.node, move |node| tested(node, &of)).await.flatten() {
        Ok(text) => {
            let headers = [
                (header::CONTENT_TYPE, "application/json".to_owned()),
                (header::CONTENT_DISPOSITION, attachment(&id, "test.json")),
            ];
            (headers, text).into_response()
        }
        Err(problem) => PageRefusal::from(problem).page(&page.frame),
    }
}

fn tested(node: &Node, id: &str) -> Answer<String> {
    let record = node.store().record(id)?;
    let record = record.ok_or_else(|| Problem::missing("NoSuchExecution", "there is no such execution"))?;
    let no = |why: &str| {
        Problem::new(
            StatusCode::CONFLICT,
            "NotATest",
            format!("this can't be a test case: {why}"),
        )
    };
    if node.last_event(id)?.0 > MOST_EVENTS {
        return Err(no("its history is long; `starbridge history --as-test` writes it"));
    }
    let flow = node.flow_of(id, &record)?;
    let history = ExportedHistory::of_execution(node.store().as_ref(), flow, &id.into())?;
    let test = test_file(&history).map_err(|why| no(&why.to_string()))?;
    Ok(pretty(&test))
}

/// A file is kept, not shown. Its name has nothing that a header could be cut by.
fn attachment(id: &str, ending: &str) -> String {
    let plain = id
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || *letter == '-');
    format!("attachment; filename=\"{}.{ending}\"", plain.collect::<String>())
}

/// The first line, and the last event there is now.
fn begin(node: &Node, id: &str) -> Answer<(String, EventId)> {
    let record = node.store().record(id)?;
    let record = record.ok_or_else(|| Problem::missing("NoSuchExecution", "there is no such execution"))?;
    let last = node.last_event(id)?;
    let flow = node.flow_of(id, &record)?;
    let state = node.state_at(id, None)?;
    let machine = state.get("machine").and_then(Value::as_number);
    let machine = machine.and_then(|machine| u32::try_from(machine.as_u64()?).ok());
    let head = export_head(id, machine.unwrap_or(HISTORY_FORMAT), &flow, &BTreeMap::new());
    Ok((head + "\n", last))
}

/// Where the file goes on.
struct Place {
    node: Arc<Node>,
    id: String,
    next: EventId,
    last: EventId,
}

/// Some lines, and where the next ones begin.
type Part = (io::Result<Bytes>, Option<Place>);

async fn more(mut place: Place) -> Part {
    let (id, next, last) = (place.id.clone(), place.next, place.last);
    let read = aside(&place.node, move |node| {
        let events = node.events(&id, next, AT_ONCE, false)?;
        let mut lines = String::new();
        for event in &events {
            lines.push_str(&Value::from(event.clone()).to_json());
            lines.push('\n');
        }
        Ok::<_, Problem>((lines, events.len() as u64))
    });
    match read.await.flatten() {
        Ok((lines, count)) => {
            place.next = EventId(next.0 + count);
            let is_over = count == 0 || place.next > last;
            (Ok(lines.into()), (!is_over).then_some(place))
        }
        // Whoever saves it sees that it broke off.
        Err(problem) => (Err(io::Error::other(problem.detail().to_owned())), None),
    }
}

/// The lines of the file.
struct Lines(Option<Pin<Box<dyn Future<Output = Part> + Send>>>);

impl Stream for Lines {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(next) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let (lines, place) = ready!(next.as_mut().poll(context));
        self.0 = place.map(|place| Box::pin(more(place)) as _);
        Poll::Ready(Some(lines))
    }
}
