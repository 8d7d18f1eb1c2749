//! How much somebody may ask in a while: a table of when each one's next request is due, for all cores together. By the generic cell rate
//! algorithm (ITU-T I.371): one number for each, and no timer.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::limits::{RATE_CLIENTS_MAX, RATE_SHARDS};
use crate::route_rules::field_template::{FieldTemplate, TemplateSource};

/// So many requests in a while, and so many at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Between two requests of a client that asks evenly; at least 1.
    pub period_us: u64,
    /// Requests that a client which rested may send at once; at least 1.
    pub burst: u32,
}

impl Rate {
    /// So many a second, and as many at once.
    pub(crate) fn per_second(requests: u32) -> Rate {
        Rate { period_us: (1_000_000 / u64::from(requests.max(1))).max(1), burst: requests.max(1) }
    }
}

/// When each one's next request is due, in microseconds, by a keyed digest of who it is.
#[derive(Debug)]
pub(crate) struct RateTable(Box<[Mutex<HashMap<u64, u64>>]>);

impl Default for RateTable {
    fn default() -> RateTable {
        RateTable((0..RATE_SHARDS).map(|_| Mutex::default()).collect())
    }
}

impl RateTable {
    /// Takes one request of whoever this is. The error: after how many microseconds there will be one.
    pub(crate) fn take(&self, who: u64, rate: Rate, now_us: u64) -> Result<(), u64> {
        let mut shard = self.0[(who >> 32) as usize % RATE_SHARDS].lock();
        let due = shard.get(&who).copied().unwrap_or(0).max(now_us);
        let next = due.saturating_add(rate.period_us);
        let ahead_max = rate.period_us.saturating_mul(u64::from(rate.burst));
        let ahead = next.saturating_sub(now_us);
        if ahead > ahead_max {
            return Err(ahead - ahead_max);
        }
        if shard.len() >= RATE_CLIENTS_MAX / RATE_SHARDS && !shard.contains_key(&who) {
            make_room(&mut shard, now_us);
        }
        shard.insert(who, next);
        Ok(())
    }
}

/// Who owes nothing may as well be unknown. Where all do, one of them has luck: the table does not grow.
#[cold]
fn make_room(shard: &mut HashMap<u64, u64>, now_us: u64) {
    shard.retain(|_, due| *due > now_us);
    if shard.len() >= RATE_CLIENTS_MAX / RATE_SHARDS
        && let Some(&lucky) = shard.keys().next()
    {
        shard.remove(&lucky);
    }
}

/// A client's address, or what a key makes of its request.
pub(crate) type Counterpart = SmallVec<[u8; 16]>;

/// Whom a request counts for, by a key of the route's or by its client. `None`: who has nothing that counts is not counted, as in nginx.
pub(crate) fn whom_it_counts_for(
    key: Option<&FieldTemplate>,
    source: &TemplateSource<'_>,
    client: IpAddr,
) -> Option<Counterpart> {
    match key {
        None => Some(match client_network(client) {
            IpAddr::V4(v4) => Counterpart::from_slice(&v4.octets()),
            IpAddr::V6(v6) => Counterpart::from_slice(&v6.octets()),
        }),
        Some(key) => {
            let mut who = Vec::new();
            key.write(source, &mut who);
            (!who.is_empty()).then(|| Counterpart::from_vec(who))
        }
    }
}

/// Who a client is: an IPv4 address, or an IPv6 network of 64 bits, of which everybody has as many addresses as they like.
pub(crate) fn client_network(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() >> 64 << 64)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_an_address_or_a_network_of_ipv6() {
        let network = |text: &str| client_network(text.parse().unwrap()).to_string();
        assert_eq!(network("192.0.2.7"), "192.0.2.7");
        assert_eq!(network("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
    }

    fn taken(table: &RateTable, who: u64, rate: Rate, at_ms: u64, tries: u32) -> u32 {
        (0..tries).map(|_| u32::from(table.take(who, rate, at_ms * 1_000).is_ok())).sum()
    }

    #[test]
    fn a_rest_lets_a_burst_and_then_the_rate_holds() {
        let (table, rate) = (RateTable::default(), Rate { period_us: 100_000, burst: 5 });
        assert_eq!(taken(&table, 1, rate, 1_000, 20), 5);
        assert_eq!(taken(&table, 2, rate, 1_000, 3), 3, "another client has a share of its own");
        assert_eq!(table.take(1, rate, 1_000_000), Err(100_000));
        assert_eq!(taken(&table, 1, rate, 1_300, 20), 3);
        assert_eq!(taken(&table, 1, rate, 60_000, 20), 5, "what is not used is not saved for ever");
        let over_a_minute: u32 = (0..6_000).map(|at| taken(&table, 3, rate, 100_000 + at * 10, 1)).sum();
        assert!((600..=605).contains(&over_a_minute), "{over_a_minute}");
    }

    #[test]
    fn more_than_a_thousand_a_second_are_counted_as_well() {
        let (table, rate) = (RateTable::default(), Rate::per_second(5_000));
        let over_a_second: u32 = (0..1_000).map(|at| taken(&table, 1, rate, 10_000 + at, 20)).sum();
        assert!((9_990..=10_010).contains(&over_a_second), "{over_a_second}");
    }

    #[test]
    fn the_table_is_bounded() {
        let (table, rate) = (RateTable::default(), Rate { period_us: 1_000_000_000, burst: 1 });
        (0..3 * RATE_CLIENTS_MAX as u64).for_each(|who| _ = table.take(who << 32 | who, rate, 1));
        let known: usize = table.0.iter().map(|shard| shard.lock().len()).sum();
        assert!(known <= RATE_CLIENTS_MAX, "{known}");
    }
}
