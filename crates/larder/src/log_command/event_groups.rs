//! Exchanges by the value of one field: how many, how large, how slow.

use std::collections::HashMap;
use std::io::{self, Write};

use proxy::events::{EventField, FieldValue};
use serde_json::json;

use crate::limits::LOG_GROUPS_MAX;
use crate::log_command::recorded_event::RecordedEvent;
use crate::log_command::shown_safely::shown_safely;
use crate::quantities::{show_micros, show_size};

/// Groups that are shown to people.
const ROWS_SHOWN_MAX: usize = 40;

pub struct EventGroups {
    by: &'static EventField,
    groups: HashMap<String, Group>,
    /// Of values beyond the limit.
    others: Group,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Group {
    count: u64,
    failed: u64,
    from_store: u64,
    bytes: u64,
    micros: u64,
    micros_max: u64,
}

impl Group {
    fn add(&mut self, event: &RecordedEvent) {
        let micros = event.number("time.whole").unwrap_or(0);
        self.count += 1;
        self.failed += u64::from(event.number("status").is_some_and(|status| status >= 500));
        self.from_store += u64::from(matches!(event.text("class"), Some("hit" | "stale" | "file")));
        self.bytes = self.bytes.saturating_add(event.number("bytes").unwrap_or(0));
        self.micros = self.micros.saturating_add(micros);
        self.micros_max = self.micros_max.max(micros);
    }
}

impl EventGroups {
    pub fn by(by: &'static EventField) -> EventGroups {
        EventGroups { by, groups: HashMap::new(), others: Group::default() }
    }

    pub fn add(&mut self, event: &RecordedEvent) {
        let value = match event.value(self.by) {
            None => "-".to_owned(),
            Some(FieldValue::Text(text)) => String::from_utf8_lossy(&text).into_owned(),
            Some(FieldValue::Number(number)) => number.to_string(),
            Some(FieldValue::Address(address)) => address.to_string(),
        };
        let is_known = self.groups.len() < LOG_GROUPS_MAX || self.groups.contains_key(&value);
        match is_known {
            true => self.groups.entry(value).or_default().add(event),
            false => self.others.add(event),
        }
    }

    /// The largest first. As JSON all of them, an object a line.
    pub fn show(self, out: &mut impl Write, as_json: bool) -> io::Result<()> {
        let mut rows: Vec<(String, Group)> = self.groups.into_iter().collect();
        rows.sort_by(|(name, group), (other_name, other)| other.count.cmp(&group.count).then(name.cmp(other_name)));
        if self.others.count > 0 {
            rows.push(("(others)".to_owned(), self.others));
        }
        if as_json {
            for (value, group) in &rows {
                let Group { count, failed, from_store, bytes, micros, micros_max } = group;
                let row = json!({
                    self.by.name: value, "count": count, "failed": failed, "from_store": from_store, "bytes": bytes,
                    "time.mean": micros / count.max(&1), "time.max": micros_max, "time.sum": micros,
                });
                writeln!(out, "{row}")?;
            }
            return Ok(());
        }
        let all: u64 = rows.iter().map(|(_, group)| group.count).sum();
        writeln!(
            out,
            "{:>9} {:>6} {:>6} {:>6} {:>9} {:>8} {:>8}  {}",
            "COUNT", "SHARE", "STORE", "5XX", "BYTES", "MEAN", "MAX", self.by.name
        )?;
        for (value, group) in rows.iter().take(ROWS_SHOWN_MAX) {
            let share = |part: u64, whole: u64| format!("{:.1}%", part as f64 * 100.0 / whole.max(1) as f64);
            writeln!(
                out,
                "{:>9} {:>6} {:>6} {:>6} {:>9} {:>8} {:>8}  {}",
                group.count,
                share(group.count, all),
                share(group.from_store, group.count),
                share(group.failed, group.count),
                show_size(group.bytes),
                show_micros(group.micros / group.count.max(1)),
                show_micros(group.micros_max),
                shown_safely(value),
            )?;
        }
        match rows.len().saturating_sub(ROWS_SHOWN_MAX) {
            0 => Ok(()),
            more => writeln!(out, "and {more} more (--format json lists all)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorded_event::tests::{FAILED, HIT};
    use super::*;

    #[test]
    fn groups_are_counted_and_the_largest_comes_first() {
        let mut groups = EventGroups::by(EventField::named("host").unwrap());
        for line in [HIT, HIT, FAILED, "{\"class\":\"refused\",\"status\":400}"] {
            groups.add(&RecordedEvent::parse(line.as_bytes()).unwrap());
        }
        let mut out = Vec::new();
        groups.show(&mut out, false).unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "    COUNT  SHARE  STORE    5XX     BYTES     MEAN      MAX  host\n\
             \x20       3  75.0%  66.7%  33.3%  12.1 KiB   844 µs  2.50 ms  t.test\n\
             \x20       1  25.0%   0.0%   0.0%   0 bytes     0 µs     0 µs  -\n"
        );
    }
}
