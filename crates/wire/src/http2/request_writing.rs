//! The head of a request to an origin as a header block (RFC 9113 §8.3.1): the counterpart of `request_fields`.
//!
//! What could be read as something else is not written: a block has no line ends that could be smuggled, but the origin may hand on as
//! HTTP/1 what it reads here.

use message::{FieldName, FieldsView};

use super::hpack::{NOT_IN_VALUE, PseudoFields, kinds_of, write_fields, write_known_field, write_pseudo_fields};
use crate::connection_options::is_token;
use crate::{Refusal, refusals};

/// Appends the block of a request. Host, which the line says, and the fields of one connection are left out (RFC 9113 §8.2.2), but for
/// `TE: trailers`. A refusal is about a field, or a line, that HTTP/2 has no place for; then nothing must be sent.
pub fn write_request_block(
    line: &PseudoFields<'_>,
    fields: FieldsView<'_>,
    block: &mut Vec<u8>,
) -> Result<(), Refusal> {
    check_line(line)?;
    for field in fields.iter() {
        if !is_token(field.name_text) {
            return Err(refusals::FIELD_NAME_INVALID);
        }
        let has_blank_end = matches!(field.value, [b' ' | b'\t', ..] | [.., b' ' | b'\t']);
        if kinds_of(field.value) & NOT_IN_VALUE != 0 || has_blank_end {
            return Err(refusals::FIELD_VALUE_INVALID);
        }
    }
    write_pseudo_fields(line, block);
    write_fields(fields, block);
    if fields.has_token(FieldName::Te, "trailers") {
        write_known_field(FieldName::Te, b"trailers", block);
    }
    Ok(())
}

fn check_line(line: &PseudoFields<'_>) -> Result<(), Refusal> {
    if !is_token(line.method) {
        return Err(refusals::METHOD_INVALID);
    }
    let path = line.target.map_or(&b"/"[..], |(_, path)| path);
    if !(path.starts_with(b"/") || path == b"*") || path.iter().any(|octet| *octet <= b' ' || *octet == 0x7f) {
        return Err(refusals::TARGET_INVALID);
    }
    let is_authority = |octet: &u8| octet.is_ascii_graphic() && !matches!(octet, b'/' | b'?' | b'#' | b'@');
    match line.authority {
        Some(authority) if authority.is_empty() || !authority.iter().all(is_authority) => Err(refusals::HOST_INVALID),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use message::{Fields, Scheme};

    use super::*;
    use crate::http2::hpack::{BlockDecoder, ListLimits};

    const LINE: PseudoFields<'static> = PseudoFields {
        method: b"GET",
        target: Some((Scheme::Https, b"/a?b")),
        authority: Some(b"t.test:8443"),
        protocol: None,
    };

    /// What is read of the block, or the token of the refusal.
    fn check(line: &PseudoFields<'_>, fields: &[(&str, &str)], expect: &str) {
        let mut given = Fields::default();
        fields.iter().for_each(|(name, value)| given.push_named(name.as_bytes(), value.as_bytes()));
        let (mut block, mut lines) = (Vec::new(), String::new());
        if let Err(refusal) = write_request_block(line, given.view(), &mut block) {
            assert_eq!((refusal.token, block.len()), (expect, 0), "{fields:?}");
            return;
        }
        let wide = ListLimits { list_bytes_max: 1 << 20, lines_max: 1000 };
        let excess = BlockDecoder::new().decode(&block, wide, &mut Vec::new(), |line, text| {
            let (name, value) = (&text[line.at..line.value_at()], &text[line.value_at()..line.end()]);
            lines += &format!("{}={} ", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            true
        });
        assert_eq!((excess, lines.trim_end()), (Ok(None), expect));
    }

    const SAID: &str = ":method=GET :scheme=https :path=/a?b :authority=t.test:8443";

    #[test]
    fn the_line_comes_first_and_host_is_said_by_it() {
        let fields = [("Host", "other.test"), ("X-A", "1"), ("Cookie", "a=b; c=d")];
        check(&LINE, &fields, &format!("{SAID} x-a=1 cookie=a=b; c=d"));
        let post = PseudoFields { method: b"POST", target: Some((Scheme::Http, b"*")), authority: None, ..LINE };
        check(&post, &[], ":method=POST :scheme=http :path=*");
        let connect = PseudoFields { method: b"CONNECT", target: None, ..LINE };
        check(&connect, &[], ":method=CONNECT :authority=t.test:8443");
        let extended = PseudoFields { method: b"CONNECT", protocol: Some(b"websocket"), ..LINE };
        let said = ":method=CONNECT :scheme=https :path=/a?b :authority=t.test:8443 :protocol=websocket";
        check(&extended, &[], said);
    }

    #[test]
    fn fields_of_one_connection_are_left_out() {
        let fields = [
            ("Connection", "close"),
            ("Transfer-Encoding", "chunked"),
            ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "close"),
            ("Upgrade", "h2c"),
            ("HTTP2-Settings", "AAA"),
            ("TE", "gzip"),
        ];
        check(&LINE, &fields, SAID);
        check(&LINE, &[("TE", "gzip, trailers")], &format!("{SAID} te=trailers"));
    }

    #[test]
    fn what_could_be_read_as_something_else_is_not_written() {
        for value in ["a\r\nx: y", "a\nb", "a\0b", "a\x7fb", " a", "a\t"] {
            check(&LINE, &[("X-A", value)], "field-value-invalid");
        }
        for name in ["", "x y", ":path", "x:", "x\r\ny"] {
            check(&LINE, &[(name, "v")], "field-name-invalid");
        }
        for path in [&b""[..], b"a", b"/a b", b"/a\r\nx: y", b"/\x7f"] {
            check(&PseudoFields { target: Some((Scheme::Https, path)), ..LINE }, &[], "target-invalid");
        }
        for authority in [&b""[..], b"a b", b"a\r\nb", b"u@a", b"a/b"] {
            check(&PseudoFields { authority: Some(authority), ..LINE }, &[], "host-invalid");
        }
        check(&PseudoFields { method: b"GET /x", ..LINE }, &[], "method-invalid");
    }
}
