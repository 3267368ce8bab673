//! Reading answers: up to a limit, as JSON, and quoted in messages.

use crate::client::Response;
use http::header::CONTENT_ENCODING;
use hyper::body::{Body, Bytes, Incoming};
use starbridge_flow::value::{Object, Value};
use std::future::poll_fn;
use std::pin::Pin;

/// How a body ended.
pub(crate) enum End {
    /// All of it was read.
    Whole,
    /// There is more than the limit. The connection is closed.
    TooLong,
    /// The connection broke.
    CutOff(hyper::Error),
}

/// Reads a body up to the limit, and the rest of the chunk in which the limit is exceeded.
pub(crate) async fn read(response: Response, limit: usize) -> (Vec<u8>, End) {
    let mut pieces = response.into_body();
    let announced = pieces
        .size_hint()
        .exact()
        .and_then(|length| usize::try_from(length).ok());
    let mut body = Vec::with_capacity(announced.unwrap_or(0).min(limit).min(1 << 20));
    loop {
        match next(&mut pieces).await {
            Some(Ok(chunk)) => {
                let room = limit - body.len();
                if chunk.len() > room {
                    body.extend(chunk.iter().take(room));
                    return (body, End::TooLong);
                }
                body.extend_from_slice(&chunk);
            }
            None => return (body, End::Whole),
            Some(Err(error)) => return (body, End::CutOff(error)),
        }
    }
}

/// The next bytes of a body. Trailers are skipped.
async fn next(body: &mut Incoming) -> Option<hyper::Result<Bytes>> {
    loop {
        match poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await? {
            Ok(frame) => {
                if let Ok(bytes) = frame.into_data() {
                    return Some(Ok(bytes));
                }
            }
            Err(error) => return Some(Err(error)),
        }
    }
}

/// The content coding of an answer, if it has one although the request allowed none.
pub(crate) fn coding(response: &Response) -> Option<String> {
    let coding = response.headers().get(CONTENT_ENCODING)?;
    let coding = String::from_utf8_lossy(coding.as_bytes()).trim().to_ascii_lowercase();
    (!coding.is_empty() && coding != "identity").then_some(coding)
}

/// A body as a JSON value; `{}` if it is empty. The error says what is wrong and where.
pub(crate) fn parse(body: &[u8]) -> Result<Value, String> {
    let text = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    if text.trim_ascii().is_empty() {
        return Ok(Object::new().into());
    }
    serde_json::from_slice(text).map_err(|error| {
        let place = format!(" at line {} column {}", error.line(), error.column());
        let whole = error.to_string();
        let reason = whole.strip_suffix(&place).unwrap_or(&whole);
        format!(
            "the answer is no JSON: {reason} at line {}, column {}; begins with `{}`",
            error.line(),
            error.column(),
            excerpt(text, 60)
        )
    })
}

/// The first characters of a body, on one line.
pub(crate) fn excerpt(body: &[u8], characters: usize) -> String {
    // A character has at most four bytes. Cutting first avoids converting a large body for a short quotation.
    let start = body.get(..characters * 4).unwrap_or(body);
    let text = String::from_utf8_lossy(start);
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    text.trim().chars().take(characters).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_json_is_told_with_its_place() {
        assert_eq!(
            parse(b"{\n  \"a\": tru }").unwrap_err(),
            "the answer is no JSON: expected ident at line 2, column 11; begins with `{   \"a\": tru }`"
        );
        assert!(parse(b"<html>").unwrap_err().ends_with("begins with `<html>`"));
        assert!(
            parse(&b"[".repeat(200))
                .unwrap_err()
                .contains("recursion limit exceeded")
        );
        assert!(parse(b"\"\xff\"").is_err());
        assert!(parse(b"{} {}").is_err());
    }

    #[test]
    fn nothing_is_an_empty_object() {
        assert_eq!(parse(b" \r\n").unwrap(), Object::new().into());
        assert_eq!(parse(b"\xEF\xBB\xBF{\"a\": 1}").unwrap().to_json(), "{\"a\":1}");
        assert_eq!(parse(b"7").unwrap(), 7u32.into());
    }
}
