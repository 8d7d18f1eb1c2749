//! From what was measured of one server in one row to its cell: medians, the colour, what bounded it, and whether it
//! may be ranked. Each judgement that takes something away comes with its sentence.

use std::collections::BTreeMap;

use crate::limits::{BOUND_SHARE_MIN, BUSY_SHARE_MAX, CEILING_SHARE_MAX, FULL_HANDSHAKES_SHARE_MAX, MISS_SHARE_MAX};
use crate::matrix::saved_run::SavedCell;
use crate::matrix::server_profile::Role;
use crate::matrix::statistics::{estimate, median};
use crate::results::{Block, Bound, Cell, Colour, ErrorSeen, Estimate, HandshakesSeen, Metric, RowKind, RowUsed};
use crate::tally::percentile_of;

const PERCENTILES: [f64; 8] = [50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999];

/// Kinds of error that are ours, as `error_kind` tells them from the target's.
const OWN_SHORTAGES: [&str; 3] = ["dropped", "fd-unavail", "addr-unavail"];

/// What a cell is judged by besides its own measurements.
pub(crate) struct Judged<'a> {
    pub(crate) row: &'a RowUsed,
    pub(crate) role: Role,
    /// Must all of its answers be hits?
    pub(crate) hot: bool,
    pub(crate) seed: u64,
}

/// The cell of a server that was not run.
pub(crate) fn white(server: &str, row: &str, why: String) -> Cell {
    Cell {
        server: server.to_owned(),
        row: row.to_owned(),
        colour: Colour::White,
        bound: Bound::Unknown,
        ranks_throughput: false,
        comparable_in: vec![],
        why: vec![why],
        blocks: Vec::new(),
        goodput_per_second: None,
        server_micros_per_answer: None,
        p50_micros: None,
        p99_micros: None,
        bytes_per_connection: None,
        gate: None,
        steady: None,
        spectrum: Vec::new(),
        spectrum_from_send: Vec::new(),
        errors: Default::default(),
    }
}

pub(crate) fn cell(server: &str, judged: &Judged<'_>, saved: &SavedCell) -> Cell {
    let row = judged.row;
    let mut cell = Cell { why: saved.trouble.clone(), ..white(server, &row.name, String::new()) };
    cell.gate.clone_from(&saved.gate);
    cell.steady = saved.steady;
    cell.errors.clone_from(&saved.errors);
    cell.colour = colour(saved, &mut cell.why);
    if saved.blocks.is_empty() {
        return cell;
    }
    let figure = |metric| {
        let values: Vec<f64> = saved.blocks.iter().filter_map(|block| value(metric, row.kind, block)).collect();
        estimate(&values, judged.seed)
    };
    cell.goodput_per_second = figure(Metric::Goodput);
    cell.server_micros_per_answer = figure(Metric::ServerMicrosPerAnswer);
    cell.p50_micros = figure(Metric::P50);
    cell.p99_micros = figure(Metric::P99);
    cell.bytes_per_connection = figure(Metric::BytesPerConnection);
    let spectrum = |counts: &crate::matrix::saved_run::Counts| {
        let values = counts.histogram();
        PERCENTILES.iter().filter_map(|&p| percentile_of(&values, p).map(|micros| (p, micros))).collect()
    };
    cell.spectrum = spectrum(&saved.from_intended);
    cell.spectrum_from_send = spectrum(&saved.from_send);
    cell.bound = bound(judged, saved, cell.goodput_per_second, &mut cell.why);
    if let Some(what) = misses(judged, saved) {
        cell.why.push(what);
    }
    let hits = hits_share(judged, &saved.blocks);
    if hits > MISS_SHARE_MAX {
        cell.why.push(format!("not all were misses: {:.3} % never reached the origin", hits * 100.0));
    }
    if let Some(what) = not_resumed(judged, &saved.blocks) {
        cell.why.push(what);
    }
    if saved.steady == Some(false) {
        cell.why.push("not steady: it had not settled when the warm-up was over".to_owned());
    }
    cell.blocks.clone_from(&saved.blocks);
    cell.ranks_throughput = may_compare(Metric::Goodput, &cell, judged);
    cell.comparable_in = Metric::ALL.into_iter().filter(|&metric| may_compare(metric, &cell, judged)).collect();
    cell
}

