//! docs/metrics.md, made of the rows of `metric_rows/`.

use std::fmt::Write;

use super::metric_definition::MetricDefinition;
use super::metric_label::LabelDefinition;
use super::metric_rows::{MetricGroup, groups};

const BEGINNING: &str = "\
# Metrics

`GET /metrics` on the admin address (127.0.0.1:9180) has them in Prometheus' text format; `/status` has much of the same as JSON.
[dist/alerts.yml](../dist/alerts.yml) has alerts for them, [dist/grafana-dashboard.json](../dist/grafana-dashboard.json) a dashboard for
Grafana. `larder_edge_total`, which says how often each edge of the [machines](machines.md) was taken, is under `/debug`.

    scrape_configs:
      - job_name: larder
        static_configs:
          - targets: [\"127.0.0.1:9180\"]

A response is counted when it is over, as the [access log](access-log.md) has it: once, in one class, with the bytes of its body that
went out; the parts of a page are the page's. The counters of the cores count a class when its answer begins, parts of pages included, so they
run ahead of the former by what is under way.

    # hit ratio of the last five minutes
    sum(rate(larder_responses_total{class=~\"hit|stale\"}[5m]))
      / sum(rate(larder_responses_total{class=~\"hit|stale|revalidated|miss|coalesced|pass|error\"}[5m]))
    # misses: the time to the first byte that 99 % of them keep
    histogram_quantile(0.99, sum by (le) (rate(larder_response_first_byte_seconds_bucket{class=\"miss\"}[5m])))
    # failures by origin and kind
    sum by (origin, kind) (rate(larder_origin_faults_total[5m]))

Names follow Prometheus' conventions: base units, counters end in `_total`. A name that is gone stays for one release under \"Former names\".
Histograms have a bucket for each power of two of a microsecond. A route is known by what larder.toml says of it, keeps its counts over
reloads, and the first 64 have counts of their own.

This page is made from crates/larder/src/admin/metric_rows/ and, for the counters of the cores, crates/proxy/src/counters.rs:
`UPDATE_DOCS=1 cargo test --release -p larder --bin larder` writes it anew.

## Native histograms

Prometheus 3 makes native histograms of these as it scrapes, with the bounds that they have (\"custom buckets\", NHCB): one series for each instead of one for
each bucket, and no `_bucket`, `_sum` and `_count` any more.

```yaml
scrape_configs:
  - job_name: larder
    convert_classic_histograms_to_nhcb: true
    static_configs:
      - targets: [\"127.0.0.1:9180\"]
```

    histogram_quantile(0.99, sum(rate(larder_response_first_byte_seconds{class=\"miss\"}[5m])))
    histogram_fraction(0, 0.1, rate(larder_response_seconds{class=\"hit\"}[5m]))

The alerts and the dashboard of dist/ ask for the classic series, which `always_scrape_classic_histograms: true` keeps beside them. Prometheus before 3.8 needs
`--enable-feature=native-histograms`.

larder does not make them itself. The native histograms that can be scraped have bounds of powers of two of a second, or roots of those; larder counts by powers of two of a microsecond, so each
count would have to be put into a bucket that it may not belong to, or be counted twice. Those with bounds of one's own have no form in which they can be scraped, other than this. And
both would be a second way to say the same, in protobuf. `cargo xtask prometheus` builds Prometheus 3 and holds what it answers of these against what larder counted.

## What is equal to what

When nothing is under way, these are equal to the last one. `cargo xtask counts` holds them against one another, and against what its clients
got and its origins saw, under a random load with faults of origins and clients that leave.

* By class, in number and in bytes of bodies: lines of the access log, [events](log.md), `larder_responses_total` and
  `larder_route_responses_total`. Events that a reader did not get are in `larder_events_lost_total`.
* By class, of answers that began (`time.first_byte` of an event): the counters of the cores, such as `larder_hits_total`, and the counts of both
  histograms. Who left before that has a line and no more. What was no request has a counter, `larder_refused_total`, and no time.
* `larder_requests_total`: lines that have a method. `larder stat` and `/status`: the counters of the cores.
* `larder_sent_bytes_total` and `larder_received_bytes_total`: all that went over the connections of clients, heads and frames of HTTP/2 included, but
  for tunnels of HTTP/1, which have counters of their own. Inside TLS it is what is encrypted.
* `larder_origin_asked_total`: requests that reached that origin; `larder_origin_requests_total` is their sum. The tries of an event are those of its
  exchange; what is refreshed behind a stale answer has no event.
* `larder_origin_faults_total`: what that origin did wrong. No fault is a request that got lost on a connection which had served others: the origin may have
  closed that before it came. It is sent again if its method allows it, and answered with 502 otherwise.
* Under a VCL a purge is answered by vcl_synth, and is of class `synth`; `larder_purges_total` has it, too. In `varnishstat` `s_synth` is `synth` and `error`, and
  `s_resp_bodybytes` has the bytes of bodies and what frames of HTTP/2 have beside them.
";

/// The page.
pub fn page() -> String {
    let mut page = BEGINNING.to_owned();
    groups().iter().for_each(|group| write_group(&mut page, group));
    write_labels(&mut page);
    page
}

fn write_group(page: &mut String, group: &MetricGroup) {
    let head = "| name | kind | unit | labels | what it is | since |\n|---|---|---|---|---|---|";
    // Writing to a String cannot fail, here and below.
    let _ = writeln!(page, "\n## {}\n\n{head}", group.title);
    group.rows.iter().for_each(|row| write_row(page, row));
}

fn write_row(page: &mut String, row: &MetricDefinition) {
    let labels: Vec<String> = row.labels.iter().map(|label| format!("`{}`", label.name)).collect();
    let says = match row.alias_of {
        None => format!("{}.", row.help),
        Some(now) => format!("{}. Ask for `{now}`.", row.help),
    };
    let (name, kind, unit) = (row.name, row.kind.word(), row.unit.word());
    let _ = writeln!(page, "| `{name}` | {kind} | {unit} | {} | {says} | {} |", labels.join(" "), row.since);
}

/// Each once, with how many values it may have.
fn write_labels(page: &mut String) {
    page.push_str("\n## Labels\n\n| label | of | what it says | values at most |\n|---|---|---|---|\n");
    let mut before: Vec<(&LabelDefinition, Vec<&str>)> = Vec::new();
    let groups = groups();
    for row in groups.iter().flat_map(|group| &group.rows) {
        for label in row.labels {
            match before.iter_mut().find(|(known, _)| known.name == label.name && known.says == label.says) {
                Some((_, of)) => of.push(row.name),
                None => before.push((label, vec![row.name])),
            }
        }
    }
    for (label, of) in before {
        let names = match &of[..] {
            [one] => format!("`{one}`"),
            all => format!("`{}` and {} more", all[0], all.len() - 1),
        };
        let _ = writeln!(page, "| `{}` | {names} | {} | {} |", label.name, label.says, label.bound);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn the_page_is_what_the_rows_make_of_it() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, super::page()).expect("docs/ can be written");
        }
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(text, super::page(), "UPDATE_DOCS=1 cargo test --release -p larder --bin larder writes it anew");
    }
}
