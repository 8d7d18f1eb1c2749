//! vmod dynamic: backends by name, made when they are first asked for.
//!
//! larder looks names up again by itself, so such a backend is one like any other, but for being made at run time: it
//! gets a number beyond those of the program (`Loaded::dynamic_backend`), and the host makes an origin of it.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;

use super::{Argument, Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::header_names::HeaderName;
use crate::host::{Host, Message};
use crate::limits::DYNAMIC_BACKENDS_MAX;
use crate::loaded::DynamicBackend;
use crate::objects::Object;
use crate::plain_values::{BackendRef, Fault, Plain};
use crate::typed_program::{AclId, Address, Backend, BackendId, Endpoint, ObjectId, ProbeId};

functions! {
    DynamicFunction {
        New "director",
        Backend "director.backend",
        Service "director.service",
        Debug "director.debug",
        NewResolver "resolver",
    }
}

/// What backends made by one `dynamic.director` have in common.
#[derive(Debug)]
pub struct DynamicDirector {
    port: String,
    host_header: Option<String>,
    probe: Option<ProbeId>,
    allowed: Option<AclId>,
    ttl_s: f64,
    connect_timeout_s: Option<f64>,
    first_byte_timeout_s: Option<f64>,
    between_bytes_timeout_s: Option<f64>,
    connections_max: Option<u64>,
    proxy_header: Option<u8>,
    authority: Option<String>,
}

/// All backends that were made.
#[derive(Debug, Default)]
pub struct DynamicBackends {
    made: RwLock<Made>,
}

/// By director, host and port.
type ByPlace = HashMap<(ObjectId, String, String), u32>;

#[derive(Debug, Default)]
struct Made {
    numbers: ByPlace,
    backends: Vec<DynamicBackend>,
}

impl DynamicBackends {
    pub fn get(&self, number: usize) -> Option<DynamicBackend> {
        self.made.read().backends.get(number).cloned()
    }
}

pub fn make(function: DynamicFunction, given: &Arguments<'_, '_>) -> Result<Object, Fault> {
    if function == DynamicFunction::NewResolver {
        return Ok(Object::Resolver);
    }
    let text = |index: usize| Some(given.bytes(index)).filter(|text| !text.is_empty());
    let text = |index: usize| text(index).map(|text| String::from_utf8_lossy(text).into_owned());
    let seconds = |index: usize| Some(given.real(index)).filter(|seconds| *seconds > 0.0);
    let probe = if let Some(Argument::Probe(probe)) = given.0.get(2) { *probe } else { None };
    let allowed = if let Some(Argument::Acl(acl)) = given.0.get(3) { Some(*acl) } else { None };
    let proxy_header = match given.int(11) {
        0 => None,
        version @ (1 | 2) => Some(version as u8),
        other => return Err(Fault::new(format!("dynamic.director(proxy_header={other}): it is 1 or 2"))),
    };
    Ok(Object::Dynamic(DynamicDirector {
        port: text(0).unwrap_or_else(|| "http".to_owned()),
        host_header: text(18).or_else(|| text(1)),
        probe,
        allowed,
        ttl_s: seconds(4).unwrap_or(3600.0),
        connect_timeout_s: seconds(5),
        first_byte_timeout_s: seconds(6),
        between_bytes_timeout_s: seconds(7),
        connections_max: u64::try_from(given.int(10)).ok().filter(|most| *most > 0),
        proxy_header,
        authority: text(17),
    }))
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: DynamicFunction,
    object: Option<ObjectId>,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    let (id, director) = match object.and_then(|id| Some((id, run.loaded.objects().get(id)?))) {
        Some((id, Object::Dynamic(director))) => (id, director),
        _ => return Err(Fault::new("a dynamic director is used before `new` has made it")),
    };
    match function {
        DynamicFunction::Backend => {
            let Some(host) = wanted_host(run, given) else { return Ok(Plain::Backend(BackendRef::None)) };
            let port = match given.bytes(1) {
                b"" => director.port.clone(),
                port => String::from_utf8_lossy(port).into_owned(),
            };
            let authority = given.text(2).map(|text| String::from_utf8_lossy(text).into_owned());
            backend(run, id, director, host, port, authority).map(Plain::Backend)
        }
        DynamicFunction::Service => {
            Err(Fault::new("dynamic.service(): services by SRV records are not supported; name host and port"))
        }
        _ => Ok(NOTHING),
    }
}

/// The host that is named, or that of the request, without its port.
fn wanted_host<'a, H: Host<'a>>(run: &Run<'a, '_, H>, given: &Arguments<'_, 'a>) -> Option<String> {
    let of = if run.is_backend_side() { Message::Bereq } else { Message::Req };
    let named = Some(given.bytes(0)).filter(|host| !host.is_empty());
    let named = named.or_else(|| run.host.header(of, &HeaderName::new(b"host")))?;
    let text = String::from_utf8_lossy(named).to_ascii_lowercase();
    let bare = match text.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !host.ends_with(':') => host.to_owned(),
        _ => text,
    };
    let bare = bare.trim_start_matches('[').trim_end_matches(']').to_owned();
    let is_host = bare.parse::<std::net::IpAddr>().is_ok() || crate::acl_entries::is_host_name(&bare);
    is_host.then_some(bare)
}

fn backend<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    id: ObjectId,
    director: &DynamicDirector,
    host: String,
    port: String,
    authority: Option<String>,
) -> Result<BackendRef, Fault> {
    let dynamic = run.loaded.dynamic_backends();
    let first = run.loaded.backends().len();
    let named = |number: u32| BackendRef::Named(BackendId(first as u32 + number));
    let place = (id, host, port);
    if let Some(number) = dynamic.made.read().numbers.get(&place) {
        return Ok(named(*number));
    }
    let mut made = dynamic.made.write();
    if let Some(number) = made.numbers.get(&place) {
        return Ok(named(*number));
    }
    if made.backends.len() >= DYNAMIC_BACKENDS_MAX {
        let what = format!("the program made {DYNAMIC_BACKENDS_MAX} dynamic backends (DYNAMIC_BACKENDS_MAX)");
        return Err(Fault::new(what));
    }
    let (_, host, port) = &place;
    let port = match port.as_str() {
        "http" => "80",
        "https" => "443",
        other => other,
    };
    let endpoint = Endpoint {
        address: Address::Host { host: host.clone(), port: Some(port.to_owned()) },
        host_header: director.host_header.clone().or_else(|| Some(host.clone())),
        connect_timeout_s: director.connect_timeout_s,
        first_byte_timeout_s: director.first_byte_timeout_s,
        between_bytes_timeout_s: director.between_bytes_timeout_s,
        connections_max: director.connections_max,
        proxy_header: director.proxy_header,
        probe: director.probe,
        authority: authority.or_else(|| director.authority.clone()),
        ..Endpoint::default()
    };
    let object = &run.loaded.program().objects[id.index()].name;
    let backend = Arc::new(Backend { endpoint: Some(endpoint), ..Backend::none(&format!("{object}({host}:{port})")) });
    let number = made.backends.len() as u32;
    made.backends.push(DynamicBackend { backend, lookup_interval_s: director.ttl_s, allowed: director.allowed });
    made.numbers.insert(place, number);
    Ok(named(number))
}
