//! A core: one thread, one runtime, and everything its connections share without a lock.
//!
//! Started by `service`, told what to do through its mailbox. It knows no request; `connection` does.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use cache::{Cache, HotTable};
use message::FieldSpan;
use tokio::sync::watch;

use crate::access_log::DateCache;
use crate::client_places::ClientPlaces;
use crate::clock::{Clock, Moment, deadline_now_ms};
use crate::counters::CoreCounters;
use crate::edges::EdgeCounts;
use crate::hit_history::HitHistory;
use crate::limits::{CONNECTIONS_ALWAYS, FILE_THREADS_MAX, STALLED_AFTER};
use crate::listener::{self, Listener};
use crate::log_buffer::LogBuffer;
use crate::mailbox::{Mailbox, Message};
use crate::memcached_gateway::lane_table::LaneTable;
use crate::memory_warden::MemoryGate;
use crate::records::RecordSink;
use crate::rehearsal::watch::Watch;
use crate::service::LogSink;
use crate::settings::ListenerSettings;
use crate::site::Site;
use crate::slots::{Doom, Slots};
use crate::unsliceable::Unsliceable;
use crate::url_variations::UrlVariations;
use crate::vcl_shelf::VclShelf;
use crate::vcl_story::policy_log::SyslogAllowance;
use crate::vcl_story::xids::Xids;
use crate::{connection, origin};

/// How often deadlines are looked at, dead objects dropped, and the log handed over.
pub(crate) const TICK: Duration = Duration::from_millis(250);
/// Stored responses that bans are tested on in the background, a tick: a few milliseconds of one core.
const BANNED_PER_TICK_MAX: usize = 4_000;
/// Stored responses that are looked at for whether their time is over, a tick.
const REAPED_PER_TICK_MAX: usize = 1_000;
/// What connections have, once they were told to end.
const LAST_WORDS_MS: u64 = 1_000;
/// The buffer that all reads of a core share; larger than any request head, so that a read is nearly always partial
/// and tokio knows without another system call that the socket is empty.
const SCRATCH_BYTES: usize = 64 << 10;

/// What all cores share.
pub(crate) struct Shared {
    pub(crate) cache: Arc<Cache>,
    pub(crate) site: ArcSwap<Site>,
    pub(crate) shelf: VclShelf,
    pub(crate) mailboxes: Arc<[Mailbox]>,
    pub(crate) counters: Vec<Arc<CoreCounters>>,
    pub(crate) edges: Vec<Arc<EdgeCounts>>,
    /// Open client connections of each core, those on their way to it included.
    pub(crate) loads: Vec<AtomicUsize>,
    pub(crate) log: Option<Arc<dyn LogSink>>,
    pub(crate) records: Option<Arc<dyn RecordSink>>,
    pub(crate) draining: AtomicBool,
    pub(crate) client_places: Arc<ClientPlaces>,
    pub(crate) memory: MemoryGate,
    pub(crate) partial_heads_bytes: AtomicUsize,
    /// Of values on their way to memcached, and of those in chunks on their way from it.
    pub(crate) memcached_values_bytes: AtomicUsize,
    /// CONNECT tunnels, over all cores.
    pub(crate) tunnels_open: AtomicUsize,
    pub(crate) hit_history: HitHistory,
    pub(crate) variations: UrlVariations,
    pub(crate) unsliceable: Unsliceable,
    /// Held while a manifest is made.
    pub(crate) outlining: parking_lot::Mutex<()>,
}

