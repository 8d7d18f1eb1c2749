//! What was found out about credentials a moment ago, by a keyed digest of them: so that not every request costs a bcrypt,
//! and the memory of this process holds no password.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;
use siphasher::sip128::SipHasher24;

use crate::clock::Moment;
use crate::forward::passwords::Known;
use crate::limits::KNOWN_CREDENTIALS_MAX;

/// What was right is asked again after so long.
const RIGHT_MS: u64 = 300_000;
/// What was wrong too: somebody who is mistaken all the time costs a bcrypt now and then.
const WRONG_MS: u64 = 30_000;

/// One for all cores.
pub(crate) struct KnownCredentials {
    key: (u64, u64),
    began: Moment,
    tables: Mutex<Tables>,
}

/// Right ones are at most as many as there are users, so that no flood of wrong ones can push them out.
#[derive(Default)]
struct Tables {
    right: HashMap<u128, u64>,
    wrong: HashMap<u128, u64>,
}

impl Default for KnownCredentials {
    fn default() -> KnownCredentials {
        // What std seeds its tables with comes from the system's randomness.
        let random = || RandomState::new().hash_one("credentials");
        KnownCredentials { key: (random(), random()), began: Moment::now(), tables: Mutex::default() }
    }
}

impl KnownCredentials {
    pub(crate) fn look_up(&self, credentials: &[u8], now: Moment) -> Known {
        let (digest, now_ms) = (self.digest(credentials), self.ms(now));
        let tables = self.tables.lock();
        let holds = |table: &HashMap<u128, u64>| table.get(&digest).is_some_and(|&until_ms| now_ms < until_ms);
        match (holds(&tables.right), holds(&tables.wrong)) {
            (true, _) => Known::Right,
            (false, true) => Known::Wrong,
            (false, false) => Known::Nothing,
        }
    }

    pub(crate) fn note(&self, credentials: &[u8], is_right: bool, now: Moment) {
        let (digest, now_ms) = (self.digest(credentials), self.ms(now));
        let mut tables = self.tables.lock();
        let (table, life_ms) = match is_right {
            true => (&mut tables.right, RIGHT_MS),
            false => (&mut tables.wrong, WRONG_MS),
        };
        if table.len() >= KNOWN_CREDENTIALS_MAX {
            table.retain(|_, until_ms| now_ms < *until_ms);
        }
        if table.len() >= KNOWN_CREDENTIALS_MAX {
            table.clear();
        }
        table.insert(digest, now_ms + life_ms);
    }

    pub(crate) fn forget(&self) {
        *self.tables.lock() = Tables::default();
    }

    /// Two that are alike in it are alike, for anybody who does not know the key; and who compares digests by their bytes
    /// learns nothing of what they are of.
    fn digest(&self, credentials: &[u8]) -> u128 {
        SipHasher24::new_with_keys(self.key.0, self.key.1).hash(credentials).as_u128()
    }

    fn ms(&self, now: Moment) -> u64 {
        self.began.micros_until(now) / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(known: &KnownCredentials, credentials: &str, expect: Known) {
        assert_eq!(known.look_up(credentials.as_bytes(), Moment::now()), expect, "{credentials}");
    }

    #[test]
    fn what_was_found_out_is_known_until_it_is_forgotten() {
        let known = KnownCredentials::default();
        check(&known, "a", Known::Nothing);
        known.note(b"a", true, Moment::now());
        known.note(b"b", false, Moment::now());
        check(&known, "a", Known::Right);
        check(&known, "b", Known::Wrong);
        check(&known, "A", Known::Nothing);
        known.forget();
        check(&known, "a", Known::Nothing);
        check(&known, "b", Known::Nothing);
    }

    #[test]
    fn a_flood_of_wrong_ones_is_bounded_and_pushes_no_right_one_out() {
        let known = KnownCredentials::default();
        known.note(b"right", true, Moment::now());
        for n in 0..=KNOWN_CREDENTIALS_MAX {
            known.note(n.to_string().as_bytes(), false, Moment::now());
        }
        assert_eq!(known.tables.lock().wrong.len(), 1);
        check(&known, "right", Known::Right);
    }
}
