//! Laws of the chunked decoder, for any bytes; and a second, slow decoder that it must agree with. The first byte says
//! how large the pieces are in which the body arrives.

use wire::{BodyDecoder, ChunkedLimits, Decoded, LAST_CHUNK, RequestBody, chunk_head, write_trailers};

/// Panics when a law is broken.
pub fn run(data: &[u8]) {
    let Some((&choice, data)) = data.split_first() else { return };
    let whole = decode(data, data.len().max(1));
    let pieces = decode(data, 1 + usize::from(choice));
    assert_eq!(whole, pieces, "the outcome does not depend on how the bytes are split");
    if data.len() <= 512 {
        assert_eq!(whole, decode(data, 1));
    }
    match (&whole.end, reference(data)) {
        // What the budgets refuse the second decoder does not know; it has no others.
        (End::Refused(token), _) if token.ends_with("-large") || token.ends_with("-many") => {}
        (End::Refused(token), expect) => assert_eq!(expect, Err(Stop::Wrong), "{token}"),
        (End::More, expect) => assert_eq!(expect, Err(Stop::More)),
        (End::Ended { consumed }, expect) => {
            assert_eq!(expect, Ok((whole.data.clone(), *consumed)));
            check_encoded(&whole);
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum End {
    More,
    Ended { consumed: usize },
    Refused(&'static str),
}

#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    data: Vec<u8>,
    trailers: Vec<(Vec<u8>, Vec<u8>)>,
    end: End,
}

fn decode(input: &[u8], piece_bytes: usize) -> Outcome {
    let mut decoder = BodyDecoder::for_request(RequestBody::Chunked, &ChunkedLimits::DEFAULT);
    let mut outcome = Outcome { data: Vec::new(), trailers: Vec::new(), end: End::More };
    let mut at = 0;
    'pieces: for piece in input.chunks(piece_bytes) {
        let mut rest = piece;
        loop {
            let before = decoder.is_end();
            assert!(!before, "asked again after its end");
            match decoder.decode(rest) {
                Ok(Decoded::Data { from, to }) => {
                    assert!(from < to && to <= rest.len());
                    outcome.data.extend_from_slice(&rest[from..to]);
                    at += to;
                    rest = &rest[to..];
                }
                Ok(Decoded::More { consumed }) => {
                    assert_eq!(consumed, rest.len());
                    assert!(decoder.end_of_input().is_err(), "an unfinished body is a truncated one");
                    at += consumed;
                    break;
                }
                Ok(Decoded::End { consumed }) => {
                    at += consumed;
                    outcome.end = End::Ended { consumed: at };
                    break 'pieces;
                }
                Err(refusal) => {
                    outcome.end = End::Refused(refusal.token);
                    break 'pieces;
                }
            }
        }
    }
    if let Some(trailers) = decoder.trailers() {
        outcome.trailers = trailers.view().iter().map(|f| (f.name_text.to_vec(), f.value.to_vec())).collect();
    }
    outcome
}

/// What was decoded is encoded again, and decodes to the same.
fn check_encoded(whole: &Outcome) {
    let mut encoded = Vec::new();
    for piece in whole.data.chunks(97) {
        let mut head = [0; wire::CHUNK_HEAD_BYTES_MAX];
        let head_bytes = chunk_head(piece.len(), &mut head);
        for part in [&head[..head_bytes], piece, wire::CHUNK_END] {
            encoded.extend_from_slice(part);
        }
    }
    encoded.extend_from_slice(LAST_CHUNK);
    let mut trailers = message::Fields::default();
    for (name, value) in &whole.trailers {
        trailers.push_named(name, value);
    }
    write_trailers(trailers.view(), &mut encoded);
    let again = decode(&encoded, encoded.len());
    assert_eq!((&again.data, &again.trailers), (&whole.data, &whole.trailers));
    assert_eq!(again.end, End::Ended { consumed: encoded.len() });
}

/// Why the second decoder did not come to the end.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    More,
    Wrong,
}

/// The grammar of RFC 9112 §7.1, line by line and without haste: the data, and where the body ends.
fn reference(input: &[u8]) -> Result<(Vec<u8>, usize), Stop> {
    let (mut data, mut at) = (Vec::new(), 0);
    loop {
        let line = line(input, at, is_size_line_so_far)?;
        at += line.len() + 2;
        let digits = line.iter().take_while(|b| b.is_ascii_hexdigit()).count();
        let text = std::str::from_utf8(&line[..digits]).expect("ASCII");
        let size = usize::from_str_radix(text, 16).map_err(|_| Stop::Wrong)?;
        if size == 0 {
            break;
        }
        let (chunk, rest) = input[at..].split_at_checked(size).ok_or(Stop::More)?;
        match rest {
            [b'\r', b'\n', ..] => {}
            [] | [b'\r'] => return Err(Stop::More),
            _ => return Err(Stop::Wrong),
        }
        data.extend_from_slice(chunk);
        at += size + 2;
    }
    loop {
        let line = line(input, at, is_trailer_so_far)?;
        at += line.len() + 2;
        if line.is_empty() {
            return Ok((data, at));
        }
        let name = line.split(|b| *b == b':').next().unwrap_or_default();
        if !line.contains(&b':') || name.is_empty() || !name.iter().all(|b| is_token_byte(*b)) {
            return Err(Stop::Wrong);
        }
    }
}

/// The line at `at`, without its CRLF. `so_far(text, whole)` judges what there is of it.
fn line(input: &[u8], at: usize, so_far: fn(&[u8], bool) -> bool) -> Result<&[u8], Stop> {
    let rest = &input[at..];
    let end = rest.iter().position(|b| *b == b'\r' || *b == b'\n');
    let (text, rest) = rest.split_at(end.unwrap_or(rest.len()));
    match rest {
        _ if !so_far(text, end.is_some()) => Err(Stop::Wrong),
        [b'\r', b'\n', ..] => Ok(text),
        [] | [b'\r'] => Err(Stop::More),
        _ => Err(Stop::Wrong),
    }
}

fn is_trailer_so_far(text: &[u8], _whole: bool) -> bool {
    text.iter().all(|b| *b == b'\t' || (*b >= b' ' && *b != 0x7f))
}

/// Is the text a size line, or can it become one?
fn is_size_line_so_far(text: &[u8], whole: bool) -> bool {
    let digits = text.iter().take_while(|b| b.is_ascii_hexdigit()).count();
    let significant = text[..digits].iter().skip_while(|b| **b == b'0').count();
    if digits > 16 || significant > 8 || (digits == 0 && (whole || !text.is_empty())) {
        return false;
    }
    let mut rest = &text[digits..];
    while !rest.is_empty() {
        let Some(after) = skip_blanks(rest).strip_prefix(b";") else {
            return !whole && skip_blanks(rest).is_empty();
        };
        let named = skip_token(skip_blanks(after));
        if named.len() == skip_blanks(after).len() {
            return !whole && named.is_empty();
        }
        rest = named;
        if let Some(value) = skip_blanks(rest).strip_prefix(b"=") {
            let value = skip_blanks(value);
            rest = match value.first() {
                None => return !whole,
                Some(b'"') => match skip_quoted(value) {
                    None => return !whole && value.iter().all(|b| is_text(*b)),
                    Some(rest) => rest,
                },
                Some(b) if is_token_byte(*b) => skip_token(value),
                Some(_) => return false,
            };
        }
    }
    true
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|b| **b == b' ' || **b == b'\t').count()..]
}

fn skip_token(text: &[u8]) -> &[u8] {
    &text[text.iter().take_while(|b| is_token_byte(**b)).count()..]
}

/// What follows a whole quoted string.
fn skip_quoted(text: &[u8]) -> Option<&[u8]> {
    let mut at = 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some(&text[at + 1..]),
            b'\\' if !is_text(*text.get(at + 1)?) => return None,
            b'\\' => at += 2,
            b if is_text(b) => at += 1,
            _ => return None,
        }
    }
}

fn is_text(b: u8) -> bool {
    b == b'\t' || (b >= b' ' && b != 0x7f)
}

fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}
