//! Messages arrive with all their parts.

use crate::stand::{Stand, request, result, with_params};
use starbridge_ports::{Connector, ResourceFamily};
use std::collections::BTreeSet;
use tokio::task::JoinSet;

crate::on_both!(
    a_message_arrives_as_it_was_sent,
    url_and_arn_lead_to_the_same_queue,
    a_delay_keeps_it_back,
    a_hundred_at_once_share_requests,
    who_gives_up_takes_nobody_else_along,
);

async fn a_message_arrives_as_it_was_sent(stand: Stand) {
    let url = stand.make("orders", &[]).await;
    let mut sent = with_params(
        request("sqs:orders", 3, r#"{"to": "Zoë 星橋 \u0001"}"#),
        r#"{"MessageAttributes": {"tenant": "ü", "n": 7, "raw": {"DataType": "Binary", "BinaryValue": "AAE="}}}"#,
    );
    sent.rollback = true;
    let said = result(stand.call(sent).await);
    let taken = stand.take(&url, 1).await;
    let message = taken.first().unwrap();
    assert_eq!(message.body(), Some(r#"{"to":"Zoë 星橋 \u0001"}"#));
    assert_eq!(said["MessageId"].as_str(), message.message_id());
    assert_eq!(said["MD5OfMessageBody"].as_str(), message.md5_of_body());
    assert!(said.get("SequenceNumber").is_none());
    let attributes = message.message_attributes().unwrap();
    let text = |name: &str| attributes.get(name).and_then(|value| value.string_value());
    for (name, value) in [
        ("tenant", "ü"),
        ("n", "7"),
        ("Idempotency-Key", "exec/3"),
        ("Starbridge-Step-Key", "exec/2"),
        ("Starbridge-Execution", "exec"),
        ("Starbridge-Flow", "flow"),
        ("Starbridge-Attempt", "2"),
        ("Starbridge-Type", "rollback"),
        ("traceparent", "00-1-2-01"),
    ] {
        assert_eq!(text(name), Some(value), "{name}");
    }
    assert_eq!(attributes["raw"].binary_value().unwrap().as_ref(), [0, 1]);
    assert_eq!(attributes.len(), 10, "the step's name has given way");
}

async fn url_and_arn_lead_to_the_same_queue(stand: Stand) {
    let url = stand.make("orders", &[]).await;
    let account = if url.contains("123456789012") {
        "123456789012"
    } else {
        "000000000000"
    };
    result(stand.call(request(&format!("sqs:{url}"), 1, "{}")).await);
    let arn = format!("sqs:arn:aws:sqs:us-east-1:{account}:orders");
    result(stand.call(request(&arn, 2, "{}")).await);
    let mut of_message_service = request("sqs:orders", 3, "{}");
    of_message_service.via = ResourceFamily::MessageService;
    let said = result(stand.call(of_message_service).await);
    let members: Vec<&str> = said.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["MessageBodyMD5", "MessageId", "RequestId"]);
    assert_eq!(stand.take(&url, 3).await.len(), 3);
}

async fn a_delay_keeps_it_back(stand: Stand) {
    let url = stand.make("later", &[]).await;
    let delayed = with_params(request("sqs:later", 1, "{}"), r#"{"DelaySeconds": 900}"#);
    result(stand.call(delayed).await);
    assert_eq!(stand.counts(&url).await, [0, 0, 1]);
}

async fn a_hundred_at_once_share_requests(stand: Stand) {
    let url = stand.make("many", &[]).await;
    let mut calls = JoinSet::new();
    for n in 0..100 {
        let connector = stand.connector.clone();
        let mut call = request("sqs:many", n, &format!(r#"{{"n": {n}}}"#));
        call.via = ResourceFamily::MessageService;
        calls.spawn(async move { result(connector.call(call).await) });
    }
    let said = calls.join_all().await;
    let distinct = |member: &str| -> BTreeSet<String> { said.iter().map(|said| said[member].to_string()).collect() };
    assert_eq!(distinct("MessageId").len(), 100);
    let requests = distinct("RequestId").len();
    assert!(requests <= 50, "{requests} requests for a hundred messages");
    let bodies: BTreeSet<String> = stand
        .take(&url, 100)
        .await
        .into_iter()
        .filter_map(|taken| taken.body)
        .collect();
    let expected: BTreeSet<String> = (0..100).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
    assert_eq!(bodies, expected);
}

async fn who_gives_up_takes_nobody_else_along(stand: Stand) {
    let url = stand.make("some", &[]).await;
    let mut kept = JoinSet::new();
    let mut given_up = Vec::new();
    for n in 0..90 {
        let connector = stand.connector.clone();
        let call = request("sqs:some", n, &format!(r#"{{"n": {n}}}"#));
        let call = async move { result(connector.call(call).await) };
        if n % 3 == 0 {
            given_up.push(tokio::spawn(call));
        } else {
            kept.spawn(call);
        }
    }
    // All have begun, and none has its answer.
    tokio::task::yield_now().await;
    given_up.iter().for_each(|call| call.abort());
    assert_eq!(kept.join_all().await.len(), 60);
    let bodies: BTreeSet<String> = stand
        .take(&url, 90)
        .await
        .into_iter()
        .filter_map(|taken| taken.body)
        .collect();
    for n in (0..90).filter(|n| n % 3 != 0) {
        assert!(bodies.contains(&format!(r#"{{"n":{n}}}"#)), "{n}");
    }
}
