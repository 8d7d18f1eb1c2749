//! The keys of `[[route]]` that say more than who answers, and of `[policy]`, where they hold for all routes. docs/routes.md tells in which order.

use crate::config::definition::ValueKind::{Count, Either, List, Map, Parameter, Switch, Table, Text, Time, Words};
use crate::config::definition::{COUNT, KeyDefinition, NETWORK, PATH, SIZE, TIME, V0_1, ValueKind, key};
use crate::config::{literal, presets, route_service};

const NAMES: ValueKind = List(&Text("a name, in which a * stands for any text"));
const VALUE: ValueKind = Text("a value, with $variables if need be");
const VALUES: ValueKind = Map("the name of a field", &VALUE);
const FIELD_NAMES: ValueKind = List(&Text("the name of a field, in which a * stands for any text"));
const URL: ValueKind = Text("a URL or a path, with $variables if need be");
const STATUS: ValueKind = Count(200, 599);

/// What a route may ask of a request beside host and path.
pub const CONDITIONS: &[KeyDefinition] = &[
    key(
        V0_1,
        "path_pattern",
        List(&Text("a PCRE2 pattern")),
        "Patterns in place of `path`. The first in the file that fits comes before all paths.",
    )
    .without("`path` says it")
    .example("['^/blog/(\\d+)/']"),
    key(V0_1, "method", List(&Text("a method, as it is sent")), "Methods that it is for.")
        .without("all")
        .example("[\"POST\", \"PUT\"]"),
    key(
        V0_1,
        "header",
        Map(
            "the name of a field",
            &Either(&[
                Switch,
                List(&Text("a value, in which a * stands for any text; (?i) in front for letters of either case; ~ in front of a PCRE2 pattern; ! for any other value")),
            ]),
        ),
        "What a request's fields must be: true for any value, false for a field that is missing or empty. Of several values each must hold; without the field none does, no ! either.",
    )
    .without("none")
    .example("{ X-Beta = \"yes*\" }")
    .secret_by_name(),
    key(
        V0_1,
        "preset",
        Words(|| presets::names().collect()),
        "The words that sites of a kind need; what else is said here comes over them. docs/routes.md#presets",
    )
    .without("none")
    .example("\"wordpress\""),
    key(
        V0_1,
        "redirect",
        Either(&[URL, Table]),
        "Send clients elsewhere, for good (301) if nothing else is said. It answers in place of an origin.",
    )
    .without("somebody else answers")
    .example("{ to = \"https://www.example.org$request_uri\", status = 308 }"),
    key(V0_1, "respond", Either(&[Text("a text"), Table]), "Answer with a text, in place of an origin.")
        .without("somebody else answers")
        .example("{ status = 410, body = \"It is gone.\", type = \"text/plain\" }"),
    key(
        V0_1,
        "strip_prefix",
        Text("a path that begins with /"),
        "The beginning of the path that an origin is not asked for.",
    )
    .without("it is asked for the whole path")
    .example("\"/api\""),
    key(
        V0_1,
        "rewrite",
        Text("a path, with $variables if need be"),
        "The path that an origin is asked for; $1 to $9 are groups of `path_pattern`.",
    )
    .without("it is asked for the client's")
    .example("\"/posts/$1\""),
];

