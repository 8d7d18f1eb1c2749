//! What a server said of a name.

use bytes::Bytes;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Looked {
    Value(Bytes),
    Nothing,
    /// Nothing, and who asked is the one to fetch it: by this token it gives that back.
    Right(u64),
    /// Nothing yet: somebody else fetches it.
    Taken,
}
