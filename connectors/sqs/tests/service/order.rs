//! FIFO queues: order, and deduplication.

use crate::stand::{Stand, request, result, with_params};
use starbridge_ports::Connector;
use starbridge_services::Kind;
use tokio::task::JoinSet;

crate::on_both!(
    calls_of_one_execution_keep_their_order,
    a_repetition_is_no_second_message
);

async fn calls_of_one_execution_keep_their_order(stand: Stand) {
    let url = stand.make("steps.fifo", &[]).await;
    let mut calls = JoinSet::new();
    for n in 0..60 {
        let connector = stand.connector.clone();
        let mut call = request("sqs:steps.fifo", n, &format!(r#"{{"n": {n}}}"#));
        call.keys.execution = format!("exec-{}", n % 3);
        calls.spawn(async move { result(connector.call(call).await) });
    }
    for said in calls.join_all().await {
        assert!(said["SequenceNumber"].is_string(), "{said}");
    }
    let taken = stand.take(&url, 60).await;
    assert_eq!(taken.len(), 60);
    let mut last = [-1_i64; 3];
    for message in taken {
        let body: serde_json::Value = serde_json::from_str(message.body().unwrap()).unwrap();
        let n = body["n"].as_i64().unwrap();
        let of_group = &mut last[usize::try_from(n % 3).unwrap()];
        assert!(*of_group < n, "{n} came after {of_group}");
        *of_group = n;
    }
}

async fn a_repetition_is_no_second_message(stand: Stand) {
    let url = stand.make("once.fifo", &[]).await;
    let call = || request("sqs:once.fifo", 3, "{}");
    let first = result(stand.call(call()).await);
    let again = result(stand.call(call()).await);
    if stand.kind == Kind::Ministack {
        assert_eq!(
            first["MessageId"], again["MessageId"],
            "as SQS does; moto makes an id for nothing"
        );
    }
    // A retry is a new call, unless the step must act only once.
    result(stand.call(request("sqs:once.fifo", 4, "{}")).await);
    let params = r#"{"idempotency": "step"}"#;
    for call in 5..8 {
        result(
            stand
                .call(with_params(request("sqs:once.fifo", call, "{}"), params))
                .await,
        );
    }
    assert_eq!(stand.take(&url, 4).await.len(), 3);
}
