//! Which of several memcacheds has a key: consistent hashing as its two best known clients do it, so that larder finds
//! what they stored and they what larder did. Points on a ring of 32 bits; a key belongs to the first point at or
//! behind its own. Pure; what is dead is its caller's business.

use md5::{Digest, Md5};

use crate::memcached_gateway::gateway_settings::{MemcachedAddress, MemcachedHash, MemcachedServer};

/// For a server of weight 1.
const POINTS_COUNT: u32 = 160;
/// One MD5 gives so many points of a ketama ring.
const POINTS_PER_DIGEST: usize = 4;
/// A ketama ring leaves memcached's own port out of the names that it hashes.
const PORT_UNSAID: u16 = 11_211;

#[derive(Debug)]
pub(crate) struct ServerRing {
    hash: MemcachedHash,
    /// Where it lies, and whose it is; sorted.
    points: Vec<(u32, u16)>,
}

impl ServerRing {
    pub(crate) fn new(servers: &[MemcachedServer], hash: MemcachedHash) -> ServerRing {
        let mut points = Vec::new();
        if servers.len() > 1 {
            let weight: u32 = servers.iter().map(|server| server.weight).sum();
            for (index, server) in servers.iter().enumerate() {
                let own = match hash {
                    MemcachedHash::Ketama => ketama_points(server, weight, servers.len()),
                    MemcachedHash::NginxConsistent => nginx_points(server),
                };
                points.extend(own.into_iter().map(|point| (point, index as u16)));
            }
        }
        match hash {
            // Equal points keep the order of their servers.
            MemcachedHash::NginxConsistent => {
                points.sort_by_key(|&(point, _)| point);
                points.dedup_by_key(|&mut (point, _)| point);
            }
            MemcachedHash::Ketama => points.sort_unstable(),
        }
        ServerRing { hash, points }
    }

    /// The servers for this key, each once, whose it is first.
    pub(crate) fn order(&self, key: &[u8]) -> impl Iterator<Item = usize> {
        let first = match (self.points.is_empty(), self.hash) {
            (true, _) => 0,
            (false, MemcachedHash::Ketama) => self.from(ketama_hash(key)),
            (false, MemcachedHash::NginxConsistent) => self.from(crc32fast::hash(key)),
        };
        let mut seen = [0_u64; SERVERS_MAX / 64];
        let around = self.points[first..].iter().chain(&self.points[..first]);
        let only = self.points.is_empty().then_some(0);
        only.into_iter().chain(around.map(|&(_, server)| usize::from(server)).filter(move |&server| {
            let (word, bit) = (server / 64, 1 << (server % 64));
            let is_first = seen[word] & bit == 0;
            seen[word] |= bit;
            is_first
        }))
    }

    fn from(&self, hash: u32) -> usize {
        let at = self.points.partition_point(|&(point, _)| point < hash);
        if at == self.points.len() { 0 } else { at }
    }
}

/// Servers of one route.
pub const SERVERS_MAX: usize = 256;
/// What one server may weigh.
pub const WEIGHT_MAX: u32 = 1_000;

fn host_and_port(address: &MemcachedAddress) -> (&[u8], Option<u16>) {
    match address {
        MemcachedAddress::Tcp { host, port } => (host.as_bytes(), Some(*port)),
        MemcachedAddress::Unix(path) => (path.as_os_str().as_encoded_bytes(), None),
    }
}

/// Each point is the CRC of host, NUL, port and the point before.
fn nginx_points(server: &MemcachedServer) -> Vec<u32> {
    let (host, port) = host_and_port(&server.address);
    let mut base = crc32fast::Hasher::new();
    base.update(host);
    base.update(b"\0");
    if let Some(port) = port {
        base.update(port.to_string().as_bytes());
    }
    let mut previous = 0_u32;
    let mut points = Vec::with_capacity((server.weight * POINTS_COUNT) as usize);
    for _ in 0..server.weight * POINTS_COUNT {
        let mut hasher = base.clone();
        hasher.update(&previous.to_le_bytes());
        previous = hasher.finalize();
        points.push(previous);
    }
    points
}

/// Four points from the MD5 of each `host:port-number`; how many follows from the share of all weights.
fn ketama_points(server: &MemcachedServer, weights: u32, servers: usize) -> Vec<u32> {
    let per_digest = f64::from(POINTS_COUNT) / POINTS_PER_DIGEST as f64;
    let share = f64::from(server.weight) / f64::from(weights);
    // What libmemcached adds so that a whole number stays one.
    let digests = (share * per_digest * servers as f64 + 0.000_000_000_1).floor() as usize;
    let (host, port) = host_and_port(&server.address);
    let mut name = host.to_vec();
    match port {
        Some(port) if port != PORT_UNSAID => name.extend_from_slice(format!(":{port}").as_bytes()),
        // libmemcached gives a socket the port 0.
        None => name.extend_from_slice(b":0"),
        Some(_) => {}
    }
    let numbered = |number: usize| Md5::digest([&name[..], format!("-{number}").as_bytes()].concat());
    (0..digests).flat_map(|number| points_of(&numbered(number))).collect()
}

