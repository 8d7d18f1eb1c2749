//! By what a dictionary is known: two origins may have the same text.

use rules::DictionaryHash;

use crate::key::Key;

/// The hash of the text, and the digest of the origin.
pub(crate) type TextName = (DictionaryHash, Key);
