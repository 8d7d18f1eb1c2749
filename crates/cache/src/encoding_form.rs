//! What a disk keeps of an encoding beside its body: of what it is an encoding, and of which version of that.
//!
//! ```text
//! version u8: 7 · key u128 · variant u64 · sequence u64 · coding: its length before it as u32
//! ```
//!
//! No head: it follows from that of the primary, which may have got another one since. The sequence is that of the record with the primary's body, which no
//! other body of this store ever has: an encoding whose primary was replaced names one that is not there any more.

use bytes::Bytes;
use rules::ContentCoding;

use crate::form_fields::{FormReader, FormWriter};
use crate::key::{Key, Variant};

/// Behind those of `stored_form`.
const ENCODING_VERSION: u8 = 7;

/// What an encoding is made of, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EncodingForm {
    pub key: Key,
    pub variant: Variant,
    /// Of the primary's body.
    pub sequence: u64,
    pub coding: ContentCoding,
}

impl EncodingForm {
    pub fn write(&self) -> Bytes {
        let mut out = FormWriter(vec![ENCODING_VERSION]);
        out.0.extend_from_slice(&self.key.0.to_le_bytes());
        out.numbers([self.variant.0, self.sequence]);
        out.text(self.coding.name().as_bytes());
        Bytes::from(out.0)
    }

    /// `None`: it is no encoding, or what no larder wrote.
    pub fn read(bytes: &[u8]) -> Option<EncodingForm> {
        let mut from = FormReader(bytes);
        if from.bytes()? != [ENCODING_VERSION] {
            return None;
        }
        let key = Key(u128::from_le_bytes(from.bytes()?));
        let (variant, sequence) = (Variant(from.number()?), from.number()?);
        let coding = ContentCoding::named(from.text()??)?;
        from.0.is_empty().then_some(EncodingForm { key, variant, sequence, coding })
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_says_what_it_is_of() {
        let form = EncodingForm {
            key: Key(3 << 100 | 5),
            variant: Variant(9 << 40),
            sequence: 77,
            coding: ContentCoding::Brotli,
        };
        let written = form.write();
        assert_eq!(EncodingForm::read(&written), Some(form));
        for length in 0..written.len() {
            assert_eq!(EncodingForm::read(&written[..length]), None, "{length}");
        }
        let mut other = written.to_vec();
        other[0] = 3;
        assert_eq!(EncodingForm::read(&other), None);
    }
}
