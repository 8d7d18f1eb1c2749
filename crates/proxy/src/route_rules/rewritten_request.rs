//! A request as the words of its route leave it. What they do not change is borrowed from what came; what they do is written here, in room that
//! each core uses again and again, so that a hit allocates nothing for it.

use std::cell::Cell;

use message::{FieldName, Fields, Request};

use crate::route_rules::cookie_rules::CookieVerdict;

/// What is other than it came.
#[derive(Debug, Default)]
pub(crate) struct RewrittenRequest {
    query: Vec<u8>,
    has_query: bool,
    fields: Fields,
    has_fields: bool,
    /// A value that is being written.
    value: Vec<u8>,
}

/// A core's room, where it waits for the next request that becomes another one.
pub(crate) type IdleRoom = Cell<Option<Box<RewrittenRequest>>>;

/// A request that may become another one: it takes the core's room then, and gives it back in the end. Whoever comes while that is in use gets
/// room of his own.
pub(crate) struct RewritingRoom<'core> {
    idle: &'core IdleRoom,
    taken: Option<Box<RewrittenRequest>>,
}

impl<'core> RewritingRoom<'core> {
    #[inline]
    pub(crate) fn of(idle: &'core IdleRoom) -> RewritingRoom<'core> {
        RewritingRoom { idle, taken: None }
    }

    /// Room in which nothing is other than it came.
    pub(crate) fn take(&mut self) -> &mut RewrittenRequest {
        let room = self.taken.insert(self.idle.take().unwrap_or_default());
        (room.has_query, room.has_fields) = (false, false);
        room
    }

    /// What was written, if anything may have been.
    #[inline]
    pub(crate) fn rewritten(&self) -> Option<&RewrittenRequest> {
        self.taken.as_deref()
    }
}

impl Drop for RewritingRoom<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.taken.is_some() {
            self.idle.set(self.taken.take());
        }
    }
}

impl RewrittenRequest {
    /// The query that `write` writes, where it returns true.
    pub(crate) fn rewrite_query(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        self.has_query = write(&mut self.query);
    }

    /// The fields, to be edited; first a copy of those that came.
    pub(crate) fn fields_of(&mut self, request: &Request<'_>) -> &mut Fields {
        if !self.has_fields {
            self.has_fields = true;
            self.fields.clear();
            request.fields.iter().for_each(|field| self.fields.push_field(&field));
        }
        &mut self.fields
    }

    /// Edits the fields. The other argument is room for a value.
    pub(crate) fn edit_fields(&mut self, request: &Request<'_>, edit: impl FnOnce(&mut Fields, &mut Vec<u8>)) {
        self.fields_of(request);
        edit(&mut self.fields, &mut self.value);
    }

    /// Cuts the cookies: `judge` writes those that are left, where it says that some are.
    pub(crate) fn cut_cookies(
        &mut self,
        request: &Request<'_>,
        judge: impl FnOnce(&mut Vec<u8>) -> CookieVerdict,
    ) -> CookieVerdict {
        let verdict = judge(&mut self.value);
        if verdict == CookieVerdict::Cut {
            self.fields_of(request).remove(FieldName::Cookie);
            if !self.value.is_empty() {
                self.fields.push(FieldName::Cookie, &self.value);
            }
        }
        verdict
    }

    /// Is the request another than it came?
    pub(crate) fn changes_anything(&self) -> bool {
        self.has_query || self.has_fields
    }

    pub(crate) fn cuts_query(&self) -> bool {
        self.has_query
    }

    /// Makes the request what it is to be. True: its fields are other ones.
    #[inline]
    pub(crate) fn put_into<'a>(&'a self, request: &mut Request<'a>) -> bool {
        if self.has_query {
            request.query = (!self.query.is_empty()).then_some(&self.query);
        }
        if self.has_fields {
            request.fields = self.fields.view();
        }
        self.has_fields
    }
}
