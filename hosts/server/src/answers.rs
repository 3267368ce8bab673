//! Answers with data: written on separate threads, so that they delay no other request, and limited
//! together until clients have read them.

use crate::App;
use crate::shapes;
use axum::body::Bytes;
use axum::http::StatusCode;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::http::budget::{BodyBudget, Due, Share};
use starbridge_node::node::{Node, QueryResult, StoredExecution};
use starbridge_node::offload::{self, INLINE_BYTES};
use starbridge_node::problem::{Answer, Problem};
use starbridge_runtime::Snapshot;
use std::sync::Arc;

/// Limits for answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerSettings {
    /// How many bytes all answers in progress may have: those being read, written or sent. Small ones do not count.
    pub in_flight: usize,
}

impl Default for AnswerSettings {
    fn default() -> Self {
        Self {
            in_flight: 256 * 1024 * 1024,
        }
    }
}

/// All answers in progress.
#[derive(Debug)]
pub struct Answers {
    budget: Arc<BodyBudget>,
}

/// Room for one answer. It is given back when this is dropped.
#[derive(Debug)]
pub struct Room {
    share: Share,
    /// Whether the request changed something, so that it must be answered in any case.
    owed: bool,
}

/// An execution to show.
#[derive(Debug)]
pub enum Found {
    /// A stored one, whose data is still to be read.
    Stored(Box<StoredExecution>),
    /// One in memory.
    Live(Box<Snapshot>),
    /// One whose data is not for the one who asked.
    Withheld(Box<Found>),
}

/// What is shown of an execution without its data.
const IDENTITY: [&str; 9] = [
    "priority",
    "id",
    "flow",
    "version",
    "name",
    "status",
    "requestedTime",
    "startedTime",
    "endedTime",
];

impl Answers {
    /// Answers with these limits, none in progress.
    pub fn new(settings: AnswerSettings) -> Arc<Self> {
        Arc::new(Self {
            budget: BodyBudget::new(settings.in_flight),
        })
    }

    /// Room for an answer that only reads.
    pub fn room(&self) -> Room {
        Room {
            share: self.budget.share(),
            owed: false,
        }
    }

    /// Room for the answer to a change that is about to be made, of this many bytes. If there is
    /// none, the change should not begin.
    pub fn room_before(&self, bytes: usize) -> Answer<Room> {
        let mut room = self.room();
        room.hold(bytes)?;
        room.owed = true;
        Ok(room)
    }

    /// An answer with a value.
    pub async fn value(&self, status: StatusCode, value: Value) -> Answer {
        self.room().write(status, value.json_len(), move || Ok(value)).await
    }

    /// A part of a stream that is already written. Parts with ordinary events are small, even if
    /// many come together.
    pub fn part(&self, bytes: Bytes) -> Answer<Bytes> {
        if bytes.len() <= 2 * INLINE_BYTES {
            return Ok(bytes);
        }
        let mut room = self.room();
        room.hold(bytes.len())?;
        Ok(room.bytes(bytes))
    }

    /// An answer that is already written, to a request that changed something.
    pub fn written(&self, status: StatusCode, json: String) -> Answer {
        let mut room = self.room();
        room.owed = true;
        room.hold(json.len())?;
        Ok(shapes::json(status, room.bytes(json)))
    }
}

fn full() -> Problem {
    let detail = "other answers that are under way take all the memory there is for them \
                  (`server.answer_bytes_in_flight`): try again later";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "TooManyAnswers", detail)
}

impl Room {
    /// Takes room for this many bytes. Small answers need none.
    pub fn hold(&mut self, bytes: usize) -> Answer<()> {
        let counted = if bytes <= INLINE_BYTES { 0 } else { bytes };
        if self.owed {
            self.share.force(counted);
        } else if !self.share.set(counted, Due::Whole) {
            return Err(full());
        }
        Ok(())
    }

