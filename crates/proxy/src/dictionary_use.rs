//! Texts that are to be dictionaries (RFC 9842 §2.1): which responses say so, and how they become known as such when they are stored.
//!
//! What is stored is for everybody, and so is its text. What is not, and what hangs on who asks, is never a dictionary: a text that is told by
//! what differs from another shows by its length what both have in common.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Cache, DictionaryScope, DictionaryText, Key, Object};
use coding::{Bounds, Decoder, Flaw};
use message::{FieldName, Fields, FieldsView, Method, Request, Scheme, Status};
use rules::dictionary_fields::use_as_dictionary;
use rules::url_pattern::pattern_of_path;
use rules::{DictionaryUse, PatternBase, Vary, delta_coding};
use sha2::{Digest, Sha256};

use crate::coding_choice::Codable;
use crate::coding_levels::coding_of;
use crate::core::Core;
use crate::limits::FILTER_PIECE_BYTES;
use crate::site::Compression;

/// May the answers to this request be dictionaries, or told by one? §8: only where nobody in between sees them.
pub(crate) fn has_dictionaries(compression: Compression<'_>, request: &Request<'_>) -> bool {
    compression.settings.dictionaries && request.scheme == Scheme::Https && !request.authority.host.is_empty()
}

/// The origin of a request as dictionaries know it.
pub(crate) fn origin_of(cache: &Cache, request: &Request<'_>) -> Key {
    cache.key([&b"dictionaries"[..], &written_origin(request)])
}

fn written_origin(request: &Request<'_>) -> Vec<u8> {
    let mut origin = [request.scheme.text().as_bytes(), b"://"].concat();
    request.authority.write_to(&mut origin);
    origin
}

/// Lets a response that is going to be stored say that it is a dictionary, and that others may be told it by one. `head` is as the origin sent
/// it, and what the origin says of dictionaries stays.
pub(crate) fn announce(
    (compression, codable): (Compression<'_>, &Codable<'_>),
    request: &Request<'_>,
    (status, head): (Status, FieldsView<'_>),
    fields: &mut Fields,
) {
    let is_for_all = status == Status::OK && request.method == Method::Get && !is_personal(head);
    if !is_for_all || !has_dictionaries(compression, request) || !codable.has_delta() {
        return;
    }
    delta_coding::vary_by_dictionary(fields);
    if fields.view().contains(FieldName::UseAsDictionary) {
        return;
    }
    let named = compression.dictionary_paths.iter().find(|paths| paths.have(request.path, request.query));
    let pattern = match named {
        Some(paths) => Some(paths.written().to_owned()),
        None => pattern_of_path(request.path),
    };
    if let Some(pattern) = pattern {
        fields.push(FieldName::UseAsDictionary, use_as_dictionary(&pattern));
    }
}

/// Does a response set a cookie, or hang on who asks?
fn is_personal(head: FieldsView<'_>) -> bool {
    let hangs_on_asker = match Vary::of(head) {
        Vary::None => false,
        Vary::Fields(spec) => {
            spec.names().any(|name| matches!(FieldName::classify(name), FieldName::Cookie | FieldName::Authorization))
        }
        Vary::Any | Vary::TooMany => true,
    };
    hangs_on_asker || head.contains(FieldName::SetCookie)
}

/// A response was stored: if it says that it is a dictionary, its text is known by its hash as soon as there is time to read it.
pub(crate) fn note(core: &Rc<Core>, compression: Compression<'_>, request: &Request<'_>, object: &Arc<Object>) {
    let is_one =
        object.fields().contains(FieldName::UseAsDictionary) && delta_coding::varies_by_dictionary(object.fields());
    if !is_one || !has_dictionaries(compression, request) || !object.has_whole_body() || object.esi().is_some() {
        return;
    }
    let base = PatternBase { origin: &written_origin(request), path: request.path };
    let Some(used_for) = DictionaryUse::of(object.fields(), base) else { return };
    let cache = Arc::clone(&core.shared.cache);
    let scope = DictionaryScope { origin: origin_of(&cache, request), used_for };
    let (object, bytes_max) = (Arc::clone(object), core.site_ref().settings.limits.dictionary_bytes_max);
    let bytes = object.body_len() as usize;
    let work = move || {
        if let Ok(text) = text_of(&DictionaryText::Stored(Arc::clone(&object)), bytes_max)
            && coding::may_be_dictionary(&text)
        {
            cache.note_dictionary(Sha256::digest(&text).into(), scope, &object);
        }
    };
    let threads = &core.shared.coding_threads;
    match threads.idle(bytes, work) {
        // What nobody waits for is not done.
        Ok(job) => drop(tokio::task::spawn_local(job)),
        Err(work) if !threads.are_there() => work(),
        // Where too much waits it is no dictionary: nobody has to have one.
        Err(_) => {}
    }
}

/// The text itself, of so many bytes at most.
pub(crate) fn text_of(dictionary: &DictionaryText, bytes_max: usize) -> Result<Vec<u8>, Flaw> {
    let (coding, pieces) = dictionary.coded();
    let coded_bytes: usize = pieces.iter().map(Bytes::len).sum();
    if coded_bytes > bytes_max {
        return Err(Flaw::TooLong);
    }
    let Some(coding) = coding_of(coding) else { return Ok(pieces.concat()) };
    let mut decoder = Decoder::new(coding, Bounds { bytes_max: bytes_max as u64, ..Bounds::USUAL })?;
    let mut text = Vec::new();
    for mut piece in pieces {
        loop {
            let step = decoder.decode(&piece, FILTER_PIECE_BYTES, &mut text)?;
            let _ = piece.split_to(step.taken);
            if step.is_drained {
                break;
            }
        }
    }
    decoder.finish().map(|()| text)
}
