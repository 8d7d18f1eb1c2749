//! Tests of `response_head`.
