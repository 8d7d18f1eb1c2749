//! The chunked transfer coding, written (RFC 9112 §7.1).
//!
//! `proxy` puts these few bytes around slices of a body that it writes without copying.

use message::FieldsView;

/// Ends the data of a chunk.
pub const CHUNK_END: &[u8] = b"\r\n";

/// The last chunk, which trailers and an empty line follow.
pub const LAST_CHUNK: &[u8] = b"0\r\n";

/// The last chunk and the end of a body that has no trailers.
pub const LAST_CHUNK_AND_END: &[u8] = b"0\r\n\r\n";

/// Sixteen digits and CRLF.
pub const CHUNK_HEAD_BYTES_MAX: usize = 18;

/// Writes the size line of a chunk of `length` bytes, which must not be 0: that would end the body. Returns how much of
/// `out` it takes.
pub fn chunk_head(length: usize, out: &mut [u8; CHUNK_HEAD_BYTES_MAX]) -> usize {
    assert!(length > 0, "an empty chunk is the last one");
    let digits = (usize::BITS - length.leading_zeros()).div_ceil(4) as usize;
    for (n, digit) in out[..digits].iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[length >> (4 * (digits - 1 - n)) & 15];
    }
    out[digits..digits + 2].copy_from_slice(b"\r\n");
    digits + 2
}

/// Appends the trailer section and the empty line that ends the body; goes behind [`LAST_CHUNK`].
pub fn write_trailers(trailers: FieldsView<'_>, out: &mut Vec<u8>) {
    for field in trailers.iter() {
        out.extend_from_slice(field.name_text);
        out.extend_from_slice(b": ");
        out.extend_from_slice(field.value);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use message::Fields;

    use super::*;

    fn check(length: usize, expect: &[u8]) {
        let mut out = [0; CHUNK_HEAD_BYTES_MAX];
        let taken = chunk_head(length, &mut out);
        assert_eq!(&out[..taken], expect);
    }

    #[test]
    fn sizes_are_hexadecimal_without_leading_zeros() {
        check(1, b"1\r\n");
        check(15, b"f\r\n");
        check(16, b"10\r\n");
        check(6_221, b"184d\r\n");
        check(usize::MAX, b"ffffffffffffffff\r\n");
    }

    #[test]
    fn trailers_are_lines_and_an_empty_line() {
        let mut trailers = Fields::default();
        trailers.push_named(b"X-Sum", b"1");
        let mut out = LAST_CHUNK.to_vec();
        write_trailers(trailers.view(), &mut out);
        assert_eq!(out, b"0\r\nX-Sum: 1\r\n\r\n");
    }
}