impl Shared {
    #[inline]
    pub(crate) fn logs(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.is_on())
    }

    /// Swaps the site and tells the cores.
    pub(crate) fn set_site(&self, site: Site) {
        let site = Arc::new(site);
        if let Some(vcl) = &site.vcl {
            vcl.note_site(&site);
            // Before anything is stored that a ban might meet.
            self.cache.watch_for_bans();
        }
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
    /// The changing end of a stored head is written here.
    pub(crate) tail: RefCell<Vec<u8>>,
    pub(crate) memcached_lanes: RefCell<LaneTable>,
    /// Where programs make their texts, for as long as one scope lasts.
    arena: RefCell<vcl::Arena>,
    pub(crate) xids: Cell<Xids>,
    /// The second in which a program's failure was said on stderr last: one a second is enough.
    pub(crate) complained_s: Cell<u64>,
    pub(crate) syslogged: Cell<SyslogAllowance>,
    pub(crate) log: RefCell<LogBuffer>,
    /// Somebody wants records of what happens.
    pub(crate) records: Option<Arc<dyn RecordSink>>,
    /// Somebody looks at everything that programs do: a rehearsal.
    pub(crate) watch: Option<Rc<Watch>>,
    /// The date of this second as log text.
    pub(crate) dates: DateCache,
    clock: Cell<Clock>,
    site: RefCell<Arc<Site>>,
    draining: Cell<bool>,
    /// After this the core ends, whatever its tasks are doing.
    hard_end_ms: Cell<u64>,
    /// Listeners that have not closed yet.
    listeners_open: Cell<usize>,
    /// Told whenever a listener has to look whether it is still wanted.
    listeners: watch::Sender<()>,
}

impl Core {
    fn new(index: usize, shared: Arc<Shared>) -> Core {
        let site = shared.site.load_full();
        Core {
            index,
            counters: Arc::clone(&shared.counters[index]),
            edges: Arc::clone(&shared.edges[index]),
            slots: Slots::default(),
            hot: RefCell::new(HotTable::new(&shared.cache)),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            spans: RefCell::new(Vec::with_capacity(128)),
            tail: RefCell::new(Vec::with_capacity(1024)),
            memcached_lanes: RefCell::default(),
            arena: RefCell::default(),
            xids: Cell::default(),
            complained_s: Cell::new(0),
            syslogged: Cell::default(),
            log: RefCell::new(LogBuffer::default()),
            records: shared.records.clone(),
            watch: None,
            dates: DateCache::default(),
            clock: Cell::new(Clock::read()),
            site: RefCell::new(site),
            draining: Cell::new(false),
            hard_end_ms: Cell::new(u64::MAX),
            listeners_open: Cell::new(0),
            listeners: watch::Sender::new(()),
            shared,
        }
    }

    /// The only core of a rehearsal, whose clock stands still.
    pub(crate) fn watched(shared: Arc<Shared>, watch: Rc<Watch>, clock: Clock) -> Core {
        let (clock, xids) = (Cell::new(clock), Cell::new(Xids::apart()));
        Core { watch: Some(watch), clock, xids, ..Core::new(0, shared) }
    }

