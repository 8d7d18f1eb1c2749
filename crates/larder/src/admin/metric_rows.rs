//! All metrics, by what they are of, in the order in which `/metrics` and docs/metrics.md have them.

mod certificate_rows;
mod coding_rows;
mod core_rows;
mod disk_rows;
mod fleet_rows;
mod former_rows;
mod memory_rows;
mod origin_rows;
mod process_rows;
mod program_rows;
mod response_rows;
mod shared_rows;

use super::metric_definition::MetricDefinition;

/// Metrics of one matter.
pub struct MetricGroup {
    #[cfg_attr(not(test), expect(dead_code, reason = "docs/metrics.md reads it"))]
    pub title: &'static str,
    pub rows: Vec<MetricDefinition>,
}

pub fn groups() -> Vec<MetricGroup> {
    let group = |title, rows: &[MetricDefinition]| MetricGroup { title, rows: rows.to_vec() };
    vec![
        group("The process", process_rows::ROWS),
        group("Responses", response_rows::ROWS),
        MetricGroup { title: "Counters of the cores", rows: core_rows::rows() },
        group("Memory and what is stored", memory_rows::ROWS),
        group("Disks", disk_rows::ROWS),
        group("Content codings", coding_rows::ROWS),
        group("Origins", origin_rows::ROWS),
        group("The fleet", fleet_rows::ROWS),
        group("The shared tier", shared_rows::ROWS),
        group("VCL", program_rows::ROWS),
        group("Certificates", certificate_rows::ROWS),
        MetricGroup { title: "Former names", rows: former_rows::rows() },
    ]
}

pub fn definitions() -> impl Iterator<Item = MetricDefinition> {
    groups().into_iter().flat_map(|group| group.rows)
}

#[cfg(test)]
mod tests {
    use super::super::metric_definition::{MetricKind, Unit};
    use super::*;

    fn is_name(name: &str) -> bool {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
    }

    /// What stands in a name before `_total`.
    fn stem(definition: &MetricDefinition) -> &'static str {
        definition.name.strip_suffix("_total").unwrap_or(definition.name)
    }

    #[test]
    fn names_follow_the_conventions_of_prometheus() {
        for definition in definitions().filter(|definition| definition.alias_of.is_none()) {
            let name = definition.name;
            assert!(is_name(name) && (name.starts_with("larder_") || name.starts_with("process_")), "{name}");
            let is_counter = definition.kind == MetricKind::Counter;
            assert_eq!(name.ends_with("_total"), is_counter, "{name} is a {}", definition.kind.word());
            for unit in Unit::ALL.into_iter().filter(|unit| *unit != Unit::Count) {
                assert_eq!(stem(&definition).ends_with(unit.suffix()), unit == definition.unit, "{name}: {unit:?}");
            }
            for wrong in ["bytes_", "seconds_", "_ms", "_millis", "_micros", "percent", "permille", "_kib", "_mib"] {
                assert!(!stem(&definition).contains(wrong), "{name} has {wrong} in it");
            }
            for kind in ["_counter", "_gauge", "_histogram", "_count", "_sum", "_bucket"] {
                assert!(!name.ends_with(kind), "{name}");
            }
            assert!(definition.kind != MetricKind::Histogram || definition.unit != Unit::Count, "{name} has no unit");
        }
    }

    #[test]
    fn each_has_one_name_and_says_what_it_is() {
        let mut names: Vec<&str> = Vec::new();
        for definition in definitions() {
            assert!(!names.contains(&definition.name), "{} is defined twice", definition.name);
            names.push(definition.name);
            let help = definition.help;
            assert!(help.len() >= 8 && help.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit()), "{help:?}");
            assert!(!help.ends_with('.') && !help.contains(['\n', '\\', '|']), "{}: {help:?}", definition.name);
            assert_eq!(definition.since.split('.').count(), 3, "{}", definition.name);
        }
    }

    #[test]
    fn labels_are_bounded_and_none_is_prometheus_own() {
        for label in definitions().flat_map(|definition| definition.labels) {
            assert!(is_name(label.name) && !label.name.starts_with("__"), "{}", label.name);
            assert!(!["le", "quantile", "job", "instance"].contains(&label.name), "{}", label.name);
            assert!(!label.says.is_empty() && !label.bound.is_empty(), "{} has no bound", label.name);
        }
    }

    #[test]
    fn a_former_name_leads_to_one_that_is_there() {
        for definition in definitions() {
            let Some(now) = definition.alias_of else { continue };
            let target = definitions().find(|other| other.name == now && other.alias_of.is_none());
            let target = target.unwrap_or_else(|| panic!("{} leads to {now}, which is none", definition.name));
            assert_eq!(target.kind, definition.kind, "{}", definition.name);
        }
    }
}
