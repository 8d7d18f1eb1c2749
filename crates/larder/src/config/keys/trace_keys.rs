//! The keys of `[traces]`.

use proxy::settings::TraceSettings;

use crate::config::definition::ValueKind::{Either, Map, Parameter, Switch, Text, Words};
use crate::config::definition::{KeyDefinition, TIME, V0_1, key};
use crate::config::literal;
use crate::plan::Plan;

pub const TRACES: &[KeyDefinition] = &[
    key(
        V0_1,
        "propagate",
        Switch,
        "Hand the trace context of W3C on to origins (traceparent, tracestate), and start it where there is none. An endpoint has that done, too.",
    )
    .by_default(|| literal::switch(Plan::default().settings.traces.is_some())),
    key(
        V0_1,
        "endpoint",
        Text("http://HOST:PORT"),
        "The collector that gets a span for each exchange that is told of, and for each time that an origin was asked for it (OTLP over HTTP).",
    )
    .without("no spans are made")
    .example("\"http://127.0.0.1:4318\""),
    key(
        V0_1,
        "sample",
        Parameter("a share, 0 to 1"),
        "Which part of the exchanges is told of; the traceparent that origins get says which. Where one of trusted_proxies sends a traceparent, \
         that says it.",
    )
    .by_default(|| literal::share(TraceSettings::default().sample_millionths, TraceSettings::WHOLE)),
    key(V0_1, "errors", Switch, "Those are told of, too, that end with a status from 500 on, or are cut.")
        .by_default(|| literal::switch(TraceSettings::default().errors)),
    key(V0_1, "slow", TIME, "And those that take so long, to the last byte of the answer.")
        .without("none is slow")
        .example("\"1s\""),
    key(
        V0_1,
        "logs",
        Either(&[Switch, Words(|| vec!["errors"])]),
        "Send a log record, too, for each exchange that is told of. \"errors\": for those that end with a status from 500 on, or are cut.",
    )
    .by_default(|| literal::switch(false)),
    key(
        V0_1,
        "headers",
        Map("the name of a field", &Text("its value")),
        "Sent to the collector with each request, such as a token.",
    )
    .without("none")
    .example("{ Authorization = \"Bearer 0123456789abcdef\" }")
    .secret(),
    key(V0_1, "service_name", Text("any text"), "What the collector calls larder.")
        .without("server_name")
        .example("\"larder\""),
];
