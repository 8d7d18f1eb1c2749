//! libFuzzer's entry to `fuzz::esi_text`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::esi_text::run(data));
