//! What a core counts, each core in a block of its own: adding is a relaxed load and store by the one thread
//! that owns the block, reading sums over blocks.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::access_log::CacheVerdict;
use crate::exchange_tally::ExchangeTally;

/// One number that only its own core changes.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Not a fetch-add: there is one writer, and a locked instruction costs more than the rest of a hit's counting.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
    }

    /// For gauges that are counted anew.
    #[inline]
    pub fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    #[inline]
    pub fn sub(&self, n: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_sub(n), Ordering::Relaxed);
    }

    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What Prometheus calls a counter, by its kind, its name and, where that breaks Prometheus' conventions, another one.
macro_rules! metric_name {
    ($kind:ident $_name:ident as $metric:ident) => { metric_name!($kind $metric) };
    (Total $name:ident) => { concat!("larder_", stringify!($name), "_total") };
    (Gauge $name:ident) => { concat!("larder_", stringify!($name)) };
}

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident $(as $metric:ident)?: $kind:ident, $help:literal;)*) => {
        /// The counters of one core.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub struct CoreCounters {
            $($(#[$doc])* pub $name: Count,)*
            pub exchanges: ExchangeTally,
        }

        /// Every counter, in the order of [`CoreCounters::values`].
        pub const COUNTERS: &[CounterDefinition] = &[$(CounterDefinition {
            name: stringify!($name),
            metric: metric_name!($kind $name $(as $metric)?),
            former_metric: metric_name!($kind $name),
            kind: CounterKind::$kind,
            help: $help,
        },)*];

        impl CoreCounters {
            pub fn values(&self) -> impl Iterator<Item = u64> {
                [$(self.$name.get(),)*].into_iter()
            }
        }
    };
}

/// What is told of a counter.
#[derive(Clone, Copy, Debug)]
pub struct CounterDefinition {
    /// In the code, and in `/status`.
    pub name: &'static str,
    /// In `/metrics`.
    pub metric: &'static str,
    /// What it was called there in version 0.1.0.
    pub former_metric: &'static str,
    pub kind: CounterKind,
    pub help: &'static str,
}

/// How a counter behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// Only grows.
    Total,
    /// Goes up and down.
    Gauge,
}

