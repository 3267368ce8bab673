//! Functions of AWS Lambda: a call becomes an invocation, and the function's answer its outcome.
//!
//! A host registers the connector under the word before the colon of its resources:
//!
//! ```
//! use starbridge_aws::{Aws, AwsSettings};
//! use starbridge_connector_lambda::LambdaConnector;
//! use starbridge_ports::Connector;
//! use std::collections::BTreeMap;
//! use std::sync::Arc;
//!
//! let lambda = LambdaConnector::new(Aws::new(AwsSettings::default())); // sends nothing yet
//! let mut connectors: BTreeMap<&str, Arc<dyn Connector>> = BTreeMap::new();
//! connectors.insert("lambda", Arc::new(lambda));
//! assert!(connectors["lambda"].sent_members().names().contains("`Payload`"));
//! ```
#![warn(clippy::missing_errors_doc)]

mod answer;
mod compose;
mod function;

use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::Builder;
use aws_sdk_lambda::config::timeout::TimeoutConfig;
use aws_sdk_lambda::primitives::Blob;
use compose::Invocation;
use function::Function;
use starbridge_aws::{Aws, ClientsByRegion, SdkConfig, ServiceError};
use starbridge_ports::{Connector, Outcome, OutcomeFuture, Request, SentMembers};
use std::sync::Arc;
use std::time::Duration;

/// How long an answer is awaited if the task has no limit: somewhat longer than a function may run.
const INVOCATION: Duration = Duration::from_secs(16 * 60);

/// Calls functions: the connector for `lambda:NAME`, `lambda:NAME:QUALIFIER`, and `lambda:` with a function's ARN. A
/// clone shares everything.
#[derive(Clone)]
pub struct LambdaConnector {
    clients: Arc<ClientsByRegion<Client>>,
}

impl LambdaConnector {
    /// A connector that reaches AWS through `aws`. Nothing is sent before the first call.
    pub fn new(aws: Aws) -> Self {
        Self {
            clients: Arc::new(ClientsByRegion::new(aws, client)),
        }
    }

    async fn invoke(self, function: Function, invocation: Invocation) -> Result<answer::Answer, ServiceError> {
        let client = self.clients.of_region(function.region.as_deref()).await?;
        let request = client
            .invoke()
            .function_name(function.name)
            .set_qualifier(invocation.qualifier.or(function.qualifier))
            .invocation_type(invocation.kind)
            .client_context(invocation.context)
            .payload(Blob::new(invocation.payload));
        let answer = request.send().await.map_err(|error| ServiceError::of(&error))?;
        Ok(answer::Answer {
            error: answer.function_error,
            payload: answer.payload.map(Blob::into_inner).unwrap_or_default(),
            status: answer.status_code,
        })
    }

    async fn outcome(&self, request: Request) -> Result<Outcome, Outcome> {
        let function = Function::parse(&request.target)?;
        let invocation = compose::invocation(&request)?;
        let (shown, awaited) = (function.shown(), invocation.is_awaited());
        let invoked = self.clients.aws().run(self.clone().invoke(function, invocation)).await;
        match invoked.and_then(|invoked| invoked) {
            Ok(answer) => Ok(answer::outcome(&request, &answer, awaited)),
            Err(fault) => Ok(answer::failed(&request, fault, &shown)),
        }
    }
}

fn client(config: &SdkConfig) -> Client {
    let limits = config
        .timeout_config()
        .map(TimeoutConfig::to_builder)
        .unwrap_or_default()
        .operation_attempt_timeout(INVOCATION);
    Client::from_conf(Builder::from(config).timeout_config(limits.build()).build())
}

impl Connector for LambdaConnector {
    fn call(&self, request: Request) -> OutcomeFuture<'_> {
        Box::pin(async move { self.outcome(request).await.unwrap_or_else(|failed| failed) })
    }

    fn sent_members(&self) -> SentMembers {
        SentMembers {
            known: &compose::KNOWN,
            sent: &["Payload", "ClientContext"],
        }
    }
}
