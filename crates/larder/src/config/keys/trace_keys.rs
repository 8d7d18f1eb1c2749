//! The keys of `[traces]`.

use proxy::settings::TraceSettings;

use crate::config::definition::ValueKind::{Parameter, Switch};
use crate::config::definition::{KeyDefinition, V0_1, key};
use crate::config::literal;
use crate::plan::Plan;

pub const TRACES: &[KeyDefinition] = &[
    key(
        V0_1,
        "propagate",
        Switch,
        "Hand the trace context of W3C on to origins (traceparent, tracestate), and start it where there is none.",
    )
    .by_default(|| literal::switch(Plan::default().settings.traces.is_some())),
    key(
    V0_1,
    "sample",
    Parameter("a share, 0 to 1"),
    "Which part of the exchanges is told of; the traceparent that origins get says which. Where one of trusted_proxies sends a traceparent, that \
     says it.",
)
.by_default(|| literal::share(TraceSettings::default().sample_millionths, TraceSettings::WHOLE)),
];
