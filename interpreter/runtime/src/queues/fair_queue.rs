//! Fair queueing: how executions share a queue.
//!
//! A task's virtual time, called its round, is its position within its priority. The tasks of an execution get consecutive rounds, beginning
//! with the round the queue has reached. So an execution with a hundred thousand tasks has one in each round, and the
//! single task of a later one is served in the current round. (Start-time fair queueing with equal weights: Goyal,
//! Vin, Cheng 1996.)

use starbridge_flow::value::Text;
use starbridge_ports::Depth;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// The rounds of all queues. Shared by those who put tasks in and those who take them out.
#[derive(Debug, Default)]
pub struct FairQueue {
    lanes: Mutex<BTreeMap<(Text, u8), Lane>>,
}

#[derive(Debug, Default)]
struct Lane {
    /// The round that is being served.
    reached: u64,
    /// The last round of each execution that has tasks in later rounds.
    ahead: HashMap<Text, u64>,
    /// At this many entries, those that are no longer ahead are dropped.
    sweep_at: usize,
}

/// How many executions are remembered before any is dropped.
const REMEMBERED_EXECUTIONS: usize = 10_000;

impl FairQueue {
    /// Goes on from the rounds that the queues of a store have reached.
    pub fn resume(&self, depths: &[Depth]) {
        for depth in depths {
            self.reached(&depth.queue, depth.priority, depth.virtual_time);
        }
    }

    /// The round of an execution's next task.
    pub fn give(&self, queue: &Text, priority: u8, execution: &Text) -> u64 {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry((queue.clone(), priority)).or_default();
        let virtual_time = match lane.ahead.get(execution) {
            Some(last) => (last + 1).max(lane.reached),
            None => lane.reached,
        };
        lane.ahead.insert(execution.clone(), virtual_time);
        if lane.ahead.len() > lane.sweep_at.max(REMEMBERED_EXECUTIONS) {
            let reached = lane.reached;
            lane.ahead.retain(|_, last| *last > reached);
            // Sweeping goes through all entries, so the next one waits until their number has doubled.
            lane.sweep_at = lane.ahead.len() * 2;
        }
        virtual_time
    }

    /// Records that a task of this round was taken.
    pub fn reached(&self, queue: &Text, priority: u8, virtual_time: u64) {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lane = lanes.entry((queue.clone(), priority)).or_default();
        lane.reached = lane.reached.max(virtual_time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fair_queue_one_task_does_not_wait_for_many() {
        let fair_queue = FairQueue::default();
        let (queue, many, few) = (Text::from("q"), Text::from("many"), Text::from("few"));
        let given: Vec<u64> = (0..5).map(|_| fair_queue.give(&queue, 5, &many)).collect();
        assert_eq!(given, [0, 1, 2, 3, 4]);
        fair_queue.reached(&queue, 5, 2);
        assert_eq!(fair_queue.give(&queue, 5, &few), 2);
        assert_eq!(fair_queue.give(&queue, 5, &few), 3);
        assert_eq!(fair_queue.give(&queue, 5, &many), 5);
        assert_eq!(fair_queue.give(&queue, 9, &many), 0, "each priority counts by itself");
    }

    #[test]
    fn fair_queue_order_survives_a_restart() {
        let fair_queue = FairQueue::default();
        let queue = Text::from("q");
        fair_queue.resume(&[Depth {
            queue: queue.clone(),
            priority: 5,
            waiting: 7,
            virtual_time: 40,
        }]);
        assert_eq!(fair_queue.give(&queue, 5, &Text::from("new")), 40);
    }

    #[test]
    fn fair_queue_forgets_those_that_had_their_turn() {
        let fair_queue = FairQueue::default();
        let queue = Text::from("q");
        for number in 0..3 * REMEMBERED_EXECUTIONS {
            fair_queue.give(&queue, 5, &Text::from(format!("e{number}")));
        }
        let lanes = fair_queue.lanes.lock().unwrap();
        assert!(lanes.values().all(|lane| lane.ahead.len() <= REMEMBERED_EXECUTIONS + 1));
    }
}
