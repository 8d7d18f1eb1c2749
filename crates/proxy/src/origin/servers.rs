//! What stands behind an origin and outlives a reload that names the same URLs: its addresses with their health, its
//! connections, and those who wait for one. Taking, returning and closing connections all pass through here, so the
//! counts are kept in one place.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::AddressGate;
use super::address::Address;
use super::balance::{Book, BookTerms};
use super::carried_bytes::CarriedBytes;
use super::dial::DialAddress;
use super::limits::{SHELVES_MAX, SHELVES_MIN};
use super::origin_error::Span;
use super::origin_faults::{FaultCounts, OriginFault};
use super::origin_names::{NameAnswer, NamedPlace, Nameless, OriginNames};
use super::origin_pool::{Idle, IdleAccount, Oldest};
use super::origin_queue::{ConnectionSlots, Grant};
use super::resolver::Resolver;
use crate::clock::wall_now_ms;
use crate::health_notice::{HealthNotice, NoticeSubject};
use crate::probe_window::ProbeWindow;
use crate::settings::{BalanceSettings, OriginSettings, OriginUrl, ProbeSettings};

#[derive(Debug)]
pub struct Servers {
    pub urls: Vec<OriginUrl>,
    /// What a reload may change. Written with `names` locked.
    terms: ArcSwap<ServersTerms>,
    /// The balance asks how many requests each address works on.
    counts_in_use: AtomicBool,
    book: ArcSwap<Book>,
    /// Counts requests, for the round robin.
    turn: AtomicUsize,
    /// A request came since the last sweep: worth looking names up ahead of need.
    used: AtomicBool,
    pub slots: ConnectionSlots<Returned>,
    pub account: Arc<IdleAccount>,
    names: Mutex<OriginNames>,
    /// Told whenever an answer about a name came.
    heard: Notify,
    shelves_count: usize,
    /// Requests that were sent to them.
    pub asked: AtomicU64,
    /// What went wrong by their doing. Failures are rare, so that cores may share one count.
    pub faults: FaultCounts,
    pub carried: Arc<CarriedBytes>,
    /// As what its operator knows them.
    pub subject: Arc<NoticeSubject>,
    /// Whether its names lead anywhere.
    nameless: Mutex<HealthNotice>,
}

/// How its addresses share the requests, and how they are probed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServersTerms {
    balance: BalanceSettings,
    probe: Option<ProbeSettings>,
}

impl ServersTerms {
    pub fn of(settings: &OriginSettings) -> ServersTerms {
        ServersTerms { balance: settings.balance.clone(), probe: settings.probe.clone() }
    }

    fn of_book(&self) -> BookTerms {
        BookTerms {
            kind: self.balance.kind.clone(),
            slow_ms: self.balance.slow_start.as_millis().try_into().unwrap_or(u64::MAX / 1_000),
            breaks_circuit: self.balance.breaks_circuit,
            sticky: self.balance.sticky_cookie.clone(),
        }
    }

    /// That of an address of which no probe has come yet.
    fn window(&self) -> Option<ProbeWindow> {
        self.probe.as_ref().map(|probe| ProbeWindow::new(probe.window, probe.threshold, probe.initial))
    }
}

/// An idle connection on its way to somebody who waits.
#[derive(Debug)]
pub struct Returned {
    pub address: Arc<Address>,
    pub idle: Idle,
}

