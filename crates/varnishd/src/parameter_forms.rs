//! The forms that parameters have: how they are typed, how they are shown, and within which bounds they are.

use crate::answers::quoted;
use crate::parameter_table::Parameter;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Seconds,
    Real,
    /// With what is counted.
    Count(&'static str),
    Bytes,
    Switch,
    /// Words that are switched on and off by themselves: `+a,-b`.
    Words,
    Text,
}

use Form::{Bytes, Count, Real, Seconds, Switch, Text, Words};

/// A value that was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// As it is shown.
    pub(crate) shown: String,
    /// In units of one, without a letter behind it.
    pub(crate) plain: String,
}

impl Form {
    pub(crate) fn unit(self) -> &'static str {
        match self {
            Seconds => "seconds",
            Count(unit) => unit,
            Bytes => "bytes",
            Switch => "bool",
            Real | Words | Text => "",
        }
    }

    /// `former`: what is shown now, of which words may be changed singly.
    pub(crate) fn read(self, written: &str, former: &str) -> Result<Value, String> {
        let both = |text: String| Value { plain: text.clone(), shown: text };
        match self {
            Seconds => {
                Ok(both(format!("{:.3}", seconds(written).ok_or_else(|| format!("Invalid number ({written})"))?)))
            }
            Real => Ok(both(number(written).ok_or_else(|| format!("Invalid number ({written})"))?.to_string())),
            Count(_) => {
                let count: u32 = written.parse().map_err(|_| format!("Not a number ({written})"))?;
                Ok(both(count.to_string()))
            }
            Bytes => {
                let bytes = bytes(written).ok_or_else(|| format!("Invalid number ({written})"))?;
                Ok(Value { shown: show_bytes(bytes), plain: bytes.to_string() })
            }
            Switch => match &*written.to_ascii_lowercase() {
                "on" | "yes" | "true" | "enable" => Ok(both("on".to_owned())),
                "off" | "no" | "false" | "disable" => Ok(both("off".to_owned())),
                _ => Err("use \"on\" or \"off\"".to_owned()),
            },
            Words => words(written, former).map(both),
            Text => Ok(both(written.to_owned())),
        }
    }

    /// A value as JSON has it.
    pub(crate) fn json(self, value: &Value) -> String {
        match self {
            Seconds | Real | Count(_) | Bytes => value.plain.clone(),
            Switch => (value.shown == "on").to_string(),
            Words | Text => quoted(&value.shown),
        }
    }

    fn amount(self, value: &Value) -> Option<f64> {
        matches!(self, Seconds | Real | Count(_) | Bytes).then(|| value.plain.parse().ok())?
    }
}

impl Parameter {
    pub(crate) fn check_bounds(&self, value: &Value) -> Result<(), String> {
        let bound = |written: &str| self.form.amount(&self.form.read(written, "").ok()?);
        let Some(amount) = self.form.amount(value) else { return Ok(()) };
        let (below, above) = match self.form {
            Seconds | Real => ("Must be greater or equal to", "Must be less or equal to"),
            _ => ("Must be at least", "Must be no more than"),
        };
        match (bound(self.min), bound(self.max)) {
            (Some(min), _) if amount < min => Err(format!("{below} {}", self.min)),
            (_, Some(max)) if amount > max => Err(format!("{above} {}", self.max)),
            _ => Ok(()),
        }
    }
}

/// Digits with at most one point, and a sign: no exponents, no infinities.
fn number(written: &str) -> Option<f64> {
    let digits = written.strip_prefix('-').unwrap_or(written);
    let is_plain =
        digits.bytes().all(|b| b.is_ascii_digit() || b == b'.') && digits.bytes().any(|b| b.is_ascii_digit());
    written.parse().ok().filter(|_| is_plain)
}

/// `120`, `0.5`, `1.5h`, `10 m`: a number of seconds, unless there is a unit.
pub fn seconds(written: &str) -> Option<f64> {
    let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &written[digits.len()..] {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        "y" => 31_536_000.0,
        _ => return None,
    };
    number(digits.trim_end()).map(|number| number * factor)
}

