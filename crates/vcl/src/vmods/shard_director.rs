//! The shard director: consistent hashing, on the same circle as Varnish's, so that a fleet of both sends the same
//! request to the same origin.
//!
//! Every backend has as many points on a circle of 2^32 as it has replicas, times its weight: the last four bytes,
//! least first, of SHA-256 over its name and the number. A key is sent to the backend of the first point at or after it, or of
//! the last one.

use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::RwLock;
use sha2::{Digest, Sha256};

use super::directors::Search;
use super::shard_parameters::{Healthy, ShardArguments};
use crate::chance;
use crate::evaluation::evaluator::Run;
use crate::host::Host;
use crate::limits::{DIRECTOR_BACKENDS_MAX, SHARD_POINTS_MAX};
use crate::objects::Object;
use crate::plain_values::{BackendRef, Fault};
use crate::typed_program::ObjectId;

const REPLICAS_DEFAULT: u32 = 67;

/// The director.
#[derive(Debug)]
pub struct Shard {
    state: RwLock<State>,
    /// What it tells of itself, by the bits of `shard.debug`.
    tells: AtomicI64,
}

#[derive(Debug, Default)]
struct State {
    members: Vec<Member>,
    /// A backend came or went since the last call of `reconfigure`.
    is_changed: bool,
    /// Points and whose they are, in order.
    circle: Vec<(u32, u32)>,
    replicas: u32,
    warmup: f64,
    rampup_s: f64,
    parameters: Option<ObjectId>,
}

#[derive(Debug)]
struct Member {
    backend: BackendRef,
    ident: Vec<u8>,
    rampup_s: Option<f64>,
    weight: f64,
}

impl Default for Shard {
    fn default() -> Shard {
        let state = State { replicas: REPLICAS_DEFAULT, ..State::default() };
        Shard { state: RwLock::new(state), tells: AtomicI64::new(0) }
    }
}

/// The last four bytes of the hash, least first.
pub fn hash(parts: &[&[u8]]) -> u32 {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    let digest = hash.finalize();
    u32::from_le_bytes([digest[28], digest[29], digest[30], digest[31]])
}

impl Shard {
    /// Whether it is a probability from 0 up to below 1; another one changes nothing.
    pub fn set_warmup(&self, probability: f64) -> bool {
        let is_good = (0.0..1.0).contains(&probability);
        if is_good {
            self.state.write().warmup = probability;
        }
        is_good
    }

    pub fn set_rampup(&self, seconds: f64) -> Result<(), Fault> {
        if seconds.is_nan() || seconds < 0.0 {
            return Err(Fault::new("shard.set_rampup(): a duration is not negative"));
        }
        self.state.write().rampup_s = seconds;
        Ok(())
    }

    pub fn tells(&self) -> i64 {
        self.tells.load(Ordering::Relaxed)
    }

    pub fn set_tells(&self, bits: i64) {
        self.tells.store(bits, Ordering::Relaxed);
    }

    /// Points and whose they are, in order.
    pub fn circle(&self) -> Vec<(u32, u32)> {
        self.state.read_recursive().circle.clone()
    }

    /// Where on the circle a key lies, and whose place that is.
    pub fn start_of(&self, key: u32) -> (usize, u32) {
        let state = self.state.read_recursive();
        let at = state.start_of(key);
        (at, state.circle.get(at).map_or(0, |(_, host)| *host))
    }

    pub fn associate(&self, parameters: Option<ObjectId>) {
        self.state.write().parameters = parameters;
    }

    pub fn members(&self) -> Vec<BackendRef> {
        self.state.read_recursive().members.iter().map(|member| member.backend).collect()
    }

    /// `weight` is at least 1. Whether it is new.
    pub fn add(&self, backend: BackendRef, ident: Vec<u8>, rampup_s: Option<f64>, weight: f64) -> Result<bool, Fault> {
        let mut state = self.state.write();
        state.is_changed = true;
        if state.members.len() >= DIRECTOR_BACKENDS_MAX {
            return Err(Fault::new(format!("a director has more than {DIRECTOR_BACKENDS_MAX} backends")));
        }
        // The same name again is no second backend.
        let is_new = !state.members.iter().any(|member| member.backend == backend && member.ident == ident);
        if is_new {
            state.members.push(Member { backend, ident, rampup_s, weight: weight.min(10.0) });
        }
        state.draw().map(|()| is_new)
    }

    /// All that are meant by backend or name.
    pub fn remove(&self, backend: Option<BackendRef>, ident: Option<&[u8]>) -> bool {
        let mut state = self.state.write();
        let before = state.members.len();
        let is_meant = |member: &Member| {
            (backend.is_some() || ident.is_some())
                && backend.is_none_or(|backend| backend == member.backend)
                && ident.is_none_or(|ident| ident == member.ident)
        };
        state.members.retain(|member| !is_meant(member));
        state.is_changed |= state.members.len() < before;
        // Fewer points than before cannot be too many.
        state.draw().is_ok() && state.members.len() < before
    }

    pub fn clear(&self) {
        let mut state = self.state.write();
        state.is_changed = true;
        state.members.clear();
        state.circle.clear();
    }

    /// Whether the circle is what was asked for: it is not for less than one replica, and not when all backends went. Then, whether
    /// it was drawn anew.
    pub fn reconfigure(&self, replicas: i64) -> Result<(bool, bool), Fault> {
        let mut state = self.state.write();
        let Some(replicas) = u32::try_from(replicas).ok().filter(|replicas| *replicas > 0) else {
            return Ok((false, false));
        };
        let is_finer = std::mem::replace(&mut state.replicas, replicas) != replicas;
        let is_changed = std::mem::take(&mut state.is_changed);
        if state.members.is_empty() {
            return Ok((!is_changed, false));
        }
        state.draw().map(|()| (true, is_changed || is_finer))
    }

