//! Everything the admin address can tell of one moment, gathered once and then only formatted.
//!
//! The only file of the admin that looks at the running proxy.

use cache::{CacheStats, DiskStats, TierFigures, TierServer};
use fleet::FleetStatus;
use proxy::counters::{COUNTERS, CoreCounters, CounterKind};
use proxy::settings::{ListenAddress, ListenerTls};
use proxy::{CodingStatus, Edge, HitRatios, MemoryStatus, OriginStatus, Proxy, VclStatus, wall_now_ms};

use super::exchange_figures::ExchangeFigures;
use crate::acme_board::AcmeStatus;
use crate::addresses::show_listen;
use crate::panics::{self, PanicFigures};
use crate::process_memory;
use crate::reload_board::ReloadFigures;
use crate::sandbox::{self, SandboxState};
use crate::upgrade_board::ProcessFigures;

/// The figures of one moment.
#[derive(Clone, Debug)]
pub struct Observation {
    pub server_name: String,
    pub workers: usize,
    /// By worker.
    pub loads: Vec<WorkerLoad>,
    pub uptime_ms: u64,
    /// In the order of `COUNTERS`, summed over the cores.
    pub counters: Vec<u64>,
    pub exchanges: ExchangeFigures,
    pub cache: CacheStats,
    pub disks: Vec<DiskStats>,
    pub origins: Vec<OriginStatus>,
    /// Proxies that the forward proxy asks.
    pub parents: Vec<OriginStatus>,
    /// The nodes of the fleet.
    pub nodes: Vec<OriginStatus>,
    /// Of the last five minutes, and of the last hour.
    pub hit_ratios: [HitRatios; 2],
    pub vcls: Vec<VclStatus>,
    pub edges: Vec<Edge>,
    /// Lines that the log took and could not write.
    pub log_lines_lost: u64,
    /// The time of day, in seconds since 1970.
    pub now_s: u64,
    /// What clients of TLS are shown.
    pub certificates: Vec<CertificateStatus>,
    pub acme: Vec<AcmeStatus>,
    /// Orders, and those of them that failed.
    pub acme_counts: (u64, u64),
    pub reloads: ReloadFigures,
    pub processes: ProcessFigures,
    pub panics: PanicFigures,
    /// Of the log of purges that is shared, if one is.
    pub fleet: Option<FleetStatus>,
    pub fleet_lease_lapsed: bool,
    /// The tier that nodes share, and its servers.
    pub shared: Option<(TierFigures, Vec<TierServer>)>,
    /// As the kernel counts it for the process.
    pub resident_bytes: Option<u64>,
    /// What the process gave up at its start.
    pub sandbox: SandboxState,
    pub memory: MemoryStatus,
    pub coding: CodingStatus,
    /// Orders to purge: selector, what came of it, and how many.
    pub purge_orders: Vec<(&'static str, &'static str, u64)>,
}

/// A certificate of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    pub listener: String,
    pub names: Vec<String>,
    /// Until when it is good, in seconds since 1970.
    pub until_s: u64,
}

fn certificates(proxy: &Proxy) -> Vec<CertificateStatus> {
    let of_listener = |(address, tls): (ListenAddress, ListenerTls)| {
        tls.certificates().into_iter().map(move |certificate| CertificateStatus {
            listener: show_listen(&address),
            names: certificate.names().to_vec(),
            until_s: certificate.validity().until_s,
        })
    };
    proxy.listeners_tls().into_iter().flat_map(of_listener).collect()
}

/// What one worker has to do with.
#[derive(Clone, Copy, Debug)]
pub struct WorkerLoad {
    pub connections: u64,
    pub requests: u64,
}

impl WorkerLoad {
    fn of(core: &CoreCounters) -> WorkerLoad {
        WorkerLoad { connections: core.connections_active.get(), requests: core.requests_active.get() }
    }
}

/// What the proxy itself does not know.
#[derive(Clone, Debug)]
pub struct Circumstances {
    pub server_name: String,
    pub uptime_ms: u64,
    pub log_lines_lost: u64,
    pub acme: Vec<AcmeStatus>,
    pub acme_counts: (u64, u64),
    pub reloads: ReloadFigures,
    pub processes: ProcessFigures,
    pub fleet: Option<FleetStatus>,
}

