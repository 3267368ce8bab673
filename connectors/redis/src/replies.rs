//! Reports from a stream, read through a consumer group. They arrive at least once, and are deleted only when they
//! are handled.
//!
//! After a start, and whenever an answer of Redis may have been lost, the first entries are those
//! that were delivered to this consumer's name but not acknowledged. Entries that any consumer has
//! had for too long are claimed from time to time.

mod entry;

use crate::failure::Failure;
use crate::link::{Link, RedisCommand};
use crate::{RedisSettings, ReplyStream};
use entry::Entry;
use redis::{Cmd, Value, cmd};
use starbridge_ports::{ReplyError, ReplyFuture, ReplyMessage, ReplySource};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// How late the answer to a blocking read may be.
const LATE: Duration = Duration::from_secs(2);
/// The id from which the entries of a group or of a claim begin.
const FIRST: &str = "0-0";

/// A stream of reports.
pub struct RedisReplies {
    plan: ReplyStream,
    name: String,
    patience: Duration,
    /// Used for blocking reads, so no other command goes through it.
    reading: Link,
    writing: Link,
    place: Mutex<ReadCursor>,
}

/// How far the stream has been read.
struct ReadCursor {
    /// The last entry seen of those delivered and not acknowledged; `None`: all have been seen.
    pending: Option<String>,
    /// Where the next claim begins.
    claim: String,
    /// When the next claim is due.
    claim_at: Instant,
}

impl RedisReplies {
    /// A source that reads this stream. Connections are opened when they are first needed, on the runtime of the
    /// caller.
    pub fn new(settings: &RedisSettings, plan: ReplyStream) -> Self {
        Self {
            name: format!("redis:{} at {}", plan.stream, settings.address),
            patience: settings.patience,
            reading: Link::new(settings),
            writing: Link::new(settings),
            place: Mutex::new(ReadCursor {
                pending: Some(FIRST.to_owned()),
                claim: FIRST.to_owned(),
                claim_at: Instant::now(),
            }),
            plan,
        }
    }

    /// The dead-letter stream.
    fn dead(&self) -> String {
        format!("{}:dead", self.plan.stream)
    }

    async fn next(&self) -> Result<Vec<ReplyMessage>, Failure> {
        let mut place = self.place.lock().await;
        if place.claim_at <= Instant::now() {
            // As below: claimed entries count as delivered.
            let pending = place.pending.replace(FIRST.to_owned());
            let claimed = self.claim(&mut place).await?;
            place.pending = pending;
            if !claimed.is_empty() {
                return Ok(claimed);
            }
        }
        while let Some(after) = place.pending.clone() {
            let read = self.read(&after, None).await?;
            place.pending = read.last().map(|entry| entry.id.clone());
            let messages = self.messages(read).await?;
            if !messages.is_empty() {
                return Ok(messages);
            }
        }
        // Until the answer arrives, entries may have been delivered that no one has seen.
        place.pending = Some(FIRST.to_owned());
        let read = self.read(">", Some(self.plan.block)).await?;
        place.pending = None;
        self.messages(read).await
    }

    async fn read(&self, after: &str, block: Option<Duration>) -> Result<Vec<Entry>, Failure> {
        let plan = &self.plan;
        let mut command = cmd("XREADGROUP");
        command.arg("GROUP").arg(&plan.group).arg(&plan.consumer);
        command.arg("COUNT").arg(plan.count);
        if let Some(block) = block {
            // 0 would mean forever.
            command.arg("BLOCK").arg(block.as_millis().max(1).to_string());
        }
        command.arg("STREAMS").arg(&plan.stream).arg(after);
        // A read that was dropped may still block, and this one comes after it.
        let within = self.plan.block + self.patience.max(LATE);
        let answer = self.of_group(&self.reading, &command, within).await?;
        Ok(entry::of_reading(&answer))
    }

    async fn claim(&self, place: &mut ReadCursor) -> Result<Vec<ReplyMessage>, Failure> {
        let plan = &self.plan;
        let mut command = cmd("XAUTOCLAIM");
        command.arg(&plan.stream).arg(&plan.group).arg(&plan.consumer);
        command.arg(plan.claim_after.as_millis().to_string());
        command.arg(&place.claim).arg("COUNT").arg(plan.count);
        let answer = self.of_group(&self.writing, &command, self.patience).await?;
        let (next, claimed) = entry::of_claiming(&answer);
        place.claim = if next.is_empty() { FIRST.to_owned() } else { next };
        if place.claim == FIRST {
            place.claim_at = Instant::now() + plan.claim_after / 4;
        }
        self.messages(claimed).await
    }

