//! Pages and their files, compressed for browsers that take it.
//!
//! What a page keeps secret is its token against forgery. Each page has another one, so the length of a page tells nothing of it.

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;
use starbridge_node::offload;
use std::collections::HashMap;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

/// Less is sent as it is.
const LEAST_BYTES: usize = 1024;
/// A page of more bytes is sent as it is.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// Whether a browser takes gzip.
pub fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let mut words = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    words.any(|word| {
        let mut parts = word.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        let refused = |part: &str| {
            let weight = part.strip_prefix("q=").and_then(|weight| weight.parse::<f64>().ok());
            weight.is_some_and(|weight| weight <= 0.0)
        };
        named && !parts.any(refused)
    })
}

fn gzip(bytes: &[u8], level: Compression) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), level);
    encoder.write_all(bytes).ok()?;
    encoder.finish().ok()
}

/// Files that never change, each compressed once.
#[derive(Debug, Default)]
pub struct Compressed(Mutex<HashMap<String, Arc<[u8]>>>);

impl Compressed {
    /// A file as it is sent, compressed.
    pub fn of(&self, name: &str, bytes: &'static [u8]) -> Option<Arc<[u8]>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = kept.get(name) {
            return Some(known.clone());
        }
        let made: Arc<[u8]> = gzip(bytes, Compression::best())?.into();
        kept.insert(name.to_owned(), made.clone());
        Some(made)
    }
}

/// What is compressed: pages, and the letters of a map.
const KINDS: [&[u8]; 2] = [b"text/html", b"text/plain"];

/// An answer, compressed if it is a page that is worth it.
pub async fn compressed(answer: Response) -> Response {
    let is_page = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| KINDS.iter().any(|known| kind.as_bytes().starts_with(known)));
    if !is_page || answer.headers().contains_key(header::CONTENT_ENCODING) {
        return answer;
    }
    let (mut parts, body) = answer.into_parts();
    // A page is made as a whole before it is sent, so that there is nothing to wait for.
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return Response::from_parts(parts, Body::empty());
    };
    parts
        .headers
        .insert(header::VARY, HeaderValue::from_static("accept-encoding, cookie"));
    if !(LEAST_BYTES..=MOST_BYTES).contains(&bytes.len()) {
        return Response::from_parts(parts, Body::from(bytes));
    }
    let plain = bytes.clone();
    let made = offload::read(bytes.len(), move || gzip(&plain, Compression::fast())).await;
    match made.ok().flatten() {
        Some(made) => {
            parts
                .headers
                .insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(made))
        }
        None => Response::from_parts(parts, Body::from(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gzip_is_sent_only_to_who_takes_it() {
        for (accepted, takes) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.0", false),
            ("br", false),
            ("xgzip", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            assert_eq!(takes_gzip(&headers), takes, "{accepted}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn file_is_compressed_once() {
        let files = Compressed::default();
        let bytes: &'static [u8] = &[b'x'; 4096];
        let first = files.of("a", bytes).unwrap();
        assert!(first.len() < 200);
        assert!(Arc::ptr_eq(&first, &files.of("a", bytes).unwrap()));
    }
}
