//! Heads as HPACK that is valid on any connection: references into the static table, and literals that are not indexed.
//!
//! A stored response's head is encoded once and sent to every client as it is, whatever their dynamic tables hold. The
//! same writers make the small tail that differs each time. What the fields mean is unknown here, but for those that
//! HTTP/2 forbids and those that are secrets.

use message::{DIGITS_MAX, FieldName, FieldsView, Scheme, Status, decimal};

use super::static_table::{INDEX_OF_FIELD, STATIC_TABLE, index_of_other};
use super::{huffman, prefix_integer};

const INDEXED: u8 = 0x80;
const NOT_INDEXED: u8 = 0x00;
const NEVER_INDEXED: u8 = 0x10;
const CODED: u8 = 0x80;

/// Where the statuses of the static table begin: 200, 204, 206, 304, 400, 404, 500.
const STATUS_INDEX: u8 = 8;
const STATUSES: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];

/// Appends `:status`. It stands before all fields.
pub fn write_status(status: Status, out: &mut Vec<u8>) {
    if let Some(place) = STATUSES.iter().position(|known| *known == status.0) {
        return out.push(INDEXED | (STATUS_INDEX + place as u8));
    }
    prefix_integer::write(usize::from(STATUS_INDEX), 4, NOT_INDEXED, out);
    let mut digits = [0; DIGITS_MAX];
    write_string(decimal(&mut digits, u64::from(status.0)), out);
}

/// What a request says beside its fields.
#[derive(Clone, Copy, Debug)]
pub struct PseudoFields<'a> {
    pub method: &'a [u8],
    /// Scheme, and path with query; `None` for a CONNECT that is not extended (RFC 9113 §8.5).
    pub target: Option<(Scheme, &'a [u8])>,
    /// What HTTP/1 says in Host. Without one the origin gets none.
    pub authority: Option<&'a [u8]>,
    /// What an extended CONNECT asks for (RFC 8441 §4).
    pub protocol: Option<&'a [u8]>,
}

/// Appends the pseudo-fields of a request (RFC 9113 §8.3.1). They stand before all fields.
pub(crate) fn write_pseudo_fields(line: &PseudoFields<'_>, out: &mut Vec<u8>) {
    write_line_of(METHOD_INDEX, line.method, out);
    if let Some((scheme, path)) = line.target {
        write_line_of(SCHEME_INDEX, scheme.text().as_bytes(), out);
        write_line_of(PATH_INDEX, path, out);
    }
    if let Some(authority) = line.authority {
        write_line_of(AUTHORITY_INDEX, authority, out);
    }
    if let Some(protocol) = line.protocol {
        out.push(NOT_INDEXED);
        write_string(b":protocol", out);
        write_string(protocol, out);
    }
}

const AUTHORITY_INDEX: u8 = 1;
const METHOD_INDEX: u8 = 2;
const PATH_INDEX: u8 = 4;
const SCHEME_INDEX: u8 = 6;

/// One of these, which have two values each in the table, or one that nobody sends.
fn write_line_of(index: u8, value: &[u8], out: &mut Vec<u8>) {
    for known in [index, index + 1] {
        let line = &STATIC_TABLE[usize::from(known) - 1];
        if index != AUTHORITY_INDEX && &line.text.as_bytes()[usize::from(line.name_len)..] == value {
            return out.push(INDEXED | known);
        }
    }
    prefix_integer::write(usize::from(index), 4, NOT_INDEXED, out);
    write_string(value, out);
}

/// Appends the fields, but for those that concern one HTTP/1 connection (RFC 9113 §8.2.2), and Host. What `Connection` nominates is
/// left out by [`HopByHop`](crate::HopByHop), before.
pub fn write_fields(fields: FieldsView<'_>, out: &mut Vec<u8>) {
    for field in fields.iter().filter(|field| !is_connection_specific(field.name) && field.name != FieldName::Host) {
        write_any_field(field.name, field.name_text, field.value, out);
    }
}

/// Appends a field whose name is known.
pub fn write_known_field(name: FieldName, value: &[u8], out: &mut Vec<u8>) {
    write_any_field(name, name.canonical().as_bytes(), value, out);
}

/// Appends a field whose value is a number: Age, Content-Length.
pub fn write_known_number(name: FieldName, value: u64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS_MAX];
    write_known_field(name, decimal(&mut digits, value), out);
}

/// RFC 9113 §8.2.2.
pub(crate) fn is_connection_specific(name: FieldName) -> bool {
    use FieldName::*;
    matches!(name, Connection | KeepAlive | ProxyConnection | TransferEncoding | Upgrade | Te | Http2Settings)
}

/// RFC 7541 §7.1.3: no one between us and the reader may put them into a table either.
fn is_secret(name: FieldName) -> bool {
    use FieldName::*;
    matches!(name, SetCookie | Cookie | Authorization | ProxyAuthorization | ProxyAuthenticationInfo)
}

fn write_any_field(name: FieldName, name_text: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let index = match name {
        FieldName::Other => index_of_other_spelling(name_text),
        known => INDEX_OF_FIELD[known as usize],
    };
    let pattern = if is_secret(name) { NEVER_INDEXED } else { NOT_INDEXED };
    if index == 0 {
        out.push(pattern);
        write_lower_case(name_text, out);
        return write_string(value, out);
    }
    let line = &STATIC_TABLE[usize::from(index) - 1];
    if !value.is_empty() && &line.text.as_bytes()[usize::from(line.name_len)..] == value {
        return out.push(INDEXED | index);
    }
    prefix_integer::write(usize::from(index), 4, pattern, out);
    write_string(value, out);
}

