//! The spans of an exchange, as text.

use message::Fields;

use super::*;
use crate::access_log::CacheVerdict;
use crate::events::exchange_event::tests::sample;
use crate::events::origin_try::tests::{answered, failed};
use crate::origin::OpeningTimes;
use crate::settings::TraceSettings;
use crate::traces::trace_ids::TraceDice;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn trace(parent: Option<&str>) -> ExchangeTrace {
    let mut fields = Fields::default();
    parent.iter().for_each(|parent| fields.push_named(b"traceparent", parent.as_bytes()));
    fields.push_named(b"tracestate", b"a=\"1\"");
    ExchangeTrace::begin(&TraceSettings::default(), &TraceDice::default(), (fields.view(), true))
}

fn spans(event: &ExchangeEvent<'_>, trace: &ExchangeTrace) -> (u64, String) {
    let mut out = Vec::new();
    let moment = Moment { nanos: 5_000_000_123 };
    let clock = Clock::standing(5_000, 971_186_136_007);
    let count = write_spans(&mut out, event, trace, (clock, moment));
    (count, String::from_utf8(out).unwrap())
}

fn digits(digits: impl AsRef<[u8]>) -> String {
    String::from_utf8(digits.as_ref().to_vec()).unwrap()
}

#[test]
fn a_hit_is_one_span_under_that_of_its_client() {
    let trace = trace(Some(PARENT));
    let (count, text) = spans(&sample(), &trace);
    let text_of = |key: &str, value: &str| format!("{{\"key\":\"{key}\",\"value\":{{\"stringValue\":\"{value}\"}}}}");
    let number_of = |key: &str, value: u64| format!("{{\"key\":\"{key}\",\"value\":{{\"intValue\":\"{value}\"}}}}");
    let attributes = [
        text_of("http.request.method", "GET"),
        text_of("url.scheme", "http"),
        text_of("url.path", "/a"),
        text_of("url.query", "b=1"),
        text_of("http.route", "/"),
        text_of("server.address", "t.test"),
        text_of("client.address", "192.0.2.7"),
        text_of("user_agent.original", "curl/8.14"),
        text_of("network.protocol.version", "1.1"),
        number_of("http.response.status_code", 200),
        number_of("http.response.body.size", 6221),
        text_of("larder.class", "hit"),
        text_of("larder.route", "/"),
        number_of("larder.time.first_byte", 17),
    ];
    let expect = format!(
        "{{\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"{}\",\"parentSpanId\":\"b7ad6b7169203331\",\
         \"traceState\":\"a=\\\"1\\\"\",\"flags\":769,\"name\":\"GET /\",\"kind\":2,\
         \"startTimeUnixNano\":\"971186136006983123\",\"endTimeUnixNano\":\"971186136007000123\",\"attributes\":[{}]}}",
        digits(trace.span.digits()),
        attributes.join(",")
    );
    assert_eq!((count, text), (1, expect));
}

#[test]
fn each_try_is_a_span_under_that_of_its_exchange() {
    let dice = TraceDice::default();
    let moment = |nanos| Moment { nanos };
    let span = |nanos| {
        let (url, method) = ((*b"http://t.test/a?b=1").into(), (*b"GET").into());
        Some(Box::new(TrySpan { id: dice.span(), method, url, begun: moment(nanos), ended: moment(nanos + 2_000) }))
    };
    let mut tries = [failed(), answered(503, OpeningTimes { connect_micros: 40, ..OpeningTimes::default() }, 900)];
    tries[0].span = span(4_000_000_000);
    tries[1].span = span(4_000_009_000);
    let ids = tries.each_ref().map(|tried| digits(tried.span.as_ref().unwrap().id.digits()));
    let event = ExchangeEvent {
        tries: &tries,
        status: 503,
        verdict: CacheVerdict::Error,
        why: "origin-status",
        host: Some(b"[::1]:8080"),
        ..sample()
    };
    let trace = trace(None);
    let (count, text) = spans(&event, &trace);
    let parts: Vec<&str> = text.split(",{\"traceId\"").collect();
    assert_eq!((count, parts.len()), (3, 3));
    let own = digits(trace.span.digits());
    assert!(!parts[0].contains("parentSpanId") && !parts[0].contains("traceState"), "{text}");
    assert!(parts[0].contains("\"server.port\",\"value\":{\"intValue\":\"8080\"}"), "{text}");
    for (part, id) in parts[1..].iter().zip(&ids) {
        assert!(part.contains(&format!("\"spanId\":\"{id}\",\"parentSpanId\":\"{own}\"")), "{part}");
        assert!(part.contains("\"kind\":3") && part.ends_with(",\"status\":{\"code\":2}}"), "{part}");
    }
    assert!(
        parts[1].contains("\"startTimeUnixNano\":\"971186135007000000\",\"endTimeUnixNano\":\"971186135007002000\"")
    );
    assert!(parts[1].contains("\"error.type\",\"value\":{\"stringValue\":\"origin-connect\"}"), "{text}");
    assert!(parts[2].contains("\"error.type\",\"value\":{\"stringValue\":\"503\"}"), "{text}");
    assert!(parts[2].contains("\"server.address\",\"value\":{\"stringValue\":\"10.0.0.2\"}"), "{text}");
    assert!(parts[2].contains("\"http.request.resend_count\",\"value\":{\"intValue\":\"1\"}"), "{text}");
    assert!(parts[2].contains("\"larder.time.connect\",\"value\":{\"intValue\":\"40\"}"), "{text}");
}

#[test]
fn what_a_client_sent_stays_within_its_quotes() {
    let hostile = b"\"}]}\n\x1b\xff\xe2\x80\xae";
    let event = ExchangeEvent {
        method: hostile,
        path: hostile,
        query: Some(b"sig=secret&a"),
        user_agent: Some(hostile),
        host: Some(hostile),
        ..sample()
    };
    let (_, text) = spans(&event, &trace(None));
    assert!(!text.chars().any(char::is_control) && !text.contains("secret"), "{text}");
    assert!(text.contains("\"name\":\"HTTP /\"") && text.contains("{\"stringValue\":\"_OTHER\"}"), "{text}");
}
