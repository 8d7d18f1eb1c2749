//! libFuzzer's entry to `fuzz::accept_encoding`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::accept_encoding::run(data));
