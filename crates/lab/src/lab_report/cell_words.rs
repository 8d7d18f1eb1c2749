//! Numbers, colours and names as people read them, the same in the table, the page and the comparison.
//!
//! Names, error samples and configs come from files and servers that nobody vouches for: what goes to a terminal
//! passes through [`plain`], so that no report can move the cursor. It knows no layout.

use crate::results::{Bound, Colour, Estimate, Metric, Verdict};

/// One letter, for those who see no colours: the terminal without ANSI, a print, a colour-blind reader.
pub fn colour_mark(colour: Colour) -> &'static str {
    match colour {
        Colour::Clean => "",
        Colour::LightYellow => "y",
        Colour::Orange => "O",
        Colour::Red => "R",
        Colour::White => "-",
    }
}

pub fn colour_words(colour: Colour) -> &'static str {
    match colour {
        Colour::Clean => "clean",
        Colour::LightYellow => "fewer than 0.1 % failed",
        Colour::Orange => "fewer than 10 % failed",
        Colour::Red => "10 % or more failed, a bad byte, or it died",
        Colour::White => "not run",
    }
}

pub fn bound_words(bound: Bound) -> &'static str {
    match bound {
        Bound::Server => "server-bound",
        Bound::Client => "client-bound",
        Bound::Origin => "origin-bound",
        Bound::Latency => "latency-bound",
        Bound::Unknown => "bound by nothing that was seen",
    }
}

/// The value of one block or estimate in the metric's unit.
pub fn metric_value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Goodput => per_second(value),
        Metric::ServerMicrosPerAnswer => format!("{} µs", significant(value)),
        Metric::P50 | Metric::P99 => micros(value),
        // Of few connections the noise of the pages may be more than what they cost.
        Metric::BytesPerConnection if value < 0.0 => "under the noise".to_owned(),
        Metric::BytesPerConnection => bytes(value as u64),
    }
}

pub fn verdict_words(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Better => "better",
        Verdict::Worse => "worse",
        Verdict::NoDifferenceShown => "no difference shown",
        Verdict::NotRanked => "not ranked",
    }
}

pub fn per_second(value: f64) -> String {
    format!("{}/s", if value >= 100.0 { grouped(value.round() as u64) } else { significant(value) })
}

/// Microseconds, in the unit that a reader wants.
pub fn micros(value: f64) -> String {
    match value {
        ..1_000.0 => format!("{} µs", significant(value)),
        1_000.0..1_000_000.0 => format!("{} ms", significant(value / 1e3)),
        _ => format!("{} s", significant(value / 1e6)),
    }
}

pub fn bytes(value: u64) -> String {
    match value {
        0..1_024 => format!("{value} B"),
        1_024..1_048_576 => format!("{} KiB", significant(value as f64 / 1024.0)),
        1_048_576..1_073_741_824 => format!("{} MiB", significant(value as f64 / 1_048_576.0)),
        _ => format!("{} GiB", significant(value as f64 / 1_073_741_824.0)),
    }
}

/// Three digits that say something; whole numbers above.
pub fn significant(value: f64) -> String {
    match value.abs() {
        ..0.005 => "0".to_owned(),
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// 12345 as 12,345.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `+12 %`, `-8.5 %`; from twice on as a factor, which nobody misreads.
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match ratio {
        2.0.. => format!("×{}", significant(ratio)),
        _ if percent.abs() < 0.05 => "±0 %".to_owned(),
        _ if percent.abs() < 10.0 => format!("{percent:+.1} %"),
        _ => format!("{percent:+.0} %"),
    }
}

/// A ratio with its interval, all three as factors where one of them is: nobody adds 87 % and ×2.83 in their head.
pub fn change_with_interval(ratio: &Estimate) -> String {
    let factor = |ratio: f64| format!("×{}", significant(ratio));
    let words: fn(f64) -> String = if ratio.high < 2.0 { change } else { factor };
    format!("{} ({} … {})", words(ratio.median), words(ratio.low), words(ratio.high))
}

pub fn percent(share: f64) -> String {
    format!("{} %", significant(share * 100.0))
}

pub fn counted(count: usize, one: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") }
}

/// A sentence in lines of so many columns, each ended; what stands before the first one and before the others counts.
/// A word that is longer than a line has one of its own.
pub fn wrapped(text: &str, columns: usize, first: &str, later: &str) -> String {
    let mut out = String::new();
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split(' ') {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > columns {
            out.push_str(&line);
            out.push('\n');
            line = later.to_owned();
        } else if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out + &line + "\n"
}

/// Without what a terminal would obey: controls, and the marks that turn the direction of writing.
pub fn plain(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if obeyed(c) { '·' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_that_a_reader_wants() {
        for (value, expect) in [(0.0, "0/s"), (7.5, "7.50/s"), (999.6, "1,000/s"), (1_234_567.0, "1,234,567/s")] {
            assert_eq!(per_second(value), expect);
        }
        for (value, expect) in [(0.0, "0 µs"), (12.34, "12.3 µs"), (1_500.0, "1.50 ms"), (2.5e6, "2.50 s")] {
            assert_eq!(micros(value), expect);
        }
        for (value, expect) in [(12, "12 B"), (6_221, "6.08 KiB"), (1 << 20, "1.00 MiB"), (3 << 30, "3.00 GiB")] {
            assert_eq!(bytes(value), expect);
        }
        for (ratio, expect) in [(1.0, "±0 %"), (1.034, "+3.4 %"), (0.88, "-12 %"), (2.0, "×2.00"), (13.71, "×13.7")]
        {
            assert_eq!(change(ratio), expect);
        }
    }

    #[test]
    fn an_interval_is_told_in_one_unit() {
        let check = |low, median, high, expect: &str| {
            assert_eq!(change_with_interval(&Estimate { median, low, high, ..Estimate::default() }), expect);
        };
        check(0.88, 1.034, 1.5, "+3.4 % (-12 % … +50 %)");
        check(1.87, 1.87, 2.83, "×1.87 (×1.87 … ×2.83)");
        check(0.5, 3.0, 11.0, "×3.00 (×0.50 … ×11.0)");
    }

    #[test]
    fn a_sentence_keeps_to_its_columns() {
        for (text, columns, expect) in [
            ("", 10, "- \n"),
            ("one two", 9, "- one two\n"),
            ("one two three", 9, "- one two\n  three\n"),
            ("a-word-too-long for it", 6, "- a-word-too-long\n  for\n  it\n"),
        ] {
            assert_eq!(wrapped(text, columns, "- ", "  "), expect);
        }
    }

    #[test]
    fn nothing_that_a_terminal_obeys_passes() {
        assert_eq!(plain("a\x1b[31m\u{9b}b\u{202e}\tc\nd"), "a·[31m·b··c·d");
    }
}
