//! What `larder top` counts of the exchanges that it is told, by the value of a field.

use proxy::events::{EventField, FieldValue};

use crate::live_command::live_flags::TopOrder;
use crate::live_command::space_saving::{KeptValue, SpaceSaving};
use crate::log_command::recorded_event::RecordedEvent;

/// Values that are kept apart.
const PLACES: usize = 1_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TopSums {
    pub bytes: u64,
    pub micros: u64,
    pub from_store: u64,
    pub misses: u64,
    pub failed: u64,
}

#[derive(Debug)]
pub struct TopTally {
    pub by: &'static EventField,
    values: SpaceSaving<TopSums>,
    /// Exchanges that were looked at, and that were not: of too many an even share is told.
    pub told: u64,
    pub untold: u64,
}

impl TopTally {
    pub fn by(by: &'static EventField) -> TopTally {
        TopTally { by, values: SpaceSaving::new(PLACES), told: 0, untold: 0 }
    }

    pub fn add(&mut self, event: &RecordedEvent) {
        self.told += 1;
        // What has no value is no row: a hit has no origin.
        let value = match event.value(self.by) {
            None => return,
            Some(FieldValue::Text(text)) => String::from_utf8_lossy(&text).into_owned(),
            Some(FieldValue::Number(number)) => number.to_string(),
            Some(FieldValue::Address(address)) => address.to_string(),
        };
        let sums = self.values.add(&value);
        sums.bytes = sums.bytes.saturating_add(event.number("bytes").unwrap_or(0));
        sums.micros = sums.micros.saturating_add(event.number("time.whole").unwrap_or(0));
        sums.failed += u64::from(event.number("status").is_some_and(|status| status >= 500));
        match event.text("class") {
            Some("hit" | "stale" | "file") => sums.from_store += 1,
            Some("miss" | "pass" | "revalidated" | "coalesced" | "error") => sums.misses += 1,
            _ => {}
        }
    }

    /// How much of all exchanges was looked at: each number is by so much smaller than it would be.
    pub fn share(&self) -> f64 {
        self.told as f64 / (self.told + self.untold).max(1) as f64
    }

    /// The first so many rows in this order.
    pub fn rows(&self, order: TopOrder, rows_max: usize) -> Vec<(String, KeptValue<TopSums>)> {
        let key = |kept: &KeptValue<TopSums>| match order {
            TopOrder::Requests => kept.count,
            TopOrder::Misses => kept.sums.misses,
            TopOrder::Bytes => kept.sums.bytes,
            TopOrder::Time => kept.sums.micros,
            TopOrder::Failed => kept.sums.failed,
        };
        let mut rows: Vec<_> = self.values.kept().map(|(value, kept)| (value.to_owned(), kept.clone())).collect();
        rows.sort_by(|(value, kept), (other_value, other)| key(other).cmp(&key(kept)).then(value.cmp(other_value)));
        rows.truncate(rows_max);
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(text: &str) -> RecordedEvent {
        RecordedEvent::parse(text.as_bytes()).expect("an object")
    }

    #[test]
    fn rows_come_in_the_order_that_is_asked_for() {
        let mut tally = TopTally::by(EventField::named("url").expect("a field"));
        for _ in 0..3 {
            tally.add(&event("{\"class\":\"hit\",\"url\":\"/often\",\"bytes\":1,\"time.whole\":10,\"status\":200}"));
        }
        tally.add(&event("{\"class\":\"error\",\"url\":\"/slow\",\"bytes\":100,\"time.whole\":900,\"status\":502}"));
        tally.add(&event("{\"class\":\"refused\",\"status\":400}"));
        let first = |order| tally.rows(order, 1)[0].0.clone();
        assert_eq!(first(TopOrder::Requests), "/often");
        for order in [TopOrder::Misses, TopOrder::Bytes, TopOrder::Time, TopOrder::Failed] {
            assert_eq!(first(order), "/slow", "{order:?}");
        }
        assert_eq!((tally.told, tally.rows(TopOrder::Requests, 10).len()), (5, 2));
        tally.untold = 15;
        assert_eq!(tally.share(), 0.25);
    }
}
