//! Answers with data: written where that holds up nobody, and all together within a budget until they are taken.

use crate::App;
use crate::budget::{Budget, Due, Share};
use crate::shapes;
use axum::body::Bytes;
use axum::http::StatusCode;
use starbridge_flow::value::{Object, Text, Value};
use starbridge_node::large::{self, SMALL};
use starbridge_node::node::{Kept, Looked, Node};
use starbridge_node::problem::{Answer, Problem};
use starbridge_runtime::Snapshot;
use std::sync::Arc;

/// What answers may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerSettings {
    /// Bytes of all answers that are under way: read to be written, or written and not taken. Small ones do not count.
    pub in_flight: usize,
}

impl Default for AnswerSettings {
    fn default() -> Self {
        Self {
            in_flight: 256 * 1024 * 1024,
        }
    }
}

/// All answers under way.
#[derive(Debug)]
pub struct Answers {
    budget: Arc<Budget>,
}

/// Room for one answer, given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    share: Share,
    /// Whether it is given to who has had something done: that is said in any case.
    owed: bool,
}

/// An execution that is to be shown.
#[derive(Debug)]
pub enum Found {
    /// As it was kept: its data are to be read.
    Kept(Kept),
    /// As it is in memory.
    Live(Snapshot),
}

impl Answers {
    /// With nothing under way.
    pub fn new(settings: AnswerSettings) -> Arc<Self> {
        Arc::new(Self {
            budget: Budget::new(settings.in_flight),
        })
    }

    /// Room for an answer that is only read.
    pub fn room(&self) -> Room {
        Room {
            share: self.budget.share(),
            owed: false,
        }
    }

    /// Room for the answer to something that is about to be done with so many bytes; none, and it is better not begun.
    pub fn room_before(&self, bytes: usize) -> Answer<Room> {
        let mut room = self.room();
        room.hold(bytes)?;
        room.owed = true;
        Ok(room)
    }

    /// An answer of a value.
    pub async fn value(&self, status: StatusCode, value: Value) -> Answer {
        self.room().write(status, value.json_len(), move || Ok(value)).await
    }

    /// A part of a stream that is written already. The parts of ordinary events are small, whatever comes together.
    pub fn part(&self, bytes: Bytes) -> Answer<Bytes> {
        if bytes.len() <= 2 * SMALL {
            return Ok(bytes);
        }
        let mut room = self.room();
        room.hold(bytes.len())?;
        Ok(room.bytes(bytes))
    }

    /// An answer that is written already, to something that was done.
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
    /// Holds room for so many bytes. Small answers need none.
    pub fn hold(&mut self, bytes: usize) -> Answer<()> {
        let counted = if bytes <= SMALL { 0 } else { bytes };
        if self.owed {
            self.share.force(counted);
        } else if !self.share.set(counted, Due::Whole) {
            return Err(full());
        }
        Ok(())
    }

    /// Bytes that hold their room until the last of them is dropped.
    fn bytes<T: AsRef<[u8]> + Into<Bytes> + Send + 'static>(self, bytes: T) -> Bytes {
        if self.share.bytes() == 0 {
            return bytes.into();
        }
        Bytes::from_owner(Written { bytes, _room: self })
    }

    /// Makes a value of so many bytes of JSON, and an answer of it.
    pub async fn write(
        mut self,
        status: StatusCode,
        bytes: usize,
        make: impl FnOnce() -> Answer<Value> + Send + 'static,
    ) -> Answer {
        self.hold(self.share.bytes().max(bytes))?;
        large::work(bytes, move || self.finish(status, make)).await?
    }

    /// The same where nobody knows before how large it is: as if it was large.
    pub async fn write_all(self, status: StatusCode, make: impl FnOnce() -> Answer<Value> + Send + 'static) -> Answer {
        large::work(usize::MAX, move || self.finish(status, make)).await?
    }

    fn finish(mut self, status: StatusCode, make: impl FnOnce() -> Answer<Value>) -> Answer {
        let value = make()?;
        self.hold(value.json_len())?;
        Ok(shapes::json(status, self.bytes(value.to_json())))
    }

    /// An answer of an execution.
    pub async fn execution(self, status: StatusCode, found: Found) -> Answer {
        self.write(status, found.bytes(), move || Ok(shapes::execution(&found.read()?)))
            .await
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
    /// Bytes of JSON that reading and showing it deals with.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Kept(kept) => kept.bytes(),
            Self::Live(begun) => begun.input.json_len() + begun.output.as_ref().map_or(0, Object::json_len),
        }
    }

    /// Reads it.
    pub fn read(self) -> Looked<Snapshot> {
        match self {
            Self::Kept(kept) => kept.snapshot(),
            Self::Live(begun) => Ok(begun),
        }
    }
}

/// An execution as it is kept, with room to be shown.
pub async fn find(app: &App, id: Text, mut room: Room) -> Answer<(Kept, Room)> {
    aside(&app.node, move |node| {
        let kept = node.kept(&id)?;
        // What is read takes memory from now on, while it waits to be shown.
        room.hold(kept.bytes())?;
        Ok::<_, Problem>((kept, room))
    })
    .await?
}

/// Work that reads the store leaves the threads that answer requests alone.
pub async fn aside<T: Send + 'static>(
    node: &Arc<Node>,
    work: impl FnOnce(&Node) -> T + Send + 'static,
) -> Result<T, Problem> {
    let node = node.clone();
    let done = tokio::task::spawn_blocking(move || work(&node)).await;
    done.map_err(|_| Problem::not_done())
}
