//! Fields that a route takes out of answers or puts into them, whoever answers. It comes last: what is stored keeps what the origin said.
//!
//! A stored response is rendered without what its route takes out, so that a hit goes out as it lies there with a few lines behind it. One
//! that was rendered under other words is made anew, field by field, in the loop.

use cache::Object;
use message::{Field, FieldName, Fields, FieldsView, Status, list_members};

use crate::answer_head::AnswerHead;
use crate::head_form::HeadForm;
use crate::route_rules::answer_fields::AnswerFields;
use crate::route_rules::cross_origin;
use crate::route_rules::field_edits::{FieldLine, is_removed};
use crate::route_rules::field_template::TemplateSource;
use crate::vcl_story::field_bits::Name;

impl AnswerFields {
    #[inline]
    pub(crate) fn acts(&self) -> bool {
        !(self.removed.is_empty() && self.set.is_empty() && self.added.is_empty() && self.missing.is_empty())
            || self.cross_origin.is_some()
    }

    /// Does a field of an answer with this status go?
    pub(crate) fn removes(&self, status: Status, field: &Field<'_>) -> bool {
        self.set.iter().any(|line| line.is_said_of(status) && line.is_named(field)) || self.removes_unset(field)
    }

    /// The same but for those in whose place others come.
    fn removes_unset(&self, field: &Field<'_>) -> bool {
        let is_cross_origin =
            || cross_origin::FIELDS.iter().any(|name| field.name_text.eq_ignore_ascii_case(name.as_bytes()));
        is_removed(&self.removed, field) || self.cross_origin.is_some() && is_cross_origin()
    }

    /// Does the answer go out without what says how it was found?
    #[inline]
    pub(crate) fn hides(&self, name: FieldName) -> bool {
        let field = || Field { name, name_text: name.canonical().as_bytes(), value: b"" };
        !self.removed.is_empty() && is_removed(&self.removed, &field())
    }

    /// May a hit go out as it was rendered, with lines of ours behind it?
    #[inline]
    pub(crate) fn leave_as_rendered(&self, object: &Object) -> bool {
        let may_remove = !self.removed.is_empty() || !self.set.is_empty() || self.cross_origin.is_some();
        !may_remove || !object.renders(|field| self.removes(object.status(), field))
    }

    /// The same of a file's head, all of which is rendered.
    pub(crate) fn leave_all_of(&self, fields: FieldsView<'_>) -> bool {
        !fields.iter().any(|field| self.removes(Status::OK, &field))
    }

    /// Writes the lines behind a head that is left as it was rendered. `said`: what that says.
    #[inline]
    pub(crate) fn write<F: HeadForm>(
        &self,
        source: &TemplateSource<'_>,
        (status, said): (Status, FieldsView<'_>),
        out: &mut Vec<u8>,
    ) {
        for line in self.set.iter().chain(&self.added).filter(|line| line.is_said_of(status)) {
            write_line::<F>(line, source, out);
        }
        let is_missing = |line: &&FieldLine| !said.iter().any(|field| line.is_named(&field));
        for line in self.missing.iter().filter(|line| line.is_said_of(status)).filter(is_missing) {
            write_line::<F>(line, source, out);
        }
        if let Some(cross_origin) = &self.cross_origin {
            cross_origin.say(source.request, |name, value| F::field(out, Name::of(name), value));
        }
    }

    /// Edits the head of an answer of the loop.
    pub(crate) fn apply(&self, source: &TemplateSource<'_>, head: &mut AnswerHead) {
        let status = head.status;
        if head.any_field(|field| self.removes(status, field)) {
            head.retain(|field| !self.removes(status, field));
        }
        let mut added = Fields::default();
        let missing = self.missing.iter().filter(|line| !head.any_field(|field| line.is_named(field)));
        let mut value = Vec::new();
        for line in self.set.iter().chain(&self.added).chain(missing).filter(|line| line.is_said_of(status)) {
            value.clear();
            line.value.write(source, &mut value);
            // What says nothing of this request is not said: an answer before its number was made has none.
            if !value.is_empty() {
                added.push_named(line.name.as_bytes(), &value);
            }
        }
        if let Some(cross_origin) = &self.cross_origin {
            cross_origin.say(source.request, |name, value| added.push_named(name, value));
        }
        head.fields.append(&added);
    }
}

/// Fields that caches heed before Cache-Control: each of their kinds has its own (RFC 9213 §2.1; `X-Accel-Expires` is nginx's).
fn is_for_caches(field: &Field<'_>) -> bool {
    const SUFFIX: &[u8] = b"CDN-Cache-Control";
    let ending = field.name_text.len().checked_sub(SUFFIX.len()).map(|at| &field.name_text[at..]);
    field.name == FieldName::SurrogateControl
        || field.name_text.eq_ignore_ascii_case(b"X-Accel-Expires")
        || ending.is_some_and(|ending| ending.eq_ignore_ascii_case(SUFFIX))
}

/// Nobody stores it, whatever was said before.
pub(crate) fn forbid_storing(head: &mut AnswerHead) {
    head.retain(|field| {
        field.name != FieldName::CacheControl && field.name != FieldName::Expires && !is_for_caches(field)
    });
    head.fields.push(FieldName::CacheControl, "no-store");
}

/// Nobody but its client stores what was answered to somebody whom a service let in: who asks a cache behind us, that does not ask.
pub(crate) fn keep_from_others(head: &mut AnswerHead) {
    if head.any_field(is_for_caches) {
        head.retain(|field| !is_for_caches(field));
    }
    let is_one_of =
        |member: &[u8], names: [&str; 2]| names.iter().any(|name| member.eq_ignore_ascii_case(name.as_bytes()));
    let (mut said, mut is_kept) = (Vec::new(), false);
    head.each_field(|name, value| {
        if FieldName::classify(name) == FieldName::CacheControl {
            for member in list_members(value) {
                is_kept |= is_one_of(member, ["private", "no-store"]);
                let name = member.split(|byte| *byte == b'=').next().unwrap_or_default();
                if !is_one_of(name.trim_ascii(), ["public", "s-maxage"]) {
                    said.extend_from_slice(member);
                    said.extend_from_slice(b", ");
                }
            }
        }
    });
    if !is_kept {
        said.extend_from_slice(b"private");
        head.retain(|field| field.name != FieldName::CacheControl);
        head.fields.push(FieldName::CacheControl, said);
    }
}

#[inline]
fn write_line<F: HeadForm>(line: &FieldLine, source: &TemplateSource<'_>, out: &mut Vec<u8>) {
    F::made(out, Name::classified(line.known, line.name.as_bytes()), |out| line.value.write(source, out));
}
