//! vmod saintmode: a backend that is sick for what it answered badly, and for everything once that is too much.
//!
//! `denylist` speaks of the backend that was just asked and of the hash that it was asked for. Who chooses next sees
//! that backend as sick for this hash until the time is over.

use parking_lot::Mutex;

use super::{Arguments, NOTHING, functions};
use crate::evaluation::evaluator::Run;
use crate::host::{Health, Host};
use crate::limits::SAINTMODE_ENTRIES_MAX;
use crate::objects::Object;
use crate::plain_values::{BackendRef, Fault, Plain};
use crate::typed_program::ObjectId;
use crate::variables::VariableId;

functions! {
    SaintmodeFunction {
        Denylist "denylist",
        Blacklist "blacklist",
        Status "status",
        New "saintmode",
        Backend "saintmode.backend",
        DenylistCount "saintmode.denylist_count",
        BlacklistCount "saintmode.blacklist_count",
        IsHealthy "saintmode.is_healthy",
    }
}

/// A backend and what it is sick for.
#[derive(Debug)]
pub struct Saintmode {
    backend: BackendRef,
    /// From so many entries on it is sick for everything; 0 is never.
    threshold: i64,
    /// Hashes, and until when.
    denied: Mutex<Vec<(Box<[u8]>, f64)>>,
}

impl Saintmode {
    pub fn backend(&self) -> BackendRef {
        self.backend
    }

    fn count(&self, now_s: f64) -> usize {
        let mut denied = self.denied.lock();
        denied.retain(|(_, until_s)| *until_s > now_s);
        denied.len()
    }

    fn deny(&self, hash: &[u8], until_s: f64, now_s: f64) -> Result<(), Fault> {
        let mut denied = self.denied.lock();
        denied.retain(|(known, until_s)| *until_s > now_s && **known != *hash);
        if denied.len() >= SAINTMODE_ENTRIES_MAX {
            return Err(Fault::new(format!("saintmode denies {SAINTMODE_ENTRIES_MAX} hashes (SAINTMODE_ENTRIES_MAX)")));
        }
        denied.push((hash.into(), until_s));
        Ok(())
    }

    /// Whether it may be asked for this hash.
    pub fn is_allowed(&self, hash: Option<&[u8]>, now_s: f64) -> bool {
        let denied = self.denied.lock();
        let mut lasting = denied.iter().filter(|(_, until_s)| *until_s > now_s);
        let count = lasting.clone().count();
        let is_too_much = usize::try_from(self.threshold).is_ok_and(|threshold| threshold > 0 && count >= threshold);
        !is_too_much && !lasting.any(|(known, _)| Some(&**known) == hash)
    }
}

/// The hash of what is wanted: of the fetch if there is one, else of the request.
pub fn hash_of<'a, H: Host<'a>>(host: &H) -> Option<&'a [u8]> {
    let fetched = host.variable(VariableId::BEREQ_HASH).text();
    fetched.or_else(|| host.variable(VariableId::REQ_HASH).text())
}

pub fn make(given: &Arguments<'_, '_>) -> Result<Object, Fault> {
    let (backend, threshold) = (given.backend(0), given.int(1));
    if backend == BackendRef::None || threshold < 0 {
        return Err(Fault::new("saintmode.saintmode() takes a backend and a threshold from 0 on"));
    }
    Ok(Object::Saintmode(Saintmode { backend, threshold, denied: Mutex::default() }))
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: SaintmodeFunction,
    object: Option<ObjectId>,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    use SaintmodeFunction as F;
    match function {
        F::Denylist | F::Blacklist => {
            deny(run, given.real(0))?;
            return Ok(NOTHING);
        }
        F::Status => return status(run),
        _ => {}
    }
    let (id, saint) = match object.and_then(|id| Some((id, run.loaded.objects().get(id)?))) {
        Some((id, Object::Saintmode(saint))) => (id, saint),
        _ => return Err(Fault::new("a saintmode object is used before `new` has made it")),
    };
    Ok(match function {
        F::DenylistCount | F::BlacklistCount => Plain::Int(saint.count(run.host.world().now_s()) as i64),
        F::IsHealthy => {
            let Health { healthy, .. } = run.loaded.health(run.host, BackendRef::Director(id));
            Plain::Bool(healthy)
        }
        _ => Plain::Backend(BackendRef::Director(id)),
    })
}

/// The backend that was asked is denied for this hash, wherever it stands in a saintmode object.
fn deny<'a, H: Host<'a>>(run: &Run<'a, '_, H>, seconds: f64) -> Result<(), Fault> {
    let now_s = run.host.world().now_s();
    let asked = run.host.variable(VariableId::BERESP_BACKEND).backend();
    let asked = if asked == BackendRef::None { run.host.variable(VariableId::BEREQ_BACKEND).backend() } else { asked };
    let Some(hash) = hash_of(run.host).filter(|_| asked != BackendRef::None) else { return Ok(()) };
    for saint in run.loaded.objects().all().filter_map(|object| match object {
        Object::Saintmode(saint) => Some(saint),
        _ => None,
    }) {
        if saint.backend == asked {
            saint.deny(hash, now_s + seconds, now_s)?;
        }
    }
    Ok(())
}

/// For people: each object's backend, entries and threshold, as JSON.
fn status<'a, H: Host<'a>>(run: &Run<'a, '_, H>) -> Result<Plain<'a>, Fault> {
    let now_s = run.host.world().now_s();
    let mut lines = Vec::new();
    for object in run.loaded.objects().all() {
        if let Object::Saintmode(saint) = object {
            let name = run.loaded.backend_name(saint.backend);
            let (count, threshold) = (saint.count(now_s), saint.threshold);
            lines.push(format!("\t\t{{ \"name\": \"{name}\", \"count\": {count}, \"threshold\": {threshold} }}"));
        }
    }
    let text = format!("{{\n\t\"saintmode\": [\n{}\n\t]\n}}", lines.join(",\n"));
    Ok(Plain::Text(Some(run.arena.copy(text.as_bytes())?)))
}
