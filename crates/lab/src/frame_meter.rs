//! Counts what comes on an HTTP/2 connection by its frames: the bytes of field blocks as they were sent, and whether the
//! server went away. It reads the nine bytes before each frame and of GOAWAY the reason, and passes over all else; what
//! frames mean is the business of the crate `h2`, which tells neither.

/// Type, and what is left of the current frame.
#[derive(Debug, Default)]
pub(crate) struct FrameMeter {
    head: [u8; HEAD_BYTES],
    head_bytes: usize,
    left: usize,
    payload: Payload,
    /// The first frame is whole, which is the server's SETTINGS (RFC 9113 §3.4).
    pub(crate) has_settings: bool,
    pub(crate) field_block_bytes: u64,
    /// The reason of the last GOAWAY; 0 is that the server wants to end.
    pub(crate) goaway: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Payload {
    #[default]
    PassedOver,
    FieldBlock,
    /// So many of its bytes were seen.
    GoAway(usize),
}

const HEAD_BYTES: usize = 9;
/// RFC 9113 §6.
const HEADERS: u8 = 1;
const GOAWAY: u8 = 7;
const CONTINUATION: u8 = 9;

impl FrameMeter {
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let length = self.left.min(bytes.len());
                self.take_payload(&bytes[..length]);
                self.left -= length;
                bytes = &bytes[length..];
                self.has_settings |= self.left == 0;
                continue;
            }
            let wanted = (HEAD_BYTES - self.head_bytes).min(bytes.len());
            self.head[self.head_bytes..self.head_bytes + wanted].copy_from_slice(&bytes[..wanted]);
            self.head_bytes += wanted;
            bytes = &bytes[wanted..];
            if self.head_bytes == HEAD_BYTES {
                self.begin_frame();
            }
        }
    }

    pub(crate) fn is_between_frames(&self) -> bool {
        self.left == 0 && self.head_bytes == 0
    }

    fn begin_frame(&mut self) {
        let [a, b, c, kind, ..] = self.head;
        self.head_bytes = 0;
        self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.has_settings |= self.left == 0;
        self.payload = match kind {
            HEADERS | CONTINUATION => Payload::FieldBlock,
            GOAWAY => {
                self.goaway = Some(0);
                Payload::GoAway(0)
            }
            _ => Payload::PassedOver,
        };
    }

    fn take_payload(&mut self, bytes: &[u8]) {
        match &mut self.payload {
            Payload::PassedOver => {}
            Payload::FieldBlock => self.field_block_bytes += bytes.len() as u64,
            Payload::GoAway(seen) => {
                for &byte in bytes {
                    if REASON.contains(seen) {
                        self.goaway = self.goaway.map(|reason| reason << 8 | u32::from(byte));
                    }
                    *seen += 1;
                }
            }
        }
    }
}

/// Where in a GOAWAY its reason stands.
const REASON: std::ops::Range<usize> = 4..8;

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
        [&[0, 0, payload.len() as u8, kind, 0, 0, 0, 0, 1], payload].concat()
    }

    #[test]
    fn frames_are_counted_however_they_come() {
        let all = [
            frame(4, &[]),
            frame(HEADERS, &[0; 20]),
            frame(0, &[7; 200]),
            frame(CONTINUATION, &[0; 5]),
            frame(GOAWAY, &[0, 0, 0, 9, 0, 0, 0, 11, b'x']),
        ]
        .concat();
        for step in [1, 2, 9, 10, all.len()] {
            let mut meter = FrameMeter::default();
            all.chunks(step).for_each(|part| meter.take(part));
            assert_eq!((meter.field_block_bytes, meter.goaway), (25, Some(11)), "{step}");
            assert!(meter.is_between_frames(), "{step}");
            meter.take(&[0]);
            assert!(!meter.is_between_frames(), "{step}");
        }
    }
}