    /// Bytes that keep their room until the last of them is dropped.
    fn bytes<T: AsRef<[u8]> + Into<Bytes> + Send + 'static>(self, bytes: T) -> Bytes {
        if self.share.bytes() == 0 {
            return bytes.into();
        }
        Bytes::from_owner(Written { bytes, _room: self })
    }

    /// Makes a value of this many bytes of JSON, and an answer with it.
    pub async fn write(
        mut self,
        status: StatusCode,
        bytes: usize,
        make: impl FnOnce() -> Answer<Value> + Send + 'static,
    ) -> Answer {
        self.hold(self.share.bytes().max(bytes))?;
        match status {
            // An execution that began is told of at once.
            StatusCode::CREATED => offload::work(bytes, move || self.finish(status, make)).await?,
            _ => offload::read(bytes, move || self.finish(status, make)).await?,
        }
    }

    /// Makes an answer whose size is not known before, as if it were large.
    pub async fn write_all(self, status: StatusCode, make: impl FnOnce() -> Answer<Value> + Send + 'static) -> Answer {
        offload::read(usize::MAX, move || self.finish(status, make)).await?
    }

    fn finish(mut self, status: StatusCode, make: impl FnOnce() -> Answer<Value>) -> Answer {
        let value = make()?;
        self.hold(value.json_len())?;
        Ok(shapes::json(status, self.bytes(value.to_json())))
    }

    /// An answer with an execution.
    pub async fn execution(self, status: StatusCode, found: Found) -> Answer {
        self.write(status, found.bytes(), move || Ok(found.shape()?)).await
    }
}

/// Bytes that are being sent.
struct Written<T> {
    bytes: T,
    _room: Room,
}

impl<T: AsRef<[u8]>> AsRef<[u8]> for Written<T> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

impl Found {
    /// How many bytes of JSON reading and showing it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Stored(kept) => kept.bytes(),
            Self::Withheld(found) => found.bytes(),
            Self::Live(begun) => begun.input.json_len() + begun.output.as_ref().map_or(0, Value::json_len),
        }
    }

    /// The execution in the form of the API.
    pub fn shape(self) -> QueryResult<Value> {
        if let Self::Withheld(found) = self {
            let shape = found.shape()?;
            let members = IDENTITY
                .into_iter()
                .filter_map(|name| Some((name.into(), shape.get(name)?.clone())));
            return Ok(members.collect::<Object>().into());
        }
        let orphan = matches!(&self, Self::Stored(kept) if kept.parent_deleted);
        let begun = self.read()?;
        Ok(match orphan {
            true => shapes::orphan(&begun),
            false => shapes::execution(&begun),
        })
    }

    /// Reads the data of the execution.
    fn read(self) -> QueryResult<Snapshot> {
        match self {
            Self::Stored(kept) => kept.snapshot(),
            Self::Live(begun) => Ok(*begun),
            Self::Withheld(found) => found.read(),
        }
    }
}

/// A stored execution, with room to show it. There is room before its data is read.
pub async fn find(app: &App, id: Text, mut room: Room) -> Answer<(StoredExecution, Room)> {
    let of = id.clone();
    let begun = aside(&app.node, move |node| {
        let Some(mut kept) = node.stored_if_begun(&of)? else {
            return Ok(Err(room));
        };
        room.hold(kept.bytes())?;
        kept.prefetch()?;
        Ok::<_, Problem>(Ok((kept, room)))
    });
    let mut room = match begun.await?? {
        Ok(found) => return Ok(found),
        Err(room) => room,
    };
    // Few are read at a time: what they hold is known afterwards.
    let node = app.node.clone();
    let waiting = offload::read(usize::MAX, move || {
        let mut kept = node.stored(&id)?;
        room.hold(kept.bytes())?;
        kept.prefetch()?;
        Ok((kept, room))
    });
    waiting.await?
}

/// Does work that reads the store on another thread, because this one answers requests.
pub async fn aside<T: Send + 'static>(
    node: &Arc<Node>,
    work: impl FnOnce(&Node) -> T + Send + 'static,
) -> Result<T, Problem> {
    let node = node.clone();
    let done = tokio::task::spawn_blocking(move || work(&node)).await;
    done.map_err(|_| Problem::not_done())
}
