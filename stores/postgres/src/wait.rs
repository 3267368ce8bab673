//! Waiting for futures on the caller's thread, whatever runtime that belongs to.
//!
//! What drives a connection runs on the store's own thread. So a future of a client needs nothing but to be polled when its
//! connection has something for it.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

struct Unpark {
    thread: Thread,
    /// Whether the future is to be polled again. The thread's own mark is not enough: whatever else parks the thread while the
    /// future is polled takes that away.
    woken: AtomicBool,
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// The output of a future; the thread stands still until then.
pub(crate) fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let unpark = Arc::new(Unpark {
        thread: std::thread::current(),
        woken: AtomicBool::new(false),
    });
    let waker = Waker::from(Arc::clone(&unpark));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        while !unpark.woken.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}

/// A future without its name.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

enum Slot<'a, T> {
    Waits(Pending<'a, T>),
    Done(T),
}

/// The outputs of futures that are begun in their order. What is sent to a connection goes out when it is begun, so one does
/// not wait for the answer of the one before.
pub(crate) async fn all_in_order<T>(futures: Vec<Pending<'_, T>>) -> Vec<T> {
    let mut slots: Vec<Slot<'_, T>> = futures.into_iter().map(Slot::Waits).collect();
    poll_fn(|context| {
        let mut waits = false;
        for slot in &mut slots {
            if let Slot::Waits(future) = slot {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *slot = Slot::Done(output),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let done = slots.into_iter().filter_map(|slot| match slot {
        Slot::Done(output) => Some(output),
        Slot::Waits(_) => None,
    });
    done.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wake_up_is_not_lost_to_a_wait_within() {
        let mut polled = 0;
        wait(poll_fn(|context| {
            polled += 1;
            if polled == 2 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            let mut asked = 0;
            wait(poll_fn(|within| {
                asked += 1;
                if asked == 3 {
                    return Poll::Ready(());
                }
                within.waker().wake_by_ref();
                Poll::Pending
            }));
            Poll::Pending
        }));
    }

    #[test]
    fn futures_are_begun_in_order_and_answered_in_order() {
        let begun = std::cell::RefCell::new(Vec::new());
        let one = |number: usize| -> Pending<'_, usize> {
            let begun = &begun;
            let mut times = 0;
            Box::pin(poll_fn(move |context| {
                if times == 0 {
                    begun.borrow_mut().push(number);
                }
                times += 1;
                // The later ones are done sooner.
                if times + number > 50 {
                    return Poll::Ready(number);
                }
                context.waker().wake_by_ref();
                Poll::Pending
            }))
        };
        let all = wait(all_in_order((0..45).map(one).collect()));
        assert_eq!(all, (0..45).collect::<Vec<_>>());
        assert_eq!(*begun.borrow(), (0..45).collect::<Vec<_>>());
    }
}
