//! The keys of `[policy]`, `[compress]` and `[esi]`.

use proxy::settings::{CompressSettings, EsiSettings, PolicySettings};

use crate::config::choices::CODINGS;
use crate::config::definition::ValueKind::{Count, Either, List, Switch, Text, Words};
use crate::config::definition::{KeyDefinition, NETWORK, PATH, SIZE, TIME, V0_1, ValueKind, key};
use crate::config::literal;

const CODING_LIST: ValueKind = List(&Words(|| literal::words(&CODINGS)));

fn policy() -> PolicySettings {
    PolicySettings::default()
}

fn compress() -> CompressSettings {
    CompressSettings::default()
}

pub const BUILTIN: &[KeyDefinition] = &[
    key(V0_1, "purge_from", List(&NETWORK), "Networks that may PURGE. A UNIX socket counts as this machine.")
        .by_default(|| literal::networks(&policy().purge_from)),
    key(
        V0_1,
        "honour_client_cache_control",
        Switch,
        "Obey max-age, no-cache and the like in requests (RFC 9111 §5.2.1).",
    )
    .by_default(|| literal::switch(policy().honour_client_cache_control)),
    key(
        V0_1,
        "share_set_cookie",
        Switch,
        "Send a stored Set-Cookie to everybody, as RFC 9111 permits. false: its first client alone gets it.",
    )
    .by_default(|| literal::switch(policy().share_set_cookie)),
    key(
        V0_1,
        "share_by_max_age",
        Switch,
        "What sets a cookie, or was asked for with credentials, is stored where max-age or Expires says how long. false: only where public, \
         s-maxage or a field for CDNs does.",
    )
    .by_default(|| literal::switch(policy().share_by_max_age)),
    key(
        V0_1,
        "ignore_query",
        List(&Text("a parameter's name, which may end in *")),
        "Query parameters that make no difference: they are taken out of the cache key and of the request to the origin. A * at the end \
         stands for any rest: \"utm_*\".",
    )
    .by_default(|| literal::texts([])),
    key(
        V0_1,
        "ignore_tracking",
        Switch,
        "Parameters and cookies by which campaigns and analytics count visits, such as utm_* and _ga, make no difference with GET and HEAD. \
         docs/routes.md#what-counts-visits",
    )
    .without("true, and false under a VCL")
    .example("false"),
    key(
        V0_1,
        "heuristic_percent",
        Count(0, 100),
        "A response that does not say how long it is fresh, but has Last-Modified: so much of its age counts, up to heuristic_max.",
    )
    .unit("per cent")
    .by_default(|| literal::number(policy().heuristic_percent)),
    key(V0_1, "heuristic_max", TIME, "The longest that heuristic_percent makes of an age.")
        .by_default(|| literal::time(policy().heuristic_max)),
    key(
        V0_1,
        "uncacheable",
        TIME,
        "How long larder remembers that a response could not be stored, so that requests for it do not wait for each other.",
    )
    .by_default(|| literal::time(policy().uncacheable)),
    key(
        V0_1,
        "keep",
        TIME,
        "How long a stale response is kept, to be confirmed by the origin or to stand in for an error.",
    )
    .by_default(|| literal::time(policy().keep)),
];

pub const VCL: &[KeyDefinition] = &[
    key(V0_1, "vcl", PATH, "The VCL that decides. docs/vcl.md").without("the settings above").example("\"site.vcl\""),
    key(V0_1, "vcl_path", List(&PATH), "Folders for what it includes.")
        .without("/etc/varnish and /usr/share/varnish/vcl")
        .example("[\"/etc/varnish\"]"),
    key(
        V0_1,
        "vcl_dir",
        ValueKind::Parameter("folders with colons between them"),
        "The same as vcl_path, in Varnish's older word and form.",
    )
    .without("as vcl_path says")
    .example("\"/etc/varnish:/usr/share/varnish/vcl\""),
];

pub const COMPRESS: &[KeyDefinition] = &[
    key(V0_1, "enabled", Switch, "Send texts in the shortest coding that a client takes.")
        .by_default(|| literal::switch(compress().is_on)),
    key(
        V0_1,
        "types",
        List(&Text("a media type, with * for any rest")),
        "What is worth it, by Content-Type. A * stands for any rest.",
    )
    .by_default(|| literal::texts(compress().types.iter().map(String::as_str))),
    key(V0_1, "size_min", SIZE, "Shorter bodies go out as they are …").by_default(|| literal::size(compress().bytes_min)),
    key(V0_1, "size_max", SIZE, "… and longer ones.").by_default(|| literal::size(compress().bytes_max)),
    key(V0_1, "codings", CODING_LIST, "The codings that answers are made in, the best first.")
        .by_default(|| literal::list(compress().codings.iter().map(|coding| literal::word(coding, &CODINGS)))),
    key(
        V0_1,
        "ask_origins",
        CODING_LIST,
        "The codings that origins are asked for; pages that may have parts ([esi]) are asked for in gzip alone. What comes is stored once, \
         and made into the others.",
    )
    .by_default(|| literal::list(compress().asked_of_origins.iter().map(|coding| literal::word(coding, &CODINGS)))),
    key(
        V0_1,
        "dictionaries",
        Switch,
        "Tell clients over TLS that what is stored is a dictionary, and send who has one what differs from it (RFC 9842).",
    )
    .by_default(|| literal::switch(compress().dictionaries)),
];

pub const ESI: &[KeyDefinition] = &[
    key(
        V0_1,
        "pages",
        Either(&[Switch, Words(|| vec!["surrogate"])]),
        "Which answers of origins are looked through for what is to be included in them. \"surrogate\": those that ask for it by \
         Surrogate-Control: content=\"ESI/1.0\"; origins are told that they may. true: these, and all text and XML. false: none.",
    )
    .by_default(|| literal::switch(false)),
    key(
        V0_1,
        "hosts",
        List(&Text("a name without port, or *.NAME")),
        "Parts are asked of the page's own host, and of these; \"*.example.org\" is every name below. Routes say who answers.",
    )
    .by_default(|| literal::texts(EsiSettings::default().hosts.iter().map(String::as_str))),
    key(
        V0_1,
        "pass",
        List(&Words(|| vec!["cookie", "authorization"])),
        "What of the request for a page the requests for its parts have, on its own host.",
    )
    .by_default(|| literal::list([])),
    key(
        V0_1,
        "variables",
        Switch,
        "<esi:vars>, <esi:choose> and variables such as $(HTTP_COOKIE{id}) in addresses.",
    )
    .by_default(|| literal::switch(EsiSettings::default().has_variables)),
];
