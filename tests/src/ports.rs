//! Ports for programs that must be told theirs.

use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

/// Below the ports that systems give to clients and to port 0, so that no other process gets one of
/// these meanwhile.
const FIRST: u32 = 12_000;
const COUNT: u32 = 20_000;

/// A port without a listener, another one each time. The check does not bind it: a program that
/// another thread starts at that moment would inherit the socket and hold the port until it is up.
pub fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        // Processes begin far from each other.
        let at = std::process::id().wrapping_mul(61) + NEXT.fetch_add(1, Ordering::Relaxed);
        let port = u16::try_from(FIRST + at % COUNT).unwrap_or_default();
        if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            return port;
        }
    }
}
