//! The names requests are sent to (RFC 9110 section 7.2, RFC 3986 section 3.2.2).

use axum::http::{HeaderMap, Uri, header};
use std::net::{IpAddr, Ipv6Addr};

/// A host, maybe with a port, as in `Host` or an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Authority<'a> {
    /// A name, an IPv4 address, or an IPv6 address without its brackets.
    host: &'a str,
    /// The address, if the host is one.
    address: Option<IpAddr>,
    port: Option<u16>,
}

/// The `Host` of a request is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadHost;

impl<'a> Authority<'a> {
    /// Reads `host`, `host:port`, `[IPv6]` and `[IPv6]:port`, with nothing before or after. Reading only a part could
    /// find another host than the browser did.
    pub fn read(text: &'a str) -> Option<Self> {
        let (host, address, rest) = match text.strip_prefix('[') {
            Some(inner) => {
                let (inner, rest) = inner.split_once(']')?;
                let address: Ipv6Addr = inner.parse().ok()?;
                (inner, Some(IpAddr::V6(address)), rest)
            }
            None => {
                let (host, _) = text.split_once(':').unwrap_or((text, ""));
                let address = host.parse().ok().map(IpAddr::V4);
                (host, address, text.get(host.len()..)?)
            }
        };
        if host.is_empty() || (!text.starts_with('[') && !is_name(host)) {
            return None;
        }
        let port = match rest {
            "" | ":" => None,
            _ => {
                let digits = rest.strip_prefix(':')?;
                let all = digits.bytes().all(|digit| digit.is_ascii_digit());
                Some(all.then(|| digits.parse().ok()).flatten()?)
            }
        };
        Some(Self { host, address, port })
    }

    /// Whether its name is one that only this machine can have.
    pub fn is_loopback(&self) -> bool {
        match self.address {
            Some(address) => address.is_loopback(),
            None => self.host.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Whether it is one of these names.
    pub fn is_among(&self, names: &[String]) -> bool {
        names.iter().any(|name| name.eq_ignore_ascii_case(self.host))
    }

    /// Whether both have the same host.
    pub fn has_host_of(&self, other: &Self) -> bool {
        match (self.address, other.address) {
            (Some(one), Some(other)) => one == other,
            _ => self.host.eq_ignore_ascii_case(other.host),
        }
    }

    /// The port, or the default one.
    pub fn port_or(&self, usual: u16) -> u16 {
        self.port.unwrap_or(usual)
    }

    /// Without the port.
    pub fn host(&self) -> &'a str {
        self.host
    }
}

/// A registered name of RFC 3986: letters, digits, a few signs, and `%` with two digits.
fn is_name(host: &str) -> bool {
    let mut parts = host.split('%');
    let plain = |part: &str| {
        part.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte))
    };
    let escaped = |part: &str| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) && plain(part)
    };
    parts.next().is_some_and(plain) && parts.all(escaped)
}

/// The host to which a request is sent: from its target if that has one, otherwise from its `Host`; `None` if it has
/// neither.
pub fn of_request<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Result<Option<Authority<'a>>, BadHost> {
    let mut given = headers.get_all(header::HOST).iter();
    let header = match (given.next(), given.next()) {
        (None, _) => None,
        (Some(host), None) => {
            let host = host.to_str().ok().and_then(Authority::read);
            Some(host.ok_or(BadHost)?)
        }
        (Some(_), Some(_)) => return Err(BadHost),
    };
    match uri.authority() {
        None => Ok(header),
        Some(authority) => Authority::read(authority.as_str()).ok_or(BadHost).map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_read_whole_or_not_at_all() {
        for (text, host, port) in [
            ("localhost", "localhost", None),
            ("LOCALHOST:7878", "LOCALHOST", Some(7878)),
            ("127.0.0.1", "127.0.0.1", None),
            ("127.0.0.1:", "127.0.0.1", None),
            ("[::1]:8", "::1", Some(8)),
            ("[::1]", "::1", None),
            ("starbridge.example:443", "starbridge.example", Some(443)),
            ("a_b-c~d", "a_b-c~d", None),
            ("%6cocalhost", "%6cocalhost", None),
        ] {
            let read = Authority::read(text).unwrap_or_else(|| panic!("{text}"));
            assert_eq!((read.host, read.port), (host, port), "{text}");
        }
        for text in [
            "",
            ":80",
            "[::1].evil.example",
            "[::1",
            "[localhost",
            "[localhost]",
            "[]",
            "[::1%25eth0]",
            "[v1.x]",
            "::1",
            "::1:80",
            "127.0.0.1:80@evil.example",
            "user@localhost",
            "localhost:80:80",
            "localhost:+80",
            "localhost:70000",
            "localhost:8o",
            "localhost/",
            "localhost, evil.example",
            "local host",
            "localhost\t",
            "http://localhost",
            "%6",
            "%zz",
            "é",
        ] {
            let read = Authority::read(text);
            assert_eq!(read, None, "{text}");
        }
    }

    #[test]
    fn only_what_nobody_else_can_be_is_the_loopback() {
        for (text, is) in [
            ("localhost", true),
            ("127.9.9.9:1", true),
            ("[::1]", true),
            ("localhost.", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("%6cocalhost", false),
            ("2130706433", false),
            ("0x7f.1", false),
            ("127.1", false),
            ("[::ffff:127.0.0.1]", false),
            ("[::]", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(Authority::read(text).unwrap().is_loopback(), is, "{text}");
        }
    }

    #[test]
    fn two_hosts_are_none() {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, "localhost".parse().unwrap());
        let plain: Uri = "/v1/flows".parse().unwrap();
        assert!(of_request(&plain, &headers).unwrap().unwrap().is_loopback());
        // The target of a request takes precedence over its header.
        let whole: Uri = "http://evil.example/v1/flows".parse().unwrap();
        assert!(!of_request(&whole, &headers).unwrap().unwrap().is_loopback());
        headers.append(header::HOST, "localhost".parse().unwrap());
        assert_eq!(of_request(&plain, &headers), Err(BadHost));
        assert_eq!(of_request(&plain, &HeaderMap::new()), Ok(None));
    }
}
