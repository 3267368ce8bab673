//! The inboxes of the threads that own executions, and which thread has which shard.

use super::NotTaken;
use super::shard_claims::ShardClaims;
use starbridge_flow::time::Timestamp;
use starbridge_ports::{Epochs, ShardSet};
use starbridge_runtime::{Command, ShardTable};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, oneshot, watch};

/// How long a request waits for the next owner of a shard that moves.
const MOVE_PATIENCE: Duration = Duration::from_millis(200);

/// The inbox of each owner, and the table that says which owner has which shard. A clone is the same.
#[derive(Clone)]
pub(super) struct OwnerInboxes {
    inboxes: Arc<[mpsc::Sender<Command>]>,
    /// INVARIANT: whoever sends something to the owner of an execution holds this lock from the look-up on. So an owner that is told
    /// to give shards up after the table has changed gets nothing for them after that.
    table: Arc<RwLock<ShardTable>>,
    /// Tells those who wait for a shard that moves that the table has changed.
    changed: Arc<watch::Sender<()>>,
}

impl OwnerInboxes {
    /// The inboxes of owners that have equally many shards.
    pub(super) fn new(inboxes: Vec<mpsc::Sender<Command>>) -> Self {
        Self {
            table: Arc::new(RwLock::new(ShardTable::even(inboxes.len()))),
            inboxes: inboxes.into(),
            changed: Arc::default(),
        }
    }

    /// The table that says which owner has which shard. It does not change while the guard lives.
    pub(super) fn table(&self) -> RwLockReadGuard<'_, ShardTable> {
        // Nothing panics while the lock is held, so the table is intact.
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn give(&self, shards: &ShardSet, owner: Option<usize>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.give(shards, owner);
        drop(table);
        self.changed.send_replace(());
    }

    /// All inboxes, in the order of their owners.
    pub(super) fn all(&self) -> &[mpsc::Sender<Command>] {
        &self.inboxes
    }

    /// Sends a command to the owner of an execution. While nobody has its shard, there is no room for it.
    pub(super) fn send(&self, execution: &str, command: Command) -> Result<(), TrySendError<Command>> {
        let table = self.table();
        let owner = table.owner_of(execution).and_then(|owner| self.inboxes.get(owner));
        match owner {
            Some(owner) => owner.try_send(command),
            None => Err(TrySendError::Full(command)),
        }
    }

    /// Sends a command to the owner of an execution. While nobody has its shard, waits for the next owner, but not for long.
    pub(super) async fn send_patiently(&self, execution: &str, command: Command) -> Result<(), TrySendError<Command>> {
        let command = match self.send(execution, command) {
            Err(TrySendError::Full(command)) => command,
            sent => return sent,
        };
        self.await_table(|table| table.owner_of(execution).is_some()).await;
        self.send(execution, command)
    }

    /// Sends a command to the first owner from this one on that has shards. While nobody has any, waits, but not for long.
    pub(super) async fn send_to_one_patiently(
        &self,
        from: usize,
        command: Command,
    ) -> Result<(), TrySendError<Command>> {
        let command = match self.send_to_one(from, command) {
            Err(TrySendError::Full(command)) => command,
            sent => return sent,
        };
        let owners = 0..self.inboxes.len();
        self.await_table(|table| owners.clone().any(|owner| table.has_some(owner)))
            .await;
        self.send_to_one(from, command)
    }

    /// Waits until something holds for the table, but not for long.
    async fn await_table(&self, holds: impl Fn(&ShardTable) -> bool) {
        let mut changed = self.changed.subscribe();
        let waiting = async {
            while !holds(&self.table()) {
                // An error means that it changes no more.
                if changed.changed().await.is_err() {
                    break;
                }
            }
        };
        // Whoever asked is told to come again if it does not hold by then.
        let _ = tokio::time::timeout(MOVE_PATIENCE, waiting).await;
    }

    /// Sends a command to the first owner from this one on, in a circle, that has shards. While nobody has any, there is no room
    /// for it.
    pub(super) fn send_to_one(&self, from: usize, command: Command) -> Result<(), TrySendError<Command>> {
        let table = self.table();
        let count = self.inboxes.len().max(1);
        let mut owners = (0..count).map(|step| from.wrapping_add(step) % count);
        let owner = owners.find(|owner| table.has_some(*owner));
        match owner.and_then(|owner| self.inboxes.get(owner)) {
            Some(owner) => owner.try_send(command),
            None => Err(TrySendError::Full(command)),
        }
    }

