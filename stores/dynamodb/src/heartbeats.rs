//! Last heartbeats on calls.

use crate::DynamoStore;
use crate::client::{BEGINS, QueryRequest};
use crate::item::{number, text_of, time_of};
use crate::op::Op;
use crate::table::{self, SK};
use starbridge_machine::EventId;
use starbridge_ports::{Heartbeat, StoreError};

/// The prefix of range keys of heartbeats.
const PREFIX: &str = "B#";

impl DynamoStore {
    pub(crate) fn heartbeats_of(&self, execution: &str) -> Result<Vec<Heartbeat>, StoreError> {
        let items = self.client.all(&QueryRequest::partition(
            &table::execution(execution),
            Some((BEGINS, PREFIX)),
        ))?;
        let read = |item| {
            let call = text_of(item, SK)?.strip_prefix(PREFIX)?.parse().ok()?;
            Some(Heartbeat {
                call: EventId(call),
                seen: time_of(item, "seen")?,
                told: time_of(item, "told"),
            })
        };
        Ok(items.iter().filter_map(read).collect())
    }

    pub(crate) fn record_heartbeat(&self, execution: &str, beat: &Heartbeat) -> Result<(), StoreError> {
        let key = (table::execution(execution), format!("{PREFIX}{:020}", beat.call.0));
        let write = self.write_id();
        if let Some(told) = beat.told {
            let op = Op::update(key.clone(), "SET #told = :told").with(":told", number(told.0));
            self.client.write(&[op], &write)?;
        }
        // If a later heartbeat is stored, it stays.
        let op = Op::update(key, "SET #seen = :seen")
            .when("attribute_not_exists(#seen) OR #seen < :seen")
            .with(":seen", number(beat.seen.0));
        self.client.write(&[op], &format!("{write}-s")).map(drop)
    }
}
