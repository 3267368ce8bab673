//! A connection that many callers share. It is opened again when it is lost.

use crate::RedisSettings;
use crate::dial::{Dial, Open};
use crate::failure::Failure;
use redis::{Cmd, Pipeline, RedisError, Value};
use starbridge_ports::{Backoff, Failures};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The pauses after failures.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(1));

/// A request to Redis.
#[derive(Clone, Copy)]
pub(crate) enum RedisCommand<'a> {
    /// A command that may be repeated: if the connection is lost, it is unknown whether it was
    /// carried out.
    Again(&'a Cmd),
    /// A command that is not sent again if it may have been carried out.
    Once(&'a Cmd),
    /// Commands that are carried out all together or not at all. They may be sent again.
    Together(&'a Pipeline),
}

/// The connection, or why there is none.
enum State {
    Closed,
    Open(Arc<Open>),
    /// No caller tries before `again`.
    Failed {
        failure: Failure,
        again: Instant,
        failures: Failures,
    },
}

/// One connection to Redis. Commands of several callers are sent together and answered in order. It belongs to the
/// runtime on which it was first used.
pub(crate) struct Link {
    dial: Dial,
    patience: Duration,
    state: Mutex<State>,
}

/// The state of a command when its time was over.
#[derive(Default)]
struct Progress {
    failure: Option<Failure>,
    unanswered: Option<Arc<Open>>,
}

impl Link {
    pub(crate) fn new(settings: &RedisSettings) -> Self {
        Self {
            dial: Dial::new(settings.clone()),
            patience: settings.patience,
            state: Mutex::new(State::Closed),
        }
    }

    /// Sends a command and waits for its answer. While Redis can't be reached, it waits for that too, until the time
    /// is over.
    pub(crate) async fn ask(&self, asked: RedisCommand<'_>, within: Duration) -> Result<Value, Failure> {
        let mut progress = Progress::default();
        let answer = timeout(within, self.tries(asked, &mut progress)).await;
        answer.unwrap_or_else(|_| Err(self.too_late(progress, within)))
    }

    async fn tries(&self, asked: RedisCommand<'_>, progress: &mut Progress) -> Result<Value, Failure> {
        let mut failures = BACKOFF.failures();
        loop {
            let open = match self.open().await {
                Ok(open) => open,
                Err((failure, _)) if !failure.passing => return Err(failure),
                Err((failure, again)) => {
                    progress.failure = Some(failure);
                    sleep_until(again).await;
                    continue;
                }
            };
            progress.unanswered = Some(open.clone());
            let answer = asked.of(&open).await;
            progress.unanswered = None;
            let failure = match answer {
                Ok(value) => return Ok(value),
                Err(error) => Failure::of(&self.dial.server(), &error),
            };
            if failure.lost {
                open.give_up();
            }
            if !failure.passing || (failure.lost && matches!(asked, RedisCommand::Once(_))) {
                return Err(failure);
            }
            progress.failure = Some(failure);
            sleep(failures.next_pause()).await;
        }
    }

    async fn open(&self) -> Result<Arc<Open>, (Failure, Instant)> {
        let mut state = self.state.lock().await;
        let mut failures = match &*state {
            State::Open(open) if !open.is_over() => return Ok(open.clone()),
            State::Failed { failure, again, .. } if *again > Instant::now() => return Err((failure.clone(), *again)),
            State::Failed { failures, .. } => *failures,
            State::Open(_) | State::Closed => BACKOFF.failures(),
        };
        match self.dial.open().await {
            Ok(open) => {
                let open = Arc::new(open);
                *state = State::Open(open.clone());
                Ok(open)
            }
            Err(failure) => {
                let again = Instant::now() + failures.next_pause();
                *state = State::Failed {
                    failure: failure.clone(),
                    again,
                    failures,
                };
                Err((failure, again))
            }
        }
    }

    fn too_late(&self, progress: Progress, within: Duration) -> Failure {
        if let Some(open) = progress.unanswered {
            // A connection that is silent for that long may exist only on our side. A caller with
            // less time than that does not close it for the others.
            if within >= self.patience {
                open.give_up();
            }
            return Failure::connection(
                &self.dial.server(),
                &format!("no answer within {:.1} s", within.as_secs_f64()),
            );
        }
        progress
            .failure
            .unwrap_or_else(|| Failure::connection(&self.dial.server(), "no connection within the time for it"))
    }
}

impl RedisCommand<'_> {
    async fn of(self, open: &Open) -> Result<Value, RedisError> {
        let mut connection = open.connection.clone();
        match self {
            Self::Again(command) | Self::Once(command) => command.query_async(&mut connection).await,
            Self::Together(commands) => commands.query_async(&mut connection).await,
        }
    }
}
