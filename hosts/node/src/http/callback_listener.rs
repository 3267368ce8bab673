//! The listener for reports by token of a process without a server. Its connections and bodies are bounded as a server's.

use super::body::{Bodies, BodySettings, receive_from_stranger};
use super::connections::{self, ConnectionSettings};
use super::report_body::counted;
use crate::callbacks::{EngineReports, routes};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Limits for senders of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackSettings {
    /// How many bytes one request may have.
    pub largest: usize,
    /// How many connections there may be, and how long each may take.
    pub connections: ConnectionSettings,
    /// How many bytes all bodies may have, and how long one may pause.
    pub bodies: BodySettings,
}

/// Bounds for one process: 1 MiB for a request, 1000 connections, and times as a server's.
impl Default for CallbackSettings {
    fn default() -> Self {
        Self {
            largest: 1024 * 1024,
            connections: ConnectionSettings {
                most: 1_000,
                ..ConnectionSettings::default()
            },
            bodies: BodySettings::default(),
        }
    }
}

/// A listener for reports.
#[derive(Debug)]
pub struct CallbackListener {
    /// The address it listens on.
    pub address: SocketAddr,
    end: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

/// How long answers in progress may take when a listener is closed.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

impl CallbackListener {
    /// Listens for reports and hands them in to an engine.
    ///
    /// # Errors
    ///
    /// An I/O error if the address can't be bound.
    pub async fn start(
        address: SocketAddr,
        reports: EngineReports,
        settings: CallbackSettings,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let router = router(reports, settings);
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(connections::serve(listener, router, settings.connections, ended));
        Ok(Self { address, end, serving })
    }

    /// Accepts no more connections. Senders of reports in progress still get their answers.
    pub async fn close(self) {
        // A listener that failed has ended already.
        let _ = self.end.send(());
        let _ = tokio::time::timeout(LAST_ANSWERS, self.serving).await;
    }
}

fn router(reports: EngineReports, settings: CallbackSettings) -> Router {
    let bodies = Bodies::new(settings.bodies);
    // No token is known before the body is read.
    let check = move |request: Request, next: Next| {
        let bodies = Arc::clone(&bodies);
        async move {
            let received = receive_from_stranger(request, settings.largest, &bodies).await;
            match received.and_then(|(parts, sent)| counted(parts, sent)) {
                Err(problem) => problem.into_response(),
                Ok((request, charge)) => {
                    let response = next.run(request).await;
                    drop(charge);
                    response
                }
            }
        }
    };
    let reports = routes(reports, settings.largest).route_layer(from_fn(check));
    Router::new().nest("/v1", reports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use starbridge_runtime::TokenKeys;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::mpsc;

    const SHORT: Duration = Duration::from_millis(200);

    async fn listening(change: impl FnOnce(&mut CallbackSettings)) -> CallbackListener {
        let (commands, _) = mpsc::channel(1);
        let tokens = TokenKeys::new(vec![[1; 32]]);
        let mut settings = CallbackSettings::default();
        change(&mut settings);
        let address = "127.0.0.1:0".parse().unwrap();
        CallbackListener::start(address, EngineReports { commands, tokens }, settings)
            .await
            .unwrap()
    }

    async fn say(listener: &CallbackListener, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(listener.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Everything that a connection still sends until the other side closes it.
    async fn last_words(mut stream: TcpStream) -> String {
        let mut said = Vec::new();
        // A reset connection is closed, too.
        let _ = stream.read_to_end(&mut said).await;
        String::from_utf8(said).unwrap()
    }

    fn post(length: usize, body: &str) -> String {
        format!(
            "POST /v1/callbacks/token/succeed HTTP/1.1\r\nhost: here\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
    }

    #[tokio::test]
    async fn who_says_nothing_or_half_of_it_is_let_go() {
        let listener = listening(|settings| {
            settings.connections.head = SHORT;
            settings.bodies.silence = SHORT;
        })
        .await;
        assert_eq!(last_words(say(&listener, "").await).await, "");
        assert_eq!(last_words(say(&listener, "POST /v1/callb").await).await, "");
        let said = last_words(say(&listener, &post(100, "{")).await).await;
        assert!(
            said.starts_with("HTTP/1.1 408") && said.contains("BodyTooSlow"),
            "{said}"
        );
        listener.close().await;
    }

    #[tokio::test]
    async fn bodies_over_the_limit_are_refused_before_they_are_read() {
        let listener = listening(|settings| settings.largest = 100).await;
        let said = last_words(say(&listener, &post(101, "{")).await).await;
        assert!(
            said.starts_with("HTTP/1.1 413") && said.contains("BodyTooLarge"),
            "{said}"
        );
        let said = last_words(say(&listener, &post(2, "{}")).await).await;
        assert!(
            said.starts_with("HTTP/1.1 404") && said.contains("InvalidToken"),
            "{said}"
        );
    }

    #[tokio::test]
    async fn connections_that_say_nothing_make_room_for_reports() {
        let listener = listening(|settings| settings.connections.most = 2).await;
        let mut silent = Vec::new();
        for _ in 0..50 {
            silent.push(say(&listener, "").await);
        }
        let said = last_words(say(&listener, &post(2, "{}")).await).await;
        // If no place is free yet, the answer to the sender says so.
        assert!(
            said.contains("InvalidToken") || said.starts_with("HTTP/1.1 503"),
            "{said}"
        );
        let first = silent.swap_remove(0);
        assert_eq!(last_words(first).await, "", "it was closed, long before its time");
    }
}
