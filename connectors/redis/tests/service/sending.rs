//! The entries that arrive in a stream, and the results of calls.

use super::setting::{call, call_within, connector, entries, failed, only_entry, opened, sent, settings, start};
use starbridge_connector_redis::{RedisConnector, RedisSettings};
use starbridge_flow::graph::Pattern;
use starbridge_flow::value::Value;
use starbridge_ports::{Connector, Outcome, Request};
use std::sync::Arc;
use std::time::Duration;

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn an_entry_has_the_body_and_all_ids() {
    let service = start(&[]);
    let mut request = call_within("redis:orders", Duration::from_secs(60));
    request.keys.traceparent = Some("00-1-2-01".to_owned());
    request.rollback = true;
    request.attempt = 3;
    let end = request.timeout_at.unwrap().to_string();
    let id = sent(&connector(&service), request).await;
    assert_eq!(entries(&service, "orders").await[0].0, id);
    let entry = only_entry(&service, "orders").await;
    let expected = [
        ("attempt", "3"),
        ("body", "{\"n\":1}"),
        ("execution", "execution"),
        ("flow", "flow"),
        ("idempotencyKey", "execution/1"),
        ("pattern", "requestResponse"),
        ("step", "a step"),
        ("stepKey", "execution/1"),
        ("timeoutAt", &end),
        ("traceparent", "00-1-2-01"),
        ("type", "rollback"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(entry.into_iter().collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn a_callback_gets_the_same_as_its_receipt() {
    let service = start(&[]);
    let mut request = call("redis:orders", 7);
    request.pattern = Pattern::WaitForCallback;
    let outcome = connector(&service).call(request).await;
    let id = entries(&service, "orders").await.remove(0).0;
    let receipt = json(&format!("{{\"id\":\"{id}\",\"stream\":\"orders\"}}"));
    assert_eq!(outcome, Outcome::Accepted { receipt: Some(receipt) });
    assert_eq!(only_entry(&service, "orders").await["pattern"], "waitForCallback");
}

#[tokio::test]
async fn parameters_say_what_is_sent() {
    let service = start(&["--stream-node-max-entries", "1"]);
    let connector = connector(&service);
    let with = |params: &str| Request {
        params: Some(json(params)),
        ..call("redis:orders", 1)
    };
    sent(&connector, with("{\"order\":7,\"n\":null}")).await;
    assert_eq!(only_entry(&service, "orders").await["body"], "{\"order\":7,\"n\":null}");
    let mut request = with(
        "{\"body\":\"text\",\"fields\":{\"tenant\":\"a\",\"list\":[1],\"none\":null},\"idempotency\":\"step\",\
         \"maxLength\":1}",
    );
    request.keys.step_visit = "visit".to_owned();
    sent(&connector, request).await;
    let entry = only_entry(&service, "orders").await;
    assert_eq!(entry["body"], "\"text\"");
    assert_eq!(entry["idempotencyKey"], "visit");
    assert_eq!((entry["tenant"].as_str(), entry["list"].as_str()), ("a", "[1]"));
    assert!(!entry.contains_key("none"));
    for (params, word) in [
        ("{\"body\":1,\"delay\":2}", "`delay`"),
        ("{\"fields\":{\"attempt\":\"9\"}}", "`attempt`"),
        ("{\"fields\":[]}", "an object"),
        ("{\"maxLength\":0}", "`maxLength`"),
        ("{\"maxLength\":1.5}", "`maxLength`"),
        ("{\"idempotency\":\"never\"}", "`idempotency`"),
    ] {
        let (error, cause) = failed(&connector, with(params)).await;
        assert_eq!(error, "FnF.NoSuchResource");
        assert!(cause.contains(word), "{cause}");
    }
    for target in ["redis:", "redis://elsewhere/orders"] {
        assert_eq!(failed(&connector, call(target, 1)).await.0, "FnF.NoSuchResource");
    }
    only_entry(&service, "orders").await;
}

#[tokio::test]
async fn a_message_over_the_limit_is_not_sent() {
    let service = start(&[]);
    let limited = |message_bytes| {
        RedisConnector::new(RedisSettings {
            message_bytes,
            ..settings(&service)
        })
    };
    sent(&limited(1 << 20), call("redis:orders", 1)).await;
    let entry = only_entry(&service, "orders").await;
    let bytes: usize = entry.iter().map(|(name, value)| name.len() + value.len()).sum();
    let (error, cause) = failed(&limited(bytes - 1), call("redis:orders", 1)).await;
    assert_eq!(error, "FnF.PayloadTooLarge");
    assert!(cause.contains(&format!("{bytes} bytes")), "{cause}");
    only_entry(&service, "orders").await;
    sent(&limited(bytes), call("redis:orders", 1)).await;
    assert_eq!(entries(&service, "orders").await.len(), 2);
}

#[tokio::test]
async fn calls_share_one_connection() {
    let service = start(&[]);
    let before = opened(&service).await;
    let connector = Arc::new(connector(&service));
    let calls: Vec<_> = (0..1000)
        .map(|number| {
            let connector = connector.clone();
            tokio::spawn(async move { sent(&connector, call("redis:orders", number)).await })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(entries(&service, "orders").await.len(), 1000);
    // In addition to the connector's own, there are those of the two questions since the first one.
    assert_eq!(opened(&service).await - before, 3);
}
