//! libFuzzer's entry to `fuzz::vcl_program`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    fuzz::vcl_program::run(data);
});
