//! Webhooks over real connections to a server in the test.

use super::setting::{Kept, notice, target, world};
use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use starbridge_connector_http::{AddressGuard, HttpConnector, HttpSettings};
use starbridge_flow::time::{Millis, Timestamp};
use starbridge_machine::Status;
use starbridge_node::notify::{Notifier, NotifierSettings, signature};
use starbridge_node::system::SystemClock;
use starbridge_ports::RecordedFailure;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The requests that arrived: headers and body.
type Seen = Arc<Mutex<Vec<(HeaderMap, String)>>>;

/// A server that first fails, then redirects, then accepts with an answer that is not JSON.
async fn receiver(seen: Seen) -> SocketAddr {
    let take = move |headers: HeaderMap, body: String| {
        let seen = seen.clone();
        async move {
            let mut seen = seen.lock().unwrap();
            seen.push((headers, body));
            let answer: Response = match seen.len() {
                1 => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
                2 => (StatusCode::FOUND, [(header::LOCATION, "/elsewhere")]).into_response(),
                _ => "thank you".into_response(),
            };
            answer
        }
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/hook", post(take));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// A notifier of one webhook at this address, over stored notices.
fn notifier(kept: &Arc<Kept>, address: SocketAddr, guard: AddressGuard) -> Notifier {
    let connector = HttpConnector::new(HttpSettings {
        guard,
        ..HttpSettings::default()
    });
    let world = world(kept, "http", Arc::new(connector), Arc::new(SystemClock));
    let hook = target("hook", &format!("http://{address}/hook"), "secret://KEY");
    Notifier::new(vec![hook], &world, &NotifierSettings::default())
}

fn now() -> Timestamp {
    starbridge_ports::Clock::now(&SystemClock)
}

#[tokio::test]
async fn webhook_is_signed_and_retried_until_accepted() {
    let (seen, kept) = (Seen::default(), Arc::new(Kept::default()));
    let notifier = notifier(&kept, receiver(seen.clone()).await, AddressGuard::AllowAll);
    let mut told = notice("e", 7, Status::Failed);
    told.time = now();
    told.failure = Some(RecordedFailure {
        error: "Card.Declined".into(),
        cause: "über limit".into(),
        step: "pay".into(),
    });
    kept.add("hook", &told);
    let all_told = async {
        while kept.left() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let done = tokio::time::timeout(Duration::from_secs(30), async {
        tokio::select! {
            () = notifier.run() => {}
            () = all_told => {}
        }
    });
    done.await.expect("it is never taken");
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 3);
    for (attempt, (headers, body)) in (1..).zip(seen.iter()) {
        assert_eq!(*body, starbridge_flow::value::Value::from(told.message()).to_json());
        let header = |name: &str| headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("idempotency-key"), "e/7");
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(header("starbridge-attempt"), attempt.to_string());
        // Checked in the way a receiver does it.
        let signed = header("starbridge-signature");
        let seconds = signed.strip_prefix("t=").and_then(|rest| rest.split_once(','));
        let sent = Timestamp(seconds.unwrap().0.parse::<i64>().unwrap() * 1_000);
        assert!(now().since(sent) < Millis(60_000));
        assert_eq!(signed, signature("open-sesame", sent, body));
    }
}

#[tokio::test]
async fn webhook_to_a_private_address_is_refused() {
    let (seen, kept) = (Seen::default(), Arc::new(Kept::default()));
    let address = receiver(seen.clone()).await;
    let notifier = notifier(&kept, address, AddressGuard::PublicOnly { allow: Vec::new() });
    let mut told = notice("e", 1, Status::Failed);
    told.time = now();
    kept.add("hook", &told);
    let _ = tokio::time::timeout(Duration::from_millis(500), notifier.run()).await;
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(kept.left(), 1);
}