    /// Moves shards to an owner. Their executions go on in the meantime until the calls that are out have ended, at most until a
    /// time; then nothing is taken for them until the new owner has them.
    /// The new owner appends under higher epochs: what the former one should still append is refused.
    pub(super) async fn move_shards(
        &self,
        shards: &ShardSet,
        to: usize,
        until: Timestamp,
        claims: &ShardClaims,
    ) -> Result<(), NotTaken> {
        let new_owner = self.inboxes.get(to).ok_or(NotTaken::Stopping)?;
        let owners = self.inboxes.iter().enumerate().filter(|(owner, _)| *owner != to);
        for (owner, inbox) in owners {
            let all = self.table().shards_of(owner);
            let moved = all.without(&all.without(shards));
            if moved.is_empty() {
                continue;
            }
            let (reply, answer) = oneshot::channel();
            let ending = Command::EndCalls {
                shards: moved,
                until,
                reply,
            };
            asked(inbox, ending, answer).await?;
            self.give(&moved, None);
            let (reply, answer) = oneshot::channel();
            let commands = asked(inbox, Command::GiveUp { shards: moved, reply }, answer).await?;
            let epochs = claimed_anew(claims, moved).await?;
            let (reply, answer) = oneshot::channel();
            let taking = Command::TakeIn {
                shards: moved,
                epochs,
                reply,
            };
            new_owner.send(taking).await.map_err(|_| NotTaken::Stopping)?;
            for command in commands {
                new_owner.send(command).await.map_err(|_| NotTaken::Stopping)?;
            }
            self.give(&moved, Some(to));
            answer.await.map_err(|_| NotTaken::Stopping)?;
        }
        Ok(())
    }
}

/// Claims shards anew. A store over a network answers late.
async fn claimed_anew(claims: &ShardClaims, shards: ShardSet) -> Result<Epochs, NotTaken> {
    let claims = claims.clone();
    let claimed = tokio::task::spawn_blocking(move || claims.claim(&shards)).await;
    match claimed {
        Ok(Ok(epochs)) => Ok(epochs),
        Ok(Err(error)) => {
            tracing::error!(%error, "shards that move can't be claimed");
            Err(NotTaken::Stopping)
        }
        Err(_) => Err(NotTaken::Stopping),
    }
}

/// Sends a command, and waits for its answer.
async fn asked<T>(
    inbox: &mpsc::Sender<Command>,
    command: Command,
    answer: oneshot::Receiver<T>,
) -> Result<T, NotTaken> {
    inbox.send(command).await.map_err(|_| NotTaken::Stopping)?;
    answer.await.map_err(|_| NotTaken::Stopping)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_runtime::Reply;

    const ID: &str = "0190b3e4-8c1d-7abc-9def-012345678903";

    fn command() -> (Command, oneshot::Receiver<Reply>) {
        let (reply, answer) = oneshot::channel();
        let command = Command::AwaitDurable { kept: false, reply };
        (command, answer)
    }

    /// Inboxes of two owners, with room for one command each.
    fn inboxes() -> (OwnerInboxes, Vec<mpsc::Receiver<Command>>) {
        let channels = (0..2).map(|_| mpsc::channel(1));
        let (senders, receivers): (Vec<_>, Vec<_>) = channels.unzip();
        (OwnerInboxes::new(senders), receivers)
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_waits_for_the_next_owner_of_a_shard_that_moves() {
        let (inboxes, mut receivers) = inboxes();
        inboxes.give(&ShardSet::ALL, None);
        let (of_execution, of_anybody) = (command(), command());
        let sending = async {
            tokio::join!(
                inboxes.send_patiently(ID, of_execution.0),
                inboxes.send_to_one_patiently(0, of_anybody.0)
            )
        };
        let moving = async {
            // Other shards than the one that is waited for.
            inboxes.give(&[7].into_iter().collect(), Some(0));
            tokio::task::yield_now().await;
            inboxes.give(&[3].into_iter().collect(), Some(1));
        };
        let (sent, ()) = tokio::join!(sending, moving);
        assert!(matches!(sent, (Ok(()), Ok(()))));
        assert!(receivers[0].try_recv().is_ok() && receivers[1].try_recv().is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_does_not_wait_long() {
        let (inboxes, mut receivers) = inboxes();
        inboxes.give(&ShardSet::ALL, None);
        let began = tokio::time::Instant::now();
        let sent = inboxes.send_patiently(ID, command().0).await;
        assert!(matches!(sent, Err(TrySendError::Full(_))));
        let sent = inboxes.send_to_one_patiently(1, command().0).await;
        assert!(matches!(sent, Err(TrySendError::Full(_))));
        assert_eq!(began.elapsed(), 2 * MOVE_PATIENCE);
        // An owner that is busy is not waited for.
        inboxes.give(&ShardSet::ALL, Some(0));
        assert!(inboxes.send_patiently(ID, command().0).await.is_ok());
        let sent = inboxes.send_patiently(ID, command().0).await;
        assert!(matches!(sent, Err(TrySendError::Full(_))));
        assert_eq!(began.elapsed(), 2 * MOVE_PATIENCE);
        receivers.clear();
        let sent = inboxes.send_patiently(ID, command().0).await;
        assert!(matches!(sent, Err(TrySendError::Closed(_))));
    }
}
