//! The tier that nodes of a fleet share: records in memcached, Redis or Valkey, and who fetches for all.
//!
//! A [`TierService`] is the cache's [`SecondTier`](cache::SecondTier). It seals each record for its name by a key that the nodes have and nobody else
//! (`sealed_record`), talks to the servers on a thread of its own (`tier_memcached`, `tier_redis`), leaves one alone that fails (`tier_circuit`), and
//! bounds what is on its way. How far what it finds is believed is for the cache to say: it knows what was purged.

pub mod limits;
mod looked;
mod sealed_record;
mod tier_bandwidth;
mod tier_circuit;
mod tier_memcached;
mod tier_redis;
mod tier_server;
mod tier_service;
mod tier_url;

pub use tier_service::{TierService, TierSettings};
pub use tier_url::TierUrl;
