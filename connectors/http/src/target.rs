//! The URL of a call: parsed, checked, and shown without its private parts.

use crate::AddressGuard;
use starbridge_ports::Outcome;
use std::net::{IpAddr, Ipv4Addr};
use url::Url;

/// Parses a target.
pub(crate) fn parse(text: &str) -> Result<Url, Outcome> {
    let url = Url::parse(text).map_err(|error| Outcome::not_sent(format!("the target is no URL: {error}")))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(Outcome::not_sent(format!("`{other}:` is nothing HTTP can call"))),
    }
}

/// Refuses a literal address that the guard forbids. Names are checked when they are looked up.
pub(crate) fn admit(url: &Url, guard: &AddressGuard) -> Result<(), Outcome> {
    let host = url.host_str().unwrap_or_default();
    let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() else {
        return Ok(());
    };
    if guard.permits(host, address) {
        return Ok(());
    }
    Err(Outcome::not_sent(format!(
        "`{}`: the address is not public: allow calls to it with `http.allow` or `http.private_addresses`",
        shown(url)
    )))
}

/// Whether calls to this URL are always refused, as far as that is known without looking up a name.
pub fn is_refused(target: &str, guard: &AddressGuard) -> bool {
    let Ok(url) = parse(target) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let local = host.eq_ignore_ascii_case("localhost") && !guard.permits(host, Ipv4Addr::LOCALHOST.into());
    local || admit(&url, guard).is_err()
}

/// The URL for messages: without user, password, query and fragment.
pub(crate) fn shown(url: &Url) -> String {
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!(
        "{}://{}{port}{}",
        url.scheme(),
        url.host_str().unwrap_or_default(),
        url.path()
    )
}
