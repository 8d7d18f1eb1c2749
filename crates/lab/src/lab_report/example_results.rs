//! Results as a run could have left them, for the tests of the reports: every colour, every bound, a server twice, one
//! that took no part, and text that tries to be markup. The numbers are invented, from a seed.

use std::collections::BTreeMap;

use crate::results::*;

/// What a hostile server would like to have in our page and on our terminal.
pub const HOSTILE: &str = "</script><script>document.title='taken'</script><img src=x onerror=alert(1)>\u{1b}[31m";

/// Name, how much slower than the first, CPU for each answer, p99 as a multiple of p50, memory.
const SERVERS: [(&str, f64, f64, f64, u64); 5] = [
    ("larder", 1.0, 9.8, 2.1, 34 << 20),
    ("larder (again)", 1.005, 9.85, 2.12, 34 << 20),
    ("nginx", 1.12, 12.4, 2.4, 21 << 20),
    ("varnish", 1.55, 19.0, 3.9, 190 << 20),
    ("squid", 4.3, 58.0, 6.5, 260 << 20),
];

const BLOCKS: usize = 5;
const SLICE_SECONDS: f64 = 6.0;

pub fn example() -> LabResults {
    let mut luck = fastrand::Rng::with_seed(7);
    let rows = rows();
    let cells: Vec<Cell> = rows
        .iter()
        .enumerate()
        .flat_map(|(at, row)| (0..SERVERS.len() + 1).map(move |server| (at, row, server)))
        .map(|(at, row, server)| cell(&mut luck, at, row, server))
        .collect();
    LabResults {
        format: RESULTS_FORMAT.to_owned(),
        title: "Small files from memory: larder beside nginx, Varnish and Squid".to_owned(),
        about: "One 6,221-byte page and one of 1 MiB, served from each cache's memory over loopback.".to_owned(),
        smoke: true,
        interrupted: false,
        begun: "2026-11-22T01:02:03Z".to_owned(),
        elapsed_seconds: 1_893.0,
        repeat: "larder lab run lab/studies/varnish-and-nginx.toml --quick --seed 42".to_owned(),
        lab_file: NamedText {
            name: "varnish-and-nginx.toml".to_owned(),
            text: "title = \"Small files from memory\"\n[[row]]\nsize = 6221\nconnections = [1, 16, 128, 1000]\n"
                .to_owned(),
        },
        machine: machine(),
        method: MethodUsed {
            blocks: BLOCKS,
            slice_seconds: SLICE_SECONDS,
            warm_seconds_max: 10.0,
            restart_every: 2,
            seed: 42,
            client_cpus: vec![0],
            server_cpus: vec![1],
            client_threads: 1,
            reference: "larder".to_owned(),
        },
        origin: Some(ServerUsed {
            name: "origin".to_owned(),
            profile: "larder lab origin".to_owned(),
            version: "larder 0.1.0".to_owned(),
            command: ["larder", "lab", "origin", "--listen", "127.0.0.1:9001"].map(str::to_owned).to_vec(),
            ..ServerUsed::default()
        }),
        servers: servers(),
        differences: differences(&rows, &cells),
        noise: noise(),
        rows,
        cells,
        warnings: vec![
            "other guests of the host took 2.1 % of the processor time".to_owned(),
            "only 2 CPUs: client and server share caches, most cells at full speed are the client's".to_owned(),
        ],
    }
}

fn machine() -> Machine {
    let settings = [("governor", "performance"), ("net.core.somaxconn", "4096"), ("mitigations", "auto")];
    Machine {
        cpu_model: "Example Xeon @ 2.80GHz".to_owned(),
        cpus: 2,
        memory_bytes: 8 << 30,
        kernel: "Linux 6.1.0-18-amd64".to_owned(),
        open_files_max: 20_000,
        load_before: 0.12,
        load_after: 2.31,
        steal_share: 0.021,
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    }
}