/// What may be said of one route or of all.
pub const WORDS: &[KeyDefinition] = &[
    key(V0_1, "ttl", Either(&[TIME, Map("a status, 2xx to 5xx, or default", &TIME)]),
        "How long responses are fresh that do not say so, for 200, 203, 300, 301 and 308, or by status.")
        .without("only what says how long, or has Last-Modified, is fresh")
        .example("{ 200 = \"10m\", 404 = \"1m\", 5xx = \"1s\" }"),
    key(V0_1, "stale_while_revalidate", TIME, "How long a stale response is served while it is fetched anew, where it does not say so (RFC 5861).")
        .without("not at all")
        .example("\"1m\""),
    key(V0_1, "stale_if_error", TIME, "The same in place of an error of the origin's.").without("within [policy] keep, if the response does not forbid it").example("\"1d\""),
    key(V0_1, "cache", Either(&[Switch, Words(|| vec!["origin", "force"])]),
        "Store what the origin allows (true, \"origin\"), nothing (false), or everything for `ttl`, whatever the origin says (\"force\").")
        .by_default(|| literal::switch(true)),
    key(V0_1, "ignore_origin", List(&Text("\"Cache-Control\" or \"Set-Cookie\"")), "Fields of the origin's that say nothing of storing: \"Cache-Control\" (and Expires), \"Set-Cookie\" (stored without it).")
        .by_default(|| literal::texts([])),
    key(V0_1, "cookies", Either(&[Words(|| vec!["strip"]), Table]), "Which cookies make a difference, with GET and HEAD; \"strip\": none.")
        .without("all do")
        .example("{ bypass = [\"session\"], strip = [\"theme\"], keep = [\"lang\"] }"),
    key(V0_1, "query", Either(&[Words(|| vec!["ignore"]), Table]), "Which parameters make a difference; \"ignore\": none.")
        .without("all do")
        .example("{ bypass = [\"preview\"], ignore = [\"ref\"], keep = [\"q\", \"page\"], sort = true }"),
    key(V0_1, "vary_by", List(&Text("\"device\", or \"header:NAME\"")), "A response for each value of a field, or for each kind of device.")
        .by_default(|| literal::texts([])),
    key(V0_1, "request_headers", Table, "Fields of requests, before anybody else sees them.")
        .without("they stay as they are")
        .example("{ set = { X-Site = \"$host\" }, add = { X-Way = \"here\" }, remove = [\"X-Debug-*\"] }"),
    key(V0_1, "response_headers", Table, "Fields of answers, whoever answers.")
        .without("they stay as they are")
        .example("{ set = { Cache-Control = \"no-cache\" }, add = { Link = \"</a.css>; rel=preload\" }, default = { X-Robots-Tag = \"none\" }, remove = [\"Server\"], on_success = [\"Cache-Control\"] }"),
    key(V0_1, "security_headers", Switch, "Say X-Content-Type-Options, X-Frame-Options and Referrer-Policy, where an answer does not. false: none, whatever [policy] says.")
        .by_default(|| literal::switch(false)),
    key(V0_1, "cors", Either(&[Switch, Text("a site, as SCHEME://HOST"), Table]), "Let scripts of other sites read answers.")
        .without("as the origin says")
        .example("{ origins = [\"https://app.example\"], methods = [\"GET\", \"PUT\"], headers = [\"X-Token\"], expose = [\"X-Count\"], credentials = true, max_age = \"10m\" }"),
    key(V0_1, "request_id", Either(&[Switch, Text("the name of a field")]), "Give each request a number: true for X-Request-Id, or another name. One from trusted_proxies stays. false: none, whatever [policy] says.")
        .by_default(|| literal::switch(false)),
    key(V0_1, "allow", List(&NETWORK), "Networks whose clients are answered; others get 403.").without("everybody is").example("[\"192.0.2.0/24\"]"),
    key(V0_1, "deny", List(&NETWORK), "Networks whose clients get 403, whoever is allowed.").by_default(|| literal::texts([])),
    key(V0_1, "basic_auth", Either(&[Switch, PATH, Table]), "A file of users, as `htpasswd -B` makes it, who must show name and password; false: none.")
        .without("nobody must")
        .example("{ file = \"users\", realm = \"test site\" }"),
    key(V0_1, "auth_request", Either(&[Switch, Table]), "A service that is asked of each request whether it may come in; false: none. docs/routes.md")
        .without("nobody is asked")
        .example("{ origin = \"site\", path = \"/verify\", copy = [\"X-User\"], user = \"X-User\", login = \"/login?back=$request_uri\", timeout = \"2s\", cache = \"10s\" }"),
    key(V0_1, "rate_limit", List(&Either(&[Text("REQUESTS/UNIT, such as \"10/s\" or \"100/m\""), Table])), "How often a client may ask; then 429. docs/routes.md")
        .without("as often as it likes")
        .example("{ requests = 100, per = \"1m\", burst = 20, key = \"$http_x_api_key\", status = 429 }"),
    key(V0_1, "connection_limit", List(&Either(&[Switch, Count(1, u32::MAX as u64), Table])), "How many requests of a client, or of all, may be under way at a time; then 429. false: any number. docs/routes.md")
        .without("any number")
        .example("[10, { requests = 200, by = \"route\", status = 503 }, { requests = 2, key = \"$http_x_api_key\" }]"),
    key(V0_1, "bandwidth", Either(&[Switch, Text("SIZE/s"), Table]), "How fast each answer goes to its client, at most. false: as fast as it goes.")
        .without("as fast as it goes")
        .example("{ rate = \"1MiB/s\", after = \"10MiB\" }"),
    key(V0_1, "timeouts", Table, "How long its origin is waited for, in place of what the origin and [limits] say.")
        .without("as the origin says")
        .example("{ connect = \"2s\", first_byte = \"30s\", between_bytes = \"10s\", whole = \"5m\" }"),
    key(V0_1, "mirror", Either(&[Switch, Text("the NAME of an [origin.NAME]"), Table]), "Copies of what its origin is asked for another one, whose answers are thrown away. false: none. docs/routes.md")
        .without("none")
        .example("{ origin = \"site\", share = 0.1 }"),
    key(V0_1, "request_body_max", SIZE, "A larger body of a request is refused (413), and one that does not say its length (411).")
        .without("limits.request_body_bytes_max holds")
        .example("\"10MiB\""),
    key(V0_1, "maintenance", Either(&[Switch, Table]), "503 for everybody, or for all but some networks. false: the site is open, whatever [policy] says.")
        .without("the site is open")
        .example("{ body = \"Back at noon.\", type = \"text/plain\", retry_after = \"1h\", allow = [\"192.0.2.0/24\"] }"),
];

