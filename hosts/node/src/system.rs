//! The machine: its randomness and its environment.

#![allow(
    clippy::disallowed_methods,
    reason = "this is where clock, randomness and environment come in"
)]

pub use crate::clock::{SystemClock, wall_time};

use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_ports::{Clock, Secret, Secrets};
use starbridge_runtime::{ExecutionSeed, StartRequest, TokenKeys, child_id};
use std::sync::Mutex;
use uuid::{ContextV7, Uuid};

/// What this process is called among those of all machines: its machine and its number.
#[cfg(feature = "postgres")]
pub(crate) fn process_name() -> String {
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let machine = match machine.trim() {
        "" => "a machine",
        named => named,
    };
    format!("{machine}/{}", std::process::id())
}

/// A new id and a new seed. The id is a UUID (version 7), unless the request has one; that of a child follows from the call that
/// starts it.
pub fn new_seed(request: &StartRequest) -> ExecutionSeed {
    ExecutionSeed {
        id: match (&request.id, &request.parent) {
            (Some(given), _) => given.clone(),
            (None, None) => Text::from(new_id(SystemClock.now()).to_string()),
            (None, Some(parent)) => child_id(parent),
        },
        // JSON readers elsewhere read no more than 53 bits exactly.
        seed: Uuid::new_v4().as_u64_pair().1 & ((1 << 53) - 1),
    }
}

/// Ids grow within a process, even within a millisecond.
static IDS: Mutex<ContextV7> = Mutex::new(ContextV7::new());

/// An id with this time; earlier times count as 1970.
fn new_id(now: Timestamp) -> Uuid {
    let millis = u64::try_from(now.0).unwrap_or_default();
    let nanos = u32::try_from(millis % 1_000).unwrap_or_default() * 1_000_000;
    Uuid::new_v7(uuid::Timestamp::from_unix(&IDS, millis / 1_000, nanos))
}

/// A new id for something other than an execution, with this time.
pub(crate) fn fresh_id(now: Timestamp) -> Text {
    Text::from(new_id(now).to_string())
}

/// A W3C trace context that begins a trace. It is sampled, so that collectors keep the trace.
pub(crate) fn new_traceparent() -> Text {
    // Both ids are random but for a few fixed bits, which are not all zero.
    let (trace, (_, parent)) = (Uuid::new_v4().as_u128(), Uuid::new_v4().as_u64_pair());
    Text::from(format!("00-{trace:032x}-{parent:016x}-01"))
}

pub(crate) fn random_key() -> Result<[u8; 32], String> {
    let mut key = [0; 32];
    getrandom::fill(&mut key).map_err(|error| format!("the system gives no randomness: {error}"))?;
    Ok(key)
}

/// New keys for the task tokens of this process.
///
/// # Errors
///
/// Why the system gives no random bytes.
pub fn fresh_token_keys() -> Result<TokenKeys, String> {
    Ok(TokenKeys::new(vec![random_key()?]))
}

/// The system's reason for a failure, in the form of our messages: lower case and without the number.
pub fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

/// Secrets from variables `STARBRIDGE_SECRET_<NAME>`.
#[derive(Clone, Copy, Debug, Default)]
pub struct EnvironmentSecrets;

impl Secrets for EnvironmentSecrets {
    fn get(&self, name: &str) -> Option<Secret> {
        std::env::var(format!("STARBRIDGE_SECRET_{name}")).ok().map(Secret::new)
    }
}

/// Secrets from the environment, then from files with their names in a folder. A line break at the
/// end of a file is not part of the secret.
#[derive(Clone, Debug)]
pub struct DirectorySecrets {
    folder: std::path::PathBuf,
}

impl DirectorySecrets {
    /// Secrets from the environment and this folder.
    pub fn new(folder: std::path::PathBuf) -> Self {
        Self { folder }
    }
}

impl Secrets for DirectorySecrets {
    fn get(&self, name: &str) -> Option<Secret> {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.');
        // A name must not lead out of the folder.
        if !name.chars().all(plain) || name.starts_with('.') {
            return None;
        }
        let file = || std::fs::read_to_string(self.folder.join(name)).ok();
        let read = || file().map(|text| Secret::new(text.trim_end_matches(['\r', '\n'])));
        EnvironmentSecrets.get(name).or_else(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execution_ids_grow_whatever_the_clock_says() {
        let times = [
            -86_400_000,
            0,
            0,
            1_700_000_000_000,
            1_700_000_000_000,
            1_600_000_000_000,
        ];
        let ids = times.map(|time| new_id(Timestamp(time)));
        assert!(ids.iter().all(|id| id.get_version_num() == 7));
        assert!(ids.is_sorted() && ids.windows(2).all(|two| two[0] != two[1]), "{ids:?}");
    }
}
