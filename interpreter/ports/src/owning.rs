//! The port for owners: which stay of a process has which shard.

use crate::epochs::{Epochs, Incarnation};
use crate::error::StoreError;
use crate::shards::ShardSet;

/// An incarnation, as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncarnationState {
    /// Its number.
    pub incarnation: Incarnation,
    /// The name of its process, as it joined.
    pub name: String,
    /// How far its heartbeats have come. If this stands still over several heartbeats of one's own, it is silent.
    pub beats: u64,
    /// The shards that it has.
    pub shards: ShardSet,
}

/// The duties of a store whose shards have owners.
///
/// A process joins, and claims shards. From then on each of its appends has the epoch of its execution's shard, and the store
/// refuses one with another epoch as [`Refusal::Fenced`](crate::Refusal::Fenced). So whoever ends the incarnation of a process that
/// is silent may claim its shards and go on: what that process still appends is refused, whenever it comes.
///
/// Shards that nobody has claimed take appends without an epoch, for tools and single runs. Appends that name no execution
/// (of queues and of admission) are of no shard and have no epoch.
pub trait Owning: Send + Sync {
    /// Begins a stay, and returns its number, which is higher than all before. In a store that only one process can have at a
    /// time, this ends all others.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn join(&self, name: &str) -> Result<Incarnation, StoreError>;

    /// Says that an incarnation goes on, and returns all that there are, in the order of their numbers.
    ///
    /// # Errors
    ///
    /// [`StoreError::Over`] if somebody has ended this incarnation; [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn heartbeat(&self, own: Incarnation) -> Result<Vec<IncarnationState>, StoreError>;

    /// Claims those of these shards that nobody has, and anew those that the incarnation has. Each gets a higher epoch. Shards
    /// of others are left out of the answer. Durable when it returns.
    ///
    /// # Errors
    ///
    /// [`StoreError::Over`] if somebody has ended this incarnation; [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn claim(&self, own: Incarnation, shards: &ShardSet) -> Result<Epochs, StoreError>;

    /// Gives those of these shards back that the incarnation has: nobody has them then, and nothing is appended under their former
    /// epochs. Its owner waits for appends under way before that: they would be refused.
    ///
    /// # Errors
    ///
    /// [`StoreError::Over`] if somebody has ended this incarnation; [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn give_back(&self, own: Incarnation, shards: &ShardSet) -> Result<(), StoreError>;

    /// Ends an incarnation, one's own or another's: appends under way are waited for, nothing comes after them, and nobody has its
    /// shards. Does nothing if it is over.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] or [`StoreError::Corrupt`].
    fn end(&self, incarnation: Incarnation) -> Result<(), StoreError>;
}
