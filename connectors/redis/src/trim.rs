//! Streams that grow long lose what all who read them have acknowledged, and nothing else.
//!
//! Redis trims by number, whether an entry was read or not. So the oldest entry that some group still needs is looked up,
//! and what is older goes: `XTRIM MINID`. The groups are asked before their pending entries: whatever is handed out in
//! between is newer than what they had got so far. A stream nobody reads through a group keeps everything.

use crate::link::{Asked, Link};
use redis::streams::{StreamInfoGroupsReply, StreamPendingReply};
use redis::{Cmd, FromRedisValue, cmd};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Messages of a stream after which its length is looked at; the first one counts.
const EVERY: u32 = 1_000;
/// Streams whose messages are counted: more, and all are counted anew.
const STREAMS: usize = 10_000;
/// How long a look may take: the next one is never far.
const TIME: Duration = Duration::from_secs(10);

/// An entry's id: milliseconds and a number.
type Id = (u64, u64);

/// Trims streams behind the back of those who send.
pub(crate) struct Trimmer {
    link: Arc<Link>,
    above: u64,
    sent: Mutex<HashMap<String, u32>>,
}

impl Trimmer {
    pub(crate) fn new(link: Arc<Link>, above: u64) -> Self {
        Self {
            link,
            above,
            sent: Mutex::new(HashMap::new()),
        }
    }

    /// Takes note of a message, and looks after its stream when it is time to.
    pub(crate) fn sent(&self, stream: &str) {
        if self.above == 0 || !self.is_due(stream) {
            return;
        }
        let (link, stream, above) = (self.link.clone(), stream.to_owned(), self.above);
        // What fails here is tried again some messages later.
        tokio::spawn(async move { trim(&link, &stream, above).await });
    }

    fn is_due(&self, stream: &str) -> bool {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = sent.get_mut(stream) {
            *count = (*count + 1) % EVERY;
            return *count == 0;
        }
        if sent.len() >= STREAMS {
            sent.clear();
        }
        sent.insert(stream.to_owned(), 0);
        true
    }
}

async fn trim(link: &Link, stream: &str, above: u64) -> Option<()> {
    let length: u64 = ask(link, cmd("XLEN").arg(stream)).await?;
    if length <= above {
        return None;
    }
    let groups: StreamInfoGroupsReply = ask(link, cmd("XINFO").arg("GROUPS").arg(stream)).await?;
    let mut needed: Option<Id> = None;
    for group in groups.groups {
        let mut still = id(&group.last_delivered_id)?;
        let pending: StreamPendingReply = ask(link, cmd("XPENDING").arg(stream).arg(&group.name)).await?;
        if let StreamPendingReply::Data(pending) = pending {
            still = still.min(id(&pending.start_id)?);
        }
        needed = Some(needed.map_or(still, |needed| needed.min(still)));
    }
    let (millis, number) = needed?;
    let mut trim = cmd("XTRIM");
    trim.arg(stream).arg("MINID").arg("~").arg(format!("{millis}-{number}"));
    let _: u64 = ask(link, &trim).await?;
    Some(())
}

async fn ask<T: FromRedisValue>(link: &Link, command: &Cmd) -> Option<T> {
    let answer = link.ask(Asked::Again(command), TIME).await.ok()?;
    T::from_redis_value(answer).ok()
}

fn id(text: &str) -> Option<Id> {
    let (millis, number) = text.split_once('-')?;
    Some((millis.parse().ok()?, number.parse().ok()?))
}