/// One block's value of a metric, where the row has it.
pub(crate) fn value(metric: Metric, kind: RowKind, block: &Block) -> Option<f64> {
    let is_idle = kind == RowKind::Idle;
    match metric {
        Metric::Goodput => (!is_idle).then(|| block.good as f64 / block.elapsed_seconds.max(1e-9)),
        Metric::ServerMicrosPerAnswer => {
            (!is_idle && block.good > 0).then(|| block.server.cpu_seconds * 1e6 / block.good as f64)
        }
        Metric::P50 => block.p50_micros.map(|micros| micros as f64),
        Metric::P99 => block.p99_micros.map(|micros| micros as f64),
        Metric::BytesPerConnection => {
            let held = block.held.filter(|held| held.alive > 0)?;
            Some((held.pss_held_bytes as f64 - held.pss_before_bytes as f64) / held.alive as f64)
        }
    }
}

/// May this metric of the cell stand beside that of another one?
pub(crate) fn may_compare(metric: Metric, cell: &Cell, judged: &Judged<'_>) -> bool {
    let is_open = judged.row.rate_per_second.is_some();
    let is_sound = matches!(cell.colour, Colour::Clean | Colour::LightYellow)
        && cell.steady != Some(false)
        && !cell.blocks.is_empty()
        && misses_share(judged, &cell.blocks) <= MISS_SHARE_MAX
        && hits_share(judged, &cell.blocks) <= MISS_SHARE_MAX
        && not_resumed(judged, &cell.blocks).is_none();
    let fits = match metric {
        // In an open loop all that keep up are as fast as the timetable.
        Metric::Goodput => !is_open && judged.row.kind != RowKind::Idle && cell.bound != Bound::Client,
        Metric::ServerMicrosPerAnswer => true,
        // In a closed loop a latency is only the other side of the throughput.
        // Requests that were never sent are in no latency, and they would have been the slowest.
        Metric::P50 | Metric::P99 => {
            let good: u64 = cell.blocks.iter().map(|block| block.good).sum();
            let is_whole = not_sent(&cell.errors) as f64 <= good as f64 * MISS_SHARE_MAX;
            is_whole && (is_open || judged.row.kind == RowKind::Idle)
        }
        Metric::BytesPerConnection => judged.row.kind == RowKind::Idle,
    };
    is_sound && fits
}

/// A single one is too many, whenever it comes.
pub(crate) fn wrong_bytes(errors: &BTreeMap<String, ErrorSeen>) -> Option<String> {
    let bad =
        ["bad-bytes", "bad-length", "bad-decoded", "long-body"].into_iter().find(|name| errors.contains_key(*name))?;
    Some(format!("wrong bytes came ({bad}): {}", errors[bad].sample))
}

fn colour(saved: &SavedCell, why: &mut Vec<String>) -> Colour {
    if let Some(gate) = saved.gate.as_ref().filter(|gate| !gate.bad.is_empty()) {
        why.push(format!("failed the look before the load: {}", gate.bad.join("; ")));
        return Colour::Red;
    }
    if saved.is_lost {
        // Its earlier blocks may have been good; a server that does not come back is not one to rank.
        return Colour::Red;
    }
    if saved.blocks.iter().any(|block| block.server_died) {
        why.push("it died, hung, or a process of it was replaced, under load".to_owned());
        return Colour::Red;
    }
    if let Some(what) = wrong_bytes(&saved.errors) {
        why.push(what);
        return Colour::Red;
    }
    let good: u64 = saved.blocks.iter().map(|block| block.good).sum();
    let failed: u64 = saved.blocks.iter().map(|block| block.failed).sum();
    // What our machine could not send says nothing against a server that was not busy; `bound` speaks of it.
    let failed = if is_saturated(saved) { failed } else { failed.saturating_sub(not_sent(&saved.errors)) };
    let share = failed as f64 / (good + failed).max(1) as f64;
    if failed > 0 {
        let kinds: Vec<String> = saved.errors.iter().map(|(name, seen)| format!("{name} {}", seen.count)).collect();
        why.push(format!("{:.3} % failed: {}", share * 100.0, kinds.join(", ")));
    }
    match share {
        _ if saved.blocks.is_empty() => Colour::White,
        _ if good == 0 && saved.blocks.iter().all(|block| block.held.is_none()) => Colour::Red,
        0.0 => Colour::Clean,
        ..0.001 => Colour::LightYellow,
        ..0.1 => Colour::Orange,
        _ => Colour::Red,
    }
}

