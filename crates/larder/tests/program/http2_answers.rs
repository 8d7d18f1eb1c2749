//! What came back on a connection of HTTP/2, as the tables judge it: whole frames, and the status of a header block. It is a reader
//! of its own, which shares nothing with larder's codec.

/// By their numbers in RFC 9113 §7.
const CODES: [&str; 14] = [
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

/// A code's name, or its number.
pub fn code_name(code: u32) -> String {
    CODES.get(code as usize).map_or_else(|| code.to_string(), |name| (*name).to_string())
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    pub number: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// What happened to one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamAnswer {
    /// Of the last header block that has one, interim ones among them.
    pub status: Option<u16>,
    pub body: Vec<u8>,
    pub is_whole: bool,
    /// The code of its RST_STREAM.
    pub reset: Option<u32>,
}

/// What happened to the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoAway {
    pub last_stream: u32,
    pub code: u32,
    pub words: String,
}

/// Reads whole frames; what is no whole frame is left out.
pub fn frames(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while let Some((head, behind)) = bytes.split_first_chunk::<9>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let Some(payload) = behind.get(..length) else { break };
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & (u32::MAX >> 1);
        frames.push(Frame { number: head[3], flags: head[4], stream, payload: payload.to_vec() });
        bytes = &behind[length..];
    }
    frames
}

fn number(payload: &[u8]) -> u32 {
    payload.first_chunk::<4>().map_or(u32::MAX, |bytes| u32::from_be_bytes(*bytes))
}

pub fn of_stream(frames: &[Frame], stream: u32) -> StreamAnswer {
    let mut answer = StreamAnswer::default();
    for frame in frames.iter().filter(|frame| frame.stream == stream) {
        match frame.number {
            0 => answer.body.extend_from_slice(&frame.payload),
            1 => answer.status = status(&frame.payload).or(answer.status),
            3 => answer.reset = Some(number(&frame.payload)),
            _ => {}
        }
        answer.is_whole |= frame.number < 2 && frame.flags & 1 != 0;
    }
    answer
}

/// The last one: the first may only have announced it.
pub fn goaway(frames: &[Frame]) -> Option<GoAway> {
    let frame = frames.iter().rev().find(|frame| frame.number == 7)?;
    let words = String::from_utf8_lossy(frame.payload.get(8..)?).into_owned();
    Some(GoAway { last_stream: number(&frame.payload), code: number(&frame.payload[4..]), words })
}

/// What a block of a response begins with: `:status` by its place in the static table (RFC 7541, Appendix A: 8 to 14), or by its name's
/// place and three digits, which may be Huffman-coded.
fn status(block: &[u8]) -> Option<u16> {
    const WHOLE: [u16; 7] = [200, 204, 206, 304, 400, 404, 500];
    let mut at = 0;
    // Size updates of the table may come first; a longer one goes on as long as the highest bit says so.
    while block.get(at)? >> 5 == 1 {
        let is_long = block[at] == 0x3f;
        at += 1;
        while is_long && *block.get(at)? & 0x80 != 0 {
            at += 1;
        }
        at += usize::from(is_long);
    }
    let first = *block.get(at)?;
    if let Some(place) = first.checked_sub(0x80 + 8).filter(|&place| usize::from(place) < WHOLE.len()) {
        return Some(WHOLE[usize::from(place)]);
    }
    let text = match (first, block.get(at + 1)?) {
        (0x08 | 0x18 | 0x48, 3) => block.get(at + 2..at + 5)?.to_vec(),
        (0x08 | 0x18 | 0x48, length @ 0x82..=0x83) => digits(block.get(at + 2..)?.get(..usize::from(length & 0x7f))?)?,
        _ => return None,
    };
    String::from_utf8(text).ok()?.parse().ok()
}

/// Three digits by Huffman's code (RFC 7541, Appendix B): 0 to 2 have five bits, from 00000 on, the others six, from 011001 on.
fn digits(coded: &[u8]) -> Option<Vec<u8>> {
    let bits: Vec<u8> = coded.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    let value = |bits: &[u8]| bits.iter().fold(0u8, |value, bit| value << 1 | bit);
    let (mut at, mut out) = (0, Vec::new());
    while out.len() < 3 {
        let short = value(bits.get(at..at + 5)?);
        if short < 3 {
            out.push(b'0' + short);
            at += 5;
            continue;
        }
        let long = value(bits.get(at..at + 6)?);
        out.push(b'3' + long.checked_sub(0b011001).filter(|&digit| digit < 7)?);
        at += 6;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_in_each_of_its_forms() {
        assert_eq!(status(b"\x88"), Some(200));
        assert_eq!(status(b"\x3f\xe1\x1f\x8c"), Some(400));
        assert_eq!(status(b"\x20\x8c"), Some(400));
        assert_eq!(status(b"\x48\x03431"), Some(431));
        // RFC 7541 §C.6.1: 302.
        assert_eq!(status(b"\x48\x82\x64\x02"), Some(302));
        assert_eq!(status(b"\x00\x01a\x01b"), None);
    }

    #[test]
    fn what_happened_is_gathered() {
        let bytes = b"\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x02\0\x01\0\0\0\x01ab\0\0\x04\x03\0\0\0\0\x03\0\0\0\x01\
            \0\0\x0a\x07\0\0\0\0\0\0\0\0\x03\0\0\0\x0bno\0\0";
        let frames = frames(bytes);
        assert_eq!(frames.len(), 4, "the last is not whole");
        let first = StreamAnswer { status: Some(200), body: b"ab".to_vec(), is_whole: true, reset: None };
        assert_eq!(of_stream(&frames, 1), first);
        assert_eq!(of_stream(&frames, 3).reset, Some(1));
        let goaway = goaway(&frames).expect("it is there");
        assert_eq!((goaway.last_stream, &*code_name(goaway.code), &*goaway.words), (3, "ENHANCE_YOUR_CALM", "no"));
    }
}
