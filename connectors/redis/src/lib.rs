//! Redis streams: a call becomes an entry (section "tasks", `redis:STREAM`), and reports are taken from a stream.
//!
//! The host chooses the Redis, never a flow: flows contain no passwords and reach no servers of their own choice.
//!
//! # Calls
//!
//! A call is an `XADD` of `body` and of the ids that every call carries. Redis answers with the entry's id, and
//! `{"id", "stream"}` is the result, or under another pattern than `requestResponse` the receipt. Calls share one connection
//! and are sent together. If the connection is lost, it is opened again, and unanswered calls are
//! sent again under the same key until the time is over: nine tenths of what the task has left, at
//! most 30 seconds, or [`RedisSettings::patience`] without a timeout.
//!
//! # Errors
//!
//! | name | when |
//! |---|---|
//! | `FnF.NoSuchResource` | nothing is sent: no stream is named, or `serviceParams` are wrong |
//! | `FnF.PayloadTooLarge` | nothing is sent: the message is larger than [`RedisSettings::message_bytes`] |
//! | `Redis.ConnectionFailed` | no connection or no answer in that time |
//! | `Redis.AccessDenied` | the password is wrong or missing, or the user may not do that |
//! | `Redis.ReadOnly` | it is a replica |
//! | `Redis.OutOfMemory` | its memory is full |
//! | `Redis.WrongType` | the key with the stream's name is not a stream |
//! | `Redis.Loading` | it was still loading its data when the time was over |
//! | `Redis.<CODE>` | any other error that Redis answers: `Redis.MISCONF`, `Redis.NOREPLICAS` |
//!
//! # Example
//!
//! Neither opens a connection before it is first used:
//!
//! ```
//! use starbridge_connector_redis::{Address, RedisConnector, RedisReplies, RedisSettings, ReplyStream};
//!
//! let address = Address::parse("redis://app:secret@redis.internal/2")?;
//! assert_eq!(address.to_string(), "redis.internal:6379/2"); // never the password
//!
//! let settings = RedisSettings::new(address);
//! let replies = RedisReplies::new(&settings, ReplyStream::new("replies"));
//! let connector = RedisConnector::new(settings);
//! # drop((replies, connector));
//! # Ok::<(), starbridge_connector_redis::BadAddress>(())
//! ```
#![warn(clippy::missing_errors_doc)]

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

use link::{Link, RedisCommand};
use redis::FromRedisValue;
use starbridge_flow::graph::Pattern;
use starbridge_flow::value::Object;
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request, SentMembers};
use std::sync::Arc;
use std::time::Duration;
use trim::Trimmer;

/// The longest time that a call waits for Redis, even if its task may take longer. A retry is
/// stored, while a waiting call occupies a place.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Adds messages to streams: the connector for `redis:STREAM`.
pub struct RedisConnector {
    link: Arc<Link>,
    trimmer: Trimmer,
    settings: RedisSettings,
}

impl RedisConnector {
    /// A connector with its own connection. The first call opens it, on the runtime of that call.
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
            .ask(RedisCommand::Again(&message.command()), self.time(request))
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

    /// How long the call may take: less than its task has, so that the error is that of Redis and not a timeout.
    fn time(&self, request: &Request) -> Duration {
        let end = request.timeout_at.zip(self.settings.clock.as_ref());
        match end {
            None => self.settings.patience,
            Some((end, clock)) => {
                let left = Duration::from(end.since(clock.now()));
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
