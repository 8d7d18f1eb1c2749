//! `/metrics`: an observation in Prometheus' text format, version 0.0.4, by the rows of `metric_rows/`. And `/debug`, in the same form: what
//! only those who work on larder ask for.

use std::fmt::Write;

use super::metric_definition::{MetricDefinition, MetricSource};
use super::metric_rows;
use super::metric_samples::{Samples, write_sample};
use super::observation::Observation;

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics.
pub fn metrics(seen: &Observation) -> String {
    let mut page = String::with_capacity(128 << 10);
    metric_rows::definitions().for_each(|definition| write_metric(&mut page, &definition, seen));
    page
}

/// The edges of the state machines.
pub fn debug(seen: &Observation) -> String {
    let mut page = String::with_capacity(32 << 10);
    let about = ("counter", "How often each edge of the state machines was taken. docs/machines.md shows them.");
    write_head(&mut page, "larder_edge_total", about);
    for edge in &seen.edges {
        let labels = [("machine", edge.machine), ("from", &*edge.from), ("to", &*edge.to)];
        write_sample(&mut page, "larder_edge_total", labels, edge.taken);
    }
    page
}

fn write_metric(page: &mut String, definition: &MetricDefinition, seen: &Observation) {
    write_head(page, definition.name, (definition.kind.word(), &definition.says()));
    let mut samples = Samples::of_metric(page, definition.name, definition.labels);
    match definition.source {
        MetricSource::CoreCounter(name) => samples.one(seen.counter(name)),
        MetricSource::Read(read) => read(seen, &mut samples),
    }
}

fn write_head(page: &mut String, name: &str, (kind, help): (&str, &str)) {
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proxy::counters::COUNTERS;

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
        for counter in COUNTERS {
            let value = seen.counter(counter.name) as f64;
            assert_eq!([samples[counter.metric], samples[counter.former_metric]], [value, value], "{}", counter.name);
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
    }

    #[test]
    fn what_is_inside_is_told_elsewhere() {
        let edge = "larder_edge_total{machine=\"fetch\",from=\"Send\",to=\"Reply\"}";
        assert_eq!(samples(&debug(&sample()))[edge], 9.0);
        assert!(!metrics(&sample()).contains("larder_edge_total"));
    }

    #[test]
    fn histograms_are_cumulative_and_end_at_infinity() {
        let samples = samples(&metrics(&sample()));
        let bucket = |le: &str| samples[&format!("larder_latency_seconds_bucket{{result=\"hit\",le=\"{le}\"}}")];
        assert_eq!((bucket("0.000002"), bucket("0.000003"), bucket("+Inf")), (0.0, 90.0, 100.0));
        assert_eq!(samples["larder_latency_seconds_count{result=\"hit\"}"], 100.0);
        assert_eq!(samples["larder_latency_seconds_sum{result=\"hit\"}"], 0.000_250);
        let bucket = |le: &str| samples[&format!("larder_response_seconds_bucket{{class=\"hit\",le=\"{le}\"}}")];
        assert_eq!((bucket("0.000001"), bucket("0.000003"), bucket("+Inf")), (0.0, 90.0, 100.0));
        assert!(!samples.contains_key("larder_response_seconds_bucket{class=\"hit\",le=\"0.000002\"}"));
    }

    #[test]
    fn labels_are_escaped() {
        let samples = samples(&metrics(&sample()));
        assert_eq!(samples["larder_origin_faults_total{origin=\"we\\\\b\",kind=\"busy\"}"], 6.0);
        assert_eq!(samples["larder_origin_share_permille{origin=\"we\\\\b\",address=\"127.0.0.1:3001\"}"], 250.0);
        assert_eq!(samples["larder_origin_share_ratio{origin=\"we\\\\b\",address=\"127.0.0.1:3001\"}"], 0.25);
        assert_eq!(samples["larder_origin_asked_total{origin=\"we\\\\b\"}"], 77.0);
        assert_eq!(samples["larder_origin_up{origin=\"we\\\\b\",address=\"127.0.0.1:3001\"}"], 0.0);
    }
}
