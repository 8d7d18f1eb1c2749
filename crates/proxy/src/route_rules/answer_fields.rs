//! Fields that a route takes out of answers or puts into them. How that is done is in `answer_editing.rs`.

use crate::route_rules::cross_origin::CrossOrigin;
use crate::route_rules::field_edits::FieldLine;
use crate::route_rules::name_patterns::NamePattern;

/// What becomes of the fields of an answer.
#[derive(Clone, Debug, Default)]
pub struct AnswerFields {
    /// These go.
    pub removed: Vec<NamePattern>,
    /// These come in place of any of the same name.
    pub set: Vec<FieldLine>,
    /// These come beside them.
    pub added: Vec<FieldLine>,
    /// These come where there is none of the name.
    pub missing: Vec<FieldLine>,
    pub cross_origin: Option<CrossOrigin>,
}
