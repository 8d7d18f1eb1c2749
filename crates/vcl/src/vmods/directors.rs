//! Directors that choose by turn, by order, by chance and by a key. What they choose from changes by `add_backend` and
//! `remove_backend`, at any time; a choice sees what is there when it is made.
//!
//! A director is chosen from as late as possible, when a fetch begins, because what is healthy may have changed since
//! the program named it. The hash director alone chooses at once, for its key is known only then.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use super::{saintmode_vmod, shard_director};
use crate::chance;
use crate::host::{Health, Host};
use crate::limits::{DIRECTOR_BACKENDS_MAX, DIRECTOR_DEPTH_MAX};
use crate::loaded::Loaded;
use crate::objects::Object;
use crate::plain_values::{BackendRef, Fault};
use crate::typed_program::BackendId;

/// A director, but for `shard`.
#[derive(Debug)]
pub struct Director {
    how: How,
    /// Read recursively: one that was made to stand behind itself must not wait for itself.
    members: RwLock<Vec<Member>>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    backend: BackendRef,
    weight: f64,
}

/// How it chooses.
#[derive(Debug)]
pub enum How {
    /// After the one chosen last.
    RoundRobin(AtomicUsize),
    /// The first; a sticky one stays with the one chosen last while that is healthy.
    Fallback {
        sticky: bool,
        last: AtomicUsize,
    },
    Random,
    Hash,
}

impl Director {
    pub fn new(how: How) -> Director {
        Director { how, members: RwLock::default() }
    }

    pub fn add(&self, backend: BackendRef, weight: f64) -> Result<(), Fault> {
        if !weight.is_finite() || weight < 0.0 {
            return Err(Fault::new(format!("{weight} is no weight: it is a number from 0 on")));
        }
        let mut members = self.members.write();
        if members.len() >= DIRECTOR_BACKENDS_MAX {
            return Err(Fault::new(format!("a director has more than {DIRECTOR_BACKENDS_MAX} backends")));
        }
        members.push(Member { backend, weight });
        Ok(())
    }

    /// The first that is this backend.
    pub fn remove(&self, backend: BackendRef) {
        let mut members = self.members.write();
        let Some(index) = members.iter().position(|member| member.backend == backend) else { return };
        members.remove(index);
        if let How::Fallback { last, .. } = &self.how {
            // The one chosen last stays it; when that is the one that goes, it is the next.
            let chosen = last.load(Ordering::Relaxed);
            let chosen = if index < chosen { chosen - 1 } else { chosen };
            last.store(if chosen < members.len() { chosen } else { 0 }, Ordering::Relaxed);
        }
    }

    /// Chosen when a fetch begins; a hash director has no key then and chooses by chance.
    fn choose<'a, H: Host<'a>>(&self, search: &Search<'a, '_, H>) -> Option<BackendRef> {
        let members = self.members.read_recursive();
        let healthy = |index: usize| search.health(members[index].backend).healthy;
        let count = members.len();
        match &self.how {
            How::RoundRobin(turn) => {
                let start = turn.load(Ordering::Relaxed);
                let chosen = (0..count).map(|step| (start.wrapping_add(step)) % count).find(|index| healthy(*index))?;
                turn.store(chosen.wrapping_add(1), Ordering::Relaxed);
                Some(members[chosen].backend)
            }
            How::Fallback { sticky, last } => {
                let start = if *sticky { last.load(Ordering::Relaxed) } else { 0 };
                let chosen = (0..count).map(|step| (start + step) % count).find(|index| healthy(*index))?;
                last.store(chosen, Ordering::Relaxed);
                Some(members[chosen].backend)
            }
            How::Random | How::Hash => {
                let drawn = chance::unit(search.host.random());
                by_weight(&members, drawn, healthy)
            }
        }
    }

    /// By a key, which names the same one as long as the same are healthy.
    pub fn by_key<'a, H: Host<'a>>(&self, loaded: &'a Loaded, host: &H, key: &[u8]) -> BackendRef {
        let point = shard_director::hash(&[key]);
        let members = self.members.read_recursive();
        let search = Search { loaded, host, depth: 0 };
        let chosen = by_weight(&members, f64::from(point) / 4_294_967_296.0, |index| {
            search.health(members[index].backend).healthy
        });
        chosen.unwrap_or_default()
    }
}

/// Where a point from 0 up to 1 falls when the healthy stand side by side, each as wide as its weight.
fn by_weight(members: &[Member], point: f64, healthy: impl Fn(usize) -> bool) -> Option<BackendRef> {
    let weight = |index: &usize| if healthy(*index) { members[*index].weight } else { 0.0 };
    let weights: smallvec::SmallVec<[f64; 16]> = (0..members.len()).map(|index| weight(&index)).collect();
    let mut left = point * weights.iter().sum::<f64>();
    let mut last = None;
    for (member, weight) in members.iter().zip(weights).filter(|(_, weight)| *weight > 0.0) {
        if left < weight {
            return Some(member.backend);
        }
        left -= weight;
        // What rounding leaves over falls to the last.
        last = Some(member.backend);
    }
    last
}

/// One search through directors, which may stand behind one another.
pub struct Search<'a, 'h, H> {
    pub loaded: &'a Loaded,
    pub host: &'h H,
    pub depth: usize,
}

impl<'a, H: Host<'a>> Search<'a, '_, H> {
    /// The backend that is meant.
    pub fn resolve(&self, of: BackendRef) -> Option<BackendId> {
        let chosen = match of {
            BackendRef::None => None,
            BackendRef::Named(id) => return Some(id),
            BackendRef::Director(id) => match self.loaded.objects().get(id)? {
                Object::Director(director) => director.choose(self),
                Object::Shard(shard) => shard.choose_late(self, id),
                Object::Saintmode(saint) if self.health(of).healthy => Some(saint.backend()),
                _ => None,
            },
        };
        self.deeper()?.resolve(chosen?)
    }

    /// Of a director: whether one behind it is healthy, and the last change of any.
    pub fn health(&self, of: BackendRef) -> Health {
        let sick = Health { healthy: false, changed_s: 0.0 };
        let members: Vec<BackendRef> = match of {
            BackendRef::None => return sick,
            BackendRef::Named(id) => return self.host.backend_health(id),
            BackendRef::Director(id) => match self.loaded.objects().get(id) {
                Some(Object::Director(director)) => {
                    director.members.read_recursive().iter().map(|member| member.backend).collect()
                }
                Some(Object::Shard(shard)) => shard.members(),
                Some(Object::Saintmode(saint)) => {
                    let hash = saintmode_vmod::hash_of(self.host);
                    match saint.is_allowed(hash, self.host.world().now_s()) {
                        true => vec![saint.backend()],
                        false => return sick,
                    }
                }
                _ => return sick,
            },
        };
        let Some(deeper) = self.deeper() else { return sick };
        members.into_iter().map(|member| deeper.health(member)).fold(sick, |all, one| Health {
            healthy: all.healthy || one.healthy,
            changed_s: all.changed_s.max(one.changed_s),
        })
    }

    /// A director could be made to stand behind itself.
    fn deeper(&self) -> Option<Search<'a, '_, H>> {
        let depth = self.depth + 1;
        (depth <= DIRECTOR_DEPTH_MAX).then_some(Search { loaded: self.loaded, host: self.host, depth })
    }
}
