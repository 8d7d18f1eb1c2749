//! The head of an HTTP/1.x answer: what it says about the body's end and the connection's, or why it is none.
//!
//! As strict as RFC 9112 lets a reader be: what two readers could take in two ways is refused and never repaired,
//! because a judge that guesses hides what it should report. It shares nothing with the codec of the servers that it
//! may have to judge. Of the fields only those that frame are read, and which content coding the
//! body is in.

use crate::answer::Fault;
use crate::answer_coding::SaidCoding;
use crate::limits::{ANSWER_HEAD_BYTES_MAX, HEAD_MEMO_BYTES_MAX};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnswerHead {
    pub(crate) status: u16,
    /// May the connection be used again once the body has ended?
    pub(crate) persistent: bool,
    pub(crate) body: BodyEnd,
    pub(crate) coding: SaidCoding,
    pub(crate) head_bytes: usize,
}

/// Where the body ends (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    Length(u64),
    Chunked,
    WithConnection,
}

/// The last head that was read: the next one is mostly the same, and then need not be read again.
#[derive(Debug, Default)]
pub(crate) struct HeadMemo {
    bytes: Vec<u8>,
    bodiless: bool,
    head: Option<AnswerHead>,
}

impl HeadMemo {
    /// Reads the head at the start of `bytes`; `None` when its end has not come yet. An answer is `bodiless` when the
    /// request was HEAD.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8], bodiless: bool) -> Result<Option<AnswerHead>, Fault> {
        // A head ends with its empty line, so what begins with the same bytes has the same head.
        if let Some(head) = self.head
            && self.bodiless == bodiless
            && bytes.starts_with(&self.bytes)
        {
            return Ok(Some(head));
        }
        self.read_anew(bytes, bodiless)
    }

    fn read_anew(&mut self, bytes: &[u8], bodiless: bool) -> Result<Option<AnswerHead>, Fault> {
        let Some(head) = read_head(bytes, bodiless)? else { return Ok(None) };
        if head.status >= 200 && head.head_bytes <= HEAD_MEMO_BYTES_MAX {
            self.bytes.clear();
            self.bytes.extend_from_slice(&bytes[..head.head_bytes]);
            (self.bodiless, self.head) = (bodiless, Some(head));
        }
        Ok(Some(head))
    }
}

/// What the framing fields have said so far.
#[derive(Default)]
struct Framing {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
}

fn read_head(bytes: &[u8], bodiless: bool) -> Result<Option<AnswerHead>, Fault> {
    check_beginning(bytes)?;
    let mut at = 0;
    let Some(line) = take_line(bytes, &mut at)? else { return Ok(None) };
    let (status, http_1_0) = read_status_line(line)?;
    let (mut framing, mut coding) = (Framing::default(), SaidCoding::None);
    loop {
        let Some(line) = take_line(bytes, &mut at)? else { return Ok(None) };
        if line.is_empty() {
            break;
        }
        let (name, value) = read_field(line)?;
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => framing.take_lengths(value)?,
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => framing.take_coding(value)?,
            10 if name.eq_ignore_ascii_case(b"connection") => framing.take_options(value),
            16 if name.eq_ignore_ascii_case(b"content-encoding") => coding = coding.and(value),
            _ => {}
        }
    }
    let body = framing.body_end(status, http_1_0, bodiless)?;
    let persistent = !framing.close && (!http_1_0 || framing.keep_alive) && body != BodyEnd::WithConnection;
    Ok(Some(AnswerHead { status, persistent, body, coding, head_bytes: at }))
}

/// The line that begins at `at`, without its CR LF; `None` when its end has not come.
fn take_line<'b>(bytes: &'b [u8], at: &mut usize) -> Result<Option<&'b [u8]>, Fault> {
    let from = *at;
    let Some(end) = bytes[from..].iter().position(|&b| !is_text_byte(b)).map(|length| from + length) else {
        return more_may_come(bytes);
    };
    match (bytes[end], bytes.get(end + 1)) {
        (b'\r', Some(b'\n')) => {
            *at = end + 2;
            if *at > ANSWER_HEAD_BYTES_MAX { Err(too_long()) } else { Ok(Some(&bytes[from..end])) }
        }
        (b'\r', None) => more_may_come(bytes),
        (b'\r', Some(_)) => Err(Fault::protocol("a CR without its LF", &bytes[from..])),
        (b'\n', _) => Err(Fault::protocol("a line that ends with LF alone", &bytes[from..])),
        (0, _) => Err(Fault::protocol("a NUL byte in the head", &bytes[from..])),
        _ => Err(Fault::protocol("a control byte in the head", &bytes[from..])),
    }
}

fn more_may_come<T>(bytes: &[u8]) -> Result<Option<T>, Fault> {
    if bytes.len() >= ANSWER_HEAD_BYTES_MAX { Err(too_long()) } else { Ok(None) }
}

fn too_long() -> Fault {
    Fault::protocol(&format!("a head of more than {ANSWER_HEAD_BYTES_MAX} bytes"), b"")
}

