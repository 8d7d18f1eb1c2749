//! A core's own things, and what all cores share: what every step of every story may reach.
//!
//! `worker` runs it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use cache::{Cache, HotTable};
use message::FieldSpan;
use tokio::sync::watch;
use wire::http2::HeadArena;

use crate::access_log::DateCache;
use crate::client_permits::ClientPermits;
use crate::clock::{Clock, Moment, deadline_now_ms};
use crate::coder_account::CoderAccount;
use crate::coding_threads::CodingThreads;
use crate::codings_memo::CodingsMemo;
use crate::counters::CoreCounters;
use crate::dry_runner::watch::Watch;
use crate::edges::EdgeCounts;
use crate::events::event_outbox::EventOutbox;
use crate::events::event_readers::EventReaders;
use crate::events::exchange_event::ExchangeEvent;
use crate::fleet::log_position::LogPosition;
use crate::hit_history::HitHistory;
use crate::http_challenges::HttpChallenges;
use crate::known_admissions::KnownAdmissions;
use crate::limits::{CONNECTIONS_ALWAYS, SHORT_READ_BYTES_MAX, STALLED_AFTER};
use crate::line_allowance::LineAllowance;
use crate::log_buffer::LogBuffer;
use crate::log_sink::LogSink;
use crate::mailbox::{Mailbox, Message};
use crate::memcached_gateway::lane_table::LaneTable;
use crate::memory_gate::MemoryGate;
use crate::origin::{CoreHandle, SharedConnections};
use crate::other_nodes::OtherNodes;
use crate::prober::Probes;
use crate::pulse::Pulse;
use crate::purge_tally::PurgeTally;
use crate::records::RecordSink;
use crate::records::record_outlet::RecordOutlet;
use crate::route_rules::rate_table::RateTable;
use crate::route_rules::rewritten_request::{IdleRoom, RewritingRoom};
use crate::route_rules::under_way::UnderWay;
use crate::settings::ListenerSettings;
use crate::site::Site;
use crate::slots::Slots;
use crate::stored_blocks::StoredBlocks;
use crate::traces::export_outbox::ExportOutbox;
use crate::traces::export_queue::{ExportQueue, ExportSignal};
use crate::traces::trace_ids::TraceDice;
use crate::unsliceable::Unsliceable;
use crate::url_variations::UrlVariations;
use crate::vcl_shelf::VclShelf;
use crate::vcl_story::syslog_allowance::SyslogAllowance;
use crate::vcl_story::xids::Xids;

/// The buffer that all reads of a core share; larger than any request head, so that a read is nearly always partial
/// and tokio knows without another system call that the socket is empty.
const SCRATCH_BYTES: usize = 64 << 10;

/// What all cores share.
pub(crate) struct Shared {
    pub(crate) cache: Arc<Cache>,
    pub(crate) site: ArcSwap<Site>,
    pub(crate) shelf: VclShelf,
    /// Of the origins of the configuration.
    pub(crate) probes: parking_lot::Mutex<Probes>,
    pub(crate) mailboxes: Arc<[Mailbox]>,
    pub(crate) counters: Vec<Arc<CoreCounters>>,
    pub(crate) edges: Vec<Arc<EdgeCounts>>,
    /// Open client connections of each core, those on their way to it included.
    pub(crate) loads: Vec<AtomicUsize>,
    pub(crate) pulse: Pulse,
    pub(crate) log: Option<Arc<dyn LogSink>>,
    pub(crate) event_readers: Arc<EventReaders>,
    pub(crate) export_queue: Arc<ExportQueue>,
    pub(crate) records: Option<Arc<dyn RecordSink>>,
    pub(crate) draining: AtomicBool,
    /// Another process has the addresses and the disks by now.
    pub(crate) handed_over: AtomicBool,
    pub(crate) client_permits: Arc<ClientPermits>,
    /// Of those whose requests are limited.
    pub(crate) rates: RateTable,
    pub(crate) admissions: KnownAdmissions,
    pub(crate) log_position: LogPosition,
    /// Requests whose number is limited.
    pub(crate) under_way: Arc<UnderWay>,
    pub(crate) memory: MemoryGate,
    /// Of what is said of descriptors that are not to be had.
    pub(crate) descriptors_notice: parking_lot::Mutex<LineAllowance>,
    /// Of what is said of purges that a crash may undo.
    pub(crate) unsettled_notice: parking_lot::Mutex<LineAllowance>,
    pub(crate) partial_heads_bytes: AtomicUsize,
    /// Of values on their way to memcached, and of those in chunks on their way from it.
    pub(crate) memcached_values_bytes: AtomicUsize,
    /// CONNECT tunnels, over all cores.
    pub(crate) tunnels_open: AtomicUsize,
    /// Copies of requests under way, over all cores.
    pub(crate) mirrors_open: AtomicUsize,
    pub(crate) hit_history: HitHistory,
    pub(crate) http_challenges: Arc<HttpChallenges>,
    pub(crate) purge_tally: PurgeTally,
    /// The rest of the fleet, where there is one.
    pub(crate) others: Option<Arc<dyn OtherNodes>>,
    pub(crate) variations: UrlVariations,
    pub(crate) unsliceable: Unsliceable,
    pub(crate) coding_threads: Arc<CodingThreads>,
    pub(crate) coders: CoderAccount,
    /// Held while a manifest is made.
    pub(crate) making_manifest: parking_lot::Mutex<()>,
}

