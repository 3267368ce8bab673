//! Which bulk jobs go on: a few at a time, in the order in which they were made. The others wait until one of these comes
//! to rest.

use starbridge_flow::value::Text;
use starbridge_ports::{BulkJob, BulkState, OpenJob};
use std::collections::HashMap;

/// What a bulk job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BulkWait {
    /// An earlier job that collects its executions.
    Collection,
    /// The end or suspension of an earlier job.
    Place,
}

impl BulkWait {
    /// The words for all waits.
    pub const WORDS: [&str; 2] = ["collection", "place"];

    /// The word for the wait.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Collection => "collection",
            Self::Place => "place",
        }
    }
}

/// What a job needs a place for. Each kind has places of its own, so that jobs which an operator slowed down keep no place from
/// an urgent one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It collects its executions.
    Collecting,
    /// It handles them as fast as possible.
    Fast,
    /// It handles them at a rate.
    Slow,
}

impl Kind {
    fn of(state: BulkState, rate: Option<u32>) -> Option<Self> {
        match (state, rate) {
            (BulkState::Collecting, _) => Some(Self::Collecting),
            (BulkState::Running, None) => Some(Self::Fast),
            (BulkState::Running, Some(_)) => Some(Self::Slow),
            _ => None,
        }
    }

    /// How many jobs of this kind may run at a time.
    fn places(self) -> usize {
        match self {
            Self::Collecting => 1,
            Self::Fast | Self::Slow => 4,
        }
    }

    fn wait(self) -> BulkWait {
        match self {
            Self::Collecting => BulkWait::Collection,
            Self::Fast | Self::Slow => BulkWait::Place,
        }
    }
}

/// The jobs that have a place.
#[derive(Debug, Default)]
pub(super) struct Places {
    taken: HashMap<Text, Kind>,
}

impl Places {
    /// Gives the free places to the first of these jobs that have none, and returns those.
    pub(super) fn give(&mut self, open: &[OpenJob]) -> Vec<Text> {
        let mut given = Vec::new();
        for job in open {
            let Some(kind) = Kind::of(job.state, job.rate) else {
                continue;
            };
            if !self.taken.contains_key(&job.id) && self.is_free(kind) {
                self.taken.insert(job.id.clone(), kind);
                given.push(job.id.clone());
            }
        }
        given
    }

    /// A job came to rest.
    pub(super) fn leave(&mut self, job: &Text) {
        self.taken.remove(job);
    }

    /// What a job waits for; `None` if it does not wait.
    pub(super) fn wait_of(&self, job: &BulkJob) -> Option<BulkWait> {
        let kind = Kind::of(job.state, job.rate)?;
        let waits = !self.taken.contains_key(&job.id) && !self.is_free(kind);
        waits.then(|| kind.wait())
    }

    fn is_free(&self, kind: Kind) -> bool {
        self.taken.values().filter(|taken| **taken == kind).count() < kind.places()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(id: usize, state: BulkState, rate: Option<u32>) -> OpenJob {
        let id = Text::from(format!("j{id}"));
        OpenJob { id, state, rate }
    }

    fn wait_of(places: &Places, job: &OpenJob) -> Option<BulkWait> {
        places.wait_of(&BulkJob {
            id: job.id.clone(),
            state: job.state,
            rate: job.rate,
            ..BulkJob::default()
        })
    }

    #[test]
    fn few_of_many_jobs_go_on_in_the_order_in_which_they_were_made() {
        let mut places = Places::default();
        let mut jobs: Vec<OpenJob> = (0..100).map(|id| open(id, BulkState::Running, None)).collect();
        assert_eq!(wait_of(&places, &jobs[99]), None);
        assert_eq!(places.give(&jobs), ["j0", "j1", "j2", "j3"]);
        assert!(places.give(&jobs).is_empty());
        assert_eq!(wait_of(&places, &jobs[3]), None);
        assert_eq!(wait_of(&places, &jobs[4]), Some(BulkWait::Place));
        let gone = jobs.remove(2);
        places.leave(&gone.id);
        assert_eq!(places.give(&jobs), ["j4"]);
        // One that is resumed waits until one of the later ones comes to rest.
        jobs.insert(2, gone);
        assert!(places.give(&jobs).is_empty());
        places.leave(&jobs.remove(4).id);
        assert_eq!(places.give(&jobs), ["j2"]);
    }

    #[test]
    fn each_kind_of_job_has_its_own_places() {
        let mut places = Places::default();
        let slow = (0..9).map(|id| open(id, BulkState::Running, Some(1)));
        let collecting = (10..19).map(|id| open(id, BulkState::Collecting, Some(1)));
        let fast = (20..29).map(|id| open(id, BulkState::Running, None));
        let jobs: Vec<OpenJob> = slow.chain(collecting).chain(fast).collect();
        let given = ["j0", "j1", "j2", "j3", "j10", "j20", "j21", "j22", "j23"];
        assert_eq!(places.give(&jobs), given);
        assert_eq!(wait_of(&places, &jobs[10]), Some(BulkWait::Collection));
        assert_eq!(wait_of(&places, &jobs[8]), Some(BulkWait::Place));
        let suspended = open(8, BulkState::Suspended, None);
        assert_eq!(wait_of(&places, &suspended), None);
    }
}
