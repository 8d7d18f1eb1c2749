//! Moments as access logs write them: `10/Oct/2000:13:55:36 -0700`, `2000-10-10T13:55:36.007Z`, `1286536308.779`.
//!
//! To milliseconds since 1970. What is no date is nothing; a leap second counts as the one before it.

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Of Apache, nginx and everybody after them; to the second.
pub(crate) fn common_millis(text: &str) -> Option<u64> {
    let (date, zone) = text.split_once(' ')?;
    let (date, clock) = date.split_once(':')?;
    let mut parts = date.split('/');
    let (day, month, year) = (number(parts.next()?, 2)?, parts.next()?, number(parts.next()?, 4)?);
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let seconds = days(year, month, day)? * 86_400 + clock_seconds(clock)?;
    let (sign, zone) = zone.split_at_checked(1)?;
    let (hours, minutes) = zone.split_at_checked(2)?;
    let east = number(hours, 2)? * 3_600 + number(minutes, 2)? * 60;
    match sign {
        "+" => seconds.checked_sub(east),
        "-" => Some(seconds + east),
        _ => None,
    }?
    .checked_mul(1_000)
}

/// Of our own JSON: in UTC, to the millisecond.
pub(crate) fn rfc3339_millis(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut parts = date.split('-');
    let (year, month, day) = (number(parts.next()?, 4)?, number(parts.next()?, 2)?, number(parts.next()?, 2)?);
    let (clock, millis) = time.split_once('.').unwrap_or((time, "000"));
    Some((days(year, month, day)? * 86_400 + clock_seconds(clock)?) * 1_000 + number(millis, 3)?)
}

/// Of squid's native format.
pub(crate) fn epoch_millis(text: &str) -> Option<u64> {
    let (seconds, millis) = text.split_once('.')?;
    let seconds = number(seconds, seconds.len().clamp(9, 10))?;
    Some(seconds * 1_000 + number(millis, 3)?)
}

fn clock_seconds(text: &str) -> Option<u64> {
    let mut parts = text.split(':').map(|part| number(part, 2));
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    (hour < 24 && minute < 60 && second <= 60).then(|| hour * 3_600 + minute * 60 + second.min(59))
}

fn number(text: &str, digits: usize) -> Option<u64> {
    text.parse().ok().filter(|_| text.len() == digits && text.bytes().all(|b| b.is_ascii_digit()))
}

/// From 1970-01-01 to a date of the Gregorian calendar.
fn days(year: u64, month: u64, day: u64) -> Option<u64> {
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March have the day that is sometimes missing at their end.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let before_1970 = 719_468;
    Some(year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day - 1 - before_1970)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        let check = |text: &str, expect: Option<u64>| assert_eq!(common_millis(text), expect, "{text}");
        check("01/Jan/1970:00:00:00 +0000", Some(0));
        check("10/Oct/2000:13:55:36 -0700", Some(971_211_336_000));
        check("29/Feb/2024:23:59:60 +0100", Some(1_709_247_599_000));
        check("31/Dec/1999:23:59:59 +0000", Some(946_684_799_000));
        check("01/Mar/2000:00:00:00 +0000", Some(951_868_800_000));
        for text in [
            "",
            "10/Oct/2000",
            "10/Okt/2000:13:55:36 -0700",
            "10/Oct/2000:24:55:36 -0700",
            "1/Oct/2000:13:55:36 +0",
            "10/Oct/2000:13:55:36 é700",
            "01/Jan/1970:00:00:00 +0100",
        ] {
            check(text, None);
        }
        assert_eq!(rfc3339_millis("2000-10-10T20:55:36.007Z"), Some(971_211_336_007));
        assert_eq!(rfc3339_millis("2000-10-10T20:55:36Z"), Some(971_211_336_000));
        assert_eq!(rfc3339_millis("2000-10-10 20:55:36"), None);
        assert_eq!(epoch_millis("1286536308.779"), Some(1_286_536_308_779));
        assert_eq!(epoch_millis("12.5"), None);
    }
}
