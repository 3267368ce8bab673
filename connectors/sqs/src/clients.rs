//! Clients of the service, one for each region.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::Builder;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use starbridge_aws::{Aws, Fault};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::Mutex;

/// How long one try of a request may take.
const TRY: Duration = Duration::from_secs(10);
/// How long a request may take with all its tries.
const REQUEST: Duration = Duration::from_secs(20);

/// Clients by region; `None` is the configured one. They share connections and credentials.
pub(crate) struct Clients {
    aws: Aws,
    by_region: Mutex<BTreeMap<Option<String>, Client>>,
}

impl Clients {
    pub(crate) fn new(aws: Aws) -> Self {
        Self {
            aws,
            by_region: Mutex::default(),
        }
    }

    pub(crate) fn aws(&self) -> &Aws {
        &self.aws
    }

    /// The client of a region. Call it from work that [`Aws::run`] or [`Aws::spawn`] runs.
    pub(crate) async fn of_region(&self, region: Option<&str>) -> Result<Client, Fault> {
        let mut clients = self.by_region.lock().await;
        let region = region.map(str::to_owned);
        if let Some(client) = clients.get(&region) {
            return Ok(client.clone());
        }
        let config = self.aws.config(region.as_deref()).await?;
        let limits = config
            .timeout_config()
            .map(TimeoutConfig::to_builder)
            .unwrap_or_default();
        let limits = limits.operation_attempt_timeout(TRY).operation_timeout(REQUEST);
        let config = Builder::from(&config).timeout_config(limits.build()).build();
        let client = Client::from_conf(config);
        clients.insert(region, client.clone());
        Ok(client)
    }
}
