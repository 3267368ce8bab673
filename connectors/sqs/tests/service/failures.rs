//! Failures: each has a name and a cause.

use crate::stand::{Stand, failure, request, result, with_params};
use aws_sdk_sqs::types::QueueAttributeName;
use starbridge_ports::Connector;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

crate::on_both!(
    a_queue_that_is_not_there,
    a_queue_of_another_region,
    a_queue_that_takes_less,
    killed_and_started_again,
);

async fn a_queue_that_is_not_there(stand: Stand) {
    let call = |n| stand.call(request("sqs:orders", n, "{}"));
    let (error, cause) = failure(call(1).await);
    assert_eq!(error, "SQS.QueueDoesNotExist");
    assert_eq!(
        cause,
        "queue `orders`: there is no such queue, or none these credentials may know of"
    );
    let url = stand.make("orders", &[]).await;
    result(call(2).await);
    let deleted = url.clone();
    stand
        .ask(None, |client| async move {
            client.delete_queue().queue_url(deleted).send().await.unwrap();
        })
        .await;
    assert_eq!(failure(call(3).await).0, "SQS.QueueDoesNotExist");
    assert_eq!(
        failure(call(4).await).0,
        "SQS.QueueDoesNotExist",
        "its URL was forgotten"
    );
    let by_url = stand.call(request(&format!("sqs:{url}"), 5, "{}")).await;
    assert_eq!(failure(by_url).0, "SQS.QueueDoesNotExist");
}

async fn a_queue_of_another_region(stand: Stand) {
    let here = stand.make("orders", &[]).await;
    let account = here.rsplit('/').nth(1).unwrap().to_owned();
    let call = |n| stand.call(request(&format!("sqs:arn:aws:sqs:eu-west-1:{account}:orders"), n, "{}"));
    let (error, cause) = failure(call(1).await);
    assert_eq!(error, "SQS.QueueDoesNotExist");
    assert!(cause.starts_with("queue `orders` in `eu-west-1`: "), "{cause}");
    stand.make_in(Some("eu-west-1"), "orders", &[]).await;
    result(call(2).await);
    assert_eq!(stand.counts(&here).await, [0, 0, 0]);
}

async fn a_queue_that_takes_less(stand: Stand) {
    let url = stand
        .make("small", &[(QueueAttributeName::MaximumMessageSize, "1024")])
        .await;
    let mut calls = JoinSet::new();
    for n in 0..30 {
        let connector = stand.connector.clone();
        let body = if n == 7 { "x".repeat(2000) } else { n.to_string() };
        let call = with_params(
            request("sqs:small", n, "{}"),
            &format!(r#"{{"MessageBody": "{body}"}}"#),
        );
        calls.spawn(async move { connector.call(call).await });
    }
    let (well, ill): (Vec<_>, Vec<_>) = calls
        .join_all()
        .await
        .into_iter()
        .partition(|outcome| matches!(outcome, starbridge_ports::Outcome::Result(_)));
    assert_eq!((well.len(), ill.len()), (29, 1), "{ill:?}");
    assert_eq!(failure(ill.into_iter().next().unwrap()).0, "SQS.MessageTooLarge");
    assert_eq!(stand.take(&url, 29).await.len(), 29);
}

async fn killed_and_started_again(mut stand: Stand) {
    stand.make("orders", &[]).await;
    result(stand.call(request("sqs:orders", 1, "{}")).await);
    stand.service.kill();
    let begun = Instant::now();
    let (error, cause) = failure(stand.call(request("sqs:orders", 2, "{}")).await);
    assert_eq!(
        (error.as_str(), cause.as_str()),
        ("SQS.ConnectionFailed", "queue `orders`: connection refused")
    );
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    stand.service.start_again();
    // It kept its queues in memory.
    stand.make("orders", &[]).await;
    result(stand.call(request("sqs:orders", 3, "{}")).await);
}
