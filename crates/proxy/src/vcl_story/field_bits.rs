//! Which names a head has, as one bit each: most questions of a program are about names that are not there.
//!
//! A name that larder knows has a bit of its own. All others share what is left of the word by a small hash, so a bit
//! that is set says "perhaps" of them, and one that is not says "no".

use message::{FieldName, FieldsView};

/// The first of the bits that unknown names share.
const SHARED_FROM: u8 = FieldName::Other as u8;
const SHARED_COUNT: usize = 128 - SHARED_FROM as usize;

const _: () = assert!(SHARED_COUNT >= 32, "too few bits are left for names that are not known");

/// A field's name, known or not, as the lists of edits keep it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name<'a> {
    bit: u8,
    pub(crate) text: &'a [u8],
}

impl<'a> Name<'a> {
    #[inline]
    pub(crate) fn of(text: &'a [u8]) -> Name<'a> {
        Name::classified(FieldName::classify(text), text)
    }

    /// The name has been looked up already.
    #[inline]
    pub(crate) const fn classified(known: FieldName, text: &'a [u8]) -> Name<'a> {
        Name { bit: bit_of(known, text), text }
    }

    #[inline]
    pub(crate) const fn of_known(known: FieldName) -> Name<'static> {
        Name { bit: known as u8, text: known.canonical().as_bytes() }
    }

    /// Of the number that `number` gave for the same text.
    #[inline]
    pub(crate) fn numbered(number: u16, text: &'a [u8]) -> Name<'a> {
        Name { bit: number as u8, text }
    }

    pub(crate) fn number(self) -> u16 {
        u16::from(self.bit)
    }

    #[inline]
    pub(crate) fn known(self) -> FieldName {
        FieldName::by_number(u16::from(self.bit))
    }

    /// The same name, in whatever letters.
    #[inline]
    pub(crate) fn is(self, other: Name<'_>) -> bool {
        let is_same = || self.text == other.text || self.text.eq_ignore_ascii_case(other.text);
        self.bit == other.bit && (self.bit < SHARED_FROM || is_same())
    }
}

/// By the length and the letters at both ends, which tell most names apart.
#[inline]
const fn bit_of(known: FieldName, text: &[u8]) -> u8 {
    match (known, text) {
        (FieldName::Other, [first, .., last]) => {
            let mixed = text.len() * 5 + (*first | 0x20) as usize * 3 + (*last | 0x20) as usize * 7;
            SHARED_FROM + (mixed % SHARED_COUNT) as u8
        }
        (known, _) => known as u8,
    }
}

/// A set of names. Two words and not one twice as wide, which costs more to shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FieldBits([u64; 2]);

impl FieldBits {
    pub(crate) const NONE: FieldBits = FieldBits([0; 2]);

    #[inline]
    pub(crate) fn of(fields: FieldsView<'_>) -> FieldBits {
        let mut bits = FieldBits::NONE;
        fields.iter().for_each(|field| bits.set(bit_of(field.name, field.name_text)));
        bits
    }

    /// Of names that are known, so that here "perhaps" is "yes".
    pub(crate) const fn of_known(names: &[FieldName]) -> FieldBits {
        let (mut bits, mut at) = ([0; 2], 0);
        while at < names.len() {
            let bit = names[at] as u8;
            bits[(bit >> 6 & 1) as usize] |= 1 << (bit & 63);
            at += 1;
        }
        FieldBits(bits)
    }

    #[inline]
    pub(crate) const fn or(self, other: FieldBits) -> FieldBits {
        FieldBits([self.0[0] | other.0[0], self.0[1] | other.0[1]])
    }

    #[inline]
    fn set(&mut self, bit: u8) {
        self.0[usize::from(bit >> 6 & 1)] |= 1 << (bit & 63);
    }

    #[inline]
    pub(crate) fn with(mut self, name: Name<'_>) -> FieldBits {
        self.set(name.bit);
        self
    }

    /// Of a name that is known, so that "perhaps" is "yes".
    #[inline]
    pub(crate) fn has_known(self, name: FieldName) -> bool {
        let bit = name as u8;
        self.0[usize::from(bit >> 6 & 1)] >> (bit & 63) & 1 != 0
    }

    /// `false` is certain.
    #[inline]
    pub(crate) fn may_have(self, name: Name<'_>) -> bool {
        self.0[usize::from(name.bit >> 6 & 1)] >> (name.bit & 63) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use message::Fields;

    #[test]
    fn a_name_is_found_in_any_letters_and_numbered_as_it_is() {
        let mut fields = Fields::default();
        ["Host", "X-Drupal-Cache", "x"].iter().for_each(|name| fields.push_named(name.as_bytes(), b"1"));
        let bits = FieldBits::of(fields.view());
        for (name, is_there) in [("HOST", true), ("x-DRUPAL-cache", true), ("X", true), ("Via", false), ("x-y", false)]
        {
            let name = Name::of(name.as_bytes());
            assert_eq!(bits.may_have(name), is_there, "{name:?}");
            let again = Name::numbered(name.number(), name.text);
            assert!(again.is(name) && again.known() == name.known());
        }
        assert!(!Name::of(b"x-a").is(Name::of(b"x-b")) && Name::of_known(FieldName::Via).is(Name::of(b"VIA")));
    }
}
