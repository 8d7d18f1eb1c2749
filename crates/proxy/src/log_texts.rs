//! Texts as the access log writes them: fields escaped and cut, dates. It knows no record.
//!
//! There is no `fmt` machinery, the date is text made once a second, and a field that needs no escaping is one scan and
//! one copy.

use std::cell::Cell;

use message::PAIRS_OF_DIGITS;

/// What stands where a field was cut.
const CUT: &[u8] = b"...";

#[inline]
fn is_plain(b: u8) -> bool {
    (b' '..0x7f).contains(&b) & (b != b'"') & (b != b'\\')
}

/// What stands between a client and the date where no user is known.
pub(crate) const NO_USER: &[u8] = b" - -";

/// As one word without quotes around it: no space is left in it, and it is never what stands for nobody.
#[cold]
pub(crate) fn escape_word(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    match text {
        b"" => out.extend_from_slice(b"\"\""),
        b"-" => out.extend_from_slice(b"\\x2d"),
        _ => {
            for (at, part) in text[..text.len().min(bytes_max)].split(|&b| b == b' ').enumerate() {
                if at > 0 {
                    out.extend_from_slice(b"\\x20");
                }
                escape_combined(out, part, bytes_max);
            }
            if text.len() > bytes_max {
                out.extend_from_slice(CUT);
            }
        }
    }
}

/// A fold without an early end: the compiler makes vector instructions of it.
#[inline]
fn all_plain(text: &[u8]) -> bool {
    text.iter().fold(true, |plain, &b| plain & is_plain(b))
}

#[inline]
pub(crate) fn escape_combined(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    if text.len() <= bytes_max && all_plain(text) {
        out.extend_from_slice(text);
    } else {
        escape_combined_slowly(out, text, bytes_max);
    }
}

#[cold]
fn escape_combined_slowly(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    for &b in &text[..text.len().min(bytes_max)] {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', b]),
            b if is_plain(b) => out.push(b),
            b => out.extend_from_slice(&[b'\\', b'x', hex(b >> 4), hex(b & 15)]),
        }
    }
    if text.len() > bytes_max {
        out.extend_from_slice(CUT);
    }
}

#[inline]
pub(crate) fn escape_json(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    if text.len() <= bytes_max && all_plain(text) {
        out.extend_from_slice(text);
    } else {
        escape_json_slowly(out, text, bytes_max);
    }
}

/// UTF-8 stays as it is, but for control characters. A byte that is no UTF-8 reads `\xHH` once the JSON is decoded,
/// as it does in the combined format.
#[cold]
fn escape_json_slowly(out: &mut Vec<u8>, text: &[u8], bytes_max: usize) {
    let kept = &text[..text.len().min(bytes_max)];
    let mut chunks = kept.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        for c in chunk.valid().chars() {
            match c {
                '"' | '\\' => out.extend_from_slice(&[b'\\', c as u8]),
                // C0, DEL and C1: a terminal may act on any of them.
                c if c.is_control() => {
                    out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(c as u8 >> 4), hex(c as u8 & 15)]);
                }
                c => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        let cut_by_us = chunks.peek().is_none() && text.len() > bytes_max;
        for &b in chunk.invalid().iter().filter(|_| !cut_by_us) {
            out.extend_from_slice(&[b'\\', b'\\', b'x', hex(b >> 4), hex(b & 15)]);
        }
    }
    if text.len() > bytes_max {
        out.extend_from_slice(CUT);
    }
}

#[inline]
fn hex(nibble: u8) -> u8 {
    b"0123456789abcdef"[usize::from(nibble & 15)]
}

#[inline]
fn digit(n: usize) -> u8 {
    b'0' + (n % 10) as u8
}

/// The texts of the last second asked for. One per core.
#[derive(Debug, Default)]
pub struct DateCache {
    last: Cell<DateTexts>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct DateTexts {
    second: u64,
    /// ` - - [10/Oct/2000:13:55:36 +0000] "`
    pub(crate) combined: [u8; 35],
    /// `2000-10-10T13:55:36`
    pub(crate) iso: [u8; 19],
}

impl Default for DateTexts {
    fn default() -> DateTexts {
        DateTexts::of_second(0)
    }
}

impl DateCache {
    #[inline]
    pub(crate) fn of(&self, wall_ms: u64) -> DateTexts {
        let second = wall_ms / 1_000;
        let last = self.last.get();
        if last.second == second {
            return last;
        }
        let texts = DateTexts::of_second(second);
        self.last.set(texts);
        texts
    }
}

impl DateCache {
    /// `2000-10-10T13:55:36.007Z`
    #[inline]
    pub(crate) fn write_iso(&self, out: &mut Vec<u8>, wall_ms: u64) {
        out.extend_from_slice(&self.of(wall_ms).iso);
        out.push(b'.');
        let millis = (wall_ms % 1_000) as usize;
        out.extend_from_slice(&[digit(millis / 100), digit(millis / 10 % 10), digit(millis % 10), b'Z']);
    }
}

impl DateTexts {
    #[cold]
    fn of_second(second: u64) -> DateTexts {
        const MONTHS: [&[u8; 3]; 12] =
            [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];
        let (year, month, day) = civil_from_days(second / 86_400);
        let of_day = (second % 86_400) as usize;
        let [h, m, s] = [of_day / 3_600, of_day / 60 % 60, of_day % 60].map(|n| PAIRS_OF_DIGITS[n]);
        let [century, of_century, d, mon] = [year / 100 % 100, year % 100, day, month].map(|n| PAIRS_OF_DIGITS[n]);

        let mut combined = *b" - - [00/Jan/0000:00:00:00 +0000] \"";
        combined[6..8].copy_from_slice(&d);
        combined[9..12].copy_from_slice(MONTHS[month - 1]);
        combined[13..15].copy_from_slice(&century);
        combined[15..17].copy_from_slice(&of_century);
        combined[18..20].copy_from_slice(&h);
        combined[21..23].copy_from_slice(&m);
        combined[24..26].copy_from_slice(&s);

        let mut iso = *b"0000-00-00T00:00:00";
        for (at, pair) in [(0, century), (2, of_century), (5, mon), (8, d), (11, h), (14, m), (17, s)] {
            iso[at..at + 2].copy_from_slice(&pair);
        }
        DateTexts { second, combined, iso }
    }
}

/// Year, month and day of the proleptic Gregorian calendar; the year starts in March so that the leap day is last.
fn civil_from_days(days_since_1970: u64) -> (usize, usize, usize) {
    let days = days_since_1970 as usize + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + usize::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        let dates = DateCache::default();
        for (second, iso) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_399, "2000-02-28T23:59:59"),
            (951_782_400, "2000-02-29T00:00:00"),
            (951_868_800, "2000-03-01T00:00:00"),
            (1_798_761_599, "2026-12-31T23:59:59"),
            (1_798_761_600, "2027-01-01T00:00:00"),
            (4_107_542_400, "2100-03-01T00:00:00"),
        ] {
            let texts = dates.of(second * 1_000 + 999);
            assert_eq!(std::str::from_utf8(&texts.iso), Ok(iso));
            assert_eq!(dates.of(second * 1_000).iso, texts.iso);
        }
    }
}
