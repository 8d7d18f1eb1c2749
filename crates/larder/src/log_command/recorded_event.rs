//! An exchange as its line of JSON tells it.

use std::borrow::Cow;

use proxy::events::{EventField, FieldKind, FieldValue};
use serde_json::{Map, Value};

/// What a line says.
#[derive(Clone, Debug, Default)]
pub struct RecordedEvent {
    fields: Map<String, Value>,
}

impl RecordedEvent {
    /// `None`: the line is no object.
    pub fn parse(line: &[u8]) -> Option<RecordedEvent> {
        match serde_json::from_slice(line) {
            Ok(Value::Object(fields)) => Some(RecordedEvent { fields }),
            _ => None,
        }
    }

    /// How many exchanges were not told, in a line that says that.
    pub fn lost(&self) -> Option<u64> {
        self.fields.get("lost")?.as_u64()
    }

    /// Is it of an exchange?
    pub fn is_exchange(&self) -> bool {
        self.fields.contains_key("class")
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    pub fn number(&self, name: &str) -> Option<u64> {
        self.fields.get(name)?.as_u64()
    }

    /// The field as queries compare it.
    pub fn value(&self, field: &EventField) -> Option<FieldValue<'_>> {
        match field.kind {
            FieldKind::Text => Some(FieldValue::Text(Cow::Borrowed(self.text(field.name)?.as_bytes()))),
            FieldKind::Number | FieldKind::Micros | FieldKind::Bytes => {
                Some(FieldValue::Number(self.number(field.name)?))
            }
            FieldKind::Address => Some(FieldValue::Address(self.text(field.name)?.parse().ok()?)),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proxy::events::EventQuery;

    use super::*;

    pub const HIT: &str = "{\"v\":1,\"time\":\"2000-10-10T13:55:36.007Z\",\"client\":\"192.0.2.7\",\"method\":\"GET\",\
        \"host\":\"t.test\",\"path\":\"/a\",\"query\":\"b=1\",\"url\":\"t.test/a?b=1\",\"protocol\":\"1.1\",\
        \"agent\":\"curl/8.14\",\"route\":\"/\",\"status\":200,\"bytes\":6221,\"class\":\"hit\",\"time.whole\":17,\
        \"time.first_byte\":17}";

    pub const FAILED: &str = "{\"v\":1,\"time\":\"2000-10-10T13:55:37.100Z\",\"client\":\"2001:db8::1\",\"method\":\"GET\",\
        \"host\":\"t.test\",\"path\":\"/b\",\"url\":\"t.test/b\",\"protocol\":\"2\",\"route\":\"/\",\"status\":502,\
        \"bytes\":40,\"class\":\"error\",\"why\":\"origin-connect\",\"time.whole\":2500,\"time.first_byte\":2400,\
        \"origin\":\"app\",\"origin.error\":\"origin-connect\",\"origin.tries\":1,\"time.connect\":1200,\
        \"error.detail\":\"origin \\\"app\\\": refused\"}";

    #[test]
    fn a_record_is_asked_as_a_running_larder_is() {
        for (line, query, expect) in [
            (HIT, "class == hit and client == 192.0.2.0/24 and time.whole < 1ms", true),
            (HIT, "origin", false),
            (HIT, "bytes > 6k and url ~ ^t", true),
            (FAILED, "status >= 500 and origin == app and time.connect > 1ms", true),
            (FAILED, "client == 2001:db8::/32", true),
            (FAILED, "error.detail ~ refused$", true),
        ] {
            let event = RecordedEvent::parse(line.as_bytes()).unwrap();
            let query = EventQuery::parse(query).unwrap();
            assert_eq!(query.is_met(|field| event.value(field)), expect, "{query:?}");
        }
    }

    #[test]
    fn what_is_no_exchange_is_known() {
        assert!(RecordedEvent::parse(b"[1]").is_none() && RecordedEvent::parse(b"{\"a\"").is_none());
        let lost = RecordedEvent::parse(b"{\"v\":1,\"lost\":7}").unwrap();
        assert_eq!((lost.lost(), lost.is_exchange()), (Some(7), false));
    }
}