pub const COOKIES: &[KeyDefinition] = &[
    key(V0_1, "bypass", NAMES, "A request with one of these goes past the store, and nothing of it is kept.")
        .by_default(|| literal::texts([])),
    key(V0_1, "strip", NAMES, "These are taken out.").by_default(|| literal::texts([])),
    key(V0_1, "keep", NAMES, "All others are taken out, and a response is for who has the same of these.")
        .without("others stay")
        .example("[\"lang\"]"),
];

pub const QUERY: &[KeyDefinition] = &[
    key(V0_1, "bypass", NAMES, "A request with one of these goes past the store.").by_default(|| literal::texts([])),
    key(V0_1, "ignore", NAMES, "These make no difference.").by_default(|| literal::texts([])),
    key(V0_1, "keep", NAMES, "No others make one.").without("all do").example("[\"q\"]"),
    key(V0_1, "sort", Switch, "Nor does their order.").by_default(|| literal::switch(false)),
];

pub const REQUEST_HEADERS: &[KeyDefinition] = &[
    key(V0_1, "set", VALUES, "These come in place of any of the same name; an empty value takes it out.")
        .without("none")
        .example("{ X-Site = \"$host\" }")
        .secret_by_name(),
    key(V0_1, "add", VALUES, "These come beside them.")
        .without("none")
        .example("{ X-Way = \"here\" }")
        .secret_by_name(),
    key(V0_1, "remove", FIELD_NAMES, "These go.").by_default(|| literal::texts([])),
];

