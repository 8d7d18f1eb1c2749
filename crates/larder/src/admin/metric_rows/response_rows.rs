//! Metrics of responses: what clients got, by class, protocol and route, and how long it took. What is counted is what has a line in the
//! access log, whether or not one is written.

use proxy::exchange_tally::ExchangeTime;

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, histogram};
use crate::admin::metric_label::LabelDefinition;

pub const CLASS: LabelDefinition = LabelDefinition {
    name: "class",
    says: "how the response came about, as in the access log: hit, stale, revalidated, miss, coalesced, pass, synth, error, refused, file, \
           memcached, pipe, purge",
    bound: "13",
};
const PROTOCOL: LabelDefinition =
    LabelDefinition { name: "protocol", says: "what the client speaks: http/1.0, http/1.1, h2", bound: "3" };
const ROUTE: LabelDefinition = LabelDefinition {
    name: "route",
    says: "the route as larder.toml has it: methods, host, path or `/~` and pattern; `none` for what belongs to no route, `other` for \
           routes past the bound",
    bound: "66: the first 64 routes, those that a reload took away included, `none` and `other`",
};

pub const ROWS: &[MetricDefinition] = &[
    counter("larder_responses_total", Unit::Count, "Exchanges with clients that are over", |seen, to| {
        seen.exchanges.by_class_and_protocol(|labels, sum| to.of(&labels, sum.requests))
    })
    .by(&[&CLASS, &PROTOCOL]),
    counter("larder_response_body_bytes_total", Unit::Bytes, "Bytes of bodies that went to clients", |seen, to| {
        seen.exchanges.by_class_and_protocol(|labels, sum| to.of(&labels, sum.body_bytes))
    })
    .by(&[&CLASS, &PROTOCOL]),
    counter(
        "larder_route_responses_total",
        Unit::Count,
        "Exchanges that are over, by the route that answered; what never happened is left out",
        |seen, to| seen.exchanges.by_route_and_class(|labels, sum| to.of(&labels, sum.requests)),
    )
    .by(&[&ROUTE, &CLASS]),
    counter(
        "larder_route_response_body_bytes_total",
        Unit::Bytes,
        "Bytes of bodies that went to clients, by route",
        |seen, to| seen.exchanges.by_route_and_class(|labels, sum| to.of(&labels, sum.body_bytes)),
    )
    .by(&[&ROUTE, &CLASS]),
    histogram(
        "larder_response_first_byte_seconds",
        Unit::Seconds,
        "From the first byte of a request to the moment when its answer begins to go out",
        |seen, to| {
            seen.exchanges.times(ExchangeTime::FirstByte, |class, times| to.histogram(&[class], times, 2));
        },
    )
    .by(&[&CLASS]),
    histogram(
        "larder_response_seconds",
        Unit::Seconds,
        "From the first byte of a request to the last of its answer",
        |seen, to| seen.exchanges.times(ExchangeTime::Whole, |class, times| to.histogram(&[class], times, 2)),
    )
    .by(&[&CLASS]),
];