fn servers() -> Vec<ServerUsed> {
    let mut servers: Vec<ServerUsed> = SERVERS
        .iter()
        .map(|(name, ..)| ServerUsed {
            name: (*name).to_owned(),
            profile: name.split(' ').next().unwrap_or_default().to_owned(),
            version: format!("{name} 1.2.3 (Debian)"),
            command: vec![(*name).to_owned(), "--config".to_owned(), "it's.conf".to_owned()],
            configs: vec![NamedText { name: format!("{name}.conf"), text: format!("# of {name}\nlisten 8080;\n") }],
            binary_sha256: "4b8a8191e425658e3ea8c8c1314b0fc679c861ee3a1af2b20c7b16ba50b5133d".to_owned(),
            twin_of: name.contains("again").then(|| "larder".to_owned()),
            skipped: None,
            behind: None,
        })
        .collect();
    servers[3].configs[0].text.push_str(HOSTILE);
    servers.push(ServerUsed {
        name: "trafficserver".to_owned(),
        profile: "trafficserver".to_owned(),
        skipped: Some("no traffic_server in PATH: apt install trafficserver".to_owned()),
        ..ServerUsed::default()
    });
    servers
}

fn rows() -> Vec<RowUsed> {
    let row = |size: u64, shown: &str, connections: usize, rate: Option<f64>| {
        let (load, family) = match rate {
            Some(rate) => (format!("{rate}/s"), format!("{shown}, kept, fixed rate")),
            None => (format!("{connections} connections"), format!("{shown}, kept")),
        };
        RowUsed {
            name: format!("{shown}, {load}, kept"),
            family,
            size_bytes: Some(size),
            urls: 1,
            connections,
            keep_alive: true,
            rate_per_second: rate,
            load: format!("{load}, one URL, connections kept, every byte checked"),
            null_ceiling_per_second: Some(55_000.0),
            ..RowUsed::default()
        }
    };
    vec![
        row(6_221, "6221 B", 1, None),
        row(6_221, "6221 B", 16, None),
        row(6_221, "6221 B", 128, None),
        row(6_221, "6221 B", 1_000, None),
        row(1 << 20, "1 MiB", 16, None),
        row(1 << 20, "1 MiB", 128, None),
        row(6_221, "6221 B", 64, Some(2_000.0)),
        row(6_221, "6221 B", 64, Some(8_000.0)),
        RowUsed {
            name: "1000 held connections".to_owned(),
            family: "held connections".to_owned(),
            connections: 1_000,
            keep_alive: true,
            load: "1000 connections ask once and are held; one asks meanwhile".to_owned(),
            kind: RowKind::Idle,
            ..RowUsed::default()
        },
    ]
}

