//! Memcached: the request is a command, and what memcached replies is the answer. A value to be stored is read first
//! (`memcached_value.rs`), so that a slow client holds up no other's commands; one in chunks is found by its manifest
//! (`memcached_chunks.rs`).

use std::rc::Rc;
use std::sync::Arc;

use message::Method;
use wire::RequestBody;
use wire::memcached::{Command, ReplyFault};

use crate::access_log::CacheVerdict;
use crate::downstream::Downstream;
use crate::memcached_gateway::gateway_call::{Failure, FailureKind, ReceivedReply};
use crate::memcached_gateway::gateway_routes::Gateway;
use crate::memcached_gateway::gateway_settings::{MemcachedCommand, MemcachedMode};
use crate::memcached_gateway::item_answer::{self, ItemAnswer, ItemBody};
use crate::memcached_gateway::memcached_request::MemcachedRequest;
use crate::memcached_gateway::memcached_server::Server;
use crate::memcached_gateway::request_part::{arguments, decode};
use crate::memcached_gateway::{Unanswered, Waiter, memc_answer, multi_answer};
use crate::site::Site;
use crate::transaction::deliver::Answer;
use crate::transaction::memcached_chunks::Asking;
use crate::transaction::memcached_value::{self, Value};
use crate::transaction::synth::Synth;
use crate::transaction::{Step, Transaction};

/// Why there is no answer of memcached's.
pub(super) enum Stop {
    Synth(Synth),
    ClientLeft,
}

impl From<Synth> for Stop {
    fn from(synth: Synth) -> Stop {
        Stop::Synth(synth)
    }
}

pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, route: usize) -> Step {
    tx.outcome.verdict = CacheVerdict::Memcached;
    tx.core.counters.memcached_requests.add(1);
    let site = Arc::clone(&tx.site);
    match exchange(tx, downstream, &site, route).await {
        Ok(answer) => Step::Deliver(Box::new(Answer::Item(answer))),
        Err(Stop::Synth(synth)) => match tx.routed.backend {
            // What memcached does not have, or cannot say, an origin behind it may.
            Some(_) if is_for_origin(tx, &synth) => {
                tx.outcome.why = synth.token;
                Step::Pass
            }
            _ => Step::Synth(synth),
        },
        Err(Stop::ClientLeft) => Step::client_left(downstream),
    }
}

fn is_for_origin(tx: &Transaction, synth: &Synth) -> bool {
    let reads = matches!(tx.head.method, Method::Get | Method::Head) && tx.body == RequestBody::None;
    reads && matches!(synth.status, 404 | 502 | 503 | 504)
}

