//! Following a history: each event is read and written once for all followers.

use super::chunks::Chunk;
use super::permits::{NoWaitPermit, WaitPermit};
use super::watchers::{Edge, Watch};
use super::{Node, QueryError, QueryResult};
use crate::offload;
use axum::body::Bytes;
use starbridge_flow::graph::Flow;
use starbridge_flow::value::{Text, Value};
use starbridge_machine::EventId;
use starbridge_machine::history::write_event;
use starbridge_ports::{StoreError, Turn};
use starbridge_runtime::read_stored;
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How many events are read at a time, and after how many bytes a chunk gets no further event.
const READ_EVENTS: u32 = 100;
const CHUNK_BYTES: usize = 64 << 10;
/// After this time a history is checked even without an announced change, and its followers get a
/// sign that the connection is alive.
const SWEEP: Duration = Duration::from_secs(15);
/// How many histories are read at a time, for all followers.
pub(super) const MAX_CONCURRENT_READS: usize = 8;

/// Why a history can't be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowError {
    /// There is no such execution or event, or the store failed.
    Look(QueryError),
    /// Too many requests follow histories already.
    NoWaitPermit(NoWaitPermit),
}

/// The next message to a follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowerMessage {
    /// Further events as `text/event-stream`: their numbers and their JSON.
    Events(Bytes),
    /// There is nothing new.
    Nothing,
    /// The execution has ended, and the follower has received all its events.
    Ended,
}

/// A follower of a history.
pub struct Follower {
    node: Arc<Node>,
    watch: Watch,
    next: u64,
    /// The events read while checking whether the execution exists.
    read: Option<Arc<Chunk>>,
    _permit: WaitPermit,
}

impl Node {
    /// Follows the history of an execution from event `from` on.
    ///
    /// # Errors
    ///
    /// [`FollowError::Look`] if there is no such execution or the store fails, [`FollowError::NoWaitPermit`] if too many
    /// follow already.
    pub async fn follow(self: &Arc<Self>, execution: &Text, from: EventId) -> Result<Follower, FollowError> {
        let permit = self.followers.take(1).map_err(FollowError::NoWaitPermit)?;
        // Before the check, so that no change in between is missed.
        let watch = self.watchers.watch(execution);
        let mut follower = Follower {
            node: self.clone(),
            watch,
            next: from.0,
            read: None,
            _permit: permit,
        };
        // Whether the execution exists. It does if others follow it.
        if !follower.is_known() {
            follower.read = follower.read().await.map_err(FollowError::Look)?;
        }
        Ok(follower)
    }
}

impl Follower {
    fn is_known(&mut self) -> bool {
        self.watch.at_hand(self.next).is_some() || self.edge().is_some()
    }

    fn edge(&mut self) -> Option<Edge> {
        let turns = self.watch.turns();
        self.watch.feed().edge(turns, SWEEP)
    }

    /// How many bytes of the next events are already in memory.
    pub fn at_hand(&self) -> usize {
        let read = self.read.clone().or_else(|| self.watch.at_hand(self.next));
        read.map_or(0, |chunk| chunk.from(self.next).len())
    }

    /// Waits for the next events. Returns [`FollowerMessage::Nothing`] often enough to keep the connection
    /// open.
    ///
    /// # Errors
    ///
    /// [`QueryError`] if the store fails or the execution was deleted.
    pub async fn next_message(&mut self) -> QueryResult<FollowerMessage> {
        loop {
            let read = self.read.take();
            if let Some(chunk) = read.or_else(|| self.watch.at_hand(self.next)) {
                return Ok(self.take(&chunk));
            }
            match self.edge().filter(|edge| edge.next <= self.next) {
                Some(edge) if edge.ended => return Ok(FollowerMessage::Ended),
                Some(_) => {
                    if tokio::time::timeout(SWEEP, self.watch.changed()).await.is_err() {
                        return Ok(FollowerMessage::Nothing);
                    }
                }
                None => {
                    if let Some(chunk) = self.read().await? {
                        return Ok(self.take(&chunk));
                    }
                }
            }
        }
    }

