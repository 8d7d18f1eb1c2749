//! One row: its servers are brought up, looked at and warmed; then, block by block, each gets a slice, in an order that
//! is drawn anew for each block.
//!
//! A block counts when all of its slices are done. What goes wrong with one server is written into its cell, and the
//! others go on.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::lab_clock::Nanos;
use crate::matrix::direct_asking::Asking;
use crate::matrix::held_connections::{HeldConnections, SETTLE};
use crate::matrix::measuring::{Measured, Measurement, Watched};
use crate::matrix::planned_rows::{Pages, PlannedRow};
use crate::matrix::process_tree::{processes_of, pss_bytes};
use crate::matrix::row_protocol::Spoken;
use crate::matrix::saved_run::{Counts, SavedCell, SavedRow};
use crate::matrix::server_process::ServerProcess;
use crate::matrix::server_profile::Role;
use crate::matrix::server_stage::{Contestant, Stage};
use crate::matrix::site_pages::{gate, known_bodies, url_list, write_files};
use crate::matrix::warm_up::warm_up;
use crate::results::{Block, ErrorSeen, Gate, Held, RowKind};
use crate::tls_settings::TlsSettings;

pub(crate) struct RowRun<'a> {
    pub(crate) stage: &'a mut Stage,
    pub(crate) contestants: &'a mut [Contestant],
    pub(crate) row: &'a PlannedRow,
    pub(crate) saved: &'a mut SavedRow,
    /// Seconds since the run began.
    pub(crate) at: &'a dyn Fn() -> f64,
    pub(crate) say: &'a mut dyn FnMut(&str),
    origin_address: Option<SocketAddr>,
    /// How the load speaks TLS, if it does.
    tls: Option<TlsSettings>,
    list: String,
    known: Arc<[(u64, u32)]>,
    /// By the place of its contestant.
    up: Vec<Option<ServerProcess>>,
}

/// Keeps what there is after a block.
pub(crate) type Keep<'a> = dyn FnMut(&SavedRow, &[Contestant]) -> Result<(), String> + 'a;

/// How a row of a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowEnd {
    Finished,
    Interrupted,
}

