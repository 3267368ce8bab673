//! Work on large values. Reading, writing, comparing and dropping them takes long, so it happens on separate threads,
//! a few at a time.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Up to this many bytes of JSON a value is small: work on it is done at once.
pub const INLINE_BYTES: usize = 64 * 1024;

static ROOM: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(at_once())));

/// Work that only reads waits here, and only as much of it as there is room for waits for `ROOM`. So work that changes something
/// waits for few readers, however many there are.
static READERS: LazyLock<Semaphore> = LazyLock::new(|| Semaphore::new(at_once()));

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
    let room = ROOM.clone().acquire_owned().await.map_err(|_| NotDone)?;
    let working = tokio::task::spawn_blocking(move || {
        let done = work();
        // The room stays taken until the work is over, even if no caller waits for it.
        drop(room);
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
    // Given back when the work no longer waits, whether or not its caller still does.
    let _reader = READERS.acquire().await.map_err(|_| NotDone)?;
    self::work(bytes, work).await
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
    async fn offload_frees_its_room_after_a_panic() {
        for _ in 0..100 {
            assert_eq!(work(usize::MAX, || panic!("as it should")).await, Err::<(), _>(NotDone));
        }
        assert_eq!(work(usize::MAX, || 1).await, Ok(1));
    }
}
