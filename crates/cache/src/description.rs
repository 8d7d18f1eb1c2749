//! The head of a response as whoever fetched it describes it to the cache, and how it is to be stored.

use std::sync::Arc;

use bytes::Bytes;
use message::ResponseHead;
use rules::{Facts, Lifetimes, VarySpec, WhyNotStored};

use crate::body_form::Part;
use crate::by_program::Mark;
use crate::esi_page::EsiPage;
use crate::group_table::Groups;
use crate::key::Key;
use crate::moment::{Began, Now};
use crate::parts::WholeHead;
use crate::slice_layout::Sliced;
use crate::tag_index::Tags;

/// A head from the origin, and what may be done with it.
#[derive(Clone, Debug)]
pub struct Description {
    /// As the leader gets it.
    pub head: Arc<ResponseHead>,
    /// As everybody else gets it, and as it is stored: without Set-Cookie, hop-by-hop fields and Age. May be the
    /// same as `head`.
    pub shared_head: Arc<ResponseHead>,
    /// The length of the body, if it is known. What lands must be exactly that long.
    pub length: Option<u64>,
    /// `None`: it must not be stored, and who waits is released at once.
    pub storable: Option<StoreAs>,
    /// For how long the key counts as hit-for-miss if this is not stored because it may not be, or is too large.
    pub uncacheable_ms: u64,
    /// That is so for requests with credentials alone: the responses to others may be storable.
    pub is_personal: bool,
    /// Why it is not stored, where it is not.
    pub why_not: Option<WhyNotStored>,
    /// Beside no `storable`: what a program wants the next requests for such a response to meet.
    pub mark: Option<Mark>,
    /// Beside lifetimes or a mark of a program's: does it take the place of what the fetch set out from? An error that a program
    /// made for those who waited does not.
    pub supersedes: bool,
    /// What is to be included in its body, where that is known beforehand.
    pub esi: Option<Arc<EsiPage>>,
    /// When the head was received.
    pub now: Now,
}

/// How a response is stored.
#[derive(Clone, Debug)]
pub struct StoreAs {
    pub facts: Facts,
    /// Set when a program decided how long it lives: then only the dates of the facts count.
    pub lifetimes: Option<Lifetimes>,
    pub vary: Option<VarySpec>,
    /// The shared head as HTTP/1.1 text; see [`Object::rendered`](crate::Object::rendered).
    pub rendered: Bytes,
    /// Set for a 206.
    pub partial: Option<Part>,
    /// Beside `partial`: what the parts are stored as when nothing is missing any more.
    pub whole: Option<WholeHead>,
    /// Set when the body is to lie in slices: what is described here is the manifest, and its body empty.
    pub sliced: Option<Sliced>,
    /// Set when the response belongs under another key than the one it was asked by.
    pub elsewhere: Option<Elsewhere>,
    /// Its cache groups.
    pub groups: Option<Groups>,
    /// By which it can be purged together with others.
    pub tags: Option<Tags>,
}

/// The key under which a response belongs, and not under the one it was asked by.
#[derive(Clone, Copy, Debug)]
pub struct Elsewhere {
    pub key: Key,
    /// Those who wait under the other one get it only if they want the very same target as who asked.
    pub only_target: bool,
    /// Since when those who invalidate know this key; `None` if they do not yet. Whatever was invalidated before that
    /// may have meant it.
    pub known_since: Option<Began>,
}
