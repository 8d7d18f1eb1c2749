//! How stored parts (206) become one, or the whole (RFC 9111 §3.4).

use std::sync::Arc;

use store::{Growing, Unfinished};

use crate::cache::Cache;
use crate::kept_head::KeptHead;
use crate::object::{EncodingsFrom, Object, ObjectParts};
use crate::out_of_line_body::{OUT_OF_LINE_BYTES_MIN, OutOfLineBody};
use crate::parts::{WholeHead, part_of};

impl Cache {
    /// What a part that has landed is stored as: one with its neighbours, or the whole. The head is that of the newest
    /// part (RFC 9111 §3.4). Copies with nothing locked; whoever stores the result sees whether it still may.
    pub(crate) fn join_parts(&self, object: &Arc<Object>, whole: Option<WholeHead>) -> Arc<Object> {
        let (mut span, mut run) = {
            let mut shard = self.directory.shard(object.key);
            let slot = shard.entry_if_any(object.key).and_then(|entry| entry.slot(object.variant));
            slot.map_or_else(|| (part_of(object), Vec::new()), |slot| slot.parts.around(object))
        };
        let copies = run.len() > 1;
        if copies && !self.make_room(span.len() as usize) {
            (span, run) = (part_of(object), Vec::new());
        }
        let first = run.first().unwrap_or(object);
        let is_whole = span.from == 0 && span.complete == Some(span.to);
        let whole = whole.filter(|_| is_whole);
        if whole.is_none() && run.len() < 2 && Arc::ptr_eq(first, object) {
            return Arc::clone(object);
        }
        let part = whole.is_none().then_some(span);
        let gathered = (run.len() > 1).then(|| gather(&run));
        let is_out_of_line =
            gathered.as_ref().map_or(first.out_of_line().is_some(), |body| body.len() >= OUT_OF_LINE_BYTES_MIN);
        let pieces = gathered.iter().filter(|_| !is_out_of_line).flat_map(|body| body.pieces()).map(|piece| &piece[..]);
        let behind: Vec<&[u8]> = pieces.chain(gathered.is_none().then(|| first.behind_head())).collect();
        let head = match &whole {
            Some(WholeHead { head, rendered, .. }) => {
                KeptHead::of_url(object.url().unwrap_or_default(), (head, rendered), &behind)
            }
            None => object.kept_head().before(&behind),
        };
        let out_of_line = match gathered {
            Some(body) => is_out_of_line.then(|| OutOfLineBody::new(body.finish(), &self.account, self.pages.as_ref())),
            None => first.out_of_line().cloned(),
        };
        self.object(ObjectParts {
            out_of_line,
            part,
            on_disk: 0,
            encodings: EncodingsFrom::Nobody,
            ..ObjectParts::under(head, object)
        })
    }
}

/// The bytes of parts that overlap or touch, in the order of their first bytes.
fn gather(run: &[Arc<Object>]) -> Unfinished {
    let mut growing = Growing::default();
    let mut at = run.first().map_or(0, |object| part_of(object).from);
    for object in run {
        let part = part_of(object);
        let from = at.max(part.from) - part.from;
        for piece in object.body().pieces(from.min(part.len()), part.len()) {
            growing.append(piece);
            growing.settle_all();
        }
        at = at.max(part.to);
    }
    growing.unfinished()
}
