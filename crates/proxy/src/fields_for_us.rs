//! Whose fields of requests are meant for larder itself: `marked_opening.rs` takes them out.

use std::sync::Arc;

use crate::explain_field::ExplainField;
use crate::fleet::Fleet;

/// Whose fields are meant for larder itself.
#[derive(Clone)]
pub(crate) struct FieldsForUs {
    pub(crate) explain: Option<Arc<ExplainField>>,
    pub(crate) fleet: Option<Arc<Fleet>>,
}

impl FieldsForUs {
    /// `None` where nobody's are.
    pub(crate) fn of(explain: Option<&Arc<ExplainField>>, fleet: Option<&Arc<Fleet>>) -> Option<Arc<FieldsForUs>> {
        let fields = FieldsForUs { explain: explain.cloned(), fleet: fleet.cloned() };
        (fields.explain.is_some() || fields.fleet.is_some()).then(|| Arc::new(fields))
    }
}
