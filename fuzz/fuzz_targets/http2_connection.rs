//! libFuzzer's entry to `fuzz::http2_connection`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::http2_connection::run(data));
