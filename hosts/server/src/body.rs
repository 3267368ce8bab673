//! Bodies of requests: read once their sender is known, as fast as they come, and all together within a budget.

use crate::App;
use crate::budget::{Budget, Due, PART, Share};
use crate::connections::Watch;
use crate::reading;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use starbridge_flow::value::{Object, ReadError, Value};
use starbridge_node::large::{self, SMALL};
use starbridge_node::problem::{Answer, Problem};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// What bodies may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodySettings {
    /// Bytes of all bodies that are under way, and of the values read from them until they are dealt with.
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

/// Bytes a second that a body must come with, after the time it may pause.
const SLOWEST: u64 = 4 * 1024;
/// All bodies under way.
#[derive(Debug)]
pub struct Bodies {
    silence: Duration,
    all: Arc<Budget>,
    /// Of who has not shown a token.
    strangers: Arc<Budget>,
}

/// Whose a body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Somebody who may ask this.
    Known,
    /// Somebody whose tokens are in the body.
    Unknown,
}

/// Bytes that are counted until this is dropped.
#[derive(Debug)]
pub struct Charge {
    share: Share,
    /// The same bytes among those of strangers.
    stranger: Option<Share>,
}

impl Bodies {
    /// With nothing under way.
    pub fn new(settings: BodySettings) -> Arc<Self> {
        Arc::new(Self {
            silence: settings.silence,
            all: Budget::new(settings.in_flight),
            strangers: Budget::new(settings.in_flight / PART),
        })
    }

    /// A count of nothing yet.
    fn charge(&self, sender: Sender) -> Charge {
        Charge {
            share: self.all.share(),
            stranger: (sender == Sender::Unknown).then(|| self.strangers.share()),
        }
    }
}

impl Charge {
    /// Counts so many in all.
    pub fn set(&mut self, bytes: usize) -> Answer<()> {
        let before = self.share.bytes();
        if let Some(stranger) = &mut self.stranger
            && !stranger.set(bytes, Due::Strict)
        {
            return Err(full());
        }
        let due = if bytes > SMALL { Due::Common } else { Due::Whole };
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

/// A body that came whole, and what is counted for it as long as its request is dealt with.
pub struct Sent {
    bytes: Bytes,
    /// How many bytes came.
    length: usize,
    charge: Option<Charge>,
    /// What was read from it: the last who has it, so that it is dropped where that holds up nobody.
    value: Value,
}

impl Sent {
    /// Its bytes, and what they count for.
    pub fn into_parts(mut self) -> (Bytes, Option<Charge>) {
        (self.take(), self.charge.take())
    }

    /// Its bytes, which still count.
    pub fn take(&mut self) -> Bytes {
        std::mem::take(&mut self.bytes)
    }

    /// How many bytes came.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Its members. Without a body there are none; members that are not known are refused.
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

    /// Its value.
    pub async fn value(&mut self) -> Answer<Value> {
        self.parse("the body is no JSON").await
    }

    /// Reads the value in place of the bytes. What it takes in memory counts, while it grows beside them.
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
        let (read, bytes, charge) = large::work(self.length, reading).await?;
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
        large::discard(value.json_len(), (value, self.charge.take()));
    }
}

impl FromRequest<App> for Sent {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Answer<Self> {
        receive(request.into_body(), app.largest_body, &app.bodies, Sender::Known).await
    }
}

/// Reads a body to its end.
pub async fn receive(body: Body, limit: usize, bodies: &Arc<Bodies>, sender: Sender) -> Answer<Sent> {
    let mut body = body;
    let promised = body.size_hint();
    if promised.lower() > limit as u64 {
        return Err(too_large(limit));
    }
    // What is promised is believed only once half of it has come.
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

/// How fast a body comes.
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

    /// What comes next; nothing at the end.
    async fn next(&mut self, body: &mut Body) -> Answer<Option<Bytes>> {
        loop {
            let slowest = Duration::from_secs(self.arrived / SLOWEST);
            let last = self.began + self.silence + slowest;
            let deadline = last.min(Instant::now() + self.silence);
            let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx));
            let frame = tokio::time::timeout_at(deadline, pin!(frame)).await;
            match frame.map_err(|_| too_slow())? {
                None => return Ok(None),
                Some(Err(error)) => return Err(Problem::bad(format!("the body can't be read: {error}"))),
                Some(Ok(frame)) => {
                    // Trailers say nothing here.
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

/// Reads the body of somebody whose tokens are in it: whoever needs room may take that of their connection.
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
