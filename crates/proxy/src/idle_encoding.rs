//! What is asked for again is made once more, as short as it gets, while nobody waits for anything.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::Object;
use coding::Bounds;
use rules::ContentCoding;

use crate::coding_levels::{best_level, coding_of};
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
    let work = move || {
        let pieces = object.body().pieces(0, length);
        let made = recoded(pieces.into_iter().collect(), (from, to), length);
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

/// All of a body in another coding.
fn recoded(
    pieces: Vec<Bytes>,
    (from, to): (ContentCoding, ContentCoding),
    length: u64,
) -> Result<Vec<Bytes>, FilterFault> {
    let decode = coding_of(from).map(FilterKind::Decode);
    let encode = coding_of(to).map(|coding| FilterKind::Encode(coding, best_level(coding, length)));
    let kinds: Vec<FilterKind> = decode.into_iter().chain(encode).collect();
    let mut chain = FilterChain::new(&kinds, Bounds::USUAL)?;
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
        let all = |pieces: Vec<Bytes>| Bytes::from(pieces.concat());
        for from in ContentCoding::ALL {
            let coded =
                all(recoded(vec![text.slice(..9), text.slice(9..)], (ContentCoding::Identity, from), 81_000).unwrap());
            for to in ContentCoding::ALL {
                let other = all(recoded(vec![coded.clone()], (from, to), 81_000).unwrap());
                assert!(to == ContentCoding::Identity || other.len() < 500, "{to:?}");
                assert_eq!(all(recoded(vec![other], (to, ContentCoding::Identity), 81_000).unwrap()), text);
            }
        }
        assert!(recoded(vec![text], (ContentCoding::Gzip, ContentCoding::Brotli), 9).is_err());
    }
}
