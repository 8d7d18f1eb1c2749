//! What freshness goes by, as an object keeps it and a disk too: numbers, with a value that is none where there may be none,
//! and four flags in the highest bits of an age that needs far fewer.

use rules::Facts;

/// [`Facts`] in 48 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptFacts {
    flags_and_age_ms: u64,
    lifetime_ms: u64,
    stale_while_revalidate_ms: u64,
    /// `NONE_MS`: the origin did not say.
    stale_if_error_ms: u64,
    /// `NONE_DATE`: there is none.
    last_modified: i64,
    date: i64,
}

const NONE_MS: u64 = u64::MAX;
const NONE_DATE: i64 = i64::MIN;
/// 36 million years.
const AGE_BITS: u32 = 60;
const AGE_MS_MAX: u64 = (1 << AGE_BITS) - 1;

impl KeptFacts {
    #[inline]
    pub fn of(facts: &Facts) -> KeptFacts {
        let flags = [facts.must_revalidate, facts.always_validate, facts.explicit, facts.immutable];
        let flags = flags.iter().enumerate().fold(0, |bits, (bit, &is_set)| bits | u64::from(is_set) << bit);
        KeptFacts {
            flags_and_age_ms: flags << AGE_BITS | facts.initial_age_ms.min(AGE_MS_MAX),
            lifetime_ms: facts.lifetime_ms,
            stale_while_revalidate_ms: facts.stale_while_revalidate_ms,
            stale_if_error_ms: facts.stale_if_error_ms.unwrap_or(NONE_MS),
            last_modified: facts.last_modified.unwrap_or(NONE_DATE),
            date: facts.date,
        }
    }

    #[inline]
    pub fn facts(&self) -> Facts {
        let is_set = |bit: u32| self.flags_and_age_ms >> (AGE_BITS + bit) & 1 == 1;
        Facts {
            initial_age_ms: self.flags_and_age_ms & AGE_MS_MAX,
            lifetime_ms: self.lifetime_ms,
            stale_while_revalidate_ms: self.stale_while_revalidate_ms,
            stale_if_error_ms: Some(self.stale_if_error_ms).filter(|&ms| ms != NONE_MS),
            last_modified: Some(self.last_modified).filter(|&date| date != NONE_DATE),
            date: self.date,
            must_revalidate: is_set(0),
            always_validate: is_set(1),
            explicit: is_set(2),
            immutable: is_set(3),
        }
    }

    /// For a disk: ages and spans, dates, and the flags.
    pub fn as_stored(&self) -> ([u64; 6], u8) {
        let numbers = [
            self.flags_and_age_ms & AGE_MS_MAX,
            self.lifetime_ms,
            self.stale_while_revalidate_ms,
            self.stale_if_error_ms,
            self.last_modified as u64,
            self.date as u64,
        ];
        (numbers, (self.flags_and_age_ms >> AGE_BITS) as u8)
    }

    /// The same read back; none for flags that nobody wrote.
    pub fn from_stored([age, lifetime, revalidate, error, modified, date]: [u64; 6], flags: u8) -> Option<KeptFacts> {
        (flags < 1 << (u64::BITS - AGE_BITS)).then_some(KeptFacts {
            flags_and_age_ms: u64::from(flags) << AGE_BITS | age.min(AGE_MS_MAX),
            lifetime_ms: lifetime,
            stale_while_revalidate_ms: revalidate,
            stale_if_error_ms: error,
            last_modified: modified as i64,
            date: date as i64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(facts: Facts) {
        let kept = KeptFacts::of(&facts);
        assert_eq!(kept.facts(), facts);
        let (numbers, flags) = kept.as_stored();
        assert_eq!(KeptFacts::from_stored(numbers, flags), Some(kept));
        assert_eq!(KeptFacts::from_stored(numbers, 16), None);
    }

    #[test]
    fn facts_come_back_as_they_were() {
        check(Facts::default());
        let facts = Facts { initial_age_ms: AGE_MS_MAX, lifetime_ms: 7, date: -1, ..Facts::default() };
        check(Facts { must_revalidate: true, last_modified: Some(-4), stale_if_error_ms: Some(0), ..facts });
        check(Facts { always_validate: true, stale_while_revalidate_ms: 9, last_modified: Some(0), ..facts });
        check(Facts { explicit: true, stale_if_error_ms: Some(u64::MAX - 1), ..facts });
        check(Facts { immutable: true, ..facts });
        assert_eq!(KeptFacts::of(&Facts { initial_age_ms: u64::MAX, ..facts }).facts(), facts);
    }
}
