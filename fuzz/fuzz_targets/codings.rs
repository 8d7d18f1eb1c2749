//! libFuzzer's entry to `fuzz::codings`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::codings::run(data));
