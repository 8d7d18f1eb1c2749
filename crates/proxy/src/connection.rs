//! A client connection over HTTP/1: what it holds, and what it gives back when it ends. `http1_serving` is its life.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use message::Scheme;
use wire::Afterwards;

use crate::accepted::Accepted;
use crate::asker::Asker;
use crate::client_identity::is_in;
use crate::client_permits::ClientPermit;
use crate::clock::deadline_now_ms;
use crate::connection_addresses::ConnectionAddresses;
use crate::core::Core;
use crate::limits::{CONNECTION_BYTES, Limits, TLS_CONNECTION_BYTES};
use crate::peer::Peer;
use crate::records::session_records::{SessionEnd, SessionRecords};
use crate::request_body::UnreadBody;
use crate::settings::ListenMode;
use crate::slots::{ClientWatch, Phase, Slot};
use crate::socket::Socket;
use crate::stderr_line::complain;
use crate::tls_socket::TlsSocket;

/// During a drain an idle connection may send one more request for so long; its answer says close. Closing at once
/// would cut off clients whose next request is on its way.
pub(crate) const DRAIN_IDLE_MS: u64 = 1_000;

/// A program may want a connection kept for ever: a hundred years are that, and can be counted in.
const IDLE_SECONDS_MAX: f64 = 100.0 * 366.0 * 86_400.0;

/// A client connection.
pub(crate) struct Connection {
    pub(crate) core: Rc<Core>,
    pub(crate) socket: Socket,
    pub(crate) slot: Rc<Slot>,
    /// Received and not yet read as requests: a partial head, a body's start, pipelined requests. No capacity while idle.
    pub(crate) pending: Vec<u8>,
    /// Bytes of `pending` that have been looked at and were not a whole head.
    pub(crate) looked_at: u32,
    pub(crate) peer: Peer,
    /// What is asked where it came.
    pub(crate) mode: ListenMode,
    /// What a program was told of the connection's ends.
    pub(crate) addresses: Option<Rc<ConnectionAddresses>>,
    pub(crate) requests_count: u32,
    pub(crate) exchange: wire::Exchange,
    /// What still comes is thrown away, under the limits of lingering.
    pub(crate) lingers: bool,
    /// What is still to come of the request's body.
    pub(crate) unread: Option<Box<UnreadBody>>,
    /// What `pending` has taken from the budget of partial heads.
    pub(crate) charged_bytes: u32,
    beside: Option<Box<RareParts>>,
}

/// What few connections have: in one box, because every idle one pays for the room of a pointer.
struct RareParts {
    _permit: Option<Box<ClientPermit>>,
    /// Where records are wanted.
    session: Option<SessionRecords>,
}

impl Connection {
    /// Takes a fresh connection in. `None`: it could not be, which is said.
    pub(crate) fn open(core: &Rc<Core>, accepted: Accepted) -> Option<Connection> {
        let core = Rc::clone(core);
        let limits = &core.site_ref().settings.limits;
        // The first request has the time of a head to arrive, not that of an idle connection.
        let mut deadline_ms = deadline_now_ms() + limits.request_head_timeout.as_millis() as u64;
        if core.draining() {
            deadline_ms = deadline_now_ms() + DRAIN_IDLE_MS;
        }
        let slot = core.slots.open(deadline_ms);
        let socket = match Socket::register(accepted.socket, accepted.is_unix) {
            Ok(socket) => match accepted.tls {
                None => socket,
                Some(tls) => socket.sealed(tls.begin()),
            },
            Err(error) => {
                complain(format_args!("a connection could not be registered: {error}"));
                give_back(&core, &slot);
                return None;
            }
        };
        core.shared.cache.account().take(connection_bytes(&socket));
        let addresses = || ConnectionAddresses::of(&socket, accepted.peer.text());
        let session = SessionRecords::begin(&core, addresses, accepted.name.as_ref(), accepted.proxy_protocol);
        let has_more = session.is_some() || accepted.permit.is_some();
        let beside = has_more.then(|| Box::new(RareParts { _permit: accepted.permit, session }));
        Some(Connection {
            core: Rc::clone(&core),
            socket,
            slot,
            pending: Vec::new(),
            looked_at: 0,
            peer: accepted.peer,
            mode: accepted.mode,
            addresses: None,
            requests_count: 0,
            exchange: wire::Exchange::new(),
            lingers: false,
            unread: None,
            charged_bytes: 0,
            beside,
        })
    }

    /// Sets what `pending` has of the budget of partial heads.
    pub(crate) fn charge(&mut self, core: &Core, bytes: usize) {
        let (all, account) = (&core.shared.partial_heads_bytes, core.shared.cache.account());
        let charged = self.charged_bytes as usize;
        if bytes > charged {
            all.fetch_add(bytes - charged, Ordering::Relaxed);
            account.take(bytes - charged);
        } else if bytes < charged {
            all.fetch_sub(charged - bytes, Ordering::Relaxed);
            account.give_back(charged - bytes);
        }
        // A head is limited far below 4 GiB.
        self.charged_bytes = bytes as u32;
    }

