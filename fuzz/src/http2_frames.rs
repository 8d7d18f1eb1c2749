//! The laws of `http2_connection` for whole frames: what is made up says their types, flags, streams and payloads, and their lengths are
//! right. So more than one in a million gets beyond the first head.

use crate::http2_connection;

const FRAMES_MAX: usize = 64;
/// Lines that make a request, for payloads that ask for them.
const GET: &[u8] = b"\x82\x86\x84\x01\x01t";
const POST: &[u8] = b"\x83\x86\x84\x01\x01t";

/// Panics when a law is broken. Each frame is its type, flags, stream, how its payload begins, a length, and so many bytes.
pub fn run(data: &[u8]) {
    let Some((&choice, mut rest)) = data.split_first() else { return };
    let mut bytes = vec![choice];
    for _ in 0..FRAMES_MAX {
        let Some((&[kind, flags, stream, start, length], behind)) = rest.split_first_chunk::<5>() else { break };
        let (own, behind) = behind.split_at(behind.len().min(usize::from(length)));
        rest = behind;
        let begins: &[u8] = match start % 8 {
            0 => GET,
            1 => POST,
            2 => &[0, 0, 0, 0],
            3 => &[0, 0, 0, 0, 0, 0, 0, 0],
            4 => &[0xbe; 200],
            _ => &[],
        };
        let payload = [begins, own].concat();
        bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
        bytes.extend_from_slice(&[kind % 0x12, flags]);
        bytes.extend_from_slice(&u32::from(stream % 16).to_be_bytes());
        bytes.extend_from_slice(&payload);
    }
    http2_connection::run(&bytes);
}
