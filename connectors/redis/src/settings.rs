//! Settings for Redis.

use crate::Address;
use starbridge_ports::Clock;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`RedisConnector`](crate::RedisConnector) and of [`RedisReplies`](crate::RedisReplies).
#[derive(Clone)]
pub struct RedisSettings {
    /// The Redis, and the user.
    pub address: Address,
    /// The clock that calls' deadlines are compared with. Without it every call has [`patience`](Self::patience).
    pub clock: Option<Arc<dyn Clock>>,
    /// How long a call without a timeout waits for a Redis that can't be reached. Default: 5 seconds.
    pub patience: Duration,
    /// How long opening a connection may take, including lookup and handshakes. Default: 5 seconds.
    pub connect_timeout: Duration,
    /// The largest message, in bytes of its fields with their names. Default: 1 MiB.
    pub message_bytes: usize,
    /// From this many entries on, a stream is trimmed of entries that all its groups have acknowledged; 0: never.
    /// Default: 100,000.
    pub trim_above: u64,
    /// Certificates (DER) that are trusted in addition to those of the system.
    pub extra_roots: Vec<Vec<u8>>,
}

impl RedisSettings {
    /// The default settings for this Redis.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            clock: None,
            patience: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            message_bytes: 1 << 20,
            trim_above: 100_000,
            extra_roots: Vec::new(),
        }
    }
}

/// How to read a [reply stream](crate::RedisReplies).
#[derive(Clone, Debug)]
pub struct ReplyStream {
    /// The name of the stream.
    pub stream: String,
    /// The consumer group. Default: `starbridge`.
    pub group: String,
    /// The name of this consumer in the group. Entries that this name has not acknowledged come first. Default:
    /// `starbridge`.
    pub consumer: String,
    /// The largest number of entries in one read. Default: 100.
    pub count: usize,
    /// How long one read waits for entries. Default: 5 seconds.
    pub block: Duration,
    /// How long entries may stay unacknowledged before they are delivered again. Default: 60 seconds.
    pub claim_after: Duration,
}

impl ReplyStream {
    /// The default settings for this stream.
    pub fn new(stream: impl Into<String>) -> Self {
        Self {
            stream: stream.into(),
            group: "starbridge".to_owned(),
            consumer: "starbridge".to_owned(),
            count: 100,
            block: Duration::from_secs(5),
            claim_after: Duration::from_secs(60),
        }
    }
}