    /// Sends a command about the group. If the group does not exist, creates it first: at the beginning, and after
    /// Redis has lost its data.
    async fn of_group(&self, link: &Link, command: &Cmd, within: Duration) -> Result<Value, Failure> {
        match link.ask(RedisCommand::Once(command), within).await {
            Err(failure) if failure.code.as_deref() == Some("NOGROUP") => {
                let mut create = cmd("XGROUP");
                create.arg("CREATE").arg(&self.plan.stream).arg(&self.plan.group);
                create.arg("0").arg("MKSTREAM");
                match self.writing.ask(RedisCommand::Again(&create), self.patience).await {
                    Err(failure) if failure.code.as_deref() != Some("BUSYGROUP") => return Err(failure),
                    _ => {}
                }
                link.ask(RedisCommand::Once(command), within).await
            }
            answer => answer,
        }
    }

    /// The reports in entries. Entries that were deleted have no report and are acknowledged.
    async fn messages(&self, entries: Vec<Entry>) -> Result<Vec<ReplyMessage>, Failure> {
        let mut messages = Vec::with_capacity(entries.len());
        let mut gone = Vec::new();
        for entry in entries {
            let id = entry.id.clone();
            match entry.into_message() {
                Some(message) => messages.push(message),
                None => gone.push(id),
            }
        }
        if !gone.is_empty() {
            let command = self.acknowledge(&gone);
            self.writing.ask(RedisCommand::Again(&command), self.patience).await?;
        }
        Ok(messages)
    }

    fn acknowledge(&self, ids: &[String]) -> Cmd {
        let mut command = cmd("XACK");
        command.arg(&self.plan.stream).arg(&self.plan.group).arg(ids);
        command
    }

    fn delete(&self, ids: &[String]) -> Cmd {
        let mut command = cmd("XDEL");
        command.arg(&self.plan.stream).arg(ids);
        command
    }

    /// Deletes entries, then acknowledges them. An entry that is deleted but not acknowledged is
    /// found again; one that is acknowledged but not deleted never is.
    async fn finish(&self, ids: &[String]) -> Result<(), Failure> {
        for command in [self.delete(ids), self.acknowledge(ids)] {
            self.writing.ask(RedisCommand::Again(&command), self.patience).await?;
        }
        Ok(())
    }

    async fn dead_letter(&self, message: &ReplyMessage, reason: &str) -> Result<(), Failure> {
        let ids = [message.handle.clone()];
        let mut add = cmd("XADD");
        add.arg(self.dead()).arg("*").arg("id").arg(&message.handle);
        add.arg("reason").arg(reason).arg("body").arg(&message.body);
        let mut together = redis::pipe();
        together.atomic();
        for command in [add, self.delete(&ids), self.acknowledge(&ids)] {
            together.add_command(command);
        }
        self.writing
            .ask(RedisCommand::Together(&together), self.patience)
            .await?;
        Ok(())
    }
}

fn reply_error(failure: &Failure) -> ReplyError {
    ReplyError(format!("{}: {}", failure.error, failure.cause))
}

impl ReplySource for RedisReplies {
    fn name(&self) -> &str {
        &self.name
    }

    fn receive(&self) -> ReplyFuture<'_, Vec<ReplyMessage>> {
        Box::pin(async move { self.next().await.map_err(|failure| reply_error(&failure)) })
    }

    fn done(&self, messages: Vec<ReplyMessage>) -> ReplyFuture<'_, ()> {
        let ids: Vec<String> = messages.into_iter().map(|message| message.handle).collect();
        Box::pin(async move {
            if ids.is_empty() {
                return Ok(());
            }
            self.finish(&ids).await.map_err(|failure| reply_error(&failure))
        })
    }

    fn reject(&self, message: ReplyMessage, reason: String) -> ReplyFuture<'_, ()> {
        Box::pin(async move {
            self.dead_letter(&message, &reason)
                .await
                .map_err(|failure| reply_error(&failure))
        })
    }
}