fn points_of(digest: &[u8]) -> [u32; POINTS_PER_DIGEST] {
    std::array::from_fn(|at| {
        u32::from_le_bytes([digest[4 * at], digest[4 * at + 1], digest[4 * at + 2], digest[4 * at + 3]])
    })
}

fn ketama_hash(key: &[u8]) -> u32 {
    points_of(&Md5::digest(key))[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(text: &[(&str, u16, u32)]) -> Vec<MemcachedServer> {
        let server = |&(host, port, weight): &(&str, u16, u32)| MemcachedServer {
            address: MemcachedAddress::Tcp { host: host.to_owned(), port },
            weight,
        };
        text.iter().map(server).collect()
    }

    const HOST: &str = "127.0.0.1";
    const EVEN: [(&str, u16, u32); 3] = [(HOST, 21101, 1), (HOST, 21102, 1), (HOST, 21103, 1)];
    const WEIGHTED: [(&str, u16, u32); 3] = [(HOST, 21101, 1), (HOST, 21102, 3), (HOST, 21103, 2)];
    const NAMED: [(&str, u16, u32); 3] =
        [("cache1.example", 11211, 1), ("cache2.example", 11211, 1), ("cache3.example", 11212, 1)];

    /// `expect` has a digit for each of `k0` to `k119` and four more keys: the index of the server that has it.
    fn check(of: &[(&str, u16, u32)], hash: MemcachedHash, expect: &str) {
        let ring = ServerRing::new(&servers(of), hash);
        let mut keys: Vec<String> = (0..120).map(|number| format!("k{number}")).collect();
        keys.extend(["user:1001", "a", "session/9f8e7d6c5b4a"].map(str::to_owned));
        keys.push("x".repeat(96));
        let found: String =
            keys.iter().filter_map(|key| ring.order(key.as_bytes()).next()).map(|at| at.to_string()).collect();
        assert_eq!(found, expect, "{of:?} by {hash:?}");
    }

    /// Where nginx 1.22's `hash $arg_key consistent` sent each key.
    #[test]
    fn keys_are_where_nginx_puts_them() {
        let even = "2212212221101011100111202002210120112112022101000122000200222020211222121011021121120002022212212221021112220012211222112222";
        let weighted = "2222112221101011210112202101211121112112022111010121100200222022221222121011011121222202021112211221021112221111111222112212";
        check(&EVEN, MemcachedHash::NginxConsistent, even);
        check(&WEIGHTED, MemcachedHash::NginxConsistent, weighted);
    }

    /// Where libmemcached 1.1.4 looks for each key, with KETAMA_WEIGHTED.
    #[test]
    fn keys_are_where_libmemcached_puts_them() {
        let even = "0222122212001012210202102212121211201212200010112012022110211011001022211112020022010120011022201100211122021200122021211120";
        let weighted = "0222121212101012210202112212121211201112221110112012222110211111201022111112120012010120111022201111211122021110122021211121";
        let named = "0111121102202211020111201202220210200212112120122111021201120211012001220002110022010222021022111022012100021200200110200110";
        check(&EVEN, MemcachedHash::Ketama, even);
        check(&WEIGHTED, MemcachedHash::Ketama, weighted);
        check(&NAMED, MemcachedHash::Ketama, named);
    }

    #[test]
    fn every_server_has_its_turn_once_and_a_dead_one_leaves_the_others_where_they_are() {
        for hash in [MemcachedHash::Ketama, MemcachedHash::NginxConsistent] {
            let (all, two) = (ServerRing::new(&servers(&EVEN), hash), ServerRing::new(&servers(&EVEN[..2]), hash));
            for number in 0..500 {
                let key = format!("key-{number}");
                let order: Vec<usize> = all.order(key.as_bytes()).collect();
                let mut sorted = order.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, [0, 1, 2]);
                let survivor = order.iter().copied().find(|&at| at != 2);
                assert_eq!(two.order(key.as_bytes()).next(), survivor, "{key}");
            }
            let one = ServerRing::new(&servers(&EVEN[..1]), hash);
            assert_eq!(one.order(b"k").collect::<Vec<_>>(), [0]);
        }
    }
}
