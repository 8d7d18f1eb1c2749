//! An explanation as a field of an answer has it: a dictionary of structured fields (RFC 9651).

use crate::explain::Explanation;
use crate::limits::EXPLAINED_BYTES_MAX;

/// As far as there is room.
pub(crate) fn line(explained: &Explanation) -> String {
    let mut line = format!("would-be={}", explained.would_be.word());
    let mut add = |name: &str, text: &str| {
        let member = format!(", {name}={}", quoted(text));
        if !text.is_empty() && line.len() + member.len() <= EXPLAINED_BYTES_MAX {
            line.push_str(&member);
        }
    };
    if let Some(route) = &explained.route {
        add("route", &route.name);
        add("target", &route.target);
    }
    add("key", explained.key.as_deref().unwrap_or_default());
    if let Some((at, because)) = &explained.chosen {
        let stored = &explained.stored[*at];
        let until = rules::date::write_date((stored.fresh_until_wall_ms / 1_000) as i64);
        add("fresh-until", &String::from_utf8_lossy(&until));
        add("fresh-by", &stored.fresh_by);
        add("age", &format!("{} s", stored.age_s));
        add("chosen", because);
    }
    if let Some(reason) = explained.reasons.first() {
        add("because", reason.reason.token());
        add("about", reason.about.as_deref().unwrap_or_default());
        add("means", reason.means());
        add("way-out", reason.way_out().unwrap_or_default());
    }
    add("note", &explained.notes.join("; "));
    line
}

/// A String, or a Display String where not all of it is ASCII.
fn quoted(text: &str) -> String {
    if text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic()) {
        return format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
    }
    let is_plain = |byte: u8| (byte == b' ' || byte.is_ascii_graphic()) && !b"%\"".contains(&byte);
    let encoded = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02x}") };
    format!("%\"{}\"", text.bytes().map(encoded).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_structured_fields() {
        assert_eq!(quoted("a \"b\" \\"), r#""a \"b\" \\""#);
        assert_eq!(quoted("[…] 100 %"), "%\"[%e2%80%a6] 100 %25\"");
        assert_eq!(quoted("é\"\n"), "%\"%c3%a9%22%0a\"");
    }
}
