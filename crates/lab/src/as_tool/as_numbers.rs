//! Numbers as C programs write them, where Rust's own formats differ. It knows no tool.

/// As `%g`: six significant digits, no zeros behind them, an exponent when the number is very large or small.
pub(super) fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("an exponent was asked for");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    if (-4..6).contains(&exponent) {
        return shortest(&format!("{value:.*}", (5 - exponent) as usize)).to_owned();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{}e{sign}{:02}", shortest(mantissa), exponent.abs())
}

fn shortest(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

/// The number in the largest unit in which it is not small, of units that are `scale` apart, with the unit behind it.
pub(super) fn in_units(value: f64, scale: f64, share: f64, units: &[&str], digits: usize) -> String {
    let (mut value, mut unit) = (value, 0);
    while unit + 1 < units.len() && value >= scale * share {
        value /= scale;
        unit += 1;
    }
    format!("{value:.digits$}{}", units[unit])
}

/// Whole milliseconds, rounded.
pub(super) fn whole_ms(micros: f64) -> u64 {
    ((micros + 500.0) / 1_000.0) as u64
}

pub(super) fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_by_printf() {
        for (value, expect) in [
            (0.0, "0"),
            (6.0, "6"),
            (5.003_51, "5.00351"),
            (3_006.54, "3006.54"),
            (870_750_000_000.0, "8.7075e+11"),
            (25_668.0, "25668"),
            (1_234_567.0, "1.23457e+06"),
            (999_999.9, "1e+06"),
            (0.057, "0.057"),
            (0.000_012, "1.2e-05"),
            (0.099_999_96, "0.1"),
        ] {
            assert_eq!(general(value), expect);
        }
        assert_eq!(in_units(843.28, 1000.0, 0.85, &["us", "ms"], 2), "843.28us");
        assert_eq!(in_units(851.0, 1000.0, 0.85, &["us", "ms"], 2), "0.85ms");
        assert_eq!((whole_ms(499.0), whole_ms(500.0), ratio(1.0, 0.0)), (0, 1, 0.0));
    }
}
