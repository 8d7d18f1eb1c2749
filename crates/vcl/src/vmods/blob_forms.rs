//! The ways to write bytes that vmod blob knows.

use crate::plain_values::Fault;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    Identity,
    Base64,
    Base64Url,
    Base64UrlNoPad,
    /// What Cloudflare's makes of it: `-` and `~`, and `_` for padding.
    Base64Cf,
    Hex,
    Url,
}

impl Form {
    pub fn by_name(name: Option<&str>) -> Form {
        match name {
            Some("BASE64") => Form::Base64,
            Some("BASE64URL") => Form::Base64Url,
            Some("BASE64URLNOPAD") => Form::Base64UrlNoPad,
            Some("BASE64CF") => Form::Base64Cf,
            Some("HEX") => Form::Hex,
            Some("URL") => Form::Url,
            _ => Form::Identity,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Form::Identity => "IDENTITY",
            Form::Base64 => "BASE64",
            Form::Base64Url => "BASE64URL",
            Form::Base64UrlNoPad => "BASE64URLNOPAD",
            Form::Base64Cf => "BASE64CF",
            Form::Hex => "HEX",
            Form::Url => "URL",
        }
    }

    /// The last two digits, and what pads.
    fn base64(self) -> (u8, u8, Option<u8>) {
        match self {
            Form::Base64Url => (b'-', b'_', Some(b'=')),
            Form::Base64UrlNoPad => (b'-', b'_', None),
            Form::Base64Cf => (b'-', b'~', Some(b'_')),
            _ => (b'+', b'/', Some(b'=')),
        }
    }
}

/// Of the letters that are digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Lower,
    Upper,
}

impl Case {
    pub fn by_name(form: Form, name: Option<&str>) -> Result<Case, Fault> {
        let has_case = matches!(form, Form::Hex | Form::Url);
        match name {
            Some("LOWER" | "UPPER") if !has_case => {
                let (case, form) = (name.unwrap_or_default(), form.name());
                Err(Fault::new(format!("vmod blob error: case {case} is illegal with encoding {form}")))
            }
            Some("UPPER") => Ok(Case::Upper),
            _ => Ok(Case::Lower),
        }
    }
}

pub fn encode(form: Form, case: Case, bytes: &[u8]) -> Vec<u8> {
    let hex = |byte: u8| {
        let digit = |value: u8| match (value, case) {
            (0..=9, _) => b'0' + value,
            (_, Case::Lower) => b'a' + value - 10,
            (_, Case::Upper) => b'A' + value - 10,
        };
        [digit(byte >> 4), digit(byte & 15)]
    };
    match form {
        Form::Identity => bytes.to_vec(),
        Form::Hex => bytes.iter().flat_map(|byte| hex(*byte)).collect(),
        Form::Url => {
            let mut made = Vec::with_capacity(bytes.len());
            for byte in bytes {
                if byte.is_ascii_alphanumeric() || b"-_.~".contains(byte) {
                    made.push(*byte);
                } else {
                    made.push(b'%');
                    made.extend(hex(*byte));
                }
            }
            made
        }
        _ => base64_of(bytes, form),
    }
}

const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

fn base64_of(bytes: &[u8], form: Form) -> Vec<u8> {
    let (plus, slash, pad) = form.base64();
    let digit = |value: u32| match value {
        62 => plus,
        63 => slash,
        value => ALPHABET[value as usize],
    };
    let mut made = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        made.extend((0..=group.len()).map(|place| digit(bits >> (18 - 6 * place) & 63)));
        made.extend(pad.iter().copied().cycle().take(if pad.is_some() { 3 - group.len() } else { 0 }));
    }
    made
}

/// What of a text that cannot be decoded is quoted.
const QUOTED_BYTES_MAX: usize = 40;

