//! Each refusal of Redis has a name and an understandable cause, within the time of the task.

use super::setting::{
    PASSWORD, ask, call, call_within, connector, entries, failed, opened, sent, settings, settings_as, start,
};
use starbridge_connector_redis::{Address, RedisConnector, RedisSettings};
use std::time::{Duration, Instant};

/// A call that Redis refuses at once.
async fn refused(connector: &RedisConnector, error: &str, word: &str) {
    let begun = Instant::now();
    let (name, cause) = failed(connector, call_within("redis:orders", Duration::from_secs(20))).await;
    assert_eq!(name, error, "{cause}");
    let place = cause.starts_with("stream `orders` at `127.0.0.1:");
    assert!(place && cause.contains(word), "{cause}");
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "it waited for what does not pass"
    );
}

#[tokio::test]
async fn a_replica_takes_no_writes() {
    let service = start(&["--replicaof", "127.0.0.1 1"]);
    let connector = connector(&service);
    let before = opened(&service).await;
    refused(&connector, "Redis.ReadOnly", "replica").await;
    refused(&connector, "Redis.ReadOnly", "replica").await;
    // The connector's connection is closed too: another server may answer under that name the next
    // time.
    assert_eq!(opened(&service).await - before, 3);
    let _: String = ask(&service, "REPLICAOF NO ONE").await;
    sent(&connector, call("redis:orders", 1)).await;
}

#[tokio::test]
async fn too_few_replicas() {
    let service = start(&["--min-replicas-to-write", "1"]);
    refused(&connector(&service), "Redis.NOREPLICAS", "replicas").await;
}

#[tokio::test]
async fn no_memory_is_left() {
    let service = start(&["--maxmemory", "1", "--maxmemory-policy", "noeviction"]);
    refused(&connector(&service), "Redis.OutOfMemory", "memory is full").await;
}

#[tokio::test]
async fn the_name_is_taken_by_something_else() {
    let service = start(&[]);
    let _: String = ask(&service, "SET orders 1").await;
    refused(&connector(&service), "Redis.WrongType", "no stream").await;
}

#[tokio::test]
async fn the_password_is_wrong_or_missing() {
    let service = start(&[]);
    let _: String = ask(&service, "CONFIG SET requirepass something-else").await;
    refused(&connector(&service), "Redis.AccessDenied", "wants a password").await;
    for login in [format!(":{PASSWORD}@"), format!("nobody:{PASSWORD}@")] {
        let wrong = RedisConnector::new(settings_as(&service, &login));
        refused(&wrong, "Redis.AccessDenied", "refused").await;
        refused(&wrong, "Redis.AccessDenied", "refused").await;
    }
    let right = RedisConnector::new(settings_as(&service, ":something-else@"));
    sent(&right, call("redis:orders", 1)).await;
}

#[tokio::test]
async fn the_user_may_not_add() {
    let service = start(&[]);
    for (name, rules) in [("reader", "~* +xread +ping"), ("other", "~private +@all")] {
        let user = format!("ACL SETUSER {name} on >{PASSWORD} {rules}");
        let _: String = ask(&service, &user).await;
        let user = RedisConnector::new(settings_as(&service, &format!("{name}:{PASSWORD}@")));
        refused(&user, "Redis.AccessDenied", "may not").await;
    }
}

#[tokio::test]
async fn there_is_no_such_database() {
    let service = start(&[]);
    let url = format!("{}/99", service.url());
    let nowhere = RedisConnector::new(RedisSettings::new(Address::parse(&url).unwrap()));
    refused(&nowhere, "Redis.ERR", "out of range").await;
}

#[tokio::test]
async fn nobody_is_there() {
    let mut service = start(&[]);
    service.stop();
    let begun = Instant::now();
    let request = call_within("redis:orders", Duration::from_secs(3));
    let (error, cause) = failed(&connector(&service), request).await;
    let took = begun.elapsed();
    assert_eq!(error, "Redis.ConnectionFailed");
    assert!(cause.ends_with("connection refused"), "{cause}");
    assert!(
        took > Duration::from_secs(2) && took < Duration::from_secs(3),
        "{took:?}"
    );
    let unknown = RedisConnector::new(RedisSettings {
        patience: Duration::from_millis(200),
        ..RedisSettings::new(Address::parse("redis://nobody.invalid").unwrap())
    });
    assert_eq!(
        failed(&unknown, call("redis:orders", 1)).await.0,
        "Redis.ConnectionFailed"
    );
}

#[tokio::test]
async fn who_is_there_says_nothing() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let silent = RedisConnector::new(RedisSettings {
        patience: Duration::from_millis(300),
        ..RedisSettings::new(Address::parse(&url).unwrap())
    });
    let begun = Instant::now();
    let (error, cause) = failed(&silent, call("redis:orders", 1)).await;
    assert_eq!(error, "Redis.ConnectionFailed", "{cause}");
    assert!(begun.elapsed() < Duration::from_secs(2));
}

/// Ten milliseconds a key: two seconds for 200 keys.
#[tokio::test]
async fn a_redis_that_reads_its_data_is_waited_for() {
    let mut service = start(&[
        "--appendonly",
        "no",
        "--rdbcompression",
        "no",
        "--key-load-delay",
        "10000",
        // It answers meanwhile.
        "--loading-process-events-interval-bytes",
        "1024",
    ]);
    let kept = "x".repeat(1024);
    for number in 0..200 {
        let _: String = ask(&service, &format!("SET key{number} {kept}")).await;
    }
    let _: String = ask(&service, "SAVE").await;
    let patient = connector(&service);
    let impatient = RedisConnector::new(RedisSettings {
        patience: Duration::from_millis(500),
        ..settings(&service)
    });
    // It answers before it is killed, so that there is a server to wait for.
    sent(&impatient, call("redis:warm", 1)).await;
    service.kill();
    let again = tokio::task::spawn_blocking(move || {
        service.start_again();
        service
    });
    let (error, cause) = loop {
        let (error, cause) = failed(&impatient, call("redis:orders", 1)).await;
        if error != "Redis.ConnectionFailed" {
            break (error, cause);
        }
    };
    assert_eq!(error, "Redis.Loading", "{cause}");
    assert!(cause.contains("reading its data"), "{cause}");
    sent(&patient, call("redis:orders", 2)).await;
    let service = again.await.unwrap();
    assert_eq!(entries(&service, "orders").await.len(), 1);
}
