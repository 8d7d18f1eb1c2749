//! How an origin comes to a connection for a request, in this order: whose turn is it; an idle connection on this core, or of another one;
//! a stream of one that is shared; a new one; a place in the queue.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use super::address::AddressFault;
use super::address::{Address, Standing};
use super::balance::{Affinity, RequestTurn};
use super::dial::DialAddress;
use super::greeting::{self, Greeted};
use super::lease::{Lease, Waiting};
use super::opening_times::{OpeningTimes, clamped};
use super::origin_error::{Declared, OriginError, OriginErrorKind};
use super::origin_faults::OriginFault;
use super::origin_pool::Idle;
use super::origin_queue::Grant;
use super::servers::Returned;
use super::shared_connections::{Opening, SharedConnection, Sharing};
use super::staggered_dial::{Addresses, Dialled, dial_staggered};
use super::{Call, Connected, CoreHandle, Origin, OriginConnection, Reuse};
use crate::clock::Moment;
use crate::in_time::in_time;

enum Entered {
    Connection(OriginConnection),
    Slot(Lease),
}

impl Origin {
    /// `http2`: an exchange is wanted, however it goes.
    pub(super) async fn open(
        &self,
        core: &CoreHandle<'_>,
        turn: RequestTurn,
        call: Call<'_>,
        http2: bool,
    ) -> Result<Connected, OriginError> {
        match self.servers.urls.is_empty() {
            true => return Err(self.error(None, OriginErrorKind::Nowhere)),
            false if !http2 && !self.may_be_asked_alone() => return Err(self.error(None, OriginErrorKind::Http2Only)),
            false => {}
        }
        let began = Moment::now();
        let elapsed_ms = move || began.micros_until(Moment::now()) / 1_000;
        self.servers.look_up(&self.resolver, core.now_ms, elapsed_ms, call.connect_timeout).await.map_err(
            |nowhere| {
                core.counters.origin_errors_resolve.add(1);
                self.servers.went_wrong(OriginFault::Resolve);
                self.nowhere(nowhere)
            },
        )?;
        let looked_up = Moment::now();
        let at = |moment: Moment| core.now_ms + began.micros_until(moment) / 1_000;
        // Nobody waits for a slot to ask nobody.
        if self.servers.book().pick(turn, at(looked_up), call.avoid).is_none() {
            return Err(self.nobody_to_ask());
        }
        let mut lease = match self.enter(core, turn, &call, http2, at(looked_up)).await? {
            Entered::Connection(connection) => return Ok(Connected::Alone(connection)),
            Entered::Slot(lease) => lease,
        };
        let entered = Moment::now();
        let mut tried: Addresses = call.avoid.iter().cloned().collect();
        // Clocks are read where time may have gone by, and nowhere else.
        let mut now = entered;
        loop {
            let address = self.servers.book().pick(turn, at(now), &tried).cloned();
            let Some(address) = address else { return Err(self.nobody_to_ask()) };
            lease.aim(&address);
            let begun = match self.find_shared(core, &address, &call, http2).await {
                Ok(shared) => {
                    core.counters.origin_connections_reused.add(1);
                    return Ok(Connected::Stream(shared.take(lease.opened(address), self.ejection)));
                }
                Err(begun) => begun,
            };
            let (dialled, address) = match self.declared {
                Declared::AsTarget => self.dial_one_of(core, turn, at(now), address, &mut tried, &call).await,
                _ => (self.dial_and_greet(&address.place, &call, http2).await, address),
            };
            now = Moment::now();
            match dialled {
                Ok(Greeted { socket, tls_micros }) => {
                    core.counters.origin_connections_opened.add(1);
                    let speaks_http2 = http2 && address.speaks_http2(&socket);
                    let opening = OpeningTimes {
                        lookup_micros: clamped(began.micros_until(looked_up)),
                        queue_micros: clamped(looked_up.micros_until(entered)),
                        connect_micros: clamped(entered.micros_until(now)).saturating_sub(tls_micros),
                        tls_micros,
                    };
                    let connection = OriginConnection {
                        stream: socket,
                        opening,
                        reused: false,
                        requests: 1,
                        ejection: self.ejection,
                        is_personal: self.greeting.proxy_header.is_some(),
                        lease: lease.opened(Arc::clone(&address)),
                    };
                    return Ok(match speaks_http2 {
                        false => Connected::Alone(connection),
                        true => {
                            let begun = begun.unwrap_or_else(|| core.shared.begin(&address));
                            Connected::Shareable(connection, begun)
                        }
                    });
                }
                Err(kind) => {
                    core.counters.origin_errors_connect.add(1);
                    OriginFault::of(&kind).into_iter().for_each(|fault| self.servers.went_wrong(fault));
                    let error = self.error(Some(Arc::clone(&address.label)), kind);
                    let blamed = error.kind.blames_address();
                    let fault = AddressFault::Unreachable(&error.reason());
                    if blamed && address.failed(self.ejection, at(now), fault) {
                        core.counters.origin_ejections.add(1);
                    }
                    tried.push(Arc::clone(&address));
                    let more = self.servers.book().pick(turn, at(now), &tried).is_some();
                    let is_last = !self.retries.on_connect || tried.len() > self.retries.others_max;
                    if !blamed || is_last || !more {
                        return Err(error);
                    }
                    core.counters.origin_retries.add(1);
                }
            }
        }
    }

