//! The way from a node to the database, which can be cut.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What becomes of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Open,
    /// Each is closed at once.
    Cut,
    /// Nothing comes through, and nobody is told.
    Silent,
}

pub(super) struct Proxy {
    pub(super) port: u16,
    way: watch::Sender<Way>,
}

impl Proxy {
    pub(super) async fn start(to: u16) -> Result<Self, String> {
        let problem = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(problem)?;
        let port = listener.local_addr().map_err(problem)?.port();
        let (way, now) = watch::channel(Way::Open);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(connection(stream, (Ipv4Addr::LOCALHOST, to).into(), now.clone()));
            }
        });
        Ok(Self { port, way })
    }

    pub(super) fn is_now(&self, way: Way) {
        self.way.send_replace(way);
    }
}

async fn connection(mut from: TcpStream, to: SocketAddr, mut way: watch::Receiver<Way>) {
    let now = *way.borrow_and_update();
    match now {
        Way::Cut => return,
        // It is held until the way is another one, and then it is gone.
        Way::Silent => return drop(way.changed().await),
        Way::Open => {}
    }
    let Ok(mut to) = TcpStream::connect(to).await else {
        return;
    };
    // Without it small messages wait for one another.
    let _ = from.set_nodelay(true).and(to.set_nodelay(true));
    tokio::select! {
        // Either side may end it.
        _ = copy_bidirectional(&mut from, &mut to) => return,
        _ = way.changed() => {}
    }
    if *way.borrow_and_update() == Way::Silent {
        // Whoever waits for it is not told; then it is gone.
        let _ = way.changed().await;
    }
}
