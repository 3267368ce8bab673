//! The thread that runs calls to AWS.

use crate::{ServiceError, ServiceErrorKind};
use std::future::Future;
use tokio::runtime::{Builder, Runtime};
use tokio::task::AbortHandle;

/// A runtime with one thread.
pub(crate) struct Thread {
    /// Present until this is dropped.
    runtime: Option<Runtime>,
}

impl Thread {
    pub(crate) fn start() -> Result<Self, String> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("aws")
            .enable_all()
            .build()
            .map_err(|error| format!("the thread for AWS can't be started: {error}"))?;
        Ok(Self { runtime: Some(runtime) })
    }

    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let over = || {
            ServiceError::new(
                ServiceErrorKind::Other("Unavailable".to_owned()),
                "the call was given up",
            )
        };
        let task = self.runtime.as_ref().ok_or_else(over)?.spawn(work);
        let _given_up = AbortOnDrop(task.abort_handle());
        task.await.map_err(|_| over())
    }

    pub(crate) fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ServiceError> {
        let over = || {
            ServiceError::new(
                ServiceErrorKind::Other("Unavailable".to_owned()),
                "the call was given up",
            )
        };
        let runtime = self.runtime.as_ref().ok_or_else(over)?;
        let (done, result) = std::sync::mpsc::sync_channel(1);
        runtime.spawn(async move {
            // The waiting thread goes on when this is sent or dropped.
            let _ = done.send(work.await);
        });
        result.recv().map_err(|_| over())
    }

    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // This may be dropped within another runtime, which must not wait for this one.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
