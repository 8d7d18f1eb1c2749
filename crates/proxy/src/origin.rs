//! Connections to the origins. The fetch asks [`Origin::connect`] for one, uses it for an exchange, and gives it back
//! by [`OriginConnection::into_pool`] or drops it; or [`Origin::share`] for a part of one that speaks HTTP/2, which it drops. How there comes
//! to be one is in `connecting.rs`.
//!
//! It does not know what is sent on a connection. `now_ms` is any clock that only goes forward, the same one in every
//! call; deadlines count on the runtime's timers.

mod address;
mod address_order;
mod balance;
mod carried_bytes;
mod connecting;
mod dial;
mod fastcgi_origin;
mod greeting;
mod in_use;
mod keyed_pick;
mod lease;
mod limits;
mod opening_times;
mod origin_error;
mod origin_faults;
mod origin_names;
mod origin_orders;
mod origin_pool;
mod origin_queue;
mod origin_set;
mod origin_status;
mod resolver;
mod servers;
mod service_name;
mod shared_connections;
mod staggered_dial;
#[cfg(test)]
pub(crate) mod tests;
mod tls_clients;
mod turn_schedule;
mod whereabouts;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use wire::Parties;

pub use self::address::Address;
pub use self::address_order::AddressOrder;
pub use self::balance::{Affinity, token_of};
pub(crate) use self::carried_bytes::CarriedBytes;
pub(crate) use self::dial::DialAddress;
pub use self::fastcgi_origin::{AwaitsAnswer, FastCgiOrigin};
pub use self::opening_times::{OpeningTimes, clamped};
pub use self::origin_error::{Declared, OriginError, OriginErrorKind, Span};
pub use self::origin_faults::OriginFault;
pub use self::origin_orders::{AddressChange, UnknownOrigin, WeightOrder};
pub use self::origin_set::Origins;
pub use self::origin_status::{AddressState, AddressStatus, OriginStatus};
pub use self::shared_connections::{Opening, SharedConnection, SharedConnections, SharedStream};
pub use self::whereabouts::Whereabouts;

use self::address::{AddressFault, Ejection};
use self::balance::RequestTurn;
use self::lease::Lease;
use self::origin_pool::Idle;
use self::resolver::Resolver;
use self::servers::{Servers, Unresolved};
use self::tls_clients::TlsClients;
use crate::clock::Moment;
use crate::counters::CoreCounters;
use crate::health_notice::NoticeSubject;
use crate::limits::Limits;
use crate::settings::{
    BalanceKind, BalanceSettings, Greeting, HashKey, OriginSettings, OriginTimeouts, OriginTls, OriginUrl,
    ProbeSettings, RetrySettings, StickyCookie,
};
use crate::socket::Socket;

/// One `[origin.NAME]`, or one backend.
#[derive(Debug)]
pub struct Origin {
    pub name: Arc<str>,
    /// The Host to send; `None` forwards the client's. A backend's is for requests (and probes) without one.
    pub host: Option<String>,
    /// The Host of a request that has none; an application over FastCGI is told none.
    pub host_without: Option<String>,
    /// Whose words an error uses for what changes it.
    declared: Declared,
    timeouts: OriginTimeouts,
    greeting: Greeting,
    queue_max: usize,
    queue_timeout: Duration,
    ejection: Ejection,
    balance: BalanceSettings,
    probe: Option<ProbeSettings>,
    retries: RetrySettings,
    tls: TlsClients,
    tls_settings: OriginTls,
    speaks: Speaks,
    fastcgi: Option<Arc<FastCgiOrigin>>,
    servers: Arc<Servers>,
    resolver: Arc<Resolver>,
}

/// What is spoken with an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaks {
    Http1,
    /// As each server agrees to.
    Either,
    Http2,
    FastCgi,
}

impl Speaks {
    fn of(settings: &OriginSettings) -> Speaks {
        match settings.http2 {
            // A connection that names one client is for nobody else.
            _ if settings.fastcgi.is_some() => Speaks::FastCgi,
            true if settings.greeting.proxy_header.is_some() => Speaks::Http1,
            _ if settings.urls.iter().any(|url| matches!(url, OriginUrl::Http2 { .. })) => Speaks::Http2,
            true => Speaks::Either,
            false => Speaks::Http1,
        }
    }
}

