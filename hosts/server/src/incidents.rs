//! Where in a history something failed, was tried again or stood still: what is marked beside a slider over its events.

use starbridge_flow::value::{Object, Value};
use starbridge_machine::{Event, EventKind};

/// So many events of a kind are kept. Of more, those that are closest together become one.
const MOST: usize = 400;

/// The events of one kind.
#[derive(Clone, Debug, Default)]
struct Places {
    /// How many there were.
    count: u64,
    /// The first in each stretch of events of the width `apart`.
    events: Vec<u64>,
    apart: u64,
}

impl Places {
    fn add(&mut self, event: u64) {
        self.count += 1;
        let mut apart = self.apart.max(1);
        if self.events.last().is_some_and(|last| last / apart == event / apart) {
            return;
        }
        self.events.push(event);
        while self.events.len() > MOST {
            apart *= 2;
            self.events.dedup_by_key(|event| *event / apart);
        }
        self.apart = apart;
    }

    fn to_value(&self) -> Value {
        let events: Vec<Value> = self.events.iter().map(|event| Value::from(*event)).collect();
        let mut shape = Object::new();
        shape.insert("count".into(), self.count.into());
        shape.insert("events".into(), events.into());
        shape.into()
    }
}

/// The incidents of a history.
#[derive(Clone, Debug, Default)]
pub struct Incidents {
    failures: Places,
    retries: Places,
    pauses: Places,
}

impl Incidents {
    /// Takes the next event.
    pub fn see(&mut self, event: &Event) {
        let places = match &event.detail {
            EventKind::StepFailed { .. }
            | EventKind::RollbackFailed { .. }
            | EventKind::ExecutionFailed { .. }
            | EventKind::ExecutionTimedOut { .. } => &mut self.failures,
            EventKind::RetryScheduled { .. } => &mut self.retries,
            EventKind::ExecutionPaused { .. } => &mut self.pauses,
            _ => return,
        };
        places.add(event.id.0);
    }

    /// As the API tells them.
    pub fn to_value(&self) -> Value {
        let kinds = [
            ("failures", &self.failures),
            ("retries", &self.retries),
            ("pauses", &self.pauses),
        ];
        let kinds = kinds.map(|(kind, places)| (kind.into(), places.to_value()));
        kinds.into_iter().collect::<Object>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_kept_as_they_are_and_many_evenly() {
        let mut few = Places::default();
        for event in [3, 4, 9] {
            few.add(event);
        }
        assert_eq!((few.count, few.events.as_slice()), (3, &[3, 4, 9][..]));
        let mut many = Places::default();
        for event in 1..=100_000 {
            many.add(event);
        }
        assert_eq!(many.count, 100_000);
        assert!((MOST / 2..=MOST).contains(&many.events.len()), "{}", many.events.len());
        assert!(many.events.is_sorted() && many.events[0] == 1);
        // No part of the history is left without a mark.
        let widest = many.events.windows(2).map(|two| two[1] - two[0]).max();
        assert_eq!(widest, Some(many.apart));
        assert!(many.events.last().is_some_and(|last| last + many.apart > 100_000));
    }
}
