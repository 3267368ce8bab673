//! Bodies of requests: read once their sender is known, at a minimum speed, and limited together.

use super::budget::{BodyBudget, Due, RESERVED_PART, Share};
use super::connections::Watch;
use super::reading;
use crate::offload::{self, INLINE_BYTES};
use crate::problem::{Answer, Problem};
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use starbridge_flow::value::{Object, ReadError, Value};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Limits for bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodySettings {
    /// How many bytes all bodies in progress may have, including the values read from them until these are handled.
    pub in_flight: usize,
    /// How long one may pause.
    pub silence: Duration,
}

impl Default for BodySettings {
    fn default() -> Self {
        Self {
            in_flight: 512 * 1024 * 1024,
            silence: Duration::from_secs(30),
        }
    }
}

/// How many bytes a second a body must have at least, after the time it may pause.
const MIN_BYTES_PER_SECOND: u64 = 4 * 1024;
/// All bodies in progress.
#[derive(Debug)]
pub struct Bodies {
    silence: Duration,
    all: Arc<BodyBudget>,
    /// The budget of senders that have not shown a token.
    strangers: Arc<BodyBudget>,
}

/// The sender of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// One that is allowed to make the request.
    Known,
    /// One whose tokens are in the body.
    Unknown,
}

/// Bytes that count until this is dropped.
#[derive(Debug)]
pub struct Charge {
    share: Share,
    /// The same bytes in the budget of unknown senders.
    stranger: Option<Share>,
}

impl Bodies {
    /// Bodies with these limits, none in progress.
    pub fn new(settings: BodySettings) -> Arc<Self> {
        Arc::new(Self {
            silence: settings.silence,
            all: BodyBudget::new(settings.in_flight),
            strangers: BodyBudget::new(settings.in_flight / RESERVED_PART),
        })
    }

    /// Text that was not received here. It counts, and the value read from it, as the body of a sender that is known.
    ///
    /// # Errors
    ///
    /// The problem `TooManyBodies` if there is no room for it.
    pub fn hold(&self, bytes: Bytes) -> Answer<Sent> {
        let mut charge = self.charge(Sender::Known);
        charge.set(bytes.len())?;
        Ok(Sent {
            length: bytes.len(),
            bytes,
            charge: Some(charge),
            value: Value::Null,
        })
    }

    /// A charge of nothing yet.
    fn charge(&self, sender: Sender) -> Charge {
        Charge {
            share: self.all.share(),
            stranger: (sender == Sender::Unknown).then(|| self.strangers.share()),
        }
    }
}

impl Charge {
    /// Sets how many bytes count in total.
    ///
    /// # Errors
    ///
    /// The problem `TooManyBodies` if there is no room for them.
    pub fn set(&mut self, bytes: usize) -> Answer<()> {
        let before = self.share.bytes();
        if let Some(stranger) = &mut self.stranger
            && !stranger.set(bytes, Due::Strict)
        {
            return Err(full());
        }
        let due = if bytes > INLINE_BYTES { Due::Common } else { Due::Whole };
        if self.share.set(bytes, due) {
            return Ok(());
        }
        if let Some(stranger) = &mut self.stranger {
            stranger.force(before);
        }
        Err(full())
    }
}

fn full() -> Problem {
    let detail = "the bodies of other requests take all the memory there is for them \
                  (`server.body_bytes_in_flight`): try again later";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "TooManyBodies", detail)
}

fn too_large(limit: usize) -> Problem {
    let detail = "the body is larger than this server takes";
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "BodyTooLarge", detail).with("limit", limit.into())
}

fn too_many_values(limit: usize) -> Problem {
    let detail = format!(
        "the body has too many small values: in memory they take more than {limit} bytes, six times the text and 32 MiB"
    );
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "ValueTooLarge", detail)
}

fn too_slow() -> Problem {
    let detail = "the body did not come in time (`server.body_seconds`)";
    Problem::new(StatusCode::REQUEST_TIMEOUT, "BodyTooSlow", detail)
}

/// A complete body, with what counts for it until its request is handled.
#[derive(Debug)]
pub struct Sent {
    bytes: Bytes,
    /// Its size in bytes.
    length: usize,
    charge: Option<Charge>,
    /// The value read from it. It is dropped last, where dropping it delays no request.
    value: Value,
}

impl Sent {
    /// Its bytes and their charge.
    pub fn into_parts(mut self) -> (Bytes, Option<Charge>) {
        (self.take(), self.charge.take())
    }

