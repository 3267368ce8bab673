//! AWS: its queues and functions, where this program is built with the feature `aws`.

use starbridge_ports::{Connector, ReplySource};
use starbridge_runtime::Connectors;
use std::sync::Arc;

/// The connectors to AWS. A clone is the same ones: all owners share connections, credentials and batches. Nothing is read and
/// nothing started before the first call.
#[derive(Clone)]
pub struct AwsConnectors {
    #[cfg(feature = "aws")]
    way: starbridge_aws::Aws,
    sqs: Arc<dyn Connector>,
    lambda: Arc<dyn Connector>,
}

impl AwsConnectors {
    /// Why there are none, if there are none.
    pub const LACKING: Option<&'static str> = match cfg!(feature = "aws") {
        true => None,
        false => Some("this program was built without `aws`"),
    };

    /// Adds them to the others.
    pub fn add_to(&self, connectors: &mut Connectors) {
        connectors.insert("sqs", self.sqs.clone());
        connectors.insert("lambda", self.lambda.clone());
    }
}

#[cfg(feature = "aws")]
impl Default for AwsConnectors {
    fn default() -> Self {
        let way = starbridge_aws::Aws::new(starbridge_aws::AwsSettings::default());
        Self {
            sqs: Arc::new(starbridge_sqs::SqsConnector::new(way.clone())),
            lambda: Arc::new(starbridge_lambda::LambdaConnector::new(way.clone())),
            way,
        }
    }
}

#[cfg(feature = "aws")]
impl AwsConnectors {
    /// The replies that come through a queue of SQS, given by name, URL or ARN; those nobody can deal with go to the queue for
    /// dead letters, or where the queue's own redrive policy says. The error says what is wrong with a name.
    pub fn replies(&self, queue: &str, dead_letters: Option<&str>) -> Result<Arc<dyn ReplySource>, String> {
        let of = starbridge_sqs::ReplyQueue {
            queue: queue.to_owned(),
            dead_letters: dead_letters.map(str::to_owned),
        };
        let source = starbridge_sqs::SqsReplies::new(self.way.clone(), &of)?;
        Ok(Arc::new(source))
    }
}

#[cfg(not(feature = "aws"))]
impl Default for AwsConnectors {
    fn default() -> Self {
        let absent: Arc<dyn Connector> = Arc::new(crate::absent::Absent("aws"));
        Self {
            sqs: absent.clone(),
            lambda: absent,
        }
    }
}

#[cfg(not(feature = "aws"))]
impl AwsConnectors {
    /// This program was built without queues of SQS.
    pub fn replies(&self, queue: &str, _dead_letters: Option<&str>) -> Result<Arc<dyn ReplySource>, String> {
        Err(crate::absent::Absent("aws").problem(queue))
    }
}

#[cfg(all(test, not(feature = "aws")))]
mod tests {
    use super::*;
    use starbridge_fdl::graph::Pattern;
    use starbridge_fdl::value::Object;
    use starbridge_ports::{Keys, Outcome, Request, Via};

    #[tokio::test]
    async fn a_call_without_the_feature_names_it() {
        let mut connectors = Connectors::new();
        AwsConnectors::default().add_to(&mut connectors);
        let request = Request {
            target: "lambda:pay".to_owned(),
            via: Via::Direct,
            pattern: Pattern::RequestResponse,
            input: Object::new(),
            params: None,
            keys: Keys::default(),
            attempt: 1,
            rollback: false,
            polling: false,
            follow: false,
            timeout_at: None,
            answer_limit: 1,
        };
        let cause = "`lambda:pay` can't be used here: this program was built without `aws`";
        let outcome = connectors["lambda"].call(request).await;
        assert_eq!(outcome, Outcome::failed("FnF.NoSuchResource", cause));
    }

    #[test]
    fn without_the_feature_it_is_named() {
        let problem = AwsConnectors::default().replies("sqs:replies", None).err();
        assert_eq!(
            problem.as_deref(),
            Some("`sqs:replies` can't be used here: this program was built without `aws`")
        );
    }
}
