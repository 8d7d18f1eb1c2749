//! The words of a `[[route]]` beside who answers it, which `[policy]` takes for all routes; and the conditions of a route.

use crate::config::definition::ValueKind::{Count, Either, List, Map, Record, Switch, Text, Words};
use crate::config::definition::{KeyDefinition, NETWORK, PATH, SIZE, TIME, V0_1, ValueKind, key};
use crate::config::presets;

const TEMPLATE: ValueKind = Text("a text, with variables such as $host if need be");
const NAMES: ValueKind = List(&Text("a name, in which a * stands for any text"));
const FIELD_VALUES: ValueKind = Map("the name of a field", &TEMPLATE);

/// Which requests a route is for, beside host and path.
pub const CONDITIONS: &[KeyDefinition] = &[
    key(
        V0_1,
        "path_pattern",
        List(&Text("a PCRE2 pattern")),
        "In place of `path`: the first route of a host whose pattern fits comes before all beginnings of paths. docs/routes.md",
    )
    .without("`path` counts")
    .example("['\\.(?:png|jpe?g)$']"),
    key(V0_1, "method", List(&Text("a method as it is sent, such as GET")), "Only requests with one of these methods.")
        .without("any")
        .example("[\"GET\", \"HEAD\"]"),
    key(
        V0_1,
        "header",
        Map("the name of a field", &Either(&[Switch, Text("a value, in which a * stands for any text")])),
        "Only requests with these fields; true stands for any value.",
    )
    .without("any")
    .example("{ X-Beta = \"yes\" }"),
    key(
        V0_1,
        "preset",
        Words(presets::names),
        "The words that sites of a kind need, for a whole host. What the route says itself comes over it. docs/routes.md#presets",
    )
    .without("none")
    .example("\"wordpress\""),
];

/// How long, for whom, and of what: storing.
pub const STORING: &[KeyDefinition] = &[
    key(
        V0_1,
        "ttl",
        Either(&[TIME, Map("a status, a class such as 5xx, or default", &TIME)]),
        "How long responses are fresh that do not say so; by status, if need be. docs/routes.md",
    )
    .without("as the origin says")
    .example("{ 200 = \"1h\", 404 = \"1m\", 5xx = \"1s\", default = \"5m\" }"),
    key(
        V0_1,
        "stale_while_revalidate",
        TIME,
        "How long a stale response is served while it is fetched anew, where it does not say so (RFC 5861).",
    )
    .without("as the origin says")
    .example("\"1m\""),
    key(
        V0_1,
        "stale_if_error",
        TIME,
        "How long a stale response is served in place of an error, where it does not say so (RFC 5861).",
    )
    .without("as the origin says")
    .example("\"1d\""),
    key(
        V0_1,
        "cache",
        Either(&[Switch, Words(|| vec!["origin", "force"])]),
        "\"origin\" or true: as the origin says. false: nothing is stored. \"force\": whatever the origin says counts for nothing, and `ttl` \
         does.",
    )
    .without("\"origin\"")
    .example("false"),
    key(
        V0_1,
        "ignore_origin",
        List(&Words(|| vec!["Cache-Control", "Set-Cookie"])),
        "What of the origin's words does not count: \"Cache-Control\" with Expires and its kin, \"Set-Cookie\": stored without it.",
    )
    .without("nothing is ignored")
    .example("[\"Set-Cookie\"]"),
    key(
        V0_1,
        "vary_by",
        List(&Text("\"device\", or a field as \"header:Accept-Language\"")),
        "There is a response for each value of these.",
    )
    .without("as Vary says")
    .example("[\"device\"]"),
    key(
        V0_1,
        "cookies",
        Either(&[Words(|| vec!["strip"]), Record(COOKIES)]),
        "Which cookies matter; \"strip\" takes all out of requests. docs/routes.md",
    )
    .without("all reach the origin, and what is answered then is one client's")
    .example("{ bypass = [\"session\"], strip = [\"_ga*\"], keep = [\"lang\"] }"),
    key(
        V0_1,
        "query",
        Either(&[Words(|| vec!["ignore"]), Record(QUERY)]),
        "Which parameters matter; \"ignore\" takes the whole query out of requests. docs/routes.md",
    )
    .without("all of them, in their order")
    .example("{ ignore = [\"from\"], keep = [\"page\"], sort = true }"),
];

