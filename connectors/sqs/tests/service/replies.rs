//! Replies: taken, handled, or sent to the dead-letter queue with the reason.

use crate::stand::{Stand, way};
use aws_sdk_sqs::types::QueueAttributeName;
use starbridge_connector_sqs::{ReplyQueue, SqsReplies};
use starbridge_ports::{ReplyMessage, ReplySource};

crate::on_both!(
    a_reply_stays_until_it_is_done_with,
    a_bad_reply_goes_to_the_dead_letters,
    dead_letters_are_where_the_queue_says,
    without_dead_letters_nothing_is_lost,
    a_reply_queue_that_is_not_there,
);

fn replies(stand: &Stand, queue: &str, dead_letters: Option<&str>) -> SqsReplies {
    let of = ReplyQueue {
        queue: queue.to_owned(),
        dead_letters: dead_letters.map(str::to_owned),
    };
    SqsReplies::new(way(&stand.service.url()), &of).unwrap()
}

async fn put(stand: &Stand, url: &str, bodies: &[&str]) {
    for (n, body) in bodies.iter().enumerate() {
        let (url, body) = (url.to_owned(), (*body).to_owned());
        stand
            .ask(None, move |client| async move {
                let mut put = client.send_message().queue_url(&url).message_body(body);
                if url.ends_with(".fifo") {
                    put = put.message_group_id("g").message_deduplication_id(n.to_string());
                }
                put.send().await.unwrap();
            })
            .await;
    }
}

async fn received(source: &SqsReplies, count: usize) -> Vec<ReplyMessage> {
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(source.receive().await.unwrap());
    }
    all.sort_by(|a, b| a.body.cmp(&b.body));
    all
}

async fn a_reply_stays_until_it_is_done_with(stand: Stand) {
    let url = stand.make("replies", &[]).await;
    let source = replies(&stand, "replies", None);
    assert_eq!(source.name(), "sqs:replies");
    let bodies: Vec<String> = (10..23).map(|n| format!(r#"{{"token": "{n}é"}}"#)).collect();
    put(&stand, &url, &bodies.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let messages = received(&source, 13).await;
    assert_eq!(
        messages.iter().map(|message| &message.body).collect::<Vec<_>>(),
        bodies.iter().collect::<Vec<_>>()
    );
    assert_eq!(stand.counts(&url).await, [0, 13, 0], "with us, and not deleted");
    source.done(messages.clone()).await.unwrap();
    assert_eq!(stand.counts(&url).await, [0, 0, 0]);
    source.done(messages).await.unwrap();
}

async fn a_bad_reply_goes_to_the_dead_letters(stand: Stand) {
    for (queue, dead) in [("replies", "dead"), ("replies.fifo", "dead.fifo")] {
        let url = stand.make(queue, &[]).await;
        let dead_url = stand.make(dead, &[]).await;
        let source = replies(&stand, queue, Some(dead));
        put(&stand, &url, &["rubbish é"]).await;
        let message = received(&source, 1).await.remove(0);
        source.reject(message, "no JSON: line 1".to_owned()).await.unwrap();
        assert_eq!(stand.counts(&url).await, [0, 0, 0], "{queue}");
        let letters = stand.take(&dead_url, 1).await;
        let letter = letters.first().unwrap();
        assert_eq!(letter.body(), Some("rubbish é"));
        let reason = letter
            .message_attributes()
            .and_then(|all| all.get("reason")?.string_value());
        assert_eq!(reason, Some("no JSON: line 1"));
    }
}

async fn dead_letters_are_where_the_queue_says(stand: Stand) {
    let dead = stand.make("dead", &[]).await;
    let asked = dead.clone();
    let arn = stand
        .ask(None, move |client| async move {
            let asked = client.get_queue_attributes().queue_url(asked);
            let answer = asked
                .attribute_names(QueueAttributeName::QueueArn)
                .send()
                .await
                .unwrap();
            answer.attributes.unwrap()[&QueueAttributeName::QueueArn].clone()
        })
        .await;
    let policy = format!(r#"{{"deadLetterTargetArn": "{arn}", "maxReceiveCount": "5"}}"#);
    let url = stand
        .make("replies", &[(QueueAttributeName::RedrivePolicy, &policy)])
        .await;
    let source = replies(&stand, &url, None);
    put(&stand, &url, &["rubbish"]).await;
    let message = received(&source, 1).await.remove(0);
    source.reject(message, "no token".to_owned()).await.unwrap();
    assert_eq!(stand.counts(&url).await, [0, 0, 0]);
    assert_eq!(stand.take(&dead, 1).await.len(), 1);
}

async fn without_dead_letters_nothing_is_lost(stand: Stand) {
    let url = stand.make("replies", &[]).await;
    let source = replies(&stand, "replies", None);
    put(&stand, &url, &["rubbish"]).await;
    let message = received(&source, 1).await.remove(0);
    source.reject(message, "no token".to_owned()).await.unwrap();
    assert_eq!(stand.counts(&url).await, [0, 1, 0], "kept back, not deleted");
    let source = replies(&stand, "replies", Some("dead"));
    put(&stand, &url, &["rubbish"]).await;
    let message = received(&source, 1).await.remove(0);
    let error = source
        .reject(message.clone(), "no\u{1}token".to_owned())
        .await
        .unwrap_err();
    let expected =
        "queue `replies`: its dead-letter queue `dead`: there is no such queue, or none these credentials may know of";
    assert_eq!(error.to_string(), expected);
    assert_eq!(stand.counts(&url).await, [0, 2, 0], "neither sent on nor deleted");
    let dead = stand.make("dead", &[]).await;
    source.reject(message, "no\u{1}token".to_owned()).await.unwrap();
    assert_eq!(stand.counts(&url).await, [0, 1, 0]);
    assert_eq!(stand.take(&dead, 1).await.len(), 1);
}

async fn a_reply_queue_that_is_not_there(stand: Stand) {
    let source = replies(&stand, "replies", None);
    let error = source.receive().await.unwrap_err().to_string();
    assert_eq!(
        error,
        "queue `replies`: there is no such queue, or none these credentials may know of"
    );
    let url = stand.make("replies", &[]).await;
    put(&stand, &url, &["{}"]).await;
    assert_eq!(received(&source, 1).await.len(), 1, "found once it is there");
    let named = ReplyQueue {
        queue: "no queue".to_owned(),
        dead_letters: None,
    };
    let problem = SqsReplies::new(way(&stand.service.url()), &named).err().unwrap();
    assert!(problem.starts_with("`no queue` is no queue: "), "{problem}");
}