    /// Does anybody hear what programs do? Then nothing is shortened.
    #[inline]
    pub(crate) fn is_heard(&self) -> bool {
        self.watch.is_some() || self.records.is_some()
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
        self.clock.get().at(Moment::now())
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

    /// Cuts answers whose clients have taken nothing for so long, until so many bytes are free. False if there are none.
    fn cut_stalled(&self, bytes: u64, stalled_min: Duration) -> bool {
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
    fn bound_stalled(&self) {
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
    pub(crate) fn handle(&self) -> origin::CoreHandle<'_> {
        origin::CoreHandle { core: self.index, counters: &self.counters, now_ms: self.now().mono_ms }
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

/// A core's thread, from its first connection to its last.
pub(crate) fn run(index: usize, shared: Arc<Shared>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .event_interval(256)
        .global_queue_interval(64)
        .max_blocking_threads(FILE_THREADS_MAX)
        .build_local(Default::default())
        .unwrap_or_else(|error| panic!("core {index} has no runtime: {error}"));
    runtime.block_on(async {
        let core = Rc::new(Core::new(index, shared));
        tokio::task::spawn_local(tick(Rc::clone(&core)));
        obey(&core).await;
        core.log.borrow_mut().flush(&core);
    });
    // Fetches that nobody waits for any longer end here.
    runtime.shutdown_background();
}

/// Does what the mailbox says until a drain is over.
async fn obey(core: &Rc<Core>) {
    let mailboxes = Arc::clone(&core.shared.mailboxes);
    loop {
        let drained = async {
            let busy = || core.listeners_open.get() + core.shared.loads[core.index].load(Ordering::Relaxed) > 0;
            let out_of_time = || deadline_now_ms() > core.hard_end_ms.get();
            while !core.draining() || (busy() && !out_of_time()) {
                tokio::time::sleep(TICK / 10).await;
            }
        };
        let messages = tokio::select! {
            messages = mailboxes[core.index].receive() => messages,
            () = drained, if core.draining() => return,
        };
        for message in messages {
            match message {
                Message::Connection(accepted) => connection::spawn(core, accepted),
                Message::Flight(flight) => flight.wake_core(core.index),
                Message::CutStalled(bytes) => {
                    core.cut_stalled(bytes, Duration::ZERO);
                    core.shared.memory.note_asked();
                }
                Message::Open(listener) => open(core, *listener),
                Message::Reloaded => {
                    *core.site.borrow_mut() = core.shared.site.load_full();
                    core.listeners.send_replace(());
                }
                Message::Drain => drain(core),
                Message::DrainNow => end_now(core),
            }
        }
    }
}

fn open(core: &Rc<Core>, listener: Listener) {
    let core = Rc::clone(core);
    core.listeners_open.set(core.listeners_open.get() + 1);
    tokio::task::spawn_local(async move {
        listener::run(Rc::clone(&core), listener).await;
        core.listeners_open.set(core.listeners_open.get() - 1);
    });
}

fn drain(core: &Rc<Core>) {
    if core.draining.replace(true) {
        return;
    }
    let grace = core.site.borrow().settings.limits.drain_grace;
    core.listeners.send_replace(());
    core.slots.drain(Doom::Drain);
    let core = Rc::clone(core);
    tokio::task::spawn_local(async move {
        tokio::time::sleep(grace).await;
        end_now(&core);
    });
}

/// Tells every connection to end, and ends without those that do not.
fn end_now(core: &Core) {
    core.hard_end_ms.set(deadline_now_ms() + LAST_WORDS_MS);
    core.slots.drain(Doom::Now);
}

/// What is done a few times a second rather than per request.
async fn tick(core: Rc<Core>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        interval.tick().await;
        core.clock.set(Clock::read());
        let census = core.slots.sweep(deadline_now_ms());
        let gauges = &core.counters;
        gauges.connections_waiting.set(census.waiting);
        gauges.connections_reading.set(census.reading);
        gauges.connections_writing.set(census.writing);
        gauges.connections_active.set(core.shared.loads[core.index].load(Ordering::Relaxed) as u64);
        core.hot.borrow_mut().sweep();
        core.bound_stalled();
        if core.index == 0 {
            core.shared.hit_history.note(core.shared.counters.iter().map(|core| &**core), deadline_now_ms());
            core.shared.cache.note_time(core.now());
            core.shared.cache.work_off_bans(BANNED_PER_TICK_MAX);
            if core.site_ref().vcl.is_some() {
                core.shared.cache.reap(core.now(), REAPED_PER_TICK_MAX);
            }
        }
        core.log.borrow_mut().flush(&core);
        sweep_origins(&core);
        core.memcached_lanes.borrow_mut().sweep(core.now().mono_ms);
    }
}

/// Those of the configuration, and the backends of every loaded program.
fn sweep_origins(core: &Core) {
    let (site, now_ms) = (core.site(), core.now().mono_ms);
    site.origins.sweep(core.index, now_ms);
    site.forward.sweep(core.index, now_ms);
    let shelf = &core.shared.shelf;
    for vcl in &**shelf.programs() {
        vcl.sweep(core.index, now_ms);
    }
    if core.index == 0 {
        let cooldown_ms = site.settings.vcl.vcl_cooldown.as_millis().try_into().unwrap_or(u64::MAX);
        shelf.cool(site.vcl.as_ref(), deadline_now_ms(), cooldown_ms);
    }
}
