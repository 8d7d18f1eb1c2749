//! The keys of `[fleet]`.

use fleet::Acknowledge;

use crate::config::definition::ValueKind::{Text, Time, Words};
use crate::config::definition::{KeyDefinition, V0_1, key};
use crate::config::literal;
use crate::fleet_plan::{LOG_KEY, LogPlan};

pub const FLEET: &[KeyDefinition] = &[
    key(V0_1, "name", Text("any text"), "What this node is called. Each has another name.")
        .without("the name of the machine")
        .example("\"edge-1\""),
    key(
        V0_1,
        "log",
        Text("redis://[USER:PASSWORD@]HOST[:PORT][/DB], or redis+unix:///PATH"),
        "The Redis or Valkey through which the nodes tell one another what was purged. A purge that is ordered at one of them is carried out by all.",
    )
    .without("a purge is carried out where it is ordered")
    .example("\"redis://10.0.0.5:6379\"")
    .secret(),
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
];
