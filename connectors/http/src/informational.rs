//! Counts the informational answers (`100 Continue`, `103 Early Hints`) before an answer, because a peer may send
//! them endlessly.

use crate::excess::{MAX_ANSWERS, MAX_BYTES, TooManyAnswers};
use crate::stream::Cut;
use http::{Extensions, HeaderMap};
use hyper_util::client::legacy::connect::{CaptureConnection, capture_connection};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The informational answers before the answer to one request.
#[derive(Default)]
pub(crate) struct Informed {
    answers: AtomicUsize,
    bytes: AtomicUsize,
}

impl Informed {
    /// Fails if more came than is allowed.
    pub(crate) fn admit(&self) -> Result<(), TooManyAnswers> {
        let many = self.answers.load(Ordering::Relaxed) > MAX_ANSWERS || self.bytes.load(Ordering::Relaxed) > MAX_BYTES;
        if many { Err(TooManyAnswers) } else { Ok(()) }
    }

    fn add(&self, headers: &HeaderMap) {
        let bytes = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        self.answers.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes.sum(), Ordering::Relaxed);
    }
}

/// Counts the informational answers before the answer to a request. If there are too many, the
/// connection is cut.
pub(crate) fn count(request: &mut http::Request<String>) -> Arc<Informed> {
    let informed = Arc::new(Informed::default());
    let connection = capture_connection(request);
    let counted = informed.clone();
    hyper::ext::on_informational(request, move |answer| {
        counted.add(answer.headers());
        if let Err(too_many) = counted.admit() {
            cut(&connection, too_many);
        }
    });
    informed
}

/// Called while the connection is read: every later read fails.
fn cut(connection: &CaptureConnection, reason: TooManyAnswers) {
    let mut known = Extensions::new();
    if let Some(connected) = connection.connection_metadata().as_ref() {
        connected.get_extras(&mut known);
    }
    if let Some(cut) = known.get::<Cut>() {
        cut.because(reason);
    }
}
