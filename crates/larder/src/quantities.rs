//! Sizes and durations as operators write them: `512MiB`, `64K`, `250ms`, `5m`.
//!
//! Read by the flags and by larder.toml, and printed again in what we say to the operator. K, M, G and KiB, MiB, GiB
//! are 1024s, KB, MB, GB are 1000s; a duration always has its unit.

use std::time::Duration;

const SIZE_UNITS: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
];

const DURATION_UNITS: &[(&str, u64)] =
    &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000), ("w", 604_800_000)];

/// What [`parse_size`] reads, as a regex for editors.
pub const SIZE_PATTERN: &str = "^[0-9]+ *([bB]|[kKmMgGtT]([iI]?[bB])?)?$";
/// What [`parse_duration`] reads.
pub const DURATION_PATTERN: &str = "^(0|[0-9]+ *([mM][sS]|[sSmMhHdDwW]))$";

/// Bytes; upper and lower case alike.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text);
    let number = whole(number, text, "a size is a whole number with a unit, such as 512MiB")?;
    let factor = lookup(SIZE_UNITS, unit).ok_or_else(|| {
        format!("`{unit}` is no unit of size; KiB, MiB, GiB (or K, M, G) are 1024s, KB, MB, GB are 1000s")
    })?;
    number.checked_mul(factor).ok_or_else(|| format!("`{text}` is more than any machine has"))
}

/// A duration; zero may go without a unit.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    read_duration(text).map_err(|why| match meant_duration(text) {
        Some(meant) => format!("{why}: write {meant}"),
        None => why,
    })
}

/// The same, without what to write: that is for [`meant_duration`] to say.
pub fn read_duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split(text);
    if unit.is_empty() && number == "0" {
        return Ok(Duration::ZERO);
    }
    let number = whole(number, text, "a duration is a whole number with a unit, such as 250ms, 10s or 5m")?;
    if unit.is_empty() {
        return Err(format!("a duration needs its unit, such as `{text}s` or `{text}ms`"));
    }
    let factor =
        lookup(DURATION_UNITS, unit).ok_or_else(|| format!("`{unit}` is no unit of time; take ms, s, m, h, d or w"))?;
    let millis = number.checked_mul(factor).filter(|&ms| ms <= DURATION_MS_MAX);
    millis.map(Duration::from_millis).ok_or_else(|| format!("`{text}` is longer than a hundred years"))
}

/// Units as other programs and people write them, a month of 30 days and a year of 365.
const MEANT_UNITS: &[(&[&str], u64)] = &[
    (&["ms", "msec", "msecs", "millisecond", "milliseconds"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1_000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hr", "hrs", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
    (&["w", "wk", "week", "weeks"], 604_800_000),
    (&["mo", "month", "months"], 30 * 86_400_000),
    (&["y", "yr", "year", "years"], 365 * 86_400_000),
];

/// As it is written here what somebody has written otherwise: `5m` of `5min`, `90m` of `1h30m` and of `1.5h`, `365d` of `1y`.
pub fn meant_duration(text: &str) -> Option<String> {
    let lower = text.trim().to_ascii_lowercase();
    let mut rest = lower.as_str();
    let mut all = 0.0;
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (_, factor) = MEANT_UNITS.iter().find(|(words, _)| words.contains(&&rest[..letters]))?;
        all += number * *factor as f64;
        rest = rest[letters..].trim_start_matches([' ', ',']);
    }
    let ms = (all <= DURATION_MS_MAX as f64 && all.fract() == 0.0).then_some(all as u64).filter(|ms| *ms > 0)?;
    let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];
    let (unit, factor) = units.into_iter().find(|(_, factor)| ms.is_multiple_of(*factor))?;
    Some(format!("{}{unit}", ms / factor))
}

const DURATION_MS_MAX: u64 = 100 * 366 * 86_400_000;

fn split(text: &str) -> (&str, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (&text[..digits], text[digits..].trim_start())
}

fn whole(number: &str, text: &str, form: &str) -> Result<u64, String> {
    if number.is_empty() {
        return Err(form.to_owned());
    }
    if text[number.len()..].starts_with(['.', ',', '_']) {
        return Err(format!("{form}; fractions and separators are not read"));
    }
    number.parse().map_err(|_| format!("`{number}` is too large a number"))
}

fn lookup(units: &[(&str, u64)], unit: &str) -> Option<u64> {
    units.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)).map(|&(_, factor)| factor)
}

/// `1 hit`, `2 hits`; of `line of the log` the first word is counted.
pub fn counted(count: u64, one: &str) -> String {
    match (count, one.split_once(' ')) {
        (1, _) => format!("1 {one}"),
        (_, None) => format!("{count} {one}s"),
        (_, Some((one, rest))) => format!("{count} {one}s {rest}"),
    }
}

/// The largest binary unit that leaves no fraction, or one decimal.
pub fn show_size(bytes: u64) -> String {
    for (name, factor) in [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)] {
        if bytes >= factor {
            let tenths = u128::from(bytes) * 10 / u128::from(factor);
            return match tenths % 10 {
                0 => format!("{} {name}", tenths / 10),
                tenth => format!("{}.{tenth} {name}", tenths / 10),
            };
        }
    }
    match bytes {
        1 => "1 byte".to_owned(),
        n => format!("{n} bytes"),
    }
}

