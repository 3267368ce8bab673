//! Redis is killed: acknowledged entries are still there, and calls go on.

use super::setting::{ask, call, connector, entries, sent, start};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

const CALLS: u32 = 4_000;
const AT_ONCE: u32 = 50;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_and_calls_go_on() {
    let mut service = start(&[]);
    let connector = Arc::new(connector(&service));
    let next = Arc::new(AtomicU32::new(0));
    let senders: Vec<_> = (0..AT_ONCE)
        .map(|_| {
            let (connector, next) = (connector.clone(), next.clone());
            tokio::spawn(async move {
                let mut acknowledged = Vec::new();
                loop {
                    let number = next.fetch_add(1, Ordering::SeqCst);
                    if number >= CALLS {
                        return acknowledged;
                    }
                    acknowledged.push((sent(&connector, call("redis:orders", number)).await, number));
                }
            })
        })
        .collect();
    for part in 1..4 {
        while next.load(Ordering::SeqCst) < CALLS / 4 * part {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        service.kill();
        service = tokio::task::spawn_blocking(move || {
            service.start_again();
            service
        })
        .await
        .unwrap();
    }
    let mut acknowledged = Vec::new();
    for sender in senders {
        acknowledged.extend(sender.await.unwrap());
    }
    assert_eq!(acknowledged.len(), CALLS as usize);
    let kept: BTreeSet<(String, String)> = entries(&service, "orders")
        .await
        .into_iter()
        .map(|(id, fields)| {
            let key = fields.into_iter().find(|(name, _)| name == "idempotencyKey");
            (id, key.unwrap().1)
        })
        .collect();
    for (id, number) in acknowledged {
        let key = format!("execution/{number}");
        assert!(
            kept.contains(&(id.clone(), key)),
            "{id} of call {number} was acknowledged and is gone"
        );
    }
}

#[tokio::test]
async fn a_call_waits_for_a_redis_that_comes_back() {
    let mut service = start(&[]);
    let connector = connector(&service);
    sent(&connector, call("redis:orders", 1)).await;
    service.kill();
    let later = tokio::task::spawn_blocking(move || {
        let (_hold, never) = std::sync::mpsc::channel::<()>();
        let _ = never.recv_timeout(Duration::from_secs(1));
        service.start_again();
        service
    });
    sent(&connector, call("redis:orders", 2)).await;
    let service = later.await.unwrap();
    assert_eq!(entries(&service, "orders").await.len(), 2);
}

#[tokio::test]
async fn a_connection_that_redis_closes_is_opened_anew() {
    let service = start(&[]);
    let connector = connector(&service);
    for number in 0..3 {
        sent(&connector, call("redis:orders", number)).await;
        let _: u64 = ask(&service, "CLIENT KILL TYPE normal SKIPME yes").await;
    }
    assert_eq!(entries(&service, "orders").await.len(), 3);
}