/// Asked of every address that a name stands for, before it is used.
pub trait AddressGate: std::fmt::Debug + Send + Sync {
    fn admits(&self, address: std::net::IpAddr) -> bool;
}

/// Who asks, and when.
#[derive(Clone, Copy, Debug)]
pub struct CoreHandle<'a> {
    /// The core's number; connections stay on it.
    pub core: usize,
    pub counters: &'a CoreCounters,
    pub now_ms: u64,
    /// Its HTTP/2 connections.
    pub shared: &'a SharedConnections,
}

/// What an exchange gets that may go over HTTP/2.
#[derive(Debug)]
pub enum Connected {
    /// A connection of HTTP/1, ours alone.
    Alone(OriginConnection),
    /// A new one upon which HTTP/2 was agreed: who asked for it is to share it ([`SharedConnections::share`]).
    Shareable(OriginConnection, Opening),
    Stream(SharedStream),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    Allowed,
    /// A pooled connection has just died under this request: only a new one will do.
    Fresh,
}

/// What one request wants of its connection.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    pub reuse: Reuse,
    pub affinity: Affinity,
    /// The addresses that failed it.
    pub avoid: &'a [Arc<Address>],
    /// For looking names up and for each attempt to connect.
    pub connect_timeout: Duration,
    /// For origins that want a PROXY header; `None` where the client has no address, or where there is no client.
    pub parties: Option<Parties>,
}

/// How an exchange failed that had a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginFailure {
    /// No answer in time, or the connection ended before one. (A reused connection that dies before the first byte is
    /// no failure of the address: do not report it.)
    FirstByte,
    /// The answer was not HTTP.
    Protocol,
    /// The answer ended before its end.
    Truncated,
    /// The answer had a status that its address is blamed for.
    Status(u16),
}

impl std::fmt::Display for OriginFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OriginFailure::FirstByte => f.write_str("no answer began in time, or its connection ended before one"),
            OriginFailure::Protocol => f.write_str("its answer was no HTTP"),
            OriginFailure::Truncated => f.write_str("its answer ended before its end"),
            OriginFailure::Status(status) => write!(f, "it answered with {status} (retry_on)"),
        }
    }
}

impl Call<'_> {
    /// Of a request that belongs to nobody and was not sent before.
    pub fn plain(reuse: Reuse, connect_timeout: Duration) -> Call<'static> {
        Call { reuse, affinity: Affinity::default(), avoid: &[], connect_timeout, parties: None }
    }
}

/// An open connection that is ours alone. Dropped, it is closed.
#[derive(Debug)]
pub struct OriginConnection {
    pub stream: Socket,
    /// Requests were sent on it before this one.
    pub reused: bool,
    /// Requests sent on it, this one included.
    pub requests: u32,
    ejection: Ejection,
    /// It was introduced as one client's, and is for nobody else.
    is_personal: bool,
    /// How long it took to come to it.
    pub opening: OpeningTimes,
    /// Behind the stream, so that the slot is free only when the socket is closed.
    lease: Lease,
}

impl Origin {
    /// A request goes to it.
    pub fn was_asked(&self) {
        self.servers.was_asked();
    }

    fn new(
        settings: &OriginSettings,
        declared: Declared,
        tls: TlsClients,
        servers: Arc<Servers>,
        resolver: Arc<Resolver>,
    ) -> Origin {
        let name: Arc<str> = settings.name.as_str().into();
        let fastcgi = settings.fastcgi.as_ref().map(|fastcgi| FastCgiOrigin::new(Arc::clone(&name), fastcgi));
        Origin {
            fastcgi: fastcgi.map(Arc::new),
            name,
            host: settings.host.clone(),
            host_without: settings.fastcgi.is_none().then(|| OriginUrl::name_of_all(&settings.urls)),
            declared: match declared {
                Declared::InConfig if settings.fastcgi.is_some() => Declared::AsApplication,
                declared => declared,
            },
            timeouts: settings.timeouts,
            greeting: settings.greeting.clone(),
            queue_max: settings.queue_max,
            queue_timeout: settings.queue_timeout,
            ejection: Ejection {
                failures_max: settings.ejection_failures,
                time_ms: settings.ejection_time.as_millis().try_into().unwrap_or(u64::MAX),
            },
            balance: settings.balance.clone(),
            probe: settings.probe.clone(),
            retries: settings.retries.clone(),
            tls,
            tls_settings: settings.tls.clone(),
            speaks: Speaks::of(settings),
            servers,
            resolver,
        }
    }

