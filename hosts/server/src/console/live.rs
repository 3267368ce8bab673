//! Word of changes for the page of an execution: that there are further events, not what they say. The page asks for what
//! it shows.

use super::answer::Refusal;
use super::page::Page;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_node::node::{Follower, Heard};
use starbridge_node::problem::Problem;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio_stream::Stream;

/// A page hears at most so often of changes; what happens between is one word.
const BETWEEN: Duration = Duration::from_millis(250);

/// `GET /executions/{id}/live`
pub async fn live(page: Page, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let seen = headers.get("last-event-id").and_then(|seen| seen.to_str().ok());
    let begun = match seen.map(str::parse::<u64>) {
        None => page.app.node.last_event(&id).map(|last| last.0),
        Some(Ok(seen)) => Ok(seen),
        Some(Err(_)) => {
            let refusal = Refusal::from(Problem::bad("`Last-Event-ID` must be the number of an event"));
            return refusal.page(&page.frame);
        }
    };
    let followed = match begun {
        Ok(seen) => {
            let next = EventId(seen.saturating_add(1));
            let follower = page.app.node.follow(&Text::from(id), next).await;
            follower.map(|follower| (follower, seen)).map_err(Problem::from)
        }
        Err(error) => Err(Problem::from(error)),
    };
    match followed {
        Ok((follower, seen)) => {
            let words = Words(Some(Box::pin(hear(follower, seen))));
            let headers = [
                (header::CONTENT_TYPE, "text/event-stream"),
                (header::CACHE_CONTROL, "no-store"),
            ];
            (headers, Body::from_stream(words)).into_response()
        }
        Err(problem) => Refusal::from(problem).page(&page.frame),
    }
}

/// What is said, and the follower with the last event it has heard of; none after the end.
type Said = (Bytes, Option<(Follower, u64)>);

/// The words that a page hears. The follower is dropped with its reader.
struct Words(Option<Pin<Box<dyn Future<Output = Said> + Send>>>);

async fn hear(mut follower: Follower, seen: u64) -> Said {
    match follower.heard().await {
        Ok(Heard::Events(events)) => {
            let last = last_id(&events).unwrap_or(seen);
            tokio::time::sleep(BETWEEN).await;
            let word = format!("id: {last}\ndata: {last}\n\n");
            (word.into(), Some((follower, last)))
        }
        Ok(Heard::Nothing) => (Bytes::from_static(b":\n\n"), Some((follower, seen))),
        Ok(Heard::Ended) => (Bytes::from_static(b"event: end\ndata: 0\n\n"), None),
        // The page asks again, and is told why.
        Err(_) => (Bytes::new(), None),
    }
}

/// The number of the last event of some.
fn last_id(events: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(events).ok()?;
    let ids = text.lines().rev().find_map(|line| line.strip_prefix("id: "));
    ids?.parse().ok()
}

impl Stream for Words {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(next) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let (said, follower) = ready!(next.as_mut().poll(context));
        self.0 = follower.map(|(follower, seen)| Box::pin(hear(follower, seen)) as _);
        match said.is_empty() {
            true => Poll::Ready(None),
            false => Poll::Ready(Some(Ok(said))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::last_id;

    #[test]
    fn last_event_is_that_of_the_last_line() {
        assert_eq!(
            last_id(b"id: 7\ndata: {}\n\nid: 12\ndata: {\"x\":\"id: 9\"}\n\n"),
            Some(12)
        );
        assert_eq!(last_id(b":\n\n"), None);
    }
}
