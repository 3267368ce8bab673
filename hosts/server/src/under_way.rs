//! What is under way: requests whose answer is awaited by somebody who ends. One that only waits for something to happen is not
//! among them, because that may take as long as it likes.

use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

tokio::task_local! {
    /// The requests among which the one of this task is.
    static AMONG: UnderWay;
}

/// How many requests there are that are not answered.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    /// All of them.
    all: usize,
    /// Those of them that only wait.
    waiting: usize,
}

/// The requests that are not answered.
#[derive(Clone, Debug)]
pub struct UnderWay(Arc<watch::Sender<Count>>);

/// A request that is not answered.
struct Asked(UnderWay);

/// A request that only waits.
pub(crate) struct Waiting(Option<UnderWay>);

impl Default for UnderWay {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Count::default())))
    }
}

impl UnderWay {
    /// Carries out a request, and counts it meanwhile.
    pub(crate) async fn during<T>(&self, request: impl Future<Output = T>) -> T {
        self.0.send_modify(|count| count.all += 1);
        let _asked = Asked(self.clone());
        AMONG.scope(self.clone(), request).await
    }

    /// Waits until all requests are answered but those that only wait, for so long at most.
    pub(crate) async fn settled(&self, patience: Duration) {
        self.until(patience, |count| count.all == count.waiting).await;
    }

    /// Waits until all requests are answered, for so long at most.
    pub(crate) async fn answered(&self, patience: Duration) {
        self.until(patience, |count| count.all == 0).await;
    }

    async fn until(&self, patience: Duration, is_so: impl FnMut(&Count) -> bool) {
        // What takes longer is answered when the owner ends.
        let _ = tokio::time::timeout(patience, self.0.subscribe().wait_for(is_so)).await;
    }
}

impl Drop for Asked {
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

/// From now on the request of this task only waits, until what is returned is dropped.
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
        let under_way = UnderWay::default();
        let (go, gone) = oneshot::channel::<()>();
        let (end, ended) = oneshot::channel::<()>();
        let requests = under_way.clone();
        let request = tokio::spawn(async move {
            let asked = requests.during(async {
                let waiting = waits();
                let _ = gone.await;
                drop(waiting);
                let _ = ended.await;
            });
            asked.await;
        });
        while under_way.0.borrow().waiting == 0 {
            tokio::task::yield_now().await;
        }
        under_way.settled(LONG).await;
        under_way.answered(Duration::ZERO).await;
        assert_eq!(under_way.0.borrow().all, 1);
        go.send(()).unwrap();
        while under_way.0.borrow().waiting == 1 {
            tokio::task::yield_now().await;
        }
        under_way.settled(Duration::ZERO).await;
        assert_eq!(under_way.0.borrow().all, 1);
        end.send(()).unwrap();
        under_way.answered(LONG).await;
        request.await.unwrap();
        // Elsewhere it means nothing.
        drop(waits());
    }
}
