//! The text of a dictionary: in its response as long as that is here, and then in a copy of the response's body.

use std::sync::Arc;

use bytes::Bytes;
use rules::ContentCoding;
use store::{Account, Charge};

use crate::object::Object;

/// A dictionary's text, held.
#[derive(Clone, Debug)]
pub enum DictionaryText {
    Stored(Arc<Object>),
    Kept(Arc<KeptText>),
}

/// The body of a response that is gone.
#[derive(Debug)]
pub struct KeptText {
    /// In which coding it lies: as the response did.
    coding: ContentCoding,
    body: Bytes,
    _charge: Charge,
}

impl DictionaryText {
    /// The body of its response, and in which coding that is.
    pub fn coded(&self) -> (ContentCoding, Vec<Bytes>) {
        match self {
            DictionaryText::Stored(object) => (coding_of(object), object.body().pieces(0, object.body_len()).collect()),
            DictionaryText::Kept(text) => (text.coding, vec![text.body.clone()]),
        }
    }
}

impl DictionaryText {
    /// How long the body is.
    pub fn bytes(&self) -> usize {
        match self {
            DictionaryText::Stored(object) => object.body_len() as usize,
            DictionaryText::Kept(text) => text.len(),
        }
    }
}

impl KeptText {
    pub(crate) fn of(object: &Arc<Object>, account: &Arc<Account>) -> KeptText {
        let pieces: Vec<Bytes> = object.body().pieces(0, object.body_len()).collect();
        let body = Bytes::from(pieces.concat());
        KeptText { coding: coding_of(object), _charge: account.charge(body.len()), body }
    }

    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }
}

/// Nothing is a dictionary of which this is not known.
fn coding_of(object: &Object) -> ContentCoding {
    ContentCoding::said_by(object.fields()).unwrap_or(ContentCoding::Identity)
}
