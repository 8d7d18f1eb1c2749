//! Group S
