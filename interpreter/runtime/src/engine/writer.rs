//! The writer: one thread that appends for several engines, with one flush for everything that waits.

use crate::suspect_lock::SuspectLock;
use starbridge_ports::{Append, History, Refusal, StoreError};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use tokio::sync::mpsc as channel;

/// The result of a batch: its refusals by position.
pub(crate) type Written = Result<Vec<(usize, Refusal)>, StoreError>;

struct Job {
    batch: Vec<Append>,
    done: channel::UnboundedSender<Written>,
}

/// The largest number of appends in one transaction. More would only delay the first of them.
const BATCH: usize = 4096;
/// The largest number of their bytes: appends stay in memory until they are durable.
const TOGETHER_BYTES: usize = 32 << 20;
/// How many batches an engine may have in flight: one that is being flushed, and one that waits.
const MAX_BATCHES_IN_FLIGHT: usize = 2;

/// Hands batches to a thread that appends them. The thread ends when the last handle is dropped. After the store has
/// failed, nothing more is appended: every later batch gets the same error, so that each engine reports the cause.
#[derive(Clone)]
pub struct Writer {
    jobs: mpsc::Sender<Job>,
    flushing: Arc<AtomicBool>,
    alone: Arc<SuspectLock>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// An I/O error if the thread can't be started.
    pub fn start(history: Arc<dyn History>) -> std::io::Result<Self> {
        let (jobs, inbox) = mpsc::channel::<Job>();
        let flushing = Arc::new(AtomicBool::new(false));
        let seen = flushing.clone();
        let alone = Arc::new(SuspectLock::of(history.clone()));
        std::thread::Builder::new()
            .name("writer".to_owned())
            .spawn(move || write(history.as_ref(), &inbox, &flushing))?;
        Ok(Self {
            jobs,
            flushing: seen,
            alone,
        })
    }

    /// Runs the suspects of the store one at a time, for all engines that share it.
    pub(super) fn alone(&self) -> Arc<SuspectLock> {
        self.alone.clone()
    }

    /// Whether a batch is being flushed now.
    pub fn is_flushing(&self) -> bool {
        self.flushing.load(Ordering::Relaxed)
    }
}

fn write(history: &dyn History, inbox: &mpsc::Receiver<Job>, flushing: &AtomicBool) {
    while let Ok(first) = inbox.recv() {
        let mut batch = first.batch;
        let mut bytes: usize = batch.iter().map(Append::bytes).sum();
        let mut jobs = vec![(batch.len(), first.done)];
        while batch.len() < BATCH
            && bytes < TOGETHER_BYTES
            && let Ok(next) = inbox.try_recv()
        {
            bytes += next.batch.iter().map(Append::bytes).sum::<usize>();
            batch.extend(next.batch);
            jobs.push((batch.len(), next.done));
        }
        // A panic must not keep the waiting senders from their answer.
        let append = AssertUnwindSafe(|| history.append(&batch));
        flushing.store(true, Ordering::Relaxed);
        let written = catch_unwind(append)
            .unwrap_or_else(|_| Err(StoreError::Unavailable("the thread that appends panicked".to_owned())));
        flushing.store(false, Ordering::Relaxed);
        let failure = written.as_ref().err().cloned();
        let mut begin = 0;
        for (end, done) in jobs {
            let own = written.as_ref().map_err(StoreError::clone).map(|refusals| {
                let within = refusals.iter().filter(|(index, _)| (begin..end).contains(index));
                within
                    .map(|(index, refusal)| (index - begin, refusal.clone()))
                    .collect()
            });
            begin = end;
            // An engine that has gone needs no answer.
            let _ = done.send(own);
        }
        // After a failed flush it is unknown what is durable. Nothing more is appended, and a new
        // start recovers.
        if let Some(failure) = failure {
            return refuse_the_rest(&failure, inbox);
        }
    }
}

fn refuse_the_rest(failure: &StoreError, inbox: &mpsc::Receiver<Job>) {
    while let Ok(job) = inbox.recv() {
        let _ = job.done.send(Err(failure.clone()));
    }
}

