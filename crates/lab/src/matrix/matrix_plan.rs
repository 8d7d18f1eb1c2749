//! The plan of a run: the lab file after every check that needs no server, laid under what was ordered (`--quick`,
//! `--only`, `--rows`, `--seed`).

use std::time::Duration;

use crate::limits::{BLOCKS_MAX, THREADS_MAX};
use crate::matrix::MatrixOrder;
use crate::matrix::cpu_sets::{allowed, halves};
use crate::matrix::lab_file::{LabFile, OriginChoice, Source};
use crate::matrix::planned_rows::{PlannedRow, planned_rows};
use crate::matrix::planned_servers::{PlannedServer, planned_servers, sha256_hex};
use crate::results::{MethodUsed, NamedText};

#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) smoke: bool,
    pub(crate) repeat: String,
    pub(crate) lab_file: NamedText,
    pub(crate) method: MethodUsed,
    pub(crate) origin: OriginChoice,
    pub(crate) servers: Vec<PlannedServer>,
    pub(crate) rows: Vec<PlannedRow>,
    /// The same for two runs only when their blocks may stand side by side.
    pub(crate) fingerprint: String,
}

const BLOCKS: usize = 10;
const BLOCKS_QUICK_MAX: usize = 3;
const SLICE: Duration = Duration::from_secs(1);
const SLICE_QUICK_MAX: Duration = Duration::from_millis(500);
const WARM_MAX: Duration = Duration::from_secs(10);
const WARM_QUICK_MAX: Duration = Duration::from_secs(4);
/// A quick run has one of so many sessions.
const SESSIONS_QUICK_SHARE: u64 = 5;
const RESTART_EVERY: usize = 5;

pub(crate) fn plan(order: &MatrixOrder) -> Result<Plan, String> {
    let source = Source { name: &order.lab_file.name, text: &order.lab_file.text, nearest: order.nearest };
    let file = source.read()?;
    let mut servers = planned_servers(&file, &source)?;
    let names: Vec<String> = servers.iter().map(|server| server.name.clone()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut rows = planned_rows(&file.row, &names, &source)?;
    if let Some(wrong) = order.only.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("--only: {}", source.unknown("server", wrong, &names)));
    }
    let reference = file.reference.as_ref();
    if !order.only.is_empty() {
        // Without the reference and its second copy nothing can be compared.
        servers.retain(|server| {
            let is_reference = server.name == *reference || server.twin_of.is_some();
            is_reference || order.only.contains(&server.name)
        });
    }
    if let Some(part) = &order.rows {
        let all: Vec<String> = rows.iter().map(|row| format!("  {}", row.used.name)).collect();
        rows.retain(|row| row.used.name.contains(part.as_str()));
        if rows.is_empty() {
            return Err(format!("--rows: no row's name holds `{part}`; there are:\n{}", all.join("\n")));
        }
    }
    if order.quick {
        rows.iter_mut().for_each(|row| {
            row.blocks = row.blocks.map(|blocks| blocks.min(BLOCKS_QUICK_MAX));
            row.slice = row.slice.map(|slice| slice.min(SLICE_QUICK_MAX));
            row.sessions.iter_mut().for_each(|all| all.count = (all.count / SESSIONS_QUICK_SHARE).max(1));
        });
    }
    let method = method(&file, order, &source)?;
    let server_names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    let what = format!("{}\n{method:?}\n{rows:?}\n{server_names:?}", order.lab_file.text);
    Ok(Plan {
        title: file.title.clone(),
        about: file.about.clone(),
        smoke: order.quick,
        repeat: order.repeat.clone(),
        lab_file: order.lab_file.clone(),
        fingerprint: sha256_hex(what.as_bytes()),
        method,
        origin: file.origin,
        servers,
        rows,
    })
}

fn method(file: &LabFile, order: &MatrixOrder, source: &Source<'_>) -> Result<MethodUsed, String> {
    let section = &file.method;
    let refuse = |what: String| Err(format!("{}: [method]: {what}", source.name));
    let here = allowed();
    let (clients, servers) = halves(&here);
    let client_cpus = section.client_cpus.clone().unwrap_or(clients);
    let server_cpus = section.server_cpus.clone().unwrap_or(servers);
    for (name, cpus) in [("client_cpus", &client_cpus), ("server_cpus", &server_cpus)] {
        if let Some(wrong) = cpus.iter().find(|cpu| !here.contains(cpu)) {
            return refuse(format!("{name}: this process may not run on processor {wrong}; it may on {here:?}"));
        }
        if cpus.is_empty() {
            return refuse(format!("{name} names no processor"));
        }
    }
    let client_threads = section.threads.unwrap_or(client_cpus.len());
    if !(1..=THREADS_MAX).contains(&client_threads) {
        return refuse(format!("threads must be 1 to {THREADS_MAX}"));
    }
    let blocks = section.blocks.unwrap_or(BLOCKS);
    if !(1..=BLOCKS_MAX).contains(&blocks) {
        return refuse(format!("blocks must be 1 to {BLOCKS_MAX}"));
    }
    let slice = section.slice.map_or(SLICE, |span| span.0);
    let warm_max = section.warm_max.map_or(WARM_MAX, |span| span.0);
    let quick = |time: Duration, max: Duration| if order.quick { time.min(max) } else { time };
    Ok(MethodUsed {
        blocks: if order.quick { blocks.min(BLOCKS_QUICK_MAX) } else { blocks },
        slice_seconds: quick(slice, SLICE_QUICK_MAX).as_secs_f64(),
        warm_seconds_max: quick(warm_max, WARM_QUICK_MAX).as_secs_f64(),
        restart_every: section.restart_every.unwrap_or(RESTART_EVERY),
        seed: order.seed.or(section.seed).unwrap_or(1),
        client_cpus,
        server_cpus,
        client_threads,
        reference: file.reference.as_ref().clone(),
    })
}

