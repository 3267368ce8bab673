//! How many tasks waited in the queues in the last hour. It is looked at now and then, and the most of each minute is kept in memory.

use super::Node;
use starbridge_flow::time::Timestamp;
use starbridge_flow::value::Text;
use starbridge_runtime::QueueView;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Between two looks.
const BETWEEN_LOOKS: Duration = Duration::from_secs(10);
/// How many minutes are kept, the one that is passing among them.
const MINUTES: i64 = 60;
const MINUTE: i64 = 60_000;
/// How many queues are kept. Of those beyond nothing is known.
const MAX_QUEUES: usize = 256;

/// The minutes of each queue: when it began, and how many tasks waited at most.
#[derive(Debug, Default)]
pub(super) struct QueueDepths(Mutex<BTreeMap<Text, VecDeque<(i64, u64)>>>);

impl QueueDepths {
    /// Takes what is there now. A queue that is not there any more is empty.
    fn see(&self, views: &[QueueView], now: Timestamp) {
        let minute = now.0.div_euclid(MINUTE);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<Text> = kept.keys().cloned().collect();
        for name in names.iter().filter(|name| views.iter().all(|view| view.name != **name)) {
            add(kept.get_mut(name), minute, 0);
        }
        for view in views {
            if kept.len() < MAX_QUEUES || kept.contains_key(&view.name) {
                add(Some(kept.entry(view.name.clone()).or_default()), minute, view.waiting);
            }
        }
        // One that was empty for an hour is forgotten.
        kept.retain(|_, minutes| minutes.iter().any(|(_, most)| *most > 0));
    }

    /// The minutes of a queue, the earliest first.
    fn of(&self, name: &str, now: Timestamp) -> Vec<(Timestamp, u64)> {
        let first = now.0.div_euclid(MINUTE) - MINUTES + 1;
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let minutes = kept.get(name).into_iter().flatten();
        let minutes = minutes.filter(|(minute, _)| *minute >= first);
        minutes
            .map(|(minute, most)| (Timestamp(minute.saturating_mul(MINUTE)), *most))
            .collect()
    }
}

/// Adds what waits in a minute to the minutes before it.
fn add(minutes: Option<&mut VecDeque<(i64, u64)>>, minute: i64, waiting: u64) {
    let Some(minutes) = minutes else { return };
    match minutes.back_mut() {
        Some((last, most)) if *last == minute => *most = (*most).max(waiting),
        _ => minutes.push_back((minute, waiting)),
    }
    // A clock that was set back leaves later minutes behind.
    minutes.retain(|(kept, _)| (minute - MINUTES + 1..=minute).contains(kept));
}

impl Node {
    /// How many tasks waited at most in a queue, by the minute, in the last hour, as far as it was looked at.
    pub fn queue_depths(&self, name: &str) -> Vec<(Timestamp, u64)> {
        self.queue_depths.of(name, self.now())
    }

    /// Looks at the queues now and then, forever.
    pub async fn watch_queue_depths(self: Arc<Self>) {
        loop {
            let views = self.queue_views(MAX_QUEUES).await;
            self.queue_depths.see(&views, self.now());
            tokio::time::sleep(BETWEEN_LOOKS).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(name: &str, waiting: u64) -> QueueView {
        QueueView {
            waiting,
            ..QueueView::of_nothing(name.into())
        }
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp(minute * MINUTE + 7)
    }

    #[test]
    fn most_of_each_minute_is_kept_for_an_hour() {
        let depths = QueueDepths::default();
        for waiting in [3, 9, 4] {
            depths.see(&[view("mail", waiting), view("idle", 0)], at(100));
        }
        depths.see(&[view("mail", 2)], at(101));
        // The queue is empty and not listed any more.
        depths.see(&[], at(102));
        let shown = |now| {
            let minutes = depths.of("mail", at(now)).into_iter();
            minutes.map(|(time, most)| (time.0 / MINUTE, most)).collect::<Vec<_>>()
        };
        assert_eq!(shown(102), [(100, 9), (101, 2), (102, 0)]);
        assert_eq!(shown(160), [(101, 2), (102, 0)]);
        assert!(depths.of("idle", at(102)).is_empty());
        for minute in 103..=165 {
            depths.see(&[], at(minute));
        }
        assert!(shown(165).is_empty());
        assert!(depths.0.lock().unwrap().is_empty());
    }

    #[test]
    fn queues_beyond_the_bound_are_not_kept() {
        let depths = QueueDepths::default();
        let many: Vec<QueueView> = (0..MAX_QUEUES + 5)
            .map(|number| view(&format!("q-{number:04}"), 1))
            .collect();
        depths.see(&many, at(1));
        assert_eq!(depths.0.lock().unwrap().len(), MAX_QUEUES);
        depths.see(&many, at(2));
        assert_eq!(depths.of("q-0000", at(2)).len(), 2);
    }
}
