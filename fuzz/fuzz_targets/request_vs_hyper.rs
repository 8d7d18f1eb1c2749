//! libFuzzer's entry to `fuzz::request_vs_hyper`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::request_vs_hyper::run(data));