/// Requests that our own machine had no user, descriptor or port for.
fn not_sent(errors: &BTreeMap<String, ErrorSeen>) -> u64 {
    OWN_SHORTAGES.iter().filter_map(|name| errors.get(*name)).map(|seen| seen.count).sum()
}

fn is_saturated(saved: &SavedCell) -> bool {
    let shares: Vec<f64> = saved.blocks.iter().map(|block| block.server.busy_share).collect();
    median(&shares).unwrap_or(0.0) > BOUND_SHARE_MIN
}

/// Which of the rules that make a cell the client's own speaks first, then who else was busy.
fn bound(judged: &Judged<'_>, saved: &SavedCell, goodput: Option<Estimate>, why: &mut Vec<String>) -> Bound {
    let of = |what: fn(&Block) -> f64| median(&saved.blocks.iter().map(what).collect::<Vec<_>>()).unwrap_or(0.0);
    let (client, server) = (of(|block| block.client_busy_share), of(|block| block.server.busy_share));
    let origin = of(|block| block.origin_busy_share.unwrap_or(0.0));
    let mut rules = Vec::new();
    if client > BUSY_SHARE_MAX {
        rules.push(format!("client-bound: a thread of the load used {:.0} % of its core", client * 100.0));
    }
    // Of all blocks together, because one alone may be too short to know its percentile.
    let (late, answers) = (saved.send_lag.histogram(), saved.from_intended.histogram());
    let lag = percentile_of(&late, 99.0).unwrap_or(late.max());
    let middle = answers.value_at_percentile(50.0);
    if judged.row.rate_per_second.is_some() && lag * 10 > middle {
        rules.push(format!(
            "client-bound: 1 % of the requests were sent {lag} µs late, the median answer took {middle} µs"
        ));
    }
    if let Some(dropped) = saved.errors.get("dropped") {
        rules.push(format!("client-bound: {} requests were due and never sent", dropped.count));
    }
    if let (Some(goodput), Some(ceiling)) = (goodput, judged.row.null_ceiling_per_second)
        && judged.role != Role::Null
        && goodput.median > ceiling * CEILING_SHARE_MAX
    {
        let share = goodput.median / ceiling * 100.0;
        rules.push(format!("client-bound: {share:.0} % of what the client reaches with a server that does nothing"));
    }
    if saved.errors.contains_key("addr-unavail") {
        rules.push("client-bound: this machine ran out of ports".to_owned());
    }
    let by_client = !rules.is_empty();
    why.extend(rules);
    match () {
        () if by_client => Bound::Client,
        () if server > BOUND_SHARE_MIN => Bound::Server,
        () if origin > BOUND_SHARE_MIN => Bound::Origin,
        () => Bound::Latency,
    }
}

fn misses(judged: &Judged<'_>, saved: &SavedCell) -> Option<String> {
    let share = misses_share(judged, &saved.blocks);
    let asked: u64 = saved.blocks.iter().filter_map(|block| block.origin_requests).sum();
    (share > 0.0).then(|| format!("not all were hits: {asked} requests reached the origin ({:.3} %)", share * 100.0))
}

/// Of the answers that should be hits, how many the origin gave.
fn misses_share(judged: &Judged<'_>, blocks: &[Block]) -> f64 {
    if !judged.hot || !matches!(judged.role, Role::Cache | Role::Forward) {
        return 0.0;
    }
    let asked: u64 = blocks.iter().filter_map(|block| block.origin_requests).sum();
    let good: u64 = blocks.iter().map(|block| block.good).sum();
    asked as f64 / good.max(1) as f64
}

