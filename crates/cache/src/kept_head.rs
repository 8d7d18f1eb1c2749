//! The head of a stored response: one text, where its fields are in it, and a small body right behind it.
//!
//! What a hit sends as it is ("rendered") holds nearly all of the fields already, letter for letter. They are found there by
//! marks of eight bytes; the few that are not sent lie behind it. So no field is kept twice. A small body lies in the same stretch of memory: it costs no
//! allocation of its own, and a hit reads on where the head ends.

use message::{Field, FieldMark, FieldsView, Response, ResponseHead, Status, Version, field_mark, line_at};

/// A head, what of it goes out with every answer, and a small body.
#[derive(Clone, Debug)]
pub(crate) struct KeptHead {
    /// What is rendered, the lines of fields that are not, the URL with its length behind it (if it is known), and the reason; then
    /// the fields' marks; then the body, if it is not kept out of line.
    text: Box<[u8]>,
    rendered_len: u32,
    /// Where the marks begin.
    marks_at: u32,
    /// Where they end.
    body_at: u32,
    /// Of the reason; `NO_REASON` where the status is called what everybody calls it.
    reason_len: u16,
    /// And `HTTP_10`, if it came so; and `HAS_URL`.
    status: u16,
}

const NO_REASON: u16 = u16::MAX;
const HTTP_10: u16 = 1 << 15;
const HAS_URL: u16 = 1 << 14;
const LINE_END: &[u8] = b"\r\n";

impl KeptHead {
    /// `rendered`: a status line and lines, of which those that are also in the head stand in the order in which they stand
    /// there; or nothing. `body`: the pieces of one that is to lie behind it. A reason of 64 KiB and more is not kept.
    pub fn new(head: &ResponseHead, rendered: &[u8], body: &[&[u8]]) -> KeptHead {
        KeptHead::of_url(b"", (head, rendered), body)
    }

    /// The same of a response that was fetched for this URL.
    pub fn of_url(url: &[u8], (head, rendered): (&ResponseHead, &[u8]), body: &[&[u8]]) -> KeptHead {
        let first_line_end = rendered.windows(2).position(|two| two == LINE_END).map_or(0, |at| at + LINE_END.len());
        let mut at = first_line_end;
        let mut beside = Vec::new();
        let mut marks = Vec::with_capacity(head.fields.view().count() * size_of::<FieldMark>());
        for field in head.fields.view().iter() {
            let line = [field.name_text, b": ", field.value, LINE_END];
            let line_len = line.iter().map(|part| part.len()).sum::<usize>();
            let line_at = if begins_with(&rendered[at..], line) {
                at += line_len;
                at - line_len
            } else {
                line.iter().for_each(|part| beside.extend_from_slice(part));
                rendered.len() + beside.len() - line_len
            };
            marks.extend(field_mark(field.name, line_at, field.name_text.len(), field.value.len()));
        }
        let reason = head.reason.as_deref().filter(|reason| reason.len() < usize::from(NO_REASON));
        let reason_text = reason.unwrap_or_default();
        let url_len = small(url.len()).to_le_bytes();
        let has_url = !url.is_empty();
        let texts = [rendered, &beside, url, if has_url { &url_len } else { b"" }, reason_text, &marks];
        let marks_at: usize = texts[..5].iter().map(|text| text.len()).sum();
        KeptHead {
            text: joined(&texts, body),
            rendered_len: small(rendered.len()),
            marks_at: small(marks_at),
            body_at: small(marks_at + marks.len()),
            reason_len: reason.map_or(NO_REASON, |reason| reason.len() as u16),
            status: head.status.0
                | if head.version == Version::Http10 { HTTP_10 } else { 0 }
                | if has_url { HAS_URL } else { 0 },
        }
    }

    /// The same head before another body.
    pub fn before(&self, body: &[&[u8]]) -> KeptHead {
        KeptHead { text: joined(&[&self.text[..self.head_len()]], body), ..*self }
    }

    /// What lies behind the head: the body, if it is not kept out of line.
    #[inline]
    pub fn behind(&self) -> &[u8] {
        &self.text[self.body_at as usize..]
    }

