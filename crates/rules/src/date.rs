//! HTTP-date (RFC 9110 §5.6.7): the three forms read strictly, the preferred one written.
//!
//! The grammar is exact, but letters are compared without case, because RFC 9111 §4.2 asks that of a cache.
//! Everything else that is not a date by the letter is no date at all: an Expires that cannot be read means
//! "already expired". A weekday that does not fit the day is not looked at.

use crate::limits::RFC850_YEARS_AHEAD_MAX;

/// Seconds since 1970; `now_s` decides only which century the obsolete form's two-digit year belongs to.
pub fn parse_date(text: &[u8], now_s: i64) -> Option<i64> {
    match text.len() {
        29 => imf_fixdate(text),
        24 => asctime(text),
        _ => rfc850(text, now_s),
    }
}

/// The length of the preferred form.
pub const DATE_BYTES: usize = 29;

/// `Sun, 06 Nov 1994 08:49:37 GMT`. Times outside the years 0 to 9999 are written as the nearest one inside.
pub fn write_date(unix_s: i64) -> [u8; DATE_BYTES] {
    let unix_s = unix_s.clamp(YEAR_0_S, YEAR_10000_S - 1);
    let (days, second) = (unix_s.div_euclid(DAY_S), unix_s.rem_euclid(DAY_S));
    let (year, month, day) = civil_from_days(days);
    let mut out = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    // 1970-01-01 was a Thursday.
    let weekday = (days + 4).rem_euclid(7) as usize;
    out[0..3].copy_from_slice(&WEEKDAYS[weekday].as_bytes()[..3]);
    out[8..11].copy_from_slice(MONTHS[month as usize - 1]);
    two_digits(&mut out[5..7], day);
    two_digits(&mut out[12..14], year / 100);
    two_digits(&mut out[14..16], year % 100);
    two_digits(&mut out[17..19], second / 3600);
    two_digits(&mut out[20..22], second / 60 % 60);
    two_digits(&mut out[23..25], second % 60);
    out
}

