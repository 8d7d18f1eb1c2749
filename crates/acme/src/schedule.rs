//! When a certificate is renewed, and when it is tried again. Pure: the time and the dice are arguments.

use std::time::Duration;

use tls::Validity;

use crate::limits::{PAUSE_MAX, RETRY_AFTER_MAX_S};

/// When an authority wants a certificate renewed (RFC 9773 §4.2), in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Window {
    pub start_s: u64,
    pub end_s: u64,
}

/// The moment at which a certificate is renewed, for `luck` in 0..1.
pub fn renew_at_s(validity: Validity, window: Option<Window>, luck: f64) -> u64 {
    let life_s = validity.until_s.saturating_sub(validity.from_s);
    let wanted_s = match window {
        // RFC 9773 §4.2: a moment of the window, all alike.
        Some(Window { start_s, end_s }) => start_s + share(end_s.saturating_sub(start_s), luck),
        // Else after two thirds of its life, and not at the moment at which everybody else does.
        None => validity.from_s + share(life_s, 2.0 / 3.0 + luck / 24.0),
    };
    // A window that ends with the certificate leaves no time for a second try.
    wanted_s.min(validity.until_s.saturating_sub(life_s / 6))
}

/// How long nothing is tried after so many failures in a row: twice as long with each, and not by the clock.
pub fn pause(first: Duration, failures: u32, luck: f64) -> Duration {
    let doubled = 2u32.saturating_pow(failures.saturating_sub(1));
    let longest = first.max(PAUSE_MAX);
    first.saturating_mul(doubled).min(longest).mul_f64(0.75 + luck / 2.0)
}

/// When it is tried again after a failure at `now_s`: what the authority asks for counts, within reason.
pub fn try_again_s(now_s: u64, pause: Duration, not_before_s: Option<u64>) -> u64 {
    let own_s = now_s + pause.as_secs().max(1);
    not_before_s.map_or(own_s, |theirs_s| own_s.max(theirs_s.min(now_s + RETRY_AFTER_MAX_S)))
}

fn share(whole_s: u64, part: f64) -> u64 {
    (whole_s as f64 * part) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: u64 = 86_400;
    const LUCK: [f64; 3] = [0.0, 0.5, 0.999_999];

    #[test]
    fn without_a_word_of_the_authority_it_is_renewed_at_two_thirds() {
        for days in [6, 47, 90, 398] {
            let validity = Validity { from_s: 1_000, until_s: 1_000 + days * DAY_S };
            for luck in LUCK {
                let after_s = renew_at_s(validity, None, luck) - 1_000;
                let part = after_s as f64 / (days * DAY_S) as f64;
                assert!((0.666..0.7085).contains(&part), "{days} days, {luck}: {part}");
            }
            let [early, _, late] = LUCK.map(|luck| renew_at_s(validity, None, luck));
            assert!(late - early > days * DAY_S / 25, "not everybody at one moment");
        }
    }

    #[test]
    fn what_the_authority_suggests_counts_as_long_as_a_second_try_fits_in() {
        let validity = Validity { from_s: 0, until_s: 90 * DAY_S };
        let at =
            |start, end, luck| renew_at_s(validity, Some(Window { start_s: start * DAY_S, end_s: end * DAY_S }), luck);
        assert_eq!(LUCK.map(|luck| at(60, 62, luck) / DAY_S), [60, 61, 61]);
        assert_eq!(at(1, 2, 0.0), DAY_S, "at once, after a mistake of theirs");
        assert_eq!(at(89, 90, 0.5), 75 * DAY_S);
        assert_eq!(at(62, 60, 0.5), 62 * DAY_S, "a window that ends before it begins is a moment");
    }

    #[test]
    fn pauses_double_up_to_a_bound_and_never_vanish() {
        let first = Duration::from_secs(300);
        let minutes = |failures| pause(first, failures, 0.5).as_secs() / 60;
        assert_eq!([1, 2, 3, 4, 5, 6, 7, 8, 40].map(minutes), [5, 10, 20, 40, 80, 160, 320, 360, 360]);
        assert_eq!(LUCK.map(|luck| pause(first, 1, luck).as_secs()), [225, 300, 374]);
        assert_eq!(try_again_s(1_000, Duration::ZERO, None), 1_001);
    }

    #[test]
    fn an_authority_may_put_us_off_and_not_for_ever() {
        let pause = Duration::from_secs(300);
        assert_eq!(try_again_s(1_000, pause, Some(5_000)), 5_000);
        assert_eq!(try_again_s(1_000, pause, Some(1_001)), 1_300, "sooner than we would is later still");
        assert_eq!(try_again_s(1_000, pause, Some(u64::MAX)), 1_000 + RETRY_AFTER_MAX_S);
    }
}
