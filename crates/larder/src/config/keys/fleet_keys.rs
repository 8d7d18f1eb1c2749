//! The keys of `[fleet]`. What it has in common with an `[origin.NAME]` is defined there.

use fleet::Acknowledge;

use crate::config::definition::ValueKind::{Count, List, Parameter, Switch, Table, Text, Time, Words};
use crate::config::definition::{COUNT, KeyDefinition, PATH, TIME, V0_1, key};
use crate::config::literal;
use crate::fleet_plan::{LOG_KEY, LogPlan};
use crate::limits::FLEET_LOAD_MAX_DEFAULT;
use crate::plan::origin_with_defaults;

fn by_default() -> proxy::settings::OriginSettings {
    origin_with_defaults(String::new(), Vec::new())
}

pub const FLEET: &[KeyDefinition] = &[
    key(
        V0_1,
        "peers",
        List(&Text("http://HOST[:PORT], https://HOST[:PORT], h2://HOST[:PORT] or dns:HOST:PORT, and behind it weight=N")),
        "All nodes that serve this site, this one too. Each URL has one of them as its owner, from which the others fetch it. Each address \
         of a name is a node.",
    )
    .without("each node asks the origin")
    .example("[\"http://10.0.0.1:8080\", \"http://10.0.0.2:8080\"]"),
    key(V0_1, "secret_file", PATH, "A file with the secret by which nodes know one another, the same on all: 32 characters or more.")
        .without("peers are refused")
        .example("\"fleet.secret\""),
    key(V0_1, "address", Text("as it stands in peers"), "Which of them this node is.")
        .without("the one that is an address of this machine, with a port of a [[listen]]")
        .example("\"http://10.0.0.1:8080\""),
    key(
        V0_1,
        "load_max",
        Parameter("a number from 1 to 100"),
        "An owner that works on more than so many times its share of this node's fetches is passed over, once these are many.",
    )
    .by_default(|| literal::share(u64::from(FLEET_LOAD_MAX_DEFAULT), 1_000)),
    key(V0_1, "max_connections", Count(1, u64::MAX), "Connections to all other nodes together; over HTTP/2, requests under way.")
        .by_default(|| literal::number(by_default().connections_max)),
    key(V0_1, "queue_max", COUNT, "Requests that may wait for one of these connections; beyond it the origin is asked.")
        .by_default(|| literal::number(by_default().queue_max)),
    key(V0_1, "queue_timeout", TIME, "How long a request may wait for a connection; beyond it the origin is asked.")
        .by_default(|| literal::time(by_default().queue_timeout)),
    key(V0_1, "ejection_failures", Count(1, u32::MAX as u64), "After so many failures in a row a node is left out.")
        .by_default(|| literal::number(by_default().ejection_failures)),
    key(V0_1, "ejection_time", TIME, "How long a node is left out that failed.")
        .by_default(|| literal::time(by_default().ejection_time)),
    key(V0_1, "timeouts", Table, "How long a node is waited for. `connect` is 1s where nothing is said.")
        .without("as [limits] says, but for connect")
        .example("{ connect = \"1s\", first_byte = \"30s\", between_bytes = \"10s\" }"),
    key(V0_1, "probe", Table, "Each node is asked whether it is well. docs/origins.md").without("nobody is probed").example(
        "{ path = \"/health\", host = \"www.example.org\", interval = \"5s\", timeout = \"2s\", window = 8, threshold = 3, initial = 2, expected = [200] }",
    ),
    key(V0_1, "tls", Table, "Of https:// peers: how they are known, and what larder shows them. docs/tls.md")
        .without("whom this system trusts, for the host of the URL")
        .example(
            "{ ca = \"/etc/larder/origins.pem\", name = \"www.internal\", verify = true, cert = \"/etc/larder/us.pem\", key = \"/etc/larder/us.key\" }",
        ),
    key(V0_1, "http2", Switch, "Of https:// peers: ask them over HTTP/2. docs/http2.md").without("false").example("true"),
];

/// Of the log.
pub const FLEET_LOG: &[KeyDefinition] = &[
    key(V0_1, "name", Text("any text"), "What this node is called. Each has another name.")
        .without("the name of the machine")
        .example("\"edge-1\""),
    key(
        V0_1,
        "log",
        Text(
            "redis://[USER:PASSWORD@]HOST[:PORT][/DB], rediss://… over TLS, redis+unix:///PATH, or redis+sentinel://[USER:PASSWORD@]HOST[:PORT],…/NAME[/DB]",
        ),
        "The Redis or Valkey through which the nodes tell one another what was purged. A purge that is ordered at one of them is carried out by all.",
    )
    .without("a purge is carried out where it is ordered")
    .example("\"redis://10.0.0.5:6379\"")
    .secret(),
    key(V0_1, "log_ca", PATH, "Who may sign the certificate of the log's Redis, reached by rediss://: a file in PEM.")
        .without("whom this system trusts")
        .example("\"/etc/larder/redis-ca.pem\""),
    key(V0_1, "log_key", Text("any text"), "What the keys of the log begin with: two fleets that share a Redis need two.")
        .by_default(|| literal::text(LOG_KEY)),
    key(
        V0_1,
        "lease",
        Time(true),
        "How long a node serves what it has without having heard the log to its end. After that the origin is asked whether it still holds; \
         nothing is served that was purged longer ago.",
    )
    .by_default(|| literal::time(LogPlan::LEASE)),
    key(
        V0_1,
        "acknowledge",
        Words(|| Acknowledge::ALL.map(Acknowledge::word).to_vec()),
        "When a purge is acknowledged whose order does not say it. local: this node has carried it out; logged: it is in the log, too; \
         applied: every node has carried it out, or can no longer serve what is older.",
    )
    .by_default(|| literal::text(Acknowledge::default().word())),
    key(
        V0_1,
        "unsafe_methods",
        Switch,
        "What a POST, PUT, DELETE or other unsafe method makes untrue on one node is purged on all: its URL, what Location and Content-Location name, and the groups \
         of Cache-Group-Invalidation. Nobody waits for it. docs/fleet.md",
    )
    .by_default(|| literal::switch(false)),
    key(
        V0_1,
        "vcl",
        Switch,
        "What is done at one node's admin address about VCLs (larder vcl load, use, label, discard) is done on all nodes that say so, in one order. \
         Who can write to the log can then load a VCL here. docs/fleet.md",
    )
    .by_default(|| literal::switch(false)),
];
