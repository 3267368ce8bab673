//! Reports of a function that answers later.

use super::template;
use axum::body::Bytes;
use axum::http::HeaderMap;
use serde_json::{Map, Value};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The report, the delay after the answer, and the target if the request does not name one.
#[derive(Clone, Debug)]
pub(super) struct Report {
    failed: bool,
    body: Value,
    delay: Duration,
    url: Option<String>,
}

impl Report {
    /// Reads `{"output"} | {"error", "cause"}` with `delayMs` and `url`.
    pub(super) fn read(members: &Map<String, Value>) -> Option<Self> {
        let mut body = Map::new();
        let mut report = Self {
            failed: members.contains_key("error"),
            body: Value::Null,
            delay: Duration::ZERO,
            url: None,
        };
        for (key, value) in members {
            match key.as_str() {
                "output" | "error" | "cause" => _ = body.insert(key.clone(), value.clone()),
                "delayMs" => report.delay = Duration::from_millis(value.as_u64()?),
                "url" => report.url = Some(value.as_str()?.to_owned()),
                _ => return None,
            }
        }
        report.body = Value::Object(body);
        Some(report)
    }
}

/// Reports with the token that was sent, after a while.
pub(super) fn send(report: &Report, headers: &HeaderMap, sent: &Bytes) {
    let request = serde_json::from_slice(sent).unwrap_or(Value::Null);
    let from_header = || headers.get("starbridge-callback-url")?.to_str().ok();
    let base = request["callbackUrl"]
        .as_str()
        .or_else(from_header)
        .or(report.url.as_deref());
    let (Some(token), Some(base)) = (request["token"].as_str(), base) else {
        eprintln!("no `token` and `callbackUrl` in what was sent: nobody is called back");
        return;
    };
    let verb = if report.failed { "fail" } else { "succeed" };
    let url = format!("{}/v1/callbacks/{}/{verb}", base.trim_end_matches('/'), escaped(token));
    let body = template::filled(&report.body, &request).to_string();
    let delay = report.delay;
    tokio::spawn(async move {
        tokio::time::sleep(delay).await;
        match post(&url, &body).await {
            Ok(status) => eprintln!("callback: {status}"),
            Err(error) => eprintln!("callback: {error}"),
        }
    });
}

/// Bytes that mean something in a URL's path, escaped.
fn escaped(token: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escape = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    token.bytes().map(escape).collect()
}

/// Posts JSON to an `http:` URL over its own connection; answers the status line without the
/// version. The receiver may end before it answers, because it has the report.
async fn post(url: &str, body: &str) -> std::io::Result<String> {
    let unusable = || std::io::Error::other("not an `http://` URL");
    let rest = url.strip_prefix("http://").ok_or_else(unusable)?;
    let (host, path) = rest.split_once('/').ok_or_else(unusable)?;
    let address = if host.contains(':') {
        host.to_owned()
    } else {
        format!("{host}:80")
    };
    let mut stream = TcpStream::connect(address).await?;
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.lines().next().and_then(|line| line.split_once(' '));
    Ok(status.map_or("no answer", |(_, status)| status.trim()).to_owned())
}