impl Shared {
    /// Those who are to hear of what unsafe methods invalidate.
    pub(crate) fn unsafe_methods_heard_by(&self) -> Option<&dyn OtherNodes> {
        self.others.as_deref().filter(|others| others.hear_of_unsafe_methods())
    }

    #[inline]
    pub(crate) fn logs(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_on())
    }

    /// Does anybody want to know of exchanges that are over?
    #[inline]
    pub(crate) fn tells_exchanges(&self) -> bool {
        self.logs() || self.event_readers.any()
    }

    /// Swaps the site and tells the cores.
    pub(crate) fn set_site(&self, site: Site) {
        let site = Arc::new(site);
        if let Some(vcl) = &site.program {
            vcl.note_site(&site);
            // Before anything is stored that a ban might meet.
            self.cache.watch_for_bans();
        }
        self.event_readers.set_makes_spans(site.makes_spans());
        self.coding_threads.set_limits(&site.settings.limits);
        self.coders.set_limit(site.settings.limits.coding_memory_bytes_max);
        self.cache.set_dictionary_bounds(site.settings.dictionary_bounds());
        self.site.store(site);
        self.mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Reloaded));
    }

    /// So much more is accounted for at this moment than the limit is, though the store has given what it had: too much for
    /// more than the connections that are always taken.
    fn memory_overdraft(&self) -> u64 {
        let overdraft = || self.memory.overdraft(self.cache.account().used());
        match overdraft() > 0 && self.connections_open() > CONNECTIONS_ALWAYS && !self.cache.sheds() {
            true => overdraft(),
            false => 0,
        }
    }

    pub(crate) fn connections_open(&self) -> usize {
        self.loads.iter().map(|load| load.load(Ordering::Relaxed)).sum()
    }
}

/// One core's own things. Nothing in here is touched by another thread but what is atomic.
pub(crate) struct Core {
    pub(crate) index: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) counters: Arc<CoreCounters>,
    pub(crate) edges: Arc<EdgeCounts>,
    pub(crate) slots: Slots,
    pub(crate) hot: RefCell<HotTable>,
    /// Borrowed by whoever reads or builds a head, never across an await.
    pub(crate) scratch: RefCell<Box<[u8]>>,
    pub(crate) spans: RefCell<Vec<FieldSpan>>,
    /// Where heads of HTTP/2 are decoded.
    pub(crate) http2_heads: RefCell<HeadArena>,
    /// Heads of stored responses as HTTP/2 has them.
    pub(crate) http2_blocks: RefCell<StoredBlocks>,
    /// The changing end of a stored head is written here.
    pub(crate) tail: RefCell<Vec<u8>>,
    pub(crate) memcached_lanes: RefCell<LaneTable>,
    pub(crate) codings: CodingsMemo,
    /// Its HTTP/2 connections to origins.
    pub(crate) shared_connections: SharedConnections,
    /// Where programs make their texts, for as long as one scope lasts.
    arena: RefCell<vcl::Arena>,
    pub(crate) xids: Cell<Xids>,
    /// The second in which a program's failure was said on stderr last: one a second is enough.
    pub(crate) complained_s: Cell<u64>,
    pub(crate) syslogged: Cell<SyslogAllowance>,
    log: RefCell<LogBuffer>,
    events: RefCell<EventOutbox>,
    exports: RefCell<ExportOutbox>,
    /// Somebody wants records of what happens.
    pub(crate) records: Option<Rc<RecordOutlet>>,
    /// Somebody looks at everything that programs do: a dry run.
    pub(crate) watch: Option<Rc<Watch>>,
    /// It explains what would be: what others see of what a request has done, it does not do.
    pub(crate) only_looks: bool,
    /// The date of this second as log text.
    pub(crate) dates: DateCache,
    pub(crate) clock: Cell<Clock>,
    pub(crate) trace_dice: TraceDice,
    /// Room for what the words of a route make of a request.
    rewritten: IdleRoom,
    /// The name of the user who has sent the request that is being opened, where it is known that it is one.
    user: RefCell<Vec<u8>>,
    pub(crate) site: RefCell<Arc<Site>>,
    pub(crate) draining: Cell<bool>,
    /// After this the core ends, whatever its tasks are doing.
    pub(crate) hard_end_ms: Cell<u64>,
    /// Listeners that have not closed yet.
    pub(crate) listeners_open: Cell<usize>,
    /// Told whenever a listener has to look whether it is still wanted.
    pub(crate) listeners: watch::Sender<()>,
}

