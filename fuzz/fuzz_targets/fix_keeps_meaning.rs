#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| starbridge_fuzz::fuzzing::fix_keeps_meaning(data));