const COOKIES: &[KeyDefinition] = &[
    key(V0_1, "bypass", NAMES, "A request with one of these goes past the store, and nothing of it is kept."),
    key(V0_1, "strip", NAMES, "These are taken out."),
    key(
        V0_1,
        "keep",
        NAMES,
        "All others are taken out, and there is a response for each value of those that are left.",
    ),
];

const QUERY: &[KeyDefinition] = &[
    key(V0_1, "ignore", NAMES, "These parameters are taken out."),
    key(V0_1, "keep", NAMES, "All others are taken out."),
    key(V0_1, "sort", Switch, "Parameters are sorted by their names."),
];

/// Who may ask, how often and how much.
pub const ACCESS: &[KeyDefinition] = &[
    key(V0_1, "allow", List(&NETWORK), "Networks whose clients are answered; others get 403.")
        .without("all")
        .example("[\"192.0.2.0/24\"]"),
    key(V0_1, "deny", List(&NETWORK), "Networks whose clients get 403, whoever is allowed.")
        .without("none")
        .example("[\"198.51.100.0/24\"]"),
    key(
        V0_1,
        "basic_auth",
        Either(&[Switch, PATH, Record(LOGIN)]),
        "A file of users, as `htpasswd -B` makes it: others get 401. false: none, whatever [policy] says.",
    )
    .without("everybody may ask")
    .example("{ file = \"users\", realm = \"staff\" }"),
    key(
        V0_1,
        "rate_limit",
        List(&Either(&[Text("such as \"10/s\", \"100/m\" or \"1000/h\""), Record(RATE)])),
        "How often one client may ask; who asks more is told 429, and when to come again. docs/routes.md",
    )
    .without("as often as it likes")
    .example("[{ requests = 10, per = \"1s\", burst = 20, key = \"$remote_addr\", status = 429 }, \"1000/h\"]"),
    key(
        V0_1,
        "request_body_max",
        SIZE,
        "A larger body is refused (413), and so is one that does not say how long it is (411).",
    )
    .without("limits.request_body_bytes_max")
    .example("\"10MiB\""),
];

const LOGIN: &[KeyDefinition] = &[
    key(V0_1, "file", PATH, "The file of users."),
    key(V0_1, "realm", Text("printable characters without quotes"), "What users are told that they are asked for."),
];

const RATE: &[KeyDefinition] = &[
    key(V0_1, "requests", Count(1, u64::MAX), "So many requests …"),
    key(V0_1, "per", TIME, "… in so long; without it a second."),
    key(V0_1, "burst", Count(0, u32::MAX as u64), "So many may come at once."),
    key(V0_1, "key", TEMPLATE, "Who is one client; without it who has one address."),
    key(V0_1, "status", Count(400, 599), "What who asks more is told; without it 429."),
];

/// What becomes of the request and of the answer.
pub const EDITS: &[KeyDefinition] = &[
    key(V0_1, "strip_prefix", Text("the beginning of a path"), "It is taken off the path that the origin is asked for.")
        .without("the path stays")
        .example("\"/api\""),
    key(
        V0_1,
        "rewrite",
        Text("a path, with variables such as $1 if need be"),
        "The path that the origin is asked for, in place of strip_prefix. docs/routes.md",
    )
    .without("the path stays")
    .example("\"/index.php$is_args$args\""),
    key(V0_1, "request_headers", Record(REQUEST_FIELDS), "Fields of requests, on their way to the origin. docs/routes.md")
        .without("they stay")
        .example("{ set = { X-Site = \"a\" }, add = { X-Seen = \"$host\" }, remove = [\"X-Debug\"] }"),
    key(V0_1, "response_headers", Record(ANSWER_FIELDS), "Fields of answers. docs/routes.md")
        .without("they stay")
        .example("{ set = { X-Site = \"a\" }, add = { Link = \"</a.css>\" }, default = { X-A = \"b\" }, remove = [\"Server\"] }"),
    key(
        V0_1,
        "request_id",
        Either(&[Switch, Text("the name of a field")]),
        "A number for each request, in this field (true: X-Request-Id) of request and answer.",
    )
    .without("false")
    .example("true"),
    key(
        V0_1,
        "security_headers",
        Switch,
        "X-Content-Type-Options, X-Frame-Options and Referrer-Policy, where an answer does not say them.",
    )
    .without("false")
    .example("true"),
    key(
        V0_1,
        "cors",
        Either(&[Switch, Text("SCHEME://HOST[:PORT]"), Record(CORS)]),
        "Which sites may read answers in browsers; true: all, without the cookies of their visitors. docs/routes.md",
    )
    .without("as the origin says")
    .example("{ origins = [\"https://app.example.org\"], methods = [\"GET\"], headers = [\"X-Token\"], expose = [\"X-A\"], credentials = true, max_age = \"1h\" }"),
    key(
        V0_1,
        "maintenance",
        Either(&[Switch, Record(MAINTENANCE)]),
        "Everybody is answered 503, but who is in `allow`. docs/routes.md",
    )
    .without("false")
    .example("{ body = \"Back at noon.\", type = \"text/plain\", retry_after = \"1h\", allow = [\"192.0.2.0/24\"] }"),
];

