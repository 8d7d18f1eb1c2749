//! Every section of larder.toml and its keys, in the order in which the sample and the page tell of them.
//!
//! A key is defined once, by a row in the file that its section names here. Readers ask for it by its name; the tests of `config` say
//! which row is missing, which is read by nobody, and which has another type than its reader.

mod fleet_keys;
mod forward_keys;
mod listen_keys;
mod memcached_keys;
mod origin_keys;
mod parameter_keys;
mod policy_keys;
mod process_keys;
mod route_keys;
mod route_word_keys;
mod shared_keys;
mod store_keys;
mod trace_keys;

use super::definition::{KeyDefinition, KeyGroup, SectionDefinition};
use super::limits_section;

/// A section of this path, `[[path]]` if it is a list.
const fn section(
    path: &'static str,
    is_list: bool,
    file: &'static str,
    groups: &'static [KeyGroup],
) -> SectionDefinition {
    SectionDefinition { path, is_list, is_one_of_groups: false, file, groups }
}

const fn group(intro: &'static str, keys: &'static [KeyDefinition]) -> KeyGroup {
    KeyGroup::new(intro, keys)
}

pub const SECTIONS: &[SectionDefinition] = &[
    section("", false, "listen_keys.rs", &[group("", listen_keys::TOP)]),
    section(
        "process",
        false,
        "process_keys.rs",
        &[group("--- The process. docs/running.md", process_keys::PROCESS)],
    ),
    section(
        "listen",
        true,
        "listen_keys.rs",
        &[group(
            "--- Where larder listens. One [[listen]] for each address; --listen and --forward replace them all.",
            listen_keys::LISTEN,
        )],
    ),
    section(
        "listen.tls",
        false,
        "listen_keys.rs",
        &[group("TLS, for https://, of the [[listen]] above. docs/tls.md", listen_keys::LISTEN_TLS)],
    ),
    section(
        "acme",
        false,
        "listen_keys.rs",
        &[group(
            "--- The authority from which certificates are ordered, and renewed in time, for `acme` of each [listen.tls]. docs/tls.md",
            listen_keys::ACME,
        )],
    ),
    section(
        "origin.NAME",
        false,
        "origin_keys.rs",
        &[group(
            "--- The web servers behind larder: one [origin.NAME] for each; any name will do.",
            origin_keys::ORIGIN,
        ), group(
            "An application that speaks FastCGI, such as php-fpm. A [[route]] with its name as `origin` beside a `root` is a PHP site. docs/php.md",
            origin_keys::FASTCGI,
        ).beside("fastcgi").shown_at("php")],
    ),
    section("origin.NAME.probe", false, "origin_keys.rs", &[group("", origin_keys::ORIGIN_PROBE)]),
    section("origin.NAME.timeouts", false, "origin_keys.rs", &[group("", origin_keys::ORIGIN_TIMEOUTS)]),
    section("origin.NAME.tls", false, "origin_keys.rs", &[group("", origin_keys::ORIGIN_TLS)]),
    SectionDefinition { is_one_of_groups: true, ..section("route", true, "route_keys.rs", ROUTE_GROUPS) },
    section("route.cookies", false, "route_word_keys.rs", &[group("", route_word_keys::COOKIES)]),
    section("route.query", false, "route_word_keys.rs", &[group("", route_word_keys::QUERY)]),
    section("route.request_headers", false, "route_word_keys.rs", &[group("", route_word_keys::REQUEST_HEADERS)]),
    section("route.response_headers", false, "route_word_keys.rs", &[group("", route_word_keys::RESPONSE_HEADERS)]),
    section("route.cors", false, "route_word_keys.rs", &[group("", route_word_keys::CORS)]),
    section("route.basic_auth", false, "route_word_keys.rs", &[group("", route_word_keys::BASIC_AUTH)]),
    section("route.auth_request", false, "route_word_keys.rs", &[group("", route_word_keys::AUTH_REQUEST)]),
    section("route.rate_limit", false, "route_word_keys.rs", &[group("", route_word_keys::RATE_LIMIT)]),
    section("route.connection_limit", false, "route_word_keys.rs", &[group("", route_word_keys::CONNECTION_LIMIT)]),
    section("route.bandwidth", false, "route_word_keys.rs", &[group("", route_word_keys::BANDWIDTH)]),
    section("route.mirror", false, "route_word_keys.rs", &[group("", route_word_keys::MIRROR)]),
    section("route.timeouts", false, "route_word_keys.rs", &[group("", route_word_keys::ROUTE_TIMEOUTS)]),
    section("route.redirect", false, "route_word_keys.rs", &[group("", route_word_keys::REDIRECT)]),
    section("route.respond", false, "route_word_keys.rs", &[group("", route_word_keys::RESPOND)]),
    section("route.maintenance", false, "route_word_keys.rs", &[group("", route_word_keys::MAINTENANCE)]),
    section("memory", false, "store_keys.rs", &[group("--- Memory. docs/memory.md", store_keys::MEMORY)]),
    section(
        "disk",
        true,
        "store_keys.rs",
        &[group(
            "--- Disks: what is stored there outlives a restart. One [[disk]] for each; they share what is stored. docs/disk.md",
            store_keys::DISK,
        )],
    ),
    section(
        "store",
        false,
        "store_keys.rs",
        &[group("What of it is written to disks, and how it is read.", store_keys::STORE)],
    ),
    section("policy", false, "policy_keys.rs", POLICY_GROUPS),
    section(
        "compress",
        false,
        "policy_keys.rs",
        &[group(
            "--- Content codings. Where a VCL decides it says by itself what is compressed (beresp.do_gzip). docs/compression.md",
            policy_keys::COMPRESS,
        )],
    ),
    section(
        "esi",
        false,
        "policy_keys.rs",
        &[group("--- Pages with parts (ESI), where no VCL decides. docs/esi.md", policy_keys::ESI)],
    ),
    section(
        "limits",
        false,
        "../limits_section.rs",
        &[group("--- Bounds. A message that says \"limits.NAME\" means a key from here.", limits_section::KEYS)],
    ),
    section(
        "forward",
        false,
        "forward_keys.rs",
        &[group(
            "--- The forward proxy of listeners with mode = \"forward\". docs/forward.md A destination is \"example.org\", \
             \".example.org\" (and all below), \"10.0.0.0/8\" or \":8443\"; each with \":PORT\" behind it if you like.",
            forward_keys::FORWARD,
        )],
    ),
    section(
        "forward.parent",
        true,
        "forward_keys.rs",
        &[group(
            "A proxy that is asked in place of the destinations. Without any, these are asked.",
            forward_keys::PARENT,
        )],
    ),
    section(
        "fleet",
        false,
        "fleet_keys.rs",
        &[
            group("--- Several nodes that serve one site. docs/fleet.md What they tell one another:", fleet_keys::FLEET_LOG),
            group("And which of them is asked before an origin.", fleet_keys::FLEET),
        ],
    ),
    section("fleet.probe", false, "origin_keys.rs", &[group("", origin_keys::ORIGIN_PROBE)]),
    section("fleet.timeouts", false, "origin_keys.rs", &[group("", origin_keys::ORIGIN_TIMEOUTS)]),
    section("fleet.tls", false, "origin_keys.rs", &[group("", origin_keys::ORIGIN_TLS)]),
    section(
        "shared",
        false,
        "shared_keys.rs",
        &[group(
            "--- What the nodes of a fleet keep for one another, beneath memory and disks. docs/fleet.md",
            shared_keys::SHARED,
        )],
    ),
    section("log", false, "store_keys.rs", &[group("--- The access log. docs/access-log.md", store_keys::LOG)]),
    section(
        "traces",
        false,
        "trace_keys.rs",
        &[group(
            "--- Traces. docs/traces.md",
            trace_keys::TRACES,
        )],
    ),
    section(
        "admin",
        false,
        "store_keys.rs",
        &[group("--- Metrics, status, dashboard and commands.", store_keys::ADMIN)],
    ),
    section(
        "resolver",
        false,
        "origin_keys.rs",
        &[group("--- Names of origins and destinations.", origin_keys::RESOLVER)],
    ),
];

