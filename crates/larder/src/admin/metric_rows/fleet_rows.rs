//! Metrics of the log of purges that nodes of a fleet share, as this node sees it. There are none where there is no fleet.

use fleet::Acknowledge;

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, gauge};
use crate::admin::metric_label::LabelDefinition;

const ACKNOWLEDGED: LabelDefinition =
    LabelDefinition { name: "acknowledged", says: "local, logged or applied", bound: "these three" };

pub const ROWS: &[MetricDefinition] = &[
    gauge("larder_fleet_log_up", Unit::Count, "1 where the log of the fleet can be used", |seen, to| {
        seen.fleet.iter().for_each(|fleet| to.one(u64::from(fleet.trouble.is_none())));
    }),
    gauge(
        "larder_fleet_lease_lapsed",
        Unit::Count,
        "1 where the log was not heard for a lease, and the origin is asked about what is stored",
        |seen, to| seen.fleet.iter().for_each(|_| to.one(u64::from(seen.fleet_lease_lapsed))),
    ),
    gauge("larder_fleet_nodes", Unit::Count, "Nodes whose leases last, this one among them", |seen, to| {
        if let Some(fleet) = &seen.fleet {
            to.one(fleet.nodes.iter().filter(|node| !node.has_lapsed).count());
        }
    }),
    gauge(
        "larder_fleet_orders_waiting",
        Unit::Count,
        "Purges that are in force here and wait for the log",
        |seen, to| {
            seen.fleet.iter().for_each(|fleet| to.one(fleet.backlog));
        },
    ),
    counter(
        "larder_fleet_orders_applied_total",
        Unit::Count,
        "Purges of all nodes that were carried out here",
        |seen, to| {
            seen.fleet.iter().for_each(|fleet| to.one(fleet.counts.applied));
        },
    ),
    counter(
        "larder_fleet_orders_acknowledged_total",
        Unit::Count,
        "Purges that were ordered here and acknowledged as was asked",
        |seen, to| {
            if let Some(fleet) = &seen.fleet {
                Acknowledge::ALL
                    .into_iter()
                    .for_each(|kind| to.of(&[kind.word()], fleet.counts.acknowledged[kind as usize]));
            }
        },
    )
    .by(&[&ACKNOWLEDGED]),
    counter("larder_fleet_orders_unacknowledged_total", Unit::Count, "Those that were not", |seen, to| {
        seen.fleet.iter().for_each(|fleet| to.one(fleet.counts.fell_short));
    }),
    counter(
        "larder_fleet_told_total",
        Unit::Count,
        "What unsafe methods and programs invalidated here, told to the other nodes without anybody's waiting for it",
        |seen, to| seen.fleet.iter().for_each(|fleet| to.one(fleet.counts.told)),
    ),
    counter(
        "larder_fleet_orders_lost_total",
        Unit::Count,
        "Purges of this node that found no room while they waited for the log: the other nodes have everything confirmed in their place",
        |seen, to| seen.fleet.iter().for_each(|fleet| to.one(fleet.counts.lost)),
    ),
    counter(
        "larder_fleet_condemned_total",
        Unit::Count,
        "How often all that is stored had to be confirmed by the origin, because purges may have been missed",
        |seen, to| seen.fleet.iter().for_each(|fleet| to.one(fleet.counts.condemned)),
    ),
];
