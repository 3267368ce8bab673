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
use starbridge_machine::history::SHORT_TYPES;
use starbridge_node::http::reading::Query;
use starbridge_node::node::{Follower, FollowerMessage};
use starbridge_node::problem::{Answer, Problem, quoted};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio_stream::Stream;

type Parameters = axum::extract::Query<Vec<(String, String)>>;

/// `GET /v1/executions/{id}/history`
pub async fn history(State(app): State<App>, Path(id): Path<String>, headers: HeaderMap, query: Parameters) -> Answer {
    const KNOWN: &[&str] = &["from", "limit", "order", "expand", "at", "type", "step", "failed"];
    let query = Query::of(query.0, KNOWN)?;
    let expand = query.flag("expand")?;
    let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.contains("text/event-stream")) {
        if expand || query.time("at")?.is_some() || Wanted::of(&query)?.is_some() {
            let detail = "a stream has all events: `at`, `type`, `step`, `failed` and `expand` go with pages";
            return Err(Problem::bad(detail));
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
    let mut from = query.number("from", usual, 1, u64::MAX)?;
    if let Some(time) = query.time("at")? {
        let of = id.clone();
        if backwards {
            return Err(Problem::bad("`at` goes with `order=asc`: it says where to begin"));
        }
        let first = super::aside(&app.node, move |node| node.event_at(&of, time)).await??;
        from = from.max(first.0);
    }
    match Wanted::of(&query)? {
        Some(_) if expand => {
            let detail = "`expand` goes with whole pages: leave out `type`, `step` and `failed`";
            return Err(Problem::bad(detail));
        }
        Some(wanted) => return some(&app, id, wanted, from, limit, backwards).await,
        None if expand => return expanded(&app, id, from, (limit, backwards)).await,
        None => {}
    }
    let mut room = app.answers.room();
    let kept = super::aside(&app.node, move |node| {
        let last = node.last_event(&id)?;
        let from = EventId(from.min(if backwards { last.0 } else { u64::MAX }));
        let mut events = node.stored_events(&id, from, limit, backwards)?;
        room.hold(events.bytes())?;
        events.prefetch()?;
        Ok::<_, Problem>((events, last, room))
    });
    let (events, last, room) = kept.await??;
    let bytes = events.bytes();
    let make = move || Ok::<_, Problem>(page(events.read()?, last, backwards));
    room.write(StatusCode::OK, bytes, make).await
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

/// The requested events.
struct Wanted {
    types: Vec<String>,
    step: Option<String>,
    failed: bool,
}

impl Wanted {
    /// The events that a query requests; `None` for all.
    fn of(query: &Query) -> Answer<Option<Self>> {
        let failed = query.flag("failed")?;
        let types: Vec<String> = query.all("type").into_iter().map(str::to_owned).collect();
        let is_known = |word: &String| SHORT_TYPES.iter().any(|(known, _)| known == word);
        if let Some(unknown) = types.iter().find(|word| !is_known(word)) {
            let known: Vec<&str> = SHORT_TYPES.iter().map(|(known, _)| *known).collect();
            let known = known.join(", ");
            let detail = format!("there is no type {} of events: known are {known}", quoted(unknown));
            return Err(Problem::bad(detail));
        }
        let step = query.get("step").map(str::to_owned);
        let all = types.is_empty() && step.is_none() && !failed;
        Ok((!all).then_some(Self { types, step, failed }))
    }

    fn has(&self, event: &Object) -> bool {
        let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default();
        let detail = event.get("detail");
        let tells = || detail.is_some_and(|detail| detail.get("error").is_some());
        (self.types.is_empty() || self.types.iter().any(|word| word == text("type")))
            && self.step.as_deref().is_none_or(|step| step == text("step"))
            && (!self.failed || tells())
    }
}

/// How many events are looked at for a page of some of them.
const LOOKED: usize = 10_000;
/// How many events are read at a time.
const LOOKED_AT_ONCE: usize = 1_000;

/// A page of some of the events. Its `looked` is the last event that was looked at.
async fn some(app: &App, id: String, wanted: Wanted, from: u64, limit: usize, backwards: bool) -> Answer {
    let node = app.node.clone();
    let make = move || {
        let last = node.last_event(&id)?;
        let mut at = EventId(from.min(if backwards { last.0 } else { u64::MAX }));
        let (mut found, mut looked, mut next) = (Vec::new(), None, None);
        for _ in 0..LOOKED / LOOKED_AT_ONCE {
            let events = node.events(&id, at, LOOKED_AT_ONCE, backwards)?;
            next = None;
            for event in events {
                let number = event_number(&event).unwrap_or(at.0);
                if found.len() == limit {
                    next = Some(number);
                    break;
                }
                looked = Some(number);
                let beyond = if backwards { number > 1 } else { number < last.0 };
                at = EventId(if backwards {
                    number.saturating_sub(1)
                } else {
                    number + 1
                });
                next = beyond.then_some(at.0);
                if wanted.has(&event) {
                    found.push(event.into());
                }
            }
            if next.is_none() || found.len() == limit {
                break;
            }
        }
        let mut page = Object::new();
        page.insert("items".into(), found.into());
        page.insert("next".into(), next.map(Value::from).unwrap_or_default());
        page.insert("looked".into(), looked.map(Value::from).unwrap_or_default());
        Ok::<_, Problem>(page.into())
    };
    app.answers.room().write_all(StatusCode::OK, make).await
}

fn event_number(event: &Object) -> Option<u64> {
    event.get("id").and_then(Value::as_number)?.as_u64()
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
    let end = events.last().and_then(event_number);
    let next = match end {
        Some(end) if backwards && end > 1 => Some(end - 1),
        Some(end) if !backwards && end < last.0 => Some(end + 1),
        _ => None,
    };
    let items = events.into_iter().map(Value::from).collect();
    shapes::page(items, next.map(Value::from))
}

/// Streams events until the execution has ended. `Last-Event-ID` is the position of the reader.
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
    // If even the first events have no room, the answer says why.
    app.answers.room().hold(follower.at_hand())?;
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    let events = Events::of(follower, app.answers.clone());
    Ok((headers, Body::from_stream(events)).into_response())
}

/// The events for a follower, as the body of an answer. The follower is dropped with its reader.
struct Events {
    next: Option<Hearing>,
    answers: Arc<Answers>,
}

/// A follower that waits, and its next message; `None` if nothing more comes.
type Hearing = Pin<Box<dyn Future<Output = (Follower, Option<FollowerMessage>)> + Send>>;

impl Events {
    fn of(follower: Follower, answers: Arc<Answers>) -> Self {
        Self {
            next: Some(Box::pin(hear(follower))),
            answers,
        }
    }
}

async fn hear(mut follower: Follower) -> (Follower, Option<FollowerMessage>) {
    let heard = follower.next_message().await;
    // If the history can't be read any more, the stream ends. The client asks again and then gets
    // the reason.
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
            Some(FollowerMessage::Events(bytes)) => match self.answers.part(bytes) {
                Ok(bytes) => bytes,
                // There is no room. The client continues from here later.
                Err(_) => {
                    self.next = None;
                    return Poll::Ready(None);
                }
            },
            Some(FollowerMessage::Nothing) => Bytes::from_static(b":\n\n"),
            Some(FollowerMessage::Ended) => {
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
