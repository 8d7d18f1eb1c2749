//! libFuzzer's entry to `fuzz::hpack_vs_h2`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::hpack_vs_h2::run(data));
