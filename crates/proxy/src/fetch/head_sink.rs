//! Where the fields of a request to an origin are written: as the lines of an HTTP/1 head at once, or into a list of which a header
//! block is made. What is written is decided once for both (`origin_request.rs`).

use message::Fields;
use wire::{write_field, write_number_field};

pub(crate) trait HeadSink {
    fn field(&mut self, name: &[u8], value: &[u8]);

    fn number(&mut self, name: &'static str, value: u64);

    /// A field whose value is written in place.
    fn field_of(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>));
}

/// The lines of an HTTP/1 head.
impl HeadSink for Vec<u8> {
    #[inline]
    fn field(&mut self, name: &[u8], value: &[u8]) {
        write_field(self, name, value);
    }

    #[inline]
    fn number(&mut self, name: &'static str, value: u64) {
        write_number_field(self, name, value);
    }

    #[inline]
    fn field_of(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        self.extend_from_slice(name.as_bytes());
        self.extend_from_slice(b": ");
        write(self);
        self.extend_from_slice(b"\r\n");
    }
}

impl HeadSink for Fields {
    fn field(&mut self, name: &[u8], value: &[u8]) {
        self.push_named(name, value);
    }

    fn number(&mut self, name: &'static str, value: u64) {
        self.push_named(name.as_bytes(), value.to_string().as_bytes());
    }

    fn field_of(&mut self, name: &'static str, write: impl FnOnce(&mut Vec<u8>)) {
        let mut value = Vec::new();
        write(&mut value);
        self.push_named(name.as_bytes(), &value);
    }
}
