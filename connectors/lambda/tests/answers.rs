//! The requests that Lambda receives, and answers that no stand-in gives.

use serde_json::{Value, json};
use starbridge_aws::{Aws, AwsSettings, base64};
use starbridge_connector_lambda::LambdaConnector;
use starbridge_flow::graph::Pattern;
use starbridge_flow::time::Seconds;
use starbridge_ports::{CallIds, Connector, Outcome, Request, ResourceFamily, Secret};
use starbridge_services::{Answering, Heard, Said};
use std::sync::Mutex;
use std::sync::mpsc::channel;

fn request(target: &str, params: &Value) -> Request {
    Request {
        target: target.to_owned(),
        via: ResourceFamily::Direct,
        pattern: Pattern::RequestResponse,
        input: starbridge_flow::value::Value::empty_object(),
        params: Some(serde_json::from_value(params.clone()).unwrap()),
        keys: CallIds {
            idempotency: "exec/3".to_owned(),
            step: "zahl ü".to_owned(),
            ..CallIds::default()
        },
        attempt: 1,
        rollback: true,
        polling: false,
        follow: false,
        timeout_at: None,
        answer_limit: 1 << 20,
    }
}

async fn call(request: Request, answer: impl Fn(&Heard) -> Said + Send + Sync + 'static) -> Outcome {
    let server = Answering::start(answer).unwrap();
    let aws = Aws::new(AwsSettings {
        endpoint: Some(server.url()),
        region: Some("us-east-1".to_owned()),
        access_key: Some(("AKIATEST".to_owned(), Secret::new("not-to-be-seen"))),
    });
    LambdaConnector::new(aws).call(request).await
}

#[tokio::test]
async fn keys_go_in_the_context() {
    let (hear, heard) = channel();
    let hear = Mutex::new(hear);
    let params = json!({"Payload": {"n": 1}, "ClientContext": {"custom": {"mine": "x"}}});
    let outcome = call(request("lambda:pay:live", &params), move |heard| {
        hear.lock().unwrap().send(heard.clone()).unwrap();
        Said::Answer(200, vec![], "{}".to_owned())
    });
    assert!(matches!(outcome.await, Outcome::Result(_)));
    let heard = heard.recv().unwrap();
    assert_eq!(
        heard.head.first().map(String::as_str),
        Some("POST /2015-03-31/functions/pay/invocations?Qualifier=live HTTP/1.1")
    );
    assert_eq!(heard.header("x-amz-invocation-type"), Some("RequestResponse"));
    assert_eq!(heard.body, br#"{"n":1}"#);
    let context = base64::decode(heard.header("x-amz-client-context").unwrap()).unwrap();
    let custom = serde_json::from_slice::<Value>(&context).unwrap()["custom"].clone();
    let expected = json!({
        "mine": "x", "Idempotency-Key": "exec/3", "Starbridge-Step": "zahl ü", "Starbridge-Attempt": "1",
        "Starbridge-Type": "rollback",
    });
    assert_eq!(custom, expected);
}

#[tokio::test]
async fn refusals_have_names_and_causes() {
    for (status, code, error) in [
        (429, "TooManyRequestsException", "Lambda.TooManyRequestsException"),
        (403, "AccessDeniedException", "Lambda.AccessDenied"),
        (403, "UnrecognizedClientException", "Lambda.AccessDenied"),
        (502, "ENILimitReachedException", "Lambda.ENILimitReachedException"),
        (500, "ServiceException", "Lambda.ServiceException"),
    ] {
        let outcome = call(request("lambda:pay", &json!({})), move |_| {
            let headers = vec![
                ("x-amzn-errortype", format!("{code}:http://internal/")),
                ("Retry-After", "3".to_owned()),
            ];
            Said::Answer(
                status,
                headers,
                json!({"Message": "Why.", "message": "Why."}).to_string(),
            )
        });
        let expected = Outcome::Failed {
            error: error.into(),
            cause: "function `pay`: Why.".to_owned(),
            retry_after: Some(Seconds(3)),
        };
        assert_eq!(outcome.await, expected, "{code}");
    }
}