impl Shared {
    /// What holds now, for who is on no core.
    pub(crate) fn now(&self) -> cache::Now {
        self.cache.now(Clock::read().at(Moment::now()))
    }
}

impl Core {
    pub(crate) fn new(index: usize, shared: Arc<Shared>) -> Core {
        let site = shared.site.load_full();
        Core {
            index,
            counters: Arc::clone(&shared.counters[index]),
            edges: Arc::clone(&shared.edges[index]),
            slots: Slots::default(),
            hot: RefCell::new(HotTable::new(&shared.cache)),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            spans: RefCell::new(Vec::with_capacity(128)),
            http2_heads: RefCell::default(),
            http2_blocks: RefCell::default(),
            tail: RefCell::new(Vec::with_capacity(1024)),
            memcached_lanes: RefCell::default(),
            codings: CodingsMemo::default(),
            shared_connections: SharedConnections::default(),
            arena: RefCell::default(),
            xids: Cell::default(),
            complained_s: Cell::new(0),
            syslogged: Cell::default(),
            log: RefCell::new(LogBuffer::default()),
            events: RefCell::default(),
            exports: RefCell::default(),
            records: shared.records.clone().map(|sink| Rc::new(RecordOutlet::to(sink))),
            watch: None,
            only_looks: false,
            dates: DateCache::default(),
            clock: Cell::new(Clock::read()),
            trace_dice: TraceDice::default(),
            site: RefCell::new(site),
            rewritten: Cell::default(),
            user: RefCell::default(),
            draining: Cell::new(false),
            hard_end_ms: Cell::new(u64::MAX),
            listeners_open: Cell::new(0),
            listeners: watch::Sender::new(()),
            shared,
        }
    }

    /// The only core of a dry run, whose clock stands still.
    pub(crate) fn watched(shared: Arc<Shared>, watch: Rc<Watch>, clock: Clock) -> Core {
        let (clock, xids) = (Cell::new(clock), Cell::new(Xids::apart()));
        Core { watch: Some(watch), clock, xids, ..Core::new(0, shared) }
    }

    /// One that explains what would be, at this clock. What it counts nobody sees.
    pub(crate) fn that_only_looks(shared: Arc<Shared>, clock: Clock) -> Core {
        let (counters, edges, clock) = (Arc::default(), Arc::default(), Cell::new(clock));
        Core { counters, edges, clock, only_looks: true, records: None, ..Core::new(0, shared) }
    }