/// Names that are longer than any in the static table are none of them.
fn index_of_other_spelling(name: &[u8]) -> u8 {
    let mut lower = [0; 32];
    let Some(room) = lower.get_mut(..name.len()) else { return 0 };
    room.copy_from_slice(name);
    room.make_ascii_lowercase();
    index_of_other(room)
}

/// RFC 9113 §8.2: names go out in lower case.
fn write_lower_case(name: &[u8], out: &mut Vec<u8>) {
    if name.iter().any(u8::is_ascii_uppercase) {
        return write_string(&name.to_ascii_lowercase(), out);
    }
    write_string(name, out);
}

/// In the Huffman code where that is shorter.
fn write_string(text: &[u8], out: &mut Vec<u8>) {
    let coded_bytes = huffman::coded_len(text);
    if coded_bytes < text.len() {
        prefix_integer::write(coded_bytes, 7, CODED, out);
        return huffman::encode(text, out);
    }
    prefix_integer::write(text.len(), 7, 0, out);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use message::Fields;
    use proptest::prelude::*;

    use super::*;
    use crate::http2::hpack::{BlockDecoder, ListLimits};

    /// Decoded by a connection on which other lines were indexed before.
    fn decoded(block: &[u8]) -> String {
        let mut decoder = BlockDecoder::new();
        let wide = ListLimits { list_bytes_max: 1 << 20, lines_max: 1000 };
        let before = [&[0x40, 1, b'x', 1, b'y'][..], block].concat();
        let mut lines = String::new();
        let excess = decoder.decode(&before, wide, &mut Vec::new(), |line, text| {
            let (name, value) = (&text[line.at..line.value_at()], &text[line.value_at()..line.end()]);
            lines += &format!("{}: {}\n", String::from_utf8_lossy(name), String::from_utf8_lossy(value));
            true
        });
        assert_eq!(excess, Ok(None));
        lines.strip_prefix("x: y\n").expect("it was indexed").to_string()
    }

    #[test]
    fn a_head_is_written_in_lower_case_without_connection_fields() {
        let mut fields = Fields::default();
        for (name, value) in [
            ("Content-Type", "text/html"),
            ("Connection", "keep-alive"),
            ("Keep-Alive", "timeout=5"),
            ("Transfer-Encoding", "chunked"),
            ("Proxy-Connection", "x"),
            ("Upgrade", "h2c"),
            ("Accept-Encoding", "gzip, deflate"),
            ("X-Own", "~~~~"),
            ("Strict-Transport-Security", "max-age=1"),
            ("Set-Cookie", "a=b"),
            ("X-Empty", ""),
            ("Vary", ""),
        ] {
            fields.push_named(name.as_bytes(), value.as_bytes());
        }
        let mut block = Vec::new();
        write_status(Status(200), &mut block);
        write_fields(fields.view(), &mut block);
        let lines = ":status: 200\ncontent-type: text/html\naccept-encoding: gzip, deflate\nx-own: ~~~~\n\
            strict-transport-security: max-age=1\nset-cookie: a=b\nx-empty: \nvary: \n";
        assert_eq!(decoded(&block), lines);
    }

    #[test]
    fn every_status_comes_back() {
        for status in [100, 103, 200, 204, 206, 299, 304, 400, 404, 500, 503, 599] {
            let mut block = Vec::new();
            write_status(Status(status), &mut block);
            assert_eq!(decoded(&block), format!(":status: {status}\n"));
        }
    }

    #[test]
    fn secrets_are_never_indexed_and_nothing_else_is_indexed() {
        let first_byte = |name, value: &[u8]| {
            let mut block = Vec::new();
            write_known_field(name, value, &mut block);
            block[0]
        };
        assert_eq!(first_byte(FieldName::SetCookie, b"a=b") & 0xf0, NEVER_INDEXED);
        assert_eq!(first_byte(FieldName::Authorization, b"Basic x") & 0xf0, NEVER_INDEXED);
        assert_eq!(first_byte(FieldName::Age, b"5") & 0xf0, NOT_INDEXED);
        assert_eq!(first_byte(FieldName::CacheStatus, b"larder; hit"), NOT_INDEXED);
    }

    #[test]
    fn numbers_are_written_as_text() {
        let mut block = Vec::new();
        write_known_number(FieldName::Age, 5, &mut block);
        write_known_number(FieldName::ContentLength, 1 << 40, &mut block);
        assert_eq!(decoded(&block), "age: 5\ncontent-length: 1099511627776\n");
    }

    proptest! {
        #[test]
        fn any_field_comes_back(name in "[a-zA-Z0-9-]{1,60}", value in "[ -~]{0,300}") {
            let mut fields = Fields::default();
            fields.push_named(name.as_bytes(), value.as_bytes());
            let mut block = Vec::new();
            write_fields(fields.view(), &mut block);
            let known = FieldName::classify(name.as_bytes());
            let is_dropped = is_connection_specific(known) || known == FieldName::Host;
            let line = if is_dropped { String::new() } else { format!("{}: {value}\n", name.to_ascii_lowercase()) };
            prop_assert_eq!(decoded(&block), line);
        }
    }
}
