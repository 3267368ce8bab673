//! Which shard an execution belongs to.

use starbridge_flow::fnv::fnv1a_32;

/// How many shards a store has. Never changes for an existing store.
pub const SHARDS: u16 = 256;

/// The shard of an execution: the last byte of its UUID, so that a child can get the shard of its parent. For any
/// other id, a hash of its bytes (FNV-1a).
pub fn shard_of(execution: &str) -> u8 {
    let last = execution.len().checked_sub(2).and_then(|from| execution.get(from..));
    let byte = last
        .filter(|_| execution.len() == 36)
        .map(|hex| u8::from_str_radix(hex, 16));
    match byte {
        Some(Ok(shard)) => shard,
        _ => {
            let [low, ..] = fnv1a_32(execution.bytes()).to_le_bytes();
            low
        }
    }
}

/// The index of the owner, among this many, that runs an execution.
pub fn owner_index(execution: &str, owners: usize) -> usize {
    usize::from(shard_of(execution)) % owners.max(1)
}
