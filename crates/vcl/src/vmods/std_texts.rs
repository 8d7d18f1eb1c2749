//! The functions of vmod std that make texts of texts.

use smallvec::SmallVec;

use super::{Arguments, wildcards};
use crate::evaluation::http_dates::{Calendar, MONTHS};
use crate::plain_values::Fault;
use crate::scope_arena::Arena;

/// The parameters of the query in order, without empty ones. A URL that is so already stays the same text.
pub fn query_sorted<'a>(url: &'a [u8], arena: &'a Arena) -> Result<&'a [u8], Fault> {
    let Some(question) = url.iter().position(|byte| *byte == b'?') else { return Ok(url) };
    let (path, query) = (&url[..question], &url[question + 1..]);
    let pieces = || query.split(|byte| *byte == b'&');
    let is_sorted = pieces().zip(pieces().skip(1)).all(|(left, right)| left <= right);
    if is_sorted && !query.is_empty() && pieces().all(|piece| !piece.is_empty()) {
        return Ok(url);
    }
    let mut parameters: SmallVec<[&[u8]; 32]> = pieces().filter(|piece| !piece.is_empty()).collect();
    parameters.sort_unstable();
    let mut parts: SmallVec<[&[u8]; 64]> = SmallVec::new();
    parts.push(path);
    if parameters.is_empty() {
        parts.push(b"?");
    }
    for (index, parameter) in parameters.iter().enumerate() {
        parts.push(if index == 0 { b"?" } else { b"&" });
        parts.push(parameter);
    }
    arena.join(&parts)
}

/// The text from where the other begins in it; absent when it is not in it.
pub fn rest_from<'a>(text: Option<&'a [u8]>, wanted: Option<&[u8]>) -> Option<&'a [u8]> {
    let (text, wanted) = (text?, wanted?);
    if wanted.is_empty() {
        return Some(text);
    }
    let at = text.windows(wanted.len()).position(|window| window == wanted)?;
    Some(&text[at..])
}

pub fn fn_match(given: &Arguments<'_, '_>) -> Result<bool, Fault> {
    let (Some(pattern), Some(text)) = (given.text(0), given.text(1)) else {
        let absent = if given.text(0).is_none() { "pattern" } else { "subject" };
        return Err(Fault::new(format!("std.fnmatch(): {absent} is NULL")));
    };
    let how = wildcards::How { slash_is_apart: given.truth(2), escapes: !given.truth(3), dot_is_apart: given.truth(4) };
    wildcards::is_match(pattern, text, how)
}

/// C's strftime, in UTC and English.
pub fn time_formatted<'a>(seconds: f64, format: &[u8], arena: &'a Arena) -> Result<Option<&'a [u8]>, Fault> {
    if !seconds.is_finite() || seconds.abs() >= 1e12 {
        return Ok(None);
    }
    let seconds = seconds as i64;
    let now = Calendar::of(seconds);
    let mut made = Vec::new();
    formatted(&now, seconds, format, &mut made);
    if made.is_empty() && !format.is_empty() {
        return Ok(None);
    }
    arena.copy(&made).map(Some)
}

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const LONG_MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn formatted(now: &Calendar, seconds: i64, format: &[u8], made: &mut Vec<u8>) {
    let day = DAYS[now.weekday as usize % 7];
    let month = now.month as usize - 1;
    let hour12 = (now.hour + 11) % 12 + 1;
    let mut rest = format;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let (b'%', Some((&letter, after))) = (byte, rest.split_first()) else {
            made.push(byte);
            continue;
        };
        rest = after;
        let text = match letter {
            b'a' => day[..3].to_owned(),
            b'A' => day.to_owned(),
            b'b' | b'h' => MONTHS[month].to_owned(),
            b'B' => LONG_MONTHS[month].to_owned(),
            b'C' => format!("{:02}", now.year / 100),
            b'd' => format!("{:02}", now.day),
            b'e' => format!("{:2}", now.day),
            b'H' => format!("{:02}", now.hour),
            b'I' => format!("{hour12:02}"),
            b'j' => format!("{:03}", now.day_of_year + 1),
            b'k' => format!("{:2}", now.hour),
            b'l' => format!("{hour12:2}"),
            b'm' => format!("{:02}", now.month),
            b'M' => format!("{:02}", now.minute),
            b'n' => "\n".to_owned(),
            b'p' => if now.hour < 12 { "AM" } else { "PM" }.to_owned(),
            b'P' => if now.hour < 12 { "am" } else { "pm" }.to_owned(),
            b's' => seconds.to_string(),
            b'S' => format!("{:02}", now.second),
            b't' => "\t".to_owned(),
            b'u' => ((now.weekday + 6) % 7 + 1).to_string(),
            b'U' => format!("{:02}", (now.day_of_year + 7 - now.weekday) / 7),
            b'w' => now.weekday.to_string(),
            b'W' => format!("{:02}", (now.day_of_year + 7 - (now.weekday + 6) % 7) / 7),
            b'V' => format!("{:02}", iso_week(now).1),
            b'G' => iso_week(now).0.to_string(),
            b'g' => format!("{:02}", iso_week(now).0.rem_euclid(100)),
            b'y' => format!("{:02}", now.year.rem_euclid(100)),
            b'Y' => now.year.to_string(),
            b'z' => "+0000".to_owned(),
            b'Z' => "GMT".to_owned(),
            b'%' => "%".to_owned(),
            composed => {
                let format: &[u8] = match composed {
                    b'c' => b"%a %b %e %H:%M:%S %Y",
                    b'D' | b'x' => b"%m/%d/%y",
                    b'F' => b"%Y-%m-%d",
                    b'r' => b"%I:%M:%S %p",
                    b'R' => b"%H:%M",
                    b'T' | b'X' => b"%H:%M:%S",
                    _ => {
                        made.extend_from_slice(&[b'%', composed]);
                        continue;
                    }
                };
                formatted(now, seconds, format, made);
                continue;
            }
        };
        made.extend_from_slice(text.as_bytes());
    }
}

