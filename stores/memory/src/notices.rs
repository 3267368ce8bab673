//! Notices.

use crate::queueing::counted;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{Append, NextNotice, NoticeChange, ShardSet};

/// A stored notice.
#[derive(Debug)]
pub(crate) struct Kept {
    target: Text,
    notice: NextNotice,
}

impl Kept {
    pub(crate) fn is_of(&self, execution: &str) -> bool {
        self.notice.execution == execution
    }

    fn is(&self, target: &str, execution: &str, event: EventId) -> bool {
        self.target == target && self.notice.execution == execution && self.notice.event == event
    }
}

impl crate::Kept {
    pub(crate) fn add_notices(&mut self, append: &Append) {
        if !self.numbers.contains_key(&append.execution) {
            return;
        }
        for notice in &append.notices {
            let same = |kept: &Kept| kept.is(&notice.target, &append.execution, notice.event);
            if self.notices.iter().any(same) {
                continue;
            }
            self.notices.push(Kept {
                target: notice.target.clone(),
                notice: NextNotice {
                    execution: append.execution.clone(),
                    event: notice.event,
                    due: notice.time,
                    failures: 0,
                    text: notice.text.clone(),
                },
            });
        }
    }

    pub(crate) fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Vec<NextNotice> {
        let mut next: Vec<&NextNotice> = Vec::new();
        let of_target = self.notices.iter().filter(|kept| kept.target == target);
        for kept in of_target.filter(|kept| shards.has_execution(&kept.notice.execution)) {
            let of = |notice: &&mut &NextNotice| notice.execution == kept.notice.execution;
            match next.iter_mut().find(of) {
                Some(first) if first.event > kept.notice.event => *first = &kept.notice,
                Some(_) => {}
                None => next.push(&kept.notice),
            }
        }
        next.sort_by(|one, other| (one.due, &one.execution).cmp(&(other.due, &other.execution)));
        next.into_iter().take(limit).cloned().collect()
    }

    pub(crate) fn change_notices(&mut self, changes: &[NoticeChange]) {
        for change in changes {
            let is = |kept: &Kept| kept.is(&change.target, &change.execution, change.event);
            let Some(place) = self.notices.iter().position(is) else {
                continue;
            };
            match (change.again, self.notices.get_mut(place)) {
                (Some((due, failures)), Some(kept)) => {
                    kept.notice.due = due;
                    kept.notice.failures = failures;
                }
                _ => drop(self.notices.remove(place)),
            }
        }
    }

    pub(crate) fn forget_notices(&mut self, target: &str, limit: usize) -> usize {
        let of = self.notices.iter().filter(|kept| kept.target == target);
        let mut gone: Vec<_> = of
            .map(|kept| (kept.notice.execution.clone(), kept.notice.event))
            .collect();
        gone.sort();
        gone.truncate(limit);
        self.notices
            .retain(|kept| !gone.iter().any(|(execution, event)| kept.is(target, execution, *event)));
        gone.len()
    }

    pub(crate) fn notice_counts(&self) -> Vec<(Text, u64)> {
        counted(self.notices.iter().map(|kept| &kept.target))
    }
}
