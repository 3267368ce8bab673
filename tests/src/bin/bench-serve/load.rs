//! Load: clients that each send a request, wait for the answer and send the next, over connections of their own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The result of a load.
pub struct Load {
    /// Answers.
    pub answers: usize,
    /// How long it took.
    pub took: Duration,
    /// Times of each, sorted.
    pub times: Vec<Duration>,
}

impl Load {
    pub fn per_second(&self) -> f64 {
        self.answers as f64 / self.took.as_secs_f64()
    }

    /// The time within which that share was answered, in milliseconds.
    pub fn within(&self, share: f64) -> f64 {
        let place = ((self.times.len() as f64) * share) as usize;
        let time = self.times.get(place.min(self.times.len().saturating_sub(1)));
        time.map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }
}

/// A POST with that body.
pub fn post(path: &str, body: &str) -> Vec<u8> {
    request("POST", path, body)
}

/// A request with that body.
pub fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Sends the same request with that many clients for so long, or so often.
pub async fn run(
    address: SocketAddr,
    request: Vec<u8>,
    clients: usize,
    long: Duration,
    most: usize,
) -> Result<Load, String> {
    let over = Arc::new(AtomicBool::new(false));
    let left = Arc::new(AtomicUsize::new(most));
    let request: Arc<[u8]> = request.into();
    let begun = Instant::now();
    let mut running = Vec::new();
    for _ in 0..clients {
        let (over, left, request) = (over.clone(), left.clone(), request.clone());
        running.push(tokio::spawn(
            async move { client(address, &request, &over, &left).await },
        ));
    }
    tokio::select! {
        () = tokio::time::sleep(long) => {}
        () = async { while left.load(Ordering::Relaxed) > 0 { tokio::time::sleep(Duration::from_millis(5)).await; } } => {}
    }
    over.store(true, Ordering::Relaxed);
    let mut times = Vec::new();
    for client in running {
        times.extend(client.await.map_err(|error| error.to_string())??);
    }
    let took = begun.elapsed();
    times.sort();
    Ok(Load {
        answers: times.len(),
        took,
        times,
    })
}

async fn client(
    address: SocketAddr,
    request: &[u8],
    over: &AtomicBool,
    left: &AtomicUsize,
) -> Result<Vec<Duration>, String> {
    let mut stream = TcpStream::connect(address).await.map_err(|error| error.to_string())?;
    let _ = stream.set_nodelay(true);
    let mut times = Vec::new();
    let mut buffer = Vec::with_capacity(16 * 1024);
    while !over.load(Ordering::Relaxed) && take_one(left) {
        let begun = Instant::now();
        stream.write_all(request).await.map_err(|error| error.to_string())?;
        let status = answer(&mut stream, &mut buffer).await?;
        if !(200..300).contains(&status) {
            let text = String::from_utf8_lossy(&buffer).into_owned();
            return Err(format!("answered with {status}: {text}"));
        }
        times.push(begun.elapsed());
    }
    Ok(times)
}

fn take_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
        .is_ok()
}

/// Reads one answer whole. Answers its status.
pub async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<u16, String> {
    buffer.clear();
    loop {
        if let Some(head) = find(buffer, b"\r\n\r\n") {
            let text = String::from_utf8_lossy(buffer.get(..head).unwrap_or_default()).to_lowercase();
            let length = text
                .lines()
                .find_map(|line| line.strip_prefix("content-length:"))
                .and_then(|length| length.trim().parse::<usize>().ok())
                .unwrap_or(0);
            if buffer.len() >= head + 4 + length {
                let status = text.split(' ').nth(1).and_then(|status| status.parse().ok());
                return status.ok_or_else(|| "an answer without a status".to_owned());
            }
        }
        let read = stream.read_buf(buffer).await.map_err(|error| error.to_string())?;
        if read == 0 {
            return Err("the server closed the connection".to_owned());
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// A function that answers `{}` at once to each request.
pub async fn function() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0")
        .await
        .map_err(|error| error.to_string())?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer_all(stream));
        }
    });
    Ok(address)
}

async fn answer_all(mut stream: TcpStream) {
    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
    let _ = stream.set_nodelay(true);
    let mut buffer = Vec::with_capacity(4096);
    loop {
        // A request is read like an answer: a head and as many bytes as it says.
        let mut whole = false;
        buffer.clear();
        while !whole {
            match stream.read_buf(&mut buffer).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            if let Some(head) = find(&buffer, b"\r\n\r\n") {
                let text = String::from_utf8_lossy(buffer.get(..head).unwrap_or_default()).to_lowercase();
                let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
                let length = length
                    .and_then(|length| length.trim().parse::<usize>().ok())
                    .unwrap_or(0);
                whole = buffer.len() >= head + 4 + length;
            }
        }
        if stream.write_all(ANSWER).await.is_err() {
            return;
        }
    }
}
