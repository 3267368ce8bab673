//! What a host decides about Redis.

use crate::Address;
use starbridge_ports::Clock;
use std::sync::Arc;
use std::time::Duration;

/// Settings of a [`RedisConnector`](crate::RedisConnector) and of [`RedisReplies`](crate::RedisReplies).
#[derive(Clone)]
pub struct RedisSettings {
    /// Which Redis, and as whom.
    pub address: Address,
    /// What a call's end is compared with; without a clock every call has [`patience`](Self::patience).
    pub clock: Option<Arc<dyn Clock>>,
    /// How long a call without a timeout waits for a Redis that is not there. Default: 5 seconds.
    pub patience: Duration,
    /// How long the opening of a connection may take, look-up and handshakes included. Default: 5 seconds.
    pub connect_timeout: Duration,
    /// Bytes of a message's fields, names included; more is refused. Default: 1 MiB.
    pub message_bytes: usize,
    /// Entries from which on a stream loses those that all its groups have acknowledged; 0: never. Default: 100,000.
    pub trim_above: u64,
    /// Certificates (DER) trusted beside those of the system.
    pub extra_roots: Vec<Vec<u8>>,
}

impl RedisSettings {
    /// The usual settings, for this Redis.
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

/// How a [reply stream](crate::RedisReplies) is read.
#[derive(Clone, Debug)]
pub struct ReplyStream {
    /// The stream.
    pub stream: String,
    /// The consumer group. Default: `starbridge`.
    pub group: String,
    /// This consumer's name in it: what one of this name had not acknowledged is taken up first. Default: `starbridge`.
    pub consumer: String,
    /// Entries taken at once. Default: 100.
    pub count: usize,
    /// How long one asking waits for entries. Default: 5 seconds.
    pub block: Duration,
    /// How long entries may stay unacknowledged before they are given out again, whoever has them. Default: 60 seconds.
    pub claim_after: Duration,
}

impl ReplyStream {
    /// This stream, read as usual.
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