    /// A connection of this core with room for one more exchange, now or in a moment; or who opens one that others wait for. Nobody
    /// waits for another's connection to an address that speaks HTTP/1.
    async fn find_shared(
        &self,
        core: &CoreHandle<'_>,
        address: &Arc<Address>,
        call: &Call<'_>,
        http2: bool,
    ) -> Result<Rc<SharedConnection>, Option<Opening>> {
        if !http2 || !address.expects_http2() {
            return Err(None);
        }
        let found = async {
            loop {
                match core.shared.find(address, call.reuse == Reuse::Fresh) {
                    Sharing::Room(connection) => return Some(connection),
                    Sharing::Nothing => return None,
                    Sharing::Soon(wait) => match wait.over().await {
                        Some(connection) if connection.has_room() => return Some(connection),
                        // Others were there first.
                        Some(_) => {}
                        // What failed for one is tried by each, and not by one after the other.
                        None => return None,
                    },
                }
            }
        };
        let found = in_time(call.connect_timeout, pin!(found)).await;
        found.unwrap_or(None).ok_or_else(|| Some(core.shared.begin(address)))
    }

    /// The first that answers of a few addresses that somebody else wrote down, of which some may lead nowhere.
    async fn dial_one_of(
        &self,
        core: &CoreHandle<'_>,
        turn: RequestTurn,
        now_ms: u64,
        first: Arc<Address>,
        tried: &mut Addresses,
        call: &Call<'_>,
    ) -> (Dialled<Greeted>, Arc<Address>) {
        let next = |begun: &[Arc<Address>]| self.servers.book().beside(turn, now_ms, begun).cloned();
        let dial = async |address: Arc<Address>| self.dial_and_greet(&address.place, call, false).await;
        dial_staggered(first, next, dial, |address, kind| {
            core.counters.origin_errors_connect.add(1);
            OriginFault::of(kind).into_iter().for_each(|fault| self.servers.went_wrong(fault));
            let fault = AddressFault::Unreachable(&"nobody could be connected to");
            if address.failed(self.ejection, now_ms, fault) {
                core.counters.origin_ejections.add(1);
            }
            tried.push(Arc::clone(address));
        })
        .await
    }

    pub(super) async fn dial_and_greet(&self, place: &DialAddress, call: &Call<'_>, http2: bool) -> Dialled<Greeted> {
        let tls = self.tls.of(place, http2);
        if tls.is_none() && matches!(place, DialAddress::Tls(..)) {
            // Never in the clear in its place.
            return Err(OriginErrorKind::Tls { fault: tls::Fault::UnknownAuthority });
        }
        greeting::dial_and_greet(place, &self.greeting, tls, call).await
    }

