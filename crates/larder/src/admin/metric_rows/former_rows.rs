//! Names of version 0.1.0 that break Prometheus' conventions, or say less than what came in their place. They stay for one release.

use proxy::counters::COUNTERS;

use super::core_rows;
use super::disk_rows::{PATH, each};
use super::origin_rows::{ADDRESS, ORIGIN, each_address};
use crate::admin::metric_definition::{MetricDefinition, Unit, gauge, histogram};
use crate::admin::metric_label::LabelDefinition;

const RESULT: LabelDefinition = LabelDefinition {
    name: "result",
    says: "`hit` for what came from the store and for files, `origin` for what an origin was asked for",
    bound: "2",
};

const ROWS: &[MetricDefinition] = &[
    gauge("larder_disk_index_percent", Unit::Count, "How much of a disk's index has been read", |seen, to| {
        each(seen, to, |disk| disk.index_percent);
    })
    .by(&[&PATH])
    .formerly_of("larder_disk_index_ratio"),
    gauge(
        "larder_origin_share_permille",
        Unit::Count,
        "How many thousandths of its weight an address gets",
        |seen, to| each_address(seen, to, |address| Some(address.permille)),
    )
    .by(&[&ORIGIN, &ADDRESS])
    .formerly_of("larder_origin_share_ratio"),
    histogram(
        "larder_latency_seconds",
        Unit::Seconds,
        "From the first byte of a request to the last of its answer",
        |seen, to| {
            to.histogram(&["hit"], &seen.exchanges.latency_hit(), 1);
            to.histogram(&["origin"], &seen.exchanges.latency_origin(), 1);
        },
    )
    .by(&[&RESULT])
    .formerly_of("larder_response_seconds"),
];

pub fn rows() -> Vec<MetricDefinition> {
    let renamed = COUNTERS.iter().filter(|counter| counter.metric != counter.former_metric);
    let counters = renamed.map(|counter| core_rows::row(counter, counter.former_metric).formerly_of(counter.metric));
    counters.chain(ROWS.iter().copied()).collect()
}