pub const RESPONSE_HEADERS: &[KeyDefinition] = &[
    key(V0_1, "set", VALUES, "These come in place of any of the same name.")
        .without("none")
        .example("{ Cache-Control = \"no-cache\" }"),
    key(V0_1, "add", VALUES, "These come beside them.").without("none").example("{ Link = \"</a.css>; rel=preload\" }"),
    key(V0_1, "default", VALUES, "These come where there is none.")
        .without("none")
        .example("{ X-Robots-Tag = \"none\" }"),
    key(V0_1, "remove", FIELD_NAMES, "These go.").by_default(|| literal::texts([])),
    key(
        V0_1,
        "on_success",
        List(&Text("the name of a field")),
        "Of set, add and default these are said on no error: on the statuses 200, 201, 204, 206, 301 to 304, 307 and 308 alone. An error keeps what its origin said.",
    )
    .by_default(|| literal::texts([]))
    .example("[\"Cache-Control\"]"),
];

pub const CORS: &[KeyDefinition] = &[
    key(
        V0_1,
        "origins",
        List(&Text("a site, as SCHEME://HOST, in which a * stands for letters, digits, dashes and dots")),
        "Sites whose scripts may read answers.",
    )
    .without("all, but none with cookies")
    .example("[\"https://app.example\"]"),
    key(V0_1, "methods", List(&Text("a method")), "What they may ask by.")
        .without("GET, HEAD, POST, PUT, PATCH and DELETE")
        .example("[\"GET\"]"),
    key(V0_1, "headers", List(&Text("the name of a field")), "Fields that they may send.")
        .without("those that they ask for")
        .example("[\"X-Token\"]"),
    key(V0_1, "expose", List(&Text("the name of a field")), "Fields of answers that they may read.")
        .without("the few that are safe")
        .example("[\"X-Count\"]"),
    key(V0_1, "credentials", Switch, "With the cookies of who reads.").by_default(|| literal::switch(false)),
    key(V0_1, "max_age", TIME, "How long a browser may remember it.")
        .without("as the browser likes")
        .example("\"10m\""),
];

pub const BASIC_AUTH: &[KeyDefinition] = &[
    key(V0_1, "file", PATH, "The file of users.").required("\"users\""),
    key(V0_1, "realm", Text("printable characters without quotes"), "What they are told that they are asked for.")
        .by_default(|| literal::text("larder")),
];

pub const AUTH_REQUEST: &[KeyDefinition] = &[
    key(V0_1, "origin", Text("the NAME of an [origin.NAME]"), "Where the service is.").required("\"site\""),
    key(V0_1, "path", Text("a path that begins with /"), "What it is asked for, by GET.")
        .by_default(|| literal::text(route_service::TARGET)),
    key(
        V0_1,
        "copy",
        List(&Text("the name of a field")),
        "Fields of its answer that go on with the request, in place of the client's. Unless `vary_by` has them all, what is answered then is its client's alone.",
    )
    .by_default(|| literal::texts([])),
    key(V0_1, "user", Text("one of `copy`"), "Which of these is the user's name, for the access log.")
        .without("the log has no name")
        .example("\"X-User\""),
    key(
        V0_1,
        "login",
        URL,
        "Where clients are led (302) of whom it says 401. A variable behind a `?` is written so that the page reads it whole.",
    )
    .without("they are told the 401")
    .example("\"/login?back=$request_uri\""),
    key(V0_1, "timeout", Time(true), "From the question to the answer.")
        .by_default(|| literal::time(route_service::TIMEOUT)),
    key(
        V0_1,
        "cache",
        TIME,
        "For so long nobody is asked again about a client with the same credentials, whatever it asks for on the host; 1h at most.",
    )
    .without("each request is asked about")
    .example("\"10s\""),
];

pub const CONNECTION_LIMIT: &[KeyDefinition] = &[
    key(V0_1, "requests", Count(1, u32::MAX as u64), "So many at a time.").required("10"),
    key(V0_1, "by", Words(|| vec!["client", "route"]), "Whose are counted together: one client's (its address, or its network where that is of IPv6), or all of the route.")
        .by_default(|| literal::text("client")),
    key(V0_1, "key", VALUE, "The same by something else. A request for which it is empty is not counted.")
        .without("`by` says it")
        .example("\"$http_x_api_key\""),
    key(V0_1, "status", Count(400, 599), "What the refusal is.").by_default(|| "429".to_owned()),
];

