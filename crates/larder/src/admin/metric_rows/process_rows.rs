//! Metrics of the process.

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, gauge};
use crate::admin::metric_label::LabelDefinition;
use crate::admin::metric_samples::Millis;
use crate::reload_board::ReloadOutcome;

const VERSION: LabelDefinition = LabelDefinition { name: "version", says: "the version of larder", bound: "1" };

const OUTCOME: LabelDefinition =
    LabelDefinition { name: "outcome", says: "taken: it holds; refused: the old one stays", bound: "2" };

const PART: LabelDefinition = LabelDefinition { name: "part", says: "files, system_calls", bound: "2" };

pub const ROWS: &[MetricDefinition] = &[
    gauge("larder_build_info", Unit::Count, "The version that runs, always 1", |_, to| {
        to.of(&[env!("CARGO_PKG_VERSION")], 1);
    })
    .by(&[&VERSION]),
    gauge("larder_uptime_seconds", Unit::Seconds, "Since the start", |seen, to| to.one(Millis(seen.uptime_ms))),
    gauge("larder_workers", Unit::Count, "Worker threads", |seen, to| to.one(seen.workers)),
    gauge(
        "process_resident_memory_bytes",
        Unit::Bytes,
        "Memory of the process, as the kernel counts it",
        |seen, to| seen.resident_bytes.into_iter().for_each(|bytes| to.one(bytes)),
    ),
    counter(
        "larder_serving_process_deaths_total",
        Unit::Count,
        "Serving processes that have died, and were started again, since the supervisor was started",
        |seen, to| {
            to.one(seen.processes.deaths);
        },
    ),
    counter(
        "larder_upgrades_refused_total",
        Unit::Count,
        "Upgrades in place after which this process went on, since its start",
        |seen, to| {
            to.one(seen.processes.upgrades_refused);
        },
    ),
    counter(
        "larder_panics_total",
        Unit::Count,
        "Panics in this process, defects of larder; those that ended one are deaths of the process after it",
        |seen, to| {
            to.one(seen.panics.count);
        },
    ),
    gauge(
        "larder_sandbox",
        Unit::Count,
        "Whether the process is fenced in: files by landlock, system calls by seccomp, 0 or 1",
        |seen, to| {
            to.of(&["files"], u8::from(seen.sandbox.files.is_some()));
            to.of(&["system_calls"], u8::from(seen.sandbox.calls));
        },
    )
    .by(&[&PART]),
    counter("larder_reloads_total", Unit::Count, "Reloads of the configuration, by what came of them", |seen, to| {
        to.of(&["taken"], seen.reloads.taken);
        to.of(&["refused"], seen.reloads.refused);
    })
    .by(&[&OUTCOME]),
    gauge(
        "larder_last_reload_refused",
        Unit::Count,
        "Whether the last reload was refused, so that what runs is not what the file says, 0 or 1",
        |seen, to| {
            let last = seen.reloads.last.as_ref();
            let is_refused = last.is_some_and(|last| matches!(last.outcome, ReloadOutcome::Refused { .. }));
            to.one(u8::from(is_refused));
        },
    ),
    gauge(
        "larder_last_reload_timestamp_seconds",
        Unit::Seconds,
        "When the last reload was, in seconds since 1970",
        |seen, to| seen.reloads.last.iter().for_each(|last| to.one(Millis(last.wall_ms))),
    ),
];
