//! The dictionaries as the cache's users see them: noted when a text has come, and found by who says that it has one.

use std::sync::Arc;

use rules::DictionaryHash;

use crate::cache::Cache;
use crate::dictionaries::{DictionaryBounds, DictionaryQuestion, DictionaryScope};
use crate::dictionary_text::DictionaryText;
use crate::object::Object;

impl Cache {
    /// How many texts are kept when their responses are replaced. Nothing is, before this was said.
    pub fn set_dictionary_bounds(&self, bounds: DictionaryBounds) {
        self.dictionaries.set_bounds(bounds);
    }

    /// The text of a stored response has this hash, and its clients were told that it is a dictionary.
    pub fn note_dictionary(&self, hash: DictionaryHash, scope: DictionaryScope, object: &Arc<Object>) {
        self.dictionaries.note(hash, scope, object);
    }

    /// The dictionary that a client has, if it is known here and is for what the client asks for.
    pub fn dictionary(&self, question: &DictionaryQuestion<'_>) -> Option<DictionaryText> {
        self.dictionaries.find(question)
    }
}