const ROUTE_GROUPS: &[KeyGroup] = &[
    group(
        "--- Who answers which request: one [[route]] for each. The most specific host counts, then the longest path. Without any \
         [[route]] the only origin answers everything. A route has one answerer: origin, root, memcached, stub_status, redirect, respond or closed; root and an origin that speaks FastCGI are one. docs/routes.md\n\
         An origin answers, and what it answers may be stored.",
        route_keys::ROUTE,
    ),
    group(
        "What a route may ask of a request beside host and path, what it answers by itself, and which path its origin is asked for.",
        route_word_keys::CONDITIONS,
    )
    .shown_at("/new"),
    group(
        "What else may be said of it. [policy] takes these keys, too, for all routes; what a route says stands in place of that, but for fields, which come together.",
        route_word_keys::WORDS,
    )
    .shown_at("/shop"),
    group("The files of a directory answer. docs/static.md", route_keys::ROOT).beside("root"),
    group("Requests become commands to memcached. docs/memcached.md", memcached_keys::MEMCACHED)
        .beside("memcached")
        .shown_at("/sessions"),
    group("larder's counters answer.", route_keys::STATUS_PAGE).beside("stub_status").shown_at("/nginx_status"),
    group("Nobody answers.", route_keys::CLOSED).beside("closed").shown_at("/private"),
];

const POLICY_GROUPS: &[KeyGroup] = &[
    group("--- What is cached, for how long, and for whom. docs/what-is-cached.md", policy_keys::BUILTIN),
    group("A VCL decides in place of all that.", policy_keys::VCL),
    group(
        "Parameters by Varnish's names, as behind -p; only a VCL reads them. A number without a unit is in seconds.",
        parameter_keys::OF_VCL,
    ).beside("vcl"),
    group(
        "Varnish's names for keys of [limits]; they hold with and without a VCL, and [limits] wins. Varnish's other parameters are \
         accepted, change nothing, and a warning says why.",
        parameter_keys::OF_LIMITS,
    ).aliases(),
];

/// The section of a path.
pub fn at(path: &str) -> Option<&'static SectionDefinition> {
    SECTIONS.iter().find(|section| section.path == path)
}

/// Is it a key that [policy] takes for all routes, and a [[route]] for one?
pub fn is_word_of_routes(key: &str) -> bool {
    route_word_keys::WORDS.iter().any(|definition| definition.name == key)
}
