//! How many links to the owner a node opens at once.
//!
//! The owner lets only a few in at a time that have not shown their certificate. A node whose clients come by the thousand would
//! otherwise push its own links out there, again and again.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::Semaphore;
use tower_layer::Layer;
use tower_service::Service;

/// How many links are opened at once. All nodes of a cluster together stay below what the owner lets in at a time, unless more
/// than four of them open links at the same moment.
const AT_ONCE: usize = 4;

/// Lets connections be opened a few at a time, in the order in which they were asked for.
#[derive(Clone)]
pub(super) struct ConnectLimit(Arc<Semaphore>);

impl Default for ConnectLimit {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl<S> Layer<S> for ConnectLimit {
    type Service = LimitedConnector<S>;

    fn layer(&self, connector: S) -> LimitedConnector<S> {
        LimitedConnector {
            connector,
            room: self.0.clone(),
        }
    }
}

/// A connector that waits for its turn.
#[derive(Clone)]
pub(super) struct LimitedConnector<S> {
    connector: S,
    room: Arc<Semaphore>,
}

impl<S, R> Service<R> for LimitedConnector<S>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    S::Response: Send,
    S::Error: Send,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.connector.poll_ready(context)
    }

    fn call(&mut self, to: R) -> Self::Future {
        // The one that was found ready is used; the next one is asked anew.
        let next = self.connector.clone();
        let mut connector = std::mem::replace(&mut self.connector, next);
        let room = self.room.clone();
        Box::pin(async move {
            // It is never closed.
            let _turn = room.acquire_owned().await;
            connector.call(to).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::Notify;

    /// A connector whose connections are open when they are let.
    #[derive(Clone, Default)]
    struct Slow {
        opening: Arc<AtomicUsize>,
        go: Arc<Notify>,
    }

    impl Service<()> for Slow {
        type Response = ();
        type Error = Infallible;
        type Future = Pin<Box<dyn Future<Output = Result<(), Infallible>> + Send>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, (): ()) -> Self::Future {
            let slow = self.clone();
            Box::pin(async move {
                slow.opening.fetch_add(1, Ordering::SeqCst);
                slow.go.notified().await;
                Ok(())
            })
        }
    }

    #[tokio::test]
    async fn links_are_opened_a_few_at_a_time() {
        let slow = Slow::default();
        let mut connector = ConnectLimit::default().layer(slow.clone());
        let all: Vec<_> = (0..AT_ONCE * 3).map(|_| tokio::spawn(connector.call(()))).collect();
        for round in 1..=3 {
            while slow.opening.load(Ordering::SeqCst) < AT_ONCE * round {
                tokio::task::yield_now().await;
            }
            // Whoever else could go on has had its turn.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(slow.opening.load(Ordering::SeqCst), AT_ONCE * round);
            for _ in 0..AT_ONCE {
                slow.go.notify_one();
                tokio::task::yield_now().await;
            }
        }
        for one in all {
            assert!(one.await.unwrap().is_ok());
        }
    }
}
