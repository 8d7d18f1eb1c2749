//! What a page with ESI is made of, beside its text: found once, when it is stored, and never again.

use esi::Document;

/// The includes of a stored text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EsiPage {
    pub document: Document,
    /// Who takes gzip gets what comes of it in gzip.
    pub is_gzipped: bool,
}

impl EsiPage {
    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        size_of::<EsiPage>() + self.document.heap_bytes()
    }
}
