//! A server that sends the answers of a test byte for byte, and records what it received.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// A request that was received.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `POST /path?query HTTP/1.1`
    pub line: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(there, _)| there == name)?;
        Some(&found.1)
    }
}

/// What to do with a request.
#[derive(Clone)]
pub enum Reply {
    /// Send these bytes and keep the connection.
    Bytes(Vec<u8>),
    /// Send these bytes, then close the connection.
    Then(Vec<u8>),
    /// Send nothing until the other side closes.
    Silence,
    /// Send this many bytes of a body without announced length, in pieces, until the other side closes.
    Flood(usize),
    /// Send these bytes again and again, until the other side closes.
    Endless(Vec<u8>),
}

/// The test's server.
pub struct Server {
    pub address: SocketAddr,
    pub seen: mpsc::UnboundedReceiver<Seen>,
    /// One message for each connection that the other side closed.
    pub closed: mpsc::UnboundedReceiver<()>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    /// Gives the same reply to every request.
    pub async fn start(reply: Reply) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (saw, seen) = mpsc::unbounded_channel();
        let (closes, closed) = mpsc::unbounded_channel();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = connections.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                let (reply, saw, closes) = (reply.clone(), saw.clone(), closes.clone());
                tokio::spawn(async move {
                    talk(stream, reply, saw).await;
                    let _ = closes.send(());
                });
            }
        });
        Self {
            address,
            seen,
            closed,
            connections,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Answers all requests of one connection.
pub async fn talk(
    mut stream: impl AsyncRead + tokio::io::AsyncWrite + Unpin,
    reply: Reply,
    saw: mpsc::UnboundedSender<Seen>,
) {
    let mut buffer = Vec::new();
    while let Some(seen) = request(&mut stream, &mut buffer).await {
        let _ = saw.send(seen);
        match &reply {
            Reply::Bytes(bytes) => stream.write_all(bytes).await.unwrap(),
            Reply::Then(bytes) => {
                let _ = stream.write_all(bytes).await;
                let _ = stream.shutdown().await;
                return;
            }
            Reply::Silence => {}
            Reply::Flood(bytes) => {
                flood(&mut stream, *bytes).await;
                return;
            }
            Reply::Endless(bytes) => {
                while stream.write_all(bytes).await.is_ok() {}
                return;
            }
        }
    }
}

async fn flood(stream: &mut (impl tokio::io::AsyncWrite + Unpin), bytes: usize) {
    let piece = vec![b' '; 64 * 1024];
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n";
    let _ = stream.write_all(head.as_bytes()).await;
    for _ in 0..bytes.div_ceil(piece.len()) {
        if stream.write_all(&piece).await.is_err() {
            return;
        }
    }
}

async fn request(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<Seen> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        more(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
    buffer.drain(..end + 4);
    let mut lines = head.split("\r\n");
    let line = lines.next()?.to_owned();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, length)| length.parse().unwrap());
    while buffer.len() < length {
        more(stream, buffer).await?;
    }
    let body = String::from_utf8(buffer.drain(..length).collect()).unwrap();
    Some(Seen { line, headers, body })
}

async fn more(stream: &mut (impl AsyncRead + Unpin), buffer: &mut Vec<u8>) -> Option<()> {
    match stream.read_buf(buffer).await {
        Ok(0) | Err(_) => None,
        Ok(_) => Some(()),
    }
}

/// An answer with a body and its length.
pub fn answer(status: &str, headers: &str, body: &str) -> Reply {
    let text = format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    Reply::Bytes(text.into_bytes())
}

/// A 200 with a JSON body.
pub fn json(body: &str) -> Reply {
    answer("200 OK", "Content-Type: application/json\r\n", body)
}
