//! Metrics of certificates: of those that clients are shown, and of those that are ordered.

use std::collections::BTreeMap;

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
            // One name tells it apart, and those of two kinds (RSA, ECDSA) have the same: what ends first fails some of the clients.
            let mut dates: BTreeMap<(&str, &str), u64> = BTreeMap::new();
            for certificate in &seen.certificates {
                let name = certificate.names.first().map_or("", String::as_str);
                let date = dates.entry((&certificate.listener, name)).or_insert(certificate.until_s);
                *date = (*date).min(certificate.until_s);
            }
            for (&(listener, name), until_s) in &dates {
                to.of(&[listener, name], until_s);
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

#[cfg(test)]
mod tests {
    use crate::admin::metrics_text::metrics;
    use crate::admin::observation::tests::sample;

    /// Whichever of a name's certificates a client is shown, its end is no later than this.
    #[test]
    fn of_two_certificates_of_a_name_the_earlier_end_counts() {
        let mut seen = sample();
        let first = seen.certificates[0].clone();
        for (listener, until_s) in [("0.0.0.0:443", 1_000), ("0.0.0.0:443", 3_000), ("0.0.0.0:8443", 2_000)] {
            let mut other = first.clone();
            (other.listener, other.until_s) = (listener.to_owned(), until_s);
            seen.certificates.push(other);
        }
        let page = metrics(&seen);
        let name = "larder_tls_certificate_expires_timestamp_seconds{listener=";
        let found: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix(name)).collect();
        assert_eq!(found, [r#""0.0.0.0:443",name="a.example"} 1000"#, r#""0.0.0.0:8443",name="a.example"} 2000"#]);
    }
}
