//! The keys of `[forward]` and `[[forward.parent]]`.

use std::ops::RangeInclusive;

use proxy::settings::ForwardSettings;

use crate::config::choices::PARENT_BALANCES;
use crate::config::definition::ValueKind::{Count, Either, List, Switch, Text, Words};
use crate::config::definition::{COUNT, KeyDefinition, NETWORK, PATH, V0_1, ValueKind, key};
use crate::config::literal;

const DESTINATIONS: ValueKind =
    List(&Text("a name, .DOMAIN, a network or :PORT, each with :PORT behind it if need be"));
const PORTS: ValueKind = List(&Either(&[Count(1, 65_535), Text("two ports with a hyphen, such as \"1025-65535\"")]));

fn forward() -> ForwardSettings {
    ForwardSettings::default()
}

fn ports(ranges: &[RangeInclusive<u16>]) -> String {
    literal::list(ranges.iter().map(|range| match range.start() == range.end() {
        true => range.start().to_string(),
        false => literal::text(&format!("{}-{}", range.start(), range.end())),
    }))
}

pub const FORWARD: &[KeyDefinition] = &[
    key(V0_1, "allow_clients", List(&NETWORK), "Networks whose clients may use it.")
        .by_default(|| literal::networks(&forward().allow_clients)),
    key(V0_1, "allow_destinations", DESTINATIONS, "Destinations that may have addresses that are not public.")
        .by_default(|| literal::list([])),
    key(V0_1, "deny_destinations", DESTINATIONS, "Destinations that are closed, whatever opens them.")
        .by_default(|| literal::list([])),
    key(V0_1, "only_destinations", DESTINATIONS, "Nothing else is led to.")
        .without("everything that is public")
        .example("[\".example.org\"]"),
    key(V0_1, "ports", PORTS, "Ports of http URLs: numbers, and ranges in quotes.")
        .by_default(|| ports(&forward().ports)),
    key(V0_1, "connect_ports", PORTS, "Ports of tunnels (CONNECT).").by_default(|| ports(&forward().connect_ports)),
    key(
        V0_1,
        "password_file",
        PATH,
        "Only users of this file may come, by name and password: as `htpasswd -B` writes it.",
    )
    .without("all of allow_clients")
    .example("\"users\""),
    key(
        V0_1,
        "realm",
        Text("a few printable words without quotes, 64 at most"),
        "What users are told that they are asked for.",
    )
    .by_default(|| literal::text(&forward().realm)),
    key(V0_1, "client_connections_max", COUNT, "Connections of one client. 0: no limit.")
        .by_default(|| literal::number(forward().client_connections_max)),
    key(V0_1, "client_requests_per_second_max", COUNT, "Requests of one client. 0: no limit.")
        .unit("a second")
        .by_default(|| literal::number(forward().client_requests_per_second_max)),
    key(
        V0_1,
        "balance",
        Words(|| literal::words(&PARENT_BALANCES)),
        "Which parent is asked: \"hash\" asks the same one for the same URL.",
    )
    .by_default(|| literal::word(&forward().balance, &PARENT_BALANCES)),
    key(
        V0_1,
        "always_direct",
        DESTINATIONS,
        "Destinations, by name, that are asked themselves though there are parents.",
    )
    .by_default(|| literal::list([])),
    key(
        V0_1,
        "never_direct",
        Switch,
        "When no parent can be reached: true lets the request fail (502, 503 or 504), false asks the destination.",
    )
    .by_default(|| literal::switch(forward().never_direct)),
    key(V0_1, "parent", ValueKind::Table, "A proxy that is asked in place of the destinations: [[forward.parent]]."),
];

pub const PARENT: &[KeyDefinition] = &[
    key(V0_1, "address", Text("HOST:PORT or unix:/PATH"), "Where it is.").required("\"10.0.0.5:3128\""),
    key(V0_1, "weight", Count(1, 1_000), "Its share of the requests beside other parents.")
        .by_default(|| literal::number(1_u32)),
    key(V0_1, "login_file", PATH, "A file with NAME:PASSWORD for it.")
        .without("nobody is named")
        .example("\"parent.login\""),
];