    #[inline]
    pub fn rendered(&self) -> &[u8] {
        &self.text[..self.rendered_len as usize]
    }

    #[inline]
    pub fn status(&self) -> Status {
        Status(self.status & !(HTTP_10 | HAS_URL))
    }

    #[inline]
    pub fn fields(&self) -> FieldsView<'_> {
        FieldsView::marked(&self.text, self.marks())
    }

    /// Is a field of this kind among what is rendered?
    #[inline]
    pub fn renders(&self, is_it: impl Fn(&Field<'_>) -> bool) -> bool {
        let marks = self.marks().iter().filter(|mark| line_at(mark) < self.rendered_len as usize);
        marks
            .map(|mark| FieldsView::marked(&self.text, std::slice::from_ref(mark)))
            .any(|one| one.iter().any(|it| is_it(&it)))
    }

    #[inline]
    pub fn reason(&self) -> Option<&[u8]> {
        let end = self.marks_at as usize;
        (self.reason_len != NO_REASON).then(|| &self.text[end - usize::from(self.reason_len)..end])
    }

    /// The URL that it was fetched for, if that is known.
    pub fn url(&self) -> Option<&[u8]> {
        let reason_len = if self.reason_len == NO_REASON { 0 } else { usize::from(self.reason_len) };
        if self.status & HAS_URL == 0 {
            return None;
        }
        let (before, len) = self.text[..self.marks_at as usize - reason_len].split_last_chunk::<4>()?;
        before.get(before.len().checked_sub(u32::from_le_bytes(*len) as usize)?..)
    }

    pub fn response(&self) -> Response<'_> {
        let version = if self.status & HTTP_10 != 0 { Version::Http10 } else { Version::Http11 };
        Response { status: self.status(), version, reason: self.reason(), fields: self.fields() }
    }

    #[inline]
    fn marks(&self) -> &[FieldMark] {
        self.text[self.marks_at as usize..self.body_at as usize].as_chunks().0
    }

    /// All but the body.
    pub fn head_len(&self) -> usize {
        self.body_at as usize
    }

    /// Bytes on the heap, for the account; the body behind the head among them.
    pub fn heap_bytes(&self) -> usize {
        self.text.len()
    }
}

fn begins_with(mut text: &[u8], parts: [&[u8]; 4]) -> bool {
    parts.iter().all(|part| match text.strip_prefix(*part) {
        Some(rest) => (text = rest, true).1,
        None => false,
    })
}

/// In one allocation that is as large as what is in it.
fn joined(head: &[&[u8]], body: &[&[u8]]) -> Box<[u8]> {
    let mut text = Vec::with_capacity(head.iter().chain(body).map(|part| part.len()).sum());
    head.iter().chain(body).for_each(|part| text.extend_from_slice(part));
    text.into_boxed_slice()
}

