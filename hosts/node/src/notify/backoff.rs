//! How long a notice waits after a failed delivery.

use starbridge_flow::fnv::fnv1a_64;
use starbridge_ports::Backoff;
use std::time::Duration;

const BACKOFF: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(600)).with_jitter(20);

/// The pause after this many failures. Its jitter is computed from the notice and the try, so it
/// differs between notices.
pub(super) fn delay(id: &str, failures: u32) -> Duration {
    let chance = fnv1a_64(id.bytes().chain(failures.to_be_bytes()));
    BACKOFF.pause_after(failures, chance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn backoff_doubles_up_to_ten_minutes() {
        for (failures, whole) in [
            (1, 1_000),
            (2, 2_000),
            (5, 16_000),
            (10, 512_000),
            (11, 600_000),
            (u32::MAX, 600_000),
        ] {
            let millis = |id: u32| delay(&format!("e/{id}"), failures).as_millis();
            let delays: BTreeSet<u128> = (0..200).map(millis).collect();
            let (first, last) = (*delays.first().unwrap(), *delays.last().unwrap());
            assert!(first >= whole / 5 * 4 && last <= whole, "{failures}: {first} to {last}");
            assert!(last - first > whole / 10 && delays.len() > 50, "they are not spread");
        }
    }
}
