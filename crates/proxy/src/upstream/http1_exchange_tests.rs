//! What is read and written of an exchange without a socket: heads in pieces, and the frames of an upload.

use message::Method;

use super::*;

/// The statuses of the heads that `text` begins with, when it comes in pieces of so many bytes. Returns how often
/// it was read.
fn check(text: &str, piece_bytes: usize, expect: &[u16], behind: &str) -> usize {
    let limits = HeadLimits::RESPONSE;
    let (mut unread, mut reads, mut statuses, mut spans) = (UnreadBytes::default(), 0, Vec::new(), Vec::new());
    for piece in text.as_bytes().chunks(piece_bytes) {
        let mut new = piece;
        while statuses.len() < expect.len() {
            let taken = unread.take(std::mem::take(&mut new), &limits, |bytes| {
                reads += 1;
                let received = read_response(bytes, &mut spans, &limits, Method::Get, false)?;
                Ok(received.map(|received| (received.response.status.0, received.head_bytes)))
            });
            let Some(status) = taken.expect("nothing is wrong with it") else { break };
            statuses.push(status);
        }
    }
    assert_eq!(statuses, expect, "{text} by {piece_bytes}");
    assert!(behind.as_bytes().starts_with(&unread.bytes), "{:?} is left", unread.bytes);
    reads
}

#[test]
fn heads_are_read_however_they_are_split() {
    let text = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";
    for piece_bytes in 1..=text.len() {
        check(text, piece_bytes, &[103, 200], "body");
    }
}

#[test]
fn a_head_that_comes_byte_by_byte_is_read_once_a_line() {
    let text = format!("HTTP/1.1 200 OK\r\n{}\r\n", "X-Field: some value\r\n".repeat(90));
    let reads = check(&text, 1, &[200], "");
    assert!(reads < 110, "{reads}");
    let long = format!("HTTP/1.1 200 OK\r\nX-Field: {}\r\n\r\n", "a".repeat(30_000));
    let reads = check(&long, 1, &[200], "");
    assert!(reads < 30, "{reads}");
}

/// What an upload has to write once these pieces were read.
fn check_upload(is_chunked: bool, pieces: &[&'static str], expect: &str) {
    let mut queue = VecDeque::new();
    pieces.iter().for_each(|piece| frame(&mut queue, Bytes::from_static(piece.as_bytes()), is_chunked));
    assert_eq!(queue.iter().flatten().copied().collect::<Vec<_>>(), expect.as_bytes());
}

#[test]
fn a_chunked_body_is_framed_anew_and_any_other_goes_as_it_is() {
    check_upload(true, &["hello", " world, all"], "5\r\nhello\r\nb\r\n world, all\r\n");
    check_upload(false, &["he", "llo"], "hello");
}
