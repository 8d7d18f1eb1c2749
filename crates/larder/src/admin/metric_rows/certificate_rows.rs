//! Metrics of certificates: of those that clients are shown, and of those that are ordered.

use crate::admin::metric_definition::{MetricDefinition, Unit, counter, gauge};
use crate::admin::metric_label::LabelDefinition;

const LISTENER: LabelDefinition = LabelDefinition {
    name: "listener",
    says: "the address that is listened on",
    bound: "the [[listen]]s of the configuration",
};
const NAME: LabelDefinition = LabelDefinition {
    name: "name",
    says: "the first name of the certificate",
    bound: "the certificates of the configuration",
};

pub const ROWS: &[MetricDefinition] = &[
    gauge(
        "larder_tls_certificate_expires_timestamp_seconds",
        Unit::Seconds,
        "Until when a certificate is good that clients are shown, in seconds since 1970",
        |seen, to| {
            let mut before: Vec<(&str, &str)> = Vec::new();
            for certificate in &seen.certificates {
                // One name tells it apart, and those of two kinds have the same: the first is the one that most clients see.
                let name = certificate.names.first().map_or("", String::as_str);
                if !before.contains(&(&certificate.listener, name)) {
                    before.push((&certificate.listener, name));
                    to.of(&[&certificate.listener, name], certificate.until_s);
                }
            }
        },
    )
    .by(&[&LISTENER, &NAME]),
    counter("larder_acme_orders_total", Unit::Count, "Certificates that were ordered from an authority", |seen, to| {
        to.one(seen.acme_counts.0)
    }),
    counter("larder_acme_orders_failed_total", Unit::Count, "Of these orders, those that failed", |seen, to| {
        to.one(seen.acme_counts.1);
    }),
    gauge(
        "larder_acme_failures_in_a_row",
        Unit::Count,
        "Orders for a set of names that failed since one last went well",
        |seen, to| seen.acme.iter().for_each(|status| to.of(&[status.names.first()], status.failures)),
    )
    .by(&[&NAME]),
];
