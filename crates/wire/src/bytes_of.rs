//! The notation in which the test tables write bytes; only tests use it.
//!
//! `¶` is CR LF, as in the lists of bad inputs that the tables follow; any other character below U+0100 is the byte of
//! that number, so that `\u{a0}` is one byte and not two.

/// The bytes that a row of a table means.
pub(crate) fn bytes_of(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '¶' => bytes.extend_from_slice(b"\r\n"),
            _ => bytes.push(u8::try_from(u32::from(letter)).expect("rows are written in Latin-1")),
        }
    }
    bytes
}

/// Where to cut a message in two: everywhere, or here and there when it is long.
pub(crate) fn cuts(bytes: usize) -> impl Iterator<Item = usize> {
    let step = if bytes <= 2_000 { 1 } else { 1 + bytes / 97 };
    (0..=bytes).step_by(step)
}
