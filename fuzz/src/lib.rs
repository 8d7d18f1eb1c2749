//! What the fuzz targets assert: one function of bytes each, which panics when a law is broken.
//!
//! A target in `fuzz_targets/` hands it what libFuzzer makes up; a plain test in the crate under test hands it the files
//! of `corpus/`. Nothing here knows which.

pub mod accept_encoding;
pub mod cache_control;
pub mod chunked;
pub mod codings;
pub mod esi_text;
pub mod fastcgi_answer;
pub mod hpack_vs_h2;
pub mod http2_connection;
pub mod http2_frames;
pub mod range;
pub mod request_head;
pub mod request_vs_hyper;
pub mod response_head;
pub mod tls_hello;
pub mod vcl_program;
pub mod vcl_text;
