//! A trace at several numbers of nodes: as many replays at once as there are cores, and what is printed of them.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::load_tool::simulation::fleet_replay::{FleetFigures, FleetTried, Tally, replay_in_fleet};
use crate::load_tool::simulation::trace_file::Trace;
use crate::quantities::show_size;

/// A fleet that was tried, and how it went.
#[derive(Clone, Debug)]
pub struct FleetRow {
    pub tried: FleetTried,
    pub figures: FleetFigures,
}

pub fn fleet_rows(trace: &Trace, all: &[FleetTried], on_done: impl Fn(usize) + Sync) -> Vec<FleetRow> {
    let made = Mutex::new(vec![None; all.len()]);
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(all.len());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((place, tried)) =
                    Some(next.fetch_add(1, Relaxed)).and_then(|at| Some((at, *all.get(at)?)))
                {
                    let figures = replay_in_fleet(trace, tried);
                    made.lock()[place] = Some(FleetRow { tried, figures });
                    on_done(done.fetch_add(1, Relaxed) + 1);
                }
            });
        }
    });
    made.into_inner().into_iter().flatten().collect()
}

/// A table for each memory and order of eviction.
pub fn as_text(rows: &[FleetRow]) -> String {
    let is_of_one = |one: &FleetRow, other: &FleetRow| one.tried.memory == other.tried.memory;
    rows.chunk_by(is_of_one).map(table).collect::<Vec<_>>().join("\n")
}

fn table(rows: &[FleetRow]) -> String {
    let Some(FleetRow { tried, figures }) = rows.first() else { return String::new() };
    let memory = format!("{} of memory each, {}", show_size(tried.memory.limit_bytes), tried.memory.kind.name());
    let owners = if tried.owners { "a miss goes to the owner" } else { "each fetches for itself" };
    let shared = tried.shared_bytes.map(|bytes| format!("; {} shared", show_size(bytes))).unwrap_or_default();
    let asked = show_size(figures.asked.bytes);
    let mut out = format!("{memory}; {owners}{shared}; {} requests for {asked}\n", figures.asked.requests);
    let heads =
        ["own hits", "owners'", "shared", "origin", "× objects", "from origin", "between", "to shared", "from shared"];
    out += &format!("{:>6}", "nodes");
    heads.iter().for_each(|head| out += &format!("  {head:>11}"));
    out += &format!("  {:>8}\n", "busiest");
    for FleetRow { tried, figures } in rows {
        let part = |tally: &Tally, is_there: bool| match is_there {
            true => format!("{:.2} %", tally.requests as f64 / figures.asked.requests.max(1) as f64 * 100.0),
            false => "–".to_owned(),
        };
        let bytes = |tally: &Tally, is_there: bool| if is_there { show_size(tally.bytes) } else { "–".to_owned() };
        let is_shared = tried.shared_bytes.is_some();
        let cells = [
            part(&figures.own_hits, true),
            part(&figures.owner_hits, tried.owners),
            part(&figures.shared_hits, is_shared),
            part(&figures.fetched, true),
            format!("{:.2}", fetches_an_object(figures)),
            bytes(&figures.fetched, true),
            bytes(&figures.between, tried.owners),
            bytes(&figures.to_shared, is_shared),
            bytes(&figures.shared_hits, is_shared),
        ];
        out += &format!("{:>6}", tried.nodes);
        cells.iter().for_each(|cell| out += &format!("  {cell:>11}"));
        out += &format!("  {:>7.2}×\n", figures.busiest);
    }
    out
}

/// How often the origin is asked for each object.
fn fetches_an_object(figures: &FleetFigures) -> f64 {
    figures.fetched.requests as f64 / figures.objects.max(1) as f64
}

pub fn as_json(trace: &Trace, rows: &[FleetRow]) -> String {
    let first = rows.first().map(|row| row.tried);
    let told = json!({
        "requests": trace.asks.len(),
        "objects": trace.objects,
        "not_cacheable": trace.not_cacheable,
        "not_understood": trace.not_understood,
        "owners": first.is_some_and(|tried| tried.owners),
        "shared_bytes": first.and_then(|tried| tried.shared_bytes),
        "object_bytes": first.map(|tried| tried.memory.object_bytes),
        "ttl_s": first.and_then(|tried| tried.memory.ttl_s),
        "warm_requests": first.map(|tried| tried.warm_requests),
        "fleets": rows.iter().map(row_json).collect::<Vec<_>>(),
    });
    format!("{told:#}\n")
}

