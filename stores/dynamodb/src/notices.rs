//! Notices: all are in one partition, which is read whole.

use crate::DynamoStore;
use crate::client::QueryRequest;
use crate::item::{Item, keys, number, number_of, text, text_of, time_of};
use crate::op::{Op, PRESENT};
use crate::payload;
use crate::queueing::counted;
use crate::table::NOTICES;
use starbridge_flow::value::Text;
use starbridge_machine::EventId;
use starbridge_ports::{KeptNotice, NextNotice, NoticeChange, Notices, ShardSet, StoreError};
use std::collections::HashSet;

fn place(target: &str, execution: &str, event: EventId) -> String {
    format!("{}#{target}#{execution}#{:020}", target.len(), event.0)
}

pub(crate) fn item(execution: &str, notice: &KeptNotice) -> Item {
    let key = (NOTICES.to_owned(), place(&notice.target, execution, notice.event));
    let mut item = keys(&key);
    for (name, value) in [
        ("target", text(&*notice.target)),
        ("execution", text(execution)),
        ("event", number(notice.event.0)),
        ("at", number(notice.time.0)),
        ("failures", number(0)),
        ("text", payload::attribute(&notice.text)),
    ] {
        item.insert(name.to_owned(), value);
    }
    item
}

impl DynamoStore {
    /// All notices with their targets; those of one target in the order of executions and events.
    fn all_notices(&self) -> Result<Vec<(Text, NextNotice)>, StoreError> {
        self.client
            .all(&QueryRequest::partition(NOTICES, None))?
            .iter()
            .map(|item| {
                let word = |name| Text::from(text_of(item, name).unwrap_or_default());
                let notice = NextNotice {
                    execution: word("execution"),
                    event: EventId(number_of(item, "event").unwrap_or_default()),
                    due: time_of(item, "at").unwrap_or_default(),
                    failures: number_of(item, "failures").unwrap_or_default(),
                    text: payload::of_attribute(item, "text")?,
                };
                Ok((word("target"), notice))
            })
            .collect()
    }

    /// Deletes all notices of an execution.
    pub(crate) fn forget_notices_of(&self, execution: &str) -> Result<(), StoreError> {
        let of_it = self.all_notices()?.into_iter();
        let mut of_it = of_it.filter(|(_, notice)| notice.execution == *execution);
        of_it.try_for_each(|(target, notice)| self.delete_notice(&target, execution, notice.event))
    }

    fn delete_notice(&self, target: &str, execution: &str, event: EventId) -> Result<(), StoreError> {
        let key = (NOTICES.to_owned(), place(target, execution, event));
        self.client.write(&[Op::delete(key)], "").map(drop)
    }
}

impl Notices for DynamoStore {
    fn next_notices(&self, shards: &ShardSet, target: &str, limit: usize) -> Result<Vec<NextNotice>, StoreError> {
        let mut known = HashSet::new();
        let mut next: Vec<NextNotice> = self
            .all_notices()?
            .into_iter()
            .filter(|(of, notice)| of == target && shards.has_execution(&notice.execution))
            .filter(|(_, notice)| known.insert(notice.execution.clone()))
            .map(|(_, notice)| notice)
            .collect();
        // The sort is stable: notices due at the same time stay in the order of executions.
        next.sort_by_key(|notice| notice.due);
        next.truncate(limit);
        Ok(next)
    }

    fn change_notices(&self, changes: &[NoticeChange]) -> Result<(), StoreError> {
        let op = |change: &NoticeChange| {
            let place = place(&change.target, &change.execution, change.event);
            let key = (NOTICES.to_owned(), place);
            match change.again {
                None => Op::delete(key),
                Some((at, failures)) => Op::update(key, "SET #at = :a, #failures = :f")
                    .when(PRESENT)
                    .with(":a", number(at.0))
                    .with(":f", number(failures)),
            }
        };
        self.write_in_pieces(changes.iter().map(op).collect(), None)
    }

    fn forget_notices(&self, target: &str, limit: usize) -> Result<usize, StoreError> {
        let all = self.all_notices()?.into_iter();
        let mut gone: Vec<_> = all
            .filter(|(of, _)| of == target)
            .map(|(_, notice)| (notice.execution, notice.event))
            .collect();
        gone.sort();
        gone.truncate(limit);
        for (execution, event) in &gone {
            self.delete_notice(target, execution, *event)?;
        }
        Ok(gone.len())
    }

    fn notice_counts(&self) -> Result<Vec<(Text, u64)>, StoreError> {
        Ok(counted(self.all_notices()?.into_iter().map(|(target, _)| target)))
    }
}