async fn exchange(
    tx: &mut Transaction,
    downstream: &mut Downstream<'_>,
    site: &Arc<Site>,
    route: usize,
) -> Result<ItemAnswer, Stop> {
    let gateway = &site.memcached.routes[route];
    let settings = &gateway.settings;
    let (core, head) = (Rc::clone(&tx.core), Rc::clone(&tx.head));
    let request = head.request();
    let prefix = site.route_of(tx.routed).map_or("/", |route| &route.path_prefix);
    let wanted = match settings.mode {
        MemcachedMode::Clean => MemcachedRequest::read(&request, prefix, settings)?,
        MemcachedMode::NginxMemc => MemcachedRequest::read_memc(&request, prefix, settings)?,
    };
    let value = match wanted.command.stores() {
        Some(_) => memcached_value::read(tx, downstream, gateway, &wanted).await?,
        None => Value::none(&core),
    };
    let now_s = (core.now().wall_ms / 1_000) as i64;
    let asking = Asking { site, route, core: &core, wanted: &wanted, now_s };
    let mut waiter = Waiter::Client(downstream.reborrow());
    if wanted.command == MemcachedCommand::MultiGet {
        let written = arguments(request.query.unwrap_or_default(), b"key");
        let names: Vec<Vec<u8>> = written.filter_map(|name| Some(decode(name).ok()?.into_owned())).collect();
        let keys: Vec<&[u8]> = wanted.keys.iter().map(|key| &key.name[..]).collect();
        let items = gateway.ask_each(&core, &mut waiter, &keys, |key| wanted.command(key, b"")).await;
        let items = items.map_err(|why| unanswered(gateway, why))?;
        return Ok(multi_answer::answer(&wanted, &names, &items, settings.chunk_bytes.is_some()));
    }
    let key = asking.key();
    let (command, answer): (_, fn(&_, &_, &_, _, _) -> _) = match settings.mode {
        // What lies in chunks is touched with all of them.
        MemcachedMode::Clean if wanted.command == MemcachedCommand::Touch && settings.chunk_bytes.is_some() => {
            (Command::MetaGet { key, exptime: wanted.exptime }, item_answer::answer)
        }
        MemcachedMode::Clean => (wanted.command(key, &value.bytes), item_answer::answer),
        MemcachedMode::NginxMemc => (wanted.memc_command(key, &value.bytes), memc_answer::answer),
    };
    if wanted.is_unheard {
        gateway.tell(&core, key, &command);
        return Ok(ItemAnswer::empty(202));
    }
    let got = match wanted.command {
        // Nothing says which server has what: all are told.
        MemcachedCommand::FlushAll | MemcachedCommand::Noop => gateway.tell_all(&core, &mut waiter, &command).await,
        _ => gateway.ask(&core, &mut waiter, key, &command).await,
    };
    value.settle(gateway, &core, &got);
    let got: ReceivedReply = got.map_err(|why| unanswered(gateway, why))?;
    if settings.chunk_bytes.is_none() {
        return Ok(answer(&request, &wanted, settings, got, now_s)?);
    }
    let (got, manifest) = asking.look_for_chunks(&mut waiter, got).await?;
    let mut item = answer(&request, &wanted, settings, got, now_s)?;
    if let Some(manifest) = manifest.filter(|_| item.status == 200) {
        item.body = match request.method {
            Method::Head => ItemBody::Unsaid(manifest.value_bytes),
            _ => ItemBody::Chunked(Box::new(asking.begin_reading(&mut waiter, manifest).await?)),
        };
    }
    Ok(item)
}

pub(super) fn unanswered(gateway: &Gateway, why: Unanswered) -> Stop {
    match why {
        Unanswered::ClientLeft => Stop::ClientLeft,
        Unanswered::Failed { failure, server } => Stop::Synth(failed(gateway, failure, &server)),
    }
}

/// What failed, where, and which setting of the route changes it.
fn failed(gateway: &Gateway, failure: Failure, server: &Server) -> Synth {
    let (settings, at) = (&gateway.settings, server.label());
    let (status, what) = match failure.kind {
        FailureKind::Connect(why) => (502, format!("could not be connected to: {why} (memcached)")),
        FailureKind::ConnectTimeout => {
            (504, format!("could not be connected to within {:?} (connect_timeout)", settings.connect_timeout))
        }
        FailureKind::Resolve => (502, "has a name that did not resolve (memcached, [resolver])".to_owned()),
        FailureKind::Tls(fault) => (502, tls_fault_text(fault).to_owned()),
        FailureKind::Login => (502, "refused user and password (memcached_login)".to_owned()),
        FailureKind::Lost => (502, "closed the connection before its reply".to_owned()),
        FailureKind::Timeout => (504, format!("did not reply within {:?} (reply_timeout)", settings.reply_timeout)),
        FailureKind::Fault(ReplyFault::ValueTooLarge) => return item_answer::item_too_large(settings),
        FailureKind::Fault(fault) => (502, format!("sent what is no reply: {}", fault.token().replace('-', " "))),
        FailureKind::Ejected => {
            (502, format!("failed too often and is left alone for {:?} (ejection_time)", settings.ejection_time))
        }
        FailureKind::Busy => (503, "has more commands waiting than may (max_connections)".to_owned()),
    };
    Synth::memcached_error(status, failure.kind.token(), format!("memcached {at} {what}."))
}
/// Why no TLS is spoken with a server, and which setting of its route may change that.
const fn tls_fault_text(fault: tls::Fault) -> &'static str {
    use tls::Fault;
    match fault {
        Fault::UnknownAuthority => "has a certificate that nobody of those signed who may (ca of the [[route]])",
        Fault::OtherName => "has a certificate for another name (tls_name of the [[route]])",
        Fault::Expired => "has a certificate that has expired",
        Fault::NotYetValid => "has a certificate that is not valid yet",
        Fault::Certificate => "has a certificate that is not valid here",
        _ => "does not speak TLS with us (tls of the [[route]])",
    }
}