fn small(n: usize) -> u32 {
    u32::try_from(n).expect("a head is limited far below 4 GiB")
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use message::{FieldName, Fields};

    use super::*;

    fn head(reason: Option<&[u8]>) -> ResponseHead {
        let mut fields = Fields::default();
        fields.push(FieldName::ContentLength, "7");
        fields.push_named(b"x-One", b"a: b");
        fields.push_named(b"X-Empty", b"");
        fields.push(FieldName::Etag, "\"e\"");
        ResponseHead { status: Status(203), version: Version::Http10, reason: reason.map(Into::into), fields }
    }

    /// Whatever is rendered, the head comes back as it was; so many bytes are kept beside what is rendered.
    fn check(rendered: &[u8], reason: Option<&[u8]>, beside: usize) {
        let head = head(reason);
        let (no_body, body): ([&[u8]; 0], [&[u8]; 2]) = ([], [b"a bo", b"dy"]);
        let kept = KeptHead::new(&head, rendered, &no_body);
        let alone = [kept.clone(), kept.before(&body).before(&no_body)].map(|kept| (kept, 0));
        let with_body = [KeptHead::new(&head, rendered, &body), kept.before(&body)].map(|kept| (kept, 6));
        for (kept, body_len) in alone.into_iter().chain(with_body) {
            assert_eq!((kept.rendered(), kept.behind()), (rendered, &b"a body"[..body_len]));
            assert_eq!(
                kept.text.len() - size_of_val(kept.marks()),
                rendered.len() + beside + body_len,
                "{}",
                String::from_utf8_lossy(&kept.text)
            );
            let lines = |fields: FieldsView<'_>| {
                let mut out = Vec::new();
                fields.write_lines(&mut out, |_| true);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(lines(kept.fields()), lines(head.fields.view()));
            assert_eq!(kept.fields().get(FieldName::Etag), Some(&b"\"e\""[..]));
            assert_eq!(kept.fields().get_named(FieldName::Other, b"X-ONE"), Some(&b"a: b"[..]));
            assert_eq!(kept.fields().get_named(FieldName::Other, b"x-two"), None);
            assert!(kept.fields().names().eq(head.fields.view().names()));
            assert!(kept.fields().contains(FieldName::Etag) && !kept.fields().contains(FieldName::Vary));
            assert_eq!((kept.status(), kept.response().version), (Status(203), Version::Http10));
            assert_eq!(kept.reason(), reason);
        }
    }

    #[test]
    fn what_is_rendered_is_kept_once_and_the_rest_behind_it() {
        let length = "Content-Length: 7\r\n".len();
        let all = b"x-One: a: b\r\nX-Empty: \r\nETag: \"e\"\r\n";
        let usual = [b"HTTP/1.1 203 Fine\r\n", &all[..], b"Via: 1.0 larder\r\n"].concat();
        check(&usual, None, length);
        check(&usual, Some(b"Quite fine"), length + 10);
        check(&usual, Some(b""), length);
        // Nothing, other names, another order, what only looks like a line of it: kept beside.
        check(b"", None, length + all.len());
        check(b"HTTP/1.1 203 Fine\r\nX-One: a: b\r\nX-Empty: \r\n", None, length + all.len());
        check(b"HTTP/1.1 203 Fine\r\nETag: \"e\"\r\nx-One: a: b\r\n", None, length + all.len() - 11);
        check(b"HTTP/1.1 203 Fine\r\nx-One: a: bc\r\n", None, length + all.len());
        check(b"x-One: a: b", None, length + all.len());
    }

    #[test]
    fn the_url_is_kept_beside_whatever_else_there_is() {
        for reason in [None, Some(&b"Quite fine"[..]), Some(b"")] {
            for rendered in [&b""[..], b"HTTP/1.1 203 Fine\r\nX-Empty: \r\n"] {
                let head = head(reason);
                let kept = KeptHead::of_url(b"http://a.test/x?y", (&head, rendered), &[b"a body"]);
                for kept in [kept.clone(), kept.before(&[b"a body"])] {
                    assert_eq!((kept.url(), kept.reason()), (Some(&b"http://a.test/x?y"[..]), reason));
                    assert_eq!(
                        (kept.rendered(), kept.behind(), kept.status()),
                        (rendered, &b"a body"[..], head.status)
                    );
                    assert!(kept.fields().names().eq(head.fields.view().names()));
                    assert_eq!(kept.response().version, Version::Http10);
                }
                assert_eq!(KeptHead::new(&head, rendered, &[]).url(), None);
            }
        }
    }

    /// `limits.response_head_bytes_max` goes up to 16 MiB, and what is rendered may be as long and hold none of its lines.
    #[test]
    fn the_longest_head_that_limits_let_through_is_kept() {
        let value = vec![b'v'; 60_000];
        let mut fields = Fields::default();
        (0..300).for_each(|n| fields.push_named(format!("X-{n}").as_bytes(), &value));
        let head = ResponseHead { status: Status(200), version: Version::Http11, reason: None, fields };
        let no_body: [&[u8]; 0] = [];
        let kept = KeptHead::new(&head, &vec![b'r'; 17 << 20], &no_body);
        assert_eq!(kept.fields().get_named(FieldName::Other, b"x-299"), Some(&value[..]));
    }
}