    /// Takes its bytes, which still count.
    pub fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes)
    }

    /// Its size in bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Reads its members. Without a body there are none. Unknown members are refused.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is not an object, has unknown members, or needs more
    /// memory than there is.
    pub async fn read(&mut self, known: &'static [&'static str]) -> Answer<reading::Body> {
        if self.bytes.is_empty() {
            return reading::Body::of(Object::new(), known);
        }
        match self.parse("the body is no JSON object").await? {
            Value::Object(members) => reading::Body::of(members, known),
            other => Err(Problem::bad(format!(
                "the body is no JSON object: expected an object, found {}",
                other.kind()
            ))),
        }
    }

    /// Reads its value.
    ///
    /// # Errors
    ///
    /// The problem to answer with, if it is not JSON or needs more memory than there is.
    pub async fn value(&mut self) -> Answer<Value> {
        self.parse("the body is no JSON").await
    }

    /// Replaces the bytes with the value. The memory of the value counts too, while it is built beside them.
    async fn parse(&mut self, wrong: &str) -> Answer<Value> {
        let bytes = self.take();
        let mut charge = self.charge.take();
        let reading = move || {
            let limit = Value::most_memory(bytes.len());
            let room = |value: usize| match &mut charge {
                Some(charge) => charge.set(bytes.len() + value).is_ok(),
                None => true,
            };
            let read = Value::read_counted(&bytes, limit, room);
            (read, bytes, charge)
        };
        let (read, bytes, charge) = offload::work(self.length, reading).await?;
        self.charge = charge;
        let (value, size) = read.map_err(|error| match error {
            ReadError::NoRoom => full(),
            ReadError::Syntax(error) => Problem::bad(format!("{wrong}: {error}")),
            ReadError::TooLarge { limit } => too_many_values(limit),
        })?;
        drop(bytes);
        if let Some(charge) = &mut self.charge {
            charge.set(size)?;
        }
        self.value = value.clone();
        Ok(value)
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.value);
        offload::discard(value.json_len(), (value, self.charge.take()));
    }
}

/// Reads a body to its end.
///
/// # Errors
///
/// The problem to answer with, if it is too large or too slow, or there is no room for it.
pub async fn receive(body: Body, limit: usize, bodies: &Arc<Bodies>, sender: Sender) -> Answer<Sent> {
    let mut body = body;
    let promised = body.size_hint();
    if promised.lower() > limit as u64 {
        return Err(too_large(limit));
    }
    // The announced length is only believed once half of it has arrived.
    let promised = promised
        .exact()
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(limit);
    let mut charge = bodies.charge(sender);
    let mut pace = Pace::new(bodies.silence);
    let mut first = Bytes::new();
    let mut gathered: Vec<u8> = Vec::new();
    while let Some(data) = pace.next(&mut body).await? {
        let arrived = first.len() + gathered.len() + data.len();
        if arrived > limit {
            return Err(too_large(limit));
        }
        if first.is_empty() && gathered.is_empty() {
            charge.set(arrived)?;
            first = data;
            continue;
        }
        if arrived > gathered.capacity() {
            let room = arrived.saturating_mul(2).min(promised.max(arrived));
            charge.set(room)?;
            gathered.reserve_exact(room - gathered.len());
        }
        gathered.extend_from_slice(&std::mem::take(&mut first));
        gathered.extend_from_slice(&data);
    }
    let bytes = if gathered.is_empty() {
        first
    } else {
        Bytes::from(gathered)
    };
    Ok(Sent {
        length: bytes.len(),
        bytes,
        charge: Some(charge),
        value: Value::Null,
    })
}

/// The speed of a body.
struct Pace {
    silence: Duration,
    began: Instant,
    arrived: u64,
}

impl Pace {
    fn new(silence: Duration) -> Self {
        Self {
            silence,
            began: Instant::now(),
            arrived: 0,
        }
    }

    /// The next bytes; `None` at the end.
    async fn next(&mut self, body: &mut Body) -> Answer<Option<Bytes>> {
        loop {
            let slowest = Duration::from_secs(self.arrived / MIN_BYTES_PER_SECOND);
            let last = self.began + self.silence + slowest;
            let deadline = last.min(Instant::now() + self.silence);
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx));
            let frame = tokio::time::timeout_at(deadline, pin!(frame)).await;
            match frame.map_err(|_| too_slow())? {
                None => return Ok(None),
                Some(Err(error)) => return Err(Problem::bad(format!("the body can't be read: {error}"))),
                Some(Ok(frame)) => {
                    // Trailers mean nothing here.
                    if let Ok(data) = frame.into_data()
                        && !data.is_empty()
                    {
                        self.arrived += data.len() as u64;
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// Reads the body of a sender whose tokens are in it. Its connection may be closed if others need
/// the space.
///
/// # Errors
///
/// Those of [`receive`].
pub async fn receive_from_stranger(request: Request, limit: usize, bodies: &Arc<Bodies>) -> Answer<(Parts, Sent)> {
    let (parts, body) = request.into_parts();
    let watch = parts.extensions.get::<Arc<Watch>>().cloned();
    if let Some(watch) = &watch {
        watch.unproved(true);
    }
    let sent = receive(body, limit, bodies, Sender::Unknown).await;
    if let Some(watch) = &watch {
        watch.unproved(false);
    }
    Ok((parts, sent?))
}
