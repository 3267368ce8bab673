//! The address of the client, if proxies stand before the server.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use starbridge_node::config::Network;
use std::net::{IpAddr, SocketAddr};

/// Every request is asked for it: a name that is read once.
static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address from which a request comes. A trusted proxy gives it in `Forwarded` (RFC 7239) or `X-Forwarded-For`.
/// The last entry that is not a trusted proxy counts, because the client may have made up those before it. If this is
/// not certain, the result is the proxy's own address.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted: &[Network]) -> IpAddr {
    let peer = peer.to_canonical();
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    if !is_trusted(peer) {
        return peer;
    }
    let forwarded = lines(headers, &header::FORWARDED);
    let chain = match (forwarded, lines(headers, &X_FORWARDED_FOR)) {
        (Some(forwarded), None) => forwarded_for(&forwarded),
        (None, Some(listed)) => listed.split(',').map(|entry| address(entry.trim())).collect(),
        // A proxy writes one of them, so the other came from the client.
        (Some(_), Some(_)) | (None, None) => Vec::new(),
    };
    let passed = |entry: &&Option<IpAddr>| !entry.is_some_and(is_trusted);
    let last = chain.iter().rev().find(passed).or(chain.first());
    last.copied().flatten().unwrap_or(peer)
}

/// Whether a proxy says in a request that it passed it on.
pub fn is_passed_on(headers: &HeaderMap) -> bool {
    headers.contains_key(header::FORWARDED) || headers.contains_key(&X_FORWARDED_FOR)
}

/// All lines of a header as one; `None` if there are none. A line that is not text counts as a line
/// without entries.
fn lines(headers: &HeaderMap, name: impl header::AsHeaderName) -> Option<String> {
    let text = |line: &HeaderValue| line.to_str().unwrap_or("?").to_owned();
    let lines: Vec<String> = headers.get_all(name).iter().map(text).collect();
    (!lines.is_empty()).then(|| lines.join(","))
}

/// The `for` of each entry, in order, if it is an address; empty if the entries can't be separated.
fn forwarded_for(text: &str) -> Vec<Option<IpAddr>> {
    let entries = split(text, ',').unwrap_or_default();
    entries.into_iter().map(client_of).collect()
}

fn client_of(entry: &str) -> Option<IpAddr> {
    let mut client = None;
    for pair in split(entry, ';')? {
        let (name, value) = pair.trim().split_once('=')?;
        if name.eq_ignore_ascii_case("for") {
            let again = client.replace(address(unquoted(value)?)?);
            if again.is_some() {
                return None;
            }
        }
    }
    client
}

/// The parts between separators that are not in quotes; `None` if a quote does not end.
fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let (mut parts, mut begin) = (Vec::new(), 0);
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c == separator && !quoted => {
                parts.push(text.get(begin..at)?);
                begin = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text.get(begin..)?);
    (!quoted).then_some(parts)
}

/// A value without its quotes. No address needs a backslash.
fn unquoted(value: &str) -> Option<&str> {
    let inner = match value.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"')?,
        None => value,
    };
    (!inner.contains(['"', '\\'])).then_some(inner)
}

/// Reads an address, maybe with a port: `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]`,
/// `[2001:db8::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let read = match bare {
        Some(inner) => inner.parse().ok().map(IpAddr::V6),
        None => text
            .parse()
            .ok()
            .or_else(|| text.parse().ok().map(|with_port: SocketAddr| with_port.ip())),
    };
    read.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderName;

    fn client(peer: &str, given: &[(&'static str, &'static str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let trusted = ["10.0.0.0/8", "fd00::/8", "192.0.2.1"].map(|network| network.parse().unwrap());
        client_address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn a_proxy_that_is_trusted_says_who_asks() {
        const LISTED: &str = "x-forwarded-for";
        const FORWARDED: &str = "forwarded";
        for (given, expected) in [
            (&[][..], "10.0.0.1"),
            (&[(LISTED, "203.0.113.7")][..], "203.0.113.7"),
            (&[(LISTED, "203.0.113.7:4711")], "203.0.113.7"),
            // Entries before the last untrusted one may be made up.
            (&[(LISTED, "1.1.1.1, 203.0.113.7, 10.2.3.4")], "203.0.113.7"),
            (&[(LISTED, "rubbish, 203.0.113.7")], "203.0.113.7"),
            (&[(FORWARDED, "rubbish, for=203.0.113.7")], "203.0.113.7"),
            (&[(LISTED, "1.1.1.1"), (LISTED, "203.0.113.7,192.0.2.1")], "203.0.113.7"),
            (&[(LISTED, "10.9.9.9, 10.2.3.4")], "10.9.9.9"),
            (&[(LISTED, "2001:db8::7")], "2001:db8::7"),
            (&[(LISTED, "[2001:db8::7]:80, ::ffff:10.0.0.3")], "2001:db8::7"),
            (&[(FORWARDED, "for=203.0.113.7")], "203.0.113.7"),
            (
                &[(FORWARDED, "FOR=1.1.1.1, For=203.0.113.7;proto=http;by=10.0.0.1")],
                "203.0.113.7",
            ),
            (
                &[(FORWARDED, "by=\"x;y,z\"; for=\"[2001:db8::7]:4711\", for=10.0.0.2")],
                "2001:db8::7",
            ),
        ] {
            assert_eq!(client("10.0.0.1", given), expected, "{given:?}");
            // From other peers it means nothing.
            assert_eq!(client("198.51.100.2", given), "198.51.100.2", "{given:?}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_the_proxys() {
        const LISTED: &str = "x-forwarded-for";
        const FORWARDED: &str = "forwarded";
        for given in [
            &[(LISTED, "")][..],
            &[(LISTED, "unknown")],
            &[(LISTED, "203.0.113.7, ")],
            &[(LISTED, "203.0.113.7, 10.0.0.300")],
            &[(LISTED, "203.0.113.7 203.0.113.8")],
            &[(FORWARDED, "")],
            &[(FORWARDED, "for=_hidden")],
            &[(FORWARDED, "for=unknown")],
            &[(FORWARDED, "proto=http")],
            &[(FORWARDED, "for=203.0.113.7, proto=http")],
            &[(FORWARDED, "for=203.0.113.7;for=203.0.113.8")],
            &[(FORWARDED, "for=\"203.0.113.7")],
            &[(FORWARDED, "for=\"203.0.\\113.7\"")],
            &[(FORWARDED, "for=2001:db8::7]")],
            &[(FORWARDED, "for")],
            &[(FORWARDED, "for=203.0.113.7"), (LISTED, "203.0.113.7")],
        ] {
            assert_eq!(client("10.0.0.1", given), "10.0.0.1", "{given:?}");
        }
    }
}
