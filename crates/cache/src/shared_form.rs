//! What stands before a body in the shared tier: who fetched it, at which place in the log, and the stored form that a disk has, too. Or,
//! where a response varies, by which fields: then it lies under the name of its variant.
//!
//! ```text
//! version u8 · kind u8
//! kind 1, a response: epoch u64 · position u64 · run u64 · began u64 · then the stored form to the end
//! kind 2, fields: Vary's names to the end
//! ```
//!
//! Whether some node of this fleet wrote it is the tier's to know; still nothing in it is trusted, and whatever does not add up is no record.

use bytes::Bytes;
use rules::VarySpec;

use crate::form_fields::{FormReader, FormWriter};
use crate::log_marks::PlaceInLog;
use crate::stored_form::vary_of;

const RECORD_VERSION: u8 = 1;
const RESPONSE: u8 = 1;
const FIELDS: u8 = 2;
const BEFORE_FORM: usize = 2 + 4 * 8;

/// Who fetched a response, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fetched {
    pub at: PlaceInLog,
    /// The process.
    pub run: u64,
    /// The number of its own invalidation sequence.
    pub began: u64,
}

#[derive(Debug, PartialEq)]
pub(crate) enum SharedForm {
    Response(Fetched, Bytes),
    /// It lies elsewhere, by what a request says in these fields.
    Fields(VarySpec),
}

pub(crate) fn write_response(fetched: Fetched, form: &[u8]) -> Bytes {
    let Fetched { at, run, began } = fetched;
    let mut out = FormWriter(Vec::with_capacity(BEFORE_FORM + form.len()));
    out.0.extend_from_slice(&[RECORD_VERSION, RESPONSE]);
    out.numbers([at.epoch, at.position, run, began]);
    out.0.extend_from_slice(form);
    Bytes::from(out.0)
}

pub(crate) fn write_fields(vary: &VarySpec) -> Bytes {
    let names: Vec<&[u8]> = vary.names().collect();
    [&[RECORD_VERSION, FIELDS][..], &names.join(&b", "[..])].concat().into()
}

/// `None`: of another version, or what no larder wrote.
pub(crate) fn read(bytes: &Bytes) -> Option<SharedForm> {
    let mut from = FormReader(bytes);
    match from.bytes()? {
        [RECORD_VERSION, RESPONSE] => {
            let at = PlaceInLog { epoch: from.number()?, position: from.number()? };
            let (run, began) = (from.number()?, from.number()?);
            Some(SharedForm::Response(Fetched { at, run, began }, bytes.slice(BEFORE_FORM..)))
        }
        [RECORD_VERSION, FIELDS] => vary_of(from.0).map(SharedForm::Fields),
        _ => None,
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    const FETCHED: Fetched = Fetched { at: PlaceInLog { epoch: 1 << 60, position: 2 }, run: 3, began: 4 };

    #[test]
    fn what_is_written_is_read_and_nothing_shorter_or_of_another_kind() {
        let written = write_response(FETCHED, b"a form");
        assert_eq!(read(&written), Some(SharedForm::Response(FETCHED, Bytes::from_static(b"a form"))));
        for length in 0..BEFORE_FORM {
            assert_eq!(read(&written.slice(..length)), None, "{length}");
        }
        for (at, byte) in [(0, 2), (1, 0), (1, 3)] {
            let mut other = written.to_vec();
            other[at] = byte;
            assert_eq!(read(&Bytes::from(other)), None);
        }
    }

    #[test]
    fn fields_are_those_of_vary() {
        let vary = vary_of(b"accept-language, x-kind").unwrap();
        assert_eq!(read(&write_fields(&vary)), Some(SharedForm::Fields(vary)));
        for none in [&b"\x01\x02"[..], b"\x01\x02*"] {
            assert_eq!(read(&Bytes::copy_from_slice(none)), None, "{none:?}");
        }
    }
}
