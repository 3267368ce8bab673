//! A way that can be cut: from a node to the database, or from other nodes to one.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// By how much each piece of an answer is late on a slow way.
const LATE: Duration = Duration::from_millis(60);

/// What becomes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Open,
    /// Each is closed at once.
    Cut,
    /// Nothing comes through, and nobody is told.
    Silent,
    /// What is asked comes through and is done, and nothing comes back.
    Deaf,
    /// Answers come late.
    Slow,
}

/// Where a way leads: a port of the loopback that may become another one.
pub(super) type Goal = Arc<AtomicU16>;

pub(super) struct Proxy {
    pub(super) port: u16,
    way: watch::Sender<Way>,
}

impl Proxy {
    pub(super) async fn start(to: Goal) -> Result<Self, String> {
        let problem = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(problem)?;
        let port = listener.local_addr().map_err(problem)?.port();
        let (way, now) = watch::channel(Way::Open);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, to.load(Ordering::SeqCst), now.clone()));
            }
        });
        Ok(Self { port, way })
    }

    pub(super) fn is_now(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn connection(from: TcpStream, to: u16, mut way: watch::Receiver<Way>) {
    let now = *way.borrow_and_update();
    match now {
        Way::Cut => return,
        // It is held until the way is another one, and then it is gone.
        Way::Silent => return drop(way.changed().await),
        Way::Open | Way::Deaf | Way::Slow => {}
    }
    let Ok(to) = TcpStream::connect((Ipv4Addr::LOCALHOST, to)).await else {
        return;
    };
    // Without it small messages wait for one another.
    let _ = from.set_nodelay(true).and(to.set_nodelay(true));
    let ((mut asks, told), (answers, mut asked)) = (from.into_split(), to.into_split());
    tokio::select! {
        // Either side may end it.
        _ = tokio::io::copy(&mut asks, &mut asked) => return,
        () = answer(answers, told, way.clone()) => return,
        () = closed(&mut way) => {}
    }
    if *way.borrow_and_update() == Way::Silent {
        // Whoever waits for it is not told; then it is gone.
        let _ = way.changed().await;
    }
}

/// Waits until nothing comes through any more.
async fn closed(way: &mut watch::Receiver<Way>) {
    // An error means that the campaign is over.
    let _ = way.wait_for(|now| matches!(now, Way::Cut | Way::Silent)).await;
}

/// Passes answers on, as the way is at each moment.
async fn answer(mut answers: OwnedReadHalf, mut told: OwnedWriteHalf, mut way: watch::Receiver<Way>) {
    let mut piece = vec![0; 1 << 16];
    while let Ok(count @ 1..) = answers.read(&mut piece).await {
        let now = *way.borrow_and_update();
        match now {
            Way::Slow => tokio::time::sleep(LATE).await,
            // What was said meanwhile is lost, so the connection is, too.
            Way::Deaf => return drop(way.changed().await),
            Way::Open | Way::Cut | Way::Silent => {}
        }
        if told.write_all(&piece[..count]).await.is_err() {
            return;
        }
    }
}
