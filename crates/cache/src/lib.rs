//! Which bytes answer which request: directory, variants, flights, invalidation.
//!
//! Start at [`Cache::ask`]. A [`Flight`] is one fetch that many may wait for; its life stands as a table over
//! [`FlightState`]. A [`HotTable`] per core answers the hottest hits without touching shared state. This crate
//! decides by `rules`, keeps by `store`, and knows neither sockets nor how a message is framed nor any clock.

mod ask;
mod ban_list;
mod ban_test;
mod banning;
mod by_policy;
mod cache;
mod confirmed;
mod directory;
mod disk_ban;
mod disk_level;
mod draft;
mod entry;
mod farewell;
mod flight;
mod flight_body;
mod flight_state;
mod follower;
mod group_table;
mod hot_table;
mod kept_facts;
mod kept_head;
mod key;
mod laying;
mod lending;
mod lifespan;
pub mod limits;
mod object;
mod parts;
mod purging;
mod readers;
mod recall;
mod selection;
mod slices;
mod spec;
mod stored_body;
mod stored_form;
mod tag_index;
mod ticket;
mod unwritten;
mod variants;
mod walk;
mod wishes;

pub use ban_list::BanEntry;
pub use ban_test::{BanSubject, BanTest};
pub use banning::BanProgress;
pub use by_policy::{Mark, MarkKind};
pub use cache::{Cache, CacheSettings, CacheStats};
pub use confirmed::{Renewal, Unshared};
pub use disk_ban::RecoveredBan;
pub use disk_level::{Admission, Disk, DiskFile};
pub use draft::Draft;
pub use farewell::{Farewell, Leaving};
pub use flight::{Courier, Failure, Flight};
pub use flight_body::Pieces;
pub use flight_state::{FlightState, edges_taken};
pub use follower::{BodyPiece, Follower, Headed, Release};
pub use group_table::Groups;
pub use hot_table::HotTable;
pub use key::Key;
pub use laying::LayingBody;
pub use lifespan::standby_ms;
pub use object::{Object, Part};
pub use parts::WholeHead;
pub use purging::Purge;
pub use recall::Recalled;
pub use slices::{SliceAnswer, SliceUnderWay, Sliced};
pub use store::disk::{BodyOnDisk, DiskState, DiskStats, LentBody, Lost};
pub use store::{Account, Blocks, Charge, EvictionKind, Extent};
pub use stored_body::Body;
pub use tag_index::{Tags, TooManyTags};
pub use ticket::{Departure, Description, Elsewhere, StoreAs, Ticket};
pub use wishes::{Answer, Began, Now, Wishes};
