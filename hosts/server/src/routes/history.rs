//! Histories: pages, streams, states, steps.

use crate::App;
use crate::reading::Query;
use crate::shapes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event as Sse, KeepAlive, Sse as Stream};
use axum::response::{IntoResponse, Response};
use starbridge_fdl::value::{Object, Text, Value};
use starbridge_kit::problem::{Answer, Problem};
use starbridge_kit::visits::{STATUSES, Visits};
use starbridge_machine::EventId;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// Events read for a stream at a time, and events that may wait for a slow reader.
const TOGETHER: usize = 500;
/// A stream looks again after this time even if nobody told it to.
const SWEEP: Duration = Duration::from_secs(15);

/// `GET /v1/executions/{id}/history`
pub async fn history(State(app): State<App>, Path(id): Path<String>, headers: HeaderMap, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["from", "limit", "order"])?;
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/event-stream")) {
        return stream(&app, &id, &headers, &query);
    }
    let backwards = match query.get("order") {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(other) => return Err(Problem::bad(format!("`order` must be `asc` or `desc`, not `{other}`"))),
    };
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let usual = if backwards { u64::MAX } else { 1 };
    let from = query.number("from", usual, 1, u64::MAX)?;
    let page = super::aside(&app.node, move |node| {
        let last = node.last_event(&id)?;
        let from = EventId(from.min(if backwards { last.0 } else { u64::MAX }));
        node.events(&id, from, limit, backwards).map(|events| (events, last))
    })
    .await?;
    let (events, last) = page?;
    let number = |event: &Object| {
        event
            .get("id")
            .and_then(Value::as_number)
            .and_then(serde_json::Number::as_u64)
    };
    let end = events.last().and_then(number);
    let next = match end {
        Some(end) if backwards && end > 1 => Some(end - 1),
        Some(end) if !backwards && end < last.0 => Some(end + 1),
        _ => None,
    };
    let items = events.into_iter().map(Value::from).collect();
    Ok(shapes::value(
        StatusCode::OK,
        &shapes::page(items, next.map(Value::from)),
    ))
}

/// Events as they come, until the execution has ended. `Last-Event-ID` says where a reader was.
fn stream(app: &App, id: &str, headers: &HeaderMap, query: &Query) -> Answer<Response> {
    let seen = headers.get("last-event-id").and_then(|seen| seen.to_str().ok());
    let next = match seen {
        None => query.number("from", 1, 1, u64::MAX)?,
        Some(seen) => {
            let seen: u64 = seen
                .parse()
                .map_err(|_| Problem::bad("`Last-Event-ID` must be the number of an event"))?;
            seen + 1
        }
    };
    // Before looking, so that nothing falls between.
    let watch = app.node.watchers().watch(&Text::from(id));
    app.node.last_event(id)?;
    let (events, stream) = mpsc::channel(TOGETHER);
    tokio::spawn(send_events(app.clone(), id.to_owned(), EventId(next), watch, events));
    Ok(Stream::new(ReceiverStream::new(stream))
        .keep_alive(KeepAlive::new().interval(SWEEP))
        .into_response())
}

async fn send_events(
    app: App,
    id: String,
    mut next: EventId,
    mut watch: starbridge_kit::node::Watch,
    events: mpsc::Sender<Result<Sse, Infallible>>,
) {
    loop {
        let of = id.clone();
        let page = super::aside(&app.node, move |node| {
            // The record first: if it has ended by then, all its events are there.
            let ended = node.store().record(&of)?.is_none_or(|record| record.ended.is_some());
            node.events(&of, next, TOGETHER, false).map(|events| (events, ended))
        });
        let Ok(Ok((page, ended))) = page.await else {
            return;
        };
        let more = page.len() == TOGETHER;
        for event in page {
            let sse = Sse::default().id(next.to_string()).data(Value::from(event).to_json());
            next = next.next();
            // A reader that went away needs no more.
            if events.send(Ok(sse)).await.is_err() {
                return;
            }
        }
        if more {
            continue;
        }
        if ended {
            let end = Sse::default().event("end").data("{}");
            let _ = events.send(Ok(end)).await;
            return;
        }
        tokio::select! {
            () = watch.changed() => {}
            () = tokio::time::sleep(SWEEP) => {}
            () = events.closed() => return,
        }
    }
}

/// `GET /v1/executions/{id}/state`
pub async fn state(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["at"])?;
    let at = match query.get("at") {
        None => None,
        Some(_) => Some(EventId(query.number("at", 1, 1, u64::MAX)?)),
    };
    let state = super::aside(&app.node, move |node| node.state_at(&id, at)).await??;
    Ok(shapes::value(StatusCode::OK, &state))
}

/// `GET /v1/executions/{id}/steps`
pub async fn steps(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["limit", "status"])?;
    let limit = usize::try_from(query.number("limit", 1000, 1, 10_000)?).unwrap_or(1000);
    let status = query.get("status").map(str::to_owned);
    if let Some(status) = status.as_deref().filter(|status| !STATUSES.contains(status)) {
        let detail = format!("`status` must be one of {}, not `{status}`", STATUSES.join(", "));
        return Err(Problem::bad(detail));
    }
    let rows = super::aside(&app.node, move |node| {
        let mut visits = Visits::new(limit);
        if let Some(status) = status {
            visits = visits.only(&status);
        }
        node.each_event(&id, |flow, event| visits.see(flow, event))
            .map(|()| visits.into_rows())
    })
    .await?;
    Ok(shapes::value(StatusCode::OK, &shapes::page(rows?, None)))
}
