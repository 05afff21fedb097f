#![no_main]

#[allow(dead_code, reason = "each target calls one of them")]
#[path = "../../src/fuzz_targets.rs"]
mod fuzz_targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_targets::photo(bytes));
