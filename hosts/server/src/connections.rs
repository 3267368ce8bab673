//! Connections: how many there may be, how long each may take, and that who asks after the server's health is answered
//! even when there are too many.
//!
//! Behind a proxy everybody comes from one address, so addresses have no bound of their own: who holds connections
//! without asking anything makes room for who comes.

mod seats;
mod serving;
mod watch;

pub use seats::{LEAVING, RESERVE};
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
    /// How many; some more are taken in to be told so, and to answer who asks after the server's health.
    pub most: usize,
    /// For the head of a request.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// Without taking a byte of an answer.
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

/// The longest a connection of the reserve may take for the head of its one request.
const RESERVE_HEAD: Duration = Duration::from_secs(2);
/// How long a connection is left alone, though others come, after it came or was answered.
const GRACE: Duration = Duration::from_millis(100);
/// How long is waited when the system has no more connections to give.
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

/// Takes connections and serves them until `end` comes, then until the answers under way are given.
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
            // A sender that is gone means the same.
            _ = &mut end => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, from)) => {
                failures.reset();
                // One for whom there is no room at all is closed by being dropped.
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
    // Each connection has a receiver for as long as it is open.
    let _ = stop.send(true);
    stop.closed().await;
}

/// Whether an error is about the one who came, not about taking connections.
fn is_of_one(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused
    )
}

/// How long, and how much, is still read from who has been answered before all was said: closed at once, the connection
/// would be reset, and the answer be lost.
const LAST_WORDS: Duration = Duration::from_secs(1);
const LAST_BYTES: usize = 4 * 1024 * 1024;

/// Closes a connection so that its last answer arrives.
async fn close(mut stream: TcpStream) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let last = async {
        if stream.shutdown().await.is_err() {
            return;
        }
        let mut scratch = [0; 4096];
        let mut left = LAST_BYTES;
        while let Ok(read @ 1..) = stream.read(&mut scratch).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    };
    // Who does not close it has been given the time to.
    let _ = tokio::time::timeout(LAST_WORDS, last).await;
}
