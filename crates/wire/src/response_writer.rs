//! The head of a response as HTTP/1.1 text, how its body is delimited, and what it says of the connection (RFC 9112 §4, §6,
//! §9.3). Nobody else writes a status line or decides on framing.
//!
//! Heads that are rendered once and sent often are made with the same functions: [`write_status_line`] and [`write_field`].

use message::{FieldsView, Status, Version, list_members, write_decimal};

use crate::chunk_encoder::{CHUNK_END, CHUNK_HEAD_BYTES_MAX, LAST_CHUNK, chunk_head, write_trailers};

/// The first line. Without a reason of its own a status has the registered one, or none (RFC 9112 §4).
pub fn write_status_line(out: &mut Vec<u8>, status: Status, reason: Option<&[u8]>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, u64::from(status.0));
    out.push(b' ');
    out.extend_from_slice(reason.unwrap_or_else(|| status.reason().as_bytes()));
    out.extend_from_slice(b"\r\n");
}

/// One field line. The caller vouches for the value: no CR, LF or NUL.
#[inline]
pub fn write_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// A field line whose value is a number.
#[inline]
pub fn write_number_field(out: &mut Vec<u8>, name: &str, value: u64) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    write_decimal(out, value);
    out.extend_from_slice(b"\r\n");
}

/// RFC 9110 §8.6: a 204 or 304 carries no Content-Length, and no content; nor does an interim response.
#[inline]
pub fn has_length(status: Status) -> bool {
    !matches!(status.0, 100..=199 | 204 | 304)
}

/// What is known of the content that a response has, or to GET would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// So many bytes.
    Length(u64),
    /// Nobody knows how many.
    Unknown,
    /// None follows, and nothing is said of it.
    Unsaid,
}

/// How a body is delimited on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// So many bytes are promised and still owed.
    Length {
        left: u64,
    },
    Chunked,
    UntilClose,
}

/// Writes what a head says of its content, and returns how the body behind it is delimited. Without one, as to HEAD, a head says what
/// it would to GET (RFC 9110 §9.3.2), but chunks to nobody who does not know them (RFC 9112 §6.1).
pub fn write_framing(
    out: &mut Vec<u8>,
    status: Status,
    content: Content,
    version: Version,
    sends_body: bool,
) -> BodyFraming {
    let nothing = BodyFraming::Length { left: 0 };
    if !has_length(status) {
        return nothing;
    }
    match content {
        Content::Length(length) => {
            write_number_field(out, "Content-Length", length);
            BodyFraming::Length { left: if sends_body { length } else { 0 } }
        }
        Content::Unknown if version == Version::Http11 => {
            write_field(out, b"Transfer-Encoding", b"chunked");
            if sends_body { BodyFraming::Chunked } else { nothing }
        }
        Content::Unknown if sends_body => BodyFraming::UntilClose,
        Content::Unknown | Content::Unsaid => nothing,
    }
}

/// What a response says of its connection (RFC 9112 §9.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It stays open, as HTTP/1.1 does without a word.
    Implied,
    /// HTTP/1.0 has to be told.
    KeepAlive,
    Close,
}

impl Persistence {
    #[inline]
    pub fn of(persistent: bool, version: Version) -> Persistence {
        match (persistent, version) {
            (false, _) => Persistence::Close,
            (true, Version::Http11 | Version::Http2) => Persistence::Implied,
            (true, Version::Http10) => Persistence::KeepAlive,
        }
    }
}

/// The last line of a head, and its end.
#[inline]
pub fn write_head_end(out: &mut Vec<u8>, persistence: Persistence) {
    out.extend_from_slice(match persistence {
        Persistence::Implied => b"\r\n",
        Persistence::KeepAlive => b"Connection: keep-alive\r\n\r\n",
        Persistence::Close => b"Connection: close\r\n\r\n",
    });
}

