//! One fetch that many may wait for: its state, its head, its body so far, and who reads it.
//!
//! Between `ask`, which makes it, and the writer's last word (land, fail, abort, refreshed). It does not know the
//! directory; lock order is shard, then flight, and wakes are sent when no lock is held.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use message::{Fields, FieldsView, Request, ResponseHead};
use rules::freshness::judge;
use rules::lifetimes::Stage;
use rules::{Facts, Freshness, RequestDirectives, credentials};
use store::sync::Mutex;
use store::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use store::{Charge, Growing};

use crate::ban_list::Trial;
use crate::by_program;
use crate::encodings::Encodings;
use crate::esi_page::EsiPage;
use crate::failure::Failure;
use crate::flight_body::FlightBody;
use crate::flight_state::FlightState;
use crate::group_table::Membership;
use crate::key::{Key, Variant};
use crate::lookup_options::LookupOptions;
use crate::moment::Now;
use crate::object::Object;
use crate::readers::{Readers, Wakes};
use crate::spec::{Spec, variant_of};

/// Carries a flight to a core on which readers wait; that core then calls [`Flight::wake_core`].
pub trait Notifier: Send + Sync {
    fn post(&self, core: usize, flight: Arc<Flight>);
}

/// A fetch under way, or just ended.
pub struct Flight {
    pub(crate) key: Key,
    /// The invalidation number it began under; changed under the shard's lock.
    began: AtomicU64,
    /// Has its request left? Before that nothing that is invalidated can be about what it brings.
    has_left: AtomicBool,
    /// Its place among the flights of its shard.
    pub(crate) order: u64,
    /// The writer's core.
    pub(crate) core: usize,
    pub(crate) notifier: Arc<dyn Notifier>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub state: FlightState,
    pub head: Option<FlightHead>,
    pub body: FlightBody,
    pub end: End,
    /// Who followed it as a hit, until it lands: the object goes on counting.
    pub hits: u16,
    pub readers: Readers,
    /// A reader left that had all it wanted: what comes is worth keeping though nobody reads it.
    pub is_wanted: bool,
    /// Made of what has come, while it comes; what lands goes on with them.
    pub encodings: Option<Arc<Encodings>>,
    /// What its last readers hold of a body that was not kept.
    pub held: Option<(Charge, Option<Charge>)>,
    writer: Option<Writer>,
}

/// The head as it was described.
#[derive(Clone, Debug)]
pub(crate) struct FlightHead {
    pub full: Arc<ResponseHead>,
    /// Without what is for the first client only.
    pub shared: Arc<ResponseHead>,
    pub length: Option<u64>,
    pub facts: Option<Facts>,
    pub received: Now,
    pub fits: Fits,
    pub groups: Option<Arc<Membership>>,
    pub tags: Option<Arc<Membership>>,
    pub keep_ms: u64,
    /// A program decided how long it lives.
    pub is_by_program: bool,
    /// Against the bans since the fetch began.
    pub trial: Trial,
    /// Of a response whose body lies elsewhere: it answers once it has landed.
    pub is_manifest: bool,
    /// What is to be included in its body.
    pub esi: Option<Arc<EsiPage>>,
}

/// Whom beside the leader a response can answer.
#[derive(Clone, Debug)]
pub(crate) enum Fits {
    Variant(Option<Arc<Spec>>, Variant),
    /// The same, for requests with the leader's target alone: it turned out to differ from what shares its key.
    Target(Option<Arc<Spec>>, Variant, Box<[u8]>),
    /// A part, which only the leader asked for.
    Leader,
}

impl FlightHead {
    pub fn is_valid(&self) -> bool {
        [&self.groups, &self.tags].into_iter().flatten().all(|groups| groups.is_valid())
    }

    /// May one who comes now have it, as if it were stored already (RFC 9111 §4)? Where a program decided how long it lives,
    /// that counts, with its grace: nobody refreshes it before it has landed.
    pub fn is_fresh_for(&self, options: &LookupOptions, now: Now) -> bool {
        let resident_ms = now.mono_ms.saturating_sub(self.received.mono_ms);
        let stage = |facts: &Facts| by_program::stage(facts, self.keep_ms, resident_ms, options);
        self.facts.as_ref().is_some_and(|facts| match self.is_by_program {
            true => matches!(stage(facts), Stage::Fresh | Stage::Grace),
            false => judge(facts, resident_ms, &options.directives) == Freshness::Fresh,
        })
    }

