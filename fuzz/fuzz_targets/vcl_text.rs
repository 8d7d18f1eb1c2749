//! libFuzzer's entry to `fuzz::vcl_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::vcl_text::run(data));