    /// See `Settings::as_varnishd`.
    pub(crate) fn is_varnishd_s(&self) -> bool {
        self.core.site_ref().settings.as_varnishd
    }

    #[inline]
    pub(crate) fn asker(&self) -> Asker<'_> {
        Asker { peer: self.peer, mode: self.mode, tls: self.socket.tls() }
    }

    /// How what is asked for here is named.
    #[inline]
    pub(crate) fn scheme(&self) -> Scheme {
        match self.mode {
            ListenMode::Within { scheme, .. } => scheme,
            _ if self.socket.tls().is_some() => Scheme::Https,
            _ => Scheme::Http,
        }
    }

    /// Does a proxy that is believed speak for its clients here: by a PROXY header, or as one of `trusted_proxies`?
    pub(crate) fn is_led_by_proxy(&self) -> bool {
        let trusted = || is_in(&self.core.site_ref().settings.trusted_proxies, self.peer.ip());
        self.addresses.as_ref().is_some_and(|addresses| addresses.is_by_header) || trusted()
    }

    /// Did both sides agree upon HTTP/2 when TLS began?
    pub(crate) fn speaks_http2(&self) -> bool {
        self.socket.tls().is_some_and(|tls| tls.session().protocol() == Some(tls::Protocol::Http2))
    }

    /// The handshake of TLS is not over, and something was asked already.
    pub(crate) fn is_early(&self) -> bool {
        self.socket.tls().is_some_and(TlsSocket::is_early)
    }

    /// May the client begin with HTTP/2? `here`: by what its listener says.
    pub(crate) fn accepts_h2c(&self, here: bool) -> bool {
        self.socket.tls().is_none() && !self.asker().asks_proxy() && (here || self.core.site_ref().settings.accepts_h2c)
    }

    /// From here on it is a transaction, and each step sets the deadline of what it waits for.
    pub(crate) fn begins_transaction(&self) {
        self.slot.phase.set(Phase::Writing);
        self.slot.set_deadline(u64::MAX);
    }

    /// Its ends, without a PROXY header.
    pub(crate) fn own_addresses(&self) -> ConnectionAddresses {
        let session_xid = self.session().map_or(0, SessionRecords::xid);
        ConnectionAddresses { session_xid, ..ConnectionAddresses::of(&self.socket, self.peer.text()) }
    }

    /// If anybody wants records.
    pub(crate) fn session(&self) -> Option<&SessionRecords> {
        self.beside.as_ref()?.session.as_ref()
    }

    /// Why it ends, if anybody wants to know.
    pub(crate) fn closes(&self, why: SessionEnd) {
        if let Some(session) = self.session() {
            session.closes(why);
        }
    }

    /// How long it may be idle: as a program said of it, or as is usual.
    pub(crate) fn idle_ms(&self, limits: &Limits) -> u64 {
        let set =
            self.addresses.as_ref().and_then(|addresses| addresses.idle_s.get()).filter(|seconds| *seconds >= 0.0);
        set.map_or(limits.idle_timeout.as_millis() as u64, |seconds| (seconds.min(IDLE_SECONDS_MAX) * 1_000.0) as u64)
    }

    /// Between two requests.
    pub(crate) fn rest(&mut self) {
        let limits = &self.core.site_ref().settings.limits;
        self.slot.phase.set(Phase::Waiting);
        self.slot.watch.set(ClientWatch::Socket);
        let idle_ms = self.idle_ms(limits);
        self.slot.set_idle(deadline_now_ms() + idle_ms);
        if self.pending.is_empty() {
            self.pending = Vec::new();
        }
        self.looked_at = 0;
    }
}

/// What the account is charged for it.
fn connection_bytes(socket: &Socket) -> usize {
    CONNECTION_BYTES + if socket.tls().is_some() { TLS_CONNECTION_BYTES } else { 0 }
}

/// Gives a connection's places back.
fn give_back(core: &Core, slot: &Slot) {
    core.slots.close(slot);
    core.shared.loads[core.index].fetch_sub(1, Ordering::Relaxed);
}

impl Drop for Connection {
    fn drop(&mut self) {
        let core = Rc::clone(&self.core);
        // First of all, so that whatever goes wrong behind it takes no place for ever.
        self.charge(&core, 0);
        core.shared.cache.account().give_back(connection_bytes(&self.socket));
        give_back(&core, &self.slot);
        if std::thread::panicking() {
            return;
        }
        core.counters.connections_handled.add(1);
        if self.exchange.afterwards() != Afterwards::Abort
            && let Some(tls) = self.socket.tls_mut()
        {
            tls.say_end();
        }
    }
}
