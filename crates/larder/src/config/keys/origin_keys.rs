//! The keys of `[origin.NAME]` and its `tls`, and of `[resolver]`.

use proxy::settings::{BalanceKind, FastCgiKeepAlive, FastCgiSettings, OriginSettings, RetrySettings};

use crate::config::choices::{RETRY_CAUSES, RETRY_METHODS};
use crate::config::definition::ValueKind::{Count, Either, List, Map, Switch, Table, Text, Time, Words};
use crate::config::definition::{COUNT, KeyDefinition, PATH, TIME, V0_1, key};
use crate::config::literal;
use crate::limits::ORIGIN_RETRIES_MAX;
use crate::plan::origin_with_defaults;

fn by_default() -> OriginSettings {
    origin_with_defaults(String::new(), Vec::new())
}

pub const ORIGIN: &[KeyDefinition] = &[
    key(
        V0_1,
        "urls",
        List(&Text(
            "http://HOST[:PORT], https://HOST[:PORT], h2://HOST[:PORT] (HTTP/2 without TLS) or unix:/PATH, and behind it weight=N or backup",
        )),
        "Where its servers are. One that fails is left out for a while; a backup is only asked when no other serves. docs/origins.md",
    )
    .without("`fastcgi` says it")
    .required("[\"http://127.0.0.1:3000\"]"),
    key(V0_1, "host", Text("a name or an address, with a port if need be"), "The Host field that the origin gets.")
        .without("the client's; where that has none, the name in `urls`")
        .example("\"www.example.org\""),
    key(
        V0_1,
        "max_connections",
        Count(1, u64::MAX),
        "Connections to all addresses of this origin together; over HTTP/2, requests under way.",
    )
    .by_default(|| literal::number(by_default().connections_max)),
    key(V0_1, "queue_max", COUNT, "Requests that may wait for one of these connections; beyond it the answer is 503.")
        .by_default(|| literal::number(by_default().queue_max)),
    key(V0_1, "queue_timeout", TIME, "How long a request may wait for a connection; beyond it the answer is 503.")
        .by_default(|| literal::time(by_default().queue_timeout)),
    key(V0_1, "ejection_failures", Count(1, u32::MAX as u64), "After so many failures in a row an address is left out.")
        .by_default(|| literal::number(by_default().ejection_failures)),
    key(V0_1, "ejection_time", TIME, "How long an address is left out that failed.")
        .by_default(|| literal::time(by_default().ejection_time)),
    key(V0_1, "balance", Words(|| BalanceKind::WORDS.to_vec()), "Which of several addresses is asked. docs/origins.md")
        .by_default(|| literal::text(by_default().balance.kind.word())),
    key(
        V0_1,
        "hash",
        Text("\"url\", \"client\", \"cookie:NAME\" or \"header:NAME\""),
        "With balance = \"hash\": what of a request says to which address it belongs.",
    )
    .without("its URL")
    .example("\"header:X-Tenant\""),
    key(V0_1, "slow_start", TIME, "Over so long an address that comes back gets its whole share again; 0s is at once.")
        .by_default(|| literal::time(by_default().balance.slow_start)),
    key(V0_1, "circuit_breaker", Switch, "While every address is left out requests fail at once; else all are asked.")
        .by_default(|| by_default().balance.breaks_circuit.to_string()),
    key(V0_1, "timeouts", Table, "How long it is waited for, in place of what [limits] says. A [[route]] may say it, too.")
        .without("as [limits] says")
        .example("{ connect = \"2s\", first_byte = \"30s\", between_bytes = \"10s\" }"),
    key(V0_1, "probe", Table, "Each address is asked whether it is well, until whose first answer it is asked anyway. docs/origins.md")
        .without("nobody is probed")
        .example(
            "{ path = \"/health\", host = \"www.example.org\", interval = \"5s\", timeout = \"2s\", window = 8, threshold = 3, initial = 2, expected = [200] }",
        ),
    key(V0_1, "retries", Count(0, ORIGIN_RETRIES_MAX as u64), "To how many other addresses a request may be sent that one failed.")
        .by_default(|| literal::number(RetrySettings::default().others_max)),
    key(
        V0_1,
        "retry_on",
        List(&Either(&[Words(|| RETRY_CAUSES.map(|(word, _)| word).to_vec()), Count(400, 599)])),
        "After which failures, or statuses, another address is asked.",
    )
    .by_default(|| "[\"connect\"]".to_owned()),
    key(
        V0_1,
        "retry_methods",
        List(&Words(|| RETRY_METHODS.map(|(word, _)| word).to_vec())),
        "The methods by which a request that was sent may be sent again.",
    )
    .by_default(|| "[\"GET\", \"HEAD\"]".to_owned()),
    key(V0_1, "sticky_cookie", Text("a name"), "A client comes back to the address that answered it, by a cookie of this name.")
        .without("none is told")
        .example("\"route\""),
    key(V0_1, "sticky_secret", Text("16 characters or more"), "With it nobody learns addresses from the sticky cookie.")
        .without("a guess at an address can be confirmed")
        .example("\"0123456789abcdef\"")
        .secret(),
    key(V0_1, "tls", Table, "Of https:// URLs: how the servers are known, and what larder shows them. docs/tls.md")
        .without("whom this system trusts, for the host of the URL")
        .example(
            "{ ca = \"/etc/larder/origins.pem\", name = \"www.internal\", verify = true, cert = \"/etc/larder/us.pem\", key = \"/etc/larder/us.key\" }",
        ),
    key(
        V0_1,
        "http2",
        Switch,
        "Of https:// URLs: ask the servers over HTTP/2 if they agree to it. One connection then carries many requests. docs/http2.md",
    )
    .without("false")
    .example("true"),
];