impl<'a> RowRun<'a> {
    pub(crate) fn new(
        stage: &'a mut Stage,
        contestants: &'a mut [Contestant],
        row: &'a PlannedRow,
        saved: &'a mut SavedRow,
        at: &'a dyn Fn() -> f64,
        say: &'a mut dyn FnMut(&str),
    ) -> RowRun<'a> {
        let list = url_list(row);
        let up = contestants.iter().map(|_| None).collect();
        let known = known_bodies(row);
        let origin_address = stage.origin_address();
        let tls = stage.certificate.as_ref().filter(|_| row.used.tls).map(|made| made.client(row.used.resume));
        RowRun { stage, contestants, row, saved, at, say, origin_address, tls, list, known, up }
    }

    /// `keep` is called after each block, with what there is then.
    pub(crate) fn run(mut self, blocks: usize, keep: &mut Keep<'_>) -> Result<RowEnd, String> {
        let places: Vec<usize> =
            (0..self.contestants.len()).filter(|&place| self.contestants[place].absence(self.row).is_none()).collect();
        if places.iter().any(|&place| self.contestants[place].planned.profile.role == Role::Static) {
            write_files(self.row, &self.stage.docroot)?;
        }
        if self.saved.null_ceiling_per_second.is_none() {
            self.measure_ceiling();
        }
        for block in self.saved.blocks..blocks {
            let mut order = places.clone();
            let seed = self.stage.method.seed ^ crate::constructed_body::body_seed(&self.row.used.name) ^ block as u64;
            fastrand::Rng::with_seed(seed).shuffle(&mut order);
            let mut done = Vec::new();
            for place in order {
                if self.stage.is_stopped() {
                    return Ok(RowEnd::Interrupted);
                }
                done.extend(self.turn(place, block)?.map(|measured| (place, measured)));
                if self.stage.is_stopped() {
                    return Ok(RowEnd::Interrupted);
                }
            }
            for (place, measured) in done {
                let name = self.contestants[place].planned.name.clone();
                self.saved.servers.entry(name).or_default().add(measured);
            }
            if block + 1 == blocks {
                self.measure_ceiling();
            }
            self.saved.blocks = block + 1;
            keep(self.saved, self.contestants)?;
        }
        Ok(RowEnd::Finished)
    }

    fn cell(&mut self, place: usize) -> &mut SavedCell {
        let name = self.contestants[place].planned.name.clone();
        self.saved.servers.entry(name).or_default()
    }

    fn measurement(&self, role: Role) -> Measurement<'_> {
        let method = &self.stage.method;
        // The null server has one page; of a catalogue it knows nothing.
        let is_known = role != Role::Memcached && (role != Role::Null || matches!(self.row.pages, Pages::One(_)));
        Measurement {
            row: self.row,
            list: &self.list,
            speaks_memcached: role == Role::Memcached,
            tls: self.tls.as_ref(),
            known: is_known.then_some(&self.known),
            is_warm_up: false,
            cpus: &method.client_cpus,
            threads: method.client_threads,
            origin: self.origin_address,
            seed: method.seed,
            draw: 0,
            stop: &self.stage.stop,
        }
    }

    fn slice_time(&self) -> Duration {
        self.row.slice.unwrap_or(Duration::from_secs_f64(self.stage.method.slice_seconds))
    }

    /// One server's turn in one block.
    fn turn(&mut self, place: usize, block: usize) -> Result<Option<Measured>, String> {
        if self.cell(place).is_lost {
            return Ok(None);
        }
        let every = self.stage.method.restart_every;
        let is_idle = self.row.used.kind == RowKind::Idle;
        let is_due = is_idle || (every > 0 && block > 0 && block.is_multiple_of(every));
        let restarted = is_due || self.up[place].is_none();
        if restarted && !self.bring_up(place) {
            return Ok(None);
        }
        let at_seconds = (self.at)();
        let measured = if is_idle { self.hold(place, block) } else { self.slice(place, block) };
        let contestant = &self.contestants[place];
        let name = contestant.planned.name.clone();
        let keeps = contestant.planned.profile.keeps_children;
        let mut died = self.up[place].as_mut().is_none_or(|server| server.has_died(keeps));
        if died {
            // The next block starts it again.
            self.up[place] = None;
        }
        let mut measured = match measured {
            Ok(measured) => measured,
            // A server that lives and takes no connection any more is as good as dead: it begins anew, the others go on.
            Err(what) => {
                (self.say)(&format!("{name}: {what}"));
                self.up[place] = None;
                died = true;
                Measured::of_a_dead_server(what)
            }
        };
        // Without it every cache would be all hits, and every pass the caches' fault.
        if self.stage.origin.as_mut().is_some_and(|origin| origin.requests().is_none()) {
            return Err(format!("the origin does not answer any more (row {})", self.row.used.name));
        }
        measured.block = Block { block, at_seconds, restarted, server_died: died, ..measured.block };
        measured.errors.values_mut().for_each(|seen| seen.happened_after(at_seconds));
        (self.say)(&line(&name, block, &measured.block));
        Ok(Some(measured))
    }

    /// Starts it cold, looks at every page, and warms it up. False: there is nothing to measure.
    fn bring_up(&mut self, place: usize) -> bool {
        self.up[place] = None;
        let mut server = match self.stage.start(&mut self.contestants[place], self.row) {
            Ok(server) => server,
            Err(_) if self.stage.is_stopped() => return false,
            Err(what) => {
                (self.say)(&what);
                let cell = self.cell(place);
                cell.trouble.push(what);
                cell.is_lost = true;
                return false;
            }
        };
        let (stop, role) = (self.stage.stop.clone(), self.contestants[place].planned.profile.role);
        if role == Role::Gateway
            && let Err(what) = self.fill_memcached()
        {
            (self.say)(&what);
            let cell = self.cell(place);
            cell.trouble.push(what);
            cell.is_lost = true;
            return false;
        }
        // What a memcached says by its own protocol is compared as it comes.
        if role != Role::Null && role != Role::Memcached {
            let asking = self.asking(server.address);
            let is_stopped = || stop.load(std::sync::atomic::Ordering::Relaxed);
            let seen = asking.map_or_else(
                |what| Gate { bad: vec![what], ..Gate::default() },
                |asking| gate(self.row, &asking, self.origin_address, &is_stopped),
            );
            let is_good = seen.bad.is_empty();
            let cell = self.cell(place);
            cell.is_lost = !is_good;
            cell.gate = Some(seen);
            if !is_good {
                return false;
            }
        }
        if self.row.used.kind != RowKind::Idle {
            let warmed = self.warm(&server, role);
            if self.stage.is_stopped() {
                return false;
            }
            let name = self.contestants[place].planned.name.clone();
            let cell = self.cell(place);
            match warmed {
                Ok(steady) => cell.steady = Some(steady && cell.steady.unwrap_or(true)),
                Err(what) => {
                    cell.trouble.push(format!("while it was warmed up: {what}"));
                    cell.is_lost = true;
                    (self.say)(&format!("{name}: {what}"));
                    return false;
                }
            }
        }
        if server.has_died(false) {
            let cell = self.cell(place);
            cell.trouble.push("it ended before it was measured".to_owned());
            cell.is_lost = true;
            return false;
        }
        server.settle();
        self.up[place] = Some(server);
        true
    }

    /// What stands behind the gateways holds all of the row's items, set as a client of its own would.
    fn fill_memcached(&mut self) -> Result<(), String> {
        let address = self.stage.memcached_address()?;
        let filled = self.measurement(Role::Memcached).load(address, None, &mut |_, _| {})?;
        match (filled.tally.failed(), filled.tally.good) {
            (0, good) if good >= self.row.used.urls => Ok(()),
            (failed, good) => Err(format!("the memcached behind the gateways took {good} items and refused {failed}")),
        }
    }

    fn watched(&self, server: &ServerProcess) -> Watched {
        Watched { roots: server.roots(), cpus: self.stage.method.server_cpus.len() }
    }

    /// How we ask a server apart from the load, as the row has it.
    fn asking(&self, address: SocketAddr) -> Result<Asking, String> {
        Asking::new(address, self.tls.as_ref(), self.row.used.http2, self.row.timeout)
    }

    fn warm(&mut self, server: &ServerProcess, role: Role) -> Result<bool, String> {
        let window = (self.slice_time() / 2).clamp(Duration::from_millis(100), Duration::from_secs(1));
        let times = (window, Duration::from_secs_f64(self.stage.method.warm_seconds_max));
        let watched = self.watched(server);
        let mut origin = self.stage.origin.take();
        let mut asked = || origin.as_mut().and_then(|origin| origin.requests());
        let measurement = Measurement { is_warm_up: true, ..self.measurement(role) };
        let steady = warm_up(&measurement, server.address, &watched, times, &mut asked);
        self.stage.origin = origin;
        steady
    }

    fn slice(&mut self, place: usize, block: usize) -> Result<Measured, String> {
        let mut origin = self.stage.origin.take();
        let before = origin.as_mut().map(|origin| (origin.requests(), origin.cpu_nanos()));
        let server = self.up[place].as_ref().ok_or("it is not up")?;
        let begun = Nanos::now();
        let role = self.contestants[place].planned.profile.role;
        // All servers of a block are asked the same.
        let measurement = self.measurement(role).drawn_anew(block as u64);
        let measured = measurement.measure(server.address, self.slice_time(), &self.watched(server));
        let seconds = begun.until(Nanos::now()).as_secs_f64();
        let after = origin.as_mut().map(|origin| (origin.cpu_nanos(), origin.requests()));
        self.stage.origin = origin;
        let mut measured = measured?;
        if let (Some((asked, cpu)), Some((cpu_after, asked_after))) = (before, after) {
            let cpus = self.stage.method.client_cpus.len() as f64;
            measured.block.origin_busy_share = Some((cpu_after - cpu) as f64 / 1e9 / seconds.max(1e-9) / cpus);
            let grown = asked.zip(asked_after).map(|(asked, after)| after.saturating_sub(asked));
            measured.block.origin_requests = grown.filter(|_| self.contestants[place].is_cache());
        }
        Ok(measured)
    }

    /// Connections are held, and a probe asks while they are.
    fn hold(&mut self, place: usize, block: usize) -> Result<Measured, String> {
        let server = self.up[place].as_ref().ok_or("it is not up")?;
        let memory = || {
            std::thread::sleep(SETTLE);
            pss_bytes(&processes_of(&server.roots()))
        };
        let pss_before_bytes = memory();
        let mut held = HeldConnections::open(self.row, &self.asking(server.address)?, &self.stage.stop)?;
        let pss_held_bytes = memory();
        let mut probe = self.row.clone();
        probe.used.connections = 1;
        let measurement = Measurement { row: &probe, ..self.measurement(self.contestants[place].planned.profile.role) };
        let measurement = measurement.drawn_anew(block as u64);
        let mut measured = measurement.measure(server.address, self.slice_time(), &self.watched(server))?;
        let (asked, alive) = (self.row.used.connections as u64, held.alive());
        measured.block.held = Some(Held { asked, alive, pss_before_bytes, pss_held_bytes });
        // What is counted are connections; the probe's own failures stand among the errors.
        measured.block.good = alive;
        measured.block.failed += asked - alive;
        if held.failed > 0 {
            let seen = ErrorSeen { count: held.failed, sample: held.sample.clone(), ..ErrorSeen::default() };
            measured.errors.insert("not-held".to_owned(), seen);
        }
        Ok(measured)
    }

    /// What the client reaches when the server does next to nothing: the best of two slices before the row and two after
    /// it, because whatever else the machine does only makes it smaller.
    fn measure_ceiling(&mut self) {
        let is_closed = self.row.used.rate_per_second.is_none() && self.row.sessions.is_none();
        // The null server speaks neither TLS nor HTTP/2, and has no page in a coding or with parts.
        let is_one_of_its = matches!(self.row.pages, Pages::One(_) | Pages::Many { .. }) && self.row.encoding.is_none();
        let is_plain = Spoken::of(&self.row.used) == Spoken::CLEAR && is_one_of_its;
        if !is_closed || !is_plain || self.row.used.kind == RowKind::Idle || self.row.is_of_memcached() {
            return;
        }
        let (mut null, time) = (self.stage.null(), self.slice_time());
        let mut best = self.saved.null_ceiling_per_second;
        match self.stage.start(&mut null, self.row) {
            Err(what) => (self.say)(&format!("no ceiling for this row: {what}")),
            Ok(server) => {
                for _ in 0..2 {
                    let measurement = self.measurement(Role::Null).load(server.address, Some(time), &mut |_, _| {});
                    let reached = measurement.map(|o| o.tally.good as f64 / o.elapsed.as_secs_f64().max(1e-9));
                    best = [best, reached.ok()].into_iter().flatten().reduce(f64::max);
                }
                (self.say)(&format!("the client reaches {:.0}/s with a server that does nothing", best.unwrap_or(0.0)));
            }
        }
        if !self.stage.is_stopped() {
            self.saved.null_ceiling_per_second = best.filter(|&best| best > 0.0);
        }
    }
}

