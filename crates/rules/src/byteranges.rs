//! The body of a 206 with several ranges (RFC 9110 §14.6, §15.3.7.2): heads between the parts, a line at the end,
//! and its length before the first byte is sent.
//!
//! The caller chooses the boundary: a random one, because the stored bytes must not contain it by design of whoever
//! made them.

use std::ops::Range;

use crate::range::ContentRange;

/// A multipart/byteranges body over a body of known length.
#[derive(Clone, Debug)]
pub struct Byteranges<'a> {
    pub ranges: &'a [Range<u64>],
    /// The length of the whole.
    pub length: u64,
    /// Of the stored response; said in every part.
    pub content_type: Option<&'a [u8]>,
    pub boundary: &'a str,
}

impl Byteranges<'_> {
    /// The Content-Type of the 206, in the place of the stored one.
    pub fn content_type(&self) -> String {
        format!("multipart/byteranges; boundary={}", self.boundary)
    }

    /// What stands before the bytes of one part.
    pub fn write_part_head(&self, range: &Range<u64>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary.as_bytes());
        if let Some(content_type) = self.content_type {
            out.extend_from_slice(b"\r\nContent-Type: ");
            out.extend_from_slice(content_type);
        }
        out.extend_from_slice(b"\r\nContent-Range: ");
        ContentRange { range: range.clone(), complete_length: Some(self.length) }.write_to(out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// What stands behind the last part.
    pub fn write_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary.as_bytes());
        out.extend_from_slice(b"--\r\n");
    }

    /// The Content-Length of the 206.
    pub fn content_length(&self) -> u64 {
        let mut between = Vec::new();
        for range in self.ranges {
            self.write_part_head(range, &mut between);
        }
        self.write_end(&mut between);
        between.len() as u64 + self.ranges.iter().map(|range| range.end - range.start).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 9110 §15.3.7.2, with our own boundary.
    #[test]
    fn parts_are_told_apart_and_counted() {
        let whole = b"0123456789";
        let ranges = [1..3, 8..10];
        let body = Byteranges { ranges: &ranges, length: 10, content_type: Some(b"text/plain"), boundary: "larder" };
        let mut out = Vec::new();
        for range in body.ranges {
            body.write_part_head(range, &mut out);
            out.extend_from_slice(&whole[range.start as usize..range.end as usize]);
        }
        body.write_end(&mut out);
        let expect = "\r\n--larder\r\nContent-Type: text/plain\r\nContent-Range: bytes 1-2/10\r\n\r\n12\
            \r\n--larder\r\nContent-Type: text/plain\r\nContent-Range: bytes 8-9/10\r\n\r\n89\r\n--larder--\r\n";
        assert_eq!(String::from_utf8_lossy(&out), expect);
        assert_eq!(body.content_length(), expect.len() as u64);
        assert_eq!(body.content_type(), "multipart/byteranges; boundary=larder");
    }
}
