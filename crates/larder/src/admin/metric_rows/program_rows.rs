//! Metrics of VCLs and their backends.

use proxy::{BackendStatus, VclStatus};

use crate::admin::metric_definition::{MetricDefinition, Unit, gauge};
use crate::admin::metric_label::LabelDefinition;
use crate::admin::observation::Observation;

const VCL: LabelDefinition = LabelDefinition { name: "vcl", says: "the VCL's name", bound: "the VCLs that are loaded" };
const BACKEND: LabelDefinition =
    LabelDefinition { name: "backend", says: "the backend's name", bound: "the backends of the VCLs that are loaded" };

fn backends(seen: &Observation) -> impl Iterator<Item = (&VclStatus, &BackendStatus)> {
    seen.vcls.iter().flat_map(|vcl| vcl.backends.iter().map(move |backend| (vcl, backend)))
}

pub const ROWS: &[MetricDefinition] = &[
    gauge("larder_vcl_active", Unit::Count, "1 for the VCL that decides, 0 for others that are loaded", |seen, to| {
        seen.vcls.iter().for_each(|vcl| to.of(&[&vcl.name], u8::from(vcl.is_active)))
    })
    .by(&[&VCL]),
    gauge(
        "larder_vcl_under_way",
        Unit::Count,
        "Transactions and fetches that began on a VCL and have not ended",
        |seen, to| seen.vcls.iter().for_each(|vcl| to.of(&[&vcl.name], vcl.under_way)),
    )
    .by(&[&VCL]),
    gauge("larder_backend_healthy", Unit::Count, "1 for a backend that is taken for healthy", |seen, to| {
        for (vcl, backend) in backends(seen) {
            to.of(&[&vcl.name, &backend.origin.name], u8::from(backend.healthy));
        }
    })
    .by(&[&VCL, &BACKEND]),
    gauge("larder_backend_connections", Unit::Count, "Connections to a backend", |seen, to| {
        for (vcl, backend) in backends(seen) {
            to.of(&[&vcl.name, &backend.origin.name], backend.origin.connections);
        }
    })
    .by(&[&VCL, &BACKEND]),
    gauge("larder_backend_probes_good", Unit::Count, "Good ones among the last probes of a backend", |seen, to| {
        for (vcl, backend) in backends(seen) {
            backend.probe.iter().for_each(|probe| to.of(&[&vcl.name, &backend.origin.name], probe.good));
        }
    })
    .by(&[&VCL, &BACKEND]),
];
