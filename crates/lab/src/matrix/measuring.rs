//! One slice: load for one server of one row, with what the server's processes used meanwhile.
//!
//! The load runs in this process (`run`), on threads that inherit the calling one's place. What is read from /proc is
//! read before, after, and at the end of each second.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hdrhistogram::Histogram;

use crate::catalogue::{Catalogue, Order, Recipe};
use crate::error_kind::ErrorKind;
use crate::lab_clock::Nanos;
use crate::limits::FILL_TIME_MAX;
use crate::matrix::direct_asking::site;
use crate::matrix::lab_file::{SessionsSection, UrlOrder};
use crate::matrix::planned_rows::{Pages, PlannedRow};
use crate::matrix::process_tree::{CpuAccount, Usage, processes_of, pss_bytes};
use crate::matrix::row_contents::fresh_list;
use crate::memcached_catalogue::MemcachedItems;
use crate::results::{Block, ErrorSeen, HandshakesSeen, RowKind, Sample, SessionsSeen};
use crate::run::{Outcome, run};
use crate::script::Script;
use crate::tally::{Second, Tally, percentile_of};
use crate::tls_settings::TlsSettings;
use crate::workload::{Arrivals, Checks, Connections, Length, Load, RatePlan, Workload};

/// A load that can be repeated against any server.
pub(crate) struct Measurement<'a> {
    pub(crate) row: &'a PlannedRow,
    /// The paths, a line each.
    pub(crate) list: &'a str,
    /// Is a memcached's item asked for by its own protocol? A gateway has it under a path.
    pub(crate) speaks_memcached: bool,
    /// Of a row over TLS.
    pub(crate) tls: Option<&'a TlsSettings>,
    /// Length and CRC-32 of what stands behind each of them.
    pub(crate) known: Option<&'a Arc<[(u64, u32)]>>,
    /// Sessions are not what a server is warmed up with: they think most of the time.
    pub(crate) is_warm_up: bool,
    pub(crate) cpus: &'a [usize],
    pub(crate) threads: usize,
    /// The origin that a forward proxy is asked for.
    pub(crate) origin: Option<SocketAddr>,
    pub(crate) seed: u64,
    /// Of the slice or window, in the run of one server.
    pub(crate) draw: u64,
    pub(crate) stop: &'a Arc<AtomicBool>,
}

/// Whose costs are counted.
pub(crate) struct Watched {
    /// The first processes of all that are counted, each with its descendants.
    pub(crate) roots: Vec<i32>,
    pub(crate) cpus: usize,
}

/// A slice, and what does not fit into a block's line.
pub(crate) struct Measured {
    pub(crate) block: Block,
    pub(crate) from_intended: Histogram<u64>,
    pub(crate) from_send: Histogram<u64>,
    pub(crate) send_lag: Histogram<u64>,
    /// Seconds since the slice began.
    pub(crate) errors: BTreeMap<String, ErrorSeen>,
}

/// How popularity falls on the web, from one page to the next of a catalogue.
const ZIPF_ALPHA: f64 = 1.0;

/// Odd and large (2^64 by the golden ratio): neighbours in number are none in what is drawn.
const SEED_STEP: u64 = 0x9E37_79B9_7F4A_7C15;

