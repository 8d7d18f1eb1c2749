//! Says of certificates that clients are shown when their end is near, whoever renews them: once a day.

use std::collections::HashMap;
use std::time::{Duration, UNIX_EPOCH};

use tls::{Certificate, Validity};

use crate::limits::{EXPIRY_WARNING_S, SAID_AGAIN_S};

/// When each was last spoken of, by its names and its end.
#[derive(Debug, Default)]
pub struct ExpiryWatch(HashMap<(Vec<String>, u64), u64>);

impl ExpiryWatch {
    /// Sentences for the log; `now_s` is the time of day.
    pub fn look<'a>(&mut self, shown: impl Iterator<Item = &'a Certificate>, now_s: u64) -> Vec<String> {
        let shown = shown.map(|certificate| (certificate.names(), certificate.validity()));
        self.sentences(shown, now_s)
    }

    fn sentences<'a>(&mut self, shown: impl Iterator<Item = (&'a [String], Validity)>, now_s: u64) -> Vec<String> {
        // What was said long ago of one that is gone is forgotten; and what was said by a clock that has been set back since.
        self.0.retain(|_, said_at_s| *said_at_s <= now_s && now_s < *said_at_s + SAID_AGAIN_S);
        let mut sentences = Vec::new();
        for (names, validity) in shown.filter(|(_, validity)| is_near(*validity, now_s)) {
            let known = (names.to_vec(), validity.until_s);
            if self.0.contains_key(&known) {
                continue;
            }
            self.0.insert(known, now_s);
            let (names, date) = (names.join(", "), show_date(validity.until_s));
            sentences.push(match validity.until_s.checked_sub(now_s) {
                Some(left_s) => format!("the certificate for {names} ends in {} ({date})", show_left(left_s)),
                None => format!("the certificate for {names} has expired ({date}): clients do not trust it any more"),
            });
        }
        sentences
    }
}

/// Two weeks before, and for one that lives shorter than ten: in the last fifth of its life. Who renews has begun long before.
fn is_near(validity: Validity, now_s: u64) -> bool {
    let life_s = validity.until_s.saturating_sub(validity.from_s);
    now_s + EXPIRY_WARNING_S.min(life_s / 5) >= validity.until_s
}

fn show_left(left_s: u64) -> String {
    match left_s {
        0..7_200 => format!("{} minutes", left_s / 60),
        7_200..172_800 => format!("{} hours", left_s / 3_600),
        _ => format!("{} days", left_s / 86_400),
    }
}

/// A moment, in seconds since 1970.
pub fn show_date(at_s: u64) -> String {
    // Beyond the year 9999 there is no such text.
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(at_s.min(253_402_300_799)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: u64 = 86_400;

    #[test]
    fn the_end_is_said_once_a_day_from_two_weeks_before() {
        let mut watch = ExpiryWatch::default();
        let names = ["a.example".to_owned(), "b.example".to_owned()];
        let validity = Validity { from_s: 0, until_s: 90 * DAY_S };
        // Every two hours, as long as it is good and two days more.
        let said: Vec<(u64, String)> = (0..92 * 12)
            .flat_map(|look| {
                let now_s = look * 7_200;
                let sentences = watch.sentences([(&names[..], validity)].into_iter(), now_s);
                sentences.into_iter().map(move |sentence| (now_s / DAY_S, sentence))
            })
            .collect();
        let days: Vec<u64> = said.iter().map(|(day, _)| *day).collect();
        assert_eq!(days, (76..92).collect::<Vec<_>>());
        assert_eq!(
            said[0].1,
            "the certificate for a.example, b.example ends in 14 days (Wed, 01 Apr 1970 00:00:00 GMT)"
        );
        assert!(said[13].1.contains("ends in 24 hours"), "{}", said[13].1);
        assert!(said[15].1.contains("has expired (Wed, 01 Apr 1970"), "{}", said[15].1);
    }

    #[test]
    fn one_that_lives_some_days_is_near_its_end_in_the_last_fifth_and_a_new_one_is_not() {
        let mut watch = ExpiryWatch::default();
        let names = ["a.example".to_owned()];
        let mut said = |from_s, now_s| {
            let validity = Validity { from_s, until_s: from_s + 6 * DAY_S };
            watch.sentences([(&names[..], validity)].into_iter(), now_s).len()
        };
        assert_eq!((said(0, 4 * DAY_S), said(0, 5 * DAY_S), said(5 * DAY_S, 5 * DAY_S)), (0, 1, 0));
        // What was said while the clock went ahead is no reason to be silent once it has been set back.
        assert_eq!((said(7 * DAY_S, 900 * DAY_S), said(7 * DAY_S, 12 * DAY_S)), (1, 1));
        // A file that is as short is another one, and is said at once.
        assert_eq!(said(1, 5 * DAY_S + 3_600), 1);
    }
}
