//! larder's figures under the names that Varnish's users graph. A counter is here only if larder knows its figure; what Varnish
//! counts of threads, locks and workspaces has no counterpart, and is left out rather than shown as 0.

use proxy::{BackendStatus, ProbeStatus};
use store::disk::DiskStats;
use vsm::{Counter, CounterClass};

use crate::admin::observation::Observation;

/// A counter, and its figure of a moment in which something was looked at.
pub type Row<T> = (Counter, fn(&T) -> u64);

fn of(observation: &Observation, names: &[&str]) -> u64 {
    names.iter().map(|name| observation.counter(name)).sum()
}

pub const MGT: &[Row<Observation>] =
    &[(Counter::total("uptime", "Seconds since serving began").seconds(), |it| it.uptime_ms / 1_000)];

pub const MAIN: &[Row<Observation>] = &[
    (Counter::total("uptime", "Seconds since the start").seconds(), |it| it.uptime_ms / 1_000),
    (Counter::total("sess_conn", "Client connections accepted"), |it| of(it, &["connections_accepted"])),
    (Counter::total("sess_dropped", "Client connections closed at once because of a limit"), |it| {
        of(it, &["connections_refused"])
    }),
    (Counter::total("sess_closed", "Client connections ended"), |it| of(it, &["connections_handled"])),
    (Counter::gauge("larder_sess_open", "Client connections open"), |it| of(it, &["connections_active"])),
    (Counter::total("client_req_400", "Requests refused as malformed or over a limit"), |it| of(it, &["refused"])),
    (Counter::total("client_req", "Requests read"), |it| of(it, &["requests"])),
    // Who waited for somebody else's fetch has hit what that brought; what the origin confirmed first has missed.
    (Counter::total("cache_hit", "Answered from the store"), |it| of(it, &["hits", "hits_stale", "coalesced"])),
    (Counter::total("cache_hit_grace", "Of these, those on what was stale"), |it| of(it, &["hits_stale"])),
    (Counter::total("cache_miss", "Fetched, or confirmed by the origin"), |it| of(it, &["misses", "revalidated"])),
    (Counter::total("backend_conn", "Connections opened to origins"), |it| of(it, &["origin_connections_opened"])),
    (Counter::total("backend_busy", "Requests refused because an origin was too busy"), |it| {
        of(it, &["origin_errors_busy"])
    }),
    (Counter::total("backend_fail", "Origin connections that failed"), |it| {
        of(it, &["origin_errors_connect", "origin_errors_resolve"])
    }),
    (Counter::total("backend_reuse", "Requests on an origin connection that was open"), |it| {
        of(it, &["origin_connections_reused"])
    }),
    (Counter::total("backend_retry", "Requests sent again, the connection having died"), |it| {
        of(it, &["origin_retries"])
    }),
    (Counter::total("backend_req", "Requests sent to origins"), |it| of(it, &["origin_requests"])),
    (Counter::total("fetch_failed", "Fetches that failed, for whatever reason"), |it| {
        let failures = ["resolve", "connect", "first_byte", "protocol", "truncated", "busy"];
        failures.iter().map(|kind| it.counter(&format!("origin_errors_{kind}"))).sum()
    }),
    (Counter::total("n_gzip", "Bodies that were gzipped"), |it| of(it, &["bodies_encoded"])),
    (Counter::total("n_gunzip", "Bodies that were gunzipped"), |it| of(it, &["bodies_decoded"])),
    (Counter::total("n_test_gunzip", "Gzipped bodies that were checked"), |it| of(it, &["codings_checked"])),
    (Counter::total("esi_req", "Requests for what pages include"), |it| of(it, &["esi_requests"])),
    (Counter::total("esi_errors", "ESI that could not be read"), |it| of(it, &["esi_errors"])),
    (Counter::total("esi_warnings", "ESI that is not as it should be"), |it| of(it, &["esi_warnings"])),
    (Counter::gauge("threads", "Workers"), |it| it.workers as u64),
    (Counter::total("busy_sleep", "Requests that waited for somebody else's fetch"), |it| of(it, &["waited"])),
    (Counter::total("busy_wakeup", "Of these, those that were served by it"), |it| of(it, &["coalesced"])),
    (Counter::gauge("n_object", "Objects in memory"), |it| it.cache.objects),
    (Counter::gauge("n_objecthead", "Keys under which something is known"), |it| it.cache.keys),
    (Counter::gauge("n_objectcore", "Objects in memory"), |it| it.cache.objects),
    (Counter::gauge("n_backend", "Backends of all programs"), |it| {
        it.vcls.iter().map(|vcl| vcl.backends.len() as u64).sum()
    }),
    (Counter::total("n_expired", "Objects that left because their life was over"), |it| it.cache.expired),
    (Counter::total("n_lru_nuked", "Objects that left to make room"), |it| it.cache.evictions),
    (Counter::total("s_sess", "Client connections accepted"), |it| of(it, &["connections_accepted"])),
    (Counter::total("s_pipe", "Tunnels opened"), |it| of(it, &["pipes"])),
    (Counter::gauge("n_pipe", "Tunnels open"), |it| of(it, &["tunnels_open"])),
    (Counter::total("pipe_limited", "Tunnels refused because pipe_sess_max were open"), |it| {
        of(it, &["tunnels_refused"])
    }),
    (Counter::total("sess_readahead", "Requests whose first bytes had come with the one before"), |it| {
        of(it, &["requests_pipelined"])
    }),
    (Counter::total("s_pass", "Requests passed to the origin"), |it| of(it, &["passes"])),
    (Counter::total("s_pipe_in", "Bytes from clients through tunnels").bytes(), |it| of(it, &["tunnel_bytes_up"])),
    (Counter::total("s_pipe_out", "Bytes to clients through tunnels").bytes(), |it| of(it, &["tunnel_bytes_down"])),
    (Counter::gauge("n_vcl", "Programs loaded"), |it| it.vcls.len() as u64),
    (Counter::gauge("n_vcl_avail", "Programs that can be used"), |it| it.vcls.len() as u64),
    (Counter::total("vcl_fail", "Failures of programs"), |it| of(it, &["vcl_errors"])),
    (Counter::gauge("bans", "Bans in force"), |it| it.cache.bans),
    (Counter::total("bans_obj_killed", "Objects that bans hit"), |it| it.cache.banned),
    (Counter::total("bans_tests_tested", "Tests of objects against bans, by who asked for them"), |it| {
        it.cache.ban_tests
    }),
    (Counter::total("bans_lurker_tests_tested", "Tests of objects against bans, in the background"), |it| {
        it.cache.ban_tests_behind
    }),
    (Counter::total("req_reset", "Requests over HTTP/2 that clients took back"), |it| of(it, &["http2_resets"])),
    (Counter::total("larder_sess_h2", "Client connections that speak HTTP/2"), |it| of(it, &["http2_connections"])),
    (Counter::total("n_purges", "Purges carried out"), |it| of(it, &["purges"])),
    (Counter::total("n_obj_purged", "Objects that left by purges and unsafe methods"), |it| it.cache.invalidated),
    (Counter::total("larder_bytes_in", "Bytes read from clients").bytes(), |it| of(it, &["bytes_in"])),
    (Counter::total("larder_bytes_out", "Bytes written to clients, heads and bodies").bytes(), |it| {
        of(it, &["bytes_out"])
    }),
    (Counter::total("larder_origin_bytes_in", "Bytes read from origins, heads and bodies").bytes(), |it| {
        of(it, &["origin_bytes_in"])
    }),
];

