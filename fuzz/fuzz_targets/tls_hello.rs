//! libFuzzer's entry to `fuzz::tls_hello`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::tls_hello::run(data));
