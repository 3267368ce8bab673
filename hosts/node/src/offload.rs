//! Work on large values. Reading, writing, comparing and dropping them takes long, so it happens on separate threads,
//! a few at a time. So does drawing, and whatever else takes long.
//!
//! Senders take turns: one with much of such work delays another by a piece of it, not by all of it.

use crate::sender_turns::SenderTurns;
use starbridge_flow::value::Text;
use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Up to this many bytes of JSON a value is small: work on it is done at once.
pub const INLINE_BYTES: usize = 64 * 1024;

static ROOM: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(at_once())));

/// Work that only reads waits here, and only as much of it as there is room for waits for `ROOM`. So work that changes something
/// waits for few readers, however many there are.
static READERS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(at_once()));

tokio::task_local! {
    /// The name of the token for which this task works; none where no token is needed.
    static SENDER: Option<Text>;
}

/// Does something for the sender with this token. Its large work waits for the other large work of the same sender.
pub async fn for_sender<F: Future>(sender: Option<Text>, work: F) -> F::Output {
    SENDER.scope(sender, work).await
}

/// The pieces of work that a sender may have under way, or at the head of the line: those that change something, and those that read.
static CHANGES: SenderTurns = SenderTurns::new();
static READS: SenderTurns = SenderTurns::new();

/// A turn of the sender for which this task works.
async fn turn(of: &SenderTurns) -> Result<OwnedSemaphorePermit, NotDone> {
    let sender = SENDER.try_with(Clone::clone).unwrap_or_default();
    // Where no tokens are needed, nobody has to be told apart.
    let most = if sender.is_some() {
        at_once().div_ceil(2)
    } else {
        at_once()
    };
    of.of(sender, most).acquire_owned().await.map_err(|_| NotDone)
}

/// Half of the processors, and at least one. The others are left to small requests and executions.
fn at_once() -> usize {
    let processors = available_parallelism().map_or(1, NonZero::get);
    (processors / 2).max(1)
}

/// The work panicked, or the runtime is stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotDone;

/// Does work on a value of this many bytes of JSON: at once if it is small, otherwise on another thread, when there
/// is room.
///
/// # Errors
///
/// [`NotDone`] if the work panicked or the runtime is stopping.
pub async fn work<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T, NotDone> {
    if bytes <= INLINE_BYTES {
        return Ok(work());
    }
    let turn = turn(&CHANGES).await?;
    in_room(turn, work).await
}

async fn in_room<T: Send + 'static>(
    turn: OwnedSemaphorePermit,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, NotDone> {
    let room = ROOM.clone().acquire_owned().await.map_err(|_| NotDone)?;
    let working = tokio::task::spawn_blocking(move || {
        let done = work();
        // Both stay taken until the work is over, even if no caller waits for it.
        drop((room, turn));
        done
    });
    working.await.map_err(|_| NotDone)
}

/// [`work`] for work that changes nothing: it lets other work pass.
///
/// # Errors
///
/// [`NotDone`] if the work panicked or the runtime is stopping.
pub async fn read<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T, NotDone> {
    if bytes <= INLINE_BYTES {
        return Ok(work());
    }
    let turn = turn(&READS).await?;
    // Given back when the work no longer waits, whether or not its caller still does.
    let _reader = READERS.acquire().await.map_err(|_| NotDone)?;
    in_room(turn, work).await
}

/// Drops a value that was made of this many bytes of JSON: at once if it is small, otherwise on another thread.
pub fn discard<T: Send + 'static>(bytes: usize, value: T) {
    if bytes <= INLINE_BYTES {
        return;
    }
    // Without a runtime, dropping it on this thread delays no one.
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn_blocking(move || drop(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Mutex, mpsc};
    use std::thread;
    use tokio::task::JoinSet;

    #[tokio::test]
    async fn offload_takes_only_large_work() {
        let here = thread::current().id();
        assert_eq!(work(INLINE_BYTES, || thread::current().id()).await, Ok(here));
        assert_ne!(work(INLINE_BYTES + 1, || thread::current().id()).await, Ok(here));
    }

    #[tokio::test]
    async fn offload_lets_changes_pass_readers() {
        const MANY: usize = 200;
        let done = Arc::new(AtomicUsize::new(0));
        let (goes_on, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let mut readers = JoinSet::new();
        for _ in 0..MANY {
            let (done, gate) = (done.clone(), gate.clone());
            readers.spawn(read(usize::MAX, move || {
                // Nothing is sent: it ends when the sender is dropped.
                let _ = gate.lock().unwrap().recv();
                done.fetch_add(1, Ordering::SeqCst);
            }));
        }
        tokio::task::yield_now().await;
        let before = done.clone();
        let change = tokio::spawn(work(usize::MAX, move || before.load(Ordering::SeqCst)));
        tokio::task::yield_now().await;
        drop(goes_on);
        assert!(change.await.unwrap().unwrap() < MANY / 2);
        readers.join_all().await;
        assert_eq!(done.load(Ordering::SeqCst), MANY);
    }

    #[tokio::test]
    async fn fairness_large_work_of_one_sender_delays_another_by_a_piece_of_it() {
        const MANY: usize = 200;
        let done = Arc::new(AtomicUsize::new(0));
        let (goes_on, gate) = mpsc::channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        let mut readers = JoinSet::new();
        for _ in 0..MANY {
            let (done, gate) = (done.clone(), gate.clone());
            let reads = read(usize::MAX, move || {
                let _ = gate.lock().unwrap().recv();
                done.fetch_add(1, Ordering::SeqCst);
            });
            readers.spawn(for_sender(Some("one".into()), reads));
        }
        tokio::task::yield_now().await;
        let before = done.clone();
        let reads = read(usize::MAX, move || before.load(Ordering::SeqCst));
        let other = tokio::spawn(for_sender(Some("other".into()), reads));
        tokio::task::yield_now().await;
        drop(goes_on);
        // Those at the head of the line go first, and some run beside it.
        assert!(other.await.unwrap().unwrap() < MANY / 2);
        readers.join_all().await;
        assert_eq!(done.load(Ordering::SeqCst), MANY);
    }

    #[tokio::test]
    async fn offload_frees_its_room_after_a_panic() {
        for _ in 0..100 {
            assert_eq!(work(usize::MAX, || panic!("as it should")).await, Err::<(), _>(NotDone));
        }
        assert_eq!(work(usize::MAX, || 1).await, Ok(1));
    }
}