    /// A sentence for each address that takes no requests, by its failures or by an order; and one if that is all of them.
    pub(crate) fn what_is_down(&self, now_ms: u64) -> Vec<String> {
        let book = self.servers.book();
        let (word, name) = (self.declared.word(), &self.name);
        let sentence = |address: &Arc<Address>| {
            let named = format!("{word} \"{name}\" ({})", address.label);
            match address.ordered() {
                AddressOrder::Down => return Some(format!("{named} was taken out by an order: it gets no request")),
                AddressOrder::Drain => return Some(format!("{named} is drained by an order: it gets no new request")),
                AddressOrder::Auto | AddressOrder::Up => {}
            }
            let (since_ms, why) = address.down()?;
            let since_s = now_ms.saturating_sub(since_ms) / 1_000;
            Some(format!("{named} is down since {since_s} s ago: {why}"))
        };
        let mut sentences: Vec<String> = book.addresses.iter().filter_map(sentence).collect();
        if !sentences.is_empty() && !book.serves_beside(&[], now_ms) {
            sentences.push(format!(
                "no address of {word} \"{name}\" takes requests now: what is stored is answered stale where it may be, all else with 502 or 503"
            ));
        }
        sentences
    }

    /// As what lines about its health call it.
    pub(crate) fn subject(&self) -> &NoticeSubject {
        &self.servers.subject
    }

    /// Of this one alone, what [`Origins::sweep`] does.
    pub fn sweep(&self, core: usize, now_ms: u64) {
        self.servers.sweep(core, now_ms);
        self.servers.renew_names(&self.resolver, now_ms);
    }

    /// May who asks be told which address it has? Not who only asks to be led to a name.
    pub fn shows_address(&self) -> bool {
        matches!(self.declared, Declared::InConfig | Declared::AsApplication | Declared::InVcl | Declared::AsNode)
    }

    /// Has every address that is known been left out for its failures?
    pub fn sits_out(&self, now_ms: u64) -> bool {
        let book = self.servers.book();
        !book.addresses.is_empty() && book.addresses.iter().all(|address| address.is_ejected(now_ms))
    }

    /// The URLs it was configured with.
    pub fn urls(&self) -> &[OriginUrl] {
        &self.servers.urls
    }

    /// Where else a request goes that one of its addresses failed.
    #[inline]
    pub fn retries(&self) -> &RetrySettings {
        &self.retries
    }

    /// What of a request says to which address it belongs.
    #[inline]
    pub fn hash_key(&self) -> Option<&HashKey> {
        match &self.balance.kind {
            BalanceKind::Hash(key) => Some(key),
            _ => None,
        }
    }

    #[inline]
    pub fn sticky_cookie(&self) -> Option<&StickyCookie> {
        self.balance.sticky_cookie.as_ref()
    }

    /// How each of its addresses is probed.
    pub fn probe(&self) -> Option<&ProbeSettings> {
        self.probe.as_ref()
    }

    /// Does anybody serve beside those that failed a request?
    pub fn serves_beside(&self, avoid: &[Arc<Address>], now_ms: u64) -> bool {
        self.servers.book().serves_beside(avoid, now_ms)
    }

    /// May an exchange with it go over HTTP/2?
    #[inline]
    pub fn may_speak_http2(&self) -> bool {
        matches!(self.speaks, Speaks::Either | Speaks::Http2)
    }

    /// May it be asked over HTTP/1?
    pub fn may_speak_http1(&self) -> bool {
        matches!(self.speaks, Speaks::Http1 | Speaks::Either)
    }