impl SavedCell {
    fn add(&mut self, measured: Measured) {
        self.blocks.push(measured.block);
        let add = |counts: &mut Counts, more| counts.add(more);
        add(&mut self.from_intended, &measured.from_intended);
        add(&mut self.from_send, &measured.from_send);
        add(&mut self.send_lag, &measured.send_lag);
        for (name, seen) in measured.errors {
            let all = self.errors.entry(name).or_insert_with(|| ErrorSeen { count: 0, ..seen.clone() });
            all.count += seen.count;
            all.last_seconds = seen.last_seconds;
        }
    }
}

impl ErrorSeen {
    fn happened_after(&mut self, seconds: f64) {
        self.first_seconds += seconds;
        self.last_seconds += seconds;
    }
}

impl Measured {
    fn of_a_dead_server(what: String) -> Measured {
        let seen = ErrorSeen { count: 1, sample: what, ..ErrorSeen::default() };
        Measured {
            block: Block { failed: 1, ..Block::default() },
            from_intended: Counts::default().histogram(),
            from_send: Counts::default().histogram(),
            send_lag: Counts::default().histogram(),
            errors: [("conn-refused".to_owned(), seen)].into(),
        }
    }
}

fn line(name: &str, number: usize, block: &Block) -> String {
    let number = number + 1;
    if let Some(held) = block.held {
        let bytes = held.pss_held_bytes.saturating_sub(held.pss_before_bytes) as f64 / held.alive.max(1) as f64;
        return format!("block {number:>2}  {name:<18} {} of {} held, {bytes:.0} bytes each", held.alive, held.asked);
    }
    let good = block.good as f64 / block.elapsed_seconds.max(1e-9);
    let micros = block.server.cpu_seconds * 1e6 / block.good.max(1) as f64;
    let (busy, failed) = (block.server.busy_share * 100.0, block.failed);
    let handshakes = block.handshakes.map_or(String::new(), |seen| {
        let time = seen.p50_micros.map_or(String::new(), |micros| format!(" of {micros} µs"));
        format!("  {} handshakes{time}, {} resumed", seen.made, seen.resumed)
    });
    let shorter = block
        .text_bytes
        .map_or(String::new(), |text| format!("  {:.2} times as short", text as f64 / block.body_bytes.max(1) as f64));
    format!(
        "block {number:>2}  {name:<18} {good:>9.0} good/s  {micros:>8.2} µs each  server {busy:>3.0} %  {failed} failed{handshakes}{shorter}"
    )
}
