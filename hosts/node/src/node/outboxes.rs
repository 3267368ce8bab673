//! The name under which the server of a store takes rows of outboxes.

use super::Node;
use crate::system::fresh_id;
use starbridge_ports::StoreError;

const KIND: &str = "outbox";
const NAME: &str = "taker";

impl Node {
    /// The name of the store for outboxes. It stays the same: a row that was taken for a store is started in no other.
    ///
    /// # Errors
    ///
    /// The error of the store.
    pub fn outbox_taker(&self) -> Result<String, StoreError> {
        let made = fresh_id(self.now());
        self.store.put_new_value(KIND, NAME, &made)
    }
}