/// Of what one worker has in use: sessions, or requests.
pub const POOL: &[Row<u64>] = &[(Counter::gauge("live", "In use"), |it| *it)];

/// Of the memory.
pub const SMA: &[Row<Observation>] = &[
    (Counter::total("c_fail", "Bodies that did not fit"), |it| it.cache.overflowed),
    (Counter::gauge("g_alloc", "Objects"), |it| it.cache.objects),
    (Counter::gauge("g_bytes", "Bytes taken, by the account").bytes(), |it| it.cache.memory_bytes),
    (Counter::gauge("g_space", "Bytes left of the limit").bytes(), |it| {
        it.cache.memory_bytes_max.saturating_sub(it.cache.memory_bytes)
    }),
];

/// Of a disk.
pub const SMF: &[Row<DiskStats>] = &[
    (Counter::total("c_req", "Objects written"), |it| it.stored),
    (Counter::total("c_fail", "Objects that were not"), |it| it.refused.iter().map(|(_, count)| count).sum()),
    (Counter::total("c_bytes", "Bytes written").bytes(), |it| it.bytes_written),
    (Counter::gauge("g_alloc", "Objects"), |it| it.objects),
    (Counter::gauge("g_bytes", "Bytes of segments in use").bytes(), |it| it.bytes.saturating_sub(space_of(it))),
    (Counter::gauge("g_space", "Bytes of segments that are free").bytes(), space_of),
];

