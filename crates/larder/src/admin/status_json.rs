//! `/status`: an observation as one JSON object.
//!
//! Fields: `version`, `server_name`, `uptime_seconds`, `workers`; `connections` (accepted, handled, refused, active,
//! reading, writing, waiting); `stub_status`, nginx's seven numbers under nginx's names; every other counter of `proxy::counters` under its own name (`requests`, `hits`,
//! `misses` …); `hit_percent`; `memory` (limit_bytes, base_bytes, occupied_bytes, share_bytes, refuses, used_bytes, leaving_bytes, file_bytes, resident_bytes), `objects`, `keys`,
//! `evictions`, `invalidated`, `stored`; `latency_micros` (hit and origin: count, p50, p90, p99, mean); `origins`;
//! `hit_ratios` of the last 5 and 60 minutes (seconds, request_percent, byte_percent, memory_percent, disk_percent), `disks`, `parents` and `nodes` as `origins`;
//! `certificates` that clients of TLS are shown (listener, names, expires, expires_in_seconds); `acme`, those that are ordered (names,
//! directory, expires, renews, failures, last_failure); `coding` (threads; of the work that somebody waits for, `now`, and the other, `idle`: jobs,
//! bytes, refused, abandoned, panicked, cpu_seconds, waiting, waiting_bytes); `processes` (process: the number of the one that serves; deaths, upgrades_refused); `panics`, `panic_locations` (location, count), and
//! `crash_reports`, a line for each of the last defects and deaths, of this process and those before it; `reloads` (taken, failures, and the last one: at, outcome, changed and warnings or
//! error); `sandbox` (files, landlock: the version of its interface, system_calls); `vcls` (name, active, warm, labels, under_way, summary, backends with their health and probes).
//! Counters count from the start and never go back. A field may be added, none is renamed.

use cache::DiskStats;
use proxy::counters::COUNTERS;
use proxy::{CodingClassStatus, CodingStatus, HitRatios};
use serde_json::{Map, Value, json};

use super::exchange_figures::Latencies;
use super::observation::Observation;
use super::origin_requests::origin_json;
use super::reload_request::outcome_json;
use super::vcl_requests::vcls_json;
use crate::expiry_watch::show_date;
use crate::reload_board::ReloadFigures;
use crate::upgrade_board::ProcessFigures;

/// The object as text, ended by a line feed.
pub fn status(seen: &Observation) -> String {
    let mut top = Map::new();
    let mut connections = Map::new();
    top.insert("version".to_owned(), json!(env!("CARGO_PKG_VERSION")));
    top.insert("server_name".to_owned(), json!(seen.server_name));
    top.insert("uptime_seconds".to_owned(), json!(seen.uptime_ms as f64 / 1_000.0));
    top.insert("workers".to_owned(), json!(seen.workers));
    for name in COUNTERS.iter().map(|counter| counter.name) {
        match name.strip_prefix("connections_") {
            Some(short) => connections.insert(short.to_owned(), json!(seen.counter(name))),
            None => top.insert(name.to_owned(), json!(seen.counter(name))),
        };
    }
    top.insert("connections".to_owned(), Value::Object(connections));
    top.insert("stub_status".to_owned(), stub_status(seen));
    top.insert("hit_percent".to_owned(), json!(seen.hit_percent().map(|percent| (percent * 100.0).round() / 100.0)));
    let cache = &seen.cache;
    top.insert(
        "memory".to_owned(),
        json!({
            "limit_bytes": seen.memory.limit_bytes,
            "base_bytes": seen.memory.base_bytes,
            "occupied_bytes": seen.memory.occupied_bytes,
            "share_bytes": cache.memory_bytes_max,
            "refuses": seen.memory.refuses,
            "used_bytes": cache.memory_bytes,
            "leaving_bytes": cache.leaving_bytes,
            "file_bytes": cache.file_memory_bytes,
            "resident_bytes": seen.resident_bytes,
        }),
    );
    for (name, value) in [
        ("objects", cache.objects),
        ("keys", cache.keys),
        ("evictions", cache.evictions),
        ("invalidated", cache.invalidated),
        ("stored", cache.landed),
        ("refreshed", cache.refreshed),
        ("overflowed", cache.overflowed),
        ("recalled", cache.recalled),
        ("encodings_made", cache.encodings_made),
        ("encodings_recalled", cache.encodings_recalled),
        ("deltas_made", cache.deltas_made),
        ("dictionaries", cache.dictionaries),
        ("dictionary_bytes", cache.dictionary_bytes),
        ("dictionaries_given_up", cache.dictionaries_given_up),
    ] {
        top.insert(name.to_owned(), json!(value));
    }
    top.insert("disks".to_owned(), seen.disks.iter().map(disk).collect());
    let exchanges = &seen.exchanges;
    let latency = json!({ "hit": latency(&exchanges.latency_hit()), "origin": latency(&exchanges.latency_origin()) });
    top.insert("latency_micros".to_owned(), latency);
    let ratios = json!({ "5min": hit_ratios(&seen.hit_ratios[0]), "60min": hit_ratios(&seen.hit_ratios[1]) });
    top.insert("hit_ratios".to_owned(), ratios);
    top.insert("parents".to_owned(), seen.parents.iter().map(origin_json).collect());
    top.insert("nodes".to_owned(), seen.nodes.iter().map(origin_json).collect());
    top.insert("origins".to_owned(), seen.origins.iter().map(origin_json).collect());
    top.insert("vcls".to_owned(), vcls_json(&seen.vcls));
    let certificates = seen.certificates.iter().map(|certificate| {
        json!({
            "listener": certificate.listener,
            "names": certificate.names,
            "expires": show_date(certificate.until_s),
            "expires_in_seconds": certificate.until_s as i64 - seen.now_s as i64,
        })
    });
    top.insert("certificates".to_owned(), certificates.collect());
    let ordered = seen.acme.iter().map(|status| {
        json!({
            "names": status.names.names(),
            "directory": status.directory,
            "expires": status.until_s.map(show_date),
            "renews": status.renew_at_s.map(show_date),
            "failures": status.failures,
            "last_failure": status.last_failure,
        })
    });
    top.insert("acme".to_owned(), ordered.collect());
    top.insert("coding".to_owned(), coding(&seen.coding));
    top.insert("reloads".to_owned(), reloads(&seen.reloads));
    let ProcessFigures { deaths, upgrades_refused } = seen.processes;
    let processes = json!({ "process": std::process::id(), "deaths": deaths, "upgrades_refused": upgrades_refused });
    top.insert("processes".to_owned(), processes);
    top.insert("panics".to_owned(), json!(seen.panics.count));
    let locations =
        seen.panics.locations.iter().map(|known| json!({ "location": known.location, "count": known.count }));
    top.insert("panic_locations".to_owned(), locations.collect());
    top.insert("crash_reports".to_owned(), json!(seen.panics.reports));
    let sandbox = json!({ "files": seen.sandbox.files.is_some(), "landlock": seen.sandbox.files, "system_calls": seen.sandbox.calls });
    top.insert("sandbox".to_owned(), sandbox);
    format!("{}\n", Value::Object(top))
}