    /// When the fetch begins, by what was said for it and by the parameters that go with the director, whose number is `id`.
    pub fn choose_late<'a, H: Host<'a>>(&self, search: &Search<'a, '_, H>, id: ObjectId) -> Option<BackendRef> {
        self.choose(search, id, &ShardArguments::default()).ok()?.0
    }

    /// At once; with the key that it was chosen by.
    pub fn choose_now<'a, H: Host<'a>>(
        &self,
        run: &Run<'a, '_, H>,
        id: ObjectId,
        wanted: &ShardArguments,
    ) -> Result<(BackendRef, u32), Fault> {
        let search = Search { loaded: run.loaded, host: run.host, depth: 0 };
        self.choose(&search, id, wanted).map(|(chosen, key)| (chosen.unwrap_or_default(), key))
    }

    /// What the call says; where it says nothing what was said for this transaction, then what the parameters say.
    fn choose<'a, H: Host<'a>>(
        &self,
        search: &Search<'a, '_, H>,
        id: ObjectId,
        wanted: &ShardArguments,
    ) -> Result<(Option<BackendRef>, u32), Fault> {
        let said = wanted.or(&search.host.task().shard_arguments(id));
        let parameters = said.param.or(self.state.read_recursive().parameters);
        let object = parameters.and_then(|id| Some((id, search.loaded.objects().get(id)?)));
        let said = match object {
            Some((id, Object::ShardParameters(parameters))) => {
                said.or(&search.host.task().shard_arguments(id)).or(&parameters.get())
            }
            _ => said,
        };
        let key = said.key_to_choose(search.host);
        let key = key.ok_or_else(|| Fault::new("shard.backend(): there is no key to choose by"))?;
        Ok((self.state.read_recursive().choose(search, key, &said), key))
    }
}

impl State {
    /// What is past the last point belongs to it.
    fn start_of(&self, key: u32) -> usize {
        self.circle.partition_point(|(point, _)| *point < key).min(self.circle.len().saturating_sub(1))
    }

    /// The circle anew.
    fn draw(&mut self) -> Result<(), Fault> {
        let points = |member: &Member| ((f64::from(self.replicas) * member.weight) as u32).max(1);
        let total: u64 = self.members.iter().map(|member| u64::from(points(member))).sum();
        if total > SHARD_POINTS_MAX {
            let what = format!("a shard director has more than {SHARD_POINTS_MAX} points (SHARD_POINTS_MAX)");
            return Err(Fault::new(what));
        }
        self.circle = Vec::with_capacity(total as usize);
        for (index, member) in self.members.iter().enumerate() {
            let made = (0..points(member)).map(|n| (hash(&[&member.ident, n.to_string().as_bytes()]), index as u32));
            self.circle.extend(made);
        }
        self.circle.sort_unstable();
        Ok(())
    }

    fn choose<'a, H: Host<'a>>(
        &self,
        search: &Search<'a, '_, H>,
        key: u32,
        wanted: &ShardArguments,
    ) -> Option<BackendRef> {
        let start = self.start_of(key);
        // Each backend once, in the order in which the circle meets them.
        let mut met = vec![false; self.members.len()];
        let in_order = self.circle[start..].iter().chain(&self.circle[..start]).map(|(_, index)| *index as usize);
        let mut in_order = in_order.filter(|index| !std::mem::replace(&mut met[*index], true));
        let healthy = |index: &usize| search.health(self.members[*index].backend).healthy;
        let alt = wanted.alt.unwrap_or(0).clamp(0, self.members.len().saturating_sub(1) as i64) as usize;
        let chosen = match wanted.healthy() {
            Healthy::All => in_order.by_ref().filter(healthy).nth(alt),
            Healthy::Ignore => in_order.by_ref().nth(alt),
            Healthy::Chosen => match in_order.by_ref().nth(alt)? {
                index if healthy(&index) => Some(index),
                // The next that is healthy; those before have been passed over and come last.
                _ => in_order.by_ref().find(healthy).or_else(|| (0..self.members.len()).find(healthy)),
            },
        }?;
        if wanted.healthy() == Healthy::Ignore || alt > 0 {
            return Some(self.members[chosen].backend);
        }
        let spared = self.is_spared(search, chosen, wanted);
        let instead = if spared { in_order.find(healthy) } else { None };
        Some(self.members[instead.unwrap_or(chosen)].backend)
    }

    /// Whether by chance the next one has a turn: for a while after recovery, or always a little to keep it warm.
    fn is_spared<'a, H: Host<'a>>(&self, search: &Search<'a, '_, H>, chosen: usize, wanted: &ShardArguments) -> bool {
        let member = &self.members[chosen];
        let warmup = wanted.warmup.filter(|warmup| *warmup >= 0.0).unwrap_or(self.warmup);
        let rampup_s = member.rampup_s.unwrap_or(self.rampup_s);
        let draw = || chance::unit(search.host.random());
        let age_s = search.host.world().now_s() - search.health(member.backend).changed_s;
        if wanted.rampup.unwrap_or(true) && age_s < rampup_s {
            return draw() * rampup_s > age_s;
        }
        warmup > 0.0 && draw() < warmup
    }
}
