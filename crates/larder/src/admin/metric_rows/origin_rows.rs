//! Metrics of origins and their addresses.

use std::fmt::Display;

use proxy::OriginStatus;
use proxy::origin::{AddressState, AddressStatus, OriginFault};

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, gauge};
use crate::admin::metric_label::LabelDefinition;
use crate::admin::metric_samples::Samples;
use crate::admin::observation::Observation;

pub const ORIGIN: LabelDefinition =
    LabelDefinition { name: "origin", says: "the origin's name", bound: "the [origin.NAME]s of the configuration" };
pub const ADDRESS: LabelDefinition = LabelDefinition {
    name: "address",
    says: "an address of the origin",
    bound: "the addresses that the configuration or the resolver has for it",
};
const DIRECTION: LabelDefinition = LabelDefinition {
    name: "direction",
    says: "`received` for what came from the origin, `sent` for what went to it",
    bound: "2",
};
const KIND: LabelDefinition = LabelDefinition {
    name: "kind",
    says: "what went wrong: resolve, connect, connect-timeout, tls, exhausted, busy, all-out, first-byte, protocol, truncated, status",
    bound: "11",
};

fn each<T: Display>(seen: &Observation, to: &mut Samples<'_>, figure: fn(&OriginStatus) -> T) {
    for origin in &seen.origins {
        to.of(&[&origin.name], figure(origin));
    }
}

/// `None`: the address has no such figure.
pub fn each_address<T: Display>(seen: &Observation, to: &mut Samples<'_>, figure: fn(&AddressStatus) -> Option<T>) {
    for origin in &seen.origins {
        for address in &origin.addresses {
            figure(address).into_iter().for_each(|value| to.of(&[&origin.name, &address.label], value));
        }
    }
}

pub const ROWS: &[MetricDefinition] = &[
    gauge("larder_origin_connections", Unit::Count, "Connections to an origin", |seen, to| {
        each(seen, to, |origin| origin.connections);
    })
    .by(&[&ORIGIN]),
    gauge("larder_origin_connections_limit", Unit::Count, "Its max_connections", |seen, to| {
        each(seen, to, |origin| origin.connections_max);
    })
    .by(&[&ORIGIN]),
    gauge("larder_origin_queued", Unit::Count, "Requests that wait for a connection to an origin", |seen, to| {
        each(seen, to, |origin| origin.queued);
    })
    .by(&[&ORIGIN]),
    counter("larder_origin_asked_total", Unit::Count, "Requests sent to an origin", |seen, to| {
        each(seen, to, |origin| origin.asked);
    })
    .by(&[&ORIGIN]),
    counter(
        "larder_origin_bytes_total",
        Unit::Bytes,
        "Bytes of answers read from an origin, and of requests written to it, heads and bodies",
        |seen, to| {
            for origin in &seen.origins {
                to.of(&[&origin.name, "received"], origin.received_bytes);
                to.of(&[&origin.name, "sent"], origin.sent_bytes);
            }
        },
    )
    .by(&[&ORIGIN, &DIRECTION]),
    counter(
        "larder_origin_errors_total",
        Unit::Count,
        "Failures by an origin's doing, of whatever kind",
        |seen, to| each(seen, to, OriginStatus::errors),
    )
    .by(&[&ORIGIN]),
    counter("larder_origin_faults_total", Unit::Count, "The same by their kinds", |seen, to| {
        for origin in &seen.origins {
            for ((word, _), count) in OriginFault::ALL.iter().zip(&origin.faults) {
                to.of(&[&origin.name, word], count);
            }
        }
    })
    .by(&[&ORIGIN, &KIND]),
    gauge(
        "larder_origin_up",
        Unit::Count,
        "1, or 0 for an address that failed the last time, or that is left out or taken out",
        |seen, to| each_address(seen, to, |address| Some(u64::from(address.state == AddressState::Up))),
    )
    .by(&[&ORIGIN, &ADDRESS]),
    gauge("larder_origin_weight", Unit::Count, "What an address weighs beside the others of its origin", |seen, to| {
        each_address(seen, to, |address| Some(address.share.weight))
    })
    .by(&[&ORIGIN, &ADDRESS]),
    gauge(
        "larder_origin_share_ratio",
        Unit::Ratio,
        "How much of that it gets: less than 1 while it begins slowly",
        |seen, to| each_address(seen, to, |address| Some(f64::from(address.permille) / 1_000.0)),
    )
    .by(&[&ORIGIN, &ADDRESS]),
    gauge(
        "larder_origin_in_use",
        Unit::Count,
        "Connections to an address that are in use, or requests over HTTP/2",
        |seen, to| each_address(seen, to, |address| Some(address.in_use)),
    )
    .by(&[&ORIGIN, &ADDRESS]),
    gauge("larder_origin_probes_good", Unit::Count, "Good ones among the last probes of an address", |seen, to| {
        each_address(seen, to, |address| address.probe.as_ref().map(|probe| probe.good))
    })
    .by(&[&ORIGIN, &ADDRESS]),
];