/// Of the answers that should be misses, how many the origin has not given.
fn hits_share(judged: &Judged<'_>, blocks: &[Block]) -> f64 {
    if judged.row.kind != RowKind::Miss {
        return 0.0;
    }
    let asked: u64 = blocks.iter().filter_map(|block| block.origin_requests).sum();
    let good: u64 = blocks.iter().map(|block| block.good).sum();
    good.saturating_sub(asked) as f64 / good.max(1) as f64
}

/// Where sessions are to be resumed, each user's first handshake of a slice is a full one, and next to no other.
fn not_resumed(judged: &Judged<'_>, blocks: &[Block]) -> Option<String> {
    let of = |what: fn(&HandshakesSeen) -> u64| -> u64 {
        blocks.iter().filter_map(|b| b.handshakes.as_ref()).map(what).sum()
    };
    let (made, resumed) = (of(|seen| seen.made), of(|seen| seen.resumed));
    let first = (judged.row.connections * blocks.len()) as u64;
    let full = made.saturating_sub(resumed).saturating_sub(first);
    let is_too_many = judged.row.resume && full as f64 > made as f64 * FULL_HANDSHAKES_SHARE_MAX;
    is_too_many.then(|| format!("sessions were not resumed: {full} of {made} handshakes were full ones all the same"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::{Gate, ServerCost};

    pub(crate) fn row() -> RowUsed {
        RowUsed { name: "r".to_owned(), null_ceiling_per_second: Some(10_000.0), ..RowUsed::default() }
    }

    fn block(good: u64, failed: u64) -> Block {
        let server = ServerCost { cpu_seconds: 0.5, busy_share: 0.5, ..ServerCost::default() };
        Block { good, failed, elapsed_seconds: 1.0, server, origin_requests: Some(0), ..Block::default() }
    }

    fn judge(saved: &SavedCell) -> Cell {
        let row = row();
        cell("s", &Judged { row: &row, role: Role::Cache, hot: true, seed: 1 }, saved)
    }

    fn saved(blocks: &[Block]) -> SavedCell {
        SavedCell { blocks: blocks.to_vec(), steady: Some(true), ..SavedCell::default() }
    }

    fn check_colour(saved: SavedCell, expect: Colour, why: &str) {
        let cell = judge(&saved);
        assert_eq!(cell.colour, expect, "{:?}", cell.why);
        assert!(cell.why.iter().any(|line| line.contains(why)) || why.is_empty(), "{:?}", cell.why);
        let ranks = matches!(expect, Colour::Clean | Colour::LightYellow);
        assert_eq!(cell.ranks_throughput, ranks, "{expect:?}");
    }

    #[test]
    fn colours_are_the_first_study_s() {
        check_colour(saved(&[block(500, 0)]), Colour::Clean, "");
        check_colour(saved(&[block(500, 0), block(1_500, 1)]), Colour::LightYellow, "0.050 % failed");
        check_colour(saved(&[block(999, 1)]), Colour::Orange, "0.100 %");
        check_colour(saved(&[block(500, 50)]), Colour::Orange, "");
        check_colour(saved(&[block(90, 10)]), Colour::Red, "10.000 %");
        check_colour(saved(&[block(0, 0)]), Colour::Red, "");
        check_colour(saved(&[Block { server_died: true, ..block(500, 0) }]), Colour::Red, "died");
        let mut bytes = saved(&[block(600, 1)]);
        bytes.errors.insert("bad-bytes".to_owned(), ErrorSeen { count: 1, ..ErrorSeen::default() });
        check_colour(bytes, Colour::Red, "wrong bytes");
        let bad = Gate { urls: 1, bytes: 1, bad: vec!["/: a wrong byte at 4".to_owned()] };
        check_colour(SavedCell { gate: Some(bad), ..saved(&[block(500, 0)]) }, Colour::Red, "a wrong byte at 4");
        // What was never sent is the server's fault only where it was busy all the time.
        let mut late = saved(&[block(500, 500)]);
        late.errors.insert("dropped".to_owned(), ErrorSeen { count: 500, ..ErrorSeen::default() });
        let cell = judge(&late);
        assert_eq!((cell.colour, cell.bound, cell.ranks_throughput), (Colour::Clean, Bound::Client, false));
        late.blocks[0].server.busy_share = 0.99;
        assert_eq!(judge(&late).colour, Colour::Red);
        check_colour(SavedCell { trouble: vec!["x".to_owned()], is_lost: true, ..saved(&[]) }, Colour::Red, "x");
        let lost =
            SavedCell { trouble: vec!["did not come back".to_owned()], is_lost: true, ..saved(&[block(500, 0)]) };
        check_colour(lost, Colour::Red, "did not come back");
        check_colour(saved(&[]), Colour::White, "");
    }

    fn check_bound(block: Block, expect: Bound, ranks: bool, why: &str) {
        let cell = judge(&saved(&[block]));
        assert_eq!((cell.bound, cell.ranks_throughput), (expect, ranks), "{:?}", cell.why);
        assert!(cell.why.iter().any(|line| line.contains(why)) || why.is_empty(), "{:?}", cell.why);
    }

    #[test]
    fn what_bounds_is_found() {
        check_bound(block(500, 0), Bound::Latency, true, "");
        check_bound(Block { client_busy_share: 0.81, ..block(500, 0) }, Bound::Client, false, "81 % of its core");
        check_bound(block(7_001, 0), Bound::Client, false, "70 % of what the client reaches");
        let busy = ServerCost { busy_share: 0.97, cpu_seconds: 0.97, ..ServerCost::default() };
        check_bound(Block { server: busy, ..block(500, 0) }, Bound::Server, true, "");
        check_bound(Block { origin_busy_share: Some(0.99), ..block(500, 0) }, Bound::Origin, true, "");
        check_bound(Block { origin_requests: Some(3), ..block(500, 0) }, Bound::Latency, false, "not all were hits");
    }

    #[test]
    fn late_sends_are_the_client_s_fault_however_few_there_were() {
        let open = RowUsed { rate_per_second: Some(500.0), ..row() };
        let judged = Judged { row: &open, role: Role::Cache, hot: true, seed: 1 };
        let mut late = SavedCell { ..saved(&[block(500, 0)]) };
        let mut counts = crate::matrix::saved_run::Counts::default().histogram();
        (0..500).for_each(|_| counts.record(1_000).unwrap());
        late.from_intended.add(&counts);
        late.send_lag.add(&counts);
        assert_eq!(cell("s", &judged, &late).bound, Bound::Client);
        late.send_lag = Default::default();
        assert_eq!(cell("s", &judged, &late).bound, Bound::Latency);
    }

    #[test]
    fn a_row_of_resumed_sessions_is_one() {
        let row = RowUsed { resume: true, connections: 10, ..row() };
        let judged = Judged { row: &row, role: Role::Cache, hot: true, seed: 1 };
        let seen = |made, resumed| {
            let handshakes = Some(HandshakesSeen { made, resumed, ..HandshakesSeen::default() });
            cell("s", &judged, &saved(&[Block { handshakes, ..block(500, 0) }]))
        };
        // The first of each of ten users, and one in a hundred.
        assert!(seen(1_000, 980).ranks_throughput);
        let cell = seen(1_000, 979);
        assert!(!cell.ranks_throughput && cell.comparable_in.is_empty(), "{:?}", cell.why);
        assert_eq!(cell.why, ["sessions were not resumed: 11 of 1000 handshakes were full ones all the same"]);
    }

    #[test]
    fn a_row_of_misses_is_one() {
        let row = RowUsed { kind: RowKind::Miss, ..row() };
        let judged = Judged { row: &row, role: Role::Cache, hot: false, seed: 1 };
        let seen = |asked| cell("s", &judged, &saved(&[Block { origin_requests: Some(asked), ..block(500, 0) }]));
        assert!(seen(500).ranks_throughput);
        let cell = seen(490);
        assert!(!cell.ranks_throughput && cell.why[0].contains("not all were misses: 2.000 %"), "{:?}", cell.why);
    }

    #[test]
    fn what_has_not_settled_is_not_ranked() {
        let cell = judge(&SavedCell { steady: Some(false), ..saved(&[block(500, 0)]) });
        assert!(!cell.ranks_throughput && cell.why[0].contains("not steady"), "{:?}", cell.why);
    }
}
