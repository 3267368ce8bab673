//! Histories: pages, streams, states, steps.

use crate::App;
use crate::answers::Answers;
use crate::shapes;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_machine::EventId;
use starbridge_node::http::reading::Query;
use starbridge_node::node::{Follower, Heard};
use starbridge_node::problem::{Answer, Problem, quoted};
use starbridge_node::visits::{Row, STEP_STATUSES, Visits};
use starbridge_runtime::QueueView;
use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio_stream::Stream;

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// `GET /v1/executions/{id}/history`
pub async fn history(State(app): State<App>, Path(id): Path<String>, headers: HeaderMap, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["from", "limit", "order", "expand"])?;
    let expand = wants_expanded(&query)?;
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/event-stream")) {
        if expand {
            return Err(Problem::bad("`expand` is for pages: ask for no `text/event-stream`"));
        }
        return stream(&app, &id, &headers, &query).await;
    }
    let backwards = match query.get("order") {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(other) => {
            return Err(Problem::bad(format!(
                "`order` must be `asc` or `desc`, not {}",
                quoted(other)
            )));
        }
    };
    let limit = usize::try_from(query.number("limit", 100, 1, 1000)?).unwrap_or(100);
    let usual = if backwards { u64::MAX } else { 1 };
    let from = query.number("from", usual, 1, u64::MAX)?;
    if expand {
        return expanded(&app, id, from, (limit, backwards)).await;
    }
    let mut room = app.answers.room();
    let kept = super::aside(&app.node, move |node| {
        let last = node.last_event(&id)?;
        let from = EventId(from.min(if backwards { last.0 } else { u64::MAX }));
        let events = node.stored_events(&id, from, limit, backwards)?;
        room.hold(events.bytes())?;
        Ok::<_, Problem>((events, last, room))
    });
    let (events, last, room) = kept.await??;
    let bytes = events.bytes();
    let make = move || Ok::<_, Problem>(page(events.read()?, last, backwards));
    room.write(StatusCode::OK, bytes, make).await
}

fn wants_expanded(query: &Query) -> Answer<bool> {
    match query.get("expand") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => {
            let words = format!("`expand` must be `true` or `false`, not {}", quoted(other));
            Err(Problem::bad(words))
        }
    }
}

/// A page of events with the data around them.
async fn expanded(app: &App, id: String, from: u64, (limit, backwards): (usize, bool)) -> Answer {
    let mut room = app.answers.room();
    let kept = super::aside(&app.node, move |node| {
        let last = node.last_event(&id)?;
        let from = EventId(from.min(if backwards { last.0 } else { u64::MAX }));
        let found = node.expanded_events(&id, from, limit, backwards)?;
        room.hold(found.bytes)?;
        Ok::<_, Problem>((found, last, room))
    });
    let (found, last, room) = kept.await??;
    let bytes = found.bytes;
    let make = move || Ok::<_, Problem>(page(found.events, last, backwards));
    room.write(StatusCode::OK, bytes, make).await
}

/// `GET /v1/executions/{id}/logs`
pub async fn logs(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["from", "limit", "step"])?;
    let limit = usize::try_from(query.number("limit", 20, 1, 100)?).unwrap_or(20);
    let from = EventId(query.number("from", 1, 1, u64::MAX)?);
    let step = query.get("step").map(str::to_owned);
    let mut room = app.answers.room();
    let kept = super::aside(&app.node, move |node| {
        let Some(logs) = node.stored_logs(&id, from, limit)? else {
            return Err(Problem::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "NotSupported",
                "this server's store keeps no logs: what programs print goes to the log of whoever runs them",
            ));
        };
        let bytes = logs.bytes();
        room.hold(bytes)?;
        let next = logs.next().filter(|_| logs.len() == limit);
        let items = node.describe_logs(logs, step.as_deref())?;
        Ok::<_, Problem>((items, next, bytes, room))
    });
    let (items, next, bytes, room) = kept.await??;
    let make = move || Ok::<_, Problem>(shapes::page(items, next.map(|next| next.0.into())));
    room.write(StatusCode::OK, bytes, make).await
}

fn page(events: Vec<Object>, last: EventId, backwards: bool) -> Value {
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
    shapes::page(items, next.map(Value::from))
}

/// Streams events until the execution has ended. `Last-Event-ID` says where a reader was.
async fn stream(app: &App, id: &str, headers: &HeaderMap, query: &Query) -> Answer {
    let seen = headers.get("last-event-id").and_then(|seen| seen.to_str().ok());
    let next = match seen {
        None => query.number("from", 1, 1, u64::MAX)?,
        Some(seen) => {
            let seen = seen.parse().ok().and_then(|seen: u64| seen.checked_add(1));
            seen.ok_or_else(|| Problem::bad("`Last-Event-ID` must be the number of an event"))?
        }
    };
    let follower = app.node.follow(&Text::from(id), EventId(next)).await?;
    // If even the first events have no room, the client is told why.
    app.answers.room().hold(follower.at_hand())?;
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let events = Events::of(follower, app.answers.clone());
    Ok((headers, Body::from_stream(events)).into_response())
}

