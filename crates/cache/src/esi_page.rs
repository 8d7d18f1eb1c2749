//! What a page with ESI is made of, beside its text: found once, when it is stored, and never again.

use coding::GzipPiece;
use esi::Document;

/// The includes of a stored text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EsiPage {
    pub document: Document,
    /// Its text is stored in gzip; all texts in it are pieces of that, in their order.
    pub in_gzip: Option<Vec<PagePiece>>,
}

/// A text of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagePiece {
    /// Where it begins, not coded.
    pub text_at: u64,
    pub gzip: GzipPiece,
}

impl EsiPage {
    /// The piece of the gzip that is the text which begins there.
    pub fn gzip_piece(&self, text_at: u64) -> Option<&GzipPiece> {
        let pieces = self.in_gzip.as_ref()?;
        let at = pieces.binary_search_by_key(&text_at, |piece| piece.text_at).ok()?;
        Some(&pieces[at].gzip)
    }

    /// Bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let pieces = self.in_gzip.as_ref().map_or(0, |pieces| size_of_val(&pieces[..]));
        size_of::<EsiPage>() + self.document.heap_bytes() + pieces
    }
}