fn space_of(disk: &DiskStats) -> u64 {
    let share = u128::from(disk.bytes) * u128::from(disk.segments_free);
    share.checked_div(u128::from(disk.segments)).unwrap_or(0) as u64
}

pub const VBE: &[Row<BackendStatus>] = &[
    (Counter::gauge("happy", "The last probes, or all of them where nobody probes").bits(), happy),
    (Counter::gauge("conn", "Connections open"), |it| it.origin.connections as u64),
];

/// As many bits as good ones of the last probes; which ones of them they were is not kept.
fn happy(backend: &BackendStatus) -> u64 {
    match backend.probe {
        Some(ProbeStatus { good, .. }) => 1u64.checked_shl(good).map_or(u64::MAX, |bit| bit - 1),
        None if backend.healthy => u64::MAX,
        None => 0,
    }
}

/// The class of such rows.
pub fn class_of<T>(name: &'static str, meaning: &'static str, order: u32, rows: &[Row<T>]) -> CounterClass {
    CounterClass { name, meaning, order, counters: rows.iter().map(|(counter, _)| *counter).collect() }
}

pub fn figures_of<T>(rows: &[Row<T>], it: &T) -> Vec<u64> {
    rows.iter().map(|(_, figure)| figure(it)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admin::observation::tests::sample;

    fn check(name: &str, expect: u64) {
        let found = MAIN.iter().find(|(counter, _)| counter.name == name).expect("there is such a counter");
        assert_eq!(found.1(&sample()), expect, "{name}");
    }

    #[test]
    fn figures_are_those_of_larder() {
        let sample = sample();
        let of = |name: &str| sample.counter(name);
        check("uptime", 61);
        check("client_req", of("requests"));
        check("cache_hit", of("hits") + of("hits_stale") + of("coalesced"));
        check("cache_miss", of("misses") + of("revalidated"));
        check("n_object", 5);
        check("n_backend", 1);
        check(
            "fetch_failed",
            proxy::counters::COUNTERS
                .iter()
                .map(|row| row.name)
                .filter(|name| name.starts_with("origin_errors_"))
                .map(of)
                .sum(),
        );
        assert_eq!(figures_of(SMA, &sample), [0, 5, 77, (1 << 20) - 77]);
        assert_eq!(figures_of(VBE, &sample.vcls[0].backends[0]), [0b1111, 0]);
    }

    /// Each is of something: of a counter, or of the cache, the programs, the clock. A name that is written wrong panics.
    #[test]
    fn every_figure_moves_with_what_it_is_of() {
        let none = Observation { counters: vec![0; proxy::counters::COUNTERS.len()], ..sample() };
        let all = Observation { counters: vec![1 << 20; proxy::counters::COUNTERS.len()], ..sample() };
        let (none, all) = (figures_of(MAIN, &none), figures_of(MAIN, &all));
        let counted = none.iter().zip(all).filter(|(before, after)| **before != *after).count();
        assert_eq!(MAIN.len() - counted, 15);
    }

    #[test]
    fn names_are_unique() {
        for names in [MAIN.iter().map(|row| row.0.name).collect::<Vec<_>>(), MGT.iter().map(|row| row.0.name).collect()]
        {
            let unique: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(unique.len(), names.len());
        }
    }
}