/// What a follower hears, as the body of an answer. The follower is dropped with its reader.
struct Events {
    next: Option<Hearing>,
    answers: Arc<Answers>,
}

/// A follower that waits, and what it hears; `None` if nothing more comes.
type Hearing = Pin<Box<dyn Future<Output = (Follower, Option<Heard>)> + Send>>;

impl Events {
    fn of(follower: Follower, answers: Arc<Answers>) -> Self {
        Self {
            next: Some(Box::pin(hear(follower))),
            answers,
        }
    }
}

async fn hear(mut follower: Follower) -> (Follower, Option<Heard>) {
    let heard = follower.heard().await;
    // If the history can't be read any more, the stream ends. The client asks again and is told why.
    (follower, heard.ok())
}

impl Stream for Events {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(next) = &mut self.next else {
            return Poll::Ready(None);
        };
        let (follower, heard) = ready!(next.as_mut().poll(context));
        let bytes = match heard {
            Some(Heard::Events(bytes)) => match self.answers.part(bytes) {
                Ok(bytes) => bytes,
                // There is no room. The client goes on from here later.
                Err(_) => {
                    self.next = None;
                    return Poll::Ready(None);
                }
            },
            Some(Heard::Nothing) => Bytes::from_static(b":\n\n"),
            Some(Heard::Ended) => {
                self.next = None;
                return Poll::Ready(Some(Ok(Bytes::from_static(b"event: end\ndata: {}\n\n"))));
            }
            None => {
                self.next = None;
                return Poll::Ready(None);
            }
        };
        self.next = Some(Box::pin(hear(follower)));
        Poll::Ready(Some(Ok(bytes)))
    }
}

/// `GET /v1/executions/{id}/state`
pub async fn state(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["at"])?;
    let at = match query.get("at") {
        None => None,
        Some(_) => Some(EventId(query.number("at", 1, 1, u64::MAX)?)),
    };
    let node = app.node.clone();
    let make = move || Ok::<_, Problem>(node.state_at(&id, at)?);
    app.answers.room().write_all(StatusCode::OK, make).await
}

/// `GET /v1/executions/{id}/steps`
pub async fn steps(State(app): State<App>, Path(id): Path<String>, query: Parameters) -> Answer {
    let query = Query::of(query.0, &["cursor", "limit", "status"])?;
    let limit = usize::try_from(query.number("limit", 1000, 1, 10_000)?).unwrap_or(1000);
    let after = query.number("cursor", 0, 0, u64::MAX)?;
    let status = query.get("status").map(str::to_owned);
    if let Some(status) = status.as_deref().filter(|status| !STEP_STATUSES.contains(status)) {
        let detail = format!(
            "`status` must be one of {}, not {}",
            STEP_STATUSES.join(", "),
            quoted(status)
        );
        return Err(Problem::bad(detail));
    }
    let node = app.node.clone();
    let queues = node.queue_views(QUEUES).await.into_iter();
    let queues: HashMap<Text, QueueView> = queues.map(|queue| (queue.name.clone(), queue)).collect();
    let make = move || {
        let mut visits = Visits::new(limit).after(after);
        if let Some(status) = status {
            visits = visits.only(&status);
        }
        let mut ended = None;
        node.each_event(&id, |flow, event| {
            visits.see(flow, event);
            ended = Some(event.time);
            true
        })?;
        let over = node.store().record(&id)?.is_some_and(|record| record.ended.is_some());
        let (rows, next) = visits.into_rows(ended.filter(|_| over));
        let task = |call: EventId| (Text::from(id.as_str()), call);
        let waiting = rows.iter().filter_map(Row::awaited_worker);
        let holders = node.holders(waiting.map(|(call, _)| task(call)).collect());
        let standing = |call: EventId, queue: &str| match holders.get(&task(call)) {
            Some((worker, since)) => Some(format!("`{worker}` has it since {since}")),
            None => queues.get(queue).map(queue_in_words),
        };
        let items = rows.into_iter().map(|row| row.into_value(standing)).collect();
        Ok::<_, Problem>(shapes::page(items, next.map(Value::from)))
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}

/// Queues that steps are said more of.
pub(super) const QUEUES: usize = 1_000;

/// How a queue stands, for whoever waits for one of its workers.
fn queue_in_words(view: &QueueView) -> String {
    if view.settings.paused {
        return "it is paused".to_owned();
    }
    let serving = match (view.workers, view.busy) {
        (0, 0) => "no worker".to_owned(),
        (idle, busy) => format!("workers: {idle} idle, {busy} busy"),
    };
    format!("{} waiting, {} held, {serving}", view.waiting, view.held)
}
