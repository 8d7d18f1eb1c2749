//! memcached behind HTTP: a request is a command, and what memcached answers is its answer.
//!
//! The step of the story is `transaction/memcached.rs`. Here is what it asks: what a request means (`memcached_request.rs` and
//! `memc_request.rs`), which server has a key (`server_ring.rs`) and whether it is asked at all (`memcached_server.rs`),
//! the connections of a core (`lane_table.rs`, `memcached_lane.rs`, `lane_opening.rs`), gets that wait for one another
//! (`read_flights.rs`), values that are larger than an item (`chunk_layout.rs` and who reads and writes it), and what the
//! answer looks like. What the bytes on the wire mean is `wire`'s.

pub(crate) mod chunk_layout;
pub(crate) mod chunked_read;
pub(crate) mod chunked_write;
pub(crate) mod gateway_call;
pub(crate) mod gateway_routes;
pub mod gateway_settings;
pub(crate) mod item_answer;
pub(crate) mod item_key;
pub(crate) mod lane_opening;
pub(crate) mod lane_table;
pub(crate) mod memc_answer;
mod memc_request;
pub(crate) mod memcached_lane;
pub(crate) mod memcached_request;
pub(crate) mod memcached_server;
pub(crate) mod multi_answer;
pub(crate) mod read_flights;
pub(crate) mod request_part;
pub mod server_ring;
pub(crate) mod value_hold;

pub use self::gateway_routes::connections_of_core_max;

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use wire::memcached::{Command, Reply};

use crate::clock::deadline_now_ms;
use crate::core::Core;
use crate::downstream::Downstream;
use crate::memcached_gateway::gateway_call::{Failure, FailureKind, GatewayCall, Patience, ReceivedReply, ms_of};
use crate::memcached_gateway::gateway_routes::Gateway;
use crate::memcached_gateway::memcached_server::Server;
use crate::memcached_gateway::read_flights::{Seat, Wish};

/// Servers that are asked for one request, if each fails.
const SERVERS_TRIED_MAX: usize = 4;

/// Nothing will be answered.
#[derive(Clone, Debug)]
pub(crate) enum Unanswered {
    ClientLeft,
    Failed { failure: Failure, server: Arc<Server> },
}

/// Who waits for a reply.
pub(crate) enum Waiter<'a> {
    /// For a client, who may leave.
    Client(Downstream<'a>),
    Nobody,
}

impl Gateway {
    /// Asks the server that has `key`, and others after it where the settings say so.
    pub(crate) async fn ask(
        &self,
        core: &Rc<Core>,
        waiter: &mut Waiter<'_>,
        key: &[u8],
        command: &Command<'_>,
    ) -> Result<ReceivedReply, Unanswered> {
        let next = self.settings.next_server;
        let (mut unanswered, mut missed) = (None, None);
        for at in self.ring.order(key).take(SERVERS_TRIED_MAX) {
            let server = &self.servers[at];
            let failure = match self.ask_server(core, waiter, server, key, command).await {
                Ok(got) if next.not_found && matches!(got.reply, Reply::Miss | Reply::NotFound) => {
                    missed = Some(got);
                    continue;
                }
                Ok(got) => return Ok(got),
                Err(None) => return Err(Unanswered::ClientLeft),
                Err(Some(failure)) => failure,
            };
            let goes_on = match failure.kind {
                FailureKind::Fault(_) => next.invalid_response,
                FailureKind::Timeout | FailureKind::ConnectTimeout => next.timeout,
                FailureKind::Busy => false,
                _ => next.error,
            };
            let may_ask_again = failure.unsent || command.is_read();
            unanswered = Some(Unanswered::Failed { failure, server: Arc::clone(server) });
            if !goes_on || !may_ask_again {
                break;
            }
        }
        match (missed, unanswered) {
            (Some(got), _) => Ok(got),
            (None, Some(unanswered)) => Err(unanswered),
            (None, None) => unreachable!("a route has a server"),
        }
    }

