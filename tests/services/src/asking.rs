//! A request over HTTP and its answer, a connection each.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Asks with these header lines; nothing, where the connection breaks.
pub fn ask(method: &str, url: &str, headers: &[String], body: &[u8]) -> Option<Answer> {
    let rest = url.strip_prefix("http://")?;
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(authority).ok()?;
    stream.set_nodelay(true).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let mut head = format!("{method} /{path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n");
    head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    for line in headers {
        head.push_str(&format!("{line}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(&[head.as_bytes(), body].concat()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let mut body = answer[end + 4..].to_vec();
    if headers
        .iter()
        .any(|(name, value)| name == "transfer-encoding" && value == "chunked")
    {
        body = unchunked(&body)?;
    }
    Some(Answer { status, headers, body })
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?.trim(), 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 4 + size..)?;
    }
}
