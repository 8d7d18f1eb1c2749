//! Laws of what is read of a FastCGI application, for any bytes. The first byte chooses the request that is answered, and where the bytes are
//! cut.

use message::{FieldName, Method};
use wire::fastcgi::{AnswerPart, AnswerReader, RECORD_CONTENT_BYTES_MAX, read_cgi_head};
use wire::{HeadLimits, ResponseBody};

/// What the records say.
#[derive(Debug, Default, PartialEq, Eq)]
struct Answer {
    output: Vec<u8>,
    errors: Vec<u8>,
    end: String,
}

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let method = [Method::Get, Method::Head, Method::Post, Method::Get][usize::from(choice & 3)];
    let whole = read([data]);
    assert!(whole.output.len() + whole.errors.len() <= data.len());
    let piece_bytes = 1 + usize::from(choice >> 2);
    assert_eq!(read(data.chunks(piece_bytes)), whole, "in pieces of {piece_bytes}");
    check_records(data, &whole);
    check_head(&whole.output, method);
    // Programs are not asked to be valid records: the head is held to its laws by itself, too.
    check_head(data, method);
}

fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Answer {
    let (mut reader, mut answer) = (AnswerReader::default(), Answer::default());
    for piece in pieces {
        let mut at = 0;
        loop {
            let rest = &piece[at..];
            match reader.read(rest) {
                Ok(AnswerPart::Output { from, to }) => {
                    assert!(from < to && to <= rest.len() && to - from <= RECORD_CONTENT_BYTES_MAX);
                    answer.output.extend_from_slice(&rest[from..to]);
                    at += to;
                }
                Ok(AnswerPart::Errors { from, to }) => {
                    assert!(from < to && to <= rest.len() && to - from <= RECORD_CONTENT_BYTES_MAX);
                    answer.errors.extend_from_slice(&rest[from..to]);
                    at += to;
                }
                Ok(AnswerPart::More) => break,
                Ok(AnswerPart::End { consumed, status }) => {
                    assert!(reader.has_ended() && consumed <= rest.len());
                    answer.end = format!("{status:?}");
                    at += consumed;
                }
                Err(refusal) => {
                    assert_eq!(refusal.status, 502);
                    answer.end = refusal.token.to_owned();
                    return answer;
                }
            }
        }
    }
    answer
}

/// The same by a reader that is as plain as it can be: it has all of the bytes.
fn check_records(mut data: &[u8], whole: &Answer) {
    let mut plain = Answer::default();
    while let [1, kind @ (3 | 6 | 7), 0, 1, high, low, padding, _, rest @ ..] = data {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if rest.len() < length + usize::from(*padding) || *kind == 3 {
            break;
        }
        if *kind == 6 { &mut plain.output } else { &mut plain.errors }.extend_from_slice(&rest[..length]);
        data = &rest[length + usize::from(*padding)..];
    }
    let is_stricter = whole.end == "fastcgi-stream-goes-on";
    assert!(is_stricter || whole.output.starts_with(&plain.output), "{whole:?}");
    assert!(is_stricter || whole.errors.starts_with(&plain.errors), "{whole:?}");
}

fn check_head(output: &[u8], method: Method) {
    let whole = outcome(output, method);
    for end in (0..output.len()).step_by(1 + output.len() / 24) {
        let early = outcome(&output[..end], method);
        assert!(early.is_none() || early == whole, "{end} of {}: {early:?}, then {whole:?}", output.len());
    }
    let mut spans = Vec::new();
    let Ok(Some(received)) = read_cgi_head(output, &mut spans, &HeadLimits::RESPONSE, method) else { return };
    let head = &output[..received.head_bytes];
    assert!(head.ends_with(b"\n") && head.len() <= HeadLimits::RESPONSE.head_bytes_max);
    assert!((200..1000).contains(&received.response.status.0) && received.persistent);
    let fields = received.response.fields;
    for field in fields.iter() {
        assert!(!field.name_text.is_empty() && field.name_text.is_ascii() && !field.name_text.contains(&b' '));
        assert!(field.value.iter().all(|b| *b == b'\t' || (*b >= b' ' && *b != 0x7f)));
        assert_eq!(field.name, FieldName::classify(field.name_text));
        assert!(!field.name_text.eq_ignore_ascii_case(b"status"));
    }
    assert!(!fields.contains(FieldName::TransferEncoding));
    let bodiless = method == Method::Head || matches!(received.response.status.0, 204 | 304);
    let expect = match fields.get(FieldName::ContentLength) {
        _ if bodiless => ResponseBody::None,
        Some(length) => ResponseBody::Length(std::str::from_utf8(length).expect("digits").parse().expect("a number")),
        None => ResponseBody::Chunked,
    };
    assert_eq!(received.body, expect);
}

fn outcome(output: &[u8], method: Method) -> Option<String> {
    match read_cgi_head(output, &mut Vec::new(), &HeadLimits::RESPONSE, method) {
        Ok(received) => received.map(|received| {
            let fields: Vec<_> =
                received.response.fields.iter().map(|field| (field.name_text.to_vec(), field.value.to_vec())).collect();
            format!("{:?} {:?} {} {fields:?}", received.response.status, received.body, received.head_bytes)
        }),
        Err(refusal) => {
            assert_eq!(refusal.status, 502);
            Some(refusal.token.to_owned())
        }
    }
}