counters! {
    connections_accepted: Total, "Client connections accepted";
    connections_handled: Total, "Client connections ended in good order or by the client";
    connections_refused: Total, "Client connections closed at once because of a limit";
    connections_refused_memory: Total, "Of these, those for which there was no memory (memory.size)";
    connections_active: Gauge, "Client connections open";
    connections_reading: Gauge, "Client connections in the middle of a request";
    connections_writing: Gauge, "Client connections being sent an answer";
    connections_waiting: Gauge, "Idle keep-alive client connections";
    tls_handshakes: Total, "Handshakes of TLS with clients that came to a session";
    tls_resumed: Total, "Of these, those that went on with a session from before";
    tls_early: Total, "Of these, those in which something was asked before the handshake was over (0-RTT)";
    tls_failed_alert: Total, "Handshakes that a client gave up with an alert, because it does not trust the certificate for example";
    tls_failed_nothing_in_common: Total, "Handshakes with clients that know no version, suite or group that is spoken";
    tls_failed_client_certificate: Total, "Handshakes with clients whose certificate is not accepted, or missing";
    tls_failed_not_tls: Total, "Connections that do not speak TLS where it is spoken";
    tls_failed_no_certificate: Total, "Handshakes that were refused because no certificate has come from its authority yet";
    tls_failed_left: Total, "Handshakes that clients did not end, or not within limits.tls_handshake_timeout";
    tls_failed_protocol: Total, "Handshakes that broke the rules of TLS";
    acme_challenges_tls: Total, "Handshakes in which a certificate authority looked whether we are who we say (TLS-ALPN-01)";
    acme_challenges_http: Total, "Requests in which one did (HTTP-01)";
    http2_connections: Total, "Client connections that speak HTTP/2";
    http2_failed: Total, "Of these, those ended because what came broke the rules, or a limit";
    http2_resets: Total, "Requests over HTTP/2 that clients took back before their answer was over";
    requests: Total, "Requests read";
    requests_active: Gauge, "Requests being worked on; those that are answered at once never show";
    requests_pipelined: Total, "Of these, those whose first bytes had come with the request before";
    hits: Total, "Answered from the store, with what was fresh";
    files: Total, "Answered with a file beneath a root";
    memcached_requests: Total, "Requests that are commands to memcached";
    memcached_coalesced: Total, "Gets that waited for somebody else's of the same key";
    memcached_replies: Total, "Replies of memcached's";
    memcached_errors: Total, "Commands that no memcached replied to";
    memcached_ejections: Total, "Times that a memcached was left alone for failing too often";
    memcached_connections_opened: Total, "Connections opened to memcached";
    hits_disk: Total, "Of what was answered from the store, what a disk was asked for first";
    disk_timeouts: Total, "Look-ups for which a disk took longer than limits.disk_read_timeout";
    memcached_chunks_missing: Total, "Values in chunks that were not whole";
    memcached_unheard_failures: Total, "Commands whose reply nobody waited for, and that failed";
    slices_held: Total, "Slices of large bodies read from memory";
    slices_recalled: Total, "Slices brought into memory from a disk";
    slices_fetched: Total, "Slices asked for at an origin by a range";
    hits_stale: Total, "Answered from the store, with what was stale";
    revalidated: Total, "Answered with what the origin had confirmed for it";
    misses: Total, "Answered with what was fetched for it and offered to the store";
    waited: Total, "Began to wait for somebody else's fetch";
    coalesced: Total, "Answered from somebody else's fetch";
    passes: Total, "Answered by the origin past the store";
    synths: Total, "Answers that we made on purpose";
    pipes: Total, "Tunnels opened";
    tunnels: Total, "CONNECT tunnels opened";
    tunnels_open: Gauge, "Tunnels and pipes open";
    tunnels_refused: Total, "Tunnels and pipes refused because limits.tunnels_max were open";
    tunnel_bytes_up as tunnel_received_bytes: Total, "Bytes carried from clients through tunnels and pipes";
    tunnel_bytes_down as tunnel_sent_bytes: Total, "Bytes carried to clients through tunnels and pipes";
    route_rate_limited: Total, "Requests refused because a route's rate_limit was reached";
    route_connections_limited: Total, "Requests refused because as many were under way as a route's connection_limit lets";
    mirrored: Total, "Copies of requests sent to the mirrors of routes";
    mirrors_failed: Total, "Of these, those to which no whole answer came within limits.mirror_timeout";
    mirrors_left_out: Total, "Requests not copied because of a limit (limits.mirrors_max, limits.mirror_body_bytes_max), or whose body did not come";
    auth_requests: Total, "Questions to services of auth_request whether a client may come in";
    auth_requests_known: Total, "Requests of clients that had been let in a moment before, for whom nobody was asked again";
    auth_requests_refused: Total, "Requests that such a service refused";
    auth_requests_failed: Total, "Requests refused because such a service gave no clear answer";
    forward_denied: Total, "Requests to the forward proxy refused by its rules";
    purges: Total, "PURGE requests carried out";
    refused: Total, "Requests refused as malformed or over a limit";
    errors: Total, "Answers that we made because an origin failed";
    bytes_in as received_bytes: Total, "Bytes read from clients";
    bytes_out as sent_bytes: Total, "Bytes written to clients";
    answers_cut: Total, "Answers that ended before their last byte";
    answers_cut_memory: Total, "Of these, those whose clients took nothing of what memory was needed for (memory.size)";
    stalled_bytes: Gauge, "Kept for clients that have taken nothing of their answers for 5 s";
    connections_waited_for: Gauge, "Client connections whose clients have to take more of an answer first";
    origin_connections_opened: Total, "Connections opened to origins";
    origin_connections_reused: Total, "Requests sent on a pooled origin connection";
    origin_http2_connections: Total, "Connections to origins over which HTTP/2 is spoken";
    origin_http2_failed: Total, "Those of them on which the origin broke a rule of HTTP/2";
    origin_http2_silent: Total, "Those of them that ended because the origin did not answer a PING";
    origin_connections_taken_over: Total, "Pooled connections taken from another core";
    origin_requests: Total, "Requests sent to origins";
    origin_bytes_in as origin_received_bytes: Total, "Bytes read from origins";
    origin_retries: Total, "Requests sent again, because a pooled connection had died or to another address";
    origin_errors_resolve: Total, "Origin names that did not resolve";
    origin_errors_connect: Total, "Origin connections refused, failed or timed out";
    origin_errors_first_byte: Total, "Origins that sent no answer in time";
    origin_errors_protocol: Total, "Origins whose answer was not HTTP";
    origin_errors_truncated: Total, "Answers that origins cut short";
    origin_blamed_answers: Total, "Answers with a status that their address was blamed for (origin.retry_on)";
    origin_errors_busy: Total, "Requests refused because an origin's queue was full or too slow";
    origin_ejections: Total, "Origin addresses left out after failures";
    fleet_fetches: Total, "Requests sent to other nodes of the fleet, the owners of their URLs";
    fleet_answers: Total, "Requests of other nodes of the fleet answered by what the origin says";
    fleet_owners_down: Total, "Owners passed over because they are left out, or failed a fetch";
    fleet_owners_loaded: Total, "Owners passed over because they work on more than their share (fleet.load_max)";
    fleet_owners_behind: Total, "Owners that were behind in the log of invalidations, so that the origin was asked";
    fleet_owners_unable: Total, "Owners that did not answer for the origin, so that the origin was asked";
    fleet_proofs_refused: Total, "Requests refused that said to be another node's and did not prove it";
    restarts: Total, "Requests begun anew by a program";
    vcl_errors: Total, "Failures of policies, by what their log lines say";
    vcl_fetches_failed: Total, "Fetches under a program that brought no answer";
    vcl_retries: Total, "Fetches that a program began again by return (retry)";
    bodies_encoded: Total, "Bodies that were put into a content coding";
    deltas_sent: Total, "Answers that say what differs from a dictionary of their client";
    bodies_decoded: Total, "Bodies that were taken out of a content coding, for the store or for clients";
    esi_requests: Total, "Requests for what pages include";
    esi_errors: Total, "Includes and other ESI that could not be read";
    esi_warnings: Total, "ESI that was read, and is not as it should be";
    codings_checked: Total, "Gzipped bodies that were checked on their way into the store";
    gzips_cut: Total, "Gzipped bodies that were read to be joined with a page";
    log_lines: Total, "Access log lines written";
    log_lines_lost: Total, "Access log lines dropped because the log could not keep up";
    event_readers: Gauge, "Those who read along which exchanges are over (`larder log`)";
    events_told: Total, "Exchanges that those who read along were told of, once for each of them";
    events_lost: Total, "Exchanges that they wanted to be told of and were not: more than they take, or asked for in a second";
    spans_made: Total, "Spans of traces that were put into the queue of their core ([traces] endpoint)";
    spans_lost: Total, "Spans of traces that were lost because the queue of their core was full";
    spans_sent: Total, "Spans of traces that the collector has taken";
    spans_failed: Total, "Spans of traces that the collector refused, or that were in a request that was given up";
    span_batches_sent: Total, "Requests with spans that the collector has taken";
    span_batches_failed: Total, "Requests with spans that were given up: it was not reached, failed or refused them";
    log_records_made: Total, "Log records for a collector that were put into the queue of their core ([traces] logs)";
    log_records_lost: Total, "Log records for a collector that were lost because the queue of their core was full";
    log_records_sent: Total, "Log records that the collector has taken";
    log_records_failed: Total, "Log records that the collector refused, or that were in a request that was given up";
    log_batches_sent: Total, "Requests with log records that the collector has taken";
    log_batches_failed: Total, "Requests with log records that were given up: it was not reached, failed or refused them";
}