/// A whole answer of somebody who has all of it in memory: its head, and the body where it is sent.
pub fn whole_answer(
    status: Status,
    fields: &[(&str, &str)],
    body: &[u8],
    sends_body: bool,
    persistence: Persistence,
) -> Vec<u8> {
    let mut out = Vec::new();
    write_status_line(&mut out, status, None);
    for (name, value) in fields {
        write_field(&mut out, name.as_bytes(), value.as_bytes());
    }
    let content = Content::Length(body.len() as u64);
    let framing = write_framing(&mut out, status, content, Version::Http11, sends_body);
    write_head_end(&mut out, persistence);
    if framing != (BodyFraming::Length { left: 0 }) {
        out.extend_from_slice(body);
    }
    out
}

/// The head of an answer without a known end: its body goes on until the connection ends (RFC 9112 §6.3, item 8).
pub fn head_of_endless_answer(status: Status, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    write_status_line(&mut out, status, None);
    for (name, value) in fields {
        write_field(&mut out, name.as_bytes(), value.as_bytes());
    }
    write_head_end(&mut out, Persistence::Close);
    out
}

/// Does this line of Connection end it? One option among others does, too.
pub fn says_close(value: &[u8]) -> bool {
    list_members(value).any(|option| option.eq_ignore_ascii_case(b"close"))
}

/// What frames a stretch of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framed {
    /// So many of its bytes go out: the rest is more than was promised.
    pub taken: usize,
    /// All that was promised is there.
    pub is_complete: bool,
    before: [u8; CHUNK_HEAD_BYTES_MAX],
    before_len: u8,
}

impl Framed {
    /// Goes out before the bytes; empty where nothing does.
    pub fn before(&self) -> &[u8] {
        &self.before[..usize::from(self.before_len)]
    }

    /// Goes out behind the bytes.
    pub fn after(&self) -> &'static [u8] {
        if self.before_len == 0 { b"" } else { CHUNK_END }
    }
}

impl BodyFraming {
    /// Frames so many bytes of the body, at least one.
    pub fn frame(&mut self, bytes: usize) -> Framed {
        let mut framed = Framed { taken: bytes, is_complete: false, before: [0; CHUNK_HEAD_BYTES_MAX], before_len: 0 };
        match self {
            BodyFraming::Length { left } => {
                framed.taken = bytes.min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= framed.taken as u64;
                framed.is_complete = *left == 0;
            }
            BodyFraming::Chunked => framed.before_len = chunk_head(bytes, &mut framed.before) as u8,
            BodyFraming::UntilClose => {}
        }
        framed
    }

