//! What a client offers by Available-Dictionary (RFC 9842 §2.2): a text that it has from us, and in which codings it reads what differs
//! from that.

use cache::{DictionaryQuestion, DictionaryText};
use coding::{DictionarySource, Flaw};
use message::{FieldName, FieldsView, Request};
use rules::dictionary_fields::is_readable_by_asker;
use rules::{AcceptedDeltas, AvailableDictionary, DictionaryHash, delta_coding};

use crate::compress_settings::CompressSettings;
use crate::core::Core;
use crate::dictionary_use::{has_dictionaries, origin_of, text_of};
use crate::field_set::FieldSet;
use crate::site::Compression;

/// A dictionary that is known on both sides.
pub(crate) struct DictionaryOffer {
    pub(crate) hash: DictionaryHash,
    pub(crate) accepted: AcceptedDeltas,
    text: DictionaryText,
    bytes_max: usize,
}

/// Asked of every request that is answered by what is compressed: a bit.
#[inline]
pub(crate) fn is_made(compress: &CompressSettings, seen: FieldSet) -> bool {
    seen.has(FieldName::AvailableDictionary) && compress.dictionaries
}

impl DictionaryOffer {
    /// `None`: none is made, or it is of no use: nothing is known of such a text, or it is not for this URL.
    #[cold]
    pub(crate) fn of(
        core: &Core,
        compression: Option<Compression<'_>>,
        request: &Request<'_>,
        seen: FieldSet,
    ) -> Option<DictionaryOffer> {
        let compression = compression.filter(|compression| is_made(compression.settings, seen))?;
        if !has_dictionaries(compression, request) {
            return None;
        }
        let accepted = AcceptedDeltas::of(request.fields);
        let available = AvailableDictionary::of(request.fields).filter(|_| accepted != AcceptedDeltas::default())?;
        let cache = &core.shared.cache;
        let text = cache.dictionary(&DictionaryQuestion {
            hash: available.hash,
            id: &available.id,
            origin: origin_of(cache, request),
            path: request.path,
            query: request.query,
        })?;
        let bytes_max = core.site_ref().settings.limits.dictionary_bytes_max;
        Some(DictionaryOffer { hash: available.hash, accepted, text, bytes_max })
    }

    /// May an answer be told by it? One that says so to who stores it behind us, and to who may read it.
    pub(crate) fn is_for(&self, request: FieldsView<'_>, answer: FieldsView<'_>) -> bool {
        delta_coding::varies_by_dictionary(answer)
            && is_readable_by_asker(request, answer)
            && !answer.contains(FieldName::SetCookie)
    }

    /// To be loaded on the thread that needs it.
    pub(crate) fn source(&self) -> DictionarySource {
        let (text, bytes_max) = (self.text.clone(), self.bytes_max);
        DictionarySource::new(self.hash, move || -> Result<Vec<u8>, Flaw> { text_of(&text, bytes_max) })
    }

    /// What it takes to load it.
    pub(crate) fn bytes(&self) -> usize {
        self.text.bytes()
    }
}
