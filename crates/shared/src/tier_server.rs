//! One server of the tier, whatever it is, and how long it is waited for.

use std::time::Duration;

use cache::TierServer;
use tokio::time::Instant;

use crate::limits::KEPT_WITHIN;
use crate::looked::Looked;
use crate::tier_circuit::{Passage, TierCircuit};
use crate::tier_memcached::MemcachedLane;
use crate::tier_redis::RedisLane;
use crate::tier_url::TierUrl;

pub struct ServerLane {
    /// As it may be shown.
    pub name: String,
    /// By which names find their server.
    pub weight_of: u64,
    engine: Engine,
    circuit: TierCircuit,
}

enum Engine {
    Memcached(MemcachedLane),
    Redis(Box<RedisLane>),
}

/// Why something came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// It is left alone.
    Alone,
    TimedOut,
    /// A sentence.
    Broken(String),
}

impl ServerLane {
    pub fn new(url: &TierUrl, authorities: Option<&[u8]>, run: u64) -> Result<ServerLane, String> {
        let engine = match url {
            TierUrl::Memcached(address) => Engine::Memcached(MemcachedLane::new(address.clone())),
            TierUrl::Redis { url, .. } => {
                Engine::Redis(Box::new(RedisLane::new(url, authorities.map(<[u8]>::to_vec), run)?))
            }
        };
        let name = url.shown();
        Ok(ServerLane { weight_of: digest(name.as_bytes()), name, engine, circuit: TierCircuit::default() })
    }

    pub fn shown(&self) -> TierServer {
        TierServer { name: self.name.clone(), trouble: self.circuit.trouble() }
    }

    pub async fn look(&self, key: &str, wants_right: bool, patience: Duration, told: &Told) -> Result<Looked, Failed> {
        let looked = async {
            match &self.engine {
                Engine::Memcached(lane) => lane.look(key, wants_right).await,
                Engine::Redis(lane) => lane.look(key, wants_right).await,
            }
        };
        self.within(patience, looked, told).await
    }

    /// `false`: it would not have it.
    pub async fn put(&self, key: &str, value: &[u8], life_s: u64, told: &Told) -> Result<bool, Failed> {
        let put = async {
            match &self.engine {
                Engine::Memcached(lane) => lane.put(key, value, life_s).await,
                Engine::Redis(lane) => lane.put(key, value, life_s).await,
            }
        };
        self.within(KEPT_WITHIN, put, told).await
    }

    pub async fn delete(&self, key: &str, told: &Told) -> Result<(), Failed> {
        let delete = async {
            match &self.engine {
                Engine::Memcached(lane) => lane.delete(key, None).await,
                Engine::Redis(lane) => lane.delete(key).await,
            }
        };
        self.within(KEPT_WITHIN, delete, told).await
    }

    pub async fn give_back(&self, key: &str, token: u64, told: &Told) -> Result<(), Failed> {
        let given = async {
            match &self.engine {
                Engine::Memcached(lane) => lane.delete(key, Some(token)).await,
                Engine::Redis(lane) => lane.give_back(key, token).await,
            }
        };
        self.within(KEPT_WITHIN, given, told).await
    }

    async fn within<T>(
        &self,
        patience: Duration,
        what: impl Future<Output = Result<T, String>>,
        told: &Told,
    ) -> Result<T, Failed> {
        match self.circuit.passage(Instant::now()) {
            Passage::Open => {}
            Passage::Shut => return Err(Failed::Alone),
            Passage::Trial => match &self.engine {
                Engine::Memcached(lane) => lane.hang_up(),
                Engine::Redis(lane) => lane.hang_up().await,
            },
        }
        let failed = match tokio::time::timeout(patience, what).await {
            Ok(Ok(came)) => {
                self.circuit.answered();
                return Ok(came);
            }
            Ok(Err(why)) => Failed::Broken(why),
            Err(_) => Failed::TimedOut,
        };
        let why = match &failed {
            Failed::Broken(why) => why.clone(),
            _ => format!("no answer within {} ms", patience.as_millis()),
        };
        if self.circuit.failed(&why, Instant::now()) {
            told(format!("warning: {} of [shared] url is left alone for a while: {why}", self.name));
        }
        Err(failed)
    }
}

/// Where a sentence for the operator goes.
pub type Told = dyn Fn(String) + Send + Sync;

/// The same on all nodes.
fn digest(text: &[u8]) -> u64 {
    let sum = text
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, &byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    mixed(sum)
}

/// Every bit of what comes out depends on every bit of what goes in (the finalizer of SplitMix64).
pub fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}
