//! Tests of `body_decoder`.
