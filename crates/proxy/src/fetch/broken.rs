//! Why a fetch brought nothing.

use cache::Failure;
use wire::Refusal;

/// Why there is no reply.
pub(crate) enum Broken {
    Origin(Failure),
    ClientLeft,
    /// What the client sent as a body is none.
    ClientFault(Refusal),
}
