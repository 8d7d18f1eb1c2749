//! What is recorded of the frames of an HTTP/2 connection: each as it came or went, where somebody asks for that, and at the end how many
//! bytes they were. Heads and bodies of messages are counted with their requests; here are the nine bytes before each frame, and what
//! frames hold that belong to no request.

use wire::http2::{FRAME_HEAD_BYTES, PREFACE};

use crate::records::RecordKind;
use crate::records::session_records::SessionRecords;
use crate::records::task_records::Carried;

/// Frames by their types, which are numbers from 0 (RFC 9113 §6).
const NAMES: [&str; 10] = [
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
/// What these hold is counted with a request: DATA, HEADERS, PUSH_PROMISE, CONTINUATION.
const OF_REQUESTS: [u8; 4] = [0, 1, 5, 9];

/// Of one connection.
#[derive(Debug)]
pub(crate) struct FrameRecords {
    came: FrameReader,
    went: FrameReader,
}

/// Which way frames go, by their kinds of records.
#[derive(Clone, Copy)]
struct FrameKinds {
    head: RecordKind,
    body: RecordKind,
}

const CAME: FrameKinds = FrameKinds { head: RecordKind::H2RxHdr, body: RecordKind::H2RxBody };
const WENT: FrameKinds = FrameKinds { head: RecordKind::H2TxHdr, body: RecordKind::H2TxBody };

impl FrameRecords {
    pub(crate) fn new() -> FrameRecords {
        FrameRecords { came: FrameReader::behind(PREFACE.len()), went: FrameReader::behind(0) }
    }

    /// The next bytes from the client.
    pub(crate) fn came(&mut self, session: &SessionRecords, bytes: &[u8]) {
        self.came.read(session, CAME, bytes);
    }

    /// The next bytes to the client.
    pub(crate) fn went(&mut self, session: &SessionRecords, bytes: &[u8]) {
        self.went.read(session, WENT, bytes);
    }

    /// What they came to.
    pub(crate) fn carried(&self) -> Carried {
        let (came, went) = (&self.came, &self.went);
        Carried {
            head_in: came.heads_bytes,
            body_in: came.overhead_bytes,
            head_out: went.heads_bytes,
            body_out: went.overhead_bytes,
        }
    }
}

/// Finds the frames in bytes that go one way, however they were cut.
#[derive(Debug)]
struct FrameReader {
    /// Bytes before the next frame that are of none.
    skipped: usize,
    /// Of the frame on its way: its head, and behind it what has come of its body and is wanted.
    frame: Vec<u8>,
    body_left: usize,
    heads_bytes: u64,
    overhead_bytes: u64,
}

impl FrameReader {
    fn behind(skipped: usize) -> FrameReader {
        FrameReader { skipped, frame: Vec::new(), body_left: 0, heads_bytes: 0, overhead_bytes: 0 }
    }

    fn read(&mut self, session: &SessionRecords, kinds: FrameKinds, mut bytes: &[u8]) {
        let wants_text = kinds.head == RecordKind::H2RxHdr && session.wants(RecordKind::Debug);
        let wants_body = wants_text || session.wants(kinds.body);
        let skipped = self.skipped.min(bytes.len());
        self.skipped -= skipped;
        bytes = &bytes[skipped..];
        let mut is_told = false;
        while !bytes.is_empty() {
            let missing = FRAME_HEAD_BYTES.saturating_sub(self.frame.len()).min(bytes.len());
            self.frame.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if missing > 0 && self.frame.len() == FRAME_HEAD_BYTES {
                self.count_head();
            }
            let body = self.body_left.min(bytes.len());
            if wants_body {
                self.frame.extend_from_slice(&bytes[..body]);
            }
            self.body_left -= body;
            bytes = &bytes[body..];
            if self.frame.len() >= FRAME_HEAD_BYTES && self.body_left == 0 {
                let (head, body) = self.frame.split_at(FRAME_HEAD_BYTES);
                is_told |= session.frame((kinds.head, head), (kinds.body, body));
                if wants_text {
                    session.debug(format_args!("H2RXF {}", text(head, body)));
                }
                self.frame.clear();
            }
        }
        if is_told {
            session.hand_over();
        }
        if self.frame.is_empty() {
            // An idle connection holds no buffer.
            self.frame = Vec::new();
        }
    }

    fn count_head(&mut self) {
        let [high, middle, low, kind, ..] = self.frame[..] else { return };
        self.body_left = u32::from_be_bytes([0, high, middle, low]) as usize;
        self.heads_bytes += FRAME_HEAD_BYTES as u64;
        if !OF_REQUESTS.contains(&kind) {
            self.overhead_bytes += self.body_left as u64;
        }
    }
}

/// Type, length, flags, stream and body, as people read them.
fn text(head: &[u8], body: &[u8]) -> String {
    let name = NAMES.get(usize::from(head[3])).map_or_else(|| hex(&head[3..4]), |name| (*name).to_owned());
    let mut text = format!("{name}[{}] {} {}", body.len(), hex(&head[4..5]), hex(&head[5..]));
    if !body.is_empty() {
        text += " ";
        text += &hex(body);
    }
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("0x"), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: [u8; 17] = [0, 0, 8, 6, 0, 0, 0, 0, 0, b'a', b'b', b'c', b'd', b'e', b'f', b'g', b'h'];

    #[test]
    fn frames_are_written_as_people_read_them() {
        assert_eq!(text(&PING[..9], &PING[9..]), "PING[8] 0x00 0x00000000 0x6162636465666768");
        assert_eq!(text(&[0, 0, 0, 0xfe, 5, 0, 0, 0, 7], b""), "0xfe[0] 0x05 0x00000007");
    }
}