pub const ORIGIN_TIMEOUTS: &[KeyDefinition] = &[
    key(V0_1, "connect", Time(true), "Until a connection is open.").without("limits.connect_timeout").example("\"2s\""),
    key(V0_1, "first_byte", Time(true), "From the request's last byte to the answer's first.")
        .without("limits.first_byte_timeout")
        .example("\"30s\""),
    key(V0_1, "between_bytes", Time(true), "Between two reads of the answer.")
        .without("limits.between_bytes_timeout")
        .example("\"10s\""),
];

pub const ORIGIN_TLS: &[KeyDefinition] = &[
    key(V0_1, "ca", PATH, "Who may have signed the servers' certificates, in PEM.")
        .without("whom this system trusts")
        .example("\"/etc/larder/origins.pem\""),
    key(V0_1, "name", Text("a name or an address"), "What the servers' certificates are for.")
        .without("the host of the URL")
        .example("\"www.internal\""),
    key(V0_1, "verify", Switch, "false believes anybody.").without("true").example("true"),
    key(V0_1, "cert", PATH, "The certificate that servers are shown that ask for one, in PEM.")
        .without("none is shown")
        .example("\"/etc/larder/us.pem\""),
    key(V0_1, "key", PATH, "The key of `cert`.")
        .without("it is in the file of the certificate")
        .example("\"/etc/larder/us.key\""),
];

pub const ORIGIN_PROBE: &[KeyDefinition] = &[
    key(V0_1, "path", Text("a path, perhaps with a query"), "What is asked for.")
        .without("\"/\"")
        .example("\"/health\""),
    key(V0_1, "host", Text("a name or an address, with a port if need be"), "The Host that is asked for.")
        .without("that of the origin, or of its first URL")
        .example("\"www.example.org\""),
    key(V0_1, "interval", TIME, "Between two probes of one address, 10 ms at least.")
        .without("\"5s\"")
        .example("\"5s\""),
    key(V0_1, "timeout", TIME, "Within which the head of an answer must have come.")
        .without("\"2s\"")
        .example("\"2s\""),
    key(V0_1, "window", Count(1, 64), "So many of the last probes count.").without("8").example("8"),
    key(V0_1, "threshold", Count(1, 64), "So many of these must have been good.").without("3").example("3"),
    key(V0_1, "initial", Count(0, 64), "So many are taken to have been good before the first.")
        .without("one less than the threshold")
        .example("2"),
    key(V0_1, "expected", List(&Count(100, 599)), "The statuses of a good answer.").without("[200]").example("[200]"),
];

pub const RESOLVER: &[KeyDefinition] = &[
    key(V0_1, "servers", List(&Text("IP or IP:PORT")), "Name servers. [] means those of /etc/resolv.conf.")
        .by_default(|| literal::list([])),
    key(
        V0_1,
        "hosts",
        Map("a host name", &List(&Text("an IP address"))),
        "Addresses of names, which come before those of /etc/hosts; only for other names a server is asked.",
    )
    .without("none")
    .example("{ \"app.internal\" = [\"192.0.2.1\", \"192.0.2.2\"] }"),
];

/// Of an application that speaks FastCGI.
pub const FASTCGI: &[KeyDefinition] = &[
    key(
        V0_1,
        "fastcgi",
        List(&Text("unix:/PATH or HOST:PORT")),
        "Where it listens, or a list. It stands in place of `urls`.",
    )
    .without("it speaks HTTP")
    .required("\"unix:/run/php/php-fpm.sock\""),
    key(
        V0_1,
        "document_root",
        PATH,
        "The directory of its scripts, as it sees it. Beside a root it can be left out: then it is that.",
    )
    .without("the root of the route")
    .required("\"/srv/www\""),
    key(
        V0_1,
        "index",
        Text("the path of a script"),
        "The script that answers for directories and for what is no file; without a root, for everything.",
    )
    .by_default(|| literal::text(&FastCgiSettings::default().index)),
    key(V0_1, "split_path", List(&Text("a dot, then letters and digits")), "How the names of scripts end.")
        .by_default(|| literal::texts(FastCgiSettings::default().endings.iter().map(String::as_str))),
    key(
        V0_1,
        "params",
        Map("the name of a variable, in capitals", &Text("one line of text")),
        "Variables, in place of those of the same name.",
    )
    .without("none")
    .example("{ APP_ENV = \"prod\" }")
    .secret_by_name(),
    key(
        V0_1,
        "keep_alive",
        Either(&[Switch, Count(1, u32::MAX as u64)]),
        "Keep connections for the next request. Each keeps a process of the application from all others. A number: so many processes there are at least (`pm.max_children`), so that as many are kept whoever waits.",
    )
    .by_default(|| literal::switch(FastCgiSettings::default().keep_alive != FastCgiKeepAlive::Never)),
];
