//! A response head: borrowed or owned. The reason phrase of a peer is not kept.

use crate::{Fields, FieldsView, Status, Version};

/// A response whose bytes somebody else owns.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    pub status: Status,
    pub version: Version,
    pub fields: FieldsView<'a>,
}

/// A response that we own and may edit.
#[derive(Clone, Debug)]
pub struct ResponseHead {
    pub status: Status,
    pub version: Version,
    pub fields: Fields,
}

impl Response<'_> {
    pub fn to_head(&self) -> ResponseHead {
        ResponseHead { status: self.status, version: self.version, fields: self.fields.to_fields() }
    }
}

impl ResponseHead {
    pub fn new(status: Status) -> ResponseHead {
        ResponseHead { status, version: Version::Http11, fields: Fields::default() }
    }

    pub fn response(&self) -> Response<'_> {
        Response { status: self.status, version: self.version, fields: self.fields.view() }
    }
}
