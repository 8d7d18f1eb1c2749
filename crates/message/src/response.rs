//! A response head: borrowed or owned.

use crate::{Fields, FieldsView, Status, Version};

/// A response whose bytes somebody else owns.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub status: Status,
    pub version: Version,
    /// What its sender calls the status, where that is not what everybody calls it.
    pub reason: Option<&'a [u8]>,
    pub fields: FieldsView<'a>,
}

/// A response that we own and may edit.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    pub status: Status,
    pub version: Version,
    /// As that of [`Response`]. We send it on only where a policy program decides.
    pub reason: Option<Box<[u8]>>,
    pub fields: Fields,
}

impl Response<'_> {
    pub fn to_head(&self) -> ResponseHead {
        self.to_head_with_room(1, 0)
    }

    /// The same, with room for so many more fields of so many bytes.
    pub fn to_head_with_room(&self, more_lines: usize, more_bytes: usize) -> ResponseHead {
        ResponseHead {
            status: self.status,
            version: self.version,
            reason: self.reason.map(Into::into),
            fields: self.fields.to_fields_with_room(more_lines, more_bytes),
        }
    }
}

impl ResponseHead {
    pub fn new(status: Status) -> ResponseHead {
        ResponseHead { status, version: Version::Http11, reason: None, fields: Fields::default() }
    }

    pub fn response(&self) -> Response<'_> {
        Response {
            status: self.status,
            version: self.version,
            reason: self.reason.as_deref(),
            fields: self.fields.view(),
        }
    }
}
