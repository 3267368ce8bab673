//! Stores in tables of a cloud service, shared by several processes.

use crate::config::Config;
use crate::node::LeaseSettings;
use starbridge_ports::Store;
use starbridge_runtime::Express;
use std::sync::Arc;

/// The label that makes one execution `express` or `standard`, overriding its flow.
pub const DURABILITY: &str = "durability";

/// A store that leases executions.
pub struct LeasedStore {
    /// The store itself.
    pub store: Arc<dyn Store>,
    /// Where its leases and its histories are.
    pub leased: LeaseSettings,
    /// The part that keeps back appends of express executions.
    pub express: Arc<Express>,
}

/// The store in a table of DynamoDB. Nothing is read before it is used.
///
/// # Errors
///
/// What is wrong with the configuration.
#[cfg(feature = "dynamodb")]
pub fn open_table(table: &str, config: &Config) -> Result<LeasedStore, String> {
    use crate::system::SystemClock;
    use starbridge_dynamodb::{DynamoSettings, DynamoStore};
    use std::time::Duration;
    const DAY_SECONDS: u64 = 24 * 60 * 60;
    let days = config.retention.days;
    let settings = DynamoSettings {
        table: table.to_owned(),
        owner: uuid::Uuid::new_v4().to_string(),
        retention: (days > 0).then(|| Duration::from_secs(days.saturating_mul(DAY_SECONDS))),
        clock: Arc::new(SystemClock),
    };
    let store = Arc::new(DynamoStore::new(crate::aws::way(), settings));
    let lambda = config.lambda.clone();
    let express = Express::new(store.clone(), store.clone(), move |record| {
        let label = record
            .labels
            .as_ref()
            .and_then(|labels| labels.get(DURABILITY)?.as_str());
        match label {
            Some("express") => true,
            Some("standard") => false,
            _ => lambda.is_express(&record.flow),
        }
    });
    let express = Arc::new(express);
    Ok(LeasedStore {
        store,
        leased: LeaseSettings {
            leases: express.clone(),
            history: express.clone(),
        },
        express,
    })
}

/// Fails: this program is built without stores in DynamoDB.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "dynamodb"))]
pub fn open_table(table: &str, _: &Config) -> Result<LeasedStore, String> {
    Err(format!(
        "`{table}` can't be opened: this program was built without the feature `dynamodb`"
    ))
}