impl<'a> Measurement<'a> {
    /// The same load with other luck: a slice that asked again for the pages of the one before would find a site of
    /// 50,000 pages in a cache that has room for the first few thousand.
    pub(crate) fn drawn_anew(&self, number: u64) -> Measurement<'a> {
        Measurement { seed: self.seed ^ (number + 1).wrapping_mul(SEED_STEP), draw: number, ..*self }
    }

    /// Loads a server for a time, or with each path once (`time` is none); what came of it.
    pub(crate) fn load(
        &self,
        address: SocketAddr,
        time: Option<Duration>,
        on_second: &mut dyn FnMut(usize, &Second),
    ) -> Result<Outcome, String> {
        let (used, proxied) = (&self.row.used, self.row.forward);
        let url = site(self.origin.filter(|_| proxied).unwrap_or(address), used.tls)?;
        let recipe = Recipe { fields: self.row.fields.clone(), short: !used.keep_alive, proxied, ..Recipe::default() };
        let fresh = time.filter(|_| used.kind == RowKind::Miss);
        let fresh = fresh.map(|time| fresh_list(&self.row.paths()[0], self.draw, time).0);
        let catalogue = match self.row.pages {
            // Each key once is each key set.
            Pages::Items { items, .. } if self.speaks_memcached && time.is_none() => items.preload(),
            Pages::Items { items, .. } if self.speaks_memcached => items.catalogue(),
            _ => Catalogue::of_list(&url, fresh.as_deref().unwrap_or(self.list), &recipe),
        };
        let catalogue = catalogue.map_err(|error| format!("row {}: {error}", used.name))?;
        let (load, length) = match (&self.row.sessions, time) {
            (_, None) => (Load::Closed, Length::RequestsWithin(catalogue.len() as u64, FILL_TIME_MAX)),
            (Some(sessions), Some(_)) if !self.is_warm_up => {
                (sessions_of(sessions), Length::Time(sessions.time_max(self.row.timeout)))
            }
            // Nothing is asked twice, even by who is too fast for the list.
            (_, Some(time)) if fresh.is_some() => {
                (self.load_by_rate(), Length::RequestsWithin(catalogue.len() as u64, time))
            }
            (_, Some(time)) => (self.load_by_rate(), Length::Time(time)),
        };
        let order = match (self.row.pages, time) {
            (Pages::Many { order: UrlOrder::Random, .. }, Some(_)) => Order::Random,
            (Pages::Many { order: UrlOrder::Zipf, .. }, Some(_)) => Order::Zipf { alpha: ZIPF_ALPHA },
            (Pages::Items { set_share, .. }, Some(_)) if self.speaks_memcached => MemcachedItems::order(set_share),
            (Pages::Items { .. }, Some(_)) => Order::Random,
            _ => Order::InTurn,
        };
        let workload = Workload {
            load,
            length,
            users: used.connections,
            threads: self.threads.min(used.connections),
            connections: match used.keep_alive {
                true => Connections::Kept { depth: used.streams.unwrap_or(1) },
                false => Connections::Short,
            },
            tls: self.tls.cloned(),
            http2: used.http2,
            order,
            checks: Checks::ALL,
            known_bodies: match self.known {
                // One page under all of its URLs.
                Some(known) if fresh.is_some() => Some(vec![known[0]; catalogue.len()].into()),
                known => known.cloned(),
            },
            encoding: self.row.encoding,
            cpus: self.cpus.to_vec(),
            timeout: self.row.timeout,
            seed: self.seed,
            ..Workload::new(address)
        };
        run(workload, catalogue, self.stop, on_second).map_err(|error| error.to_string())
    }

    fn load_by_rate(&self) -> Load {
        match (self.row.used.rate_per_second, &self.row.sessions) {
            (Some(per_second), None) => Load::Open { per_second, arrivals: self.arrivals() },
            _ => Load::Closed,
        }
    }

    fn arrivals(&self) -> Arrivals {
        if self.row.poisson { Arrivals::Poisson } else { Arrivals::Constant }
    }

    pub(crate) fn measure(&self, address: SocketAddr, time: Duration, watched: &Watched) -> Result<Measured, String> {
        let processes = processes_of(&watched.roots);
        let mut account = CpuAccount::default();
        let before = Usage::read(&processes);
        let (begun, cpu_before) = (Nanos::now(), account.read(&processes));
        let mut samples = Vec::new();
        let mut last = (begun, cpu_before);
        let outcome = self.load(address, Some(time), &mut |_, second| {
            let (now, cpu) = (Nanos::now(), account.read(&processes));
            let passed = last.0.until(now).as_secs_f64().max(1e-3);
            samples.push(Sample {
                at_seconds: begun.until(now).as_secs_f64(),
                good_per_second: second.good as f64 / passed,
                failed: second.failed,
                p99_micros: (!second.from_intended.is_empty()).then(|| second.from_intended.value_at_percentile(99.0)),
                server_busy_share: (cpu - last.1) as f64 / 1e9 / passed / watched.cpus as f64,
                server_pss_bytes: pss_bytes(&processes),
            });
            last = (now, cpu);
        })?;
        let (ended, cpu_after) = (Nanos::now(), account.read(&processes_of(&watched.roots)));
        let mut cost = before.cost_until(&Usage::read(&processes_of(&watched.roots)));
        cost.cpu_seconds = (cpu_after - cpu_before) as f64 / 1e9;
        cost.busy_share = cost.cpu_seconds / begun.until(ended).as_secs_f64().max(1e-9) / watched.cpus as f64;
        let block = Block { server: cost, samples, ..block_of(&outcome) };
        let errors = errors_of(&outcome);
        let Tally { from_intended, from_send, send_lag, .. } = outcome.tally;
        Ok(Measured { block, from_intended, from_send, send_lag, errors })
    }
}

fn sessions_of(sessions: &SessionsSection) -> Load {
    let starts = sessions.rate.map(|rate| RatePlan::steady(rate, Arrivals::Constant));
    let script = Arc::new(Script::alike(sessions.calls, 1, sessions.think.0));
    Load::Sessions { count: sessions.count, starts, script }
}

/// What the load itself saw.
pub(crate) fn block_of(outcome: &Outcome) -> Block {
    let tally = &outcome.tally;
    let is_empty = tally.from_intended.is_empty();
    Block {
        elapsed_seconds: outcome.elapsed.as_secs_f64(),
        good: tally.good,
        failed: tally.failed(),
        body_bytes: tally.body_bytes,
        text_bytes: outcome.forms.map(|_| tally.text_bytes),
        p50_micros: percentile_of(&tally.from_intended, 50.0),
        p99_micros: percentile_of(&tally.from_intended, 99.0),
        max_micros: (!is_empty).then(|| tally.from_intended.max()),
        connections_opened: tally.connections,
        client_busy_share: outcome.threads.iter().map(|thread| thread.busy_share).fold(0.0, f64::max),
        send_lag_p99_micros: percentile_of(&tally.send_lag, 99.0),
        sessions: tally.sessions.as_ref().map(|all| SessionsSeen {
            begun: all.begun,
            completed: all.completed,
            failed: all.failed,
        }),
        handshakes: tally.handshakes.as_ref().map(|all| HandshakesSeen {
            made: all.made,
            resumed: all.resumed,
            p50_micros: percentile_of(&all.micros, 50.0),
            p99_micros: percentile_of(&all.micros, 99.0),
        }),
        ..Block::default()
    }
}

pub(crate) fn errors_of(outcome: &Outcome) -> BTreeMap<String, ErrorSeen> {
    let seen = ErrorKind::ALL.iter().map(|&kind| (kind, outcome.tally.error(kind)));
    seen.filter(|(kind, record)| record.count > 0 && kind.is_failure())
        .map(|(kind, record)| {
            let seen = ErrorSeen {
                count: record.count,
                first_seconds: record.first_nanos as f64 / 1e9,
                last_seconds: record.last_nanos as f64 / 1e9,
                sample: record.sample.clone(),
            };
            (kind.name().to_owned(), seen)
        })
        .collect()
}