impl Plan {
    pub(crate) fn blocks_of(&self, row: &PlannedRow) -> usize {
        row.blocks.unwrap_or(self.method.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::lab_file::tests::same_beginning;

    fn order(text: &str) -> MatrixOrder {
        let head = "title = \"t\"\nreference = \"larder\"\nservers = [\"larder\", \"varnish\"]\n";
        let row = "[[row]]\nname = \"hit\"\nsize = 1\nconnections = [1, 2]\n";
        MatrixOrder {
            lab_file: NamedText { name: "a.toml".to_owned(), text: format!("{head}{text}{row}") },
            out: "out".into(),
            quick: false,
            only: Vec::new(),
            rows: None,
            seed: None,
            fresh: false,
            larder: "larder".into(),
            search: Vec::new(),
            repeat: String::new(),
            nearest: same_beginning,
        }
    }

    #[test]
    fn what_is_ordered_lies_over_what_is_written() {
        let full = plan(&order("[method]\nblocks = 12\nseed = 3\n")).unwrap();
        assert_eq!((full.method.blocks, full.method.seed, full.rows.len(), full.servers.len()), (12, 3, 2, 3));
        let quick = plan(&MatrixOrder { quick: true, seed: Some(4), ..order("") }).unwrap();
        assert_eq!((quick.method.blocks, quick.method.slice_seconds, quick.method.seed), (3, 0.5, 4));
        assert!(quick.smoke && quick.fingerprint != full.fingerprint);
        // Within the limits of a quick run the method is the same, and yet fewer sessions are played.
        let small = "[method]\nblocks = 2\nslice = \"100ms\"\nwarm_max = \"1s\"\n";
        let sessions =
            "[[row]]\nname = \"s\"\nsize = 1\nconnections = 9\nsessions = { count = 50, calls = 2, think = \"1s\" }\n";
        let text = format!("{small}{sessions}");
        let fingerprint = |quick| plan(&MatrixOrder { quick, ..order(&text) }).unwrap().fingerprint;
        assert_ne!(fingerprint(true), fingerprint(false));
        let only = vec!["larder".to_owned()];
        let part = plan(&MatrixOrder { only, rows: Some("2 conn".to_owned()), ..order("") }).unwrap();
        assert_eq!((part.rows.len(), part.servers.len()), (1, 2));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |order: MatrixOrder, part: &str| {
            let error = plan(&order).map(|_| ()).unwrap_err();
            assert!(error.contains(part), "{error}");
        };
        check(MatrixOrder { only: vec!["varnsh".to_owned()], ..order("") }, "did you mean `varnish`");
        check(MatrixOrder { rows: Some("miss".to_owned()), ..order("") }, "no row's name holds `miss`");
        check(order("[method]\nblocks = 0\n"), "blocks must be 1");
        check(order("[method]\nserver_cpus = [9999]\n"), "may not run on processor 9999");
        check(order("[method]\nclient_cpus = []\n"), "names no processor");
        check(order("[method]\nthreads = 0\n"), "threads must be");
    }

    /// The lab file that comes with larder: every server that a row names can do it.
    #[test]
    fn the_rows_of_the_bench_are_asked_of_those_who_can_answer_them() {
        let text = include_str!("../../../../lab/bench.toml").to_owned();
        let lab_file = NamedText { name: "lab/bench.toml".to_owned(), text };
        let plan = plan(&MatrixOrder { lab_file, ..order("") }).unwrap();
        for row in &plan.rows {
            let named = plan.servers.iter().filter(|server| row.only.is_empty() || row.only.contains(&server.name));
            for server in named {
                assert_eq!(server.profile.refusal(row), None, "{}", row.used.name);
            }
        }
        for (tls, http2) in [(true, false), (false, true), (true, true)] {
            assert!(plan.rows.iter().any(|row| (row.used.tls, row.used.http2) == (tls, http2)));
        }
    }
}
