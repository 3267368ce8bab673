//! What all handles of a store share.

use crate::fault::Failure;
use crate::final_counts::{self, Counts};
use crate::link::Link;
use crate::owner::{Fate, Seat};
use crate::readers::Readers;
use crate::session::Session;
use crate::session_lock;
use crate::wait::wait;
use crate::write::{Attempt, Work, Writer};
use starbridge_machine::Status;
use starbridge_ports::{STATUS_CODES, StoreError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) struct Shared {
    pub readers: Readers,
    pub writer: Mutex<Writer>,
    /// Held while the writer is waited for: whoever has just written waits behind those who wait already.
    pub next: Mutex<()>,
    pub counts: Mutex<Counts>,
    pub link: Arc<Link>,
    pub warnings: Vec<String>,
    pub is_new: bool,
    /// How many appends were refused because the stay was over.
    pub refused: AtomicU64,
}

impl Shared {
    /// An error while the database is away; somebody patient waits until it is back.
    fn admit(&self, patient: bool) -> Result<(), StoreError> {
        let health = self.link.health();
        if !health.is_away() {
            return Ok(());
        }
        if !patient {
            let why = health.why().unwrap_or_default();
            return Err(StoreError::Unavailable(format!("the database is away: {why}")));
        }
        match health.wait() {
            true => Ok(()),
            false => Err(StoreError::Unavailable("the store is closed".to_owned())),
        }
    }

    pub(crate) fn is_away(&self) -> bool {
        self.link.health().is_away()
    }

    /// How many executions have each status, of those that somebody has.
    pub(crate) fn counted(&self) -> Vec<(Status, u64)> {
        let counts = *self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all = STATUS_CODES.iter().zip(counts);
        let some = all.filter(|(_, count)| *count > 0);
        some.map(|(status, count)| (*status, count.unsigned_abs())).collect()
    }

    pub(crate) fn read<T>(
        &self,
        patient: bool,
        work: &impl AsyncFn(&Session) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        loop {
            self.admit(patient)?;
            match self.read_once(work) {
                Err(failure) if failure.is_away() => {
                    let why = failure.said();
                    self.link.went(&why);
                    if !patient {
                        return Err(StoreError::Unavailable(why));
                    }
                }
                other => return other.map_err(Failure::into_store_error),
            }
        }
    }

    fn read_once<T>(&self, work: &impl AsyncFn(&Session) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut lent = self.readers.take()?;
        let Some(session) = lent.session() else {
            return Err(StoreError::Unavailable("the store is closed".to_owned()).into());
        };
        let done = wait(work(session));
        if done.is_ok() {
            lent.is_whole();
        }
        done
    }

    /// Does some work atomically: what it wrote is durable when this returns, or was not written at all. Only somebody who is
    /// not patient may get an error for work that is done after all.
    pub(crate) fn write<T>(
        &self,
        patient: bool,
        work: &impl AsyncFn(&mut Work<'_>) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut unknown: Option<(i64, T)> = None;
        loop {
            self.admit(patient)?;
            let mut writer = self.writer();
            let why = match unknown.take() {
                None => match writer.attempt(&self.link, work) {
                    Attempt::Done(done) => {
                        self.keep_counts(&writer);
                        return Ok(done);
                    }
                    Attempt::Failed(error) => {
                        self.count_refused(&writer);
                        return Err(error);
                    }
                    Attempt::Away(why) => why,
                    Attempt::Unknown(transaction, done, why) => {
                        unknown = Some((transaction, done));
                        why
                    }
                },
                Some((transaction, done)) => match writer.settle(&self.link, transaction) {
                    Attempt::Done(fate) => {
                        self.keep_counts(&writer);
                        match fate {
                            Fate::Committed => return Ok(done),
                            Fate::NotDone | Fate::Forgotten => continue,
                        }
                    }
                    Attempt::Failed(error) => {
                        self.count_refused(&writer);
                        return Err(error);
                    }
                    Attempt::Away(why) | Attempt::Unknown(_, _, why) => {
                        unknown = Some((transaction, done));
                        why
                    }
                },
            };
            drop(writer);
            self.link.went(&why);
            if !patient {
                return Err(StoreError::Unavailable(why));
            }
        }
    }

    /// Counts an append that was refused because the stay is over.
    fn count_refused(&self, writer: &Writer) {
        if writer.is_over() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes sure that the store still is this process's. A writer that is at work will find out by itself.
    pub(crate) fn hold(&self) -> Result<(), StoreError> {
        match self.writer.try_lock() {
            Ok(mut writer) => writer.hold(&self.link),
            Err(_) => Ok(()),
        }
    }

    /// Gives the store back for good.
    pub(crate) fn give_up(&self) {
        let mut writer = self.writer();
        let (leaves, session) = (writer.leaves(), writer.give_up());
        drop(writer);
        self.unlock(session, leaves);
    }

    /// Otherwise the next one would have to wait until the server has seen that the session ended.
    fn unlock(&self, session: Option<Session>, leaves: Option<(Seat, Counts)>) {
        if let Some(session) = session {
            let schema = self.link.schema().to_owned();
            self.link.briefly(async move {
                if let Some((seat, counts)) = leaves {
                    // If this fails, the next owner counts by itself.
                    let _ = final_counts::leave(&session, (seat.incarnation, &seat.process), &counts).await;
                }
                session_lock::give_back(&session, &schema).await;
            });
        }
    }

    fn keep_counts(&self, writer: &Writer) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = writer.counts();
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        let _next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Shared {
    /// Gives the store back at once.
    fn drop(&mut self) {
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let (leaves, session) = (writer.leaves(), writer.close());
        self.unlock(session, leaves);
    }
}