/// What does not begin like an answer is none, however much is still to come.
fn check_beginning(bytes: &[u8]) -> Result<(), Fault> {
    let known = bytes.len().min(VERSION_1.len());
    if bytes[..known] == VERSION_1[..known] { Ok(()) } else { Err(Fault::protocol("no HTTP/1.x", bytes)) }
}

pub(crate) const VERSION_1: &[u8] = b"HTTP/1.";

/// RFC 9112 §4: the space behind the status stands there even when no reason does.
fn read_status_line(line: &[u8]) -> Result<(u16, bool), Fault> {
    let &[minor @ (b'0' | b'1'), b' ', a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b' ', ..] =
        line.get(VERSION_1.len()..).unwrap_or_default()
    else {
        return Err(Fault::protocol("a status line of another form", line));
    };
    let digit = |b: u8| u16::from(b - b'0');
    Ok((digit(a) * 100 + digit(b) * 10 + digit(c), minor == b'0'))
}

/// Name and value of a field line (RFC 9112 §5).
pub(crate) fn read_field(line: &[u8]) -> Result<(&[u8], &[u8]), Fault> {
    let Some(length) = line.iter().position(|&b| !is_token_byte(b)) else {
        return Err(Fault::protocol("a field line without a colon", line));
    };
    let (name, rest) = line.split_at(length);
    match rest[0] {
        b':' if !name.is_empty() => Ok((name, rest[1..].trim_ascii())),
        b':' => Err(Fault::protocol("a field without a name", line)),
        b' ' | b'\t' if name.is_empty() => Err(Fault::protocol("a folded line", line)),
        b' ' | b'\t' => Err(Fault::protocol("white space before a colon", line)),
        _ => Err(Fault::protocol("a field name that is no token", line)),
    }
}

impl Framing {
    /// RFC 9110 §8.6: the same number several times is one number; anything else has two meanings.
    fn take_lengths(&mut self, value: &[u8]) -> Result<(), Fault> {
        for member in value.split(|&b| b == b',') {
            let length = read_decimal(member.trim_ascii())
                .ok_or_else(|| Fault::protocol("a Content-Length that is no number", value))?;
            if self.length.is_some_and(|known| known != length) {
                return Err(Fault::protocol("Content-Lengths that differ", value));
            }
            self.length = Some(length);
        }
        Ok(())
    }

    /// No request of ours names a coding in `TE`, so none but chunked may come (RFC 9112 §7.4).
    fn take_coding(&mut self, value: &[u8]) -> Result<(), Fault> {
        if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
            return Err(Fault::protocol("a Transfer-Encoding other than chunked, once", value));
        }
        self.chunked = true;
        Ok(())
    }

    fn take_options(&mut self, value: &[u8]) {
        for option in value.split(|&b| b == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn body_end(&self, status: u16, http_1_0: bool, bodiless: bool) -> Result<BodyEnd, Fault> {
        let refuse = |what: &str| Err(Fault::protocol(what, b""));
        if self.chunked && self.length.is_some() {
            return refuse("both Transfer-Encoding and Content-Length");
        }
        if self.chunked && http_1_0 {
            return refuse("Transfer-Encoding in HTTP/1.0");
        }
        if status == 101 {
            return refuse("status 101, and no other protocol was asked for");
        }
        if status < 200 || status == 204 {
            // RFC 9110 §8.6, RFC 9112 §6.1: neither field may stand here. A length of zero harms nobody.
            return match self.chunked || self.length.is_some_and(|length| length > 0) {
                true => refuse("a body is announced where the status has none"),
                false => Ok(BodyEnd::Length(0)),
            };
        }
        Ok(match self.length {
            _ if bodiless || status == 304 => BodyEnd::Length(0),
            _ if self.chunked => BodyEnd::Chunked,
            Some(length) => BodyEnd::Length(length),
            None => BodyEnd::WithConnection,
        })
    }
}

/// Digits alone, below 2⁶³.
fn read_decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, &digit| {
        let digit = u64::from(digit.checked_sub(b'0').filter(|&digit| digit < 10)?);
        number.checked_mul(10)?.checked_add(digit).filter(|&number| number <= i64::MAX as u64)
    })
}

/// What may stand in a line: RFC 9110 §5.5, with the white space around values.
#[inline]
pub(crate) fn is_text_byte(b: u8) -> bool {
    KINDS[usize::from(b)] & TEXT != 0
}

/// RFC 9110 §5.6.2.
#[inline]
pub(crate) fn is_token_byte(b: u8) -> bool {
    KINDS[usize::from(b)] & TOKEN != 0
}

const TEXT: u8 = 1;
const TOKEN: u8 = 2;

static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut b = 0;
    while b < 256 {
        if b == b'\t' as usize || (b >= 0x20 && b != 0x7F) {
            kinds[b] |= TEXT;
        }
        if (b as u8).is_ascii_alphanumeric() {
            kinds[b] |= TOKEN;
        }
        b += 1;
    }
    let marks = b"!#$%&'*+-.^_`|~";
    let mut n = 0;
    while n < marks.len() {
        kinds[marks[n] as usize] |= TOKEN;
        n += 1;
    }
    kinds
};
