//! A body that promises more than it has.

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use http_body::Frame;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body that does not say how long it is, so that a header may say something else; the server closes a connection on
/// which it can't send as much as was promised.
pub(super) struct Half {
    body: Body,
    /// Whether the end was held back once, which makes the server send what it has before it finds out.
    held: bool,
}

impl Half {
    pub(super) fn of(body: Vec<u8>) -> Self {
        Self {
            body: Body::from(body),
            held: false,
        }
    }
}

impl HttpBody for Half {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let half = self.get_mut();
        let frame = Pin::new(&mut half.body).poll_frame(context);
        if matches!(frame, Poll::Ready(None)) && !half.held {
            half.held = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        frame
    }
}
