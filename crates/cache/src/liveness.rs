//! Whether a stored response is still the one to serve: one byte in its first line, which every hit reads and nothing else needs to lock.
//!
//! | liveness | the directory has it | a hot table may serve it | `is_live` |
//! |---|---|---|---|
//! | `HOT` | yes, under the key's newest specification | yes | yes |
//! | `WATCHED` | the same, of a response with cache groups, or where bans are issued | if none of its groups was invalidated, and no ban is newer than its last test | the same |
//! | `COOL` | yes, under an older one: only `ask` knows whether a newer sibling fits better; or it is a manifest | no | yes |
//! | `SOFTENED` | yes, and a soft purge has shortened its life in its place: how much of it is left stands among what is rare | no | yes |
//! | `WITHDRAWN` | maybe still: a purge of its tag has marked it in its place, and it is taken out behind that (`purged_objects.rs`); or another takes its place at this moment | no | no |
//! | `DEAD` | no: evicted, replaced, purged, or never stored | no | no |

use store::sync::atomic::{AtomicU8, Ordering};

pub(crate) const DEAD: u8 = 0;
pub(crate) const WITHDRAWN: u8 = 1;
pub(crate) const SOFTENED: u8 = 2;
pub(crate) const COOL: u8 = 3;
pub(crate) const HOT: u8 = 4;
pub(crate) const WATCHED: u8 = 5;

/// Born dead.
#[derive(Debug, Default)]
pub(crate) struct Liveness(AtomicU8);

impl Liveness {
    #[inline]
    pub fn get(&self) -> u8 {
        self.0.load(Ordering::Acquire)
    }

    /// What was withdrawn or softened stays so.
    pub fn set(&self, liveness: u8) {
        let unless_purged = |before| (before != WITHDRAWN && before != SOFTENED).then_some(liveness);
        let _ = self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, unless_purged);
    }

    /// Was it withdrawn or softened?
    pub fn is_purged(&self) -> bool {
        matches!(self.get(), WITHDRAWN | SOFTENED)
    }

    /// True if it could be served until now; what could not is left as it is.
    pub fn soften(&self) -> bool {
        let if_live = |before| (before > WITHDRAWN).then_some(SOFTENED);
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, if_live).is_ok()
    }

    /// True if it could be served until now.
    pub fn withdraw(&self) -> bool {
        self.0.swap(WITHDRAWN, Ordering::AcqRel) > WITHDRAWN
    }

    /// Says what it was.
    pub fn end(&self) -> u8 {
        self.0.swap(DEAD, Ordering::AcqRel)
    }
}