/// Microseconds, in the unit that a reader wants.
pub fn show_micros(micros: u64) -> String {
    match micros {
        0..1_000 => format!("{micros} µs"),
        1_000..10_000 => format!("{}.{:02} ms", micros / 1_000, micros % 1_000 / 10),
        10_000..1_000_000 => format!("{}.{} ms", micros / 1_000, micros % 1_000 / 100),
        _ => format!("{}.{:02} s", micros / 1_000_000, micros % 1_000_000 / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_size(text: &str, expect: Result<u64, &str>) {
        match (parse_size(text), expect) {
            (Ok(bytes), Ok(expected)) => assert_eq!(bytes, expected, "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (got, expected) => panic!("{text}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn sizes_know_1024_from_1000() {
        check_size("0", Ok(0));
        check_size("17", Ok(17));
        check_size("512B", Ok(512));
        check_size("1K", Ok(1024));
        check_size("1k", Ok(1024));
        check_size("1KiB", Ok(1024));
        check_size("1KB", Ok(1000));
        check_size("3M", Ok(3 << 20));
        check_size("3 MiB", Ok(3 << 20));
        check_size("3mb", Ok(3_000_000));
        check_size("2G", Ok(2 << 30));
        check_size("2GB", Ok(2_000_000_000));
        check_size("1T", Ok(1 << 40));
        check_size("", Err("whole number with a unit"));
        check_size("M", Err("whole number with a unit"));
        check_size("-1", Err("whole number with a unit"));
        check_size("1.5G", Err("fractions"));
        check_size("12X", Err("`X` is no unit"));
        check_size("99999999999999999999", Err("too large"));
        check_size("99999999T", Err("more than any machine"));
    }

    fn check_duration(text: &str, expect: Result<u64, &str>) {
        match (parse_duration(text), expect) {
            (Ok(duration), Ok(ms)) => assert_eq!(duration, Duration::from_millis(ms), "{text}"),
            (Err(message), Err(part)) => assert!(message.contains(part), "{text}: {message}"),
            (got, expected) => panic!("{text}: {got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn durations_carry_their_unit() {
        check_duration("250ms", Ok(250));
        check_duration("10s", Ok(10_000));
        check_duration("5m", Ok(300_000));
        check_duration("2h", Ok(7_200_000));
        check_duration("1d", Ok(86_400_000));
        check_duration("0", Ok(0));
        check_duration("10", Err("`10s`"));
        check_duration("10 min", Err("`min` is no unit of time; take ms, s, m, h, d or w: write 10m"));
        check_duration("s", Err("whole number with a unit"));
        check_duration("99999w", Err("hundred years"));
    }

    #[test]
    fn one_is_no_plural() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "hit")), ["0 hits", "1 hit", "2 hits"]);
        assert_eq!(
            [1, 2].map(|count| counted(count, "route to memcached")),
            ["1 route to memcached", "2 routes to memcached"]
        );
    }

    #[test]
    fn durations_of_other_programs_are_known() {
        for (text, meant) in [
            ("5min", Some("5m")),
            ("5 Minutes", Some("5m")),
            ("1y", Some("365d")),
            ("2 months", Some("60d")),
            ("1h30m", Some("90m")),
            ("1d 12h", Some("36h")),
            ("1.5h", Some("90m")),
            ("0.25s", Some("250ms")),
            ("90sec", Some("90s")),
            ("500us", None),
            ("soon", None),
            ("10", None),
            ("", None),
            ("1..5h", None),
        ] {
            assert_eq!(meant_duration(text).as_deref(), meant, "{text}");
            if let Some(meant) = meant {
                assert!(read_duration(meant).is_ok(), "{meant}");
            }
        }
    }

    #[test]
    fn the_patterns_for_editors_know_every_unit() {
        let matches = |pattern: &str, text: &str| regex_automata::meta::Regex::new(pattern).unwrap().is_match(text);
        for (unit, _) in SIZE_UNITS {
            let (small, large) = (format!("1{unit}"), format!("12 {}", unit.to_uppercase()));
            assert!(matches(SIZE_PATTERN, &small) && (unit.is_empty() || matches(SIZE_PATTERN, &large)), "{unit}");
        }
        for (unit, _) in DURATION_UNITS {
            assert!(matches(DURATION_PATTERN, &format!("1{unit}")) && matches(DURATION_PATTERN, &format!("12 {unit}")));
        }
        assert!(matches(DURATION_PATTERN, "0") && !matches(DURATION_PATTERN, "10") && !matches(SIZE_PATTERN, "1.5G"));
    }

    #[test]
    fn sizes_and_times_are_shown_short() {
        for (bytes, text) in [
            (1, "1 byte"),
            (512, "512 bytes"),
            (1024, "1 KiB"),
            (1536, "1.5 KiB"),
            (512 << 20, "512 MiB"),
            (1 << 30, "1 GiB"),
            (u64::MAX, "17179869183.9 GiB"),
        ] {
            assert_eq!(show_size(bytes), text);
        }
        for (micros, text) in [(7, "7 µs"), (1_234, "1.23 ms"), (31_700, "31.7 ms"), (2_050_000, "2.05 s")] {
            assert_eq!(show_micros(micros), text);
        }
    }
}
