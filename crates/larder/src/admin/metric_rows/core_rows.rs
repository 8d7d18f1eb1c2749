//! Metrics that are counters of the cores: each has its name and its meaning in `proxy::counters`.

use proxy::counters::{COUNTERS, CounterDefinition, CounterKind};

use crate::admin::metric_definition::{MetricDefinition, MetricKind, MetricSource, Unit, V0_1};

pub fn rows() -> Vec<MetricDefinition> {
    COUNTERS.iter().map(|counter| row(counter, counter.metric)).collect()
}

/// A counter under this name.
pub fn row(counter: &CounterDefinition, name: &'static str) -> MetricDefinition {
    let stem = counter.metric.strip_suffix("_total").unwrap_or(counter.metric);
    MetricDefinition {
        name,
        kind: match counter.kind {
            CounterKind::Total => MetricKind::Counter,
            CounterKind::Gauge => MetricKind::Gauge,
        },
        unit: if stem.ends_with(Unit::Bytes.suffix()) { Unit::Bytes } else { Unit::Count },
        labels: &[],
        help: counter.help,
        since: V0_1,
        alias_of: None,
        source: MetricSource::CoreCounter(counter.name),
    }
}