    fn take(&mut self, chunk: &Chunk) -> FollowerMessage {
        let events = chunk.from(self.next);
        self.next = chunk.next();
        FollowerMessage::Events(events)
    }

    /// Reads the next events for all followers. `None` if another follower has read them meanwhile,
    /// or there is nothing new.
    async fn read(&mut self) -> QueryResult<Option<Arc<Chunk>>> {
        let feed = self.watch.feed().clone();
        let _reading = feed.reading.lock().await;
        if let Some(chunk) = self.watch.at_hand(self.next) {
            return Ok(Some(chunk));
        }
        if self.edge().is_some_and(|edge| edge.next <= self.next) {
            return Ok(None);
        }
        let turns = self.watch.turns();
        let (node, execution, from) = (self.node.clone(), self.watch.execution().clone(), self.next);
        let stopping = |_| QueryError::Store(StoreError::Unavailable("the server is stopping".to_owned()));
        let permit = self
            .node
            .reads
            .clone()
            .acquire_owned()
            .await
            .map_err(|error| stopping(error.to_string()))?;
        let reading = tokio::task::spawn_blocking(move || {
            let kept = node.kept_chunk(execution, from);
            (kept, permit)
        });
        let (kept, _permit) = reading.await.map_err(|error| stopping(error.to_string()))?;
        let kept = kept?;
        let read = offload::read(kept.bytes(), move || kept.read());
        let read = read
            .await
            .map_err(|_| stopping("nothing can be read any more".to_owned()))??;
        if let Some(ended) = read.end {
            feed.set_edge(Edge {
                next: read.chunk.next(),
                turns,
                ended,
                at: Instant::now(),
            });
        }
        let chunk = Arc::new(read.chunk);
        if chunk.is_empty() {
            return Ok(None);
        }
        self.watch.keep(&chunk);
        Ok(Some(chunk))
    }
}

struct Read {
    chunk: Chunk,
    /// Set if nothing comes after it: whether the execution had ended.
    end: Option<bool>,
}

/// The next events, as they are stored.
struct KeptChunk {
    execution: Text,
    flow: Arc<Flow>,
    from: u64,
    turns: Vec<Turn>,
    /// Whether the execution had ended before.
    ended: bool,
}

impl Node {
    /// The stored events from that one on.
    fn kept_chunk(&self, execution: Text, from: u64) -> QueryResult<KeptChunk> {
        // The record is read first: if the execution has ended by then, all its events are there.
        let record = self.store.record(&execution)?.ok_or(QueryError::NoSuchExecution)?;
        let flow = self.flow_of(&execution, &record)?;
        let turns = self.store.turns(&execution, EventId(from), READ_EVENTS, false)?;
        Ok(KeptChunk {
            execution,
            flow,
            from,
            turns,
            ended: record.ended.is_some(),
        })
    }
}

impl KeptChunk {
    fn bytes(&self) -> usize {
        self.turns.iter().map(|turn| turn.text.len()).sum()
    }

    fn read(self) -> QueryResult<Read> {
        let (mut text, mut ends) = (String::new(), Vec::new());
        let mut whole = true;
        'turns: for turn in self.turns {
            let events = read_stored(&self.flow, &self.execution, &turn)?;
            for event in events.iter().filter(|event| event.id.0 >= self.from) {
                whole = ends.len() < READ_EVENTS as usize && text.len() < CHUNK_BYTES;
                if !whole {
                    break 'turns;
                }
                let data = Value::from(write_event(&self.flow, event)).to_json();
                // Writing to a string can't fail.
                let _ = write!(text, "id: {}\ndata: {data}\n\n", event.id);
                ends.push(text.len());
            }
        }
        // If the limit was reached, there may be more.
        whole &= ends.len() < READ_EVENTS as usize;
        Ok(Read {
            chunk: Chunk::new(self.from, text.into_bytes(), ends),
            end: whole.then_some(self.ended),
        })
    }
}
