//! Connections: how many there may be, and how long each may take. Health checks are answered even if there are too
//! many.
//!
//! Behind a proxy all clients have one address, so there is no limit for each address. Instead,
//! idle connections make room for new ones.

mod seats;
mod serving;
mod watch;

pub use seats::{MAX_LEAVING, RESERVE_SEATS};
pub use watch::Watch;

use axum::Router;
use seats::{Kind, Seats};
use starbridge_ports::Backoff;
use std::io::ErrorKind;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch as channel};
use watch::Patience;

/// How many connections there may be, and how long each may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// How many. Some more are accepted, to tell them so and to answer health checks.
    pub most: usize,
    /// For the head of a request.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// Without reading any of an answer.
    pub unread: Duration,
}

impl Default for ConnectionSettings {
    fn default() -> Self {
        Self {
            most: 10_000,
            head: Duration::from_secs(10),
            idle: Duration::from_secs(60),
            unread: Duration::from_secs(30),
        }
    }
}

/// How long a connection of the reserve may take for the head of its only request.
const RESERVE_HEAD: Duration = Duration::from_secs(2);
/// How long a connection is not closed for others, after it came or was answered.
const GRACE: Duration = Duration::from_millis(100);
/// The pauses if the system has no more connections to give.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));

impl ConnectionSettings {
    fn patience(&self, kind: Kind) -> Patience {
        let head = match kind {
            Kind::Usual => self.head,
            Kind::Reserve | Kind::Leaving => self.head.min(RESERVE_HEAD),
        };
        Patience {
            head,
            idle: self.idle,
            unread: self.unread,
        }
    }
}

/// Accepts connections and serves them until `end` comes, then until the answers in progress are given.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    settings: ConnectionSettings,
    mut end: oneshot::Receiver<()>,
) {
    let seats = Seats::new(settings.most, GRACE);
    let (stop, stopped) = channel::channel(false);
    let mut failures = BACKOFF.failures();
    loop {
        let accepted = tokio::select! {
            biased;
            // A sender that was dropped means the same.
            _ = &mut end => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                failures.reset();
                // Without any room, dropping the connection closes it.
                if let Some(seat) = seats.seat() {
                    let connection = serving::Connection {
                        stream,
                        from,
                        patience: settings.patience(seat.kind),
                        seat,
                        router: router.clone(),
                        stopped: stopped.clone(),
                    };
                    tokio::spawn(connection.serve());
                }
            }
            Err(error) if is_of_one(&error) => {}
            Err(error) => {
                let pause = failures.next_pause();
                tracing::warn!(%error, "no connection can be taken: trying again in {} ms", pause.as_millis());
                seats.shrink();
                tokio::time::sleep(pause).await;
            }
        }
    }
    drop((listener, stopped));
    // Each open connection has a receiver.
    let _ = stop.send(true);
    stop.closed().await;
}

/// Whether an error is about one connection, and not about accepting them.
fn is_of_one(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}

/// How long, and how much, is read from a client that was answered early. An immediate close would
/// reset the connection and lose the answer.
const LAST_WORDS: Duration = Duration::from_secs(1);
const MAX_LINGER_BYTES: usize = 4 * 1024 * 1024;

/// Closes a connection so that its last answer arrives.
async fn close(mut stream: TcpStream) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let last = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let mut scratch = [0; 4096];
        let mut left = MAX_LINGER_BYTES;
        while let Ok(read @ 1..) = stream.read(&mut scratch).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    };
    // A client that has not closed it by now had enough time.
    let _ = tokio::time::timeout(LAST_WORDS, last).await;
}
