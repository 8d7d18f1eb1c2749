//! Bytes at rest behind few verbs: an account that knows how many there are, blocks that hold them, and an
//! eviction that says which go first.
//!
//! `cache` builds on it: every stored object is charged to the account, lies in blocks and sits in an eviction.
//! This crate knows no HTTP, no keys and not what its bytes mean.
//!
//! ```
//! use store::{Account, Blocks};
//!
//! let account = Account::new(64 << 20);
//! let body = Blocks::copy_of(b"what bytes lie here");
//! let charge = account.charge(body.heap_bytes());
//! assert_eq!(account.used(), body.heap_bytes());
//! assert_eq!(body.slices(5, 10).collect::<Vec<_>>().concat(), b"bytes");
//!
//! drop(charge);
//! assert_eq!(account.used(), 0);
//! ```

mod account;
mod arena;
mod blocks;
pub mod disk;
mod eviction;
mod expiry_wheel;
mod growing;
pub mod limits;
mod lru;
mod miss_ratio;
mod page_file;
mod s3_fifo;
mod sieve;
pub mod sync;

pub use account::{Account, Charge};
pub use blocks::Blocks;
pub use eviction::{Eviction, EvictionKind, Seat, Tenant, by_kind};
pub use growing::{Growing, Unfinished};
pub use lru::Lru;
pub use miss_ratio::{Ask, Misses, Tried, TriedCache, replay};
pub use page_file::{Extent, ExtentWriter, PageFile};
pub use s3_fifo::S3Fifo;
pub use sieve::Sieve;
