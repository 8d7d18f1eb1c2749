//! Metrics of the tier that the nodes of a fleet share, as this node sees it. There are none where there is no tier.

use cache::TierFigures;

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, gauge};
use crate::admin::metric_label::LabelDefinition;
use crate::admin::metric_samples::Samples;
use crate::admin::observation::Observation;

const SERVER: LabelDefinition =
    LabelDefinition { name: "server", says: "a server of [shared] url", bound: "those of the configuration" };

const RESULT: LabelDefinition = LabelDefinition {
    name: "result",
    says: "found, timeout (no answer in time), error, skipped (the server is left alone, or too much was asked), refused (no node wrote it so)",
    bound: "these five",
};

fn each(seen: &Observation, to: &mut Samples<'_>, figure: impl Fn(&TierFigures) -> u64) {
    seen.shared.iter().for_each(|(figures, _)| to.one(figure(figures)));
}

pub const ROWS: &[MetricDefinition] = &[
    gauge(
        "larder_shared_up",
        Unit::Count,
        "1, or 0 for a server of the tier that is left alone because it failed",
        |seen, to| {
            for server in seen.shared.iter().flat_map(|(_, servers)| servers) {
                to.of(&[&server.name], u64::from(server.trouble.is_none()));
            }
        },
    )
    .by(&[&SERVER]),
    counter("larder_shared_asked_total", Unit::Count, "Questions to the tier", |seen, to| {
        each(seen, to, |it| it.asked)
    }),
    counter(
        "larder_shared_answers_total",
        Unit::Count,
        "What became of them, but for those to which it had nothing",
        |seen, to| {
            if let Some((figures, _)) = &seen.shared {
                for (result, count) in [
                    ("found", figures.found),
                    ("timeout", figures.timeouts),
                    ("error", figures.errors),
                    ("skipped", figures.skipped),
                    ("refused", figures.refused),
                ] {
                    to.of(&[result], count);
                }
            }
        },
    )
    .by(&[&RESULT]),
    counter("larder_shared_waited_total", Unit::Count, "Questions that waited for another node's fetch", |seen, to| {
        each(seen, to, |it| it.waited)
    }),
    counter("larder_shared_kept_total", Unit::Count, "Responses that were put there", |seen, to| {
        each(seen, to, |it| it.kept);
    }),
    counter(
        "larder_shared_not_kept_total",
        Unit::Count,
        "Those that were not: too much was on its way, or the server would not have it",
        |seen, to| each(seen, to, |it| it.not_kept),
    ),
    counter("larder_shared_received_bytes_total", Unit::Bytes, "Bytes of records from there", |seen, to| {
        each(seen, to, |it| it.bytes_received);
    }),
    counter("larder_shared_sent_bytes_total", Unit::Bytes, "Bytes of records that were put there", |seen, to| {
        each(seen, to, |it| it.bytes_sent);
    }),
];
