//! When a step is tried again: retry and its back-off, from `intervalSeconds`, `multiplier` and
//! `maxIntervalSeconds` (section "errors").

use crate::state::FrameId;
use starbridge_flow::graph::{BackoffKind, Retry};
use starbridge_flow::time::Millis;

/// The delay before the `k`-th retry of a policy (from 1), rounded up. `chance` is uniform in [0,1].
pub(crate) fn delay(policy: &Retry, k: u32, chance: f64) -> Millis {
    let k_real = f64::from(k);
    let grown = match policy.backoff {
        BackoffKind::Fixed => policy.interval.0 as f64,
        BackoffKind::Exponential => {
            policy.interval.0 as f64 * policy.multiplier.powi(i32::try_from(k - 1).unwrap_or(i32::MAX))
        }
        BackoffKind::Polynomial => (k_real.powi(4) + 15.0 + chance * 30.0 * (k_real + 1.0)) * 1000.0,
    };
    let capped = grown.min(policy.max_interval.0 as f64);
    let jitter = match policy.backoff {
        BackoffKind::Polynomial => again(chance),
        BackoffKind::Exponential | BackoffKind::Fixed => chance,
    };
    ceil_millis(capped * (1.0 - policy.jitter * jitter))
}

/// The pause before call `k + 1` of a poll, rounded up.
pub(crate) fn pause(interval: Millis, max_interval: Millis, multiplier: f64, k: u32) -> Millis {
    let grown = interval.0 as f64 * multiplier.powi(i32::try_from(k.saturating_sub(1)).unwrap_or(i32::MAX));
    ceil_millis(grown.min(max_interval.0 as f64))
}

/// Rounds up to a whole millisecond. What only the binary form of a decimal fraction adds does not count: 1.1³ s is
/// 1,331 ms.
fn ceil_millis(millis: f64) -> Millis {
    const NOISE: f64 = 1e-6;
    Millis((millis - NOISE).ceil().max(0.0) as u64)
}

/// A number in [0,1) that depends only on the execution's seed, the event it is for, and the frame.
pub(crate) fn chance(seed: u64, event: u64, frame: FrameId) -> f64 {
    let bits = mix(mix(seed ^ mix(event)) ^ frame.0);
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// Makes a second number in [0,1) from a first one.
fn again(chance: f64) -> f64 {
    (mix(chance.to_bits()) >> 11) as f64 / (1u64 << 53) as f64
}

/// SplitMix64's finalizer (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