    /// The body has ended in good order. What goes out behind it; `None`: less was there than was promised.
    pub fn end(&self, trailers: Option<FieldsView<'_>>) -> Option<Vec<u8>> {
        match self {
            BodyFraming::Length { left: 0 } | BodyFraming::UntilClose => Some(Vec::new()),
            BodyFraming::Length { .. } => None,
            BodyFraming::Chunked => {
                let mut last = LAST_CHUNK.to_vec();
                write_trailers(trailers.unwrap_or_default(), &mut last);
                Some(last)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use message::{FieldName, Fields};

    use super::*;

    fn check(status: u16, content: Content, version: Version, sends_body: bool, line: &str, framing: BodyFraming) {
        let mut out = Vec::new();
        let got = write_framing(&mut out, Status(status), content, version, sends_body);
        assert_eq!((String::from_utf8_lossy(&out).as_ref(), got), (line, framing), "{status} {content:?}");
    }

    const NOTHING: BodyFraming = BodyFraming::Length { left: 0 };

    #[test]
    fn an_answer_without_an_end_says_no_length_and_closes() {
        let head = head_of_endless_answer(Status::OK, &[("Content-Type", "application/x-ndjson")]);
        let text = "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&head), text);
    }

    #[test]
    fn a_whole_answer_brings_its_body_where_one_may_be_sent() {
        let answer = |status, sends_body, persistence| {
            let bytes = whole_answer(Status(status), &[("A", "b")], b"pie", sends_body, persistence);
            String::from_utf8(bytes).unwrap()
        };
        let head = "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 3\r\n";
        assert_eq!(answer(200, true, Persistence::Implied), format!("{head}\r\npie"));
        assert_eq!(answer(200, false, Persistence::Close), format!("{head}Connection: close\r\n\r\n"));
        assert_eq!(answer(304, true, Persistence::Implied), "HTTP/1.1 304 Not Modified\r\nA: b\r\n\r\n");
    }

    #[test]
    fn a_known_length_is_said_to_get_and_head_alike() {
        let line = "Content-Length: 7\r\n";
        check(200, Content::Length(7), Version::Http11, true, line, BodyFraming::Length { left: 7 });
        check(200, Content::Length(7), Version::Http11, false, line, NOTHING);
        check(416, Content::Length(0), Version::Http10, true, "Content-Length: 0\r\n", NOTHING);
    }

    #[test]
    fn an_unknown_length_is_chunked_or_ends_with_the_connection() {
        let line = "Transfer-Encoding: chunked\r\n";
        check(200, Content::Unknown, Version::Http11, true, line, BodyFraming::Chunked);
        check(200, Content::Unknown, Version::Http11, false, line, NOTHING);
        check(200, Content::Unknown, Version::Http10, true, "", BodyFraming::UntilClose);
    }

    /// RFC 9112 §6.1: no Transfer-Encoding unless the request says HTTP/1.1.
    #[test]
    fn http_1_0_hears_of_no_chunks_even_to_head() {
        check(200, Content::Unknown, Version::Http10, false, "", NOTHING);
    }

    #[test]
    fn what_has_no_content_says_nothing_of_it() {
        for status in [100, 103, 199, 204, 304] {
            for content in [Content::Length(7), Content::Unknown, Content::Unsaid] {
                check(status, content, Version::Http11, true, "", NOTHING);
            }
        }
        check(200, Content::Unsaid, Version::Http11, false, "", NOTHING);
    }

    #[test]
    fn a_status_line_has_the_registered_reason_or_one_of_its_own() {
        let line = |status, reason: Option<&[u8]>| {
            let mut out = Vec::new();
            write_status_line(&mut out, Status(status), reason);
            String::from_utf8(out).expect("a line is text")
        };
        assert_eq!(line(404, None), "HTTP/1.1 404 Not Found\r\n");
        assert_eq!(line(404, Some(b"Gone fishing")), "HTTP/1.1 404 Gone fishing\r\n");
        assert_eq!(line(299, None), "HTTP/1.1 299 \r\n");
    }

    #[test]
    fn the_connection_is_named_where_silence_would_be_misread() {
        let end = |persistent, version| {
            let mut out = Vec::new();
            write_head_end(&mut out, Persistence::of(persistent, version));
            String::from_utf8(out).expect("a line is text")
        };
        assert_eq!(end(true, Version::Http11), "\r\n");
        assert_eq!(end(true, Version::Http10), "Connection: keep-alive\r\n\r\n");
        assert_eq!(end(false, Version::Http11), "Connection: close\r\n\r\n");
        assert_eq!(end(false, Version::Http10), "Connection: close\r\n\r\n");
    }

    #[test]
    fn no_more_goes_out_than_was_promised() {
        let mut framing = BodyFraming::Length { left: 5 };
        let first = framing.frame(3);
        assert_eq!((first.taken, first.is_complete, first.before(), first.after()), (3, false, &b""[..], &b""[..]));
        let second = framing.frame(9);
        assert_eq!((second.taken, second.is_complete), (2, true));
        assert_eq!(framing.end(None), Some(Vec::new()));
        assert_eq!(BodyFraming::Length { left: 1 }.end(None), None);
    }

    #[test]
    fn chunks_have_their_length_before_them_and_trailers_at_the_end() {
        let mut framing = BodyFraming::Chunked;
        let framed = framing.frame(17);
        assert_eq!((framed.before(), framed.after(), framed.taken), (&b"11\r\n"[..], &b"\r\n"[..], 17));
        assert!(!framed.is_complete, "nobody knows before the last chunk");
        assert_eq!(framing.end(None).as_deref(), Some(&b"0\r\n\r\n"[..]));
        let mut trailers = Fields::default();
        trailers.push(FieldName::Etag, "\"a\"");
        assert_eq!(framing.end(Some(trailers.view())).as_deref(), Some(&b"0\r\nETag: \"a\"\r\n\r\n"[..]));
    }

    #[test]
    fn close_is_heard_among_other_options() {
        assert!(says_close(b"x, Close"));
        assert!(!says_close(b"closed, keep-alive"));
    }
}
