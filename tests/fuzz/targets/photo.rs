#![no_main]

#[allow(dead_code, reason = "each target calls one of them")]
#[path = "../../src/fuzzed.rs"]
mod fuzzed;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzed::photo(bytes));