    /// Does anybody hear what programs do? Then nothing is shortened.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.watch.is_some() || self.records.is_some()
    }

    /// One more line of the access log, which `write` ends with a line feed.
    #[inline]
    pub(crate) fn log_line(&self, write: impl FnOnce(&mut Vec<u8>)) {
        self.log.borrow_mut().append(self.shared.log.as_deref(), &self.counters, write);
    }

    /// Tells those who read along of an exchange that is over.
    #[inline]
    pub(crate) fn tell(&self, event: &ExchangeEvent<'_>) {
        if self.shared.event_readers.any() {
            self.events.borrow_mut().append(&self.shared.event_readers, &self.counters, event, &self.dates);
        }
    }

    /// Spans or log records that `write` makes of one, for who exports them; it returns how many.
    pub(crate) fn export(&self, signal: ExportSignal, write: impl FnOnce(&mut Vec<u8>) -> u64) {
        let queue = (&*self.shared.export_queue, self.index);
        self.exports.borrow_mut().append(queue, &self.counters, signal, write);
    }

    /// Notes the user who has sent the request that is being opened.
    pub(crate) fn note_user(&self, name: &[u8]) {
        let mut user = self.user.borrow_mut();
        user.clear();
        user.extend_from_slice(name);
    }

    /// The user who was noted last. That is the one of a client that is known to be one, until the next request is opened.
    pub(crate) fn user(&self) -> std::cell::Ref<'_, Vec<u8>> {
        self.user.borrow()
    }

    /// Hands over what has gathered of the access log, for those who read along, and of what is exported.
    pub(crate) fn flush_log(&self) {
        self.events.borrow_mut().flush(&self.shared.event_readers, &self.counters);
        self.exports.borrow_mut().flush((&self.shared.export_queue, self.index), &self.counters);
        self.log.borrow_mut().flush(self.shared.log.as_deref(), &self.counters);
    }

    pub(crate) fn set_clock(&self, clock: Clock) {
        self.clock.set(clock);
    }

    pub(crate) fn site(&self) -> Arc<Site> {
        Arc::clone(&self.site.borrow())
    }

    /// The site, for as long as nothing is awaited.
    #[inline]
    pub(crate) fn site_ref(&self) -> std::cell::Ref<'_, Arc<Site>> {
        self.site.borrow()
    }

    #[inline]
    pub(crate) fn clock(&self) -> Clock {
        self.clock.get()
    }

    #[inline]
    pub(crate) fn now(&self) -> cache::Now {
        self.now_at(Moment::now())
    }

    /// What holds for a request that was read at a moment.
    #[inline]
    pub(crate) fn now_at(&self, moment: Moment) -> cache::Now {
        self.shared.cache.now(self.clock.get().at(moment))
    }

    /// Room for what the words of its route make of a request.
    #[inline]
    pub(crate) fn room_to_rewrite(&self) -> RewritingRoom<'_> {
        RewritingRoom::of(&self.rewritten)
    }

    #[inline]
    pub(crate) fn draining(&self) -> bool {
        self.draining.get()
    }

    /// Room for the texts of one scope; those of the one before are gone.
    pub(crate) fn fresh_arena(&self) -> std::cell::Ref<'_, vcl::Arena> {
        self.arena.borrow_mut().reset();
        self.arena.borrow()
    }

    /// May no further connection come, and no further fetch begin? By what the warden last saw; or because more is accounted
    /// for than there is, and no answer can be cut for it whose client takes nothing.
    pub(crate) fn lacks_memory(&self) -> bool {
        if self.shared.memory.refuses() {
            return true;
        }
        match self.shared.memory_overdraft() {
            0 => false,
            overdraft if self.slots.cut_bytes() >= overdraft || self.shared.memory.is_asked() => false,
            overdraft => !self.cut_stalled(overdraft, Duration::ZERO) && !self.others_may_cut(overdraft),
        }
    }

    /// So much is read from an origin at once. Where others have no room left for it, little: what comes at once in many bodies
    /// is there before anybody sees what they occupy.
    pub(crate) fn origin_read_bytes_max(&self) -> usize {
        if self.shared.cache.sheds() { SCRATCH_BYTES } else { SHORT_READ_BYTES_MAX }
    }

    /// Cuts answers whose clients have taken nothing for so long, until so many bytes are free. False if there are none.
    pub(crate) fn cut_stalled(&self, bytes: u64, stalled_min: Duration) -> bool {
        let stalled_ms = stalled_min.as_millis() as u64;
        let answers = self.slots.cut_stalled(bytes, stalled_ms, deadline_now_ms());
        self.shared.memory.note_cut(answers);
        answers > 0
    }

    /// Asks the other cores to do the same; false if none of them waits for any client.
    fn others_may_cut(&self, bytes: u64) -> bool {
        let counters = &self.shared.counters;
        let others = (0..counters.len())
            .filter(|&other| other != self.index && counters[other].connections_waited_for.get() > 0);
        others.map(|other| self.shared.memory.ask_to_cut(&self.shared.mailboxes[other], bytes)).count() > 0
    }

    /// What is kept for stalled clients is bounded, however much room there is. Each core cuts its part of what is too much.
    pub(crate) fn bound_stalled(&self) {
        let (kept, waited_for) = self.slots.kept_by_stalled(STALLED_AFTER.as_millis() as u64, deadline_now_ms());
        self.counters.stalled_bytes.set(kept);
        self.counters.connections_waited_for.set(waited_for);
        let all: u64 = self.shared.counters.iter().map(|core| core.stalled_bytes.get()).sum();
        let excess = all.saturating_sub(self.shared.memory.stalled_bytes_max());
        if excess > 0 && kept > 0 {
            let part = (u128::from(excess) * u128::from(kept)).div_ceil(u128::from(all)) as u64;
            self.cut_stalled(part, STALLED_AFTER);
        }
    }

    /// What the origins need to know of a core.
    pub(crate) fn handle(&self) -> CoreHandle<'_> {
        CoreHandle {
            core: self.index,
            counters: &self.counters,
            now_ms: self.now().mono_ms,
            shared: &self.shared_connections,
        }
    }

    /// Ends when the listener with these settings has to close.
    pub(crate) fn listener_closing(
        self: &Rc<Self>,
        settings: &ListenerSettings,
    ) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
        let (core, settings) = (Rc::clone(self), settings.clone());
        let mut changes = self.listeners.subscribe();
        Box::pin(async move {
            while !core.draining.get() && core.site.borrow().settings.listeners.contains(&settings) {
                if changes.changed().await.is_err() {
                    return;
                }
            }
        })
    }
}
