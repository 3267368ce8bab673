//! Which addresses may be called: private addresses are refused unless the settings allow them (`http.private_addresses`,
//! `http.allow`). A flow must not be able to make a server call its own neighbours.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// Which addresses may be called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AddressGuard {
    /// All addresses.
    #[default]
    AllowAll,
    /// Addresses of the public internet, and the listed exceptions.
    PublicOnly {
        /// Addresses and hosts that may be called although they are not public.
        allow: Vec<Allowed>,
    },
}

/// An exception of [`AddressGuard::PublicOnly`], read from text: `10.1.0.0/16`, `fd00::/8`, `192.168.1.7`,
/// `functions.internal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// All addresses of a network.
    Network(Network),
    /// The host with exactly this name, with any addresses.
    Host(String),
}

/// A network: an address, and how many of its leading bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u32,
}

/// A text that is not an exception of a guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRule {
    text: String,
}

impl AddressGuard {
    /// Whether a call to `host` at `address` may be sent.
    pub fn permits(&self, host: &str, address: IpAddr) -> bool {
        let Self::PublicOnly { allow } = self else {
            return true;
        };
        let address = address.to_canonical();
        let host = host.strip_suffix('.').unwrap_or(host);
        is_public(address)
            || allow.iter().any(|allowed| match allowed {
                Allowed::Network(network) => network.contains(address),
                Allowed::Host(name) => name.eq_ignore_ascii_case(host),
            })
    }
}

impl AddressGuard {
    /// A guard that lets the loopback be called as well.
    #[must_use]
    pub fn with_loopback(mut self) -> Self {
        if let Self::PublicOnly { allow } = &mut self {
            let networks = [
                Network::new(Ipv4Addr::new(127, 0, 0, 0).into(), 8),
                Network::new(Ipv6Addr::LOCALHOST.into(), 128),
            ];
            allow.extend(networks.into_iter().flatten().map(Allowed::Network));
        }
        self
    }
}

impl Network {
    /// A network; `None` if the prefix is longer than the address. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn new(address: IpAddr, prefix: u32) -> Option<Self> {
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let clothes = if address.is_ipv6() && address.to_canonical().is_ipv4() {
            96
        } else {
            0
        };
        (prefix <= longest && prefix >= clothes).then(|| Self {
            address: address.to_canonical(),
            prefix: prefix - clothes,
        })
    }

    /// Whether the network contains an address.
    pub fn contains(self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                (ours.to_bits() ^ theirs.to_bits())
                    .checked_shr(32 - self.prefix)
                    .unwrap_or(0)
                    == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                (ours.to_bits() ^ theirs.to_bits())
                    .checked_shr(128 - self.prefix)
                    .unwrap_or(0)
                    == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Network {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        let bad = || BadRule { text: text.to_owned() };
        let (address, prefix): (IpAddr, _) = match text.split_once('/') {
            Some((address, prefix)) => (
                address.parse().map_err(|_| bad())?,
                Some(prefix.parse().map_err(|_| bad())?),
            ),
            None => (text.trim_matches(['[', ']']).parse().map_err(|_| bad())?, None),
        };
        let whole = if address.is_ipv4() { 32 } else { 128 };
        Self::new(address, prefix.unwrap_or(whole)).ok_or_else(bad)
    }
}

impl FromStr for Allowed {
    type Err = BadRule;

    fn from_str(text: &str) -> Result<Self, BadRule> {
        let bad = || BadRule { text: text.to_owned() };
        match text.parse() {
            Ok(network) => return Ok(Self::Network(network)),
            Err(error) if text.contains('/') => return Err(error),
            // The text may be a host name.
            Err(_) => {}
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let fits = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || !name.chars().all(fits) {
            return Err(bad());
        }
        Ok(Self::Host(name.to_ascii_lowercase()))
    }
}

impl std::fmt::Display for BadRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}` is no network (`10.0.0.0/8`), address or host name", self.text)
    }
}

impl std::error::Error for BadRule {}

fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    // A public address, but on every Azure machine it is the machine's own host.
    let azure_host = address == Ipv4Addr::new(168, 63, 129, 16);
    let shared = a == 100 && (64..=127).contains(&b);
    let protocols = (a, b, c) == (192, 0, 0);
    let relay = (a, b, c) == (192, 88, 99);
    let benchmark = a == 198 && (b == 18 || b == 19);
    !(a == 0
        || a >= 224
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || shared
        || protocols
        || relay
        || benchmark
        || azure_host)
}

/// Only global unicast IPv6 addresses are public, except those that tunnel to an IPv4 address. NAT64 counts as the
/// address it leads to, for networks that reach the IPv4 internet through it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, high, low] = address.segments();
    if [a, b, c, d, e, f] == [0x64, 0xff9b, 0, 0, 0, 0] {
        return is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    }
    let global = (0x2000..=0x3fff).contains(&a);
    let protocols = a == 0x2001 && b < 0x0200;
    let documentation = (a == 0x2001 && b == 0x0db8) || (a == 0x3fff && b < 0x1000);
    let six_to_four = a == 0x2002;
    global && !(protocols || documentation || six_to_four)
}
