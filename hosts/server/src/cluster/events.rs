//! A stream of events that is passed on goes on at the next owner, with every number once.

use super::asking::{Front, Sent};
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::{Stream, StreamExt};

/// How long the next owner may take to come.
const PATIENCE: Duration = Duration::from_secs(20);
/// How many messages wait for a reader.
const WAITING: usize = 16;
/// Says up to which event a reader has the history.
const LAST: HeaderName = HeaderName::from_static("last-event-id");

/// The messages that go to the reader.
struct Messages(mpsc::Receiver<Bytes>);

impl Stream for Messages {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|message| message.map(Ok))
    }
}

/// The answer, with a body that outlives its owner.
pub(super) fn resumed(front: Arc<Front>, parts: Parts, from: SocketAddr, answered: Response<Body>) -> Response<Body> {
    let (head, body) = answered.into_parts();
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(pump(front, parts, from, body, sender));
    Response::from_parts(head, Body::from_stream(Messages(receiver)))
}

/// What was found in a part of a stream.
#[derive(Default)]
struct Whole {
    /// What has come of a message that is not complete.
    rest: Vec<u8>,
    /// The number of the last event that was complete.
    last: Option<String>,
    /// Whether the end of the history was among them.
    ended: bool,
}

impl Whole {
    /// The complete messages after these bytes.
    fn take(&mut self, bytes: &[u8]) -> Option<Bytes> {
        self.rest.extend_from_slice(bytes);
        let end = self.rest.windows(2).rposition(|pair| pair == b"\n\n")? + 2;
        let left = self.rest.split_off(end);
        let whole = std::mem::replace(&mut self.rest, left);
        for line in whole.split(|byte| *byte == b'\n') {
            if let Some(number) = line.strip_prefix(b"id:") {
                self.last = std::str::from_utf8(number).ok().map(|number| number.trim().to_owned());
            }
            self.ended |= line == b"event: end";
        }
        Some(whole.into())
    }
}

async fn pump(front: Arc<Front>, mut parts: Parts, from: SocketAddr, body: Body, sender: mpsc::Sender<Bytes>) {
    let mut whole = Whole::default();
    let mut body = Some(body);
    while let Some(reading) = body.take() {
        let Some(broken) = read(&front, reading, &mut whole, &sender).await else {
            return;
        };
        if whole.ended || sender.is_closed() {
            return;
        }
        // A stream that its owner has closed is the reader's to ask for again, unless the owner is another one now.
        if !broken && !changes(&front).await {
            return;
        }
        whole.rest.clear();
        if let Some(last) = whole.last.as_deref().and_then(|last| HeaderValue::from_str(last).ok()) {
            parts.headers.insert(LAST, last);
        }
        let until = Instant::now() + PATIENCE;
        let asked = front.ask(&parts, from, Sent::Kept(Bytes::new()), until);
        let answered = tokio::select! {
            answered = asked => answered,
            () = sender.closed() => return,
        };
        // Otherwise the reader asks again, and is told why.
        if answered.status() == StatusCode::OK {
            body = Some(answered.into_body());
        }
    }
}

/// Whether the owner changes soon.
async fn changes(front: &Front) -> bool {
    let mut role = front.role.clone();
    role.mark_unchanged();
    let changed = tokio::time::timeout(Duration::from_secs(2), role.changed()).await;
    matches!(changed, Ok(Ok(())))
}

/// Reads a body to its end. `Some(true)`: it broke; `None`: nobody reads any more.
async fn read(front: &Front, body: Body, whole: &mut Whole, sender: &mpsc::Sender<Bytes>) -> Option<bool> {
    let mut stream: BodyDataStream = body.into_data_stream();
    let mut role = front.role.clone();
    role.mark_unchanged();
    loop {
        let next = tokio::select! {
            next = stream.next() => next,
            // An owner that stands still breaks nothing.
            _ = role.changed() => return Some(true),
            () = sender.closed() => return None,
        };
        match next {
            None => return Some(false),
            Some(Err(_)) => return Some(true),
            Some(Ok(bytes)) => {
                if let Some(messages) = whole.take(&bytes) {
                    sender.send(messages).await.ok()?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_messages_go_on() {
        let mut whole = Whole::default();
        assert_eq!(whole.take(b"id: 1\ndata: {}\n"), None);
        assert_eq!(whole.last, None);
        assert_eq!(whole.take(b"\nid: 2\nda").unwrap(), "id: 1\ndata: {}\n\n");
        assert_eq!(whole.last.as_deref(), Some("1"));
        assert_eq!(whole.take(b"ta: {}\n\n:\n\n").unwrap(), "id: 2\ndata: {}\n\n:\n\n");
        assert_eq!((whole.last.as_deref(), whole.ended), (Some("2"), false));
        whole.take(b"event: end\ndata: {}\n\n");
        assert!(whole.ended);
    }
}
