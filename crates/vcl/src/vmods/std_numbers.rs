//! The conversions of vmod std: a number from a text or from another number, or the fallback, or a failure.

use super::Arguments;
use crate::plain_values::{Fault, Plain};
use crate::types::seconds_of;

/// Integers have 15 digits.
const INTEGER_END: i64 = 1_000_000_000_000_000;

/// As an integer of VCL, cut off.
pub fn integer_of(number: f64) -> Option<i64> {
    whole(number).filter(|number| number.abs() < INTEGER_END)
}

/// As a whole number, cut off; `None` beyond what 64 bits hold.
pub fn whole(number: f64) -> Option<i64> {
    (number.abs() < i64::MAX as f64).then_some(number as i64)
}

/// What one of the arguments gives, of which exactly one must be there; 0 is the text and 1 the fallback.
fn converted<'a>(
    name: &str,
    given: &Arguments<'_, 'a>,
    of_text: impl Fn(&[u8]) -> Option<Plain<'a>>,
    of_number: impl Fn(Plain<'a>) -> Option<Plain<'a>>,
) -> Result<Plain<'a>, Fault> {
    let numbers = (2..given.0.len()).filter_map(|index| given.plain(index));
    let count = numbers.clone().count() + usize::from(given.is_given(0));
    if count != 1 {
        let what = if count == 0 { "needs a value" } else { "takes one value" };
        return Err(Fault::new(format!("{name} {what} to convert, and perhaps a fallback")));
    }
    let made = match numbers.clone().next() {
        Some(number) => of_number(number),
        None => given.text(0).and_then(of_text),
    };
    made.or_else(|| given.plain(1)).ok_or_else(|| {
        let shown = given.bytes(0);
        Fault::new(format!("{name}: \"{}\" cannot be converted, and there is no fallback", shown.escape_ascii()))
    })
}

pub fn duration<'a>(given: &Arguments<'_, 'a>) -> Result<Plain<'a>, Fault> {
    let of_text = |text: &[u8]| {
        let (number, unit) = measure(text, usize::MAX)?;
        Some(Plain::Duration(number * seconds_of(unit)?))
    };
    converted("std.duration", given, of_text, |number| Some(Plain::Duration(as_real(number)?)))
}

pub fn bytes<'a>(given: &Arguments<'_, 'a>) -> Result<Plain<'a>, Fault> {
    let of_text = |text: &[u8]| {
        let (number, unit) = measure(text, 3)?;
        let unit = unit.to_ascii_lowercase();
        let letter = unit.strip_suffix('b').unwrap_or(&unit);
        let power = ["", "k", "m", "g", "t", "p"].iter().position(|known| *known == letter)?;
        let whole_needed = power == 0 && number.fract() != 0.0;
        let bytes = whole(number * 1024f64.powi(power as i32))?;
        (bytes >= 0 && !number.is_sign_negative() && !whole_needed).then_some(Plain::Bytes(bytes))
    };
    let of_number = |number| whole(as_real(number)?).filter(|bytes| *bytes >= 0).map(Plain::Bytes);
    converted("std.bytes", given, of_text, of_number)
}

pub fn integer<'a>(given: &Arguments<'_, 'a>) -> Result<Plain<'a>, Fault> {
    let of_text = |text: &[u8]| {
        let (number, unit) = measure(text, usize::MAX)?;
        // Nothing is cut off: what has a part that is not whole is no integer.
        (unit.is_empty() && number.fract() == 0.0).then_some(Plain::Int(number as i64))
    };
    let of_number = |number| match number {
        Plain::Bool(truth) => Some(Plain::Int(i64::from(truth))),
        Plain::Bytes(bytes) => Some(Plain::Int(bytes)),
        other => integer_of(as_real(other)?).map(Plain::Int),
    };
    converted("std.integer", given, of_text, of_number)
}

pub fn real<'a>(given: &Arguments<'_, 'a>) -> Result<Plain<'a>, Fault> {
    let of_text = |text: &[u8]| match measure(text, usize::MAX)? {
        (number, "") => Some(Plain::Real(number)),
        _ => None,
    };
    converted("std.real", given, of_text, |number| as_real(number).map(Plain::Real))
}

pub fn time<'a>(given: &Arguments<'_, 'a>, parse: fn(&[u8]) -> Option<f64>) -> Result<Plain<'a>, Fault> {
    let of_text = |text: &[u8]| parse(text).map(Plain::Time);
    converted("std.time", given, of_text, |number| as_real(number).map(Plain::Time))
}

fn as_real(number: Plain<'_>) -> Option<f64> {
    let real = match number {
        Plain::Int(number) | Plain::Bytes(number) => number as f64,
        Plain::Bool(truth) => f64::from(u8::from(truth)),
        Plain::Real(number) | Plain::Duration(number) | Plain::Time(number) => number,
        _ => return None,
    };
    real.is_finite().then_some(real)
}

