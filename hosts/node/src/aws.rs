//! The queues and functions of AWS, if this program is built with the feature `aws`.

use crate::optional_connectors::OptionalConnectors;
use starbridge_ports::{ContinuationQueue, ReplySource};
use std::sync::Arc;

#[cfg(not(feature = "aws"))]
const WITHOUT: &str = "this program was built without the feature `aws`";

/// The client for AWS of this process: one thread, one set of connections and credentials.
#[cfg(feature = "aws")]
pub(crate) fn way() -> starbridge_aws::Aws {
    static WAY: std::sync::OnceLock<starbridge_aws::Aws> = std::sync::OnceLock::new();
    WAY.get_or_init(|| starbridge_aws::Aws::new(starbridge_aws::AwsSettings::default()))
        .clone()
}

/// Adds the connectors for queues of SQS and functions of Lambda. All runtimes share connections, credentials and
/// batches. Nothing is read or started before the first call.
#[cfg(feature = "aws")]
pub fn add_to(optional_connectors: &mut OptionalConnectors) {
    use starbridge_ports::Connector;
    let way = way();
    let sqs: Arc<dyn Connector> = Arc::new(starbridge_connector_sqs::SqsConnector::new(way.clone()));
    let lambda: Arc<dyn Connector> = Arc::new(starbridge_connector_lambda::LambdaConnector::new(way));
    optional_connectors.add("sqs", move || sqs.clone());
    optional_connectors.add("lambda", move || lambda.clone());
}

/// Records that this program is built without AWS, for errors of calls.
#[cfg(not(feature = "aws"))]
pub fn add_to(optional_connectors: &mut OptionalConnectors) {
    optional_connectors.add_unavailable("sqs", WITHOUT);
    optional_connectors.add_unavailable("lambda", WITHOUT);
}

/// The replies in a queue of SQS, given by name, URL or ARN. Messages that can't be handled go to the dead-letter
/// queue, or where the queue's own redrive policy says.
///
/// # Errors
///
/// What is wrong with a name.
#[cfg(feature = "aws")]
pub fn replies(queue: &str, dead_letters: Option<&str>) -> Result<Arc<dyn ReplySource>, String> {
    let of = starbridge_connector_sqs::ReplyQueue {
        queue: queue.to_owned(),
        dead_letters: dead_letters.map(str::to_owned),
    };
    Ok(Arc::new(starbridge_connector_sqs::SqsReplies::new(way(), &of)?))
}

/// Fails: this program is built without AWS.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "aws"))]
pub fn replies(_: &str, _: Option<&str>) -> Result<Arc<dyn ReplySource>, String> {
    Err(WITHOUT.to_owned())
}

/// The SQS queue in which short-lived processes leave each other messages, and the queue for
/// messages that can't be handled; each by name, URL or ARN.
///
/// # Errors
///
/// What is wrong with a name.
#[cfg(feature = "aws")]
pub fn continuation_queue(queue: &str, dead_letters: Option<&str>) -> Result<Arc<dyn ContinuationQueue>, String> {
    Ok(Arc::new(starbridge_connector_sqs::SqsContinuationQueue::new(
        way(),
        queue,
        dead_letters,
    )?))
}

/// Fails: this program is built without AWS.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "aws"))]
pub fn continuation_queue(_: &str, _: Option<&str>) -> Result<Arc<dyn ContinuationQueue>, String> {
    Err(WITHOUT.to_owned())
}

/// The definitions at `s3://BUCKET/PREFIX`, each with the name of its flow.
///
/// # Errors
///
/// Why they can't be read.
#[cfg(feature = "s3")]
pub fn definitions(place: &str) -> Result<Vec<(String, String)>, String> {
    let place = starbridge_connector_s3::S3Prefix::parse(place)
        .ok_or_else(|| format!("`{place}` is no `s3://BUCKET/PREFIX`"))?;
    let found = starbridge_connector_s3::definitions(&way(), &place).map_err(|fault| fault.cause)?;
    Ok(found.into_iter().map(|it| (it.name, it.text)).collect())
}

/// Fails: this program is built without S3.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "s3"))]
pub fn definitions(place: &str) -> Result<Vec<(String, String)>, String> {
    Err(format!(
        "`{place}` can't be read: this program was built without the feature `s3`"
    ))
}

#[cfg(all(test, not(feature = "aws")))]
mod tests {
    #[test]
    fn aws_without_the_feature_is_named() {
        let mut optional_connectors = crate::optional_connectors::OptionalConnectors::default();
        super::add_to(&mut optional_connectors);
        let unavailable: Vec<&str> = optional_connectors.unavailable().map(|(scheme, _)| scheme).collect();
        assert_eq!(unavailable, ["sqs", "lambda"]);
        assert!(
            super::replies("replies", None)
                .err()
                .unwrap()
                .contains("the feature `aws`")
        );
    }
}
