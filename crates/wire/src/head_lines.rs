//! From httparse's view of a head to ours: ranges into the received bytes, with each name classified.
//!
//! httparse accepts a bare LF as a line end and knows no limits but the number of fields; both are checked here,
//! in the one pass over the fields that every head gets. What the fields mean is judged by the caller's closure.

use message::{FieldName, FieldSpan, is_lookalike, is_plain_name};

use crate::{HeadLimits, Refusal, refusals};

/// Whose head it is: the refusals differ, the grammar does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Request,
    Response,
}

/// What was found out about the names of a head beside what they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NamesSeen {
    /// Some are not plain ([`is_plain_name`]).
    pub(crate) has_odd: bool,
}

/// Records every field of `lines` in `spans`, as ranges of `buf`; `judge` is asked about those that `judged` holds.
///
/// The loop has no exits and writes over the spans of the head before; what was wrong is found out afterwards.
#[inline(always)]
pub(crate) fn take_fields<'a>(
    buf: &'a [u8],
    lines: &[httparse::Header<'a>],
    limits: &HeadLimits,
    side: Side,
    spans: &mut Vec<FieldSpan>,
    judged: &NameSet,
    mut judge: impl FnMut(FieldName, &'a [u8]) -> Result<(), Refusal>,
) -> Result<NamesSeen, Refusal> {
    const EMPTY: FieldSpan = FieldSpan { name: FieldName::Other, name_len: 0, name_at: 0, value_at: 0, value_len: 0 };
    let mut verdict = Ok(());
    let (mut field_bytes_longest, mut line_ends_right, mut has_odd) = (0, true, false);
    spans.resize(lines.len(), EMPTY);
    for (span, line) in spans.iter_mut().zip(lines) {
        let name_text = line.name.as_bytes();
        let (name_at, value_at) = (offset(buf, name_text), offset(buf, line.value));
        field_bytes_longest = field_bytes_longest.max(name_text.len() + line.value.len());
        line_ends_right &= ends_with_crlf(buf, value_at + line.value.len());
        let name = FieldName::classify(name_text);
        has_odd |= name == FieldName::Other && !is_plain_name(name_text);
        if judged.contains(name) && verdict.is_ok() {
            verdict = judge(name, line.value);
        }
        span.name = name;
        span.name_len = name_text.len() as u16;
        span.name_at = name_at as u32;
        span.value_at = value_at as u32;
        span.value_len = line.value.len() as u32;
    }
    // Names are recorded in 16 bits, so no setting can allow more.
    if field_bytes_longest > limits.field_bytes_max.min(usize::from(u16::MAX)) {
        return Err(match side {
            Side::Request => refusals::REQUEST_FIELD_TOO_LARGE,
            Side::Response => refusals::RESPONSE_FIELD_TOO_LARGE,
        });
    }
    if !line_ends_right && !limits.lenient {
        return Err(refusals::LINE_END_INVALID);
    }
    if has_odd {
        drop_lookalikes(buf, spans);
    }
    verdict.map(|()| NamesSeen { has_odd })
}

#[cold]
fn drop_lookalikes(buf: &[u8], spans: &mut Vec<FieldSpan>) {
    spans.retain(|span| {
        let name = &buf[span.name_at as usize..][..usize::from(span.name_len)];
        span.name != FieldName::Other || !is_lookalike(name)
    });
}

/// Some of the known names.
pub(crate) struct NameSet([bool; FieldName::Other as usize + 1]);

impl NameSet {
    pub(crate) const fn of(names: &[FieldName]) -> NameSet {
        let mut set = NameSet([false; FieldName::Other as usize + 1]);
        let mut n = 0;
        while n < names.len() {
            set.0[names[n] as usize] = true;
            n += 1;
        }
        set
    }

    #[inline(always)]
    pub(crate) fn contains(&self, name: FieldName) -> bool {
        self.0[name as usize]
    }
}

/// Where a slice of `buf` begins in it.
#[inline(always)]
pub(crate) fn offset(buf: &[u8], part: &[u8]) -> usize {
    let at = part.as_ptr() as usize - buf.as_ptr() as usize;
    debug_assert!(at + part.len() <= buf.len());
    at
}

/// Is the line whose text ends at `at` ended by CRLF, with nothing but whitespace between?
#[inline(always)]
pub(crate) fn ends_with_crlf(buf: &[u8], at: usize) -> bool {
    match buf.get(at) {
        Some(b'\r') => true,
        Some(b' ' | b'\t') => has_crlf_after_whitespace(&buf[at..]),
        _ => false,
    }
}

#[cold]
fn has_crlf_after_whitespace(rest: &[u8]) -> bool {
    rest.iter().find(|b| !matches!(b, b' ' | b'\t')) == Some(&b'\r')
}

/// Does the head that ends at `end` close with CRLF CRLF? Its last line is known to end with CRLF.
#[inline(always)]
pub(crate) fn closes_with_crlf(buf: &[u8], end: usize) -> bool {
    end >= 2 && buf[end - 2] == b'\r'
}

/// What httparse's error means.
#[cold]
pub(crate) fn refusal_of(error: httparse::Error, side: Side) -> Refusal {
    let refusal = match error {
        httparse::Error::HeaderName => refusals::FIELD_NAME_INVALID,
        httparse::Error::HeaderValue => refusals::FIELD_VALUE_INVALID,
        httparse::Error::NewLine => refusals::LINE_END_INVALID,
        httparse::Error::Status => refusals::STATUS_LINE_INVALID,
        httparse::Error::Token => refusals::REQUEST_LINE_INVALID,
        httparse::Error::Version => refusals::VERSION_INVALID,
        httparse::Error::TooManyHeaders if side == Side::Request => refusals::REQUEST_FIELDS_TOO_MANY,
        httparse::Error::TooManyHeaders => refusals::RESPONSE_FIELDS_TOO_MANY,
    };
    match side {
        Side::Request => refusal,
        Side::Response => refusal.of_origin(),
    }
}
