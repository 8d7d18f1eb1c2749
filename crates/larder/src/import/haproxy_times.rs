//! Times as HAProxy writes them: a number, and a unit behind it that is milliseconds where none is said.

/// In milliseconds.
pub fn milliseconds(text: &str) -> Option<u64> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = text[..digits].parse().ok()?;
    match &text[digits..] {
        "" | "ms" => Some(number),
        "us" => Some(number / 1_000),
        "s" => number.checked_mul(1_000),
        "m" => number.checked_mul(60_000),
        "h" => number.checked_mul(3_600_000),
        "d" => number.checked_mul(86_400_000),
        _ => None,
    }
}

/// The same as a value of larder.toml. `None`: there is no such time, or it is nothing.
pub fn quoted_time(text: &str) -> Option<String> {
    let time = milliseconds(text).filter(|time| *time > 0)?;
    Some(if time % 1_000 == 0 { format!("\"{}s\"", time / 1_000) } else { format!("\"{time}ms\"") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_is_milliseconds() {
        let all = [
            ("5000", Some("\"5s\"")),
            ("1500ms", Some("\"1500ms\"")),
            ("1m", Some("\"60s\"")),
            ("2h", Some("\"7200s\"")),
        ];
        for (text, expect) in all.into_iter().chain([("0", None), ("x", None), ("5w", None), ("10us", None)]) {
            assert_eq!(quoted_time(text).as_deref(), expect, "{text}");
        }
    }
}
