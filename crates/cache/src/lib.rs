//! Which bytes answer which request: directory, variants, flights, invalidation.
//!
//! Start at [`Cache::ask`]. A [`Flight`] is one fetch that many may wait for; its life stands as a table over
//! [`FlightState`]. A [`HotTable`] per core answers the hottest hits without touching shared state. This crate
//! decides by `rules`, keeps by `store`, and knows neither sockets nor how a message is framed nor any clock.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use cache::{Answer, Cache, CacheSettings, Notifier, Description, Flight, Stamp, StoreAs, LookupOptions};
//! use message::{Authority, Fields, Method, Request, ResponseHead, Scheme, Status, TargetForm, Version};
//! use rules::Facts;
//!
//! /// Nobody waits on another core.
//! struct NoOtherCore;
//! impl Notifier for NoOtherCore {
//!     fn post(&self, _core: usize, _flight: Arc<Flight>) {}
//! }
//!
//! let cache = Cache::new(CacheSettings::default(), Arc::new(NoOtherCore));
//! let key = cache.key([&b"http"[..], b"example.org", b"/"]);
//! let asked = Fields::default();
//! let request = Request {
//!     method: Method::Get,
//!     method_text: b"GET",
//!     version: Version::Http11,
//!     form: TargetForm::Origin,
//!     scheme: Scheme::Http,
//!     authority: Authority::EMPTY,
//!     path: b"/",
//!     query: None,
//!     fields: asked.view(),
//! };
//! let now = cache.now(Stamp { wall_ms: 1_767_268_800_000, mono_ms: 1_000_000 });
//!
//! // The first who asks has to fetch; whoever asks meanwhile follows.
//! let Answer::Miss(ticket) = cache.ask(key, &request, &LookupOptions::default(), now) else { panic!("nothing is stored") };
//! assert!(matches!(cache.ask(key, &request, &LookupOptions::default(), now), Answer::Busy(_)));
//!
//! let head = Arc::new(ResponseHead::new(Status::OK));
//! let facts = Facts { lifetime_ms: 60_000, says_shared: true, ..Facts::default() };
//! let mut draft = ticket.describe(Description {
//!     head: Arc::clone(&head),
//!     shared_head: head,
//!     length: Some(5),
//!     storable: Some(StoreAs {
//!         facts,
//!         lifetimes: None,
//!         vary: None,
//!         rendered: Bytes::from_static(b"HTTP/1.1 200 OK\r\n"),
//!         partial: None,
//!         whole: None,
//!         sliced: None,
//!         elsewhere: None,
//!         groups: None,
//!         tags: None,
//!     }),
//!     uncacheable_ms: 0,
//!     is_personal: false,
//!     why_not: None,
//!     supersedes: true,
//!     mark: None,
//!     esi: None,
//!     now,
//! });
//! draft.append(Bytes::from_static(b"hello"));
//! draft.land(None);
//!
//! let Answer::Fresh(object) = cache.ask(key, &request, &LookupOptions::default(), now) else { panic!("it is stored") };
//! assert_eq!((object.response().status, object.body_len()), (Status::OK, 5));
//! ```

mod ask;
mod asked_dictionary;
mod asked_encoding;
mod ban_list;
mod ban_test;
mod banning;
mod beneath_memory;
mod body_form;
mod body_promotion;
mod by_program;
mod cache;
mod cache_stats;
mod confirmed;
mod description;
mod dictionaries;
mod dictionary_name;
mod dictionary_text;
mod directory;
mod disk_ban;
mod disk_control;
mod disk_encodings;
mod disk_level;
mod draft;
mod duty;
mod encoding_draft;
mod encoding_form;
mod encoding_head;
mod encoding_name;
mod encodings;
mod entry;
mod esi_form;
mod esi_page;
mod explained_lookup;
mod failure;
mod fleet_lease;
mod flight;
mod flight_body;
mod flight_state;
mod follower;
mod form_fields;
mod group_table;
mod hot_table;
mod inspecting;
mod invalidation_line;
mod kept_facts;
mod kept_head;
mod key;
mod leasing;
mod lifespan;
pub mod limits;
mod liveness;
mod log_marks;
mod lookup_options;
mod lookup_plan;
mod moment;
mod object;
mod object_lifetimes;
mod out_of_line_body;
mod part_joining;
mod parts;
mod purge_kind;
mod purged_objects;
mod purging;
mod readers;
mod reaper;
mod recall;
mod removal_listener;
mod removed_objects;
mod second_tier;
mod selection;
mod shared_form;
mod shared_level;
mod shared_recall;
mod shortened_life;
mod slice_layout;
mod slice_room;
mod slices;
mod spec;
mod stored_body;
mod stored_form;
mod tag_index;
mod ticket;
mod told_successor;
mod unwritten;
mod variants;
mod walk;
mod why_uncacheable;

pub use ask::Answer;
pub use asked_encoding::EncodingAnswer;
pub use ban_list::BanEntry;
pub use ban_test::{BanSubject, BanTest};
pub use banning::{BanOutcome, BanProgress};
pub use beneath_memory::Beneath;
pub use body_form::Part;
pub use body_promotion::BodyPromotion;
pub use by_program::{Mark, MarkKind};
pub use cache::{Cache, CacheSettings};
pub use cache_stats::CacheStats;
pub use confirmed::{Renewal, Unshared};
pub use description::{Description, Elsewhere, StoreAs};
pub use dictionaries::{DictionaryBounds, DictionaryQuestion, DictionaryScope};
pub use dictionary_text::DictionaryText;
pub use disk_ban::RecoveredBan;
pub use disk_level::{Admission, Disk, DiskFile};
pub use draft::Draft;
pub use encoding_draft::EncodingDraft;
pub use encoding_name::EncodingName;
pub use encodings::{EncodingState, Encodings};
pub use esi_page::{EsiPage, PagePiece};
pub use explained_lookup::Explained;
pub use failure::Failure;
pub use fleet_lease::FleetLease;
pub use flight::{Flight, Notifier};
pub use flight_body::Pieces;
pub use flight_state::{FlightState, edges_taken};
pub use follower::{BodyPiece, Follower, Headed, Release};
pub use group_table::Groups;
pub use hot_table::HotTable;
pub use invalidation_line::{Invalidated, Successor};
pub use key::Key;
pub use lifespan::standby_ms;
pub use log_marks::PlaceInLog;
pub use lookup_options::LookupOptions;
pub use lookup_plan::LookupPlan;
pub use moment::{Began, Now, Stamp};
pub use object::Object;
pub use parts::WholeHead;
pub use purge_kind::Purge;
pub use recall::Recalled;
pub use removal_listener::{RemovalCause, RemovalListener};
pub use second_tier::{
    AskedTier, FetchRight, SecondTier, SharedTier, TierAnswer, TierFigures, TierName, TierRecord, TierServer,
};
pub use shared_recall::SharedRecall;
pub use slice_layout::Sliced;
pub use slice_room::SliceUnderWay;
pub use slices::SliceAnswer;
pub use store::disk::{BodyOnDisk, DiskState, DiskStats, LeasedBody, Lost, disk_file};
pub use store::{Account, Blocks, Charge, EvictionKind, Extent};
pub use stored_body::Body;
pub use tag_index::{TagUse, Tags, TooManyTags};
pub use ticket::{Departure, Ticket};
pub use why_uncacheable::WhyUncacheable;
