//! The body of a stored response, wherever it lies: small ones right behind their head, in the object's own text; others out of
//! line (`out_of_line_body.rs`). What is small is copied when another object takes the place of its own.

use std::sync::Arc;

use bytes::Bytes;
use store::disk::BodyOnDisk;
use store::{Blocks, Extent};

use crate::body_promotion::BodyPromotion;
use crate::flight_body::Pieces;
use crate::object::Object;

/// The body of an object, to be read where it lies or held.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    object: &'a Arc<Object>,
}

impl Object {
    #[inline]
    pub fn body(self: &Arc<Object>) -> Body<'_> {
        Body { object: self }
    }
}

impl<'a> Body<'a> {
    #[inline]
    fn rests(self) -> Option<&'a Blocks> {
        self.object.out_of_line()?.rests()
    }

    #[inline]
    pub fn len(self) -> u64 {
        self.object.body_len()
    }

    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// All of it, if it lies behind its head: what most hits are.
    #[inline]
    pub fn behind_head(self) -> &'a [u8] {
        self.object.behind_head()
    }

    /// Where it lies in the page file, if it does. Then there is nothing to borrow.
    #[inline]
    pub fn extent(self) -> Option<&'a Arc<Extent>> {
        self.rests()?.extent()
    }

    /// Where it lies on a disk, if it is sent from there. Then it has neither slices nor pieces.
    #[inline]
    pub fn on_disk(self) -> Option<&'a Arc<BodyOnDisk>> {
        self.rests()?.on_disk()
    }

    /// The bytes `from..to` (clamped to the body), held: for a writer that cannot keep the object borrowed.
    ///
    /// # Panics
    /// As [`Blocks::pieces`].
    pub fn pieces(self, from: u64, to: u64) -> impl Iterator<Item = Bytes> {
        let behind = clamped(self.behind_head(), from, to);
        let behind = (!behind.is_empty()).then(|| self.held().slice_ref(behind));
        let out_of_line: Pieces = self
            .object
            .out_of_line()
            .map(|out_of_line| out_of_line.blocks().pieces(from, to).collect())
            .unwrap_or_default();
        behind.into_iter().chain(out_of_line)
    }

    /// All of it, held.
    pub(crate) fn blocks(self) -> Blocks {
        self.out_of_line().unwrap_or_else(|| Blocks::of_piece(self.held()))
    }

    /// The same of a body that does not lie behind its head, wherever it lies at this moment.
    pub fn out_of_line(self) -> Option<Blocks> {
        self.object.out_of_line().map(|out_of_line| out_of_line.blocks())
    }

    /// Says that so many bytes of it were sent from memory. Who hears that it is to be promoted does so, a step at a time.
    pub fn note_sent(self, bytes: u64) -> Option<BodyPromotion> {
        self.object.out_of_line()?.note_sent(bytes)
    }

    /// What lies behind the head, which keeps the object as long as anybody has it.
    fn held(self) -> Bytes {
        Bytes::from_owner(BehindHead(Arc::clone(self.object)))
    }
}

struct BehindHead(Arc<Object>);

impl AsRef<[u8]> for BehindHead {
    fn as_ref(&self) -> &[u8] {
        self.0.behind_head()
    }
}

#[inline]
fn clamped(bytes: &[u8], from: u64, to: u64) -> &[u8] {
    let to = to.min(bytes.len() as u64);
    &bytes[from.min(to) as usize..to as usize]
}
