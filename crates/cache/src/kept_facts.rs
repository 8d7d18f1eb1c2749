//! What freshness goes by, and what a program said beside it, as an object keeps it: numbers as small as nearly all of them are,
//! with a value that is none where there may be none. What does not fit the object keeps as it came. And the same as a disk has
//! it: numbers and flags.

use rules::Facts;

use crate::by_program::{ByProgram, MarkKind};

/// [`Facts`] and [`ByProgram`] in 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeptFacts {
    /// See `FLAGS_FROM`.
    flags_and_lifetime_ms: u64,
    initial_age_ms: u32,
    stale_while_revalidate_ms: u32,
    /// `NONE`: the origin did not say.
    stale_if_error_ms: u32,
    /// `NONE`: there is none.
    last_modified: u32,
    date: u32,
    keep_ms: u32,
}

const NONE: u32 = u32::MAX;
/// Four flags of the facts, two bits for what a program said (`POLICIES`), and one where all of this is kept elsewhere; the rest
/// is for lifetimes of four million years.
const FLAGS_FROM: u32 = 57;
const POLICY_FROM: u32 = 61;
const ELSEWHERE: u64 = 1 << 63;

impl KeptFacts {
    /// Of facts that do not fit.
    pub const KEPT_ELSEWHERE: KeptFacts = KeptFacts {
        flags_and_lifetime_ms: ELSEWHERE,
        initial_age_ms: 0,
        stale_while_revalidate_ms: 0,
        stale_if_error_ms: 0,
        last_modified: 0,
        date: 0,
        keep_ms: 0,
    };

    /// `None` if they do not fit.
    pub fn of(facts: &Facts, policy: Option<ByProgram>) -> Option<KeptFacts> {
        let policy_bits = match policy {
            None => 0,
            Some(ByProgram { mark: None, .. }) => 1,
            Some(ByProgram { mark: Some(MarkKind::Miss), .. }) => 2,
            Some(ByProgram { mark: Some(MarkKind::Pass), .. }) => 3,
        };
        let flags = flags_of(facts) << FLAGS_FROM | policy_bits << POLICY_FROM;
        let or_none = |number: Option<u64>| match number {
            None => Some(NONE),
            Some(number) => u32::try_from(number).ok().filter(|&number| number != NONE),
        };
        let last_modified = match facts.last_modified {
            None => None,
            Some(date) => Some(u64::try_from(date).ok()?),
        };
        Some(KeptFacts {
            flags_and_lifetime_ms: flags | Some(facts.lifetime_ms).filter(|ms| ms >> FLAGS_FROM == 0)?,
            initial_age_ms: u32::try_from(facts.initial_age_ms).ok()?,
            stale_while_revalidate_ms: u32::try_from(facts.stale_while_revalidate_ms).ok()?,
            stale_if_error_ms: or_none(facts.stale_if_error_ms)?,
            last_modified: or_none(last_modified)?,
            date: u32::try_from(facts.date).ok()?,
            keep_ms: u32::try_from(policy.map_or(0, |policy| policy.keep_ms)).ok()?,
        })
    }

    #[inline]
    pub fn are_elsewhere(&self) -> bool {
        self.flags_and_lifetime_ms & ELSEWHERE != 0
    }

    #[inline]
    pub fn facts(&self) -> Facts {
        let some = |number: u32| Some(number).filter(|&number| number != NONE);
        let facts = Facts {
            initial_age_ms: u64::from(self.initial_age_ms),
            lifetime_ms: self.flags_and_lifetime_ms & ((1 << FLAGS_FROM) - 1),
            stale_while_revalidate_ms: u64::from(self.stale_while_revalidate_ms),
            stale_if_error_ms: some(self.stale_if_error_ms).map(u64::from),
            last_modified: some(self.last_modified).map(i64::from),
            date: i64::from(self.date),
            ..Facts::default()
        };
        with_flags(facts, self.flags_and_lifetime_ms >> FLAGS_FROM)
    }

    #[inline]
    pub fn policy(&self) -> Option<ByProgram> {
        let mark = match self.flags_and_lifetime_ms >> POLICY_FROM & 3 {
            0 => return None,
            1 => None,
            2 => Some(MarkKind::Miss),
            _ => Some(MarkKind::Pass),
        };
        Some(ByProgram { keep_ms: u64::from(self.keep_ms), mark })
    }
}

fn flags_of(facts: &Facts) -> u64 {
    let flags = [facts.must_revalidate, facts.always_validate, facts.says_shared, facts.immutable];
    flags.iter().enumerate().fold(0, |bits, (bit, &is_set)| bits | u64::from(is_set) << bit)
}

