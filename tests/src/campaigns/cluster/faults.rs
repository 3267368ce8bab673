//! What fails.

use crate::campaigns::Chance;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    KillOwner,
    KillNode,
    Terminate,
    StandStill,
    Cut,
    Silent,
    Deaf,
    Slow,
    Reset,
    Link,
    LinkDeaf,
    Backend,
    Database,
    Promote,
    Drain,
    Several,
}

/// All of them, each with what a count of it is called.
const ALL: [(Fault, &str); 16] = [
    (Fault::KillOwner, "owners killed (SIGKILL)"),
    (Fault::KillNode, "nodes killed (SIGKILL)"),
    (Fault::Terminate, "nodes told to stop (SIGTERM)"),
    (
        Fault::StandStill,
        "owners that stood still for longer than the lease and came back",
    ),
    (Fault::Cut, "ways from the owner to the database cut"),
    (Fault::Silent, "ways from the owner to the database that fell silent"),
    (
        Fault::Deaf,
        "ways from the owner to the database on which no answer came back",
    ),
    (
        Fault::Slow,
        "ways from all nodes to the database that were slow for a while",
    ),
    (Fault::Reset, "all connections to the database reset at once"),
    (Fault::Link, "links to the owner cut, but not those from it"),
    (Fault::LinkDeaf, "links to the owner on which no answer came back"),
    (
        Fault::Backend,
        "processes of connections in the database killed (SIGKILL)",
    ),
    (Fault::Database, "databases killed (SIGKILL)"),
    (Fault::Promote, "databases killed, whose standby was promoted"),
    (Fault::Drain, "nodes drained"),
    (
        Fault::Several,
        "owners killed while no link to another node and no connection to the database held",
    ),
];

/// The faults of a campaign, one after the other.
pub(super) struct Faults {
    next: usize,
    step: usize,
}

impl Faults {
    /// Each comes once in sixteen, in an order that the seed chooses.
    pub(super) fn new(chance: &mut Chance) -> Self {
        Self {
            next: chance.below(16) as usize,
            step: [1, 3, 5, 7, 9, 11, 13, 15][chance.below(8) as usize],
        }
    }

    pub(super) fn draw(&mut self) -> (Fault, &'static str) {
        let drawn = ALL[self.next % ALL.len()];
        self.next += self.step;
        drawn
    }
}
