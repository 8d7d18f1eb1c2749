//! Times and sizes as nginx's files have them.

/// `30d`, `1h30m`, `3600`.
pub fn seconds(text: &str) -> Option<u64> {
    let (mut total, mut number) = (0u64, String::new());
    for c in text.chars() {
        let unit = match c {
            '0'..='9' => {
                number.push(c);
                continue;
            }
            's' => 1,
            'm' => 60,
            'h' => 3_600,
            'd' => 86_400,
            'w' => 604_800,
            'M' => 2_592_000,
            'y' => 31_536_000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit)?)?;
        number.clear();
    }
    match number.is_empty() {
        true => (!text.is_empty()).then_some(total),
        false => total.checked_add(number.parse().ok()?),
    }
}

/// `8m`, `2k`, `100`.
pub fn bytes(text: &str) -> Option<u64> {
    let (digits, factor) = match text.as_bytes().last()?.to_ascii_lowercase() {
        b'k' => (&text[..text.len() - 1], 1 << 10),
        b'm' => (&text[..text.len() - 1], 1 << 20),
        b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<u64>) {
        assert_eq!(seconds(text), expect, "{text}");
    }

    #[test]
    fn times_are_numbers_with_units() {
        check("60", Some(60));
        check("1h30m", Some(5_400));
        check("1h 30m", None);
        check("30d", Some(2_592_000));
        check("1d12", Some(86_412));
        check("", None);
        check("d", None);
        check("99999999999999999999y", None);
        check("9999999999999999y", None);
        check("modified", None);
    }

    #[test]
    fn sizes_are_numbers_with_units() {
        assert_eq!(
            ["8m", "2K", "100", "1g", "", "m", "x8"].map(bytes),
            [Some(8 << 20), Some(2 << 10), Some(100), Some(1 << 30), None, None, None]
        );
    }
}
