//! libFuzzer's entry to `fuzz::response_head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::response_head::run(data));
