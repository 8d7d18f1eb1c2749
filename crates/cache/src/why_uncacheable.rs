//! Why the responses of a key are known not to be storable: noted beside that they are, for who asks why nothing is stored.

use rules::WhyNotStored;

/// What the last response of a key was that could not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyUncacheable {
    /// RFC 9111 or an operator forbids it.
    Rules(WhyNotStored),
    /// Its body is larger than one that is kept.
    TooLarge,
}