pub const BANDWIDTH: &[KeyDefinition] = &[
    key(V0_1, "rate", Text("SIZE/s"), "So many bytes a second.").required("\"1MiB/s\""),
    key(V0_1, "after", SIZE, "So much of each answer goes first, as fast as it goes.")
        .by_default(|| literal::size(0_u64)),
];

pub const MIRROR: &[KeyDefinition] = &[
    key(V0_1, "origin", Text("the NAME of an [origin.NAME]"), "Where the copies go.").required("\"site\""),
    key(V0_1, "share", Parameter("a share, above 0 and up to 1"), "Which part of the requests is copied.")
        .by_default(|| "1.0".to_owned()),
];

pub const ROUTE_TIMEOUTS: &[KeyDefinition] = &[
    key(V0_1, "connect", Time(true), "Until a connection is open.").without("as the origin says").example("\"2s\""),
    key(V0_1, "first_byte", Time(true), "From the request's last byte to the answer's first.")
        .without("as the origin says")
        .example("\"30s\""),
    key(V0_1, "between_bytes", Time(true), "Between two reads of the answer.")
        .without("as the origin says")
        .example("\"10s\""),
    key(
        V0_1,
        "whole",
        Time(true),
        "From the beginning to the answer's last byte. Of what is not stored it counts how slowly the client takes it, too.",
    )
    .without("as long as the others let it")
    .example("\"5m\""),
];

pub const RATE_LIMIT: &[KeyDefinition] = &[
    key(V0_1, "requests", Count(1, u64::MAX), "So many requests …").required("10"),
    key(V0_1, "per", Time(true), "… in this time.").by_default(|| "\"1s\"".to_owned()),
    key(V0_1, "burst", COUNT, "So many may come at once, after a rest.")
        .without("as many as in the time, or in a second where that is shorter")
        .example("20"),
    key(V0_1, "key", VALUE, "Whom it counts. A request for which it is empty is not counted.")
        .without("the client's address, or its network where that is of IPv6")
        .example("\"$http_x_api_key\""),
    key(V0_1, "status", Count(400, 599), "What the refusal is.").by_default(|| "429".to_owned()),
];

pub const REDIRECT: &[KeyDefinition] = &[
    key(V0_1, "to", URL, "Where they are sent.").required("\"https://www.example.org$request_uri\""),
    key(V0_1, "status", Count(301, 308), "301, 302, 303, 307 or 308.").by_default(|| "301".to_owned()),
];

pub const RESPOND: &[KeyDefinition] = &[
    key(V0_1, "status", STATUS, "The status.").by_default(|| "200".to_owned()),
    key(V0_1, "body", Text("a text, with $variables if need be"), "What is said.")
        .without("nothing")
        .example("\"It is gone.\""),
    key(V0_1, "type", Text("TYPE/SUBTYPE"), "The Content-Type of that.")
        .by_default(|| literal::text("text/plain; charset=utf-8")),
];

pub const MAINTENANCE: &[KeyDefinition] = &[
    key(V0_1, "body", Text("a text, with $variables if need be"), "What is said.")
        .without("a sentence")
        .example("\"Back at noon.\""),
    key(V0_1, "type", Text("TYPE/SUBTYPE"), "The Content-Type of that.")
        .by_default(|| literal::text("text/plain; charset=utf-8")),
    key(V0_1, "retry_after", TIME, "When it may be worth while to come again.")
        .without("that is not said")
        .example("\"1h\""),
    key(V0_1, "allow", List(&NETWORK), "Networks whose clients see the site.").by_default(|| literal::texts([])),
];
