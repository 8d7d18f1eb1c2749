//! Which of the encodings of a response one is.

use message::Fields;
use rules::{ContentCoding, DeltaCoding, DictionaryHash, content_coding, delta_coding};

/// A coding; of what differs from a dictionary, also from which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EncodingName {
    Coding(ContentCoding),
    Delta(DeltaCoding, DictionaryHash),
}

impl From<ContentCoding> for EncodingName {
    fn from(coding: ContentCoding) -> EncodingName {
        EncodingName::Coding(coding)
    }
}

impl EncodingName {
    /// Makes of the fields of a representation those of this one.
    pub fn recode(self, fields: &mut Fields) {
        match self {
            EncodingName::Coding(coding) => content_coding::recode(fields, coding),
            EncodingName::Delta(coding, _) => delta_coding::recode_by_dictionary(fields, coding),
        }
    }
}
