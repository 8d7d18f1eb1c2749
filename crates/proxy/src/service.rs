//! The proxy as the program sees it: start, reload, drain, look at it. It owns the worker threads and the sockets'
//! life; what happens on a socket is the worker's business.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use arc_swap::ArcSwap;
use cache::{Beneath, CacheSettings, CacheStats, DiskStats, EvictionKind, TierFigures, TierServer};
use parking_lot::Mutex;
use tls::ServerTls;
use vcl::World;
use wire::Refusal;

use crate::accepted::Listener;
use crate::bound_listeners::{BoundListener, BoundListeners};
use crate::clock::{Clock, Moment, deadline_now_ms, mono_now_ms};
use crate::coder_account::CoderAccount;
use crate::coding_threads::{CodingStatus, CodingThreads};
use crate::core::Shared;
use crate::counters::CoreCounters;
use crate::disks;
use crate::dry_runner::mocked_origins::Stage;
use crate::edges::{Edge, EdgeCounts};
use crate::events::event_readers::EventReaders;
use crate::events::{EventQuery, EventReader, TooManyReaders};
use crate::explain::{self, ExplainQuestion, Explanation};
use crate::fetch::fetch_states::FETCH_EDGES;
use crate::fleet::log_position::LogPosition;
use crate::forward::password_file::PasswordFile;
use crate::heard_purges::lease_ms;
use crate::hit_history::{HitHistory, HitRatios};
use crate::http_challenges::HttpChallenges;
use crate::known_admissions::KnownAdmissions;
use crate::limits::{DISK_CLOSE_MAX, NOTICES_AT_ONCE};
use crate::line_allowance::LineAllowance;
use crate::listener_tls::ListenerTls;
use crate::log_sink::LogSink;
use crate::lurker;
use crate::mailbox::{Mailbox, Message, Post};
use crate::memory_gate::{MemoryGate, MemoryStatus};
use crate::memory_warden::{self, ProcessMemory};
use crate::origin::{AddressChange, OriginStatus, UnknownOrigin};
use crate::other_nodes::OtherNodes;
use crate::prober::Probes;
use crate::pulse::Pulse;
use crate::purge_tally::PurgeTally;
use crate::records::RecordSink;
use crate::records::expiry_records::ExpiryRecords;
use crate::route_rules::rate_table::RateTable;
use crate::settings::{EvictionChoice, ListenAddress, ListenerSettings, RouteSettings, RouteTarget, Settings};
use crate::site::Site;
use crate::socket_keeper::{NoKeeper, SocketKeeper};
use crate::stderr_line::complain;
use crate::traces::export_queue::ExportQueue;
use crate::transaction::transaction_states::TRANSACTION_EDGES;
use crate::unsliceable::Unsliceable;
use crate::url_variations::UrlVariations;
use crate::vcl_shelf::{VclError, VclShelf};
use crate::vcl_site::VclProgram;
use crate::vital::vital_thread;
use crate::worker;

/// The least memory a store can work with.
pub const MEMORY_BYTES_MIN: usize = 1 << 20;