/// So many of the first bytes, or all if none is said. The error quotes how it begins.
pub fn decode(form: Form, given: &[u8], begins: &[u8], length: i64) -> Result<Vec<u8>, Fault> {
    let text = match usize::try_from(length) {
        Ok(length) if length > 0 => &given[..length.min(given.len())],
        _ => given,
    };
    let made = match form {
        Form::Identity => Some(text.to_vec()),
        Form::Hex => from_hex(text),
        Form::Url => from_url(text),
        _ => from_base64(text, form),
    };
    made.ok_or_else(|| {
        let start = &begins[..begins.len().min(QUOTED_BYTES_MAX)];
        let start = start.escape_ascii();
        Fault::new(format!("vmod blob error: cannot decode, illegal encoding beginning with \"{start}\""))
    })
}

fn hex_value(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// With an odd number of digits a zero stands before them.
fn from_hex(text: &[u8]) -> Option<Vec<u8>> {
    let (first, rest) = text.split_at(text.len() % 2);
    let pairs = rest.chunks_exact(2).map(|pair| Some(hex_value(pair[0])? << 4 | hex_value(pair[1])?));
    first.iter().map(|digit| hex_value(*digit)).chain(pairs).collect()
}

fn from_url(text: &[u8]) -> Option<Vec<u8>> {
    let mut made = Vec::with_capacity(text.len());
    let mut rest = text.iter();
    while let Some(byte) = rest.next() {
        made.push(match byte {
            b'%' => hex_value(*rest.next()?)? << 4 | hex_value(*rest.next()?)?,
            byte => *byte,
        });
    }
    Some(made)
}

/// Padding may be left away, but nothing may stand behind it.
fn from_base64(text: &[u8], form: Form) -> Option<Vec<u8>> {
    let (plus, slash, pad) = form.base64();
    let end = text.iter().position(|byte| Some(*byte) == pad).unwrap_or(text.len());
    let padding = &text[end..];
    if padding.len() > 2 || padding.iter().any(|byte| Some(*byte) != pad) {
        return None;
    }
    let mut made = Vec::with_capacity(end / 4 * 3 + 2);
    let (mut bits, mut count) = (0u32, 0);
    for byte in &text[..end] {
        let value = match *byte {
            byte if byte == plus => 62,
            byte if byte == slash => 63,
            byte => ALPHABET.iter().position(|known| *known == byte)? as u32,
        };
        bits = bits << 6 | value;
        count += 6;
        if count >= 8 {
            count -= 8;
            made.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of these was asked of Varnish 7.1.
    #[test]
    fn bytes_are_written_and_read() {
        let check = |form, case, bytes: &[u8], text: &str| {
            assert_eq!(encode(form, case, bytes), text.as_bytes(), "{form:?}");
            assert_eq!(decode(form, text.as_bytes(), b"", 0).ok().as_deref(), Some(bytes), "{form:?} {text}");
        };
        check(Form::Hex, Case::Lower, b"fooba", "666f6f6261");
        check(Form::Hex, Case::Upper, b"\xde\xad\xbe\xef", "DEADBEEF");
        check(Form::Base64Url, Case::Lower, b"\xfb\xef\xff", "--__");
        check(Form::Base64UrlNoPad, Case::Lower, b"f", "Zg");
        check(Form::Base64Cf, Case::Lower, b"\xfb\xef\xfef", "--~-Zg__");
        check(Form::Url, Case::Lower, b"a b/~-_.*Z%", "a%20b%2f~-_.%2aZ%25");
        check(Form::Url, Case::Upper, b"a/b", "a%2Fb");
        check(Form::Base64, Case::Lower, b"", "");
        let read = |form, text: &str, expect: Option<&[u8]>| {
            assert_eq!(decode(form, text.as_bytes(), b"", 0).ok().as_deref(), expect, "{form:?} {text}");
        };
        read(Form::Hex, "666f6", Some(b"\x06\x66\xf6"));
        read(Form::Hex, "xx", None);
        read(Form::Url, "a%", None);
        read(Form::Url, "a%zz", None);
        read(Form::Base64, "Zm9vYg", Some(b"foob"));
        read(Form::Base64, "Zm9vYg=", Some(b"foob"));
        read(Form::Base64, "Zm9v\\nYg==", None);
        read(Form::Base64, "Z", Some(b""));
        read(Form::Base64UrlNoPad, "Zg==", None);
        read(Form::Base64Cf, "Zg_", Some(b"f"));
    }
}
