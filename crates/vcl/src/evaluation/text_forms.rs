//! How values look as texts, and texts in other letters. Numbers are written on the stack and copied once.

use std::io::Write;

use super::http_dates;
use crate::plain_values::{BackendRef, Fault, Plain};
use crate::scope_arena::Arena;

pub fn of_bool(truth: bool) -> &'static str {
    if truth { "true" } else { "false" }
}

/// The value as text, as VCL writes it.
pub fn of_plain<'a>(
    plain: Plain<'a>,
    arena: &'a Arena,
    backend_name: impl Fn(BackendRef) -> Result<&'a [u8], Fault>,
) -> Result<Option<&'a [u8]>, Fault> {
    match plain {
        Plain::Text(text) => Ok(text),
        Plain::Storage(name) => name.map(|name| arena.join(&[b"storage.", name])).transpose(),
        Plain::Bool(truth) => Ok(Some(of_bool(truth).as_bytes())),
        Plain::Int(number) | Plain::Bytes(number) => of_int(number, arena).map(Some),
        Plain::Real(number) | Plain::Duration(number) => of_real(number, arena),
        Plain::Time(seconds) => {
            let date = http_dates::format(seconds)?;
            arena.copy(&date).map(Some)
        }
        Plain::Ip(ip) => written(arena, format_args!("{}", ip.address)),
        Plain::Blob(bytes) => base64(bytes.unwrap_or_default(), arena).map(Some),
        Plain::Backend(BackendRef::None) => Ok(None),
        Plain::Backend(backend) => backend_name(backend).map(Some),
    }
}

/// The largest integer that has a text: the fifteen digits of RFC 8941 §3.3.1.
const INT_MAX: u64 = 999_999_999_999_999;
/// The same for a number with a point: twelve digits before it and three behind, RFC 8941 §3.3.2.
const REAL_MAX: f64 = 999_999_999_999.999;

/// Three digits behind the point. What has more digits than VCL can write fails, as it does there.
fn of_real(number: f64, arena: &Arena) -> Result<Option<&[u8]>, Fault> {
    if !number.is_finite() || number.abs() > REAL_MAX {
        return Err(Fault::new(format!("REAL overflow converting to string ({number:e})")));
    }
    written(arena, format_args!("{number:.3}"))
}

fn of_int(number: i64, arena: &Arena) -> Result<&[u8], Fault> {
    if number.unsigned_abs() > INT_MAX {
        return Err(Fault::new(format!("INT overflow converting to string ({number:X})")));
    }
    decimal(number, arena)
}

fn decimal(number: i64, arena: &Arena) -> Result<&[u8], Fault> {
    // A sign and nineteen digits.
    let (mut room, mut at, mut rest) = ([0u8; 20], 20, number.unsigned_abs());
    loop {
        at -= 1;
        room[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        at -= 1;
        room[at] = b'-';
    }
    arena.copy(&room[at..])
}

fn written<'a>(arena: &'a Arena, text: std::fmt::Arguments<'_>) -> Result<Option<&'a [u8]>, Fault> {
    let mut room = [0u8; 64];
    let mut rest = &mut room[..];
    // The longest is an IPv6 address with 45 bytes.
    rest.write_fmt(text).map_err(|_| Fault::new("a number is too long to be written"))?;
    let left = rest.len();
    arena.copy(&room[..64 - left]).map(Some)
}

/// `:Zm9v:`.
fn base64<'a>(bytes: &[u8], arena: &'a Arena) -> Result<&'a [u8], Fault> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let made = arena.zeroed(bytes.len().div_ceil(3) * 4 + 2)?;
    let last = made.len() - 1;
    (made[0], made[last]) = (b':', b':');
    for (out, group) in made[1..last].chunks_exact_mut(4).zip(bytes.chunks(3)) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for (place, digit) in out.iter_mut().enumerate() {
            *digit = if place <= group.len() { ALPHABET[(bits >> (18 - 6 * place) & 63) as usize] } else { b'=' };
        }
    }
    Ok(made)
}

/// The same text when it has no small letters.
pub fn upper<'a>(text: &'a [u8], arena: &'a Arena) -> Result<&'a [u8], Fault> {
    if !text.iter().any(u8::is_ascii_lowercase) {
        return Ok(text);
    }
    let made = arena.zeroed(text.len())?;
    made.copy_from_slice(text);
    made.make_ascii_uppercase();
    Ok(made)
}

/// The same text when it has no capitals.
pub fn lower<'a>(text: &'a [u8], arena: &'a Arena) -> Result<&'a [u8], Fault> {
    if !text.iter().any(u8::is_ascii_uppercase) {
        return Ok(text);
    }
    let made = arena.zeroed(text.len())?;
    made.copy_from_slice(text);
    made.make_ascii_lowercase();
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain_values::Ip;

    #[test]
    fn values_are_written_as_in_varnish() {
        let arena = Arena::default();
        let check = |plain: Plain<'static>, expect: Option<&str>| {
            let made = of_plain(plain, &arena, |_| Ok(b"b")).expect("it can be written");
            assert_eq!(made.map(String::from_utf8_lossy).as_deref(), expect, "{plain:?}");
        };
        check(Plain::Duration(5400.0), Some("5400.000"));
        check(Plain::Real(-1.5), Some("-1.500"));
        check(Plain::Bytes(1 << 20), Some("1048576"));
        check(Plain::Bool(true), Some("true"));
        check(Plain::Time(1577836800.0), Some("Wed, 01 Jan 2020 00:00:00 GMT"));
        check(Plain::Ip(Ip { address: "2001:db8::1".parse().expect("ok"), port: 80 }), Some("2001:db8::1"));
        check(Plain::Blob(Some(b"foo")), Some(":Zm9v:"));
        check(Plain::Blob(Some(b"fo")), Some(":Zm8=:"));
        check(Plain::Blob(Some(b"f")), Some(":Zg==:"));
        check(Plain::Blob(None), Some("::"));
        check(Plain::Backend(BackendRef::None), None);
        check(Plain::Int(-999_999_999_999_999), Some("-999999999999999"));
        check(Plain::Real(999_999_999_999.999), Some("999999999999.999"));
        let too_large = |plain| of_plain(plain, &arena, |_| Ok(b"")).expect_err("it has too many digits").to_string();
        assert!(too_large(Plain::Int(1_000_000_000_000_000)).contains("INT overflow converting to string"));
        assert!(too_large(Plain::Int(i64::MIN)).contains("INT overflow"));
        assert!(too_large(Plain::Bytes(i64::MAX)).contains("INT overflow"));
        assert!(too_large(Plain::Duration(1.2e12)).contains("REAL overflow converting to string"));
        assert!(too_large(Plain::Real(-1e12)).contains("REAL overflow"));
    }

    #[test]
    fn letters_change_only_where_they_must() {
        let arena = Arena::default();
        assert_eq!(upper(b"a\xc3\xa9B", &arena), Ok(b"A\xc3\xa9B".as_slice()));
        assert_eq!(lower(b"ab", &arena), Ok(b"ab".as_slice()));
        assert_eq!(arena.used_bytes(), 4);
    }
}