#[inline]
fn with_flags(facts: Facts, flags: u64) -> Facts {
    let is_set = |bit: u32| flags >> bit & 1 == 1;
    let (must_revalidate, always_validate) = (is_set(0), is_set(1));
    Facts { must_revalidate, always_validate, says_shared: is_set(2), immutable: is_set(3), ..facts }
}

/// 36 million years; what a disk has of an age.
const STORED_AGE_MS_MAX: u64 = (1 << 60) - 1;
const STORED_NONE_MS: u64 = u64::MAX;
const STORED_NONE_DATE: i64 = i64::MIN;

/// For a disk: ages and spans, dates, and the flags.
pub(crate) fn as_stored(facts: &Facts) -> ([u64; 6], u8) {
    let numbers = [
        facts.initial_age_ms.min(STORED_AGE_MS_MAX),
        facts.lifetime_ms,
        facts.stale_while_revalidate_ms,
        facts.stale_if_error_ms.unwrap_or(STORED_NONE_MS),
        facts.last_modified.unwrap_or(STORED_NONE_DATE) as u64,
        facts.date as u64,
    ];
    (numbers, flags_of(facts) as u8)
}

/// The same read back; none for flags that nobody wrote.
pub(crate) fn from_stored([age, lifetime, revalidate, error, modified, date]: [u64; 6], flags: u8) -> Option<Facts> {
    let facts = Facts {
        initial_age_ms: age.min(STORED_AGE_MS_MAX),
        lifetime_ms: lifetime,
        stale_while_revalidate_ms: revalidate,
        stale_if_error_ms: Some(error).filter(|&ms| ms != STORED_NONE_MS),
        last_modified: Some(modified as i64).filter(|&date| date != STORED_NONE_DATE),
        date: date as i64,
        ..Facts::default()
    };
    (flags < 1 << 4).then(|| with_flags(facts, u64::from(flags)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(facts: Facts, policy: Option<ByProgram>, fits: bool) {
        let kept = KeptFacts::of(&facts, policy);
        assert_eq!(kept.is_some(), fits, "{facts:?}, {policy:?}");
        if let Some(kept) = kept {
            let said = |policy: Option<ByProgram>| policy.map(|policy| (policy.keep_ms, policy.mark));
            assert_eq!((kept.facts(), said(kept.policy())), (facts, said(policy)));
            assert!(!kept.are_elsewhere());
        }
        let (numbers, flags) = as_stored(&facts);
        let initial_age_ms = facts.initial_age_ms.min(STORED_AGE_MS_MAX);
        assert_eq!(from_stored(numbers, flags), Some(Facts { initial_age_ms, ..facts }));
        assert_eq!(from_stored(numbers, 16), None);
    }

    #[test]
    fn facts_come_back_as_they_were() {
        check(Facts::default(), None, true);
        let facts = Facts { initial_age_ms: 5, lifetime_ms: 7, date: 1_700_000_000, ..Facts::default() };
        check(Facts { must_revalidate: true, last_modified: Some(4), stale_if_error_ms: Some(0), ..facts }, None, true);
        check(
            Facts { always_validate: true, stale_while_revalidate_ms: 9, last_modified: Some(0), ..facts },
            None,
            true,
        );
        let last = u64::from(u32::MAX) - 1;
        check(Facts { says_shared: true, stale_if_error_ms: Some(last), ..facts }, None, true);
        check(Facts { immutable: true, lifetime_ms: (1 << 57) - 1, initial_age_ms: last + 1, ..facts }, None, true);
        for mark in [None, Some(MarkKind::Miss), Some(MarkKind::Pass)] {
            check(facts, Some(ByProgram { keep_ms: last + 1, mark }), true);
            check(facts, Some(ByProgram { keep_ms: last + 2, mark }), false);
        }
    }

    #[test]
    fn what_is_too_large_does_not_fit() {
        let facts = Facts { date: 5, ..Facts::default() };
        check(Facts { lifetime_ms: 1 << 57, ..facts }, None, false);
        check(Facts { initial_age_ms: u64::MAX, ..facts }, None, false);
        check(Facts { stale_while_revalidate_ms: 1 << 32, ..facts }, None, false);
        check(Facts { stale_if_error_ms: Some(u64::from(NONE)), ..facts }, None, false);
        check(Facts { last_modified: Some(-4), ..facts }, None, false);
        check(Facts { last_modified: Some(i64::from(NONE)), ..facts }, None, false);
        check(Facts { date: -1, ..facts }, None, false);
    }
}
