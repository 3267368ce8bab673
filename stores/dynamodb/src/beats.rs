//! Last heartbeats on calls.

use crate::DynamoStore;
use crate::item::{number, text_of, time_of};
use crate::op::Op;
use crate::table::{self, SK};
use crate::wire::{Ask, BEGINS};
use starbridge_machine::EventId;
use starbridge_ports::{Beat, StoreError};

/// The prefix of range keys of heartbeats.
const PREFIX: &str = "B#";

impl DynamoStore {
    pub(crate) fn beats_of(&self, execution: &str) -> Result<Vec<Beat>, StoreError> {
        let items = self
            .wire
            .all(&Ask::partition(&table::execution(execution), Some((BEGINS, PREFIX))))?;
        let read = |item| {
            let call = text_of(item, SK)?.strip_prefix(PREFIX)?.parse().ok()?;
            Some(Beat {
                call: EventId(call),
                seen: time_of(item, "seen")?,
                told: time_of(item, "told"),
            })
        };
        Ok(items.iter().filter_map(read).collect())
    }

    pub(crate) fn take_down(&self, execution: &str, beat: &Beat) -> Result<(), StoreError> {
        let key = (table::execution(execution), format!("{PREFIX}{:020}", beat.call.0));
        let write = self.write_id();
        if let Some(told) = beat.told {
            let op = Op::update(key.clone(), "SET #told = :told").with(":told", number(told.0));
            self.wire.write(&[op], &write)?;
        }
        // If a later heartbeat is stored, it stays.
        let op = Op::update(key, "SET #seen = :seen")
            .when("attribute_not_exists(#seen) OR #seen < :seen")
            .with(":seen", number(beat.seen.0));
        self.wire.write(&[op], &format!("{write}-s")).map(drop)
    }
}