fn all_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A number in VCL's manner and the word behind it, with blanks around both.
fn measure(text: &[u8], fraction_digits_max: usize) -> Option<(f64, &str)> {
    let text = std::str::from_utf8(text).ok()?.trim_ascii();
    let magnitude = text.strip_prefix('-').unwrap_or(text);
    let end = magnitude.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(magnitude.len());
    let (number, unit) = magnitude.split_at(end);
    let (digits, fraction) = number.split_once('.').unwrap_or((number, ""));
    // A number without a point is an integer.
    let digits_max = if number.contains('.') { 12 } else { 15 };
    let good = digits.len() <= digits_max && fraction.len() <= fraction_digits_max && all_digits(fraction);
    if !good || digits.is_empty() && fraction.is_empty() {
        return None;
    }
    // Three digits behind the point count.
    let fraction = &fraction[..fraction.len().min(3)];
    let number: f64 = format!("0{digits}.{fraction}0").parse().ok()?;
    Some((if magnitude.len() < text.len() { -number } else { number }, unit.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::super::Argument;
    use super::*;

    type Conversion = fn(&Arguments<'_, 'static>) -> Result<Plain<'static>, Fault>;

    fn check(convert: Conversion, fallback: Plain<'static>, text: &'static str, expect: Option<Plain<'static>>) {
        let arguments = [Argument::Plain(Plain::Text(Some(text.as_bytes()))), Argument::Plain(fallback)];
        assert_eq!(convert(&Arguments(&arguments)), Ok(expect.unwrap_or(fallback)), "{text}");
        let arguments = [Argument::Plain(Plain::Text(Some(text.as_bytes()))), Argument::Absent];
        assert_eq!(convert(&Arguments(&arguments)).ok(), expect, "{text}");
    }

    /// Each of these was asked of Varnish 7.1.
    #[test]
    fn texts_become_numbers_or_the_fallback() {
        let int = |text, expect: Option<i64>| check(integer, Plain::Int(7), text, expect.map(Plain::Int));
        int("12", Some(12));
        int(" 12 ", Some(12));
        int("-12", Some(-12));
        int("1.", Some(1));
        int("5.000", Some(5));
        int("5.0000", Some(5));
        int("-5.0", Some(-5));
        int(".0", Some(0));
        int("123456789012.0", Some(123456789012));
        int("123456789012345", Some(123456789012345));
        [
            "1234567890123456",
            "12abc",
            "",
            "+12",
            "1e3",
            "0x10",
            "- 5",
            "-1.9",
            ".",
            ".9",
            "1.9999",
            "-",
            "1.9",
            "5.500",
            "0.001",
            "5.9 ",
            "1234567890123.0",
        ]
        .iter()
        .for_each(|text| int(text, None));
        let float = |text, expect: Option<f64>| check(real, Plain::Real(7.0), text, expect.map(Plain::Real));
        float(" 1.5 ", Some(1.5));
        float("-.5", Some(-0.5));
        float("5.", Some(5.0));
        float("123456789012.1234", Some(123456789012.123));
        ["+1.5", "1e3", "1.5x", "1234567890123.5", "", "1,5", "."].iter().for_each(|text| float(text, None));
        let time = |text, expect: Option<f64>| check(duration, Plain::Duration(7.0), text, expect.map(Plain::Duration));
        time("1.5h", Some(5400.0));
        time("1.5 h ", Some(5400.0));
        time(" 10s ", Some(10.0));
        time("-10s", Some(-10.0));
        time(".5s", Some(0.5));
        time("1y", Some(31536000.0));
        ["10", "10S", "s", "5 m s", "+5s"].iter().for_each(|text| time(text, None));
        let size = |text, expect: Option<i64>| check(bytes, Plain::Bytes(7), text, expect.map(Plain::Bytes));
        size("1.5KB", Some(1536));
        size("10 M", Some(10 << 20));
        size(" 1 kb ", Some(1024));
        size("1b", Some(1));
        size("999999999999999b", Some(999_999_999_999_999));
        size("0.5k", Some(512));
        ["1.5B", "1.5", "10MiB", "-1k", "0.0001k", "1x"].iter().for_each(|text| size(text, None));
    }

    #[test]
    fn exactly_one_value_is_converted() {
        let none = [Argument::Absent, Argument::Absent, Argument::Absent];
        assert!(integer(&Arguments(&none)).expect_err("there is none").reason().contains("needs a value"));
        let two = [Argument::Plain(Plain::Text(Some(b"5"))), Argument::Absent, Argument::Plain(Plain::Real(1.0))];
        assert!(integer(&Arguments(&two)).is_err());
        let cut = [Argument::Absent, Argument::Absent, Argument::Plain(Plain::Real(-1.9))];
        assert_eq!(integer(&Arguments(&cut)), Ok(Plain::Int(-1)));
        let digits_too_many = [Argument::Absent, Argument::Plain(Plain::Int(3)), Argument::Plain(Plain::Real(1e15))];
        assert_eq!(integer(&Arguments(&digits_too_many)), Ok(Plain::Int(3)));
        let huge = [Argument::Absent, Argument::Plain(Plain::Int(3)), Argument::Plain(Plain::Real(1e30))];
        assert_eq!(integer(&Arguments(&huge)), Ok(Plain::Int(3)));
    }
}
