//! Varnish's parameters in `[policy]`: those that set something here. Which effect one has stands in `varnish_parameters.rs`.

use proxy::limits::Limits;
use proxy::settings::VclParameters;

use crate::config::definition::ValueKind::Parameter;
use crate::config::definition::{KeyDefinition, V0_1, ValueKind, key};
use crate::config::literal;

const TIME: ValueKind = Parameter("a time; a number is in seconds");
const COUNT: ValueKind = Parameter("a whole number");
const SIZE: ValueKind = Parameter("a size");
const SWITCH: ValueKind = Parameter("true or false");
const WORDS: ValueKind = Parameter("words with commas between them");

fn vcl() -> VclParameters {
    VclParameters::default()
}

fn limits() -> Limits {
    Limits::default()
}

/// What a VCL alone reads.
pub const OF_VCL: &[KeyDefinition] = &[
    key(V0_1, "default_ttl", TIME, "How long a response is fresh that does not say so.")
        .by_default(|| literal::time(vcl().default_ttl)),
    key(V0_1, "default_grace", TIME, "How long it may be served stale after that.")
        .by_default(|| literal::time(vcl().default_grace)),
    key(V0_1, "default_keep", TIME, "How long it is kept to be confirmed after that.")
        .by_default(|| literal::time(vcl().default_keep)),
    key(
        V0_1,
        "uncacheable_ttl",
        TIME,
        "How long a response that cannot be cached is remembered as such (hit-for-miss of builtin.vcl).",
    )
    .by_default(|| literal::time(vcl().uncacheable_ttl)),
    key(V0_1, "clock_skew", TIME, "How far an origin's clock may be wrong before its Date is not believed.")
        .by_default(|| literal::time(vcl().clock_skew)),
    key(V0_1, "max_restarts", COUNT, "return (restart), at most.").by_default(|| literal::number(vcl().max_restarts)),
    key(V0_1, "max_retries", COUNT, "return (retry), at most.").by_default(|| literal::number(vcl().max_retries)),
    key(V0_1, "http_range_support", SWITCH, "Answer ranges.").by_default(|| literal::switch(vcl().http_range_support)),
    key(V0_1, "http_gzip_support", SWITCH, "Ask for what is stored in gzip, and gunzip it for who does not take that.")
        .by_default(|| literal::switch(vcl().http_gzip_support)),
    key(V0_1, "gzip_level", COUNT, "How small do_gzip makes it, 0 to 9.")
        .by_default(|| literal::number(vcl().gzip_level)),
    key(V0_1, "backend_wait_limit", COUNT, "Requests that may wait for a backend with .max_connections.")
        .by_default(|| literal::number(vcl().backend_wait_limit)),
    key(V0_1, "backend_wait_timeout", TIME, "How long each of these may wait.")
        .by_default(|| literal::time(vcl().backend_wait_timeout)),
    key(V0_1, "vcl_cooldown", TIME, "After so long without use a loaded VCL stops probing its backends.")
        .by_default(|| literal::time(vcl().vcl_cooldown)),
];

/// Other names of keys of `[limits]`, which hold with and without a VCL.
pub const OF_LIMITS: &[KeyDefinition] = &[
    key(V0_1, "timeout_idle", TIME, "limits.idle_timeout and limits.request_head_timeout.")
        .without("as [limits] says")
        .example("\"60s\""),
    key(V0_1, "idle_send_timeout", TIME, "limits.send_timeout.").by_default(|| literal::time(limits().send_timeout)),
    key(V0_1, "connect_timeout", TIME, "limits.connect_timeout.")
        .by_default(|| literal::time(limits().connect_timeout)),
    key(V0_1, "first_byte_timeout", TIME, "limits.first_byte_timeout.")
        .by_default(|| literal::time(limits().first_byte_timeout)),
    key(V0_1, "between_bytes_timeout", TIME, "limits.between_bytes_timeout.")
        .by_default(|| literal::time(limits().between_bytes_timeout)),
    key(V0_1, "backend_idle_timeout", TIME, "limits.origin_idle_timeout.")
        .by_default(|| literal::time(limits().origin_idle_timeout)),
    key(V0_1, "esi_ahead_max", COUNT, "limits.esi_ahead_max.").by_default(|| literal::number(limits().esi_ahead_max)),
    key(V0_1, "max_esi_depth", COUNT, "limits.esi_depth_max.").by_default(|| literal::number(limits().esi_depth_max)),
    key(V0_1, "pipe_timeout", TIME, "limits.tunnel_idle_timeout.")
        .by_default(|| literal::time(limits().tunnel_idle_timeout)),
    key(V0_1, "pipe_sess_max", COUNT, "limits.tunnels_max; 0 leaves it as it is.")
        .by_default(|| literal::number(0_u32)),
    key(V0_1, "http_req_size", SIZE, "limits.request_head_bytes_max.")
        .by_default(|| literal::size(limits().request_head.head_bytes_max as u64)),
    key(V0_1, "http_req_hdr_len", SIZE, "limits.request_field_bytes_max, and two bytes between name and value.")
        .without("as [limits] says")
        .example("\"8KiB\""),
    key(V0_1, "http_resp_size", SIZE, "limits.response_head_bytes_max.")
        .by_default(|| literal::size(limits().response_head.head_bytes_max as u64)),
    key(V0_1, "http_resp_hdr_len", SIZE, "limits.response_field_bytes_max, and two bytes between name and value.")
        .without("as [limits] says")
        .example("\"32KiB\""),
    key(V0_1, "http_max_hdr", COUNT, "limits.request_fields_max and limits.response_fields_max.")
        .without("as [limits] says")
        .example("128"),
    key(V0_1, "feature", WORDS, "\"+http2\": as h2c of every [[listen]].").without("none").example("\"+http2\""),
    key(
        V0_1,
        "debug",
        WORDS,
        "\"+h2_nocheck\": clients may ask for frames of less than 16 KiB, which RFC 9113 forbids. For tests.",
    )
    .without("none")
    .example("\"+h2_nocheck\""),
    key(V0_1, "h2_max_concurrent_streams", COUNT, "limits.http2_streams_max.")
        .by_default(|| literal::number(limits().http2_streams_max)),
];