/// What nginx calls handled is what we call accepted and not refused.
fn stub_status(seen: &Observation) -> Value {
    let accepts = seen.counter("connections_accepted");
    json!({
        "active": seen.counter("connections_active"),
        "accepts": accepts,
        "handled": accepts.saturating_sub(seen.counter("connections_refused")),
        "requests": seen.counter("requests"),
        "reading": seen.counter("connections_reading"),
        "writing": seen.counter("connections_writing"),
        "waiting": seen.counter("connections_waiting"),
    })
}

fn reloads(figures: &ReloadFigures) -> Value {
    let last = figures.last.as_ref().map(|last| {
        let mut told = outcome_json(&last.outcome);
        told["at"] = json!(show_date(last.wall_ms / 1_000));
        told
    });
    json!({ "taken": figures.taken, "failures": figures.refused, "last": last })
}

fn coding(status: &CodingStatus) -> Value {
    let class = |class: &CodingClassStatus| {
        json!({
            "jobs": class.jobs,
            "bytes": class.bytes,
            "refused": class.refused,
            "abandoned": class.abandoned,
            "panicked": class.panicked,
            "cpu_seconds": class.cpu_micros as f64 / 1_000_000.0,
            "waiting": class.waiting,
            "waiting_bytes": class.waiting_bytes,
        })
    };
    json!({
        "threads": status.threads,
        "memory_bytes": status.memory_bytes,
        "memory_refused": status.memory_refused,
        "now": class(&status.now),
        "idle": class(&status.idle),
    })
}

fn hit_ratios(ratios: &HitRatios) -> Value {
    let percent = |share: Option<f64>| json!(share.map(|percent| (percent * 10.0).round() / 10.0));
    json!({
        "seconds": ratios.seconds,
        "request_percent": percent(ratios.request_percent),
        "byte_percent": percent(ratios.byte_percent),
        "memory_percent": percent(ratios.memory_percent),
        "disk_percent": percent(ratios.disk_percent),
    })
}

fn disk(disk: &DiskStats) -> Value {
    json!({
        "path": disk.path,
        "state": disk.state.token(),
        "limit_bytes": disk.bytes,
        "objects": disk.objects,
        "index_bytes": disk.index_bytes,
        "index_ready": disk.index_is_back,
        "index_percent": disk.index_percent,
        "queued_bytes": disk.queued_bytes,
        "segments": disk.segments,
        "segments_free": disk.segments_free,
        "hits": disk.hits,
        "lent": disk.leased,
        "bytes_read": disk.bytes_read,
        "bytes_written": disk.bytes_written,
        "stored": disk.stored,
        "refreshed": disk.refreshed,
        "refused": disk.refused.iter().map(|(_, count)| count).sum::<u64>(),
        "damaged": disk.lost_damaged,
        "reinserted": disk.reinserted,
        "dropped": disk.dropped,
    })
}

