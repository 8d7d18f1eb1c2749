//! libFuzzer's entry to `fuzz::fastcgi_answer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::fastcgi_answer::run(data));
