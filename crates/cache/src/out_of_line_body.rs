//! A body that does not lie behind its head: in blocks of its own, in the page file, or on a disk.
//!
//! It is shared by the object that a 304 or a soft purge puts in the place of another. It lies in the blocks in which it came
//! until it has been asked for often enough to be promoted to the page file (`body_promotion.rs`).

use std::sync::{Arc, OnceLock};

use store::limits::{PAGES_BYTES_MAX, PAGES_BYTES_MIN};
use store::sync::Mutex;
use store::sync::atomic::{AtomicU64, Ordering::Relaxed};
use store::{Account, Blocks, Charge, Extent, PageFile};

use crate::body_promotion::BodyPromotion;
use crate::limits::{PROMOTED_AFTER_TIMES_SENT, PROMOTIONS_SHARE_SHIFT};

/// Shorter bodies lie behind their head; from here on they are worth a place in the page file.
pub(crate) const OUT_OF_LINE_BYTES_MIN: u64 = PAGES_BYTES_MIN;

/// A body that is kept by itself, and what it costs.
#[derive(Debug)]
pub(crate) struct OutOfLineBody {
    len: u64,
    /// The same wherever it lies: it is part of what the object weighs.
    pub charge: Charge,
    /// Where it stays.
    rests: OnceLock<Blocks>,
    promotable: Option<Box<Promotable>>,
}

/// Of a body that may be promoted to the page file.
#[derive(Debug)]
struct Promotable {
    pages: Arc<PageFile>,
    /// In which it came, until it rests.
    blocks: Mutex<Option<Blocks>>,
    /// How much of it was sent from there.
    sent: AtomicU64,
}

impl OutOfLineBody {
    pub fn new(blocks: Blocks, account: &Arc<Account>, pages: Option<&Arc<PageFile>>) -> Arc<OutOfLineBody> {
        OutOfLineBody::charged(blocks, account.charge(0), pages)
    }

    /// Goes on with the charge under which it grew.
    pub fn charged(blocks: Blocks, mut charge: Charge, pages: Option<&Arc<PageFile>>) -> Arc<OutOfLineBody> {
        let len = blocks.len();
        let is_worth_it = (PAGES_BYTES_MIN..=PAGES_BYTES_MAX).contains(&len) && blocks.on_disk().is_none();
        let pages = pages.filter(|_| is_worth_it);
        let (own, in_blocks) = (size_of::<OutOfLineBody>(), blocks.heap_bytes());
        charge.resize(
            own + pages.map_or(in_blocks, |_| size_of::<Promotable>() + in_blocks.max(Extent::memory_bytes_of(len))),
        );
        Arc::new(match pages {
            None => OutOfLineBody { len, charge, rests: OnceLock::from(blocks), promotable: None },
            Some(pages) => {
                let promotable =
                    Promotable { pages: Arc::clone(pages), blocks: Mutex::new(Some(blocks)), sent: AtomicU64::new(0) };
                OutOfLineBody { len, charge, rests: OnceLock::new(), promotable: Some(Box::new(promotable)) }
            }
        })
    }

    #[inline]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Where it stays, once it does.
    #[inline]
    pub fn rests(&self) -> Option<&Blocks> {
        self.rests.get()
    }

    /// Wherever it lies at this moment.
    pub fn blocks(&self) -> Blocks {
        let held = self
            .promotable
            .as_ref()
            .filter(|_| self.rests().is_none())
            .and_then(|promotable| promotable.blocks.lock().clone());
        held.or_else(|| self.rests().cloned()).expect("a body lies in its blocks until it rests")
    }

    /// Begins to promote the body to the page file when so much has been sent of it that this is worth it: once, unless it comes
    /// to nothing.
    pub fn note_sent(self: &Arc<OutOfLineBody>, bytes: u64) -> Option<BodyPromotion> {
        let promotable = self.promotable.as_ref().filter(|_| self.rests().is_none())?;
        let before = promotable.sent.fetch_add(bytes, Relaxed);
        let enough = self.len.saturating_mul(PROMOTED_AFTER_TIMES_SENT);
        if !(before..before.saturating_add(bytes)).contains(&(enough - 1)) {
            return None;
        }
        let begun = promotable
            .pages
            .write_extent(self.len, self.charge.account_limit() as u64 >> PROMOTIONS_SHARE_SHIFT)
            .map(|writer| BodyPromotion::new(self, self.blocks(), writer));
        if begun.is_none() {
            self.promotion_failed();
        }
        begun
    }

    /// It was not promoted after all: it is tried again when as much has been sent once more.
    pub fn promotion_failed(&self) {
        self.promotable.iter().for_each(|promotable| promotable.sent.store(0, Relaxed));
    }

    /// It has been promoted; who reads in the blocks goes on.
    pub fn promoted(&self, extent: Extent) {
        let Some(promotable) = &self.promotable else { return };
        let mut blocks = promotable.blocks.lock();
        if self.rests.set(Blocks::in_pages(extent)).is_ok() {
            let left = blocks.take();
            drop(blocks);
            drop(left);
        }
    }
}
