//! Which events somebody wants to read: a condition over their fields.
//!
//! `status >= 500 and origin == "app" and time.first_byte > 1s`. What a field that is absent is compared with is not met, and its
//! opposite is: `origin != app` holds for a hit.

use std::cmp::Ordering;

use vcl::Pattern;

use crate::events::event_fields::{EventField, FieldValue};
use crate::events::exchange_event::ExchangeEvent;
use crate::events::query_completion::{self, QueryContinuation};
use crate::events::query_text::{self, QueryError};
use crate::network::Network;

/// A condition; without one every event is meant.
#[derive(Debug, Default)]
pub struct EventQuery {
    root: Option<QueryCondition>,
}

#[derive(Debug)]
pub(super) enum QueryCondition {
    All(Vec<QueryCondition>),
    Any(Vec<QueryCondition>),
    Not(Box<QueryCondition>),
    Test(FieldTest),
}

/// What is asked of one field.
#[derive(Debug)]
pub(super) struct FieldTest {
    pub(super) field: &'static EventField,
    pub(super) asks: Asks,
}

#[derive(Debug)]
pub(super) enum Asks {
    IsThere,
    Equals(Comparand),
    /// The field is in one of these orders to what is wanted.
    Orders(&'static [Ordering], Comparand),
    Matches(Pattern),
}

/// What a field is compared with.
#[derive(Debug)]
pub(super) enum Comparand {
    Text(Box<[u8]>),
    Number(u64),
    Network(Network),
}

impl EventQuery {
    /// Reads a query; nothing but blanks means every event.
    pub fn parse(text: &str) -> Result<EventQuery, QueryError> {
        Ok(EventQuery { root: query_text::parse(text)? })
    }

    /// How what was typed of one may go on.
    pub fn continuations(typed: &str) -> Vec<QueryContinuation> {
        query_completion::continuations(typed)
    }

    /// Is it met by an event that was just told?
    pub(crate) fn is_met_by(&self, event: &ExchangeEvent<'_>) -> bool {
        self.is_met(|field| (field.of)(event))
    }

    /// Is it met by an event whose fields are found elsewhere?
    pub fn is_met<'v>(&self, value_of: impl Fn(&'static EventField) -> Option<FieldValue<'v>>) -> bool {
        self.root.as_ref().is_none_or(|root| root.is_met(&value_of))
    }
}

impl QueryCondition {
    fn is_met<'v>(&self, value_of: &impl Fn(&'static EventField) -> Option<FieldValue<'v>>) -> bool {
        match self {
            QueryCondition::All(all) => all.iter().all(|one| one.is_met(value_of)),
            QueryCondition::Any(any) => any.iter().any(|one| one.is_met(value_of)),
            QueryCondition::Not(one) => !one.is_met(value_of),
            QueryCondition::Test(test) => value_of(test.field).is_some_and(|value| test.asks.is_met(&value)),
        }
    }
}

impl Asks {
    fn is_met(&self, value: &FieldValue<'_>) -> bool {
        match self {
            Asks::IsThere => true,
            Asks::Equals(wanted) => wanted.is(value),
            Asks::Orders(orders, wanted) => wanted.order_of(value).is_some_and(|order| orders.contains(&order)),
            // What cannot be matched within the limits of a pattern is no match.
            Asks::Matches(pattern) => match value {
                FieldValue::Text(text) => pattern.is_match(text).unwrap_or(false),
                FieldValue::Address(address) => pattern.is_match(address.to_string().as_bytes()).unwrap_or(false),
                FieldValue::Number(number) => pattern.is_match(number.to_string().as_bytes()).unwrap_or(false),
            },
        }
    }
}

impl Comparand {
    fn is(&self, value: &FieldValue<'_>) -> bool {
        match (self, value) {
            (Comparand::Network(network), FieldValue::Address(address)) => network.contains(*address),
            _ => self.order_of(value) == Some(Ordering::Equal),
        }
    }

    /// How a value stands to it.
    fn order_of(&self, value: &FieldValue<'_>) -> Option<Ordering> {
        match (self, value) {
            (Comparand::Text(wanted), FieldValue::Text(text)) => Some(text.as_ref().cmp(wanted)),
            (Comparand::Number(wanted), FieldValue::Number(number)) => Some(number.cmp(wanted)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::exchange_event::tests::sample;

    #[track_caller]
    fn check(event: &ExchangeEvent<'_>, query: &str, expect: bool) {
        let parsed = EventQuery::parse(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        assert_eq!(parsed.is_met_by(event), expect, "{query}");
    }

    #[test]
    fn fields_are_compared_by_what_they_are() {
        let event = ExchangeEvent { status: 503, micros: 1_500_000, body_bytes: 20 << 10, ..sample() };
        for (query, expect) in [
            ("", true),
            ("status == 503", true),
            ("status >= 500 and status < 600", true),
            ("status != 503", false),
            ("time.whole > 1s", true),
            ("time.whole > 1500ms", false),
            ("time.whole >= 1500ms", true),
            ("bytes == 20k", true),
            ("bytes == 20KiB AND bytes > 20KB", true),
            ("bytes > 1M", false),
            ("client == 192.0.2.7", true),
            ("client == 192.0.2.0/24", true),
            ("client == 10.0.0.0/8", false),
            ("client != 10.0.0.0/8", true),
            ("method == GET", true),
            ("method == get", false),
            ("url ~ ^t\\.test/", true),
            ("url !~ \"^/a b\"", true),
            ("agent ~ \"(?i)CURL\"", true),
            ("host > a", true),
        ] {
            check(&event, query, expect);
        }
    }

    #[test]
    fn what_is_absent_meets_no_comparison_and_every_denial() {
        for (query, expect) in [
            ("origin == app", false),
            ("origin != app", true),
            ("origin", false),
            ("not origin", true),
            ("time.connect > 0s", false),
            ("agent", true),
        ] {
            check(&sample(), query, expect);
        }
    }

    #[test]
    fn and_binds_closer_than_or_and_not_closest() {
        for (query, expect) in [
            ("status == 301 and status == 302 or status == 200", true),
            ("status == 200 or status == 301 and status == 302", true),
            ("(status == 200 or status == 301) and status == 302", false),
            ("not status == 301 and status == 200", true),
            ("not (status == 301 or status == 200)", false),
            ("status == 200 && !(class == miss) || user", true),
        ] {
            check(&sample(), query, expect);
        }
    }
}
