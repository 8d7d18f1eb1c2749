//! Metrics of the work that content codings are.

use std::fmt::Display;

use proxy::CodingClassStatus;

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, gauge};
use crate::admin::metric_label::LabelDefinition;
use crate::admin::metric_samples::{Micros, Samples};
use crate::admin::observation::Observation;

const CLASS: LabelDefinition =
    LabelDefinition { name: "class", says: "`now` for work that somebody waits for, `idle` for the other", bound: "2" };

fn each<T: Display>(seen: &Observation, to: &mut Samples<'_>, figure: fn(&CodingClassStatus) -> T) {
    to.of(&["now"], figure(&seen.coding.now));
    to.of(&["idle"], figure(&seen.coding.idle));
}

pub const ROWS: &[MetricDefinition] = &[
    gauge("larder_coding_threads", Unit::Count, "Threads for coding that somebody waits for", |seen, to| {
        to.one(seen.coding.threads);
    }),
    gauge(
        "larder_coding_memory_bytes",
        Unit::Bytes,
        "Memory that coders hold while somebody waits for them",
        |seen, to| to.one(seen.coding.memory_bytes),
    ),
    counter(
        "larder_coding_memory_refused_total",
        Unit::Count,
        "Responses that went as they were for want of memory for a coder",
        |seen, to| to.one(seen.coding.memory_refused),
    ),
    counter("larder_coding_jobs_total", Unit::Count, "Coding work that was done by threads of its own", |seen, to| {
        each(seen, to, |class| class.jobs)
    })
    .by(&[&CLASS]),
    counter("larder_coding_bytes_total", Unit::Bytes, "Bytes that this work was given", |seen, to| {
        each(seen, to, |class| class.bytes);
    })
    .by(&[&CLASS]),
    counter(
        "larder_coding_refused_total",
        Unit::Count,
        "Work for which too much waited (limits.coding_jobs_max)",
        |seen, to| each(seen, to, |class| class.refused),
    )
    .by(&[&CLASS]),
    counter(
        "larder_coding_abandoned_total",
        Unit::Count,
        "Work that nobody wanted any more at its turn",
        |seen, to| each(seen, to, |class| class.abandoned),
    )
    .by(&[&CLASS]),
    counter("larder_coding_panicked_total", Unit::Count, "Work that ended in a panic", |seen, to| {
        each(seen, to, |class| class.panicked);
    })
    .by(&[&CLASS]),
    gauge("larder_coding_waiting", Unit::Count, "Work that waits for a thread", |seen, to| {
        each(seen, to, |class| class.waiting);
    })
    .by(&[&CLASS]),
    gauge("larder_coding_waiting_bytes", Unit::Bytes, "Bytes of work that waits for a thread", |seen, to| {
        each(seen, to, |class| class.waiting_bytes);
    })
    .by(&[&CLASS]),
    counter("larder_coding_cpu_seconds_total", Unit::Seconds, "What this work took of processors", |seen, to| {
        each(seen, to, |class| Micros(class.cpu_micros))
    })
    .by(&[&CLASS]),
];
