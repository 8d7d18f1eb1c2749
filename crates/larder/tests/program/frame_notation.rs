//! Frames of HTTP/2 and the lines of a header block as bytes, for the notation of spec/bad-input. It is the tables' own: what
//! judges larder shares no codec with it.
//!
//! `{HEADERS EH 1|payload}`: a frame by its name, its flags (`E` END_STREAM or ACK, `H` END_HEADERS, `P` PADDED, `R` PRIORITY, `-`
//! none), its stream, and a payload in the notation, whose length is counted. `TYPE_fe` is the type 0xfe; the stream `5+i` within a
//! repetition is 5, 7, 9, … `{= name|value}` is a line as a literal, `{+ name|value}` one that enters the table; `{u32 N}` is a number.

/// By their numbers in RFC 9113 §6.
const TYPES: [&str; 10] = [
    "DATA",
    "HEADERS",
    "PRIORITY",
    "RST_STREAM",
    "SETTINGS",
    "PUSH_PROMISE",
    "PING",
    "GOAWAY",
    "WINDOW_UPDATE",
    "CONTINUATION",
];

/// The head and the payload of a frame, if this is one.
pub fn split(inner: &str) -> Option<(&str, &str)> {
    let (head, payload) = inner.split_once('|')?;
    let name = head.split(' ').next()?;
    (TYPES.contains(&name) || name.starts_with("TYPE_")).then_some((head, payload))
}

/// A frame with this payload. `count`: of the repetition around it.
pub fn frame(head: &str, payload: &[u8], count: Option<usize>) -> Result<Vec<u8>, String> {
    let error = || format!("{head:?} is no head of a frame: a type, flags and a stream are wanted");
    let words: Vec<&str> = head.split(' ').collect();
    let [name, flags, stream] = words[..] else { return Err(error()) };
    let number = match name.strip_prefix("TYPE_") {
        Some(hex) => u8::from_str_radix(hex, 16).map_err(|_| error())?,
        None => TYPES.iter().position(|known| *known == name).ok_or_else(error)? as u8,
    };
    let mut bits = 0;
    for flag in flags.chars() {
        bits |= match flag {
            'E' => 0x1,
            'H' => 0x4,
            'P' => 0x8,
            'R' => 0x20,
            '-' => 0,
            _ => return Err(error()),
        };
    }
    let (first, step) = stream.strip_suffix("+i").map_or((stream, 0), |first| (first, 2));
    let first: u32 = first.parse().map_err(|_| error())?;
    let stream = first + step * count.unwrap_or(0) as u32;
    let length = (payload.len() as u32).to_be_bytes();
    Ok([&length[1..], &[number, bits], &stream.to_be_bytes(), payload].concat())
}

/// How a line is written (RFC 7541 §6.2), its name, its value.
pub fn split_line(inner: &str) -> Option<(char, &str, &str)> {
    let form = inner.chars().next().filter(|form| matches!(form, '=' | '+'))?;
    let (name, value) = inner[1..].strip_prefix(' ')?.split_once('|')?;
    Some((form, name, value))
}

/// A literal whose name is written out, nothing of it Huffman-coded.
pub fn line(form: char, name: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = vec![if form == '+' { 0x40 } else { 0 }];
    for text in [name, value] {
        push_length(text.len(), &mut out);
        out.extend_from_slice(text);
    }
    out
}

/// RFC 7541 §5.1, with a prefix of seven bits.
fn push_length(length: usize, out: &mut Vec<u8>) {
    if length < 127 {
        return out.push(length as u8);
    }
    out.push(127);
    let mut left = length - 127;
    while left >= 128 {
        out.push((left % 128) as u8 | 0x80);
        left /= 128;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests {
    use crate::notation::{Names, read_bytes};

    fn check(text: &str, expect: &[u8]) {
        assert_eq!(read_bytes(text, &Names::default()).as_deref(), Ok(expect), "{text}");
    }

    #[test]
    fn frames_stand_for_their_bytes() {
        check("{SETTINGS - 0|}", b"\0\0\0\x04\0\0\0\0\0");
        check("{HEADERS EH 3|ab}", b"\0\0\x02\x01\x05\0\0\0\x03ab");
        check("{{TYPE_fe P 1+i|}*2}", b"\0\0\0\xfe\x08\0\0\0\x01\0\0\0\xfe\x08\0\0\0\x03");
        check("{= a|b}{+ c|}", b"\0\x01a\x01b\x40\x01c\0");
        check("{= a|{b*1337}}", &[b"\0\x01a\x7f\xba\x09".as_slice(), &[b'b'; 1337]].concat());
        check("{u32 258}", b"\0\0\x01\x02");
    }

    #[test]
    fn what_is_no_frame_is_an_error() {
        for text in
            ["{HEADERS 1|}", "{HEADERS X 1|}", "{HEADERS E one|}", "{BODY - 1|}", "{u32 -1}", "{DATA - 1|{wait}}"]
        {
            assert!(read_bytes(text, &Names::default()).is_err(), "{text}");
        }
    }
}
