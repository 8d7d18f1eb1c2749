//! Samples as Prometheus' text format has them: a series, its labels and its value.

use std::fmt::{self, Display, Write};

use proxy::counters::Histogram;

use super::exchange_figures::Latencies;
use super::metric_label::LabelDefinition;

/// A line of `/metrics`.
pub fn write_sample<'a>(
    page: &mut String,
    name: &str,
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    value: impl Display,
) {
    page.push_str(name);
    let mut open = '{';
    for (label, text) in labels {
        let _ = write!(page, "{open}{label}=\"{}\"", Escaped(text));
        open = ',';
    }
    let close = if open == ',' { "}" } else { "" };
    // Writing to a String cannot fail, here and above.
    let _ = writeln!(page, "{close} {value}");
}

/// Where the samples of one metric go.
pub struct Samples<'a> {
    page: &'a mut String,
    name: &'static str,
    labels: &'static [&'static LabelDefinition],
}

impl<'a> Samples<'a> {
    pub fn of_metric(
        page: &'a mut String,
        name: &'static str,
        labels: &'static [&'static LabelDefinition],
    ) -> Samples<'a> {
        Samples { page, name, labels }
    }

    /// The only one.
    pub fn one(&mut self, value: impl Display) {
        self.of(&[], value);
    }

    /// That of these values of its labels, in their order.
    pub fn of(&mut self, values: &[&str], value: impl Display) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        write_sample(self.page, self.name, self.labelled(values), value);
    }

    /// Those of a histogram. `every`: of so many of our buckets one of Prometheus' is made.
    pub fn histogram(&mut self, values: &[&str], latencies: &Latencies, every: usize) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        let mut below = 0;
        for (bucket, count) in latencies.buckets.iter().enumerate() {
            below += count;
            let bound = Histogram::upper_bound_micros(bucket).map(|micros| Micros(micros).to_string());
            if bound.is_some() && (bucket + 1) % every != 0 {
                continue;
            }
            let le = ("le", bound.as_deref().unwrap_or("+Inf"));
            write_sample(self.page, &format!("{}_bucket", self.name), self.labelled(values).chain([le]), below);
        }
        let sum = Micros(latencies.sum_micros);
        write_sample(self.page, &format!("{}_sum", self.name), self.labelled(values), sum);
        write_sample(self.page, &format!("{}_count", self.name), self.labelled(values), below);
    }

    fn labelled<'v>(&self, values: &'v [&'v str]) -> impl Iterator<Item = (&'v str, &'v str)> + use<'v> {
        self.labels.iter().map(|label| label.name).zip(values.iter().copied())
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
pub struct Micros(pub u64);

impl Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000, self.0 % 1_000_000)
    }
}

pub struct Millis(pub u64);

impl Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stay_within_their_quotes() {
        assert_eq!(Escaped("a\"b\nc\\").to_string(), "a\\\"b\\nc\\\\");
    }

    #[test]
    fn a_sample_has_its_labels_in_order() {
        let mut page = String::new();
        write_sample(&mut page, "a_total", [("b", "1"), ("c", "2")], 3);
        write_sample(&mut page, "d", [], Micros(1_000_001));
        assert_eq!(page, "a_total{b=\"1\",c=\"2\"} 3\nd 1.000001\n");
    }
}