/// Why the proxy could not start, or a reload was refused.
#[derive(Debug)]
pub enum StartError {
    /// The address and the reason, as a sentence.
    Listen(String),
    /// No thread for a core, or for what cores do not do themselves.
    Thread(std::io::Error),
    /// A setting that cannot be: its name and the reason.
    Setting {
        setting: &'static str,
        reason: String,
    },
    Vcl(VclError),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Listen(reason) => f.write_str(reason),
            StartError::Thread(error) => write!(f, "cannot start a thread: {error}"),
            StartError::Setting { setting, reason } => write!(f, "{setting}: {reason}"),
            StartError::Vcl(error) => write!(f, "the VCL cannot be loaded: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

/// A running proxy.
#[derive(Clone)]
pub struct Proxy {
    pub(crate) shared: Arc<Shared>,
    instance: Arc<str>,
    /// Which settings are bound to which addresses.
    bound: Arc<Mutex<Vec<(ListenerSettings, ListenAddress)>>>,
    keeper: Arc<dyn SocketKeeper>,
    threads: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

/// What a proxy starts with.
pub struct Start {
    pub settings: Settings,
    pub workers: usize,
    pub log: Option<Arc<dyn LogSink>>,
    /// Who wants records of what happens under a program, as Varnish's log has them.
    pub records: Option<Arc<dyn RecordSink>>,
    /// What loaded programs may ask of the machine.
    pub world: Arc<dyn World>,
    /// Decides from the first request on.
    pub program: Option<VclProgram>,
    /// What the store has beneath its memory.
    pub beneath: Beneath,
    /// The fleet that this node belongs to.
    pub fleet: Option<FleetStart>,
    /// Who knows what the process occupies. Without, only what is accounted is bounded.
    pub memory: Option<Arc<dyn ProcessMemory>>,
}

/// Others purge what is stored here, and are told what this node purges.
pub struct FleetStart {
    /// So long what is stored may be served unasked once their log was heard ([`Proxy::extend_fleet_lease`]).
    pub lease: Duration,
    pub others: Arc<dyn OtherNodes>,
}

impl Proxy {
    /// Binds every listener, then starts `workers` threads.
    pub fn start(start: Start) -> Result<Proxy, StartError> {
        let listeners = Proxy::bind(&start.settings, start.workers, Arc::new(NoKeeper))?;
        Proxy::start_on(start, listeners)
    }

    /// Binds every listener for so many workers, or takes the sockets that the keeper has. What they are asked waits until a proxy starts
    /// on them.
    pub fn bind(
        settings: &Settings,
        workers: usize,
        keeper: Arc<dyn SocketKeeper>,
    ) -> Result<BoundListeners, StartError> {
        check(settings)?;
        BoundListeners::bind(&settings.listeners, workers.max(1), keeper).map_err(StartError::Listen)
    }

    /// Starts `workers` threads on what was bound for as many, by the same settings.
    pub fn start_on(start: Start, listeners: BoundListeners) -> Result<Proxy, StartError> {
        let workers = start.workers.max(1);
        let mut sockets = Vec::new();
        let mut bound = Vec::new();
        let BoundListeners { listeners, keeper } = listeners;
        for listener in listeners {
            listener.keep(&*keeper);
            bound.push((listener.settings, listener.address));
            sockets.push(listener.sockets);
        }
        let instance: Arc<str> = instance_id().into();
        let memory = start.memory.clone();
        let shared = share(start, &instance, None)?;
        if let Some(process) = memory {
            memory_warden::start(&shared, process).map_err(StartError::Thread)?;
        }
        lurker::start(&shared).map_err(StartError::Thread)?;
        let threads = (0..workers)
            .map(|index| {
                let shared = Arc::clone(&shared);
                let name = format!("larder-{index}");
                vital_thread(name, "a worker", move || worker::run(index, shared))
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(StartError::Thread)?;
        let proxy = Proxy {
            shared,
            instance,
            bound: Arc::new(Mutex::new(bound)),
            keeper,
            threads: Arc::new(Mutex::new(threads)),
        };
        sockets.into_iter().for_each(|listeners| proxy.open(listeners));
        Ok(proxy)
    }

    /// What is listened on, with the port that was picked where 0 was asked for.
    pub fn listen_addresses(&self) -> Vec<(ListenerSettings, ListenAddress)> {
        self.bound.lock().clone()
    }

    /// Takes over new settings, and a program if there is one; open connections, the store and running transactions stay
    /// as they are. Refused as a whole when a new listener cannot be bound or the program cannot be loaded.
    pub fn reload(&self, settings: Settings, program: Option<VclProgram>) -> Result<Vec<String>, StartError> {
        check(&settings)?;
        let shelf = &self.shared.shelf;
        let mut bound = self.bound.lock();
        let workers = self.shared.loads.len();
        let mut fresh = Vec::new();
        for listener in &settings.listeners {
            if !bound.iter().any(|(known, _)| known == listener) {
                fresh.push(BoundListener::bind(listener, workers, &*self.keeper).map_err(StartError::Listen)?);
            }
        }
        let listeners = settings.listeners.clone();
        let mut warnings = Vec::new();
        let old = self.shared.site.load_full();
        if old.settings.eviction != settings.eviction {
            warnings.push("memory.eviction changes with a restart; the old policy stays".to_owned());
        }
        if old.settings.limits.object_bytes_max != settings.limits.object_bytes_max
            || old.settings.limits.variants_max != settings.limits.variants_max
        {
            warnings.push("limits.object_bytes_max and limits.variants_max change with a restart".to_owned());
        }
        if old.settings.limits.coding_threads != settings.limits.coding_threads {
            warnings.push("limits.coding_threads changes with a restart; there are as many as before".to_owned());
        }
        let memory_bytes_max = settings.memory_bytes_max;
        let mut site = Site::new(settings, &self.instance, Some(&old));
        let probes = begin_probes(shelf, &site)?;
        let ready = program.map(|program| shelf.prepare(program, &site)).transpose().map_err(StartError::Vcl)?;
        let mut changes = shelf.changes();
        site.program = match ready {
            Some(ready) => Some(shelf.put(&mut changes, ready).map_err(StartError::Vcl)?),
            // Somebody may have said `use` meanwhile.
            None => self.shared.site.load().program.clone(),
        };
        // From here on nothing is refused any more.
        let (kept, closed): (Vec<_>, Vec<_>) = bound.drain(..).partition(|(known, _)| listeners.contains(known));
        *bound = kept;
        let is_left = |address: &ListenAddress| !listeners.iter().any(|listener| listener.address == *address);
        closed
            .iter()
            .filter(|(known, _)| is_left(&known.address))
            .for_each(|(known, _)| self.keeper.release(&known.address));
        for (known, _) in &*bound {
            let same = listeners.iter().find(|listener| *listener == known);
            if let (Some(tls), Some(renewed)) = (&known.tls, same.and_then(|listener| listener.tls.as_ref())) {
                tls.take_over(renewed);
            }
        }
        self.shared.memory.set_limit(memory_bytes_max);
        self.shared.cache.set_memory(memory_bytes_max);
        self.shared.set_site(site);
        // Those of the former configuration end with it, whoever still works on it.
        *self.shared.probes.lock() = probes;
        drop(changes);
        for listener in fresh {
            listener.keep(&*self.keeper);
            bound.push((listener.settings, listener.address));
            self.open(listener.sockets);
        }
        Ok(warnings)
    }

    /// Shows other certificates to who connects to an address from now on, if TLS is spoken there.
    pub fn replace_tls(&self, address: &ListenAddress, tls: ServerTls) {
        let bound = self.bound.lock();
        let listener = bound.iter().find(|(listener, _)| listener.address == *address && listener.tls.is_some());
        if let Some(known) = listener.and_then(|(listener, _)| listener.tls.as_ref()) {
            known.replace(tls);
        }
    }

    /// Where TLS is spoken, and how.
    pub fn listeners_tls(&self) -> Vec<(ListenAddress, ListenerTls)> {
        let bound = self.bound.lock();
        let with_tls =
            |(settings, address): &(ListenerSettings, ListenAddress)| Some((address.clone(), settings.tls.clone()?));
        bound.iter().filter_map(with_tls).collect()
    }

    /// Whoever reads along gets the exchanges that meet the query, so many of each second.
    pub fn read_events(&self, query: EventQuery, per_second_max: u32) -> Result<EventReader, TooManyReaders> {
        let of_a_core = per_second_max.div_ceil(self.shared.loads.len().max(1) as u32);
        self.shared.event_readers.add(query, of_a_core)
    }

    /// Explains a request. The error is what is refused of its bytes.
    pub fn explain(&self, question: &ExplainQuestion) -> Result<Explanation, Refusal> {
        explain::of_question(Arc::clone(&self.shared), question)
    }

    /// Where spans of traces wait for who exports them.
    pub fn export_queue(&self) -> Arc<ExportQueue> {
        Arc::clone(&self.shared.export_queue)
    }

    /// What certificate authorities are answered over HTTP.
    pub fn http_challenges(&self) -> Arc<HttpChallenges> {
        Arc::clone(&self.shared.http_challenges)
    }

    /// Asks every worker whether it goes round, unless one has not answered the last time: that one is the error.
    pub fn take_pulse(&self) -> Result<(), usize> {
        let question = self.shared.pulse.next_question()?;
        self.post_to_all(|| Message::Pulse(question));
        Ok(())
    }

    /// Stops accepting and finishes what is in flight, for at most `limits.drain_grace`.
    pub fn drain(&self) {
        let grace = self.shared.site.load().settings.limits.drain_grace;
        self.drain_within(grace);
    }

    pub(crate) fn drain_within(&self, grace: Duration) {
        self.shared.draining.store(true, Ordering::Relaxed);
        self.post_to_all(|| Message::Drain(grace));
    }

    /// Is nobody new let in?
    pub fn is_draining(&self) -> bool {
        self.shared.draining.load(Ordering::Relaxed)
    }

    /// Ends everything at once.
    pub fn drain_now(&self) {
        self.drain();
        self.post_to_all(|| Message::DrainNow);
    }

    /// Waits until all workers have ended.
    pub fn join(self) {
        for thread in std::mem::take(&mut *self.threads.lock()) {
            // One that ended in a panic has ended the process.
            let _ = thread.join();
        }
        if !self.shared.cache.close_disks(DISK_CLOSE_MAX) {
            complain(format_args!("a disk was not done with writing after {} s", DISK_CLOSE_MAX.as_secs()));
        }
    }

    /// One block of counters a core.
    pub fn core_counters(&self) -> &[Arc<CoreCounters>] {
        &self.shared.counters
    }

    /// What lies beneath the memory.
    pub fn disks_status(&self) -> Vec<DiskStats> {
        self.shared.cache.disk_stats()
    }

    /// The tier that nodes share, and its servers.
    pub fn shared_tier_status(&self) -> Option<(TierFigures, Vec<TierServer>)> {
        self.shared.cache.shared_figures()
    }

    pub fn memory_status(&self) -> MemoryStatus {
        self.shared.memory.status()
    }

    pub fn coding_status(&self) -> CodingStatus {
        let (memory_bytes, refused) = (self.shared.coders.used(), self.shared.coders.refused());
        CodingStatus { memory_bytes, memory_refused: refused, ..self.shared.coding_threads.status() }
    }

    pub fn cache_stats(&self) -> CacheStats {
        self.shared.cache.stats()
    }

    /// What was answered from the store in the last so many minutes, an hour at most.
    pub fn hit_ratios(&self, minutes: u64) -> HitRatios {
        let counters = self.shared.counters.iter().map(|core| &**core);
        self.shared.hit_history.ratios(counters, deadline_now_ms(), minutes)
    }

    /// The proxies that a forward proxy asks.
    pub fn parents_status(&self) -> Vec<OriginStatus> {
        self.shared.site.load().forward.parents.origins.status(Clock::read().at(Moment::now()).mono_ms)
    }

    /// The nodes of the fleet.
    pub fn nodes_status(&self) -> Vec<OriginStatus> {
        let site = self.shared.site.load();
        let now_ms = Clock::read().at(Moment::now()).mono_ms;
        site.fleet.as_ref().map_or_else(Vec::new, |fleet| fleet.origins.status(now_ms))
    }

    /// The origins that a program may name as backends: those that are asked over HTTP.
    pub fn origins_for_programs(&self) -> Vec<String> {
        self.shared.site.load().settings.origins_for_programs()
    }

    pub fn origins_status(&self) -> Vec<OriginStatus> {
        self.shared.site.load().origins.status(Clock::read().at(Moment::now()).mono_ms)
    }

    /// Changes whether, and how much, an address of an origin is asked, or all of its addresses. It holds until it is taken back, through
    /// reloads that name the address again.
    pub fn order_origin(
        &self,
        origin: &str,
        address: Option<&str>,
        change: AddressChange,
    ) -> Result<(), UnknownOrigin> {
        self.shared.site.load().origins.order(origin, address, change, mono_now_ms())
    }

    /// The names of the routes by which exchanges are counted, in the order of their places in `ExchangeTally`.
    pub fn counted_routes(&self) -> Vec<Arc<str>> {
        self.shared.site.load().counted_routes.names()
    }

    /// How often every edge of the machines was taken, over all cores.
    pub fn edges(&self) -> Vec<Edge> {
        let sum = |pick: &dyn Fn(&EdgeCounts) -> u64| self.shared.edges.iter().map(|core| pick(core)).sum();
        let mut all = Vec::new();
        let mut row = |machine, from: String, to: String, taken| all.push(Edge { machine, from, to, taken });
        for (index, (from, to)) in TRANSACTION_EDGES.iter().enumerate() {
            let taken = sum(&|core| core.transaction[index].load(Ordering::Relaxed));
            row("transaction", format!("{from:?}"), format!("{to:?}"), taken);
        }
        for (index, (from, to)) in FETCH_EDGES.iter().enumerate() {
            let taken = sum(&|core| core.fetch[index].load(Ordering::Relaxed));
            row("fetch", format!("{from:?}"), format!("{to:?}"), taken);
        }
        for (index, edge) in wire::EDGES.iter().enumerate() {
            let taken = sum(&|core| core.exchange[index].load(Ordering::Relaxed));
            let from = format!("{:?}/{:?}", edge.reading, edge.writing);
            row(
                "exchange",
                format!("{from} {:?}", edge.event),
                format!("{:?}/{:?}", edge.to_reading, edge.to_writing),
                taken,
            );
        }
        for (from, to, taken) in cache::edges_taken() {
            row("flight", format!("{from:?}"), format!("{to:?}"), taken.load(Ordering::Relaxed));
        }
        all
    }

    /// Moves the clocks that freshness counts on. For tests.
    pub fn advance_clock(&self, ms: u64) {
        crate::clock::advance(ms);
    }

    /// One listener a core; a UNIX socket has only one, on the first core, which hands connections on.
    fn open(&self, listeners: Vec<Listener>) {
        let cores = self.shared.mailboxes.len();
        for (at, listener) in listeners.into_iter().enumerate() {
            self.shared.mailboxes[at % cores].post(Message::Open(Box::new(listener)));
        }
    }

    fn post_to_all(&self, message: impl Fn() -> Message) {
        self.shared.mailboxes.iter().for_each(|mailbox| mailbox.post(message()));
    }
}

/// What all cores share, before there is any. `stage`: in a dry run.
pub(crate) fn share(start: Start, instance: &Arc<str>, stage: Option<Arc<Stage>>) -> Result<Arc<Shared>, StartError> {
    let Start { settings, workers, log, records, world, program, beneath, fleet, memory: _ } = start;
    let workers = workers.max(1);
    let mailboxes: Arc<[Mailbox]> = (0..workers).map(|_| Mailbox::default()).collect();
    let notifier = Arc::new(Post(Arc::clone(&mailboxes)));
    let of_cache = cache_settings(&settings, workers);
    let memory = MemoryGate::new(settings.memory_bytes_max, workers);
    let cache = disks::above(beneath, of_cache, notifier);
    if let Some(fleet) = &fleet {
        cache.fleet_lease().begin(lease_ms(fleet.lease));
    }
    if let Some(records) = &records {
        cache.set_removal_listener(Arc::new(ExpiryRecords::to(records)));
    }
    // A dry run does one thing after the other.
    let coding_threads = match stage {
        Some(_) => CodingThreads::none(),
        None => CodingThreads::start(&settings.limits, workers).map_err(StartError::Thread)?,
    };
    cache.set_dictionary_bounds(settings.dictionary_bounds());
    let shelf = VclShelf::new(world, stage);
    let mut site = Site::new(settings, instance, None);
    if let Some(program) = program {
        let ready = shelf.prepare(program, &site).map_err(StartError::Vcl)?;
        site.program = Some(shelf.put(&mut shelf.changes(), ready).map_err(StartError::Vcl)?);
    }
    let site = Arc::new(site);
    let event_readers = Arc::new(EventReaders::default());
    event_readers.set_makes_spans(site.makes_spans());
    if let Some(vcl) = &site.program {
        vcl.note_site(&site);
        cache.watch_for_bans();
    }
    let probes = parking_lot::Mutex::new(begin_probes(&shelf, &site)?);
    let coders = CoderAccount::new(site.settings.limits.coding_memory_bytes_max, cache.account());
    Ok(Arc::new(Shared {
        cache,
        site: ArcSwap::new(site),
        shelf,
        probes,
        mailboxes,
        counters: (0..workers).map(|_| Arc::default()).collect(),
        edges: (0..workers).map(|_| Arc::new(EdgeCounts::default())).collect(),
        loads: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
        pulse: Pulse::new(workers),
        log,
        event_readers,
        export_queue: Arc::new(ExportQueue::new(workers)),
        records,
        draining: AtomicBool::new(false),
        handed_over: AtomicBool::new(false),
        client_permits: Arc::default(),
        rates: RateTable::default(),
        admissions: KnownAdmissions::default(),
        log_position: LogPosition::default(),
        under_way: Arc::default(),
        memory,
        descriptors_notice: parking_lot::Mutex::new(LineAllowance::of(1)),
        unsettled_notice: parking_lot::Mutex::new(LineAllowance::of(NOTICES_AT_ONCE)),
        partial_heads_bytes: AtomicUsize::new(0),
        memcached_values_bytes: AtomicUsize::new(0),
        tunnels_open: AtomicUsize::new(0),
        mirrors_open: AtomicUsize::new(0),
        hit_history: HitHistory::new(deadline_now_ms()),
        http_challenges: Arc::default(),
        purge_tally: PurgeTally::default(),
        others: fleet.map(|fleet| fleet.others),
        variations: UrlVariations::default(),
        unsliceable: Unsliceable::default(),
        coding_threads: Arc::new(coding_threads),
        coders,
        making_manifest: parking_lot::Mutex::default(),
    }))
}

fn begin_probes(shelf: &VclShelf, site: &Site) -> Result<Probes, StartError> {
    let nodes = site.fleet.iter().flat_map(|fleet| fleet.origins.all());
    shelf
        .probe_origins(site.origins.all().iter().chain(nodes))
        .map_err(|why| StartError::Thread(std::io::Error::other(why)))
}

/// What no configuration may ask for.
fn check(settings: &Settings) -> Result<(), StartError> {
    let setting = |setting, reason: &str| Err(StartError::Setting { setting, reason: reason.to_owned() });
    if settings.memory_bytes_max < MEMORY_BYTES_MIN {
        return setting("memory.size", "at least 1MiB is needed");
    }
    let mut seen = HashMap::new();
    for listener in &settings.listeners {
        let picks_a_port = matches!(listener.address, ListenAddress::Tcp(address) if address.port() == 0);
        if !picks_a_port && seen.insert(&listener.address, ()).is_some() {
            return setting("listen", "the same address stands twice");
        }
    }
    if let Some(path) = &settings.forward.password_file
        && let Err(why) = PasswordFile::read(path)
    {
        return setting("forward.password_file", &why);
    }
    for login in settings.routes.iter().filter_map(|route| route.rules.access.login.as_ref()) {
        if let Err(why) = PasswordFile::read(&login.file) {
            return setting("route.basic_auth", &why);
        }
    }
    let is_nowhere = |route: &RouteSettings| match route.target {
        RouteTarget::Origin(origin) => origin >= settings.origins.len(),
        RouteTarget::Root(root) => settings
            .roots
            .get(root)
            .is_none_or(|root| root.scripts.as_ref().is_some_and(|scripts| scripts.origin >= settings.origins.len())),
        RouteTarget::StatusPage(page) => page >= settings.status_pages.len(),
        RouteTarget::Memcached(route) => route >= settings.memcached.len(),
        RouteTarget::Itself => route.rules.answer.is_none(),
        RouteTarget::Closed => false,
    };
    if settings.routes.iter().any(is_nowhere) {
        return setting("route", "a route names an origin, a root, a memcached or a status page that does not exist");
    }
    Ok(())
}

fn cache_settings(settings: &Settings, cores: usize) -> CacheSettings {
    CacheSettings {
        memory_bytes_max: settings.memory_bytes_max,
        object_bytes_max: settings.limits.object_bytes_max,
        window_bytes_max: settings.limits.window_bytes_max,
        eviction: match settings.eviction {
            EvictionChoice::S3Fifo => EvictionKind::S3Fifo,
            EvictionChoice::Sieve => EvictionKind::Sieve,
            EvictionChoice::Lru => EvictionKind::Lru,
        },
        cores,
        variants_max: settings.limits.variants_max,
    }
}

/// Eight hex digits that differ between any two running instances.
fn instance_id() -> String {
    use std::hash::{BuildHasher, RandomState};
    format!("{:08x}", RandomState::new().hash_one(std::process::id()) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_has_the_limits_of_the_configuration() {
        let mut settings = crate::origin::tests::settings(Vec::new());
        settings.limits.window_bytes_max = 77_000;
        settings.limits.object_bytes_max = 78_000;
        let of_cache = cache_settings(&settings, 2);
        assert_eq!((of_cache.window_bytes_max, of_cache.object_bytes_max), (77_000, 78_000));
    }
}
