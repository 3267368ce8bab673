//! Long streams are trimmed of the entries that all groups have acknowledged, and of nothing else.

use super::setting::{ask, call, connector, entries, sent, settings, start};
use redis::Value;
use starbridge_connector_redis::{RedisConnector, RedisSettings};
use starbridge_services::Service;
use std::time::Duration;

/// A Redis that trims exactly, because each node of a stream has one entry.
async fn with_entries(count: u32) -> Service {
    let service = start(&["--stream-node-max-entries", "1"]);
    let untrimmed = connector(&service);
    for number in 0..count {
        sent(&untrimmed, call("redis:orders", number)).await;
    }
    service
}

/// Sends the first message of a connector, which makes it check streams longer than `trim_above`.
async fn trimmed(service: &Service, trim_above: u64) {
    let connector = RedisConnector::new(RedisSettings {
        trim_above,
        ..settings(service)
    });
    sent(&connector, call("redis:orders", 99)).await;
    // The check runs in the background and takes less than this.
    tokio::time::sleep(Duration::from_millis(300)).await;
}

/// Waits until this is the oldest entry.
async fn begins_with(service: &Service, id: &str) {
    let wait = async {
        while entries(service, "orders").await[0].0 != id {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(10), wait).await;
    waited.unwrap_or_else(|_| panic!("it never begins with {id}"));
}

async fn read(service: &Service, group: &str, count: u32) -> Vec<String> {
    let words = format!("XREADGROUP GROUP {group} somebody COUNT {count} STREAMS orders >");
    let _: Value = ask(service, &words).await;
    let ids = entries(service, "orders").await.into_iter();
    ids.map(|(id, _)| id).collect()
}

#[tokio::test]
async fn what_some_group_still_needs_is_kept() {
    let service = with_entries(20).await;
    for group in ["fast", "slow"] {
        let _: String = ask(&service, &format!("XGROUP CREATE orders {group} 0")).await;
    }
    let ids = read(&service, "fast", 20).await;
    let _: u64 = ask(&service, &format!("XACK orders fast {}", ids.join(" "))).await;
    trimmed(&service, 5).await;
    assert_eq!(
        entries(&service, "orders").await.len(),
        21,
        "the slow group has read nothing"
    );

    read(&service, "slow", 10).await;
    let _: u64 = ask(&service, &format!("XACK orders slow {} {}", ids[0], ids[2])).await;
    trimmed(&service, 5).await;
    // The first one that is not acknowledged.
    begins_with(&service, &ids[1]).await;

    let _: u64 = ask(&service, &format!("XACK orders slow {}", ids[..10].join(" "))).await;
    trimmed(&service, 100).await;
    assert_eq!(entries(&service, "orders").await[0].0, ids[1], "it is not long enough");
    trimmed(&service, 0).await;
    assert_eq!(entries(&service, "orders").await[0].0, ids[1], "it is never trimmed");
    trimmed(&service, 5).await;
    // The last one that all groups have received.
    begins_with(&service, &ids[9]).await;
}

#[tokio::test]
async fn a_stream_without_groups_keeps_everything() {
    let service = with_entries(10).await;
    trimmed(&service, 5).await;
    assert_eq!(entries(&service, "orders").await.len(), 11);
}
