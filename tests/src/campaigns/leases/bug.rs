//! Bugs that are planted to see whether they are found.

/// A bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A start does not look who has what.
    LeasesForgotten,
    /// Workers are told before it is durable that they have a task.
    ToldTooEarly,
    /// Leases are measured with the wall's clock.
    LeasesByTheWall,
    /// A heartbeat is answered and changes nothing.
    HeartbeatsLost,
    /// A task that is given back is forgotten.
    ReturnsLost,
}

impl Bug {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::LeasesForgotten,
        Self::ToldTooEarly,
        Self::LeasesByTheWall,
        Self::HeartbeatsLost,
        Self::ReturnsLost,
    ];

    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LeasesForgotten => "a start does not look who has which task",
            Self::ToldTooEarly => "workers are told of a task before that is durable",
            Self::LeasesByTheWall => "leases by the wall's clock",
            Self::HeartbeatsLost => "a heartbeat is answered and changes nothing",
            Self::ReturnsLost => "a task given back is forgotten",
        }
    }
}
