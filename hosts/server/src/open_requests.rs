//! The requests that are not answered yet, for a server that is about to end. A request that only waits for something to
//! happen is not among them, because it may wait for any time.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

tokio::task_local! {
    /// The requests to which the one of this task belongs.
    static AMONG: OpenRequests;
}

/// How many requests there are that are not answered.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    all: usize,
    /// Those of them that only wait.
    waiting: usize,
}

/// The requests that are not answered.
#[derive(Clone, Debug)]
pub struct OpenRequests(Arc<watch::Sender<Count>>);

/// A request that is not answered.
struct OpenRequest(OpenRequests);

/// A request that only waits.
pub(crate) struct Waiting(Option<OpenRequests>);

impl Default for OpenRequests {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Count::default())))
    }
}

impl OpenRequests {
    /// Carries out a request, and counts it meanwhile.
    pub(crate) async fn during<T>(&self, request: impl Future<Output = T>) -> T {
        self.0.send_modify(|count| count.all += 1);
        let _asked = OpenRequest(self.clone());
        AMONG.scope(self.clone(), request).await
    }

    /// Waits until all requests are answered apart from those that only wait, for this long at most.
    pub(crate) async fn settled(&self, patience: Duration) {
        self.until(patience, |count| count.all == count.waiting).await;
    }

    /// Waits until all requests are answered, for this long at most.
    pub(crate) async fn answered(&self, patience: Duration) {
        self.until(patience, |count| count.all == 0).await;
    }

    async fn until(&self, patience: Duration, is_so: impl FnMut(&Count) -> bool) {
        // What takes longer is answered when the owner ends.
        let _ = tokio::time::timeout(patience, self.0.subscribe().wait_for(is_so)).await;
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| count.all -= 1);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(among) = &self.0 {
            among.0.send_modify(|count| count.waiting -= 1);
        }
    }
}

/// The request of this task only waits until the returned value is dropped.
pub(crate) fn waits() -> Waiting {
    let among = AMONG.try_with(Clone::clone).ok();
    if let Some(among) = &among {
        among.0.send_modify(|count| count.waiting += 1);
    }
    Waiting(among)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn who_only_waits_is_not_waited_for() {
        const LONG: Duration = Duration::from_secs(600);
        let open_requests = OpenRequests::default();
        let (go, gone) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel::<()>();
        let requests = open_requests.clone();
        let request = tokio::spawn(async move {
            let asked = requests.during(async {
                let waiting = waits();
                let _ = gone.await;
                drop(waiting);
                let _ = ended.await;
            });
            asked.await;
        });
        while open_requests.0.borrow().waiting == 0 {
            tokio::task::yield_now().await;
        }
        open_requests.settled(LONG).await;
        open_requests.answered(Duration::ZERO).await;
        assert_eq!(open_requests.0.borrow().all, 1);
        go.send(()).unwrap();
        while open_requests.0.borrow().waiting == 1 {
            tokio::task::yield_now().await;
        }
        open_requests.settled(Duration::ZERO).await;
        assert_eq!(open_requests.0.borrow().all, 1);
        end.send(()).unwrap();
        open_requests.answered(LONG).await;
        request.await.unwrap();
        // Outside a request it has no effect.
        drop(waits());
    }
}
