//! The open connections, and those that make room when a new one comes and there is none.

use super::watch::Watch;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many connections above the limit are accepted, to answer health checks.
pub const RESERVE_SEATS: usize = 64;
/// How many connections may be told to close and not have closed yet.
pub const MAX_LEAVING: usize = 64;
/// How long to wait before looking through all connections again, if few could be closed.
const LOOK: Duration = Duration::from_millis(50);
/// Fewer than one in this many are few.
const FEW_PART: usize = 64;

/// The connections of a server.
#[derive(Debug)]
pub struct Seats {
    /// How many there may be.
    most: usize,
    /// The instant from which times of connections count.
    epoch: Instant,
    /// How long a connection must have been quiet before it may be closed, because a request may be
    /// on its way.
    grace: Duration,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// In the order in which they came.
    seats: BTreeMap<u64, (Kind, Arc<Watch>)>,
    usual: usize,
    reserve: usize,
    /// Connections that could be closed at the last look, the least important first.
    spare: VecDeque<u64>,
    /// Until when to skip the next look.
    enough: Option<Instant>,
}

/// What a connection may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Everything.
    Usual,
    /// Only health checks.
    Reserve,
    /// It was told to close.
    Leaving,
}

/// The seat of a connection. It is given back when this is dropped.
#[derive(Debug)]
pub struct Seat {
    /// The number of the connection.
    number: u64,
    /// What it may do.
    pub kind: Kind,
    /// Watches the connection.
    pub watch: Arc<Watch>,
    seats: Arc<Seats>,
}

impl Seats {
    /// Seats for this many connections. One that has been quiet for less than `grace` is not closed.
    pub fn new(most: usize, grace: Duration) -> Arc<Self> {
        Arc::new(Self {
            most: most.max(1),
            epoch: Instant::now(),
            grace,
            open: Mutex::default(),
        })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A seat for a new connection. If there is none, another connection is closed: first one that never asked
    /// anything, then the one that has been quiet longest. If none can be closed, the result is a
    /// seat of the reserve; `None` if that is full too.
    pub fn seat(self: &Arc<Self>) -> Option<Seat> {
        let mut open = self.open();
        let leaving = open.seats.len() - open.usual - open.reserve;
        let kind = if open.usual < self.most || (leaving < MAX_LEAVING && open.make_room(self.grace)) {
            Kind::Usual
        } else if open.reserve < RESERVE_SEATS || (leaving < MAX_LEAVING && open.make_room_in_reserve(self.grace)) {
            Kind::Reserve
        } else {
            return None;
        };
        match kind {
            Kind::Usual => open.usual += 1,
            _ => open.reserve += 1,
        }
        let number = open.next;
        open.next += 1;
        let watch = Watch::new(self.epoch);
        open.seats.insert(number, (kind, watch.clone()));
        drop(open);
        Some(Seat {
            number,
            kind,
            watch,
            seats: self.clone(),
        })
    }

    /// Tells a connection to close, because the system has no more connections.
    pub fn shrink(&self) {
        self.open().make_room(Duration::ZERO);
    }
}

impl Open {
    fn make_room(&mut self, grace: Duration) -> bool {
        loop {
            while let Some(number) = self.spare.pop_front() {
                if self.dismiss(number, Kind::Usual) {
                    return true;
                }
            }
            if self.enough.is_some_and(|enough| Instant::now() < enough) {
                return false;
            }
            self.spare = self.look(Kind::Usual, grace);
            let few = self.spare.len() * FEW_PART < self.usual;
            self.enough = few.then(|| Instant::now() + LOOK);
            if self.spare.is_empty() {
                return false;
            }
        }
    }

    fn make_room_in_reserve(&mut self, grace: Duration) -> bool {
        let spare = self.look(Kind::Reserve, grace);
        spare.into_iter().any(|number| self.dismiss(number, Kind::Reserve))
    }

    /// The connections of a kind that can be closed.
    fn look(&self, kind: Kind, grace: Duration) -> VecDeque<u64> {
        let of_kind = self.seats.iter().filter(|(_, (own, _))| *own == kind);
        let mut spare: Vec<_> = of_kind
            .filter_map(|(number, (_, watch))| Some((watch.spare(grace)?, *number)))
            .collect();
        spare.sort_unstable();
        spare.into_iter().map(|(_, number)| number).collect()
    }

    /// Tells a connection to close, if that is still possible.
    fn dismiss(&mut self, number: u64, of: Kind) -> bool {
        let Some((kind, watch)) = self.seats.get_mut(&number) else {
            return false;
        };
        if *kind != of || watch.spare(Duration::ZERO).is_none() {
            return false;
        }
        *kind = Kind::Leaving;
        watch.leave();
        self.count_out(of);
        true
    }

    fn count_out(&mut self, kind: Kind) {
        match kind {
            Kind::Usual => self.usual -= 1,
            Kind::Reserve => self.reserve -= 1,
            Kind::Leaving => {}
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.seats.open();
        if let Some((kind, _)) = open.seats.remove(&self.number) {
            open.count_out(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_never_asked_makes_room_first_and_who_is_answered_never() {
        let seats = Seats::new(3, Duration::ZERO);
        let answered = seats.seat().unwrap();
        answered.watch.asked(false);
        let idle = seats.seat().unwrap();
        idle.watch.asked(false);
        idle.watch.answered();
        let silent = seats.seat().unwrap();
        let first = seats.seat().unwrap();
        assert_eq!(first.kind, Kind::Usual);
        first.watch.asked(false);
        silent.watch.told_to_leave().await;
        let second = seats.seat().unwrap();
        assert_eq!(second.kind, Kind::Usual);
        second.watch.asked(false);
        idle.watch.told_to_leave().await;
        assert_eq!(seats.seat().unwrap().kind, Kind::Reserve);
        drop(answered);
        assert_eq!(seats.seat().unwrap().kind, Kind::Usual);
    }

    #[tokio::test]
    async fn the_reserve_is_bounded_and_makes_room_for_who_comes_last() {
        let seats = Seats::new(1, Duration::ZERO);
        let usual = seats.seat().unwrap();
        usual.watch.asked(false);
        let reserve: Vec<Seat> = (0..RESERVE_SEATS).map(|_| seats.seat().unwrap()).collect();
        assert!(reserve.iter().all(|seat| seat.kind == Kind::Reserve));
        let late = seats.seat().unwrap();
        assert_eq!(late.kind, Kind::Reserve);
        reserve[0].watch.told_to_leave().await;
        for seat in reserve.iter().chain([&late]) {
            seat.watch.asked(false);
        }
        assert!(seats.seat().is_none());
        drop(reserve);
        assert_eq!(seats.seat().unwrap().kind, Kind::Reserve);
    }
}
