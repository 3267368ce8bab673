//! Protection against browsers: a page from elsewhere must not use this server through a viewer's
//! browser.
//!
//! There are two ways to try. The page's own host name may lead to this machine: such requests have that name as
//! `Host`. Or the page sends requests that browsers send without asking, such as forms and plain
//! text: such requests name their origin in `Origin` or `Sec-Fetch-Site`. Only browsers send these
//! headers; a request without them does not come from a page.

use super::host::{Authority, BadHost, of_request};
use axum::http::{HeaderMap, Method, StatusCode, header};
use starbridge_node::problem::{Problem, quoted};

/// The parts of a request that the check needs.
pub struct Sent<'a> {
    pub method: &'a Method,
    pub uri: &'a axum::http::Uri,
    pub headers: &'a HeaderMap,
    /// Whether it has a token that no browser adds by itself.
    pub has_token: bool,
    /// Whether it only asks for the server's health.
    pub is_probe: bool,
}

/// Refuses requests that a page from elsewhere may have sent. `open`: no token is needed.
pub fn check(sent: &Sent<'_>, hosts: &[String], open: bool) -> Result<(), Problem> {
    let host = of_request(sent.uri, sent.headers).map_err(|BadHost| bad_host())?;
    if open {
        match &host {
            Some(host) if host.is_loopback() || host.is_among(hosts) => {}
            // Old health checks send no host. Browsers always do.
            None if sent.is_probe => {}
            host => return Err(not_ours(host.as_ref())),
        }
    }
    if matches!(*sent.method, Method::GET | Method::HEAD | Method::OPTIONS) || sent.has_token {
        return Ok(());
    }
    let origin = origin(sent.headers);
    let site = site(sent.headers);
    let foreign = match &origin {
        Origin::None => matches!(site, Site::Near | Site::Far),
        Origin::Other => true,
        Origin::Of { scheme, authority } => site == Site::Far || !is_ours(*scheme, authority, host.as_ref(), hosts),
    };
    if foreign { Err(cross_site(sent.headers)) } else { Ok(()) }
}

/// The origin of a page.
enum Origin<'a> {
    /// There is none.
    None,
    /// One that can't be named: `null`, several, or not an origin.
    Other,
    Of {
        scheme: Scheme,
        authority: Authority<'a>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

fn origin(headers: &HeaderMap) -> Origin<'_> {
    let mut given = headers.get_all(header::ORIGIN).iter();
    match (given.next(), given.next()) {
        (None, _) => Origin::None,
        (Some(origin), None) => origin.to_str().ok().and_then(read).unwrap_or(Origin::Other),
        (Some(_), Some(_)) => Origin::Other,
    }
}

fn read(origin: &str) -> Option<Origin<'_>> {
    let (scheme, authority) = origin.split_once("://")?;
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    let authority = Authority::read(authority)?;
    Some(Origin::Of { scheme, authority })
}

/// Whether an origin is this server's own: it has the host and port of the request, or one of the configured names. A
/// proxy may speak TLS and use another name, so the scheme only gives the port if none is named.
fn is_ours(scheme: Scheme, origin: &Authority<'_>, host: Option<&Authority<'_>>, hosts: &[String]) -> bool {
    let port = origin.port_or(scheme.port());
    let asked = host.is_some_and(|host| origin.has_host_of(host) && port == host.port_or(scheme.port()));
    let named = origin.is_among(hosts)
        && (port == scheme.port() || host.is_some_and(|host| port == host.port_or(scheme.port())));
    asked || named
}

/// The relation of a page to the server, as its browser sees it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Site {
    /// It is not given.
    None,
    /// A page of this server, or no page.
    Own,
    /// The same name with another port, or another name of the same owner.
    Near,
    /// From elsewhere.
    Far,
}

fn site(headers: &HeaderMap) -> Site {
    let of = |value: &axum::http::HeaderValue| match value.as_bytes() {
        b"same-origin" | b"none" => Site::Own,
        b"same-site" => Site::Near,
        _ => Site::Far,
    };
    let mut given = headers.get_all("sec-fetch-site").iter();
    match (given.next(), given.next()) {
        (None, _) => Site::None,
        (Some(value), None) => of(value),
        (Some(_), Some(_)) => Site::Far,
    }
}

