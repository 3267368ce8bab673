//! Addresses that a flow must not make a server call.

use super::server::{Server, json};
use super::setting::{failure, request, value};
use starbridge_connector_http::{AddressGuard, Allowed, HttpConnector, HttpSettings, Network, ResolveFuture, Resolver};
use starbridge_ports::{Connector, Outcome};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Hosts as a URL can write them. Each is an address that is not public.
const FORBIDDEN: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0X7F.0x0.0x0.0x1",
    "0177.0.0.1",
    "017700000001",
    "0177.0x0.1",
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "１２７.０.０.１",
    "127。0。0。1",
    "①②⑦.⓪.⓪.①",
    "public.example@127.0.0.1",
    "0",
    "0.0.0.0",
    "0x0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "0xa.1",
    "167772161",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "0300.0250.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "169.254.43518",
    "100.64.0.1",
    "100.100.100.200",
    "100.127.255.255",
    "168.63.129.16",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:10.0.0.1]",
    "[::ffff:a9fe:a9fe]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::169.254.169.254]",
    "[64:ff9b:1::1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:7f00:1::]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[100::1]",
    "[fe80::1]",
    "[febf::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[fdff::1]",
    "[ff02::1]",
    "[ff0e::1]",
    "[5f00::1]",
];

const PUBLIC: &[&str] = &[
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "172.15.255.255",
    "172.32.0.0",
    "169.253.1.1",
    "192.167.1.1",
    "198.17.1.1",
    "198.20.0.1",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2001:4860:4860::8888",
    "2a00::1",
    "64:ff9b::8.8.8.8",
    "::ffff:8.8.8.8",
];

fn public_only(allow: &[&str]) -> AddressGuard {
    AddressGuard::PublicOnly {
        allow: allow.iter().map(|rule| rule.parse().unwrap()).collect(),
    }
}

#[tokio::test]
async fn every_spelling_of_a_private_address_is_refused() {
    let connector = HttpConnector::new(HttpSettings {
        guard: public_only(&[]),
        ..HttpSettings::default()
    });
    assert!(FORBIDDEN.len() >= 40);
    for host in FORBIDDEN {
        for scheme in ["http", "https"] {
            let (error, cause, _) = failure(connector.call(request(&format!("{scheme}://{host}:1/x"))).await);
            assert_eq!(error, "FnF.NoSuchResource", "{host}");
            assert!(
                cause.ends_with(
                    "the address is not public: allow calls to it with `http.allow` or `http.private_addresses`"
                ),
                "{host}: {cause}"
            );
        }
    }
}

#[test]
fn public_addresses_are_permitted() {
    for address in PUBLIC {
        assert!(public_only(&[]).permits("x", address.parse().unwrap()), "{address}");
    }
    assert!(AddressGuard::AllowAll.permits("x", "127.0.0.1".parse().unwrap()));
}

#[test]
fn exceptions_are_networks_addresses_and_names() {
    let guard = public_only(&["10.1.0.0/16", "192.168.1.7", "fd00:1::/32", "::1", "Functions.Internal"]);
    for (host, address, permitted) in [
        ("x", "10.1.255.1", true),
        ("x", "10.2.0.1", false),
        ("x", "::ffff:10.1.0.1", true),
        ("x", "192.168.1.7", true),
        ("x", "192.168.1.8", false),
        ("x", "fd00:1:ffff::1", true),
        ("x", "fd00:2::1", false),
        ("x", "::1", true),
        ("functions.internal", "10.9.9.9", true),
        ("functions.internal.", "127.0.0.1", true),
        ("a.functions.internal", "10.9.9.9", false),
    ] {
        assert_eq!(
            guard.permits(host, address.parse().unwrap()),
            permitted,
            "{host} {address}"
        );
    }
    assert!(public_only(&["0.0.0.0/0"]).permits("x", "127.0.0.1".parse().unwrap()));
    assert!(public_only(&["::/0"]).permits("x", "fe80::1".parse().unwrap()));
    assert!(public_only(&["::ffff:10.0.0.0/104"]).permits("x", "10.9.9.9".parse().unwrap()));
    assert!(
        !public_only(&["::/0"]).permits("x", "127.0.0.1".parse().unwrap()),
        "IPv4 is no part of IPv6"
    );
}

#[test]
fn rules_that_are_none() {
    for rule in [
        "",
        "10.0.0.0/33",
        "::/129",
        "10.0.0/8",
        "10.0.0.0/x",
        "a b",
        "http://x",
        "x:80",
        "*.internal",
        "/8",
        "10.0.0.0/-1",
    ] {
        let error = rule.parse::<Allowed>().unwrap_err();
        assert!(error.to_string().contains(&format!("`{rule}`")), "{error}");
    }
    assert!(Network::new("10.0.0.0".parse().unwrap(), 33).is_none());
}

/// Answers with one address first, and with another one from then on.
struct Rebinding {
    first: Vec<&'static str>,
    then: Vec<&'static str>,
    asked: AtomicUsize,
}

impl Resolver for Rebinding {
    fn lookup(&self, _: &str) -> ResolveFuture {
        let first = self.asked.fetch_add(1, Ordering::SeqCst) == 0;
        let addresses = if first { &self.first } else { &self.then };
        let addresses: Vec<IpAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Box::pin(async move { Ok(addresses) })
    }
}

#[tokio::test]
async fn a_name_that_moves_to_a_private_address_is_not_dialled() {
    let server = Server::start(json("{}")).await;
    let lookup = Arc::new(Rebinding {
        first: vec!["127.0.0.1", "::1"],
        then: vec!["::ffff:127.0.0.1"],
        asked: AtomicUsize::new(0),
    });
    let connector = HttpConnector::new(HttpSettings {
        guard: public_only(&[]),
        resolver: lookup.clone(),
        ..HttpSettings::default()
    });
    for address in ["127.0.0.1", "::ffff:127.0.0.1"] {
        let target = format!("http://inner.test:{}/x", server.address.port());
        let (error, cause, _) = failure(connector.call(request(&target)).await);
        assert_eq!(error, "FnF.NoSuchResource");
        let says = ": the address of `inner.test` is not public: allow calls to it with `http.allow` or `http.private_addresses`";
        assert!(cause.ends_with(says), "{cause}");
        assert!(
            !cause.contains(address),
            "what a name leads to inside is not told: {cause}"
        );
    }
    assert_eq!(
        lookup.asked.load(Ordering::SeqCst),
        2,
        "each connection asks once, and what was checked is dialled"
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_allowed_name_is_dialled_where_the_look_up_says() {
    let server = Server::start(json("{}")).await;
    let connector = HttpConnector::new(HttpSettings {
        guard: public_only(&["inner.test"]),
        resolver: Arc::new(Rebinding {
            first: vec!["127.0.0.1"],
            then: Vec::new(),
            asked: AtomicUsize::new(0),
        }),
        ..HttpSettings::default()
    });
    let target = format!("http://inner.test:{}/x", server.address.port());
    assert_eq!(connector.call(request(&target)).await, Outcome::Result(value("{}")));
}

#[tokio::test]
async fn localhost_is_refused_when_it_is_looked_up() {
    let connector = HttpConnector::new(HttpSettings {
        guard: public_only(&[]),
        ..HttpSettings::default()
    });
    let (error, _, _) = failure(connector.call(request("http://localhost:1/")).await);
    assert_eq!(error, "FnF.NoSuchResource");
}