    /// May one who waited have it? A request with credentials is answered by a response that does not say that it is shared
    /// only as far as it would be by the stored one, which it does not validate either.
    pub fn is_for(&self, request: FieldsView<'_>) -> bool {
        let is_fresh = |facts: &Facts| judge(facts, 0, &RequestDirectives::default()) == Freshness::Fresh;
        let is_shared = self.facts.as_ref().is_none_or(|facts| facts.says_shared || is_fresh(facts));
        is_shared || credentials::of_request(request).is_none()
    }
}

impl Fits {
    pub fn request(&self, request: &Request<'_>) -> bool {
        let selects = |spec: &Option<Arc<Spec>>, variant| variant_of(spec.as_ref(), request.fields) == variant;
        match self {
            Fits::Variant(spec, variant) => selects(spec, *variant),
            Fits::Target(spec, variant, target) => selects(spec, *variant) && target_of(request) == *target,
            Fits::Leader => false,
        }
    }
}

/// Path and query as they are forwarded.
pub(crate) fn target_of(request: &Request<'_>) -> Box<[u8]> {
    let mut target = Vec::new();
    request.write_target(&mut target);
    target.into()
}

/// How the body ended.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Open,
    Whole(Option<Arc<Fields>>),
    Truncated(Failure),
}

/// The writer waits for room, or for its readers to leave.
#[derive(Debug)]
struct Writer {
    waker: Waker,
    posted: bool,
}

impl Flight {
    pub(crate) fn new(key: Key, began: u64, order: u64, core: usize, notifier: Arc<dyn Notifier>) -> Arc<Flight> {
        let inner = Inner {
            state: FlightState::Reserved,
            head: None,
            body: FlightBody::Growing(Growing::default()),
            end: End::Open,
            hits: 0,
            readers: Readers::default(),
            is_wanted: false,
            encodings: None,
            held: None,
            writer: None,
        };
        let (began, has_left) = (AtomicU64::new(began), AtomicBool::new(true));
        Arc::new(Flight { key, began, has_left, order, core, notifier, inner: Mutex::new(inner) })
    }

    pub(crate) fn began(&self) -> u64 {
        self.began.load(Relaxed)
    }

    pub(crate) fn begin_at(&self, number: u64) {
        self.began.store(number, Relaxed);
    }

    /// It is not condemned until somebody says that it leaves: [`Ticket::departure`](crate::Ticket::departure).
    pub(crate) fn wait_for_departure(&self) {
        self.has_left.store(false, Relaxed);
    }

    pub(crate) fn depart(&self) {
        self.has_left.store(true, Relaxed);
    }

    pub(crate) fn has_left(&self) -> bool {
        self.has_left.load(Relaxed)
    }

    pub fn key(&self) -> Key {
        self.key
    }

    pub fn state(&self) -> FlightState {
        self.inner.lock().state
    }

    /// Body bytes received so far: whether a range is far ahead of the writer.
    pub fn received_bytes(&self) -> u64 {
        self.inner.lock().body.end()
    }

    /// What has landed, if that is stored in memory at this moment.
    pub fn landed(&self) -> Option<Arc<Object>> {
        match &self.inner.lock().body {
            FlightBody::Landed(object) if !object.is_dead() => Some(Arc::clone(object)),
            _ => None,
        }
    }

    /// Was there ever a head? Of one that has failed: it broke off on the way.
    pub fn is_described(&self) -> bool {
        self.inner.lock().head.is_some()
    }

    /// Readers that still read.
    pub fn readers_count(&self) -> usize {
        self.inner.lock().readers.count()
    }

    /// What of its body stays in memory for each of its readers.
    pub fn kept_for_reader(&self) -> usize {
        self.with(|inner| {
            let bytes = match &inner.body {
                FlightBody::Growing(growing) => growing.len() as usize,
                FlightBody::Window(window) => window.held_bytes(),
                FlightBody::Landed(object) if object.is_dead() => object.own_bytes(),
                // The store keeps it.
                FlightBody::Landed(_) => 0,
            };
            bytes / inner.readers.count().max(1)
        })
    }

    /// What a core does with a flight that was posted to it: wakes those of its tasks that wait for it.
    pub fn wake_core(self: &Arc<Flight>, core: usize) {
        let mut wakes = Wakes::default();
        {
            let mut inner = self.inner.lock();
            inner.readers.wake_core(core, &mut wakes);
            if core == self.core
                && let Some(writer) = inner.writer.take()
            {
                wakes.wakers.push(writer.waker);
            }
        }
        wakes.send(self);
    }

