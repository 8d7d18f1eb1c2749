//! libFuzzer's entry to `fuzz::cache_control`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::cache_control::run(data));
