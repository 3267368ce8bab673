//! Lookups.

use crate::{Execution, Kept};
use starbridge_flow::value::Text;
use starbridge_machine::{EventId, Status};
use starbridge_ports::{Listed, Page, Query, StoreError, Turn, TurnHead, TurnPage, WaitingReason};
use std::collections::BTreeMap;

impl Kept {
    /// A page of executions. A cursor is the number of the last execution shown.
    pub(crate) fn list(&self, query: &Query) -> Result<Page, StoreError> {
        let number = |cursor: &Text| cursor.parse().map_err(|_| StoreError::BadCursor);
        let before = query.cursor.as_ref().map(number).transpose()?;
        let executions = self.executions.range(..before.unwrap_or(u64::MAX)).rev();
        let mut fitting = executions.filter(|(_, execution)| query.fits(&execution.record));
        let found: Vec<_> = fitting.by_ref().take(query.limit).collect();
        let next = found.last().filter(|_| fitting.next().is_some());
        Ok(Page {
            next: next.map(|(number, _)| Text::from(number.to_string())),
            items: found
                .into_iter()
                .map(|(_, execution)| Listed {
                    id: execution.id.clone(),
                    record: execution.record.clone(),
                })
                .collect(),
            looked: None,
        })
    }

    pub(crate) fn reason_counts(&self) -> Vec<(WaitingReason, u64)> {
        let mut counts: BTreeMap<WaitingReason, u64> = BTreeMap::new();
        for execution in self.executions.values() {
            let waiter = || self.admission.waiter(&execution.id);
            let of_admission = || waiter().and_then(|waiter| self.admission.reason_of(&waiter));
            if let Some(reason) = execution.record.waiting_reason().or_else(of_admission) {
                *counts.entry(reason).or_default() += 1;
            }
        }
        counts.into_iter().collect()
    }

    pub(crate) fn counts(&self) -> Vec<(Status, u64)> {
        let mut counts: BTreeMap<u8, (Status, u64)> = BTreeMap::new();
        for execution in self.executions.values() {
            let status = execution.record.status;
            counts.entry(status as u8).or_insert((status, 0)).1 += 1;
        }
        counts.into_values().collect()
    }
}

/// The turns from the one with this event on, or those before it, the nearest first.
fn ahead(execution: &Execution, from: EventId, backwards: bool) -> Box<dyn Iterator<Item = &Turn> + '_> {
    let position = execution.position(from.max(EventId(1)));
    if backwards {
        let until = (position + 1).min(execution.turns.len());
        Box::new(execution.turns[..until].iter().rev())
    } else {
        Box::new(execution.turns[position..].iter())
    }
}

pub(crate) fn turns(execution: &Execution, from: EventId, events: u32, backwards: bool) -> Vec<Turn> {
    let mut page = TurnPage::new(from, events, backwards).bounded();
    let ahead = ahead(execution, from, backwards);
    ahead.take_while(|turn| page.takes(&turn.head())).cloned().collect()
}

pub(crate) fn turn_heads(execution: &Execution, from: EventId, events: u32, backwards: bool) -> Vec<TurnHead> {
    let mut page = TurnPage::new(from, events, backwards);
    let ahead = ahead(execution, from, backwards).map(Turn::head);
    ahead.take_while(|head| page.takes(head)).collect()
}
