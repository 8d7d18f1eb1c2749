//! `/metrics`: an observation in Prometheus' text format, version 0.0.4.

use std::fmt::{self, Display, Write};

use cache::{DiskState, DiskStats};
use proxy::counters::{COUNTERS, CounterKind, Histogram};
use proxy::origin::{AddressState, AddressStatus, OriginFault};
use proxy::{CodingClassStatus, OriginStatus};

use super::observation::{Latencies, Observation};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics.
pub fn metrics(seen: &Observation) -> String {
    let mut page = Page(String::with_capacity(32 << 10));
    page.family("larder_build_info", "gauge", "The version that runs");
    page.sample("larder_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.one("larder_uptime_seconds", "gauge", "Since the start", Millis(seen.uptime_ms));
    page.one("larder_workers", "gauge", "Worker threads", seen.workers);
    if let Some(bytes) = seen.resident_bytes {
        page.one("process_resident_memory_bytes", "gauge", "Memory of the process, as the kernel counts it", bytes);
    }
    for (name, kind, help) in COUNTERS {
        match kind {
            CounterKind::Total => page.one(&format!("larder_{name}_total"), "counter", help, seen.counter(name)),
            CounterKind::Gauge => page.one(&format!("larder_{name}"), "gauge", help, seen.counter(name)),
        }
    }
    page.latencies(seen);
    page.cache(seen);
    page.coding(seen);
    page.disks(seen);
    page.origins(seen);
    page.vcls(seen);
    page.certificates(seen);
    page.family("larder_edge_total", "counter", "How often each edge of the state machines was taken");
    for edge in &seen.edges {
        page.sample(
            "larder_edge_total",
            &[("machine", edge.machine), ("from", &edge.from), ("to", &edge.to)],
            edge.taken,
        );
    }
    page.0
}

struct Page(String);

impl Page {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (index, (label, text)) in labels.iter().enumerate() {
            let open = if index == 0 { '{' } else { ',' };
            let _ = write!(self.0, "{open}{label}=\"{}\"", Escaped(text));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{close} {value}");
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    fn latencies(&mut self, seen: &Observation) {
        const NAME: &str = "larder_latency_seconds";
        self.family(NAME, "histogram", "From the first byte of a request to the last of its answer");
        for (result, latencies) in [("hit", &seen.latency_hit), ("origin", &seen.latency_origin)] {
            self.histogram(NAME, result, latencies);
        }
    }

    fn histogram(&mut self, name: &str, result: &str, latencies: &Latencies) {
        let mut below = 0;
        for (bucket, count) in latencies.buckets.iter().enumerate() {
            below += count;
            let bound = Histogram::upper_bound_micros(bucket).map(|micros| Micros(micros).to_string());
            let bound = bound.as_deref().unwrap_or("+Inf");
            self.sample(&format!("{name}_bucket"), &[("result", result), ("le", bound)], below);
        }
        self.sample(&format!("{name}_sum"), &[("result", result)], Micros(latencies.sum_micros));
        self.sample(&format!("{name}_count"), &[("result", result)], below);
    }

    fn certificates(&mut self, seen: &Observation) {
        const EXPIRES: &str = "larder_tls_certificate_expires_timestamp_seconds";
        self.family(EXPIRES, "gauge", "Until when a certificate is good that clients are shown, in seconds since 1970");
        let mut before: Vec<(&str, &str)> = Vec::new();
        for certificate in &seen.certificates {
            // One name tells it apart, and those of two kinds have the same: the first is the one that most clients see.
            let name = certificate.names.first().map_or("", String::as_str);
            if !before.contains(&(&certificate.listener, name)) {
                before.push((&certificate.listener, name));
                self.sample(EXPIRES, &[("listener", &certificate.listener), ("name", name)], certificate.until_s);
            }
        }
        let (orders, failures) = seen.acme_counts;
        self.one("larder_acme_orders_total", "counter", "Certificates that were ordered from an authority", orders);
        self.one("larder_acme_orders_failed_total", "counter", "Of these orders, those that failed", failures);
        const FAILING: &str = "larder_acme_failures_in_a_row";
        self.family(FAILING, "gauge", "Orders for a set of names that failed since one last went well");
        for status in &seen.acme {
            self.sample(FAILING, &[("name", status.names.first())], status.failures);
        }
    }

    fn cache(&mut self, seen: &Observation) {
        let cache = &seen.cache;
        for (name, help, value) in [
            ("memory_limit_bytes", "What the process may occupy beside its base", seen.memory.limit_bytes),
            ("memory_base_bytes", "What a process occupies anyway", seen.memory.base_bytes),
            (
                "memory_occupied_bytes",
                "What the process occupies, the store's file in memory included",
                seen.memory.occupied_bytes,
            ),
            (
                "memory_share_bytes",
                "What of the limit what is accounted may take at the moment",
                cache.memory_bytes_max,
            ),
            ("memory_used_bytes", "What is accounted: index, heads, bodies, connections", cache.memory_bytes),
            ("memory_file_bytes", "What bodies take that are sent from the file in memory", cache.file_memory_bytes),
            ("memory_leaving_bytes", "Of these, what only its last readers keep", cache.leaving_bytes),
            (
                "memory_refuses",
                "1 while new connections are refused for want of memory",
                u64::from(seen.memory.refuses),
            ),
            (
                "dictionaries",
                "Texts that are known as dictionaries, stored or kept beside the store",
                cache.dictionaries,
            ),
            ("dictionary_bytes", "What those take that are kept beside the store", cache.dictionary_bytes),
            ("objects", "Stored answers", cache.objects),
            ("keys", "Stored URLs", cache.keys),
        ] {
            self.one(&format!("larder_{name}"), "gauge", help, value);
        }
        for (name, help, value) in [
            ("encodings_recalled", "Codings of stored answers that came back from disks", cache.encodings_recalled),
            ("encodings_made", "Codings of stored answers that were made and kept", cache.encodings_made),
            ("deltas_made", "Of them those that say what differs from a dictionary", cache.deltas_made),
            (
                "dictionaries_given_up",
                "Dictionaries that were kept and went for their age or for want of room",
                cache.dictionaries_given_up,
            ),
            ("evictions", "Answers that made room for others", cache.evictions),
            ("invalidated", "Answers dropped by purges and unsafe methods", cache.invalidated),
            ("banned", "Answers dropped by bans", cache.banned),
            ("stored", "Answers that were stored whole", cache.landed),
            ("refreshed", "Stored answers that the origin confirmed", cache.refreshed),
            ("overflowed", "Answers that grew too large to store while they were fetched", cache.overflowed),
        ] {
            self.one(&format!("larder_{name}_total"), "counter", help, value);
        }
    }

    fn coding(&mut self, seen: &Observation) {
        type Figure = (&'static str, &'static str, &'static str, fn(&CodingClassStatus) -> u64);
        let figures: [Figure; 7] = [
            ("jobs_total", "counter", "Coding work that was done by threads of its own", |class| class.jobs),
            ("bytes_total", "counter", "Bytes that this work was given", |class| class.bytes),
            ("refused_total", "counter", "Work for which too much waited (limits.coding_jobs_max)", |class| {
                class.refused
            }),
            ("abandoned_total", "counter", "Work that nobody wanted any more at its turn", |class| class.abandoned),
            ("panicked_total", "counter", "Work that ended in a panic", |class| class.panicked),
            ("waiting", "gauge", "Work that waits for a thread", |class| class.waiting),
            ("waiting_bytes", "gauge", "Bytes of work that waits for a thread", |class| class.waiting_bytes),
        ];
        self.one("larder_coding_threads", "gauge", "Threads for coding that somebody waits for", seen.coding.threads);
        const HELD: &str = "Memory that coders hold while somebody waits for them";
        self.one("larder_coding_memory_bytes", "gauge", HELD, seen.coding.memory_bytes);
        const SHORT: &str = "Responses that went as they were for want of memory for a coder";
        self.one("larder_coding_memory_refused_total", "counter", SHORT, seen.coding.memory_refused);
        let classes = [("now", &seen.coding.now), ("idle", &seen.coding.idle)];
        for (name, kind, help, figure) in figures {
            let name = format!("larder_coding_{name}");
            self.family(&name, kind, help);
            for (class, status) in classes {
                self.sample(&name, &[("class", class)], figure(status));
            }
        }
        const CPU: &str = "larder_coding_cpu_seconds_total";
        self.family(CPU, "counter", "What this work took of processors");
        for (class, status) in classes {
            self.sample(CPU, &[("class", class)], Micros(status.cpu_micros));
        }
    }

    fn disks(&mut self, seen: &Observation) {
        type Figure = (&'static str, &'static str, &'static str, fn(&DiskStats) -> u64);
        let figures: [Figure; 12] = [
            ("larder_disk_up", "gauge", "1, or 0 for a disk that failed", |disk| {
                u64::from(disk.state == DiskState::Up)
            }),
            ("larder_disk_limit_bytes", "gauge", "Its size", |disk| disk.bytes),
            ("larder_disk_objects", "gauge", "Answers on it", |disk| disk.objects),
            ("larder_disk_index_bytes", "gauge", "Memory that its index takes", |disk| disk.index_bytes),
            (
                "larder_disk_index_ready",
                "gauge",
                "1, or 0 while its index is still coming back after a start",
                |disk| u64::from(disk.index_is_back),
            ),
            ("larder_disk_index_percent", "gauge", "How much of its index has been read", |disk| disk.index_percent),
            ("larder_disk_queued_bytes", "gauge", "Bodies that wait to be written", |disk| disk.queued_bytes),
            ("larder_disk_hits_total", "counter", "Records and blocks that were read", |disk| disk.hits),
            ("larder_disk_read_bytes_total", "counter", "Bytes read", |disk| disk.bytes_read),
            ("larder_disk_lent_total", "counter", "Answers and slices sent from the file without a copy", |disk| {
                disk.leased
            }),
            ("larder_disk_written_bytes_total", "counter", "Bytes written", |disk| disk.bytes_written),
            ("larder_disk_damaged_total", "counter", "What was there and did not sum up", |disk| disk.lost_damaged),
        ];
        for (name, kind, help, figure) in figures {
            self.family(name, kind, help);
            for disk in &seen.disks {
                self.sample(name, &[("path", &disk.path.to_string_lossy())], figure(disk));
            }
        }
        self.family("larder_disk_refused_total", "counter", "What was not written, and why");
        for disk in &seen.disks {
            for (why, count) in disk.refused {
                let labels = [("path", &*disk.path.to_string_lossy()), ("why", why.token())];
                self.sample("larder_disk_refused_total", &labels, count);
            }
        }
    }

    fn origins(&mut self, seen: &Observation) {
        type Figure = (&'static str, &'static str, &'static str, fn(&OriginStatus) -> u64);
        let figures: [Figure; 4] = [
            ("connections", "gauge", "Connections to an origin", |origin| origin.connections as u64),
            ("connections_limit", "gauge", "Its max_connections", |origin| origin.connections_max as u64),
            ("queued", "gauge", "Requests that wait for a connection to an origin", |origin| origin.queued as u64),
            ("errors_total", "counter", "Failures by an origin's doing, of whatever kind", OriginStatus::errors),
        ];
        for (name, kind, help, figure) in figures {
            let name = format!("larder_origin_{name}");
            self.family(&name, kind, help);
            for origin in &seen.origins {
                self.sample(&name, &[("origin", &origin.name)], figure(origin));
            }
        }
        self.family("larder_origin_faults_total", "counter", "The same by their kinds");
        for origin in &seen.origins {
            for ((word, _), count) in OriginFault::ALL.iter().zip(&origin.faults) {
                self.sample("larder_origin_faults_total", &[("origin", &origin.name), ("kind", word)], count);
            }
        }
        self.addresses(seen);
    }

    fn addresses(&mut self, seen: &Observation) {
        type Figure = (&'static str, &'static str, fn(&AddressStatus) -> Option<u64>);
        let figures: [Figure; 5] = [
            ("up", "1, or 0 for an address that failed the last time, or that is left out or taken out", |address| {
                Some(u64::from(address.state == AddressState::Up))
            }),
            ("weight", "What an address weighs beside the others of its origin", |address| {
                Some(address.share.weight.into())
            }),
            (
                "share_permille",
                "How many thousandths of that it gets: fewer than 1000 while it begins slowly",
                |address| Some(address.permille.into()),
            ),
            ("in_use", "Connections to an address that are in use, or requests over HTTP/2", |address| {
                Some(address.in_use as u64)
            }),
            ("probes_good", "Good ones among the last probes of an address", |address| {
                address.probe.as_ref().map(|probe| probe.good.into())
            }),
        ];
        for (name, help, figure) in figures {
            let name = format!("larder_origin_{name}");
            self.family(&name, "gauge", help);
            for origin in &seen.origins {
                for address in &origin.addresses {
                    let labels = [("origin", &*origin.name), ("address", &*address.label)];
                    figure(address).into_iter().for_each(|value| self.sample(&name, &labels, value));
                }
            }
        }
    }
}

impl Page {
    fn vcls(&mut self, seen: &Observation) {
        self.family("larder_vcl_active", "gauge", "1 for the VCL that decides, 0 for others that are loaded");
        for vcl in &seen.vcls {
            self.sample("larder_vcl_active", &[("vcl", &vcl.name)], u8::from(vcl.is_active));
        }
        self.family("larder_vcl_under_way", "gauge", "Transactions and fetches that began on a VCL and have not ended");
        for vcl in &seen.vcls {
            self.sample("larder_vcl_under_way", &[("vcl", &vcl.name)], vcl.under_way);
        }
        let backends = || seen.vcls.iter().flat_map(|vcl| vcl.backends.iter().map(move |backend| (vcl, backend)));
        self.family("larder_backend_healthy", "gauge", "1 for a backend that is taken for healthy");
        for (vcl, backend) in backends() {
            let labels = [("vcl", vcl.name.as_str()), ("backend", &*backend.origin.name)];
            self.sample("larder_backend_healthy", &labels, u8::from(backend.healthy));
        }
        self.family("larder_backend_connections", "gauge", "Connections to a backend");
        for (vcl, backend) in backends() {
            let labels = [("vcl", vcl.name.as_str()), ("backend", &*backend.origin.name)];
            self.sample("larder_backend_connections", &labels, backend.origin.connections);
        }
        self.family("larder_backend_probes_good", "gauge", "Good ones among the last probes of a backend");
        for (vcl, backend) in backends() {
            let labels = [("vcl", vcl.name.as_str()), ("backend", &*backend.origin.name)];
            if let Some(probe) = &backend.probe {
                self.sample("larder_backend_probes_good", &labels, probe.good);
            }
        }
    }
}

/// A label's value.
struct Escaped<'a>(&'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            c => f.write_char(c),
        })
    }
}

/// Seconds, written exactly.
struct Micros(u64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

struct Millis(u64);

impl Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::observation::tests::sample;
    use super::*;

    /// Reads the format as strictly as Prometheus does: families before their samples, none twice.
    fn samples(page: &str) -> HashMap<String, f64> {
        let mut samples = HashMap::new();
        let mut family = (String::new(), String::new());
        let mut families = Vec::new();
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert!(!families.contains(&name.to_owned()), "{name} twice");
                families.push(name.to_owned());
                family = (name.to_owned(), kind.to_owned());
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let name = series.split('{').next().unwrap();
                let stem = match family.1.as_str() {
                    "histogram" => name.trim_end_matches("_bucket").trim_end_matches("_sum").trim_end_matches("_count"),
                    _ => name,
                };
                assert_eq!(stem, family.0, "{line}");
                assert_eq!(name.ends_with("_total"), family.1 == "counter", "{line}");
                assert!(samples.insert(series.to_owned(), value.parse().unwrap()).is_none(), "{series} twice");
            }
        }
        samples
    }

    #[test]
    fn every_counter_is_there_under_its_own_value() {
        let seen = sample();
        let samples = samples(&metrics(&seen));
        for (name, kind, _) in COUNTERS {
            let suffix = if *kind == CounterKind::Total { "_total" } else { "" };
            assert_eq!(samples[&format!("larder_{name}{suffix}")], seen.counter(name) as f64, "{name}");
        }
        assert_eq!(samples["larder_memory_used_bytes"], 77.0);
        assert_eq!((samples["larder_memory_limit_bytes"], samples["larder_memory_refuses"]), (3145728.0, 1.0));
        assert_eq!(samples["larder_uptime_seconds"], 61.5);
        let expires = "larder_tls_certificate_expires_timestamp_seconds{listener=\"0.0.0.0:443\",name=\"a.example\"}";
        assert_eq!(samples[expires], 1_259_207.0);
        assert_eq!((samples["larder_acme_orders_total"], samples["larder_acme_orders_failed_total"]), (6.0, 5.0));
        assert_eq!(samples["larder_acme_failures_in_a_row{name=\"a.example\"}"], 4.0);
        let figures = ["jobs_total", "bytes_total", "refused_total", "abandoned_total", "panicked_total"];
        for (name, value) in figures.iter().chain(&["cpu_seconds_total", "waiting", "waiting_bytes"]).zip(31..) {
            let value = if value == 36 { 1.000_036 } else { f64::from(value) };
            assert_eq!(samples[&format!("larder_coding_{name}{{class=\"now\"}}")], value, "{name}");
        }
        assert_eq!(
            (samples["larder_coding_threads"], samples["larder_coding_jobs_total{class=\"idle\"}"]),
            (3.0, 41.0)
        );
        assert_eq!(samples["larder_edge_total{machine=\"fetch\",from=\"Send\",to=\"Reply\"}"], 9.0);
    }

    #[test]
    fn histograms_are_cumulative_and_end_at_infinity() {
        let samples = samples(&metrics(&sample()));
        let bucket = |le: &str| samples[&format!("larder_latency_seconds_bucket{{result=\"hit\",le=\"{le}\"}}")];
        assert_eq!((bucket("0.000002"), bucket("0.000003"), bucket("+Inf")), (0.0, 90.0, 100.0));
        assert_eq!(samples["larder_latency_seconds_count{result=\"hit\"}"], 100.0);
        assert_eq!(samples["larder_latency_seconds_sum{result=\"hit\"}"], 0.000_250);
    }

    #[test]
    fn labels_are_escaped() {
        let samples = samples(&metrics(&sample()));
        assert_eq!(samples["larder_origin_faults_total{origin=\"we\\\\b\",kind=\"busy\"}"], 6.0);
        assert_eq!(samples["larder_origin_share_permille{origin=\"we\\\\b\",address=\"127.0.0.1:3001\"}"], 250.0);
        assert_eq!(samples["larder_origin_up{origin=\"we\\\\b\",address=\"127.0.0.1:3001\"}"], 0.0);
        assert_eq!(Escaped("a\"b\nc").to_string(), "a\\\"b\\nc");
    }
}
