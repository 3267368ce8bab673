//! Processes that stand still, and those who take their shards meanwhile.

use super::{Happening, World};
use crate::campaigns::simulation::fault::{Bug, Fault};

impl World {
    /// Whether a process does nothing now.
    pub(super) fn is_still(&self, seat: usize) -> bool {
        self.seats[seat].still_until > self.real
    }

    /// Keeps what happens to a process that stands still until it goes on. What it has sent may reach the store meanwhile.
    pub(super) fn unless_still(&mut self, happening: Happening) -> Option<Happening> {
        let seat = match &happening {
            Happening::Write(seat, _)
            | Happening::Written(seat, _)
            | Happening::Answer(seat, ..)
            | Happening::Wake(seat, _)
            | Happening::StandStill(seat) => *seat,
            _ => return Some(happening),
        };
        if !self.is_still(seat) {
            return Some(happening);
        }
        if matches!(happening, Happening::Write(..)) && self.chance.of(50) {
            return Some(happening);
        }
        let until = self.seats[seat].still_until;
        self.at(until, happening);
        None
    }

    pub(super) fn stand_still(&mut self, seat: usize) {
        if self.seats[seat].process.is_none() {
            return;
        }
        self.findings.count(Fault::StandsStill.as_str(), 1);
        let time = self.chance.from(50, 3_000);
        self.seats[seat].still_until = self.real + u64::from(time);
        if self.may(Fault::TakenOver) {
            let life = self.seats[seat].life;
            self.within(1, time, Happening::TakeOver(seat, life));
        }
    }

    /// Another process takes the shards of one that stands still. What that one goes on with later is refused.
    pub(super) fn take_over(&mut self, from: usize, life: u32) {
        let former = self.seats[from]
            .process
            .as_ref()
            .filter(|_| self.seats[from].life == life);
        let Some(former) = former.map(|process| process.incarnation) else {
            return;
        };
        let able: Vec<usize> = (0..self.seats.len())
            .filter(|seat| *seat != from && self.seats[*seat].process.is_some() && !self.is_still(*seat))
            .collect();
        if able.is_empty() || !self.is_still(from) || self.is_over(former) {
            return;
        }
        let to = self.chance.pick(&able);
        self.findings.count(Fault::TakenOver.as_str(), 1);
        let shards = self.held_by(former);
        if self.planted == Some(Bug::LoadsBeforeTheFence) {
            return self.load_before_the_fence(from, to);
        }
        self.end(former);
        self.take_in(&shards, to);
    }

    /// What the former owner has under way reaches the store between the two.
    fn load_before_the_fence(&mut self, from: usize, to: usize) {
        let (Some(former), Some(own)) = (self.seats[from].incarnation, self.present(to)) else {
            return;
        };
        let shards = self.held_by(former);
        if let Some(process) = &mut self.seats[to].process
            && let Err(problem) = process.take_in(&shards, &self.store)
        {
            self.findings.problem(problem);
        }
        self.write(from, self.seats[from].life);
        self.end(former);
        self.table.give(&shards, Some(to));
        let claimed = self.claim(own, &shards);
        if let Some(process) = &mut self.seats[to].process {
            process.append_under(&claimed);
        }
        self.settle(to);
    }
}