    /// Has an exchange a connection of its own?
    pub fn may_be_asked_alone(&self) -> bool {
        self.speaks != Speaks::Http2
    }

    /// What it is asked by, if it speaks FastCGI.
    #[inline]
    pub fn fastcgi(&self) -> Option<&Arc<FastCgiOrigin>> {
        self.fastcgi.as_ref()
    }

    /// Until a connection is open, if the request does not say.
    pub fn connect_timeout(&self, limits: &Limits) -> Duration {
        self.timeouts.connect.unwrap_or(limits.connect_timeout)
    }

    /// Its own, in place of those of the limits.
    pub fn timeouts(&self) -> &OriginTimeouts {
        &self.timeouts
    }

    /// A connection for one request that wants nothing special.
    pub async fn connect(
        &self,
        core: &CoreHandle<'_>,
        reuse: Reuse,
        limits: &Limits,
    ) -> Result<OriginConnection, OriginError> {
        self.call(core, Call::plain(reuse, self.connect_timeout(limits))).await
    }

    /// A connection for one request alone: idle, new, or waited for. Dropping the future gives everything back.
    pub async fn call(&self, core: &CoreHandle<'_>, call: Call<'_>) -> Result<OriginConnection, OriginError> {
        let turn = self.turn(&call);
        if call.reuse == Reuse::Allowed
            && let Some(connection) = self.take_own(core, turn, call.avoid)
        {
            return Ok(connection);
        }
        // Boxed, so that a request served from the pool carries none of it.
        match Box::pin(self.open(core, turn, call, false)).await? {
            Connected::Alone(connection) => Ok(connection),
            Connected::Shareable(..) | Connected::Stream(_) => unreachable!("HTTP/2 was not offered"),
        }
    }

    /// The same for a request that may go over HTTP/2.
    pub async fn share(&self, core: &CoreHandle<'_>, call: Call<'_>) -> Result<Connected, OriginError> {
        let turn = self.turn(&call);
        Box::pin(self.open(core, turn, call, true)).await
    }

    #[inline]
    fn turn(&self, call: &Call<'_>) -> RequestTurn {
        RequestTurn { number: self.servers.next_turn(), affinity: call.affinity }
    }

    /// The addresses that are to be probed, the one whose turn it is first.
    pub async fn look_up_for_probe(
        &self,
        turn: usize,
        now_ms: u64,
        timeout: Duration,
    ) -> Result<Vec<Arc<Address>>, OriginError> {
        let began = Moment::now();
        let elapsed_ms = move || began.micros_until(Moment::now()) / 1_000;
        let found = self.servers.look_up(&self.resolver, now_ms, elapsed_ms, timeout).await;
        found.map_err(|nowhere| self.nowhere(nowhere))?;
        let addresses: Vec<_> = self.servers.book().in_turn(turn).cloned().collect();
        if addresses.is_empty() { Err(self.error(None, OriginErrorKind::Nowhere)) } else { Ok(addresses) }
    }

    /// A connection of its own to an address, past limits and queue: how else would one know whether an origin answers that is full. It
    /// is in no count.
    pub async fn dial_for_probe(&self, address: &Address, timeout: Duration) -> Result<Socket, OriginError> {
        let call = Call::plain(Reuse::Fresh, timeout);
        let dialled = self.dial_and_greet(&address.place, &call, false).await;
        dialled.map(|greeted| greeted.socket).map_err(|kind| self.error(Some(Arc::clone(&address.label)), kind))
    }

    /// The common case: nobody waits, the names are fresh, and a connection to the address whose turn it is lies on
    /// this core's shelf.
    #[inline]
    fn take_own(&self, core: &CoreHandle<'_>, turn: RequestTurn, avoid: &[Arc<Address>]) -> Option<OriginConnection> {
        let book = self.servers.book();
        if self.servers.slots.waiting() != 0 || core.now_ms >= book.fresh_until_ms {
            return None;
        }
        let address = book.pick(turn, core.now_ms, avoid)?;
        let idle = self.servers.take_own(address, core.core, core.now_ms)?;
        self.adopt(core, Lease::of_open(&self.servers, Arc::clone(address)), idle).ok()
    }

