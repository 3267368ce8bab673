//! Redis streams: a call becomes an entry (section "tasks", `redis:STREAM`), and reports are taken from a stream.
//!
//! Which Redis is the host's to say, never a flow's: flows hold no passwords and reach no servers of their own choice.
//!
//! # What comes of a call
//!
//! `XADD` of `body` and of the ids every call carries. Redis answers with the entry's id: `{"id", "stream"}` is the result,
//! or the receipt under another pattern than `requestResponse`. Calls share one connection and go out together. A
//! connection that is lost is opened anew, and what was not answered is sent again under the same key, until the time for
//! it is over: nine tenths of what the task has left, 30 seconds at most, or [`RedisSettings::patience`] without a timeout.
//!
//! # Errors
//!
//! | name | when |
//! |---|---|
//! | `FnF.NoSuchResource` | nothing is sent: no stream is named, or `serviceParams` can't be understood |
//! | `FnF.PayloadTooLarge` | nothing is sent: the message has more bytes than it may |
//! | `Redis.ConnectionFailed` | no connection or no answer in that time |
//! | `Redis.AccessDenied` | the password is wrong or missing, or the user may not do that |
//! | `Redis.ReadOnly` | it is a replica |
//! | `Redis.OutOfMemory` | its memory is full |
//! | `Redis.WrongType` | what has the stream's name is no stream |
//! | `Redis.Loading` | it was still reading its data when that time was over |
//! | `Redis.<CODE>` | any other error Redis answers with: `Redis.MISCONF`, `Redis.NOREPLICAS` |

mod address;
mod dial;
mod failure;
mod link;
mod message;
mod params;
mod replies;
mod settings;
mod trim;

pub use address::{Address, BadAddress};
pub use replies::RedisReplies;
pub use settings::{RedisSettings, ReplyStream};

use link::{Asked, Link};
use redis::FromRedisValue;
use starbridge_flow::graph::Pattern;
use starbridge_flow::value::Object;
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request, SentMembers};
use std::sync::Arc;
use std::time::Duration;
use trim::Trimmer;

/// The longest a call waits for Redis, however much time its task has: a retry is kept, a call that waits takes a place.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Adds messages to streams.
pub struct RedisConnector {
    link: Arc<Link>,
    trimmer: Trimmer,
    settings: RedisSettings,
}

impl RedisConnector {
    /// A connector with a connection of its own, which is opened when it is first needed, on the runtime of that call.
    pub fn new(settings: RedisSettings) -> Self {
        let link = Arc::new(Link::new(&settings));
        Self {
            trimmer: Trimmer::new(link.clone(), settings.trim_above),
            link,
            settings,
        }
    }

    async fn carry(&self, request: &Request) -> Result<Outcome, Outcome> {
        let message = message::compose(request, self.settings.message_bytes)?;
        let asked = self
            .link
            .ask(Asked::Again(&message.command()), self.time(request))
            .await;
        let answer = asked.map_err(|mut failure| {
            failure.cause = format!("stream `{}` at {}", message.stream, failure.cause);
            failure.outcome()
        })?;
        let id = String::from_redis_value(answer)
            .map_err(|_| Outcome::failed("Redis.ConnectionFailed", "the answer to XADD is no id"))?;
        if message.max_length.is_none() {
            self.trimmer.sent(&message.stream);
        }
        let mut taken = Object::new();
        taken.insert("id".into(), id.as_str().into());
        taken.insert("stream".into(), message.stream.as_str().into());
        Ok(match request.pattern {
            Pattern::RequestResponse => Outcome::Result(taken.into()),
            Pattern::Sync | Pattern::WaitForCallback => Outcome::Accepted {
                receipt: Some(taken.into()),
            },
        })
    }

    /// How long the call may take: less than its task has, so that the error is Redis' and not the timeout's.
    fn time(&self, request: &Request) -> Duration {
        let end = request.timeout_at.zip(self.settings.clock.as_ref());
        match end {
            None => self.settings.patience,
            Some((end, clock)) => {
                let left = Duration::from_millis(end.millis_since(clock.now()));
                (left - left / 10).min(LONGEST_WAIT)
            }
        }
    }
}

impl Connector for RedisConnector {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        Box::pin(async move { self.carry(&request).await.unwrap_or_else(|failed| failed) })
    }

    fn sent_members(&self) -> SentMembers {
        SentMembers {
            known: &params::KNOWN,
            sent: &["body", "fields"],
        }
    }
}