impl Observation {
    pub fn of(proxy: &Proxy, circumstances: Circumstances) -> Observation {
        let cores = proxy.core_counters();
        let mut counters = vec![0u64; COUNTERS.len()];
        for core in cores {
            counters.iter_mut().zip(core.values()).for_each(|(sum, value)| *sum = sum.wrapping_add(value));
        }
        for (value, counter) in counters.iter_mut().zip(COUNTERS) {
            // Cores are read one after the other, so a gauge that moves between two may seem to be below nothing.
            if counter.kind == CounterKind::Gauge && *value > i64::MAX as u64 {
                *value = 0;
            }
        }
        Observation {
            server_name: circumstances.server_name,
            workers: cores.len(),
            loads: cores.iter().map(|core| WorkerLoad::of(core)).collect(),
            uptime_ms: circumstances.uptime_ms,
            counters,
            exchanges: ExchangeFigures::of(cores, proxy.counted_routes()),
            cache: proxy.cache_stats(),
            disks: proxy.disks_status(),
            origins: proxy.origins_status(),
            parents: proxy.parents_status(),
            nodes: proxy.nodes_status(),
            hit_ratios: [5, 60].map(|minutes| proxy.hit_ratios(minutes)),
            vcls: proxy.vcls_status(),
            edges: proxy.edges(),
            log_lines_lost: circumstances.log_lines_lost,
            now_s: wall_now_ms() / 1_000,
            certificates: certificates(proxy),
            acme: circumstances.acme,
            acme_counts: circumstances.acme_counts,
            reloads: circumstances.reloads,
            processes: circumstances.processes,
            panics: panics::figures(),
            fleet: circumstances.fleet,
            fleet_lease_lapsed: proxy.has_fleet_lease_lapsed(),
            shared: proxy.shared_tier_status(),
            resident_bytes: process_memory::resident_bytes(),
            sandbox: sandbox::state(),
            memory: proxy.memory_status(),
            coding: proxy.coding_status(),
            purge_orders: proxy.purge_orders_counts(),
        }
    }

    /// A counter by its name in `proxy::counters`, which panics where there is none: a figure under a name that is written wrong
    /// would be 0 for ever. Lines that the log lost later on count as lost, not as written.
    pub fn counter(&self, name: &str) -> u64 {
        let index = COUNTERS.iter().position(|counter| counter.name == name);
        let value = self.counters[index.unwrap_or_else(|| panic!("no counter is called {name}"))];
        match name {
            "log_lines" => value.saturating_sub(self.log_lines_lost),
            "log_lines_lost" => value + self.log_lines_lost,
            _ => value,
        }
    }

    /// Answers from the store without asking an origin first, of all that the store or an origin was asked for.
    pub fn hit_percent(&self) -> Option<f64> {
        let sum = |names: &[&str]| names.iter().map(|name| self.counter(name)).sum::<u64>();
        let hits = sum(&["hits", "hits_stale"]);
        let asked = hits + sum(&["revalidated", "coalesced", "misses", "passes", "errors"]);
        (asked > 0).then(|| hits as f64 * 100.0 / asked as f64)
    }
}

#[cfg(test)]
pub mod tests {
    use std::sync::Arc;

    use acme::NameSet;
    use proxy::origin::{AddressOrder, AddressState, AddressStatus};
    use proxy::settings::UrlShare;
    use proxy::{BackendStatus, CodingClassStatus, HealthOrder, ProbeStatus};

    use super::super::exchange_figures::tests::sample_exchanges;
    use fleet::OrderCounts;

    use super::*;
    use crate::reload_board::{LastReload, ReloadOutcome};

    fn probe() -> ProbeStatus {
        let last = "200".to_owned();
        ProbeStatus { good: 4, threshold: 3, window: 8, probes_count: 40, last, last_took_ms: 2 }
    }