const DAY_S: i64 = 86_400;
const YEAR_0_S: i64 = days_from_civil(0, 1, 1) * DAY_S;
const YEAR_10000_S: i64 = days_from_civil(10_000, 1, 1) * DAY_S;
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(text: &[u8]) -> Option<i64> {
    let weekday_ok = short_weekday(&text[..3]);
    let marks_ok = &text[3..5] == b", " && text[7] == b' ' && text[11] == b' ' && text[16] == b' ';
    if !weekday_ok || !marks_ok || !zone(&text[25..]) {
        return None;
    }
    unix(number(&text[12..16])?, month(&text[8..11])?, number(&text[5..7])?, time_of_day(&text[17..25])?)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850(text: &[u8], now_s: i64) -> Option<i64> {
    let comma = text.iter().position(|&b| b == b',')?;
    let (weekday, rest) = text.split_at(comma);
    if !WEEKDAYS.iter().any(|name| name.as_bytes().eq_ignore_ascii_case(weekday)) || rest.len() != 24 {
        return None;
    }
    if &rest[..2] != b", " || rest[4] != b'-' || rest[8] != b'-' || rest[11] != b' ' || !zone(&rest[20..]) {
        return None;
    }
    let (now_year, _, _) = civil_from_days(now_s.div_euclid(DAY_S));
    let mut year = now_year.div_euclid(100) * 100 + number(&rest[9..11])?;
    let (month, day, second) = (month(&rest[5..8])?, number(&rest[2..4])?, time_of_day(&rest[12..20])?);
    // RFC 9110 §5.6.7: what seems more than 50 years ahead is the most recent past year with the same two digits;
    // and close to a turn of the century the next one may be the year that is meant.
    if year > now_year + RFC850_YEARS_AHEAD_MAX {
        year -= 100;
    } else if year + 100 <= now_year + RFC850_YEARS_AHEAD_MAX {
        year += 100;
    }
    unix(year, month, day, second)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime(text: &[u8]) -> Option<i64> {
    if !short_weekday(&text[..3]) || text[3] != b' ' || text[7] != b' ' || text[10] != b' ' || text[19] != b' ' {
        return None;
    }
    let day = if text[8] == b' ' { number(&text[9..10])? } else { number(&text[8..10])? };
    unix(number(&text[20..24])?, month(&text[4..7])?, day, time_of_day(&text[11..19])?)
}

fn short_weekday(text: &[u8]) -> bool {
    WEEKDAYS.iter().any(|name| name.as_bytes()[..3].eq_ignore_ascii_case(text))
}

/// RFC 9110 §5.6.7: the zone is GMT. RFC 9111 §4.2 would forgive UTC; the grammar does not, and nor do we.
fn zone(text: &[u8]) -> bool {
    text.eq_ignore_ascii_case(b" GMT")
}

fn month(text: &[u8]) -> Option<i64> {
    let at = MONTHS.iter().position(|name| name.eq_ignore_ascii_case(text))?;
    Some(at as i64 + 1)
}

/// `08:49:37` as seconds of the day. A leap second counts as the one before it: RFC 9111 §4.2 rounds down.
fn time_of_day(text: &[u8]) -> Option<i64> {
    let (hour, minute, second) = (number(&text[..2])?, number(&text[3..5])?, number(&text[6..8])?);
    let ok = text[2] == b':' && text[5] == b':' && hour < 24 && minute < 60 && second <= 60;
    ok.then_some(hour * 3600 + minute * 60 + second.min(59))
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |n, b| b.is_ascii_digit().then(|| n * 10 + i64::from(b - b'0')))
}

fn unix(year: i64, month: i64, day: i64, second: i64) -> Option<i64> {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = [31, 28 + i64::from(leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][month as usize - 1];
    (1..=days).contains(&day).then(|| days_from_civil(year, month, day) * DAY_S + second)
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar. The year is taken to begin in March, so that the
/// leap day is its last; 400 of them have 146,097 days, and 719,468 lie between 0000-03-01 and 1970-01-01.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// The inverse: year, month, day.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

fn two_digits(out: &mut [u8], value: i64) {
    out[0] = b'0' + (value / 10) as u8;
    out[1] = b'0' + (value % 10) as u8;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-01-01, where "now" matters.
    const NOW_S: i64 = 1_767_225_600;
    const EXAMPLE_S: i64 = 784_111_777;

    fn check(text: &str, expect: Option<i64>) {
        assert_eq!(parse_date(text.as_bytes(), NOW_S), expect, "{text:?}");
    }

    #[test]
    fn the_three_forms_are_one_time() {
        check("Sun, 06 Nov 1994 08:49:37 GMT", Some(EXAMPLE_S));
        check("Sunday, 06-Nov-94 08:49:37 GMT", Some(EXAMPLE_S));
        check("Sun Nov  6 08:49:37 1994", Some(EXAMPLE_S));
    }

    #[test]
    fn a_day_of_two_digits_is_read_in_all_forms() {
        let sixteenth = Some(EXAMPLE_S + 10 * DAY_S);
        check("Wed, 16 Nov 1994 08:49:37 GMT", sixteenth);
        check("Wednesday, 16-Nov-94 08:49:37 GMT", sixteenth);
        check("Wed Nov 16 08:49:37 1994", sixteenth);
    }

    #[test]
    fn no_character_of_a_date_may_be_another() {
        for form in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov 16 08:49:37 1994"] {
            for at in 0..form.len() {
                check(&format!("{}!{}", &form[..at], &form[at + 1..]), None);
            }
        }
    }

    /// RFC 9110 §5.6.7 names days of the calendar, which is Gregorian.
    #[test]
    fn every_month_has_its_last_day_and_none_after_it() {
        let day = |year: i64, month: usize, day: i64| {
            let name = str::from_utf8(MONTHS[month]).expect("letters");
            parse_date(format!("Mon, {day:02} {name} {year} 00:00:00 GMT").as_bytes(), 0)
        };
        let lasts = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
        for (month, last) in lasts.into_iter().enumerate() {
            assert!(day(2025, month, last).is_some() && day(2025, month, last + 1).is_none(), "{}", month + 1);
        }
        let leaps = [1999, 2000, 2024, 2100].map(|year| day(year, 1, 29).is_some());
        assert_eq!(leaps, [false, true, true, false]);
        assert_eq!(&write_date(day(2000, 1, 29).unwrap()), b"Tue, 29 Feb 2000 00:00:00 GMT");
    }

    /// RFC 9111 §4.2: "a cache recipient SHOULD match the field value case-insensitively".
    #[test]
    fn a_cache_reads_any_case() {
        check("SUN, 06 nov 1994 08:49:37 gMT", Some(EXAMPLE_S));
        check("sunday, 06-NOV-94 08:49:37 gmt", Some(EXAMPLE_S));
        check("Mon, 06 Nov 1994 08:49:37 GMT", Some(EXAMPLE_S));
    }

    /// RFC 9110 §5.6.7: more than 50 years in the future is the past.
    #[test]
    fn a_two_digit_year_is_the_nearest_one_that_is_not_far_ahead() {
        check("Thursday, 18-Aug-50 02:01:18 GMT", parse_date(b"Thu, 18 Aug 2050 02:01:18 GMT", 0));
        check("Friday, 18-Aug-76 02:01:18 GMT", parse_date(b"Fri, 18 Aug 2076 02:01:18 GMT", 0));
        check("Friday, 18-Aug-77 02:01:18 GMT", parse_date(b"Fri, 18 Aug 1977 02:01:18 GMT", 0));
        let near_2100 = parse_date(b"Fri, 01 Jan 2099 00:00:00 GMT", 0).unwrap();
        let five = parse_date(b"Monday, 05-Jan-05 00:00:00 GMT", near_2100);
        assert_eq!(five, parse_date(b"Mon, 05 Jan 2105 00:00:00 GMT", 0));
        let fifty_ahead = parse_date(b"Monday, 05-Jan-49 00:00:00 GMT", near_2100);
        assert_eq!(fifty_ahead, parse_date(b"Mon, 05 Jan 2149 00:00:00 GMT", 0));
        let not_so_far = parse_date(b"Monday, 05-Jan-50 00:00:00 GMT", near_2100);
        assert_eq!(not_so_far, parse_date(b"Mon, 05 Jan 2050 00:00:00 GMT", 0));
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "0",
            "-1",
            "784111777",
            "Sun, 06 Nov 94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08:49:37",
            "Sun, 06 Nov 1994 08:49:37 UTC",
            "Sun, 06 Nov 1994 08:49:37 AEST",
            "Sun, 06 Nov 1994 08:49:37 EST",
            "Sun, 06 Nov 1994 08:49:37 +00",
            "Sun 06 Nov 1994 08:49:37 GMT",
            "Sun, 06  Nov  1994 08:49:37 GMT",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "Sunday, 06-Nov-1994 08:49:37 GMT",
            "Sunday, 6-Nov-94 08:49:37 GMT",
            "Sun, 06 Nov 1994 08.49.37 GMT",
            "Sun, 06 Nov 1994 8:49:37 GMT",
            "Sun, 6 Nov 1994 08:49:37 GMT",
            "Sun, 31 Nov 1994 08:49:37 GMT",
            "Thu, 29 Feb 1900 08:49:37 GMT",
            "Sun, 00 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 06 Nov 1994 08:60:00 GMT",
            "Sun, 06 Nov 1994 08:49:61 GMT",
            "Sun, 06 Nov 99999 08:49:37 GMT",
            "S000 00 0000000000: 00000000000000000000000000000000000000000 c",
            "Sun, +6 Nov 1994 08:49:37 GMT",
            "\u{e9}un, 06 Nov 1994 08:49:37 GM",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_leap_second_is_the_second_before_it() {
        check("Sat, 31 Dec 2016 23:59:60 GMT", parse_date(b"Sat, 31 Dec 2016 23:59:59 GMT", 0));
    }

    /// Against an independent implementation, a prime stride through the years 1970 to 9999.
    #[test]
    fn what_is_written_is_what_others_read() {
        for n in 0..20_000i64 {
            let unix_s = n * 12_658_321;
            let text = write_date(unix_s);
            let theirs = std::time::UNIX_EPOCH + std::time::Duration::from_secs(unix_s as u64);
            assert_eq!(std::str::from_utf8(&text).unwrap(), httpdate::fmt_http_date(theirs));
            assert_eq!(parse_date(&text, 0), Some(unix_s));
        }
    }

    #[test]
    fn times_outside_the_four_digit_years_are_clamped() {
        assert_eq!(&write_date(i64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(&write_date(i64::MIN), b"Sat, 01 Jan 0000 00:00:00 GMT");
    }
}