fn bad_host() -> Problem {
    Problem::bad("`Host` must be given once, as a name or an address, and maybe a port")
}

fn not_ours(host: Option<&Authority<'_>>) -> Problem {
    let name = quoted(host.map_or("", Authority::host));
    let detail = format!(
        "the server is not known as {name}: call it as `localhost`, or name the host in its configuration (`server.hosts`)"
    );
    Problem::new(StatusCode::FORBIDDEN, "HostNotAllowed", detail)
}

fn cross_site(headers: &HeaderMap) -> Problem {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let from = origin.map_or_else(String::new, |origin| format!(" of {}", quoted(origin)));
    let detail = format!(
        "a page{from} may not change anything here: send a token as `Authorization: Bearer …`, or name the page's host in \
         the server's configuration (`server.hosts`)"
    );
    Problem::new(StatusCode::FORBIDDEN, "CrossSite", detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderName, HeaderValue, Uri};

    fn code(method: &Method, given: &[(&'static str, &'static str)], has_token: bool) -> Option<String> {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let sent = Sent {
            method,
            uri: &Uri::from_static("/v1/flows"),
            headers: &headers,
            has_token,
            is_probe: false,
        };
        let hosts = ["flows.example".to_owned()];
        check(&sent, &hosts, true)
            .err()
            .map(|problem| problem.code().to_owned())
    }

    #[test]
    fn only_our_own_pages_change_anything() {
        const LOCAL: (&str, &str) = ("host", "localhost:7878");
        const NAMED: (&str, &str) = ("host", "flows.example");
        let origin = |origin| ("origin", origin);
        let site = |site| ("sec-fetch-site", site);
        for own in [
            &[LOCAL][..],
            &[LOCAL, site("none")],
            &[LOCAL, site("same-origin"), origin("http://localhost:7878")],
            &[LOCAL, origin("http://LOCALHOST:7878")],
            &[NAMED, origin("http://flows.example")],
            &[NAMED, origin("https://flows.example")],
            &[NAMED, origin("https://flows.example:443"), site("same-origin")],
            // A proxy uses another name.
            &[LOCAL, origin("https://flows.example"), site("same-origin")],
            &[("host", "[::1]:7878"), origin("http://[0:0::1]:7878")],
        ] {
            assert_eq!(code(&Method::POST, own, false), None, "{own:?}");
        }
        for foreign in [
            &[LOCAL, origin("https://evil.example")][..],
            &[LOCAL, origin("null")],
            &[LOCAL, origin("")],
            &[LOCAL, origin("file://")],
            &[LOCAL, origin("http://localhost:3000")],
            &[LOCAL, origin("http://localhost")],
            &[LOCAL, origin("http://127.0.0.1:7878")],
            &[LOCAL, origin("http://localhost:7878.evil.example")],
            &[LOCAL, origin("http://localhost:7878@evil.example")],
            &[LOCAL, origin("http://localhost:7878"), origin("http://localhost:7878")],
            &[LOCAL, origin("http://localhost:7878"), site("cross-site")],
            &[LOCAL, site("cross-site")],
            &[LOCAL, site("same-site")],
            &[LOCAL, site("same-site"), origin("http://localhost:3000")],
            &[LOCAL, site("same-origin"), site("cross-site")],
            &[LOCAL, site("same-planet")],
            &[NAMED, origin("https://flows.example:8443")],
            &[NAMED, origin("https://sub.flows.example")],
        ] {
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
                let refused = code(&method, foreign, false);
                assert_eq!(refused.as_deref(), Some("CrossSite"), "{method} {foreign:?}");
            }
            assert_eq!(code(&Method::GET, foreign, false), None, "{foreign:?}");
            assert_eq!(code(&Method::POST, foreign, true), None, "{foreign:?}");
        }
    }
}