impl CoreCounters {
    /// Counts an answer that begins to go out under the class that the log calls it by. Each is in one class; pipes, purges, files and
    /// commands to memcached are counted where they are done.
    #[inline]
    pub fn answered(&self, verdict: CacheVerdict) {
        let class = match verdict {
            CacheVerdict::Hit => &self.hits,
            CacheVerdict::Stale => &self.hits_stale,
            CacheVerdict::Revalidated => &self.revalidated,
            CacheVerdict::Miss => &self.misses,
            CacheVerdict::Coalesced => &self.coalesced,
            CacheVerdict::Pass => &self.passes,
            CacheVerdict::Synth => &self.synths,
            CacheVerdict::Error => &self.errors,
            CacheVerdict::Refused => &self.refused,
            CacheVerdict::File | CacheVerdict::Memcached | CacheVerdict::Pipe | CacheVerdict::Purge => return,
        };
        class.add(1);
    }
}

/// Buckets are half powers of two of a microsecond: 1, 1.5, 2, 3, 4, 6 … µs, the last one open.
pub const HISTOGRAM_BUCKETS: usize = 48;

/// Latencies of one core, log-linear.
#[derive(Debug)]
pub struct Histogram {
    pub buckets: [Count; HISTOGRAM_BUCKETS],
    pub sum_micros: Count,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { buckets: std::array::from_fn(|_| Count::default()), sum_micros: Count::default() }
    }
}

impl Histogram {
    #[inline]
    pub fn record(&self, micros: u64) {
        self.buckets[bucket_of(micros)].add(1);
        self.sum_micros.add(micros);
    }

    /// The largest latency that falls into a bucket, in microseconds; `None` for the last one.
    pub fn upper_bound_micros(bucket: usize) -> Option<u64> {
        (bucket + 1 < HISTOGRAM_BUCKETS).then(|| lower_bound_micros(bucket + 1) - 1)
    }
}

/// The smallest latency of a bucket.
fn lower_bound_micros(bucket: usize) -> u64 {
    match bucket {
        0 => 0,
        1 => 1,
        b => {
            let (power, half) = (b / 2, b as u64 % 2);
            (1 << power) + half * (1 << (power - 1))
        }
    }
}

#[inline]
fn bucket_of(micros: u64) -> usize {
    if micros < 2 {
        return micros as usize;
    }
    let power = 63 - micros.leading_zeros() as usize;
    let half = (micros >> (power - 1) & 1) as usize;
    (power * 2 + half).min(HISTOGRAM_BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_falls_between_its_buckets_bounds() {
        for micros in (0..5_000).chain([1 << 22, (1 << 23) - 1, 1 << 23]) {
            let bucket = bucket_of(micros);
            assert!(lower_bound_micros(bucket) <= micros, "{micros} in {bucket}");
            assert!(Histogram::upper_bound_micros(bucket).is_none_or(|top| micros <= top), "{micros} in {bucket}");
        }
        assert_eq!(bucket_of(u64::MAX), HISTOGRAM_BUCKETS - 1);
    }
}
