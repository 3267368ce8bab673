//! A limit for failed attempts.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many failures are allowed at once, and how many more each second.
const BURST: f64 = 50.0;
const PER_SECOND: f64 = 5.0;
/// How many clients are remembered.
const MAX_CLIENTS: usize = 10_000;
/// The least time between two sweeps through all of them.
const BETWEEN_SWEEPS: Duration = Duration::from_secs(1);

/// A bucket of failures for each client. Only a client that fails takes from its bucket, and only such a client can
/// find it empty. A client with a valid token never depends on the failures of others at its
/// address.
#[derive(Debug, Default)]
pub struct Limiter {
    buckets: Mutex<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    by_client: HashMap<IpAddr, Bucket>,
    /// The bucket that all others share if there are too many clients.
    others: Option<Bucket>,
    swept: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    seen: Instant,
}

impl Limiter {
    /// Counts a failure of a client. Returns false if it has failed too often.
    pub fn may_fail(&self, client: IpAddr) -> bool {
        self.may_fail_at(client, Instant::now())
    }

    fn may_fail_at(&self, client: IpAddr, now: Instant) -> bool {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.of(network_of(client), now).take(now)
    }
}

impl Buckets {
    fn of(&mut self, client: IpAddr, now: Instant) -> &mut Bucket {
        if self.by_client.len() >= MAX_CLIENTS && !self.by_client.contains_key(&client) {
            self.sweep(now);
            if self.by_client.len() >= MAX_CLIENTS {
                return self.others.get_or_insert(Bucket::full(now));
            }
        }
        self.by_client.entry(client).or_insert(Bucket::full(now))
    }

    /// Forgets clients whose buckets are full again.
    fn sweep(&mut self, now: Instant) {
        let recently = |at: Instant| now.saturating_duration_since(at) < BETWEEN_SWEEPS;
        if self.swept.is_some_and(recently) {
            return;
        }
        self.swept = Some(now);
        let full = Duration::from_secs_f64(BURST / PER_SECOND);
        self.by_client
            .retain(|_, bucket| now.saturating_duration_since(bucket.seen) < full);
    }
}

impl Bucket {
    fn full(now: Instant) -> Self {
        Self { left: BURST, seen: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let since = now.saturating_duration_since(self.seen).as_secs_f64();
        self.left = (self.left + since * PER_SECOND).min(BURST);
        self.seen = now;
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

/// The network that an address counts for. With IPv6 a client can choose addresses from a network of 64 bits.
fn network_of(client: IpAddr) -> IpAddr {
    const OURS: u128 = !0 << 64;
    match client.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & OURS).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// How many failures are allowed at once.
    fn failures(limiter: &Limiter, client: &str, now: Instant) -> usize {
        (0..200).filter(|_| limiter.may_fail_at(at(client), now)).count()
    }

    #[test]
    fn a_client_may_fail_fifty_times_and_five_times_a_second() {
        let limiter = Limiter::default();
        let now = Instant::now();
        assert_eq!(failures(&limiter, "192.0.2.1", now), 50);
        assert_eq!(failures(&limiter, "192.0.2.2", now), 50);
        let later = now + Duration::from_secs(2);
        assert_eq!(failures(&limiter, "192.0.2.1", later), 10);
        let much_later = now + Duration::from_secs(1000);
        assert_eq!(failures(&limiter, "192.0.2.1", much_later), 50);
        // A clock that stands still or goes back gives nothing.
        assert_eq!(failures(&limiter, "192.0.2.1", later), 0);
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let limiter = Limiter::default();
        let now = Instant::now();
        assert_eq!(failures(&limiter, "2001:db8:0:1::1", now), 50);
        assert_eq!(failures(&limiter, "2001:db8:0:1:ffff::2", now), 0);
        assert_eq!(failures(&limiter, "2001:db8:0:2::1", now), 50);
        // The same address, mapped to IPv6.
        assert_eq!(failures(&limiter, "192.0.2.1", now), 50);
        assert_eq!(failures(&limiter, "::ffff:192.0.2.1", now), 0);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let limiter = Limiter::default();
        let now = Instant::now();
        let clients = |count: u32| (0..count).map(|number| IpAddr::from((0x0a00_0000 + number).to_be_bytes()));
        let known = || limiter.buckets.lock().unwrap().by_client.len();
        for client in clients(30_000) {
            limiter.may_fail_at(client, now);
        }
        assert_eq!(known(), MAX_CLIENTS);
        // Clients beyond the limit share one bucket. A known client keeps its own.
        assert_eq!(failures(&limiter, "192.0.2.1", now), 0);
        assert_eq!(failures(&limiter, "10.0.0.0", now), 49);
        let later = now + Duration::from_secs(60);
        assert_eq!(failures(&limiter, "192.0.2.1", later), 50);
        assert_eq!(known(), 1);
    }
}
