//! The body of a stored response, wherever it lies: small ones right behind their head, in the object's own text; others apart, in
//! blocks of their own, in the page file, or on a disk.
//!
//! What is apart is shared by the object that a 304 or a soft purge puts in the place of another; what is small is copied.

use std::sync::Arc;

use bytes::Bytes;
use store::disk::BodyOnDisk;
use store::limits::PAGES_BYTES_MIN;
use store::{Account, Blocks, Charge, Extent};

use crate::object::Object;

/// Shorter bodies lie behind their head; from here on they are worth a place in the page file.
pub(crate) const APART_BYTES_MIN: u64 = PAGES_BYTES_MIN;

/// A body that is kept by itself, and what it costs.
#[derive(Debug)]
pub(crate) struct Apart {
    pub blocks: Blocks,
    pub charge: Charge,
}

impl Apart {
    pub fn new(blocks: Blocks, account: &Arc<Account>) -> Arc<Apart> {
        Apart::charged(blocks, account.charge(0))
    }

    /// Goes on with the charge under which it grew.
    pub fn charged(blocks: Blocks, mut charge: Charge) -> Arc<Apart> {
        charge.resize(blocks.heap_bytes() + size_of::<Apart>());
        Arc::new(Apart { blocks, charge })
    }
}

/// The body of an object, to be read where it lies or held.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    object: &'a Arc<Object>,
}

impl<'a> Body<'a> {
    pub(crate) fn of(object: &'a Arc<Object>) -> Body<'a> {
        Body { object }
    }

    #[inline]
    fn apart(self) -> Option<&'a Blocks> {
        self.object.apart().map(|apart| &apart.blocks)
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
        self.apart()?.extent()
    }

    /// Where it lies on a disk, if it is sent from there. Then it has neither slices nor pieces.
    #[inline]
    pub fn on_disk(self) -> Option<&'a Arc<BodyOnDisk>> {
        self.apart()?.on_disk()
    }

    /// The bytes `from..to` (clamped to the body), borrowed.
    ///
    /// # Panics
    /// As [`Blocks::slices`].
    #[inline]
    pub fn slices(self, from: u64, to: u64) -> impl Iterator<Item = &'a [u8]> {
        let behind = clamped(self.behind_head(), from, to);
        let behind = (!behind.is_empty()).then_some(behind);
        behind.into_iter().chain(self.apart().into_iter().flat_map(move |blocks| blocks.slices(from, to)))
    }

    /// The same, held: for a writer that cannot keep the object borrowed.
    ///
    /// # Panics
    /// As [`Blocks::pieces`].
    pub fn pieces(self, from: u64, to: u64) -> impl Iterator<Item = Bytes> {
        let behind = clamped(self.behind_head(), from, to);
        let behind = (!behind.is_empty()).then(|| self.held().slice_ref(behind));
        behind.into_iter().chain(self.apart().into_iter().flat_map(move |blocks| blocks.pieces(from, to)))
    }

    /// All of it, held.
    pub(crate) fn blocks(self) -> Blocks {
        self.apart().cloned().unwrap_or_else(|| Blocks::of_piece(self.held()))
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