/// How an engine appends.
pub(crate) enum Writing {
    /// By itself. It waits for the flush.
    Here(Arc<dyn History>),
    /// Through the writer's thread.
    Through {
        writer: Writer,
        done: (channel::UnboundedSender<Written>, channel::UnboundedReceiver<Written>),
        under_way: usize,
    },
}

impl Writing {
    pub(crate) fn here(history: Arc<dyn History>) -> Self {
        Self::Here(history)
    }

    pub(crate) fn through(writer: &Writer) -> Self {
        Self::Through {
            writer: writer.clone(),
            done: channel::unbounded_channel(),
            under_way: 0,
        }
    }

    /// Whether another batch may be sent.
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Self::Here(_) => true,
            Self::Through { under_way, .. } => *under_way < MAX_BATCHES_IN_FLIGHT,
        }
    }

    /// Whether a batch is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        matches!(self, Self::Through { under_way: 1.., .. })
    }

    /// Appends a batch. Returns the refusals at once, or `None` if the batch is in flight.
    pub(crate) fn write(&mut self, batch: Vec<Append>) -> Result<Option<Vec<(usize, Refusal)>>, StoreError> {
        match self {
            Self::Here(history) => history.append(&batch).map(Some),
            Self::Through {
                writer,
                done,
                under_way,
            } => {
                let job = Job {
                    batch,
                    done: done.0.clone(),
                };
                writer
                    .jobs
                    .send(job)
                    .map_err(|_| StoreError::Unavailable("the thread that appends is gone".to_owned()))?;
                *under_way += 1;
                Ok(None)
            }
        }
    }

    /// Waits for the result of the oldest batch in flight. Never ends if batches are appended at once.
    pub(crate) async fn written(&mut self) -> Written {
        match self {
            Self::Through { done, under_way, .. } => match done.1.recv().await {
                Some(written) => {
                    *under_way -= 1;
                    written
                }
                None => std::future::pending().await,
            },
            Self::Here(_) => std::future::pending().await,
        }
    }

    /// The result of the oldest batch in flight, if it is there.
    pub(crate) fn try_written(&mut self) -> Option<Written> {
        match self {
            Self::Through { done, under_way, .. } => {
                let written = done.1.try_recv().ok()?;
                *under_way -= 1;
                Some(written)
            }
            Self::Here(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::scripted_store::ScriptedStore;

    #[tokio::test]
    async fn what_is_appended_together_is_bounded_in_bytes() {
        let (store, go) = ScriptedStore::blocked();
        let store = Arc::new(store);
        let writer = Writer::start(store.clone()).unwrap();
        let large = || Append {
            turn: Some(starbridge_ports::Turn {
                text: "x".repeat(TOGETHER_BYTES / 2 + 1),
                ..starbridge_ports::Turn::default()
            }),
            ..Append::default()
        };
        let mut engines: Vec<Writing> = (0..4).map(|_| Writing::through(&writer)).collect();
        for engine in &mut engines {
            assert_eq!(engine.write(vec![large()]), Ok(None));
            // The writer has the first one, and waits.
            while store.batches().is_empty() {
                tokio::task::yield_now().await;
            }
        }
        go.send(()).unwrap();
        for engine in &mut engines {
            assert_eq!(engine.written().await, Ok(Vec::new()));
        }
        assert_eq!(store.batches(), [1, 2, 1]);
    }

    #[tokio::test]
    async fn writer_tells_every_engine_why_it_stopped() {
        let full = StoreError::Unavailable("the disk is full".to_owned());
        let store = Arc::new(ScriptedStore::failing(full.clone()));
        let writer = Writer::start(store.clone()).unwrap();
        for _ in 0..3 {
            let mut engine = Writing::through(&writer);
            assert_eq!(engine.write(vec![Append::default()]), Ok(None));
            assert_eq!(engine.written().await, Err(full.clone()));
        }
        assert_eq!(store.batches(), [1], "it must not be asked again");
    }
}
