//! How long a notice waits after it could not be told.

/// The first delay, in milliseconds.
const FIRST: u64 = 1_000;
const LONGEST: u64 = 600_000;

/// Milliseconds to wait after so many failures: a second, twice as long each time, at most ten minutes; up to a fifth of it
/// taken off, by a chance that is the notice's own: what failed together does not come back together.
pub(super) fn delay(id: &str, failures: u32) -> u64 {
    let doubled = 1_u64.checked_shl(failures.saturating_sub(1)).unwrap_or(u64::MAX);
    let whole = FIRST.saturating_mul(doubled).min(LONGEST);
    let off = chance(id, failures) % (whole / 5);
    whole - off
}

/// FNV-1a: the same for one notice and try, spread over others.
fn chance(id: &str, failures: u32) -> u64 {
    let bytes = id.bytes().chain(failures.to_be_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn delays_double_up_to_ten_minutes() {
        for (failures, whole) in [
            (1, 1_000),
            (2, 2_000),
            (5, 16_000),
            (10, 512_000),
            (11, 600_000),
            (u32::MAX, 600_000),
        ] {
            let delays: BTreeSet<u64> = (0..200).map(|id| delay(&format!("e/{id}"), failures)).collect();
            let (first, last) = (*delays.first().unwrap(), *delays.last().unwrap());
            assert!(first >= whole / 5 * 4 && last <= whole, "{failures}: {first} to {last}");
            assert!(last - first > whole / 10 && delays.len() > 50, "they are not spread");
        }
    }
}
