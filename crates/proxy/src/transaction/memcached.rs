//! Memcached: the request is a command, and what memcached replies is the answer. A value to be stored is read whole
//! first, so that a slow client holds up no other's commands.

use std::sync::Arc;

use message::Method;
use wire::RequestBody;

use crate::access_log::CacheVerdict;
use crate::connection::Connection;
use crate::fetch::Broken;
use crate::memcached_gateway::errand::Errand;
use crate::memcached_gateway::gateway_call::{Failure, FailureKind, Got};
use crate::memcached_gateway::gateway_settings::{MemcachedCommand, MemcachedMode};
use crate::memcached_gateway::item_answer::{self, ItemAnswer};
use crate::memcached_gateway::memcached_server::Server;
use crate::memcached_gateway::request_part::{arguments, decode};
use crate::memcached_gateway::{Gateway, Unanswered, memc_answer, multi_answer};
use crate::site::Site;
use crate::transaction::deliver::Answer;
use crate::transaction::receive_by_policy::read_whole;
use crate::transaction::synth::Synth;
use crate::transaction::transmit::End;
use crate::transaction::{Step, Transaction};

/// Why there is no answer of memcached's.
enum Stop {
    Synth(Synth),
    ClientLeft,
}

impl From<Synth> for Stop {
    fn from(synth: Synth) -> Stop {
        Stop::Synth(synth)
    }
}

pub(crate) async fn run(tx: &mut Transaction, connection: &mut Connection, route: usize) -> Step {
    tx.outcome.verdict = CacheVerdict::Memcached;
    tx.core.counters.memcached_requests.add(1);
    let site = Arc::clone(&tx.site);
    match exchange(tx, connection, &site, &site.memcached.routes[route]).await {
        Ok(answer) => Step::Deliver(Box::new(Answer::Item(answer))),
        Err(Stop::Synth(synth)) => match tx.backend {
            // What memcached does not have, or cannot say, an origin behind it may.
            Some(_) if is_for_origin(tx, &synth) => {
                tx.outcome.why = synth.token;
                Step::Pass
            }
            _ => Step::Synth(synth),
        },
        Err(Stop::ClientLeft) => {
            connection.exchange(wire::Event::AnswerCut);
            Step::Log(End::ClientLeft)
        }
    }
}

fn is_for_origin(tx: &Transaction, synth: &Synth) -> bool {
    let reads = matches!(tx.head.method, Method::Get | Method::Head) && tx.body == RequestBody::None;
    reads && matches!(synth.status, 404 | 502 | 503 | 504)
}

async fn exchange(
    tx: &mut Transaction,
    connection: &mut Connection,
    site: &Site,
    gateway: &Gateway,
) -> Result<ItemAnswer, Stop> {
    let settings = &gateway.settings;
    let head = std::rc::Rc::clone(&tx.head);
    let request = head.request();
    let prefix = site.route(&request).map_or("/", |route| &route.path_prefix);
    let errand = match settings.mode {
        MemcachedMode::Clean => Errand::read(&request, prefix, settings)?,
        MemcachedMode::NginxMemc => Errand::read_memc(&request, prefix, settings)?,
    };
    let value = match errand.command.stores() {
        Some(_) => value_of(tx, connection, gateway, &errand).await?,
        None => Vec::new(),
    };
    let now_s = (tx.core.now().wall_ms / 1_000) as i64;
    if errand.command == MemcachedCommand::MultiGet {
        let written = arguments(request.query.unwrap_or_default(), b"key");
        let names: Vec<Vec<u8>> = written.filter_map(|name| Some(decode(name).ok()?.into_owned())).collect();
        let keys: Vec<&[u8]> = errand.keys.iter().map(|key| &key.name[..]).collect();
        let items = gateway.ask_each(connection, &keys, |key| errand.command(key, b"")).await;
        return Ok(multi_answer::answer(&errand, &names, &items.map_err(|why| unanswered(gateway, why))?));
    }
    let key = errand.keys.first().map_or(&b""[..], |key| &key.name);
    let (command, answer): (_, fn(&_, &_, &_, _, _) -> _) = match settings.mode {
        MemcachedMode::Clean => (errand.command(key, &value), item_answer::answer),
        MemcachedMode::NginxMemc => (errand.memc_command(key, &value), memc_answer::answer),
    };
    let got = match errand.command {
        // Nothing says which server has what: all are told.
        MemcachedCommand::FlushAll => gateway.tell_all(connection, &command).await,
        _ => gateway.ask(connection, key, &command).await,
    };
    let got: Got = got.map_err(|why| unanswered(gateway, why))?;
    Ok(answer(&request, &errand, settings, got, now_s)?)
}

/// What is to be stored: of the request's own words, or its body.
async fn value_of(
    tx: &mut Transaction,
    connection: &mut Connection,
    gateway: &Gateway,
    errand: &Errand,
) -> Result<Vec<u8>, Stop> {
    let value = match &errand.value {
        Some(value) => value.clone(),
        None => body(tx, connection, gateway).await?,
    };
    let max = gateway.settings.value_bytes_max;
    if value.len() > max {
        return Err(Stop::Synth(Synth::memcached_value_too_large(max)));
    }
    Ok(errand.keys[0].wrap(&value).unwrap_or(value))
}

async fn body(tx: &mut Transaction, connection: &mut Connection, gateway: &Gateway) -> Result<Vec<u8>, Stop> {
    let max = gateway.settings.value_bytes_max;
    match tx.body {
        RequestBody::None if gateway.settings.mode == MemcachedMode::NginxMemc => {
            return Err(Stop::Synth(Synth::memcached_refused(500, "value-missing", "There is no value to be stored.")));
        }
        RequestBody::Length(length) if length > max as u64 => {
            return Err(Stop::Synth(Synth::memcached_value_too_large(max)));
        }
        _ => {}
    }
    if tx.expects_continue && !connection.send_interim(tx.head.version, b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()).await
    {
        return Err(Stop::ClientLeft);
    }
    tx.expects_continue = false;
    match read_whole(connection, max as u64).await {
        Ok(Some(body)) => Ok(body.into()),
        Ok(None) => Err(Stop::Synth(Synth::memcached_value_too_large(max))),
        Err(Broken::ClientFault(refusal)) => {
            connection.exchange(wire::Event::ReadBroken);
            tx.persistent = false;
            Err(Stop::Synth(Synth::refused(&refusal)))
        }
        Err(Broken::ClientLeft | Broken::Origin(_)) => Err(Stop::ClientLeft),
    }
}

fn unanswered(gateway: &Gateway, why: Unanswered) -> Stop {
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
        FailureKind::Login => (502, "refused user and password (memcached_login)".to_owned()),
        FailureKind::Lost => (502, "closed the connection before its reply".to_owned()),
        FailureKind::Timeout => (504, format!("did not reply within {:?} (reply_timeout)", settings.reply_timeout)),
        FailureKind::Fault(fault) => (502, format!("sent what is no reply: {}", fault.token().replace('-', " "))),
        FailureKind::Ejected => {
            (502, format!("failed too often and is left alone for {:?} (ejection_time)", settings.ejection_time))
        }
        FailureKind::Busy => (503, "has more commands waiting than may (max_connections)".to_owned()),
    };
    Synth::memcached_error(status, failure.kind.token(), format!("memcached {at} {what}."))
}
