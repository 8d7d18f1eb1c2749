//! What no host would take: lines with control bytes, statuses that are none, empty URLs. One place says so for all, and
//! the reason names what was set.

use crate::plain_values::{Fault, Plain};
use crate::variables::VariableId;

/// What can stand in a line of a head: no control byte but the tab. A line break would begin another line.
pub fn lawful_line<'a>(name: &[u8], value: &'a [u8]) -> Result<&'a [u8], Fault> {
    // To the end without a branch: many bytes at once.
    let is_bad = |byte: u8| (byte < b' ') & (byte != b'\t') | (byte == 0x7f);
    if value.iter().fold(false, |bad, byte| bad | is_bad(*byte)) {
        return Err(bad_line(name, value));
    }
    Ok(value)
}

/// A header's value as it is kept: blanks before it are the colon's. Those behind it stay: programs that drop cookies one
/// after the other look for `; `.
#[inline]
pub fn header_value(value: &[u8]) -> &[u8] {
    let blanks_count = value.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    &value[blanks_count..]
}

#[cold]
fn bad_line(name: &[u8], value: &[u8]) -> Fault {
    let shown = &value[..value.len().min(80)];
    Fault::new(format!("{} cannot be \"{}\": it holds a control byte", name.escape_ascii(), shown.escape_ascii()))
}

/// In Varnish's words, which people search their logs for.
pub fn lawful_status(name: &str, status: i64) -> Result<u16, Fault> {
    let why = match u16::try_from(status) {
        Ok(lawful) if lawful % 1000 >= 100 => return Ok(lawful),
        Ok(_) => format!("illegal {name} ({status}) (..0##)"),
        Err(_) if status < 0 => format!("{name} ({status}) is negative"),
        Err(_) => format!("{name} ({status}) > 65535"),
    };
    Err(Fault::new(format!("{why}: it is 100 to 65535, its last three digits 100 to 999")))
}

/// RFC 9110 §5.6.2: what a method is made of.
fn is_token(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// What every host would refuse.
pub fn lawful_value(of: VariableId, value: Plain<'_>) -> Result<Plain<'_>, Fault> {
    match (of, value) {
        (VariableId::RESP_STATUS | VariableId::BERESP_STATUS, Plain::Int(status)) => {
            lawful_status(of.get().name, status)?;
        }
        (VariableId::CLIENT_IDENTITY, Plain::Text(text)) => return Ok(Plain::Text(Some(text.unwrap_or_default()))),
        (VariableId::REQ_METHOD | VariableId::BEREQ_METHOD, Plain::Text(text)) => {
            let text = text.unwrap_or_default();
            if text.is_empty() {
                return Err(Fault::new(format!("Setting {} to empty string", of.get().name)));
            }
            if !is_token(text) {
                let name = of.get().name;
                return Err(Fault::new(format!("{name} cannot be \"{}\": it is no token", text.escape_ascii())));
            }
        }
        (VariableId::REQ_URL | VariableId::BEREQ_URL, Plain::Text(text)) => {
            let text = text.unwrap_or_default();
            if text.is_empty() {
                return Err(Fault::new(format!("Setting {} to empty string", of.get().name)));
            }
            if text.contains(&b' ') || text.contains(&b'\t') {
                return Err(Fault::new(format!("{} cannot hold a blank: \"{}\"", of.get().name, text.escape_ascii())));
            }
            lawful_line(of.get().name.as_bytes(), text)?;
        }
        (VariableId::RESP_REASON | VariableId::BERESP_REASON, Plain::Text(text)) => {
            let text = text.unwrap_or_default();
            if text.is_empty() {
                return Err(Fault::new(format!("Setting {} to empty string", of.get().name)));
            }
            lawful_line(of.get().name.as_bytes(), text)?;
        }
        (_, Plain::Real(number) | Plain::Duration(number) | Plain::Time(number)) if number.is_nan() => {
            return Err(Fault::new(format!("{} cannot be what is no number", of.get().name)));
        }
        _ => {}
    }
    Ok(value)
}