    /// One command for each key, all on their way at once.
    pub(crate) async fn ask_each<'a>(
        &self,
        core: &Rc<Core>,
        waiter: &mut Waiter<'_>,
        keys: &[&'a [u8]],
        command: impl Fn(&'a [u8]) -> Command<'a>,
    ) -> Result<Vec<ReceivedReply>, Unanswered> {
        let first = |key: &[u8]| self.ring.order(key).next().map(|at| &self.servers[at]);
        let begin = |key: &'a [u8]| first(key).map(|server| self.call(core, server, key, &command(key)));
        let calls: Vec<Option<Arc<GatewayCall>>> = keys.iter().map(|&key| begin(key)).collect();
        let mut all = Vec::with_capacity(keys.len());
        for (&key, call) in keys.iter().zip(calls) {
            let ended = match call {
                Some(call) => wait(waiter, &call).await.ok_or(Unanswered::ClientLeft)?.ok(),
                None => None,
            };
            all.push(match ended {
                Some(got) => got,
                // By the rules of a single one.
                None => self.ask(core, waiter, key, &command(key)).await?,
            });
        }
        Ok(all)
    }

    /// Tells every server; the first that does not reply is the answer.
    pub(crate) async fn tell_all(
        &self,
        core: &Rc<Core>,
        waiter: &mut Waiter<'_>,
        command: &Command<'_>,
    ) -> Result<ReceivedReply, Unanswered> {
        let mut last = None;
        for server in &self.servers {
            match self.ask_server(core, waiter, server, b"", command).await {
                Ok(got) => last = Some(got),
                Err(None) => return Err(Unanswered::ClientLeft),
                Err(Some(failure)) => return Err(Unanswered::Failed { failure, server: Arc::clone(server) }),
            }
        }
        Ok(last.expect("a route has a server"))
    }

    /// One server; a lost connection is tried once more. `None`: the client left.
    async fn ask_server(
        &self,
        core: &Rc<Core>,
        waiter: &mut Waiter<'_>,
        server: &Arc<Server>,
        key: &[u8],
        command: &Command<'_>,
    ) -> Result<ReceivedReply, Option<Failure>> {
        let mut lost_once = false;
        loop {
            let call = self.call(core, server, key, command);
            match wait(waiter, &call).await {
                None => return Err(None),
                Some(Ok(got)) => return Ok(got),
                Some(Err(failure)) => {
                    let is_lost = failure.kind == FailureKind::Lost && (failure.unsent || command.is_read());
                    if !is_lost || std::mem::replace(&mut lost_once, true) {
                        return Err(Some(failure));
                    }
                }
            }
        }
    }

    /// Sends a command whose reply nobody waits for: a meta command quietly.
    pub(crate) fn tell(&self, core: &Rc<Core>, key: &[u8], command: &Command<'_>) {
        let Some(at) = self.ring.order(key).next() else { return };
        let server = &self.servers[at];
        self.send(core, server, &Arc::new(self.new_call(key, command).unheard()), command);
    }

    fn new_call(&self, key: &[u8], command: &Command<'_>) -> GatewayCall {
        let bytes_max = self.settings.item_bytes_max(key);
        GatewayCall::new(command, key, Patience::new(self.settings.reply_timeout), bytes_max)
    }

    fn wish<'a>(&self, key: &'a [u8]) -> Wish<'a> {
        Wish { key, timeout_ms: ms_of(self.settings.reply_timeout), value_bytes_max: self.settings.item_bytes_max(key) }
    }

    /// A call that is on its way: somebody else's, or one that is sent now.
    fn call(&self, core: &Rc<Core>, server: &Arc<Server>, key: &[u8], command: &Command<'_>) -> Arc<GatewayCall> {
        let joined = |call: Arc<GatewayCall>| {
            core.counters.memcached_coalesced.add(1);
            call
        };
        let call = match command {
            Command::MetaGet { exptime: None, .. } if self.settings.coalesce => {
                match server.flights.join(&self.wish(key), || self.new_call(key, command)) {
                    Seat::Leading(call) => call,
                    Seat::Joined(call) => return joined(call),
                }
            }
            // A get that is on its way brings all that is asked for.
            Command::MetaFacts { .. } if self.settings.coalesce => match server.flights.find(&self.wish(key)) {
                Some(call) => return joined(call),
                None => Arc::new(self.new_call(key, command)),
            },
            _ => Arc::new(self.new_call(key, command)),
        };
        self.send(core, server, &call, command);
        call
    }

    fn send(&self, core: &Rc<Core>, server: &Arc<Server>, call: &Arc<GatewayCall>, command: &Command<'_>) {
        match server.admits(deadline_now_ms()) {
            true => {
                let mut lanes = core.memcached_lanes.borrow_mut();
                lanes.push((&core.counters, core.now().mono_ms), server, call, command);
            }
            false => server.settle(&core.counters, call, Err(Failure { kind: FailureKind::Ejected, unsent: true })),
        }
    }
}

impl Waiter<'_> {
    pub(crate) fn has_left(&mut self, cx: &mut Context<'_>) -> bool {
        match self {
            Waiter::Client(client) => client.has_left(cx),
            Waiter::Nobody => false,
        }
    }
}

/// The end of a call; `None` when the client left before.
async fn wait(waiter: &mut Waiter<'_>, call: &GatewayCall) -> Option<Result<ReceivedReply, Failure>> {
    poll_fn(|cx| match call.poll(cx) {
        Poll::Pending if waiter.has_left(cx) => Poll::Ready(None),
        polled => polled.map(Some),
    })
    .await
}
