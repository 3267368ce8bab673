//! Work on large values: reading, writing, comparing and dropping them takes long, so it is done on threads that answer nobody,
//! and for few of them at a time.

use std::num::NonZero;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// Bytes of JSON up to which a value is small: it is dealt with at once.
pub const SMALL: usize = 64 * 1024;

/// Half of the processors, and at least one: the other half is left to small requests and to executions.
static ROOM: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let processors = available_parallelism().map_or(1, NonZero::get);
    Arc::new(Semaphore::new((processors / 2).max(1)))
});

/// The work panicked, or the runtime is coming to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotDone;

/// Does work on so many bytes of JSON: here if they are few, else elsewhere once there is room.
pub async fn work<T: Send + 'static>(bytes: usize, work: impl FnOnce() -> T + Send + 'static) -> Result<T, NotDone> {
    if bytes <= SMALL {
        return Ok(work());
    }
    let room = ROOM.clone().acquire_owned().await.map_err(|_| NotDone)?;
    let working = tokio::task::spawn_blocking(move || {
        let done = work();
        // Until the work is over, even if nobody waits for it any more.
        drop(room);
        done
    });
    working.await.map_err(|_| NotDone)
}

/// Drops what so many bytes of JSON became: here if they are few.
pub fn discard<T: Send + 'static>(bytes: usize, value: T) {
    if bytes <= SMALL {
        return;
    }
    // Without a runtime nobody is waiting for this thread.
    if let Ok(runtime) = Handle::try_current() {
        drop(runtime.spawn_blocking(move || drop(value)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    #[tokio::test]
    async fn only_large_work_is_done_elsewhere() {
        let here = thread::current().id();
        assert_eq!(work(SMALL, || thread::current().id()).await, Ok(here));
        assert_ne!(work(SMALL + 1, || thread::current().id()).await, Ok(here));
    }

    #[tokio::test]
    async fn work_that_panics_leaves_its_room() {
        for _ in 0..100 {
            assert_eq!(work(usize::MAX, || panic!("as it should")).await, Err::<(), _>(NotDone));
        }
        assert_eq!(work(usize::MAX, || 1).await, Ok(1));
    }
}