const REQUEST_FIELDS: &[KeyDefinition] = &[
    key(V0_1, "set", FIELD_VALUES, "In place of what is there."),
    key(V0_1, "add", FIELD_VALUES, "Beside what is there."),
    key(V0_1, "remove", NAMES, "Taken out."),
];

const ANSWER_FIELDS: &[KeyDefinition] = &[
    key(V0_1, "set", FIELD_VALUES, "In place of what is there."),
    key(V0_1, "add", FIELD_VALUES, "Beside what is there."),
    key(V0_1, "default", FIELD_VALUES, "Where there is none."),
    key(V0_1, "remove", NAMES, "Taken out."),
];

const CORS: &[KeyDefinition] = &[
    key(V0_1, "origins", List(&Text("SCHEME://HOST[:PORT], or *")), "The sites."),
    key(V0_1, "methods", List(&Text("a method")), "Methods that they may use."),
    key(V0_1, "headers", NAMES, "Fields that they may send."),
    key(V0_1, "expose", NAMES, "Fields that they may read."),
    key(V0_1, "credentials", Switch, "With the cookies of their visitors."),
    key(V0_1, "max_age", TIME, "How long browsers remember it."),
];

const MAINTENANCE: &[KeyDefinition] = &[
    key(V0_1, "body", TEMPLATE, "What it says."),
    key(V0_1, "type", Text("TYPE/SUBTYPE"), "Its Content-Type."),
    key(V0_1, "retry_after", TIME, "When to come again."),
    key(V0_1, "allow", List(&NETWORK), "Networks whose clients are answered as ever."),
];

/// larder answers by itself.
pub const REDIRECT: &[KeyDefinition] = &[key(
    V0_1,
    "redirect",
    Either(&[Text("a URL or a path, with variables if need be"), Record(REDIRECTION)]),
    "Everybody is led there, with 301. docs/routes.md",
)
.without("somebody answers")
.required("{ to = \"https://www.example.org$request_uri\", status = 308 }")];

/// The same for all routes.
pub const REDIRECT_ALL: &[KeyDefinition] = &[REDIRECT[0].optional()];
pub const RESPOND_ALL: &[KeyDefinition] = &[RESPOND[0].optional()];

const REDIRECTION: &[KeyDefinition] =
    &[key(V0_1, "to", TEMPLATE, "Where to."), key(V0_1, "status", Count(301, 308), "301, 302, 303, 307 or 308.")];

pub const RESPOND: &[KeyDefinition] =
    &[key(V0_1, "respond", Either(&[TEMPLATE, Record(RESPONSE)]), "Everybody is told this text. docs/routes.md")
        .without("somebody answers")
        .required("{ status = 200, body = \"ok\", type = \"text/plain\" }")];

const RESPONSE: &[KeyDefinition] = &[
    key(V0_1, "status", Count(200, 599), "Its status; without it 200."),
    key(V0_1, "body", TEMPLATE, "The text."),
    key(V0_1, "type", Text("TYPE/SUBTYPE"), "Its Content-Type; without it that of plain text."),
];

/// Of `[policy]` alone.
pub const TRACKING: &[KeyDefinition] = &[key(
    V0_1,
    "ignore_tracking",
    Switch,
    "Parameters and cookies that count visits (utm_*, gclid, _ga and some fifty others) are taken out of requests. \
     docs/routes.md#what-counts-visits",
)
.without("true, and false under a VCL")
.example("false")];
