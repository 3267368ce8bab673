//! Trims long streams of entries that all their readers have acknowledged, and of nothing else.
//!
//! Redis itself trims by number, even entries that were not read. So the oldest entry that some
//! group still needs is looked up, and older ones are removed with `XTRIM MINID`. The groups are
//! asked before their pending entries: entries delivered in between are newer than those they had
//! received. A stream without groups keeps everything.

use crate::link::{Link, RedisCommand};
use redis::streams::{StreamInfoGroupsReply, StreamPendingReply};
use redis::{Cmd, FromRedisValue, cmd};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// After this many messages, the length of a stream is checked; the first message counts.
const TRIM_EVERY_MESSAGES: u32 = 1_000;
/// How many streams have counters. With more, all counters start again.
const MAX_STREAMS: usize = 10_000;
/// How long one check may take. The next one is never far away.
const TIME: Duration = Duration::from_secs(10);

/// The id of an entry: milliseconds and a number.
type Id = (u64, u64);

/// Trims streams in the background.
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

    /// Counts a message, and checks its stream when that is due.
    pub(crate) fn sent(&self, stream: &str) {
        if self.above == 0 || !self.is_due(stream) {
            return;
        }
        let (link, stream, above) = (self.link.clone(), stream.to_owned(), self.above);
        // A failed check is repeated some messages later.
        tokio::spawn(async move { trim(&link, &stream, above).await });
    }

    fn is_due(&self, stream: &str) -> bool {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = sent.get_mut(stream) {
            *count = (*count + 1) % TRIM_EVERY_MESSAGES;
            return *count == 0;
        }
        if sent.len() >= MAX_STREAMS {
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
    let answer = link.ask(RedisCommand::Again(command), TIME).await.ok()?;
    T::from_redis_value(answer).ok()
}

fn id(text: &str) -> Option<Id> {
    let (millis, number) = text.split_once('-')?;
    Some((millis.parse().ok()?, number.parse().ok()?))
}