/// The year and week of ISO 8601: weeks begin on Monday, and the first has the year's first Thursday.
fn iso_week(now: &Calendar) -> (i64, u32) {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let from_monday = i64::from((now.weekday + 6) % 7);
    // The Thursday of this week decides.
    let thursday = i64::from(now.day_of_year) + 3 - from_monday;
    let days = |year| if is_leap(year) { 366 } else { 365 };
    let (year, thursday) = if thursday < 0 {
        (now.year - 1, thursday + days(now.year - 1))
    } else if thursday >= days(now.year) {
        (now.year + 1, thursday - days(now.year))
    } else {
        (now.year, thursday)
    };
    (year, (thursday / 7 + 1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_sorted() {
        let arena = Arena::default();
        let check = |url: &str, expect: &str| {
            let made = query_sorted(url.as_bytes(), &arena).expect("there is room");
            assert_eq!(String::from_utf8_lossy(made), expect, "{url}");
        };
        check("/a?b=2&a=1&&c&a=0&", "/a?a=0&a=1&b=2&c");
        check("/a?", "/a?");
        check("/a?&", "/a?");
        check("/a", "/a");
        check("/a?x", "/a?x");
        check("/a?b&&a", "/a?a&b");
        check("?b&a", "?a&b");
        check("a?c=1&b?x&a", "a?a&b?x&c=1");
        let before = arena.used_bytes();
        check("/a?a=1&b=2", "/a?a=1&b=2");
        assert_eq!(arena.used_bytes(), before, "what is sorted is not copied");
    }

    #[test]
    fn texts_are_found_in_texts() {
        let check = |text, wanted, expect: Option<&str>| {
            assert_eq!(rest_from(text, wanted), expect.map(str::as_bytes));
        };
        check(Some(b"abcde"), Some(b"cd"), Some("cde"));
        check(Some(b"abc"), Some(b"x"), None);
        check(Some(b"abc"), Some(b""), Some("abc"));
        check(None, Some(b"a"), None);
    }

    #[test]
    fn times_are_formatted_as_c_does() {
        let arena = Arena::default();
        let check = |seconds: f64, format: &str, expect: &str| {
            let made = time_formatted(seconds, format.as_bytes(), &arena).expect("there is room");
            assert_eq!(made.map(String::from_utf8_lossy).as_deref(), Some(expect), "{format}");
        };
        let format = "%Y-%m-%d %H:%M:%S %a %A %b %B %j %U %w %y %Z %% %e %I %p %T %D %F %s %q";
        let expect = "2020-01-01 13:02:03 Wed Wednesday Jan January 001 00 3 20 GMT %  1 01 PM 13:02:03 01/01/20 \
                      2020-01-01 1577883723 %q";
        check(1_577_883_723.0, format, expect);
        check(1_577_883_723.0, "", "");
        check(1_609_459_200.0, "%G-W%V-%u", "2020-W53-5");
        check(1_577_836_800.0, "%G-W%V %W", "2020-W01 00");
    }
}
