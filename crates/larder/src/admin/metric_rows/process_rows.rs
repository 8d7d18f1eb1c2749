//! Metrics of the process.

use crate::admin::metric_definition::{MetricDefinition, Unit, gauge};
use crate::admin::metric_label::LabelDefinition;
use crate::admin::metric_samples::Millis;

const VERSION: LabelDefinition = LabelDefinition { name: "version", says: "the version of larder", bound: "1" };

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
];
