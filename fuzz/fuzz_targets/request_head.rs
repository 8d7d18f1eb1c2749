//! libFuzzer's entry to `fuzz::request_head`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::request_head::run(data));