fn latency(latencies: &Latencies) -> Value {
    let count = latencies.count();
    json!({
        "count": count,
        "p50": latencies.percentile_micros(50.0),
        "p90": latencies.percentile_micros(90.0),
        "p99": latencies.percentile_micros(99.0),
        "mean": latencies.sum_micros.checked_div(count),
    })
}

#[cfg(test)]
mod tests {
    use super::super::observation::tests::sample;
    use super::*;

    #[test]
    fn the_status_is_json_and_holds_what_it_says() {
        let seen = sample();
        let status: Value = serde_json::from_str(&status(&seen)).unwrap();
        for field in ["accepted", "handled", "refused", "active", "reading", "writing", "waiting"] {
            assert_eq!(status["connections"][field], seen.counter(&format!("connections_{field}")), "{field}");
        }
        for field in ["active", "reading", "writing", "waiting"] {
            assert_eq!(status["stub_status"][field], seen.counter(&format!("connections_{field}")), "{field}");
        }
        let numbers = &status["stub_status"];
        let (accepts, refused) = (seen.counter("connections_accepted"), seen.counter("connections_refused"));
        assert_eq!((&numbers["accepts"], &numbers["requests"]), (&json!(accepts), &json!(seen.counter("requests"))));
        assert_eq!(numbers["handled"], accepts.saturating_sub(refused));
        for field in ["requests", "hits", "misses", "passes", "coalesced", "bytes_out", "origin_errors_connect"] {
            assert_eq!(status[field], seen.counter(field), "{field}");
        }
        assert_eq!((&status["server_name"], &status["uptime_seconds"]), (&json!("lar\"der"), &json!(61.5)));
        let memory = &status["memory"];
        assert_eq!((&memory["limit_bytes"], &memory["base_bytes"]), (&json!(3 << 20), &json!(2 << 20)));
        assert_eq!((&memory["occupied_bytes"], &memory["share_bytes"]), (&json!(4 << 20), &json!(1 << 20)));
        assert_eq!(memory["refuses"], true);
        assert_eq!((&status["memory"]["used_bytes"], &status["objects"]), (&json!(77), &json!(5)));
        assert_eq!(status["latency_micros"]["hit"]["p50"], 3);
        assert_eq!(status["latency_micros"]["origin"]["p50"], Value::Null);
        assert_eq!(status["hit_ratios"]["5min"]["request_percent"], 87.7);
        assert_eq!(status["hit_ratios"]["5min"]["byte_percent"], -87.7);
        assert_eq!(status["hit_ratios"]["60min"]["seconds"], 61);
        assert_eq!(status["hit_ratios"]["60min"]["request_percent"], Value::Null);
        assert_eq!(status["origins"][0]["addresses"][1]["state"], "ejected");
        assert_eq!(status["origins"][0]["addresses"][1]["back_in_ms"], 1_500);
        let (origin, address) = (&status["origins"][0], &status["origins"][0]["addresses"][1]);
        assert_eq!((&origin["balance"], &origin["errors"]), (&json!("least-conn"), &json!(66)));
        assert_eq!(
            (&origin["errors_by_kind"]["resolve"], &origin["errors_by_kind"]["status"]),
            (&json!(1), &json!(11))
        );
        assert_eq!(
            (&address["weight"], &address["backup"], &address["share_percent"]),
            (&json!(7), &json!(true), &json!(25.0))
        );
        assert_eq!((&address["ordered"], &address["probe"]["good"]), (&json!("auto"), &json!(4)));
        let (certificate, ordered) = (&status["certificates"][0], &status["acme"][0]);
        assert_eq!(certificate["names"], json!(["a.example", "b.example"]));
        assert_eq!(certificate["expires_in_seconds"], 3 * 86_400 + 7);
        assert_eq!((&ordered["failures"], &ordered["last_failure"]), (&json!(4), &json!("connection refused")));
        assert_eq!(ordered["renews"], "Sun, 11 Jan 1970 10:00:00 GMT");
        let coding = &status["coding"];
        assert_eq!((&coding["threads"], &coding["idle"]["jobs"]), (&json!(3), &json!(41)));
        assert_eq!((&coding["now"]["refused"], &coding["now"]["cpu_seconds"]), (&json!(33), &json!(1.000_036)));
        let vcl = &status["vcls"][0];
        assert_eq!((&vcl["name"], &vcl["under_way"], &vcl["labels"]), (&json!("boot"), &json!(3), &json!(["shop"])));
        assert_eq!((&vcl["backends"][0]["healthy"], &vcl["backends"][0]["probe"]["good"]), (&json!(true), &json!(4)));
    }
}