    /// Every counter has its own value, so that a mix-up shows.
    pub fn sample() -> Observation {
        let address = |label: &str, state| {
            let label = label.into();
            AddressStatus {
                label,
                state,
                share: UrlShare { weight: 7, is_backup: true },
                permille: 250,
                ordered: AddressOrder::Auto,
                weight_is_ordered: false,
                probe: Some(probe()),
                in_use: 3,
                idle: 4,
                http2_connections: 6,
                failures: 5,
            }
        };
        Observation {
            server_name: "lar\"der".to_owned(),
            workers: 2,
            loads: vec![WorkerLoad { connections: 3, requests: 1 }, WorkerLoad { connections: 4, requests: 0 }],
            uptime_ms: 61_500,
            counters: (100..100 + COUNTERS.len() as u64).collect(),
            exchanges: sample_exchanges(),
            cache: CacheStats { memory_bytes_max: 1 << 20, memory_bytes: 77, objects: 5, ..CacheStats::default() },
            disks: Vec::new(),
            origins: vec![OriginStatus {
                name: Arc::from("we\\b"),
                addresses: vec![
                    address("127.0.0.1:3000", AddressState::Up),
                    address("127.0.0.1:3001", AddressState::Ejected { for_ms: 1_500 }),
                ],
                balance: "least-conn",
                connections: 7,
                connections_max: 100,
                queued: 1,
                asked: 77,
                received_bytes: 7_000,
                sent_bytes: 700,
                faults: std::array::from_fn(|at| at as u64 + 1),
            }],
            parents: Vec::new(),
            nodes: Vec::new(),
            hit_ratios: [(300, Some(87.654)), (61, None)].map(|(seconds, percent)| HitRatios {
                seconds,
                request_percent: percent,
                byte_percent: percent.map(|percent| -percent),
                memory_percent: percent.map(|_| 75.0),
                disk_percent: percent.map(|_| 25.0),
            }),
            vcls: vec![VclStatus {
                name: "boot".to_owned(),
                is_active: true,
                is_warm: true,
                labels: vec!["shop".to_owned()],
                under_way: 3,
                summary: "1 backend".to_owned(),
                backends: vec![BackendStatus {
                    origin: OriginStatus {
                        name: Arc::from("default"),
                        addresses: Vec::new(),
                        connections: 0,
                        balance: "round-robin",
                        connections_max: 9,
                        queued: 0,
                        asked: 0,
                        received_bytes: 0,
                        sent_bytes: 0,
                        faults: Default::default(),
                    },
                    healthy: true,
                    changed_ms: 1_000,
                    ordered: HealthOrder::Auto,
                    probe: Some(probe()),
                }],
            }],
            edges: vec![Edge { machine: "fetch", from: "Send".to_owned(), to: "Reply".to_owned(), taken: 9 }],
            log_lines_lost: 2,
            now_s: 1_000_000,
            certificates: vec![CertificateStatus {
                listener: "0.0.0.0:443".to_owned(),
                names: vec!["a.example".to_owned(), "b.example".to_owned()],
                until_s: 1_000_000 + 3 * 86_400 + 7,
            }],
            acme: vec![AcmeStatus {
                names: NameSet::new(["a.example", "b.example"]).unwrap(),
                directory: "https://ca.example/dir".to_owned(),
                until_s: Some(1_000_000 + 3 * 86_400 + 7),
                renew_at_s: Some(900_000),
                failures: 4,
                last_failure: Some("connection refused".to_owned()),
            }],
            acme_counts: (6, 5),
            processes: ProcessFigures { deaths: 3, upgrades_refused: 1 },
            panics: PanicFigures { count: 2, locations: Vec::new(), reports: vec!["it was ended".to_owned()] },
            reloads: ReloadFigures {
                taken: 8,
                refused: 7,
                last: Some(LastReload {
                    wall_ms: 999_000_500,
                    outcome: ReloadOutcome::refused("larder.toml:3: error\nsecret".to_owned()),
                }),
            },
            fleet: Some(FleetStatus {
                node: "edge-1".to_owned(),
                lease_ms: 5_000,
                number: 12,
                trouble: Some("connection refused".to_owned()),
                backlog: 3,
                counts: OrderCounts {
                    acknowledged: [1, 2, 4],
                    fell_short: 5,
                    told: 9,
                    lost: 2,
                    applied: 13,
                    condemned: 6,
                },
                nodes: Vec::new(),
            }),
            fleet_lease_lapsed: true,
            shared: Some((
                TierFigures {
                    asked: 901,
                    found: 902,
                    waited: 903,
                    timeouts: 904,
                    errors: 905,
                    skipped: 906,
                    refused: 907,
                    kept: 908,
                    not_kept: 909,
                    bytes_received: 910,
                    bytes_sent: 911,
                },
                vec![TierServer { name: "memcached://203.0.113.5:11211".to_owned(), trouble: None }],
            )),
            resident_bytes: Some(4096),
            sandbox: SandboxState { files: Some(6), calls: true },
            memory: MemoryStatus { limit_bytes: 3 << 20, base_bytes: 2 << 20, occupied_bytes: 4 << 20, refuses: true },
            purge_orders: vec![("tags", "dropped", 3)],
            coding: CodingStatus {
                threads: 3,
                memory_bytes: 51,
                memory_refused: 52,
                now: CodingClassStatus {
                    jobs: 31,
                    bytes: 32,
                    refused: 33,
                    abandoned: 34,
                    panicked: 35,
                    cpu_micros: 1_000_036,
                    waiting: 37,
                    waiting_bytes: 38,
                },
                idle: CodingClassStatus { jobs: 41, ..CodingClassStatus::default() },
            },
        }
    }

    #[test]
    fn lines_that_the_log_lost_were_not_written() {
        let (seen, index) = (sample(), |name| COUNTERS.iter().position(|counter| counter.name == name).unwrap() as u64);
        assert_eq!(seen.counter("log_lines"), 100 + index("log_lines") - 2);
        assert_eq!(seen.counter("log_lines_lost"), 100 + index("log_lines_lost") + 2);
    }
}