impl Servers {
    pub fn new(
        urls: Vec<OriginUrl>,
        terms: ServersTerms,
        connections_max: usize,
        account: &Arc<IdleAccount>,
        gate: Option<Arc<dyn AddressGate>>,
    ) -> Arc<Servers> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let servers = Arc::new(Servers {
            names: Mutex::new(OriginNames::new(&urls, gate)),
            urls,
            counts_in_use: AtomicBool::new(terms.balance.kind.compares_load()),
            terms: ArcSwap::from_pointee(terms),
            book: ArcSwap::default(),
            turn: AtomicUsize::new(0),
            used: AtomicBool::new(false),
            slots: ConnectionSlots::new(connections_max),
            account: Arc::clone(account),
            heard: Notify::new(),
            shelves_count: cores.clamp(SHELVES_MIN, SHELVES_MAX),
            asked: AtomicU64::new(0),
            faults: FaultCounts::default(),
            carried: Arc::default(),
            subject: Arc::default(),
            nameless: Mutex::default(),
        });
        servers.rewrite_book(&servers.names.lock(), 0);
        let mut members = account.members.lock();
        members.retain(|member| member.strong_count() > 0);
        members.push(Arc::downgrade(&servers));
        drop(members);
        servers
    }

    pub fn was_asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    pub fn went_wrong(&self, fault: OriginFault) {
        self.faults.add(fault);
    }

    /// Does the balance ask how many requests each address works on?
    #[inline]
    pub fn counts_in_use(&self) -> bool {
        self.counts_in_use.load(Ordering::Relaxed)
    }

    #[inline]
    pub fn book(&self) -> Guard<Arc<Book>> {
        self.book.load()
    }

    /// Counts a request; whose turn it is follows from the count. One counter for all cores, so that the addresses
    /// take turns strictly however the requests fall on the cores; with one address it is left alone.
    #[inline]
    pub fn next_turn(&self) -> usize {
        if !self.used.load(Ordering::Relaxed) {
            self.used.store(true, Ordering::Relaxed);
        }
        if self.book.load().addresses.len() > 1 { self.turn.fetch_add(1, Ordering::Relaxed) } else { 0 }
    }

    /// An idle connection to this address from this core's shelf: the way most requests go.
    #[inline]
    pub fn take_own(&self, address: &Address, core: usize, now_ms: u64) -> Option<Idle> {
        self.take_from(address, core, core, now_ms)
    }

    /// An idle connection to this address from any core's shelf, our own first.
    pub fn take_any(&self, address: &Address, core: usize, now_ms: u64) -> Option<Idle> {
        if !address.shelves.are_used() {
            return None;
        }
        (0..address.shelves.count()).find_map(|n| self.take_from(address, core + n, core, now_ms))
    }

    #[inline]
    fn take_from(&self, address: &Address, shelf: usize, core: usize, now_ms: u64) -> Option<Idle> {
        loop {
            let mut idle = address.shelves.take_newest(shelf)?;
            self.account.sub();
            if self.is_usable(&mut idle, core, now_ms) {
                return Some(idle);
            }
            drop(idle);
            self.closed(Some(address));
        }
    }

    /// May another request be sent on it? Asked at every hand-out.
    #[inline]
    pub fn is_usable(&self, idle: &mut Idle, core: usize, now_ms: u64) -> bool {
        let quiet = if idle.core == core { idle.stream.is_quiet() } else { idle.stream.is_quiet_in_kernel() };
        quiet && !self.account.is_too_old(idle, now_ms)
    }

    /// Any idle connection at all, unchecked: for somebody who needs its slot as much as the connection.
    pub fn take_anything(&self) -> Option<Returned> {
        self.book.load().addresses.iter().find_map(|address| {
            let idle = (0..address.shelves.count()).find_map(|shelf| address.shelves.take_newest(shelf))?;
            self.account.sub();
            Some(Returned { address: Arc::clone(address), idle })
        })
    }

    /// Puts a connection on its core's shelf, for the next request or for whoever waits.
    #[inline]
    pub fn put(&self, address: &Address, idle: Idle) {
        let is_kept = self.account.keeps_any() || self.slots.waiting() != 0;
        if !is_kept || self.slots.is_shrinking() || address.is_out() {
            drop(idle);
            return self.closed(Some(address));
        }
        self.account.add();
        if let Err(idle) = address.shelves.put(idle.core, idle) {
            self.account.sub();
            drop(idle);
            return self.closed(Some(address));
        }
        if self.slots.waiting_after_freeing() != 0 {
            self.settle();
        }
        if self.account.is_over() {
            self.account.close_oldest();
        }
    }

    /// Closes a connection that was taken off a shelf.
    pub fn close_idle(&self, address: &Address, idle: Idle) {
        self.account.sub();
        drop(idle);
        self.closed(Some(address));
    }

    /// A slot is free again, and with it a connection to this address, if there was one.
    pub fn closed(&self, address: Option<&Address>) {
        if let Some(address) = address {
            address.connections.fetch_sub(1, Ordering::Relaxed);
        }
        self.slots.close();
        if self.slots.waiting_after_freeing() != 0 {
            self.settle();
        }
    }

    /// Brings those who wait and what is free together.
    pub fn settle(&self) {
        while let Some(Returned { address, idle }) = self.slots.settle(|| self.take_anything()) {
            // It was in our hands when a new waiter may have looked for it: so we look again after putting it back.
            self.account.add();
            if let Err(idle) = address.shelves.put(idle.core, idle) {
                self.account.sub();
                drop(idle);
                self.closed(Some(&address));
            }
            if self.slots.waiting_after_freeing() == 0 {
                return;
            }
        }
    }

    /// Takes what a waiter was given and cannot use.
    pub fn give_back(&self, grant: Grant<Returned>) {
        match grant {
            Grant::Slot => self.closed(None),
            Grant::Used(Returned { address, idle }) => self.put(&address, idle),
        }
    }

    /// A reload's new limit, and those it lets in.
    pub fn set_connections_max(&self, connections_max: usize) {
        self.slots.set_open_max(connections_max);
        self.settle();
    }

    /// A reload's new terms, or the same.
    pub fn set_terms(&self, terms: ServersTerms, now_ms: u64) {
        let names = self.names.lock();
        if **self.terms.load() != terms {
            self.counts_in_use.store(terms.balance.kind.compares_load(), Ordering::Relaxed);
            self.terms.store(Arc::new(terms));
            self.rewrite_book(&names, now_ms);
        }
    }

    /// Something about an address was ordered: it is weighed anew, and where it is taken out nothing to it lies idle.
    pub fn ordered(&self, address: &Address, now_ms: u64) {
        self.rewrite_book(&self.names.lock(), now_ms);
        if address.is_out() {
            let take = || (0..address.shelves.count()).find_map(|shelf| address.shelves.take_newest(shelf));
            std::iter::from_fn(take).for_each(|idle| self.close_idle(address, idle));
        }
    }

    /// Closes what this core left on its shelves for too long or what its origins closed meanwhile.
    pub fn sweep(&self, core: usize, now_ms: u64) {
        let line = self.nameless.lock().due(now_ms);
        self.say_of_names(line);
        let book = self.book.load();
        for address in &book.addresses {
            address.settle_marks(now_ms, book.terms().slow_ms);
            address.tell_what_is_due(now_ms);
            for idle in address.shelves.take_unusable(core, |idle| self.is_usable(idle, core, now_ms)) {
                self.close_idle(address, idle);
            }
        }
    }

    /// Asks for names that are in use and whose answers end soon, so that no request has to wait for them.
    pub fn renew_names(self: &Arc<Self>, resolver: &Resolver, now_ms: u64) {
        if now_ms >= self.book.load().renew_from_ms && self.used.swap(false, Ordering::Relaxed) {
            self.ask(resolver, now_ms, true);
        }
    }

    /// Asks for names whose answers have ended, for who does not wait for them.
    pub fn look_up_soon(self: &Arc<Self>, resolver: &Resolver, now_ms: u64) {
        self.ask(resolver, now_ms, false);
    }

    /// Makes sure that there are addresses to connect to, new ones if the old ones expired and newer ones can be had
    /// soon. `elapsed_ms` is the time since `now_ms`.
    pub async fn look_up(
        self: &Arc<Self>,
        resolver: &Resolver,
        now_ms: u64,
        elapsed_ms: impl Fn() -> u64,
        patience: Duration,
    ) -> Result<(), Unresolved> {
        let mut waited_ms = 0;
        loop {
            let now_ms = now_ms + waited_ms;
            if now_ms < self.book.load().fresh_until_ms {
                break;
            }
            let heard = self.heard.notified();
            tokio::pin!(heard);
            heard.as_mut().enable();
            self.ask(resolver, now_ms, false);
            let patience_ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX / 2);
            let Some(wait_ms) = self.names.lock().wait_ms(now_ms, patience_ms) else { break };
            // A time-out is no answer: the next turn finds that there is nothing left to wait for.
            let _ = tokio::time::timeout(Duration::from_millis(wait_ms), heard).await;
            waited_ms = elapsed_ms();
        }
        if !self.book.load().addresses.is_empty() {
            return Ok(());
        }
        let no_answer = || format!("no answer within {} (limits.connect_timeout)", Span(patience)).into();
        Err(match self.names.lock().failure() {
            None => Unresolved { host: "".into(), why: no_answer(), forbidden: false },
            Some(Nameless { host, why, forbidden }) => {
                Unresolved { host, why: why.unwrap_or_else(no_answer), forbidden }
            }
        })
    }

    /// Ends when the next answer about a name came.
    #[cfg(test)]
    pub fn heard(&self) -> impl Future<Output = ()> {
        let mut heard = Box::pin(self.heard.notified());
        heard.as_mut().enable();
        heard
    }

    fn ask(self: &Arc<Self>, resolver: &Resolver, now_ms: u64, ahead: bool) {
        let questions = self.names.lock().ask(now_ms, ahead);
        for question in questions {
            let servers = Arc::downgrade(self);
            let index = question.index;
            let reply = move |answer: Result<NameAnswer, Arc<str>>, took_ms: u64| {
                if let Some(servers) = servers.upgrade() {
                    servers.hear(index, answer, now_ms + took_ms);
                }
            };
            resolver.ask(question.host, Box::new(reply));
        }
    }

    fn hear(&self, index: usize, answer: Result<NameAnswer, Arc<str>>, now_ms: u64) {
        let mut names = self.names.lock();
        names.heard(index, answer, now_ms);
        self.rewrite_book(&names, now_ms);
        let failure = names.failure();
        drop(names);
        self.heard.notify_waiters();
        self.tell_of_names(failure, now_ms);
    }

    fn say_of_names(&self, line: Option<String>) {
        if line.is_some() {
            self.subject.say(OriginUrl::name_of_all(&self.urls), line);
        }
    }

    /// Without any address nobody can be asked, and there is no address whose health could be told.
    fn tell_of_names(&self, failure: Option<Nameless>, now_ms: u64) {
        let mut nameless = self.nameless.lock();
        let line = match (self.book.load().addresses.is_empty(), failure) {
            (false, _) => nameless.up(now_ms),
            (true, Some(Nameless { host, why: Some(why), .. })) => {
                nameless.down(now_ms, || format!("its name {host} did not resolve: {why} (resolver)"))
            }
            // What is not known yet.
            (true, _) => None,
        };
        drop(nameless);
        self.say_of_names(line);
    }

    /// Addresses named again keep their health and connections; those no longer named lose their idle ones. Who comes new beside others
    /// begins slowly.
    fn rewrite_book(&self, names: &OriginNames, now_ms: u64) {
        let (old, terms) = (self.book.load_full(), self.terms.load());
        let window = terms.window();
        let known = |place: &DialAddress| old.addresses.iter().find(|address| address.place == *place).cloned();
        let member = |NamedPlace { at, url, service }: NamedPlace| {
            let known = known(&at);
            let is_new = known.is_none() && !old.addresses.is_empty();
            let address =
                known.unwrap_or_else(|| Arc::new(Address::new(at, self.shelves_count, Arc::clone(&self.subject))));
            if is_new {
                address.begin_slowly(now_ms);
            }
            address.set_probed(window.as_ref(), is_new, now_ms, wall_now_ms());
            let of_url = terms.balance.shares.get(url).copied().unwrap_or_default();
            let mut share = service.map_or(of_url, |service| service.share(of_url));
            share.weight = address.ordered_weight().unwrap_or(share.weight);
            (address, share)
        };
        let members = names.places().into_iter().map(member).collect();
        let book = Book::new(members, terms.of_book(), names.fresh_until_ms());
        let is_named = |old: &&Arc<Address>| book.addresses.iter().any(|new| Arc::ptr_eq(old, new));
        let gone: Vec<_> = old.addresses.iter().filter(|old| !is_named(old)).cloned().collect();
        self.book.store(Arc::new(book));
        for address in gone {
            for idle in address.shelves.close() {
                self.close_idle(&address, idle);
            }
        }
    }

    /// The one of our idle connections that lies there longest.
    pub fn oldest_idle(&self) -> Option<Oldest> {
        let mut oldest: Option<Oldest> = None;
        for address in &self.book.load().addresses {
            for shelf in 0..address.shelves.count() {
                if let Some(since_ms) = address.shelves.oldest_since_ms(shelf)
                    && oldest.as_ref().is_none_or(|oldest| since_ms < oldest.since_ms)
                {
                    oldest = Some(Oldest { since_ms, address: Arc::clone(address), shelf });
                }
            }
        }
        oldest
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for address in &self.book.load().addresses {
            address.shelves.close().into_iter().for_each(|_| self.account.sub());
        }
    }
}

/// A name that leads nowhere.
#[derive(Debug)]
pub struct Unresolved {
    pub host: Arc<str>,
    pub why: Arc<str>,
    /// It has addresses, and none that may be connected to.
    pub forbidden: bool,
}
