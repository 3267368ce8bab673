//! Clients of the service, one for each region.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::Builder;
use aws_sdk_sqs::config::timeout::TimeoutConfig;
use starbridge_aws::{Aws, ClientsByRegion, SdkConfig};
use std::time::Duration;

/// How long one try of a request may take.
const TRY: Duration = Duration::from_secs(10);
/// How long a request may take with all its tries.
const REQUEST: Duration = Duration::from_secs(20);

/// Clients by region.
pub(crate) type Clients = ClientsByRegion<Client>;

/// No clients yet, which reach the service through `aws`.
pub(crate) fn clients(aws: Aws) -> Clients {
    Clients::new(aws, client)
}

fn client(config: &SdkConfig) -> Client {
    let limits = config
        .timeout_config()
        .map(TimeoutConfig::to_builder)
        .unwrap_or_default();
    let limits = limits.operation_attempt_timeout(TRY).operation_timeout(REQUEST);
    Client::from_conf(Builder::from(config).timeout_config(limits.build()).build())
}