    /// Changes what readers see. The wakes are to be sent when no lock is held.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Inner) -> R) -> (R, Wakes) {
        let mut wakes = Wakes::default();
        let mut inner = self.inner.lock();
        let result = change(&mut inner);
        inner.readers.wake(self.core, &mut wakes);
        (result, wakes)
    }

    /// Looks, or changes what nobody waits for.
    pub(crate) fn with<R>(&self, look: impl FnOnce(&mut Inner) -> R) -> R {
        look(&mut self.inner.lock())
    }

    /// A change by a reader on `here`, which may give the writer room.
    pub(crate) fn read<R>(self: &Arc<Flight>, here: usize, read: impl FnOnce(&mut Inner) -> (R, bool)) -> R {
        let mut wakes = Wakes::default();
        let result = {
            let mut inner = self.inner.lock();
            let (result, writer_may_go_on) = read(&mut inner);
            if writer_may_go_on {
                inner.wake_writer(here, self.core, &mut wakes);
            }
            result
        };
        wakes.send(self);
        result
    }

    /// Puts full blocks in the place of the pieces they are made of. The copying is done with nothing locked.
    pub(crate) fn settle(&self, pieces: Vec<Bytes>) {
        let mut ripe = Some(pieces);
        while let Some(pieces) = ripe {
            let block = Growing::join(&pieces);
            ripe = self.with(|inner| match &mut inner.body {
                FlightBody::Growing(growing) => {
                    growing.settle(block);
                    growing.ripe()
                }
                _ => None,
            });
        }
    }

    /// Was none of the response's groups invalidated, and none of its tags purged, as far as they are known?
    pub(crate) fn is_valid(&self) -> bool {
        self.with(|inner| inner.head.as_ref().is_none_or(FlightHead::is_valid))
    }

    /// Something newer invalidated the key: who waits is served, nothing is stored. Under the shard's lock.
    pub(crate) fn condemn(&self) {
        let mut inner = self.inner.lock();
        if matches!(inner.state, FlightState::Reserved | FlightState::Described | FlightState::Filling) {
            inner.state.step(FlightState::Condemned);
            inner.open_window();
        }
    }
}

impl Inner {
    /// The body will not be kept.
    pub fn open_window(&mut self) {
        self.body.open_window();
        self.trim();
    }

    /// Lets go of what every reader has passed; without readers, of everything.
    pub fn trim(&mut self) {
        if let FlightBody::Window(window) = &mut self.body {
            window.trim(self.readers.floor().unwrap_or(u64::MAX));
        }
    }

    /// `is_own`: the piece holds on to nothing but its own bytes.
    pub fn append(&mut self, piece: Bytes, is_own: bool) {
        match &mut self.body {
            FlightBody::Growing(growing) if is_own => growing.append_own(piece),
            FlightBody::Growing(growing) => growing.append(piece),
            FlightBody::Window(window) => {
                window.append(piece);
                // A reader that waits further ahead does not hold this back, and nor does nobody.
                self.trim();
            }
            FlightBody::Landed(_) => panic!("nothing is appended to what has landed"),
        }
    }

    /// Nobody reads what comes, and nobody left content of a body that is kept.
    pub fn is_abandoned(&self) -> bool {
        self.readers.count() == 0 && !(self.is_wanted && self.window_bytes().is_none())
    }

    /// What the body holds on to while it is not kept; `None` while it is.
    pub fn window_bytes(&self) -> Option<usize> {
        match &self.body {
            FlightBody::Window(window) => Some(window.held_bytes()),
            _ => None,
        }
    }

    /// Ready when `done` says so; else the writer is woken when a reader has moved or left.
    pub fn poll_writer(&mut self, cx: &mut Context<'_>, done: impl FnOnce(&Inner) -> bool) -> Poll<()> {
        if done(self) {
            self.writer = None;
            return Poll::Ready(());
        }
        let posted = self.writer.as_ref().is_some_and(|writer| writer.posted);
        self.writer = Some(Writer { waker: cx.waker().clone(), posted });
        Poll::Pending
    }

    fn wake_writer(&mut self, here: usize, core: usize, wakes: &mut Wakes) {
        match &mut self.writer {
            Some(_) if here == core => wakes.wakers.extend(self.writer.take().map(|writer| writer.waker)),
            Some(writer) if !writer.posted => {
                writer.posted = true;
                wakes.posts.push(core);
            }
            _ => {}
        }
    }
}

impl Wakes {
    pub fn send(self, flight: &Arc<Flight>) {
        self.wakers.into_iter().for_each(Waker::wake);
        for core in self.posts {
            flight.notifier.post(core, Arc::clone(flight));
        }
    }
}

impl std::fmt::Debug for Flight {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flight").field("key", &self.key).field("began", &self.began()).finish_non_exhaustive()
    }
}
