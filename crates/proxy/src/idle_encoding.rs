//! What is asked for again is made once more, as short as it gets, while nobody waits for anything.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::Object;
use coding::Bounds;
use rules::ContentCoding;

use crate::coding_levels::{best_level, coding_of, text_bytes};
use crate::core::Core;
use crate::filter_chain::{FilterChain, FilterFault, FilterKind, Filtered};
use crate::filter_turn::FilterTurn;
use crate::limits::BETTER_AFTER_HITS;

/// Has this response, by which a hit was answered, been asked for often enough to be worth it?
pub(crate) fn is_worth_it(served: &Object) -> bool {
    served.hits() >= BETTER_AFTER_HITS
}

/// Has an encoding of a stored response made, unless somebody does so already or too much waits.
pub(crate) fn begin(core: &Rc<Core>, primary: &Arc<Object>, (from, to): (ContentCoding, ContentCoding)) {
    let (shared, encodings) = (&core.shared, Arc::clone(primary.encodings_or_new()));
    if !encodings.promise(to) {
        return;
    }
    let (cache, object, length) = (Arc::clone(&shared.cache), Arc::clone(primary), primary.length());
    let account = Arc::clone(shared.cache.account());
    let work = move || {
        let kinds = kinds((from, to), length);
        let text_bytes = Some(text_bytes(from, length));
        // One at a time: the store gives way to it, and who waits for a coder is not told to go without.
        let held = account.charge(kinds.iter().map(|kind| kind.memory_bytes(text_bytes)).sum());
        let pieces = object.body().pieces(0, length);
        let made = recoded(pieces.into_iter().collect(), &kinds, text_bytes);
        // The coder is gone: what it made, and what that was made of, is not to leave for it.
        drop(held);
        let is_readable = made.is_ok();
        if let Ok(body) = made {
            cache.add_encoding(&object, to, body);
        }
        is_readable
    };
    let Ok(job) = shared.coding_threads.idle(length as usize, work) else {
        return encodings.break_promise(to, false);
    };
    tokio::task::spawn_local(async move {
        // What cannot be read now cannot be later; what only found no room may find some.
        let is_readable = job.await == Ok(true);
        encodings.break_promise(to, !is_readable);
    });
}

/// What leads from one coding to another, with time.
fn kinds((from, to): (ContentCoding, ContentCoding), length: u64) -> Vec<FilterKind> {
    let decode = coding_of(from).map(FilterKind::Decode);
    let encode = coding_of(to).map(|coding| FilterKind::Encode(coding, best_level(coding, length)));
    decode.into_iter().chain(encode).collect()
}

/// All of a body in another coding.
fn recoded(pieces: Vec<Bytes>, kinds: &[FilterKind], text_bytes: Option<u64>) -> Result<Vec<Bytes>, FilterFault> {
    let mut chain = FilterChain::new(kinds, Bounds::USUAL, text_bytes)?;
    pieces.into_iter().for_each(|piece| chain.push(piece));
    chain.end();
    let mut made = Vec::new();
    loop {
        // On a thread of its own there is always another turn.
        match chain.pull(&mut FilterTurn::of_thread(), false)? {
            Filtered::Piece(piece) => made.push(piece),
            Filtered::TurnOver => {}
            Filtered::Hungry | Filtered::End => return Ok(made),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_brought_from_any_coding_into_any_other() {
        let text = Bytes::from(b"again and again and again, ".repeat(3_000));
        let brought = |pieces: Vec<Bytes>, codings| {
            let made = recoded(pieces, &kinds(codings, 81_000), Some(81_000));
            made.map(|pieces| Bytes::from(pieces.concat()))
        };
        for from in ContentCoding::ALL {
            let pieces = vec![text.slice(..9), text.slice(9..)];
            let coded = brought(pieces, (ContentCoding::Identity, from)).unwrap();
            for to in ContentCoding::ALL {
                let other = brought(vec![coded.clone()], (from, to)).unwrap();
                assert!(to == ContentCoding::Identity || other.len() < 500, "{to:?}");
                assert_eq!(brought(vec![other], (to, ContentCoding::Identity)).unwrap(), text);
            }
        }
        assert!(brought(vec![text], (ContentCoding::Gzip, ContentCoding::Brotli)).is_err());
    }
}
