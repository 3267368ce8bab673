//! Delivering a notice: as a call of the target's connector.

use super::{Notice, NotifierDeps, Target, signature};
use starbridge_fdl::FAULT_NAMES;
use starbridge_flow::graph::{FaultKind, Pattern};
use starbridge_flow::time::Seconds;
use starbridge_flow::value::{Object, Value};
use starbridge_ports::{CallIds, Outcome, Request, ResourceFamily};
use std::time::Duration;

/// How many bytes of an answer are read. Its content does not matter.
const MAX_ANSWER_BYTES: usize = 4_096;

/// Why a delivery failed.
#[derive(Debug)]
pub(super) struct DeliveryError {
    /// The name of the error.
    pub error: String,
    /// What happened, for people.
    pub cause: String,
    /// How long the target asks not to be called.
    pub retry_after: Option<Seconds>,
}

/// Delivers a notice to a target within `time`.
pub(super) async fn deliver(
    deps: &NotifierDeps,
    target: &Target,
    notice: &Notice,
    failures: u32,
    time: Duration,
) -> Result<(), DeliveryError> {
    let untold = |error: &FaultKind, cause: String| DeliveryError {
        error: FAULT_NAMES.name(error).to_string(),
        cause,
        retry_after: None,
    };
    let scheme = target.scheme();
    let no_connector = || untold(&FaultKind::Resource, format!("there is no connector for `{scheme}:`"));
    let connector = deps.connectors.get(scheme).ok_or_else(no_connector)?;
    let request = request(deps, target, notice, failures, time)
        .map_err(|name| untold(&FaultKind::Resource, format!("there is no secret `{name}`")))?;
    match tokio::time::timeout(time, connector.call(request)).await {
        Ok(Outcome::Result(_) | Outcome::Accepted { .. }) => Ok(()),
        Ok(Outcome::Failed {
            error,
            cause,
            retry_after,
        }) => Err(DeliveryError {
            retry_after,
            ..untold(&error, cause)
        }),
        Ok(Outcome::NotSent { error, cause }) => Err(untold(&error, cause)),
        Err(_) => Err(untold(
            &FaultKind::Timeout,
            format!("no answer within {} s", time.as_secs()),
        )),
    }
}

/// The call that delivers a notice; or the name of the secret that is missing.
fn request(
    deps: &NotifierDeps,
    target: &Target,
    notice: &Notice,
    failures: u32,
    time: Duration,
) -> Result<Request, String> {
    let now = deps.clock.now();
    let (id, message) = (notice.id(), notice.message());
    let params = match &target.secret {
        None => None,
        Some(name) => {
            let secret = deps.secrets.get(name).ok_or_else(|| name.clone())?;
            // Connectors send the compact JSON of the input, so this is what is sent and signed.
            let body = Value::from(message.clone()).to_json();
            Some(signed(&signature(secret.reveal(), now, &body)))
        }
    };
    let step = notice.failure.as_ref().map(|failure| failure.step.to_string());
    Ok(Request {
        target: target.to.clone(),
        via: ResourceFamily::Direct,
        // Any 2xx is enough, whatever the answer contains. A message to a queue needs no answer.
        pattern: match target.is_webhook() {
            true => Pattern::WaitForCallback,
            false => Pattern::RequestResponse,
        },
        input: message.into(),
        params,
        keys: CallIds {
            idempotency: id.clone(),
            step_visit: id,
            execution: notice.execution.clone(),
            flow: notice.flow.clone(),
            step: step.unwrap_or_default(),
            traceparent: None,
        },
        attempt: failures.saturating_add(1),
        rollback: false,
        polling: false,
        follow: false,
        timeout_at: Some(now.plus(time.into())),
        answer_limit: MAX_ANSWER_BYTES,
    })
}

/// `serviceParams` with the signature as a header.
fn signed(signature: &str) -> Value {
    let (mut headers, mut params) = (Object::new(), Object::new());
    headers.insert("Starbridge-Signature".into(), signature.into());
    params.insert("headers".into(), headers.into());
    params.into()
}