fn row_json(row: &FleetRow) -> Value {
    let FleetRow { tried, figures } = row;
    let tally = |tally: &Tally| json!({ "requests": tally.requests, "bytes": tally.bytes });
    json!({
        "nodes": tried.nodes,
        "policy": tried.memory.kind.name(),
        "memory_bytes": tried.memory.limit_bytes,
        "asked": tally(&figures.asked),
        "asked_objects": figures.objects,
        "own_hits": tally(&figures.own_hits),
        "owner_hits": tally(&figures.owner_hits),
        "shared_hits": tally(&figures.shared_hits),
        "origin": tally(&figures.fetched),
        "origin_requests_an_object": fetches_an_object(figures),
        "between_nodes": tally(&figures.between),
        "to_shared": tally(&figures.to_shared),
        "busiest_node": figures.busiest,
        "busiest_owner_bytes": figures.busiest_owner,
    })
}

#[cfg(test)]
mod tests {
    use store::{EvictionKind, Tried};

    use super::*;
    use crate::load_tool::simulation::made_trace::{MadeKind, Recipe, make};

    fn rows(owners: bool, shared_bytes: Option<u64>) -> (Trace, Vec<FleetRow>) {
        let trace = make(&Recipe { kind: MadeKind::Zipf, requests: 5_000, objects: 1_000, seed: 1 });
        let memory =
            Tried { kind: EvictionKind::Lru, limit_bytes: 1 << 22, object_bytes: 1_480, ttl_s: None, standby_s: 0 };
        let small = Tried { limit_bytes: 1 << 20, ..memory };
        let tried = |(memory, nodes)| FleetTried { nodes, memory, owners, shared_bytes, warm_requests: 0 };
        let all: Vec<_> = [(small, 1), (small, 10), (memory, 1)].map(tried).to_vec();
        let made = fleet_rows(&trace, &all, |_| ());
        assert_eq!(
            made.iter().map(|row| row.tried).collect::<Vec<_>>(),
            all,
            "in the order in which they were asked for"
        );
        (trace, made)
    }

    #[test]
    fn a_table_says_what_was_tried_and_a_dash_where_nothing_is() {
        let (_, made) = rows(false, None);
        let text = as_text(&made);
        let tables: Vec<&str> = text.split("\n\n").collect();
        assert_eq!(tables.len(), 2, "{text}");
        assert!(
            tables[0].starts_with("1 MiB of memory each, lru; each fetches for itself; 5000 requests for "),
            "{text}"
        );
        let line = tables[0].lines().last().unwrap();
        assert!(line.trim_start().starts_with("10 ") && line.matches('–').count() == 5, "{text}");
        assert!(line.ends_with(" 1.00×"), "{text}");
        let (_, owned) = rows(true, Some(1 << 22));
        assert!(!as_text(&owned).contains('–') && as_text(&owned).contains("to the owner; 4 MiB shared"));
        let widths: Vec<usize> = as_text(&owned).lines().skip(1).take(3).map(|line| line.chars().count()).collect();
        assert!(widths.windows(2).all(|pair| pair[0] == pair[1]), "{widths:?}");
    }

    #[test]
    fn json_has_all_of_it() {
        let (trace, made) = rows(true, Some(1 << 22));
        let told: Value = serde_json::from_str(&as_json(&trace, &made)).unwrap();
        assert_eq!(
            (&told["requests"], &told["owners"], &told["shared_bytes"]),
            (&json!(5_000), &json!(true), &json!(4_194_304))
        );
        let ten = &told["fleets"][1];
        let sum = |what: &str| {
            ["own_hits", "owner_hits", "shared_hits", "origin"]
                .iter()
                .map(|part| ten[part][what].as_u64().unwrap())
                .sum::<u64>()
        };
        assert_eq!((sum("requests"), sum("bytes")), (5_000, ten["asked"]["bytes"].as_u64().unwrap()));
        assert_eq!((&ten["nodes"], &ten["memory_bytes"]), (&json!(10), &json!(1 << 20)));
        assert!(ten["busiest_owner_bytes"].as_f64().unwrap() > 1.0, "{ten}");
    }
}
