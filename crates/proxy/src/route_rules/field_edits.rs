//! Fields that a route takes out of requests or puts into them. The origin sees them so, and what a response is selected by.

use message::{Field, FieldName, Fields, Status};
use rules::conditions::is_condition;

use crate::route_rules::field_template::{FieldTemplate, TemplateSource};
use crate::route_rules::name_patterns::NamePattern;

/// What becomes of the fields of a request.
#[derive(Clone, Debug, Default)]
pub struct FieldEdits {
    /// These go.
    pub removed: Vec<NamePattern>,
    /// These come in place of any of the same name, unless nothing is left of their value.
    pub set: Vec<FieldLine>,
    /// These come beside them.
    pub added: Vec<FieldLine>,
    /// Each request gets a number of its own in this field, unless a trusted proxy has given it one.
    pub request_id: Option<FieldLine>,
}

/// A name and a value.
#[derive(Clone, Debug)]
pub struct FieldLine {
    pub(crate) known: FieldName,
    pub(crate) name: Box<str>,
    pub(crate) value: FieldTemplate,
    /// Of an answer: it is said where that is no error.
    on_success: bool,
}

/// Statuses of what somebody asked for and gets, or is led to: those on which nginx says its own fields.
pub const SUCCESSES: [u16; 10] = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];

impl FieldLine {
    pub fn new(name: &str, value: FieldTemplate) -> FieldLine {
        let on_success = false;
        FieldLine { known: FieldName::classify(name.as_bytes()), name: name.into(), value, on_success }
    }

    /// Said of no error from now on.
    pub fn keep_to_success(&mut self) {
        self.on_success = true;
    }

    pub fn is_kept_to_success(&self) -> bool {
        self.on_success
    }

    /// Is it said in an answer with this status?
    #[inline]
    pub(crate) fn is_said_of(&self, status: Status) -> bool {
        !self.on_success || SUCCESSES.contains(&status.0)
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn value(&self) -> &FieldTemplate {
        &self.value
    }

    #[inline]
    pub(crate) fn is_named(&self, field: &Field<'_>) -> bool {
        let is_same = || field.name_text.eq_ignore_ascii_case(self.name.as_bytes());
        field.name == self.known && (self.known != FieldName::Other || is_same())
    }
}

impl FieldEdits {
    pub(crate) fn acts(&self) -> bool {
        let has_lines = !self.set.is_empty() || !self.added.is_empty();
        has_lines || !self.removed.is_empty() || self.request_id.is_some()
    }

    /// May a field of this name become another, or go?
    pub fn changes(&self, name: &str) -> bool {
        let lines = self.set.iter().chain(&self.added).chain(&self.request_id);
        lines.map(FieldLine::name).any(|own| own.eq_ignore_ascii_case(name)) || removes(&self.removed, name.as_bytes())
    }

    /// Is a field of a request what stands here for all?
    pub(crate) fn says_to_all(&self, field: &Field<'_>) -> bool {
        self.set.iter().any(|line| line.is_named(field) && line.value.is_text())
    }

    /// Edits fields as the source, which is the request as it was, says.
    pub(crate) fn apply(
        &self,
        source: &TemplateSource<'_>,
        is_from_trusted: bool,
        fields: &mut Fields,
        value: &mut Vec<u8>,
    ) {
        let has_id = |line: &&FieldLine| is_from_trusted && source.request.fields.iter().any(|it| line.is_named(&it));
        let request_id = self.request_id.as_ref().filter(|line| !has_id(line));
        let set = || self.set.iter().chain(request_id);
        if !self.removed.is_empty() || set().next().is_some() {
            let goes = |field: &Field<'_>| !is_ours(field.name) && is_removed(&self.removed, field);
            fields.retain(|field| !set().any(|line| line.is_named(&field)) && !goes(&field));
        }
        for line in set().chain(&self.added) {
            value.clear();
            line.value.write(source, value);
            if !value.is_empty() {
                fields.push_named(line.name.as_bytes(), &*value);
            }
        }
    }
}

/// What frames a message, belongs to one connection, or says what is asked for: no star takes it away.
fn is_ours(name: FieldName) -> bool {
    matches!(
        name,
        FieldName::Connection
            | FieldName::ContentLength
            | FieldName::Expect
            | FieldName::Host
            | FieldName::IfRange
            | FieldName::KeepAlive
            | FieldName::Range
            | FieldName::Te
            | FieldName::TransferEncoding
            | FieldName::Upgrade
            | FieldName::Via
    ) || is_condition(name)
}

/// Does one of these patterns match the name of a field?
pub(crate) fn is_removed(patterns: &[NamePattern], field: &Field<'_>) -> bool {
    removes(patterns, field.name_text)
}

fn removes(patterns: &[NamePattern], name: &[u8]) -> bool {
    patterns.iter().any(|pattern| pattern.is_match_of_field(name))
}
