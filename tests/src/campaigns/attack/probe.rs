//! Other clients: whether they are still served during an attack, and with what delay.

use super::server::Server;
use super::wire::{self, Request};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// A request that has no answer by then has none. No bound of a try is longer.
const PATIENCE: Duration = Duration::from_secs(6);

/// The experience of other clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Met {
    /// Requests that were answered as they should be.
    pub(super) served: u32,
    /// The longest that took.
    pub(super) longest: Duration,
    /// The first problem.
    pub(super) problem: Option<String>,
}

impl Met {
    /// The fault, if there is one. The bound is for a release build; a debug build takes several
    /// times as long, on a machine that does other work as well.
    pub(super) fn wrong(&self, bound: Duration) -> Option<String> {
        let bound = bound * if cfg!(debug_assertions) { 3 } else { 1 };
        if let Some(problem) = &self.problem {
            return Some(format!("others were not served: {problem}"));
        }
        if self.served == 0 {
            return Some("others were not served once".to_owned());
        }
        let late = self.longest > bound;
        late.then(|| format!("others waited {} ms", self.longest.as_millis()))
    }
}

/// Somebody who asks again and again.
pub(super) struct Probe {
    met: Arc<Mutex<Met>>,
    asking: JoinHandle<()>,
}

impl Probe {
    /// Asks for the server's health.
    pub(super) fn health(server: &Server) -> Self {
        Self::of(server.port(), server.request("GET", "/healthz"))
    }

    /// Starts executions of a flow, which must be there.
    pub(super) fn starts(server: &Server, flow: &str) -> Self {
        let path = format!("/v1/flows/{flow}/executions");
        Self::of(server.port(), server.request("POST", &path).body("{\"input\":{}}"))
    }

    fn of(port: u16, request: Request) -> Self {
        let met = Arc::new(Mutex::new(Met::default()));
        let noted = Arc::clone(&met);
        let request = request.patience(PATIENCE);
        let asking = tokio::spawn(async move {
            loop {
                let begun = Instant::now();
                let mut answer = wire::send(port, &request).await;
                // A client that is cut off asks again, as every probe does: the bound is on the
                // total time.
                while answer.status == 0 && begun.elapsed() < PATIENCE {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    answer = wire::send(port, &request).await;
                }
                {
                    let mut met = noted.lock().unwrap_or_else(PoisonError::into_inner);
                    met.longest = met.longest.max(begun.elapsed());
                    match answer.status {
                        200..300 => met.served += 1,
                        status if met.problem.is_none() => met.problem = Some(format!("{status} {}", answer.text)),
                        _ => {}
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { met, asking }
    }

    /// Waits until so many more requests were answered, or one was not.
    pub(super) async fn answers(&self, more: u32) {
        let wanted = self.met().served + more;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE && self.met().served < wanted && self.met().problem.is_none() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The results until now. A request that is still waiting counts if it gets the time to end.
    pub(super) async fn finish(self) -> Met {
        self.answers(1).await;
        self.met()
    }

    fn met(&self) -> Met {
        self.met.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        self.asking.abort();
    }
}
