//! Strict-Transport-Security (RFC 6797): said in every answer over TLS of ours, where the operator wants it and the answer does not say it
//! itself. Never over HTTP in the clear (§7.2).

use message::{FieldName, FieldsView};

use crate::answer_head::AnswerHead;
use crate::head_form::{HeadForm, STRICT_TRANSPORT_SECURITY};
use crate::site::Site;

const NAME: FieldName = FieldName::StrictTransportSecurity;

/// What is to be said, unless the answer says it itself: `is_said`.
#[inline]
pub(crate) fn to_say(site: &Site, is_secure: bool, is_said: impl FnOnce() -> bool) -> Option<&str> {
    let value = site.settings.hsts.as_deref().filter(|_| is_secure)?;
    (!is_said()).then_some(value)
}

/// Do these fields say it?
#[inline]
pub(crate) fn is_said_by(fields: FieldsView<'_>) -> bool {
    fields.contains(NAME)
}

/// The line, of an answer that goes out at once.
#[inline]
pub(crate) fn write<F: HeadForm>(out: &mut Vec<u8>, site: &Site, is_secure: bool, is_said: impl FnOnce() -> bool) {
    if let Some(value) = to_say(site, is_secure, is_said) {
        F::field(out, STRICT_TRANSPORT_SECURITY, value.as_bytes());
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
