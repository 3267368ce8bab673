//! Reports from a stream: at least once, regardless of the order of failures.

use super::setting::{ask, entries, put, received, replies, replies_as, start};
use redis::Value;
use starbridge_connector_redis::{RedisReplies, ReplyStream};
use starbridge_ports::{ReplyMessage, ReplySource};
use starbridge_services::Service;
use std::collections::BTreeSet;
use std::time::Duration;

fn bodies(messages: &[ReplyMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.body.as_str()).collect()
}

async fn put_body(service: &Service, body: &str) {
    put(service, "replies", &[("body", body)]).await;
}

/// How many entries the stream has, and how many of them are delivered.
async fn left(service: &Service) -> (usize, u64) {
    let pending: (u64, Value, Value, Value) = ask(service, "XPENDING replies starbridge").await;
    (entries(service, "replies").await.len(), pending.0)
}

#[tokio::test]
async fn reports_come_in_order_and_are_gone_when_they_are_done() {
    let service = start(&[]);
    put_body(&service, "{\"token\":\"a\",\"output\":{}}").await;
    let replies = replies(&service, "replies");
    assert!(replies.name().starts_with("redis:replies at 127.0.0.1:"));
    let first = received(&replies).await;
    assert_eq!(bodies(&first), ["{\"token\":\"a\",\"output\":{}}"]);
    put(&service, "replies", &[("token", "b"), ("error", "E"), ("cause", "c")]).await;
    put(&service, "replies", &[("token", "c"), ("heartbeat", "true")]).await;
    let second = received(&replies).await;
    assert_eq!(
        bodies(&second),
        [
            r#"{"token":"b","error":"E","cause":"c"}"#,
            r#"{"token":"c","heartbeat":true}"#
        ]
    );
    assert_eq!(left(&service).await, (3, 3));
    replies.done(first).await.unwrap();
    replies.done(second).await.unwrap();
    replies.done(Vec::new()).await.unwrap();
    assert_eq!(left(&service).await, (0, 0));
    assert_eq!(
        replies.receive().await,
        Ok(Vec::new()),
        "it comes back with none after a while"
    );
}

#[tokio::test]
async fn what_is_rejected_is_kept_with_the_reason() {
    let service = start(&[]);
    put_body(&service, "not JSON").await;
    let replies = replies(&service, "replies");
    let message = received(&replies).await.remove(0);
    let id = message.handle.clone();
    replies.reject(message, "the body is no JSON".to_owned()).await.unwrap();
    assert_eq!(left(&service).await, (0, 0));
    let dead = entries(&service, "replies:dead").await.remove(0).1;
    let expected = [
        ("id", id.as_str()),
        ("reason", "the body is no JSON"),
        ("body", "not JSON"),
    ];
    assert_eq!(dead, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
}

#[tokio::test]
async fn who_starts_again_gets_first_what_was_not_done() {
    let service = start(&[]);
    for body in ["1", "2", "3"] {
        put_body(&service, body).await;
    }
    let before = replies(&service, "replies");
    let mut first = received(&before).await;
    assert_eq!(bodies(&first), ["1", "2", "3"]);
    before.done(vec![first.remove(1)]).await.unwrap();
    drop(before);
    put_body(&service, "4").await;
    // Deleted while it was delivered, so there is nothing to report.
    let _: u64 = ask(&service, &format!("XDEL replies {}", first[0].handle)).await;
    let after = replies(&service, "replies");
    assert_eq!(bodies(&received(&after).await), ["3"]);
    assert_eq!(bodies(&received(&after).await), ["4"]);
    assert_eq!(left(&service).await, (2, 2));
}

#[tokio::test]
async fn what_others_hold_for_too_long_is_claimed_and_so_is_ones_own() {
    let service = start(&[]);
    put_body(&service, "1").await;
    let patient = replies(&service, "replies");
    assert_eq!(bodies(&received(&patient).await), ["1"]);
    drop(patient);
    let claiming = replies_as(
        &service,
        ReplyStream {
            consumer: "another".to_owned(),
            claim_after: Duration::from_millis(400),
            ..ReplyStream::new("replies")
        },
    );
    let begun = std::time::Instant::now();
    assert_eq!(bodies(&received(&claiming).await), ["1"]);
    assert_eq!(bodies(&received(&claiming).await), ["1"], "it was not done");
    assert!(begun.elapsed() >= Duration::from_millis(400));
    let again = received(&claiming).await;
    claiming.done(again).await.unwrap();
    assert_eq!(left(&service).await, (0, 0));
}

#[tokio::test]
async fn a_reading_that_is_dropped_loses_nothing() {
    let service = start(&[]);
    let replies = replies(&service, "replies");
    assert_eq!(replies.receive().await, Ok(Vec::new()));
    let cut = tokio::time::timeout(Duration::from_millis(50), replies.receive()).await;
    assert!(cut.is_err());
    // Redis delivers it to the read that was dropped.
    put_body(&service, "1").await;
    assert_eq!(bodies(&received(&replies).await), ["1"]);
}

#[tokio::test]
async fn a_group_that_is_gone_is_made_anew() {
    let service = start(&[]);
    let replies = replies(&service, "replies");
    put_body(&service, "1").await;
    assert_eq!(bodies(&received(&replies).await), ["1"]);
    let _: String = ask(&service, "FLUSHALL").await;
    put_body(&service, "2").await;
    assert_eq!(bodies(&received(&replies).await), ["2"]);
}

#[tokio::test]
async fn failures_are_told_in_words() {
    let mut service = start(&[]);
    let _: String = ask(&service, "SET replies 1").await;
    let replies = replies(&service, "replies");
    let told = replies.receive().await.unwrap_err().to_string();
    assert!(told.starts_with("Redis.WrongType: `127.0.0.1:"), "{told}");
    service.kill();
    let told = replies.receive().await.unwrap_err().to_string();
    assert!(told.contains("connection"), "{told}");
}

const REPORTS: usize = 600;

/// Takes reports until all have been seen, even if some come repeatedly.
async fn all(replies: &RedisReplies) -> usize {
    let mut seen = BTreeSet::new();
    let mut taken = 0;
    while seen.len() < REPORTS {
        let messages = received(replies).await;
        taken += messages.len();
        seen.extend(messages.iter().map(|message| message.body.clone()));
        // If Redis is gone, they come again.
        let _ = replies.done(messages).await;
    }
    taken
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn none_is_lost_when_redis_is_killed() {
    let mut service = start(&[]);
    let replies = replies_as(
        &service,
        ReplyStream {
            count: 10,
            claim_after: Duration::from_secs(2),
            ..ReplyStream::new("replies")
        },
    );
    for number in 0..REPORTS / 2 {
        put_body(&service, &number.to_string()).await;
    }
    let taking = tokio::spawn(async move { all(&replies).await });
    for number in REPORTS / 2..REPORTS {
        put_body(&service, &number.to_string()).await;
        if number % 100 == 0 {
            service.kill();
            service = tokio::task::spawn_blocking(move || {
                service.start_again();
                service
            })
            .await
            .unwrap();
        }
    }
    assert!(taking.await.unwrap() >= REPORTS);
}