    #[cold]
    fn nowhere(&self, nowhere: Unresolved) -> OriginError {
        let kind = match nowhere.forbidden {
            true => OriginErrorKind::Forbidden,
            false => OriginErrorKind::Resolve { why: nowhere.why },
        };
        self.error(Some(nowhere.host), kind)
    }

    /// All addresses are out, or went away while we waited.
    #[cold]
    fn nobody_to_ask(&self) -> OriginError {
        let is_gone = self.servers.book().addresses.is_empty();
        let kind = match is_gone {
            true => OriginErrorKind::Resolve { why: "no address is left".into() },
            false => OriginErrorKind::AllOut,
        };
        OriginFault::of(&kind).into_iter().for_each(|fault| self.servers.went_wrong(fault));
        self.error(None, kind)
    }

    #[cold]
    fn error(&self, address: Option<Arc<str>>, kind: OriginErrorKind) -> OriginError {
        OriginError { origin: Arc::clone(&self.name), declared: self.declared, address, kind }
    }
}

/// Of the address that this lease is of.
fn note_failure(lease: &Lease, ejection: Ejection, core: &CoreHandle<'_>, failure: OriginFailure) {
    let (counter, fault) = match failure {
        OriginFailure::FirstByte => (&core.counters.origin_errors_first_byte, OriginFault::FirstByte),
        OriginFailure::Protocol => (&core.counters.origin_errors_protocol, OriginFault::Protocol),
        OriginFailure::Truncated => (&core.counters.origin_errors_truncated, OriginFault::Truncated),
        OriginFailure::Status(_) => (&core.counters.origin_blamed_answers, OriginFault::Status),
    };
    counter.add(1);
    lease.servers().went_wrong(fault);
    let fault = AddressFault::Answer(failure);
    if lease.address().is_some_and(|address| address.failed(ejection, core.now_ms, fault)) {
        core.counters.origin_ejections.add(1);
    }
}

impl OriginConnection {
    /// Gives the connection back after an exchange that ended cleanly, for the next request to this origin. Closes it
    /// instead if anything arrived since, if it is one too many, or if its address is gone.
    #[inline]
    pub fn into_pool(mut self, core: &CoreHandle<'_>) {
        // Whoever gets the slot of a connection that is not kept must find it closed: `self` drops the stream first.
        if !self.is_personal && self.stream.is_quiet() {
            let OriginConnection { stream, requests, lease, .. } = self;
            lease.put(Idle { stream, core: core.core, since_ms: core.now_ms, requests });
        }
    }

    /// How many connections to its address are open, of all cores, this one and the idle ones included.
    pub fn open_beside(&self) -> usize {
        self.address().connections.load(Ordering::Relaxed)
    }

    /// The origin gave a whole answer head: its address is well.
    #[inline]
    pub fn succeeded(&self, now_ms: impl FnOnce() -> u64) {
        self.address().succeeded(now_ms);
    }

    /// The exchange failed by the origin's doing. After several in a row the address is left out for a while.
    pub fn failed(&self, core: &CoreHandle<'_>, failure: OriginFailure) {
        note_failure(&self.lease, self.ejection, core, failure);
    }

    /// What goes over it is told to these.
    #[inline]
    pub(crate) fn carried(&self) -> &CarriedBytes {
        &self.lease.servers().carried
    }

    /// The socket's number in this process.
    pub fn descriptor(&self) -> i32 {
        self.stream.descriptor()
    }

    /// The socket's other end and ours, for which the kernel is asked. A UNIX socket has no address: 0.0.0.0, port 0.
    pub fn ends(&self) -> (SocketAddr, SocketAddr) {
        self.stream.addresses()
    }

    /// The address in text: `10.0.0.3:80`, `unix:/run/app.sock`.
    pub fn label(&self) -> &Arc<str> {
        &self.address().label
    }

    #[inline]
    pub fn address(&self) -> &Arc<Address> {
        self.lease.address().expect("a connection's lease is of an open one")
    }
}