    /// Gets the right to a connection: with one that is open already, or to open one.
    async fn enter(
        &self,
        core: &CoreHandle<'_>,
        turn: RequestTurn,
        call: &Call<'_>,
        http2: bool,
        now_ms: u64,
    ) -> Result<Entered, OriginError> {
        let core = &CoreHandle { now_ms, ..*core };
        if self.servers.slots.waiting() == 0 {
            // Where a stream is to be had none of HTTP/1 is taken that lies about.
            let is_stream =
                || self.servers.book().pick(turn, now_ms, call.avoid).is_some_and(|address| address.expects_http2());
            if call.reuse == Reuse::Allowed
                && !(http2 && is_stream())
                && let Some(connection) = self.take_over(core, turn, call.avoid)
            {
                return Ok(Entered::Connection(connection));
            }
            if self.servers.slots.try_open() {
                return Ok(Entered::Slot(Lease::of_slot(&self.servers)));
            }
            // Another address's idle connection serves as well, or makes room.
            if let Some(returned) = self.servers.take_anything() {
                return Ok(self.accept(core, turn, call, Grant::Used(returned)));
            }
        }
        let Some(mut waiting) = Waiting::join(&self.servers, self.queue_max) else {
            core.counters.origin_errors_busy.add(1);
            self.servers.went_wrong(OriginFault::Busy);
            return Err(self.error(None, OriginErrorKind::QueueFull { queue_max: self.queue_max }));
        };
        let Ok(grant) = in_time(self.queue_timeout, pin!(waiting.served())).await else {
            core.counters.origin_errors_busy.add(1);
            self.servers.went_wrong(OriginFault::Busy);
            return Err(self.error(None, OriginErrorKind::QueueTimeout { after: self.queue_timeout }));
        };
        Ok(self.accept(core, turn, call, grant))
    }

    /// What a waiter makes of what it was given. A connection that cannot be used leaves its slot.
    fn accept(&self, core: &CoreHandle<'_>, turn: RequestTurn, call: &Call<'_>, grant: Grant<Returned>) -> Entered {
        match grant {
            Grant::Slot => Entered::Slot(Lease::of_slot(&self.servers)),
            Grant::Used(Returned { address, mut idle }) => {
                let is_wanted = call.reuse == Reuse::Allowed && self.may_be_asked(&address, turn, call, core.now_ms);
                let lease = Lease::of_open(&self.servers, address);
                if !is_wanted || !self.servers.is_usable(&mut idle, core.core, core.now_ms) {
                    drop(idle);
                    return Entered::Slot(lease.emptied());
                }
                match self.adopt(core, lease, idle) {
                    Ok(connection) => Entered::Connection(connection),
                    Err(lease) => Entered::Slot(lease),
                }
            }
        }
    }

    /// Is a request that needs a connection, whichever it is, one for this address? What belongs to one address is for that alone.
    fn may_be_asked(&self, address: &Arc<Address>, turn: RequestTurn, call: &Call<'_>, now_ms: u64) -> bool {
        if turn.affinity != Affinity::default() {
            return self.servers.book().pick(turn, now_ms, call.avoid).is_some_and(|own| Arc::ptr_eq(own, address));
        }
        let serves = matches!(address.standing(now_ms, 0), Standing::Serves { .. });
        serves
            && self.servers.book().is_wanted(address, now_ms)
            && !call.avoid.iter().any(|tried| Arc::ptr_eq(tried, address))
    }

    /// An idle connection to the address whose turn it is, from whatever core.
    fn take_over(&self, core: &CoreHandle<'_>, turn: RequestTurn, avoid: &[Arc<Address>]) -> Option<OriginConnection> {
        let book = self.servers.book();
        let address = book.pick(turn, core.now_ms, avoid)?;
        let idle = self.servers.take_any(address, core.core, core.now_ms)?;
        self.adopt(core, Lease::of_open(&self.servers, Arc::clone(address)), idle).ok()
    }

    /// Makes an idle connection ours, moving it to our runtime if need be. If that fails, the slot is left.
    #[inline]
    pub(super) fn adopt(&self, core: &CoreHandle<'_>, lease: Lease, idle: Idle) -> Result<OriginConnection, Lease> {
        let mut stream = idle.stream;
        if idle.core != core.core {
            stream = match stream.rehome() {
                Ok(stream) => stream,
                Err(_) => return Err(lease.emptied()),
            };
            core.counters.origin_connections_taken_over.add(1);
        }
        core.counters.origin_connections_reused.add(1);
        Ok(OriginConnection {
            stream,
            reused: true,
            opening: OpeningTimes::default(),
            requests: idle.requests.saturating_add(1),
            ejection: self.ejection,
            is_personal: false,
            lease,
        })
    }
}
