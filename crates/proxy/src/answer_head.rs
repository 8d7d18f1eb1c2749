//! The head of an answer before a protocol writes it: status, reason and fields. What frames the body and what is said of the
//! connection are not in it: those are the writer's.

use std::sync::Arc;

use cache::Object;
use message::{Field, FieldName, Fields, FieldsView, Status};
use rules::conditions;
use rules::range::{self, ContentRange};

use crate::answer_plan::{AnswerPlan, PlanRules};
use crate::static_files::open_file::OpenFile;

/// Room for what an answer of ours says beside the fields of the representation.
const ADDED_LINES: usize = 6;
const ADDED_BYTES: usize = 256;

/// The head of an answer.
pub(crate) struct AnswerHead {
    pub(crate) status: Status,
    /// Another reason than the registered one.
    pub(crate) reason: Option<Box<[u8]>>,
    /// Stands before `fields`: a status line and fields that were rendered once, for all answers.
    rendered: Option<Rendered>,
    pub(crate) fields: Fields,
}

/// Who holds a rendered head.
pub(crate) enum Rendered {
    Object(Arc<Object>),
    File(Arc<OpenFile>),
}

impl Rendered {
    fn status(&self) -> Status {
        match self {
            Rendered::Object(object) => object.status(),
            Rendered::File(_) => Status::OK,
        }
    }
}

impl Rendered {
    /// The fields that were rendered, and those that were left out.
    pub(crate) fn fields(&self) -> FieldsView<'_> {
        match self {
            Rendered::Object(object) => object.fields(),
            Rendered::File(file) => file.head().fields.view(),
        }
    }
}

impl AnswerHead {
    pub(crate) fn new(status: Status) -> AnswerHead {
        AnswerHead { status, reason: None, rendered: None, fields: Fields::default() }
    }

    /// The head as it was rendered when the response was stored or the file was read; fields can be added behind it.
    pub(crate) fn rendered(rendered: Rendered) -> AnswerHead {
        let status = rendered.status();
        AnswerHead { rendered: Some(rendered), ..AnswerHead::new(status) }
    }

    /// A head of these fields, as they are.
    pub(crate) fn of_fields(status: Status, fields: Fields) -> AnswerHead {
        AnswerHead { fields, ..AnswerHead::new(status) }
    }

    /// The head of what was planned of a representation with these fields.
    pub(crate) fn planned(plan: &AnswerPlan, whole: Status, fields: FieldsView<'_>, rules: PlanRules) -> AnswerHead {
        let mut head = AnswerHead::new(status_of(plan, whole));
        head.fields = Fields::with_room(fields.count() + ADDED_LINES, fields.lines_bytes() + ADDED_BYTES);
        let has_etag = fields.contains(FieldName::Etag);
        for field in fields.iter().filter(|field| keeps(plan, rules, field, has_etag)) {
            head.fields.push_field(&field);
        }
        head
    }

    /// The same of fields that nobody else needs.
    pub(crate) fn planned_of_own(plan: &AnswerPlan, whole: Status, mut fields: Fields, rules: PlanRules) -> AnswerHead {
        let has_etag = fields.view().contains(FieldName::Etag);
        fields.retain(|field| keeps(plan, rules, &field, has_etag));
        AnswerHead { fields, ..AnswerHead::new(status_of(plan, whole)) }
    }

    /// The fields of what was rendered.
    pub(crate) fn rendered_fields(&self) -> Option<FieldsView<'_>> {
        self.rendered.as_ref().map(Rendered::fields)
    }

    /// What was rendered, as HTTP/1.1 text.
    pub(crate) fn rendered_text(&self) -> Option<&[u8]> {
        match self.rendered.as_ref()? {
            Rendered::Object(object) => Some(object.rendered()),
            Rendered::File(file) => Some(file.rendered()),
        }
    }

    /// Every field line, of what was rendered too.
    pub(crate) fn each_field(&self, mut each: impl FnMut(&[u8], &[u8])) {
        let lines = self.rendered_text().unwrap_or_default().split(|&byte| byte == b'\n').skip(1);
        for line in lines {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if let Some(colon) = line.iter().position(|&byte| byte == b':') {
                each(&line[..colon], line[colon + 1..].trim_ascii());
            }
        }
        self.fields.view().iter().for_each(|field| each(field.name_text, field.value));
    }

    /// Is this true of any field line?
    pub(crate) fn any_field(&self, mut is_it: impl FnMut(&Field<'_>) -> bool) -> bool {
        let mut found = false;
        self.each_field(|name_text, value| {
            found |= is_it(&Field { name: FieldName::classify(name_text), name_text, value });
        });
        found
    }

    /// Keeps those field lines, of what was rendered too: from then on nothing of it is as it was rendered.
    pub(crate) fn retain(&mut self, mut keeps: impl FnMut(&Field<'_>) -> bool) {
        let mut kept = Fields::default();
        self.each_field(|name_text, value| {
            let field = Field { name: FieldName::classify(name_text), name_text, value };
            if keeps(&field) {
                kept.push_field(&field);
            }
        });
        (self.rendered, self.fields) = (None, kept);
    }

    /// RFC 9110 §14.4.
    pub(crate) fn push_content_range(&mut self, range: ContentRange) {
        let mut value = Vec::new();
        range.write_to(&mut value);
        self.fields.push(FieldName::ContentRange, value);
    }

    /// The same of a 416.
    pub(crate) fn push_unsatisfied(&mut self, length: u64) {
        let mut value = Vec::new();
        range::write_unsatisfied(length, &mut value);
        self.fields.push(FieldName::ContentRange, value);
    }
}

fn status_of(plan: &AnswerPlan, whole: Status) -> Status {
    match plan {
        AnswerPlan::Whole | AnswerPlan::HeadOnly => whole,
        AnswerPlan::NotModified => Status(304),
        AnswerPlan::PreconditionFailed => Status(412),
        AnswerPlan::Part(_) | AnswerPlan::Parts(_) => Status::PARTIAL_CONTENT,
        AnswerPlan::Unsatisfiable { .. } => Status(416),
    }
}

/// Does this field of the whole stay in the head of what was planned of it? Under a program that is what the program left of it.
fn keeps(plan: &AnswerPlan, rules: PlanRules, field: &Field<'_>, has_etag: bool) -> bool {
    if field.name == FieldName::ContentLength || (field.name == FieldName::Age && rules == PlanRules::Rfc) {
        // What the answer says of these is said anew.
        return false;
    }
    match (plan, rules) {
        (AnswerPlan::Whole | AnswerPlan::HeadOnly, _) => true,
        (AnswerPlan::NotModified, PlanRules::Rfc) => conditions::kept_in_304(field, has_etag),
        (AnswerPlan::NotModified, PlanRules::Varnish { .. }) => field.name != FieldName::ContentType,
        (AnswerPlan::Part(_), _) => field.name != FieldName::ContentRange,
        (AnswerPlan::Parts(_), _) => field.name != FieldName::ContentType,
        // With what the program said: a script of another site has to be let in to read the refusal.
        (AnswerPlan::Unsatisfiable { .. }, PlanRules::Varnish { .. }) => {
            !matches!(field.name, FieldName::ContentRange | FieldName::ContentType | FieldName::ContentEncoding)
        }
        (AnswerPlan::Unsatisfiable { .. } | AnswerPlan::PreconditionFailed, _) => false,
    }
}