/// `0.25k`, `32K`, `512`, `2b`.
fn bytes(written: &str) -> Option<u64> {
    let written = written.trim_end_matches(['b', 'B']);
    let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let power = match &*written[digits.len()..].to_ascii_lowercase() {
        "" => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return None,
    };
    let bytes = number(digits.trim_end())? * 1024_f64.powi(power);
    (0.0..=9e18).contains(&bytes).then_some(bytes as u64)
}

/// In the largest unit that leaves quarters at most.
fn show_bytes(bytes: u64) -> String {
    if !bytes.is_multiple_of(256) || bytes == 0 {
        return format!("{bytes}b");
    }
    let mut amount = bytes;
    for unit in ["k", "M", "G", "T", "P"] {
        if !amount.is_multiple_of(1024) {
            let quarters = amount / 256;
            return if quarters.is_multiple_of(4) && amount >= 1024 {
                format!("{}{unit}", amount / 1024)
            } else {
                format!("{:.2}{unit}", amount as f64 / 1024.0)
            };
        }
        amount /= 1024;
        if !amount.is_multiple_of(256) {
            return format!("{amount}{unit}");
        }
    }
    format!("{bytes}b")
}

fn words(written: &str, former: &str) -> Result<String, String> {
    let mut kept: Vec<String> = match former {
        "none" => Vec::new(),
        former => former.split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
    };
    for word in written.split([',', ' ']).filter(|word| !word.is_empty()) {
        match word.split_at_checked(1) {
            _ if word == "none" => kept.clear(),
            Some(("+" | "-", name)) if !name.is_empty() => {
                kept.retain(|known| known[1..] != *name);
                kept.push(word.to_owned());
            }
            _ => return Err(format!("Syntax error ({word}): write +NAME or -NAME")),
        }
    }
    Ok(if kept.is_empty() { "none".to_owned() } else { kept.join(",") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(form: Form, written: &str, expect: Result<(&str, &str), &str>) {
        let got = form.read(written, "+a,-b");
        match (got, expect) {
            (Ok(value), Ok(expected)) => assert_eq!((&*value.shown, &*value.plain), expected, "{written}"),
            (Err(why), Err(part)) => assert!(why.contains(part), "{written}: {why}"),
            (got, expect) => panic!("{written}: {got:?} instead of {expect:?}"),
        }
    }

    #[test]
    fn values_are_shown_as_varnish_shows_them() {
        check(Seconds, "77", Ok(("77.000", "77.000")));
        check(Seconds, "1.5m", Ok(("90.000", "90.000")));
        check(Seconds, "xyz", Err("Invalid number (xyz)"));
        check(Seconds, "1e5", Err("Invalid number"));
        check(Real, "0.9", Ok(("0.9", "0.9")));
        check(Count("threads"), "5", Ok(("5", "5")));
        check(Count("threads"), "-5", Err("Not a number"));
        for (written, shown, plain) in [
            ("32k", "32k", "32768"),
            ("256", "0.25k", "256"),
            ("0.25G", "0.25G", "268435456"),
            ("65535", "65535b", "65535"),
            ("80M", "80M", "83886080"),
            ("1024k", "1M", "1048576"),
            ("768b", "0.75k", "768"),
            ("0", "0b", "0"),
        ] {
            check(Bytes, written, Ok((shown, plain)));
        }
        check(Bytes, "12q", Err("Invalid number"));
        check(Bytes, "-1", Err("Invalid number"));
        check(Switch, "TRUE", Ok(("on", "on")));
        check(Switch, "maybe", Err("\"on\" or \"off\""));
        check(Words, "+c,-a", Ok(("-b,+c,-a", "-b,+c,-a")));
        check(Words, "none", Ok(("none", "none")));
        check(Words, "c", Err("write +NAME"));
    }

    #[test]
    fn bounds_are_kept() {
        let row = Parameter { name: "a", form: Bytes, default: "8k", min: "40b", max: "1M" };
        let check = |written: &str, expect: Result<(), &str>| {
            let read = Bytes.read(written, "").unwrap();
            assert_eq!(row.check_bounds(&read), expect.map_err(str::to_owned), "{written}");
        };
        check("40", Ok(()));
        check("39", Err("Must be at least 40b"));
        check("2M", Err("Must be no more than 1M"));
    }
}
