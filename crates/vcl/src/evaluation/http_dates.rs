//! Times as texts: HTTP's date, and what `std.time` reads. Seconds since 1970, without a time zone.

use crate::plain_values::Fault;

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
pub const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A moment in the calendar, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Calendar {
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    /// 0 is Sunday.
    pub weekday: u32,
    /// 0 is the first of January.
    pub day_of_year: u32,
}

impl Calendar {
    pub fn of(seconds: i64) -> Calendar {
        let (days, rest) = (seconds.div_euclid(86400), seconds.rem_euclid(86400) as u32);
        // Years begin in March here, so that the leap day is the last of one. 719468 days lie before 1970.
        let shifted = days + 719_468;
        let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
        let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146_096) / 365;
        let from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * from_march + 2) / 153;
        let day = (from_march - (153 * month_from_march + 2) / 5 + 1) as u32;
        let month = (if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 }) as u32;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        Calendar {
            year,
            month,
            day,
            hour: rest / 3600,
            minute: rest / 60 % 60,
            second: rest % 60,
            weekday: (days + 4).rem_euclid(7) as u32,
            day_of_year: (days - days_before(year, 1, 1)) as u32,
        }
    }
}

/// Days from 1970 to the date.
fn days_before(year: i64, month: u32, day: u32) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let month_from_march = i64::from((month + 9) % 12);
    let day_of_year = (153 * month_from_march + 2) / 5 + i64::from(day) - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// `Wed, 01 Jan 2020 00:00:00 GMT`.
pub fn format(seconds: f64) -> Result<[u8; 29], Fault> {
    if !(0.0..253_402_300_800.0).contains(&seconds) {
        return Err(Fault::new(format!("{seconds:.0} seconds since 1970 have no date of HTTP: it is of 1970 to 9999")));
    }
    let now = Calendar::of(seconds as i64);
    let mut made = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    made[..3].copy_from_slice(DAYS[(now.weekday as usize + 3) % 7].as_bytes());
    made[8..11].copy_from_slice(MONTHS[now.month as usize - 1].as_bytes());
    let mut two = |at: usize, number: u32| {
        made[at] = b'0' + (number / 10 % 10) as u8;
        made[at + 1] = b'0' + (number % 10) as u8;
    };
    two(5, now.day);
    two(12, (now.year / 100) as u32);
    two(14, (now.year % 100) as u32);
    two(17, now.hour);
    two(20, now.minute);
    two(23, now.second);
    Ok(made)
}

/// Reads HTTP's three forms of a date, `2020-01-01T00:00:00`, and a number of seconds.
pub fn parse(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if text.starts_with(|first: char| first.is_ascii_digit()) && text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return text.parse().ok();
    }
    let words: Vec<&str> = text.split([' ', '-', ',', 'T']).filter(|word| !word.is_empty()).collect();
    let (year, month, day, clock) = match words.as_slice() {
        // 2020-01-01T00:00:00
        [year, month, day, clock] if year.len() == 4 && text.as_bytes().get(10) == Some(&b'T') => {
            (number(year)?, number(month)? as u32, *day, *clock)
        }
        // Wed, 01 Jan 2020 00:00:00 GMT, and Wednesday, 01-Jan-20 00:00:00 GMT
        _ => match split_date(text)?[..] {
            [_, day, month, year, clock, "GMT"] => {
                let written = number(year)?;
                let year = match year.len() {
                    2 => written + if written < 70 { 2000 } else { 1900 },
                    _ => written,
                };
                (year, month_of(month)?, day, clock)
            }
            // Wed Jan  1 00:00:00 2020
            [_, month, day, clock, year] => (number(year)?, month_of(month)?, day, clock),
            _ => return None,
        },
    };
    let day = number(day)? as u32;
    let [hour, minute, second] = clock.split(':').collect::<Vec<_>>()[..] else { return None };
    let (hour, minute, second) = (number(hour)?, number(minute)?, number(second)?);
    let is_day = (1..=12).contains(&month) && (1..=31).contains(&day) && (1970..=9999).contains(&year);
    if !is_day || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // A leap second is the one before it.
    let seconds = days_before(year, month, day) * 86400 + hour * 3600 + minute * 60 + second.min(59);
    let made = Calendar::of(seconds);
    let names_a_day = text.starts_with(|first: char| first.is_ascii_alphabetic());
    let is_right_weekday = !names_a_day || text.starts_with(DAYS[(made.weekday as usize + 3) % 7]);
    (made.day == day && is_right_weekday).then_some(seconds as f64)
}

/// A date of HTTP in its words; the day of the week must be one.
fn split_date(text: &str) -> Option<Vec<&str>> {
    let words: Vec<&str> = text.split([' ', '-', ',']).filter(|word| !word.is_empty()).collect();
    let day = words.first()?;
    (DAYS.contains(day) || WHOLE_DAYS.contains(day)).then_some(words)
}

const WHOLE_DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

fn month_of(word: &str) -> Option<u32> {
    MONTHS.iter().position(|known| *known == word).map(|index| index as u32 + 1)
}

fn number(word: &str) -> Option<i64> {
    let good = !word.is_empty() && word.len() <= 4 && word.bytes().all(|b| b.is_ascii_digit());
    if good { word.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_and_read() {
        let check = |text: &str, expect: Option<f64>| assert_eq!(parse(text.as_bytes()), expect, "{text}");
        check("Wed, 01 Jan 2020 00:00:00 GMT", Some(1_577_836_800.0));
        check("Wednesday, 01-Jan-20 00:00:00 GMT", Some(1_577_836_800.0));
        check("Wed Jan  1 00:00:00 2020", Some(1_577_836_800.0));
        check("2020-01-01T00:00:00", Some(1_577_836_800.0));
        check("1577836800.5", Some(1_577_836_800.5));
        check("Thu, 29 Feb 2024 23:59:59 GMT", Some(1_709_251_199.0));
        check("Thu, 29 Feb 2024 24:59:59 GMT", None);
        check("29 Feb 2024 23:59:59 GMT", None);
        check("Tue, 01 Jan 2020 00:00:00 GMT", None);
        check("Mon, 29 Feb 2010 00:00:00 GMT", None);
        check("Mon, 20 Dec 2010 00:00:60 GMT", Some(1_292_803_259.0));
        check("Wedx 29 Feb 2012 00:00:00 GMT", None);
        check("Wed, 29 Feb 2012 00:00:00 GMT x", None);
        check("yesterday", None);
        check("", None);
    }

    #[test]
    fn every_day_is_written_as_it_is_read() {
        for day in (0..2_900_000i64).step_by(97) {
            let seconds = (day * 86400 + 45_296) as f64;
            let written = format(seconds).expect("it has a date");
            assert_eq!(parse(&written), Some(seconds), "{}", written.escape_ascii());
        }
        assert_eq!(Calendar::of(1_577_836_800).weekday, 3);
        assert_eq!(Calendar::of(1_709_164_800).day_of_year, 59);
        assert!(format(-1.0).is_err() && format(f64::NAN).is_err() && format(1e18).is_err());
    }
}
