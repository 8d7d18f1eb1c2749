//! The harness's own reading of message heads and bodies, for both directions: anything that RFC 9112 calls
//! invalid, or that two readers could take differently, is a problem. It shares no code with larder, since a judge
//! must not share a parser with the judged.

/// A field line: name as received, value without the white space around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldLine {
    pub name: String,
    pub value: Vec<u8>,
}

/// A start line and its fields.
#[derive(Clone, Debug, Default)]
pub struct Head {
    pub start: String,
    pub fields: Vec<FieldLine>,
    /// Bytes up to and with the empty line.
    pub bytes: usize,
}

impl Head {
    /// The values of all lines of this name.
    pub fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|field| &field.value[..])
    }

    pub fn has(&self, name: &str) -> bool {
        self.values(name).next().is_some()
    }

    /// Is the word a member of the comma-separated field?
    pub fn lists(&self, name: &str, word: &str) -> bool {
        self.values(name)
            .any(|value| String::from_utf8_lossy(value).split(',').any(|w| w.trim().eq_ignore_ascii_case(word)))
    }
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(usize),
    Chunked,
    /// An answer without length: until the connection is closed.
    UntilClose,
}

/// What could be read of a body so far.
#[derive(Clone, Debug, Default)]
pub struct Body {
    pub bytes: Vec<u8>,
    pub trailers: Vec<FieldLine>,
    pub consumed: usize,
    pub complete: bool,
}

/// Reads a head. `Ok(None)`: its end has not come yet.
pub fn read_head(bytes: &[u8]) -> Result<Option<Head>, String> {
    let Some(end) = find(bytes, b"\r\n\r\n") else {
        return match bytes.iter().zip(bytes.iter().skip(1)).any(|(&a, &b)| b == b'\n' && a != b'\r') {
            true => Err("a bare LF in a head".into()),
            false => Ok(None),
        };
    };
    let mut lines = split_lines(&bytes[..end])?.into_iter();
    let start = lines.next().filter(|line| !line.is_empty()).ok_or("an empty start line")?;
    if let Some(byte) = start.iter().find(|&&b| !(b' '..0x7f).contains(&b)) {
        return Err(format!("byte {byte:#04x} in a start line"));
    }
    let fields = lines.map(read_field).collect::<Result<Vec<_>, _>>()?;
    Ok(Some(Head { start: String::from_utf8_lossy(start).into_owned(), fields, bytes: end + 4 }))
}

/// The framing that a head announces; more than one field of it is a problem.
pub fn read_framing(head: &Head) -> Result<Framing, String> {
    let lengths: Vec<_> = head.values("Content-Length").collect();
    let codings: Vec<_> = head.values("Transfer-Encoding").collect();
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(Framing::None),
        ([length], []) => {
            let text = std::str::from_utf8(length).unwrap_or("");
            let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            text.parse().ok().filter(|_| is_plain).map(Framing::Length).ok_or(format!("Content-Length: {text:?}"))
        }
        ([], [coding]) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
        _ => Err(format!("{} Content-Length and {} Transfer-Encoding fields", lengths.len(), codings.len())),
    }
}

/// Reads as much of a body as is there.
pub fn read_body(bytes: &[u8], framing: Framing, at_end: bool) -> Result<Body, String> {
    match framing {
        Framing::None => Ok(Body { complete: true, ..Body::default() }),
        Framing::Length(len) => {
            let have = len.min(bytes.len());
            Ok(Body { bytes: bytes[..have].to_vec(), consumed: have, complete: have == len, ..Body::default() })
        }
        Framing::UntilClose => {
            Ok(Body { bytes: bytes.to_vec(), consumed: bytes.len(), complete: at_end, ..Body::default() })
        }
        Framing::Chunked => read_chunks(bytes),
    }
}

fn read_chunks(bytes: &[u8]) -> Result<Body, String> {
    let mut body = Body::default();
    loop {
        let rest = &bytes[body.consumed..];
        let Some(line_end) = find(rest, b"\r\n") else { return Ok(body) };
        let text = std::str::from_utf8(&rest[..line_end]).map_err(|_| "a chunk size that is no text")?;
        if text.is_empty() || text.len() > 16 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(format!("chunk size line {text:?}"));
        }
        let size = usize::from_str_radix(text, 16).map_err(|_| format!("chunk size {text:?}"))?;
        let data = &rest[line_end + 2..];
        if size == 0 {
            return read_trailers(data, body, line_end + 2);
        }
        if data.len() < size + 2 {
            body.bytes.extend_from_slice(&data[..size.min(data.len())]);
            return Ok(body);
        }
        if &data[size..size + 2] != b"\r\n" {
            return Err("a chunk that is not followed by CR LF".into());
        }
        body.bytes.extend_from_slice(&data[..size]);
        body.consumed += line_end + 2 + size + 2;
    }
}

