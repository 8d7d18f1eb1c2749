//! What Accept-Encoding comes to, remembered from one request to the next: browsers say the same few words all day.

use std::cell::{Cell, RefCell};

use message::{FieldName, FieldsView};
use rules::AcceptedCodings;

use crate::limits::CODINGS_TEXT_BYTES_MAX;

/// The last value of Accept-Encoding, and what it means.
#[derive(Default)]
pub(crate) struct CodingsMemo {
    text: RefCell<Vec<u8>>,
    accepted: Cell<AcceptedCodings>,
}

impl CodingsMemo {
    pub(crate) fn accepted(&self, fields: FieldsView<'_>) -> AcceptedCodings {
        let mut values = fields.get_all(FieldName::AcceptEncoding);
        let Some(value) = values.next() else { return AcceptedCodings::default() };
        if values.next().is_some() || value.len() > CODINGS_TEXT_BYTES_MAX {
            return AcceptedCodings::of(fields);
        }
        let mut text = self.text.borrow_mut();
        if *text != value {
            text.clear();
            text.extend_from_slice(value);
            self.accepted.set(AcceptedCodings::of(fields));
        }
        self.accepted.get()
    }
}

#[cfg(test)]
mod tests {
    use message::Fields;
    use rules::ContentCoding;

    use super::*;

    #[test]
    fn it_says_what_the_field_says_whatever_was_said_before() {
        let memo = CodingsMemo::default();
        let long = format!("gzip, {}", "x".repeat(CODINGS_TEXT_BYTES_MAX));
        for lines in [&["br"][..], &["br"], &["gzip, br"], &[], &["gzip"], &["br", "zstd"], &["br"], &[&long], &["br"]]
        {
            let mut fields = Fields::default();
            lines.iter().for_each(|value| fields.push(FieldName::AcceptEncoding, value));
            assert_eq!(memo.accepted(fields.view()), AcceptedCodings::of(fields.view()), "{lines:?}");
        }
        assert_eq!(memo.accepted.get().rank(ContentCoding::Brotli), 2);
    }
}
