//! The program that fuzzes: libFuzzer has the main function and reads the arguments, and `STARBRIDGE_FUZZ` names the target.
#![no_main]

use starbridge_fuzz::fuzzing::{TARGETS, Target};
use std::sync::LazyLock;

/// The target that is asked for.
static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("STARBRIDGE_FUZZ").unwrap_or_default();
    let found = TARGETS.iter().find(|(known, _)| *known == name);
    *found.unwrap_or_else(|| panic!("STARBRIDGE_FUZZ names no target: `{name}`"))
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| (TARGET.1)(data));