fn read_trailers(bytes: &[u8], mut body: Body, line_bytes: usize) -> Result<Body, String> {
    if bytes.starts_with(b"\r\n") {
        body.consumed += line_bytes + 2;
        body.complete = true;
    } else if let Some(end) = find(bytes, b"\r\n\r\n") {
        body.trailers = split_lines(&bytes[..end])?.into_iter().map(read_field).collect::<Result<_, _>>()?;
        body.consumed += line_bytes + end + 4;
        body.complete = true;
    }
    Ok(body)
}

fn read_field(line: &[u8]) -> Result<FieldLine, String> {
    let shown = || super::notation::show(line, 120);
    let colon = line.iter().position(|&b| b == b':').ok_or_else(|| format!("no colon in {:?}", shown()))?;
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    if name.is_empty() || !name.iter().all(|&b| is_token_byte(b)) {
        return Err(format!("field name in {:?}", shown()));
    }
    if value.iter().any(|&b| b < b' ' && b != b'\t' || b == 0x7f) {
        return Err(format!("control byte in {:?}", shown()));
    }
    Ok(FieldLine { name: String::from_utf8_lossy(name).into_owned(), value: value.trim_ascii().to_vec() })
}

/// Splits at CR LF; a CR or LF elsewhere is a problem.
fn split_lines(block: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut lines = Vec::new();
    let mut rest = block;
    loop {
        let end = find(rest, b"\r\n").unwrap_or(rest.len());
        if rest[..end].iter().any(|&b| b == b'\r' || b == b'\n') {
            return Err("a bare CR or LF in a head".into());
        }
        lines.push(&rest[..end]);
        match rest.get(end + 2..) {
            Some(more) => rest = more,
            None => return Ok(lines),
        }
    }
}

/// RFC 9110 §5.6.2.
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

pub fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_or_refused() {
        let head = read_head(b"GET / HTTP/1.1\r\nHost: t\r\nX:  a \r\n\r\nrest").unwrap().unwrap();
        assert_eq!((head.start.as_str(), head.bytes), ("GET / HTTP/1.1", 35));
        assert_eq!(head.values("x").collect::<Vec<_>>(), [b"a"]);
        assert!(read_head(b"GET / HTTP/1.1\r\nHost").unwrap().is_none());
        for bad in ["G\n\r\n\r\n", "G\r\nA : b\r\n\r\n", "G\r\n a\r\n\r\n", "G\r\nA: \x07\r\n\r\n", "G\r\nA\r\n\r\n"] {
            assert!(read_head(bad.as_bytes()).is_err(), "{bad:?}");
        }
    }

    fn check_framing(fields: &str, expect: Option<Framing>) {
        let head = read_head(format!("G\r\n{fields}\r\n").as_bytes()).unwrap().unwrap();
        assert_eq!(read_framing(&head).ok(), expect, "{fields}");
    }

    #[test]
    fn a_message_has_one_framing_field() {
        check_framing("A: b\r\n", Some(Framing::None));
        check_framing("Content-Length: 5\r\n", Some(Framing::Length(5)));
        check_framing("transfer-encoding: Chunked\r\n", Some(Framing::Chunked));
        check_framing("Content-Length: +5\r\n", None);
        check_framing("Content-Length: 5\r\nContent-Length: 5\r\n", None);
        check_framing("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", None);
        check_framing("Transfer-Encoding: gzip, chunked\r\n", None);
    }

    fn check_chunks(bytes: &str, expect: Option<(&str, bool)>) {
        let body = read_body(bytes.as_bytes(), Framing::Chunked, false);
        let got = body.ok().map(|body| (String::from_utf8(body.bytes).unwrap(), body.complete));
        assert_eq!(got, expect.map(|(text, complete)| (text.to_string(), complete)), "{bytes:?}");
    }

    #[test]
    fn chunks_are_read_strictly() {
        check_chunks("5\r\nhello\r\n0\r\n\r\n", Some(("hello", true)));
        check_chunks("5\r\nhello\r\n0\r\nA: b\r\n\r\n", Some(("hello", true)));
        check_chunks("5\r\nhel", Some(("hel", false)));
        check_chunks("5\r\nhello\r\n0\r\n", Some(("hello", false)));
        check_chunks("5;a=b\r\nhello\r\n", None);
        check_chunks("5\r\nhelloXX0\r\n\r\n", None);
    }
}
