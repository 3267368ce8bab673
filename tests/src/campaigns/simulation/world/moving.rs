//! Shards that move from one process to another.

use super::{Happening, World};
use crate::campaigns::simulation::fault::{Bug, Fault};
use starbridge_ports::ShardSet;

impl World {
    /// Processes give shards up for a seat. Those of a process that is dead stay there: what it still has under way may reach the
    /// store until the next one begins.
    pub(super) fn begin_to_move(&mut self, shards: &ShardSet, to: usize) {
        for from in (0..self.seats.len()).filter(|from| *from != to) {
            if self.is_still(from) {
                continue;
            }
            let all = self.table.shards_of(from);
            let moved = all.without(&all.without(shards));
            let Some(process) = self.seats[from].process.as_mut().filter(|_| !moved.is_empty()) else {
                continue;
            };
            self.findings.count(Fault::ShardsMoved.as_str(), 1);
            self.table.give(&moved, None);
            match self.planted {
                Some(Bug::LeavesUnderWay) => {
                    process.leave(moved, to);
                    self.left(from, moved, to);
                }
                Some(Bug::GoesOnWithLeft) => self.within(1, 10, Happening::TakeIn(moved, to)),
                _ => process.leave(moved, to),
            }
            self.settle(from);
        }
    }

    /// Nothing of these shards is under way any more.
    pub(super) fn left(&mut self, from: usize, shards: ShardSet, to: usize) {
        let Some(process) = &mut self.seats[from].process else {
            return;
        };
        process.shard.forget_left(&shards);
        let incarnation = process.incarnation;
        if self.give_back(incarnation, &shards) {
            self.within(0, 10, Happening::TakeIn(shards, to));
        }
    }

    /// A seat gets shards. If its process is dead, the next one takes them in.
    pub(super) fn take_in(&mut self, shards: &ShardSet, seat: usize) {
        if self.is_still(seat) {
            let until = self.seats[seat].still_until;
            return self.at(until, Happening::TakeIn(*shards, seat));
        }
        self.table.give(shards, Some(seat));
        let Some(incarnation) = self.present(seat) else {
            return;
        };
        let claimed = self.claim(incarnation, shards);
        let Some(process) = &mut self.seats[seat].process else {
            return;
        };
        process.append_under(&claimed);
        if let Err(problem) = process.take_in(shards, &self.store) {
            self.findings.problem(problem);
        }
        self.settle(seat);
    }
}
