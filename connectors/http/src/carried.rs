//! The headers that every call has (section "tasks").

use http::header::{HeaderMap, HeaderName, HeaderValue};
use starbridge_ports::{CallField, CallMetadata, Request};
use std::fmt::Write;
use std::sync::LazyLock;

/// The fields that are sent, with the names of their headers. All these names are valid.
static NAMES: LazyLock<Vec<(CallField, HeaderName)>> = LazyLock::new(|| {
    let name = |field: CallField| Some((field, HeaderName::from_bytes(field.header()?.as_bytes()).ok()?));
    CallField::ALL.into_iter().filter_map(name).collect()
});

/// Sets the ids of a call as headers. They replace headers of the flow, except an idempotency key.
pub(crate) fn put(headers: &mut HeaderMap, request: &Request, step_key: bool) {
    let metadata = CallMetadata::of(request, step_key);
    for (field, name) in NAMES.iter() {
        let by_hand = *field == CallField::IdempotencyKey && headers.contains_key(name);
        if !by_hand && let Some(value) = metadata.get(*field) {
            set(headers, name.clone(), &value);
        }
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    let plain = value.bytes().all(|byte| matches!(byte, 0x21..=0x7e if byte != b'%'));
    // Escaped text is visible ASCII, which is always a valid header value.
    let value = match plain {
        true => HeaderValue::from_str(value),
        false => HeaderValue::from_str(&escaped(value)),
    };
    if let Ok(value) = value {
        headers.insert(name, value);
    }
}

/// Keeps visible ASCII. Every other byte of the UTF-8 text, and `%` itself, becomes `%` and two digits.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => escaped.push_str("%25"),
            0x21..=0x7e => escaped.push(char::from(byte)),
            // Writing to a string can't fail.
            _ => _ = write!(escaped, "%{byte:02X}"),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn names_survive_as_headers() {
        assert_eq!(escaped("pay-1_x"), "pay-1_x");
        assert_eq!(escaped("take the money"), "take%20the%20money");
        assert_eq!(escaped("100%"), "100%25");
        assert_eq!(escaped("付\r\n"), "%E4%BB%98%0D%0A");
    }
}