fn cell(luck: &mut fastrand::Rng, at: usize, row: &RowUsed, server: usize) -> Cell {
    let Some(&(name, slower, cpu_micros, tail, memory)) = SERVERS.get(server) else {
        return white("trafficserver", row, "no traffic_server in PATH: apt install trafficserver");
    };
    if name == "squid" && at == 3 {
        return white(name, row, "its gate failed: 3 of 64 connections refused at 1000 connections");
    }
    let heavy = if row.size_bytes == Some(1 << 20) { 18.0 } else { 1.0 };
    let most = 42_000.0 / slower / heavy * (row.connections as f64 / 24.0).min(1.0);
    let goodput = row.rate_per_second.map_or(most, |rate| rate.min(most));
    let p50 = row.rate_per_second.map_or(row.connections as f64 / most * 1e6, |_| 90.0 * slower);
    let failed_share = match (name, at) {
        ("varnish", 3) => 0.0004,
        ("squid", 2) => 0.03,
        ("squid", 7) => 0.22,
        _ => 0.0,
    };
    let is_idle = row.kind == RowKind::Idle;
    let client = slower < 1.2 && row.rate_per_second.is_none() && at > 0 && !is_idle;
    let few_failed = failed_share < 0.001;
    let latency = row.rate_per_second.is_some() || is_idle;
    let comparable_in = [
        (Metric::Goodput, !client && !latency),
        (Metric::ServerMicrosPerAnswer, !is_idle),
        (Metric::P50, latency),
        (Metric::P99, latency),
        (Metric::BytesPerConnection, is_idle),
    ];
    let blocks: Vec<Block> = (0..BLOCKS)
        .map(|block| {
            let drift = 0.97 + luck.f64() * 0.06;
            let good = (goodput * drift * SLICE_SECONDS) as u64;
            slice(
                luck,
                (at * BLOCKS + block) * 40 + server * 7,
                block,
                good,
                failed_share,
                p50 / drift,
                tail,
                cpu_micros * heavy.sqrt(),
                memory,
            )
        })
        .collect();
    let of = |value: fn(&Block) -> f64| estimate(blocks.iter().map(value).collect());
    Cell {
        server: name.to_owned(),
        row: row.name.clone(),
        colour: match failed_share {
            0.0 => Colour::Clean,
            ..0.001 => Colour::LightYellow,
            ..0.1 => Colour::Orange,
            _ => Colour::Red,
        },
        bound: match (client, row.rate_per_second) {
            (true, _) => Bound::Client,
            (_, Some(_)) => Bound::Latency,
            _ => Bound::Server,
        },
        ranks_throughput: !client && !latency && few_failed,
        comparable_in: comparable_in.into_iter().filter_map(|(m, may)| (may && few_failed).then_some(m)).collect(),
        bytes_per_connection: is_idle.then(|| estimate([0.98, 1.0, 1.03].map(|by| memory as f64 / 9e3 * by).to_vec())),
        gate: Some(Gate { urls: 1, bytes: 6_221, bad: vec![] }),
        steady: Some(true),
        why: if client { vec!["a thread of ours used 97 % of its core".to_owned()] } else { vec![] },
        goodput_per_second: (!is_idle).then(|| of(|b| b.good as f64 / b.elapsed_seconds)),
        server_micros_per_answer: (!is_idle).then(|| of(|b| b.server.cpu_seconds * 1e6 / b.good as f64)),
        p50_micros: Some(of(|b| b.p50_micros.unwrap() as f64)),
        p99_micros: Some(of(|b| b.p99_micros.unwrap() as f64)),
        spectrum: spectrum(p50, tail, 1.25),
        spectrum_from_send: spectrum(p50, tail, 1.0),
        errors: errors(failed_share, &blocks),
        blocks,
    }
}

fn white(server: &str, row: &RowUsed, why: &str) -> Cell {
    Cell {
        server: server.to_owned(),
        row: row.name.clone(),
        colour: Colour::White,
        bound: Bound::Unknown,
        ranks_throughput: false,
        comparable_in: vec![],
        bytes_per_connection: None,
        gate: None,
        steady: None,
        why: vec![why.to_owned()],
        blocks: vec![],
        goodput_per_second: None,
        server_micros_per_answer: None,
        p50_micros: None,
        p99_micros: None,
        spectrum: vec![],
        spectrum_from_send: vec![],
        errors: BTreeMap::new(),
    }
}

#[allow(clippy::too_many_arguments, reason = "a made-up slice is these numbers, and only this file makes any")]
fn slice(
    luck: &mut fastrand::Rng,
    at: usize,
    block: usize,
    good: u64,
    failed_share: f64,
    p50: f64,
    tail: f64,
    cpu_micros: f64,
    memory: u64,
) -> Block {
    let cpu = cpu_micros * (0.98 + luck.f64() * 0.04) * good as f64 / 1e6;
    let p99 = (p50 * tail) as u64;
    let sample = |second: usize, luck: &mut fastrand::Rng| Sample {
        at_seconds: second as f64 + 1.0,
        good_per_second: good as f64 / SLICE_SECONDS * (0.95 + luck.f64() * 0.1),
        failed: (good as f64 * failed_share / SLICE_SECONDS) as u64,
        p99_micros: Some((p99 as f64 * (0.9 + luck.f64() * 0.3)) as u64),
        server_busy_share: (cpu / SLICE_SECONDS * (0.95 + luck.f64() * 0.1)).min(1.0),
        server_pss_bytes: memory + second as u64 * 200_000,
    };
    Block {
        block,
        at_seconds: at as f64,
        elapsed_seconds: SLICE_SECONDS,
        good,
        failed: (good as f64 * failed_share) as u64,
        body_bytes: good * 6_221,
        p50_micros: Some(p50 as u64),
        p99_micros: Some(p99),
        max_micros: Some(p99 * 4),
        connections_opened: 64,
        client_busy_share: 0.97,
        server: ServerCost {
            cpu_seconds: cpu,
            user_seconds: cpu * 0.35,
            system_seconds: cpu * 0.65,
            busy_share: (cpu / SLICE_SECONDS).min(1.0),
            pss_bytes: memory,
            fds: 90,
            threads: 4,
            voluntary_switches: 12_000,
            involuntary_switches: 310,
        },
        origin_requests: Some(0),
        restarted: block.is_multiple_of(2),
        samples: (0..SLICE_SECONDS as usize).map(|second| sample(second, luck)).collect(),
        ..Block::default()
    }
}

