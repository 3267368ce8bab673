//! Stores in tables of a service, which several processes share.

use crate::config::Config;
use crate::node::Visit;
use starbridge_ports::Store;
use std::sync::Arc;

/// A store that gives executions to whoever works on them, for a time.
pub struct Table {
    /// The store.
    pub store: Arc<dyn Store>,
    /// How it gives them.
    pub visit: Visit,
}

/// This program was built without stores in DynamoDB.
pub fn open_table(table: &str, _: &Config) -> Result<Table, String> {
    Err(format!(
        "`{table}` can't be opened: this program was built without the feature `dynamodb`"
    ))
}
