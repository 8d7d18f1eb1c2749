//! Strict-Transport-Security (RFC 6797): said in every answer over TLS of ours, where the operator wants it and the answer does not say it
//! itself. Never over HTTP in the clear (§7.2).

use message::{FieldName, FieldsView};
use wire::write_field;

use crate::answer_head::AnswerHead;
use crate::site::Site;

const NAME: FieldName = FieldName::StrictTransportSecurity;

/// What is to be said, unless the answer says it itself: `is_said`.
#[inline]
pub(crate) fn to_say(site: &Site, is_secure: bool, is_said: impl FnOnce() -> bool) -> Option<&str> {
    let value = site.settings.hsts.as_deref().filter(|_| is_secure)?;
    (!is_said()).then_some(value)
}

/// Do these fields say it?
pub(crate) fn is_said_by(fields: FieldsView<'_>) -> bool {
    fields.contains(NAME)
}

/// The line, of an answer whose other fields are these.
#[inline]
pub(crate) fn write(out: &mut Vec<u8>, site: &Site, is_secure: bool, fields: FieldsView<'_>) {
    if let Some(value) = to_say(site, is_secure, || is_said_by(fields)) {
        write_field(out, NAME.canonical().as_bytes(), value.as_bytes());
    }
}

impl AnswerHead {
    pub(crate) fn add_transport_security(&mut self, site: &Site, is_secure: bool) {
        let is_said = || is_said_by(self.fields.view()) || self.rendered_fields().is_some_and(is_said_by);
        if let Some(value) = to_say(site, is_secure, is_said) {
            self.fields.push(NAME, value);
        }
    }
}