fn errors(failed_share: f64, blocks: &[Block]) -> BTreeMap<String, ErrorSeen> {
    let count: u64 = blocks.iter().map(|block| block.failed).sum();
    let seen =
        |count, sample: &str| ErrorSeen { count, first_seconds: 12.25, last_seconds: 310.5, sample: sample.to_owned() };
    match failed_share {
        0.0 => BTreeMap::new(),
        ..0.1 => BTreeMap::from([("conn-refused".to_owned(), seen(count, "Connection refused (os error 111)"))]),
        _ => BTreeMap::from([
            ("bad-bytes".to_owned(), seen(count / 3, HOSTILE)),
            ("first-byte-timeout".to_owned(), seen(count - count / 3, "nothing for 10 s after GET /f6221.html")),
        ]),
    }
}

fn spectrum(p50: f64, tail: f64, pauses: f64) -> Vec<(f64, u64)> {
    let at = |percentile: f64| {
        let beyond = (1.0 / (1.0 - percentile / 100.0)).log2() - 1.0;
        let grown = if beyond < 0.0 { 1.0 + beyond * 0.3 } else { 1.0 + beyond * (tail - 1.0) / 5.64 };
        (percentile, (p50 * grown * if percentile > 99.0 { pauses } else { 1.0 }) as u64)
    };
    [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99].map(at).to_vec()
}

fn estimate(mut values: Vec<f64>) -> Estimate {
    values.sort_by(f64::total_cmp);
    let (min, max, middle) = (values[0], values[values.len() - 1], values.len() / 2);
    Estimate { median: values[middle], low: values[middle - 1], high: values[middle + 1], min, max }
}

fn differences(rows: &[RowUsed], cells: &[Cell]) -> Vec<Difference> {
    let metrics =
        [Metric::Goodput, Metric::ServerMicrosPerAnswer, Metric::P50, Metric::P99, Metric::BytesPerConnection];
    let mut differences = Vec::new();
    for row in rows {
        let of = |server: &str| cells.iter().find(|cell| cell.row == row.name && cell.server == server).unwrap();
        for (server, metric) in SERVERS[1..].iter().flat_map(|(server, ..)| metrics.map(|metric| (*server, metric))) {
            let value = |cell: &Cell| super::ranking::estimate(cell, metric).map(|estimate| estimate.median);
            let (Some(own), Some(other)) = (value(of(server)), value(of("larder"))) else { continue };
            let median = own / other;
            let more_is_better = metric == Metric::Goodput;
            let ranked = |cell: &Cell| cell.comparable_in.contains(&metric);
            let verdict = match ((median - 1.0).abs() > 0.067, (median > 1.0) == more_is_better) {
                _ if !ranked(of(server)) || !ranked(of("larder")) => Verdict::NotRanked,
                (false, _) => Verdict::NoDifferenceShown,
                (true, true) => Verdict::Better,
                (true, false) => Verdict::Worse,
            };
            let ratio =
                Estimate { median, low: median * 0.98, high: median * 1.03, min: median * 0.95, max: median * 1.06 };
            differences.push(Difference {
                row: row.name.clone(),
                metric,
                server: server.to_owned(),
                against: "larder".to_owned(),
                ratio,
                verdict,
            });
        }
    }
    differences
}

fn noise() -> Vec<Noise> {
    let gaps =
        [(Metric::Goodput, 0.041), (Metric::ServerMicrosPerAnswer, 0.034), (Metric::P50, 0.061), (Metric::P99, 0.067)];
    let ratio = |gap: f64| Estimate { median: 1.01, low: 1.0 - gap, high: 1.0 + gap, min: 0.96, max: 1.05 };
    gaps.map(|(metric, gap)| Noise { row: "6221 B, 16 connections, kept".to_owned(), metric, ratio: ratio(gap), gap })
        .into()
}
