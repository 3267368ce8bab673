//! Requests as they go over the wire, byte for byte: an attacker's are not those of a well-behaved client.

use serde_json::Value;
use std::net::Ipv4Addr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// Usual patience with an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request to be sent.
#[derive(Clone, Debug)]
pub(super) struct Request {
    method: String,
    path: String,
    host: Option<String>,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    patience: Duration,
    from: Ipv4Addr,
}

impl Request {
    pub(super) fn new(method: &str, path: &str, port: u16) -> Self {
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            host: Some(format!("127.0.0.1:{port}")),
            headers: Vec::new(),
            body: Vec::new(),
            patience: PATIENCE,
            from: Ipv4Addr::LOCALHOST,
        }
    }

    pub(super) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn host(mut self, host: &str) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    pub(super) fn without_header(mut self, name: &str) -> Self {
        self.headers.retain(|(given, _)| !given.eq_ignore_ascii_case(name));
        self
    }

    pub(super) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(super) fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Comes from another address of the loopback, so that no limiter takes it for the one before.
    pub(super) fn by_stranger(mut self, number: usize) -> Self {
        let [.., high, low] = u32::try_from(number % 60_000).unwrap_or(0).to_be_bytes();
        self.from = Ipv4Addr::new(127, 1, high, low);
        self
    }

    /// The head, with an end, and a length: of the body, or the one that is claimed.
    pub(super) fn head(&self, length: usize) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        if let Some(host) = &self.host {
            head.push_str(&format!("Host: {host}\r\n"));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.method != "GET" {
            head.push_str(&format!("Content-Length: {length}\r\n"));
        }
        head.push_str("Connection: close\r\n\r\n");
        head.into_bytes()
    }
}

/// The answer. Status 0: there was none, and the text says why.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// An error if it was no success.
    pub(super) fn well(&self, what: &str) -> Result<(), String> {
        match self.status {
            200..300 => Ok(()),
            status => {
                let start: String = self.text.chars().take(300).collect();
                Err(format!("{what}: {status} {start}"))
            }
        }
    }

    /// Whether the server said that it won't.
    pub(super) fn refused(&self) -> bool {
        (400..500).contains(&self.status)
    }
}

/// A connection to a server on the loopback.
pub(super) async fn connect(port: u16) -> std::io::Result<TcpStream> {
    connect_from(Ipv4Addr::LOCALHOST, port).await
}

/// A connection whose system takes in no more than so many bytes before they are read.
pub(super) async fn connect_with(port: u16, receive_buffer: u32) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(receive_buffer)?;
    dial(socket, port).await
}

async fn connect_from(from: Ipv4Addr, port: u16) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((from, 0).into())?;
    dial(socket, port).await
}

async fn dial(socket: TcpSocket, port: u16) -> std::io::Result<TcpStream> {
    let dialled = socket.connect((Ipv4Addr::LOCALHOST, port).into());
    match tokio::time::timeout(PATIENCE, dialled).await {
        Ok(stream) => stream,
        Err(_) => Err(std::io::Error::other("no connection in time")),
    }
}

/// Sends a request over a connection of its own and reads the answer to its end.
pub(super) async fn send(port: u16, request: &Request) -> Answer {
    match tokio::time::timeout(request.patience, exchange(port, request)).await {
        Ok(Ok(bytes)) => parse(&bytes),
        Ok(Err(error)) => nothing(&format!("no answer: {error}")),
        Err(_) => nothing(&format!("no answer within {} s", request.patience.as_secs())),
    }
}

fn nothing(why: &str) -> Answer {
    Answer {
        status: 0,
        text: why.to_owned(),
    }
}

async fn exchange(port: u16, request: &Request) -> std::io::Result<Vec<u8>> {
    let mut stream = connect_from(request.from, port).await?;
    let mut whole = request.head(request.body.len());
    whole.extend_from_slice(&request.body);
    let (mut reader, mut writer) = stream.split();
    let mut bytes = Vec::new();
    // A server that refuses early closes before everything is written; its answer counts all the same.
    let (_written, read) = tokio::join!(writer.write_all(&whole), reader.read_to_end(&mut bytes));
    match read {
        Err(error) if bytes.is_empty() => Err(error),
        _ => Ok(bytes),
    }
}

/// Takes an answer apart.
fn parse(bytes: &[u8]) -> Answer {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return nothing("the connection was closed without an answer");
    };
    let status = head.split_whitespace().nth(1).and_then(|status| status.parse().ok());
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    Answer {
        status: status.unwrap_or(0),
        text: if chunked { joined(body) } else { body.to_owned() },
    }
}

/// The chunks of a body put together.
fn joined(body: &str) -> String {
    let mut whole = String::new();
    let mut left = body;
    while let Some((size, rest)) = left.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        let (Some(chunk), true) = (rest.get(..size), size > 0) else {
            break;
        };
        whole.push_str(chunk);
        left = rest.get(size + 2..).unwrap_or_default();
    }
    whole
}
