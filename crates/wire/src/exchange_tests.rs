//! Tests of `exchange`.
