//! What of a request's fields is about that one request and its answer alone, so that no other request that is made of it has it: one for a part
//! of its page, or a question about it.

use message::{Field, FieldName};

/// Is it said of this one answer, of its body, or of how it is to be sent?
pub(crate) fn is_of_one_answer(name: FieldName) -> bool {
    rules::conditions::is_condition(name)
        || matches!(
            name,
            FieldName::Range
                | FieldName::IfRange
                | FieldName::AcceptEncoding
                | FieldName::ContentLength
                | FieldName::TransferEncoding
                | FieldName::Expect
        )
}

/// Is it about the body that came with the request?
pub(crate) fn is_of_content(field: &Field<'_>) -> bool {
    const PREFIX: &[u8] = b"content-";
    field.name_text.get(..PREFIX.len()).is_some_and(|start| start.eq_ignore_ascii_case(PREFIX))
}
