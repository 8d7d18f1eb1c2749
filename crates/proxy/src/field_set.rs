//! Which known fields a head has: a set that is made in one pass, so that each question about one is a bit test.

use message::{FieldName, FieldsView};

/// Which known fields a head has, so that each question about one is a bit test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldSet(u128);

const _: () = assert!((FieldName::Other as u32) < 128);

impl FieldSet {
    #[inline]
    pub(crate) fn of(fields: FieldsView<'_>) -> FieldSet {
        FieldSet(fields.iter().fold(0, |seen, field| seen | 1 << field.name as u32))
    }

    #[inline]
    pub(crate) fn has(self, name: FieldName) -> bool {
        self.0 & 1 << name as u32 != 0
    }

    #[inline]
    pub(crate) fn has_any(self, names: FieldSet) -> bool {
        self.0 & names.0 != 0
    }

    pub(crate) const fn mask(names: &[FieldName]) -> FieldSet {
        let mut mask = 0;
        let mut at = 0;
        while at < names.len() {
            mask |= 1 << names[at] as u32;
            at += 1;
        }
        FieldSet(mask)
    }
}

/// Fields that make the answer to a hit anything but the whole stored response.
pub(crate) const CONDITIONAL: FieldSet = FieldSet::mask(&[
    FieldName::Range,
    FieldName::IfMatch,
    FieldName::IfNoneMatch,
    FieldName::IfModifiedSince,
    FieldName::IfUnmodifiedSince,
]);
