//! Functions that a server calls: they write down what reached them, and answer as badly as they are told.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A call as it came.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) path: String,
    pub(super) head: String,
    pub(super) body: String,
}

impl Call {
    /// A header's value.
    pub(super) fn header(&self, name: &str) -> String {
        let values = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut named = values.filter(|(given, _)| given.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.to_owned()).unwrap_or_default()
    }
}

/// What a function does with a call.
pub(super) enum Reply {
    /// Answers with a status and a body of JSON.
    Json(u16, String),
    /// The same with another header line.
    With(u16, &'static str, String),
    /// Answers with `{}` after so many milliseconds.
    Later(u64),
    /// Sends informational answers for as long as somebody listens.
    Informs,
}

/// A function server, until it is dropped.
pub(super) struct Peer {
    port: u16,
    calls: Arc<Mutex<Vec<Call>>>,
    accepting: JoinHandle<()>,
}

impl Peer {
    /// Starts one; the number is how many calls came before.
    pub(super) async fn start(reply: impl Fn(&Call, usize) -> Reply + Send + Sync + 'static) -> Result<Self, String> {
        let problem = |error: std::io::Error| error.to_string();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.map_err(problem)?;
        let port = listener.local_addr().map_err(problem)?.port();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&calls);
        let reply = Arc::new(reply);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (noted, reply) = (Arc::clone(&noted), Arc::clone(&reply));
                tokio::spawn(async move {
                    // A caller that goes away is nothing to a function.
                    drop(serve(stream, &noted, reply.as_ref()).await);
                });
            }
        });
        Ok(Self { port, calls, accepting })
    }

    /// Answers every call with what it was sent.
    pub(super) async fn echo() -> Result<Self, String> {
        Self::start(|call, _| {
            let body = if call.body.is_empty() { "{}" } else { &call.body };
            Reply::Json(200, body.to_owned())
        })
        .await
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn calls(&self) -> Vec<Call> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All that ever reached it.
    pub(super) fn heard(&self) -> String {
        let calls = self.calls().into_iter();
        calls.map(|call| format!("{}\n{}\n", call.head, call.body)).collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn serve(
    mut stream: TcpStream,
    noted: &Mutex<Vec<Call>>,
    reply: &(impl Fn(&Call, usize) -> Reply + Send + Sync),
) -> std::io::Result<()> {
    let call = read(&mut stream).await?;
    let before = {
        let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.push(call.clone());
        noted.len() - 1
    };
    let (status, line, body) = match reply(&call, before) {
        Reply::Json(status, body) => (status, "", body),
        Reply::With(status, line, body) => (status, line, body),
        Reply::Later(milliseconds) => {
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            (200, "", "{}".to_owned())
        }
        Reply::Informs => return inform(&mut stream).await,
    };
    let line = if line.is_empty() {
        String::new()
    } else {
        format!("{line}\r\n")
    };
    let answer = format!(
        "HTTP/1.1 {status} So\r\nContent-Type: application/json\r\nContent-Length: {}\r\n{line}Connection: close\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}

async fn inform(stream: &mut TcpStream) -> std::io::Result<()> {
    let many = "HTTP/1.1 100 Continue\r\n\r\n".repeat(400);
    loop {
        stream.write_all(many.as_bytes()).await?;
    }
}

async fn read(stream: &mut TcpStream) -> std::io::Result<Call> {
    let mut bytes = Vec::new();
    let mut part = [0_u8; 16_384];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        match stream.read(&mut part).await? {
            0 => return Err(std::io::Error::other("no whole head")),
            read => bytes.extend_from_slice(&part[..read]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut call = Call {
        path: head.split_whitespace().nth(1).unwrap_or_default().to_owned(),
        head,
        body: String::new(),
    };
    let length: usize = call.header("content-length").parse().unwrap_or(0);
    while bytes.len() < end + 4 + length {
        match stream.read(&mut part).await? {
            0 => break,
            read => bytes.extend_from_slice(&part[..read]),
        }
    }
    call.body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
    Ok(call)
}
