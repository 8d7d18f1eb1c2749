//! What modules remember for one transaction: the cookies that were parsed, the variables of vmod var.
//!
//! A client's request has one for all its scopes and restarts, a fetch has one of its own. Unused it is two empty cells
//! and allocates nothing.

/// The memory of one transaction.
#[derive(Debug, Default)]
pub struct Task {}
