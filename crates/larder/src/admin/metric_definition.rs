//! What is told of a metric: once, in a row of `metric_rows/`. `/metrics` is written from the rows (`metrics_text.rs`), and so is
//! docs/metrics.md (`metrics_page.rs`); the tests of `metric_rows.rs` hold them to Prometheus' conventions.

use super::metric_label::LabelDefinition;
use super::metric_samples::Samples;
use super::observation::Observation;

/// A metric.
#[derive(Clone, Copy)]
pub struct MetricDefinition {
    /// All of it, as it stands in `/metrics`.
    pub name: &'static str,
    pub kind: MetricKind,
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/metrics.md and the tests read it"))]
    pub unit: Unit,
    /// In the order in which samples give their values.
    pub labels: &'static [&'static LabelDefinition],
    /// A sentence without its full stop.
    pub help: &'static str,
    /// The version that it came with.
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/metrics.md reads it"))]
    pub since: &'static str,
    /// It is the former name of this one, and goes with the release after the next.
    pub alias_of: Option<&'static str>,
    pub source: MetricSource,
}

/// Where its samples come from.
#[derive(Clone, Copy)]
pub enum MetricSource {
    /// A counter of the cores, by its name there.
    CoreCounter(&'static str),
    Read(ReadSamples),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    Counter,
    Gauge,
    Histogram,
}

impl MetricKind {
    pub const fn word(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

/// Prometheus' base units: a name says which one it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things, or 0 and 1.
    Count,
    Bytes,
    Seconds,
    /// From 0 to 1.
    Ratio,
}

impl Unit {
    #[cfg(test)]
    pub const ALL: [Unit; 4] = [Unit::Count, Unit::Bytes, Unit::Seconds, Unit::Ratio];

    /// What a name of it ends in, before `_total`.
    pub const fn suffix(self) -> &'static str {
        match self {
            Unit::Count => "",
            Unit::Bytes => "_bytes",
            Unit::Seconds => "_seconds",
            Unit::Ratio => "_ratio",
        }
    }

    #[cfg(test)]
    pub const fn word(self) -> &'static str {
        match self {
            Unit::Count => "",
            Unit::Bytes => "bytes",
            Unit::Seconds => "seconds",
            Unit::Ratio => "ratio",
        }
    }
}

/// The versions that metrics came with.
pub const V0_1: &str = "0.1.0";

type ReadSamples = fn(&Observation, &mut Samples<'_>);

const fn metric(
    (name, kind, unit): (&'static str, MetricKind, Unit),
    help: &'static str,
    read: ReadSamples,
) -> MetricDefinition {
    let source = MetricSource::Read(read);
    MetricDefinition { name, kind, unit, labels: &[], help, since: V0_1, alias_of: None, source }
}

/// A number that only grows.
pub const fn counter(name: &'static str, unit: Unit, help: &'static str, read: ReadSamples) -> MetricDefinition {
    metric((name, MetricKind::Counter, unit), help, read)
}

/// A number that goes up and down.
pub const fn gauge(name: &'static str, unit: Unit, help: &'static str, read: ReadSamples) -> MetricDefinition {
    metric((name, MetricKind::Gauge, unit), help, read)
}

pub const fn histogram(name: &'static str, unit: Unit, help: &'static str, read: ReadSamples) -> MetricDefinition {
    metric((name, MetricKind::Histogram, unit), help, read)
}

impl MetricDefinition {
    pub const fn by(mut self, labels: &'static [&'static LabelDefinition]) -> MetricDefinition {
        self.labels = labels;
        self
    }

    pub const fn formerly_of(mut self, name: &'static str) -> MetricDefinition {
        self.alias_of = Some(name);
        self
    }

    /// A sentence, and of a former name which one to ask for.
    pub fn says(&self) -> String {
        match self.alias_of {
            None => format!("{}.", self.help),
            Some(name) => format!("{}. Deprecated: ask for {name}.", self.help),
        }
    }
}
