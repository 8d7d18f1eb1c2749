//! The keys above all sections, and those of `[[listen]]`, `[listen.tls]` and `[acme]`.

use crate::acme_plan::FOLDER_DEFAULT;
use crate::config::choices::{CHALLENGES, CLIENT_CERTIFICATES, LISTEN_MODES, TLS_VERSIONS};
use crate::config::definition::ValueKind::{Count, Either, List, Switch, Table, Text, Words};
use crate::config::definition::{KeyDefinition, NETWORK, PATH, TIME, V0_1, ValueKind, key};
use crate::config::literal;
use crate::limits::WORKERS_MAX;
use crate::plan::{Plan, listener_by_default};

const FILES: ValueKind = List(&PATH);

pub const TOP: &[KeyDefinition] = &[
    key(
        V0_1,
        "server_name",
        Text("a letter, then letters, digits, dots and hyphens, 64 at most"),
        "The name in the Via and Cache-Status fields of responses and requests.",
    )
    .by_default(|| literal::text(&Plan::default().settings.server_name)),
    key(
        V0_1,
        "workers",
        Either(&[Count(1, WORKERS_MAX as u64), Words(|| vec!["auto"])]),
        "Worker threads, each with its own connections; \"auto\" is one for each core. --workers is the flag.",
    )
    .by_default(|| literal::text("auto")),
    key(
        V0_1,
        "core_dumps",
        Switch,
        "A crash may leave the memory of the process on a disk, if the system's limits (ulimit -c) allow it. There are keys in it, and \
         what visitors asked for.",
    )
    .by_default(|| literal::switch(Plan::default().core_dumps)),
    key(
        V0_1,
        "trusted_proxies",
        List(&NETWORK),
        "Reverse proxies and TLS terminators in front of larder: from these networks X-Forwarded-For, X-Forwarded-Proto and Forwarded \
         are believed. docs/behind-a-terminator.md",
    )
    .by_default(|| literal::networks(&Plan::default().settings.trusted_proxies)),
    key(
        V0_1,
        "odd_field_names",
        Switch,
        "Fields of requests whose names have other characters than letters, digits and dashes between them (X_Token, x.key) go on to origins, \
         too. They are dropped otherwise, as by nginx: to many a server behind, X_Token is X-Token, and no key, limit or list of larder's knows \
         that.",
    )
    .by_default(|| literal::switch(Plan::default().settings.odd_field_names)),
    key(
        V0_1,
        "hsts",
        Text("max-age=SECONDS, with includeSubDomains and preload if need be"),
        "Strict-Transport-Security in every answer over TLS that has none: browsers ask this host by https:// alone from then on.",
    )
    .without("no such field")
    .example("\"max-age=31536000\""),
];

pub const LISTEN: &[KeyDefinition] = &[
    key(
        V0_1,
        "address",
        Text("IP:PORT, *:PORT (all addresses) or unix:/PATH"),
        "Where to listen. Without any [[listen]] larder listens here.",
    )
    .required("\"127.0.0.1:8080\""),
    key(
        V0_1,
        "mode",
        Words(|| literal::words(&LISTEN_MODES)),
        "\"accelerate\": answers for the routes below. \"forward\": a caching forward proxy, by [forward]. docs/forward.md \"redirect\": \
         leads everybody to the same URL at https://. docs/tls.md",
    )
    .by_default(|| literal::word(&Some(listener_by_default().mode), &LISTEN_MODES)),
    key(V0_1, "https_port", Count(1, 65_535), "With mode = \"redirect\": where https:// is.")
        .without("the port of the first [[listen]] with tls, else 443")
        .example("443"),
    key(
        V0_1,
        "proxy_protocol",
        Switch,
        "Every connection begins with a PROXY protocol header, version 1 or 2, that names the client.",
    )
    .by_default(|| literal::switch(listener_by_default().proxy_protocol)),
    key(
        V0_1,
        "h2c",
        Switch,
        "Without TLS, clients may speak HTTP/2 if they begin with it (prior knowledge). With TLS they agree upon it.",
    )
    .by_default(|| literal::switch(listener_by_default().h2c)),
    key(V0_1, "tls", Table, "Speak TLS here, for https://: [listen.tls] below the [[listen]], or a table on one line."),
];

pub const LISTEN_TLS: &[KeyDefinition] = &[
    key(
        V0_1,
        "acme",
        List(&List(&Text("a host name"))),
        "Names for which a certificate is ordered from the authority of [acme]: [\"a\", \"b\"] is one certificate for both, [[\"a\"], [\"b\"]] is one for each. `cert` may be left out then.",
    )
    .without("nothing is ordered")
    .example("[\"example.org\", \"www.example.org\"]"),
    key(
        V0_1,
        "cert",
        FILES,
        "The certificate, then those that lead to its authority, in PEM; or a list of such files: the name that a client asks for \
         chooses, and who asks for none gets the first. A file that changes is read again.",
    )
    .required("\"/etc/larder/site.pem\"")
    .without("`acme` says for which names one is ordered"),
    key(V0_1, "key", FILES, "The certificate's key, or a list in the order of the certificates.")
        .without("the key is in the file of the certificate")
        .example("\"/etc/larder/site.key\""),
    key(
        V0_1,
        "ocsp",
        List(&Text("a path, or \"\" for a certificate without one")),
        "What the certificate's authority says of it (OCSP) in DER, to be shown beside it; or a list in the order of the certificates.",
    )
    .without("it is shown alone")
    .example("\"/etc/larder/site.ocsp\""),
    key(V0_1, "min_version", Words(|| literal::words(&TLS_VERSIONS)), "The oldest version of TLS that is spoken.")
        .without("\"1.2\"")
        .example("\"1.3\""),
    key(
        V0_1,
        "early_data",
        Switch,
        "Clients that come again may ask before the handshake is over (0-RTT). Only what is stored answers then. Such sessions end with \
         the process.",
    )
    .without("false")
    .example("true"),
    key(
        V0_1,
        "ciphers",
        List(&Text("a name of RFC 8446 or RFC 5246")),
        "Cipher suites, the best first; a client that names ChaCha20 first chooses itself.",
    )
    .without("all that are safe today")
    .example("[\"TLS_AES_128_GCM_SHA256\"]"),
    key(V0_1, "http2", Switch, "Offer HTTP/2 to clients; never to those of a forward proxy. docs/http2.md")
        .without("true")
        .example("true"),
    key(V0_1, "client_ca", PATH, "Clients show certificates that these have signed, in PEM.")
        .without("no client is asked for one")
        .example("\"/etc/larder/clients.pem\""),
    key(
        V0_1,
        "client_cert",
        Words(|| literal::words(&CLIENT_CERTIFICATES)),
        "With client_ca: \"optional\" lets clients without a certificate in, too.",
    )
    .without("\"required\"")
    .example("\"required\""),
    key(
        V0_1,
        "ticket_secret",
        PATH,
        "A file with 32 bytes or more, the same for all who resume each other's sessions: several machines, or larder before and after \
         a restart.",
    )
    .without("a secret of the process")
    .example("\"/etc/larder/tickets\""),
];

pub const ACME: &[KeyDefinition] = &[
    key(
        V0_1,
        "terms_agreed",
        Switch,
        "You have read the authority's terms of service and agree to them. Nothing is ordered without it.",
    )
    .required("true"),
    key(V0_1, "email", Text("an e-mail address"), "Where the authority may write to.")
        .without("it writes to nobody")
        .example("\"admin@example.org\""),
    key(
        V0_1,
        "directory",
        Text("\"letsencrypt\", \"letsencrypt-staging\" or the https:// URL of a directory"),
        "The authority. Browsers do not trust certificates of \"letsencrypt-staging\", which is there to try it.",
    )
    .without("\"letsencrypt\"")
    .example("\"letsencrypt-staging\""),
    key(V0_1, "ca", PATH, "Who has signed the authority's own certificate, in PEM.")
        .without("those whom this system trusts")
        .example("\"/etc/larder/our-authority.pem\""),
    key(
        V0_1,
        "folder",
        PATH,
        "Where accounts, keys and certificates are kept. Several machines may share it: one orders, all show what came.",
    )
    .by_default(|| literal::text(FOLDER_DEFAULT)),
    key(V0_1, "profile", Text("a word of the authority's"), "The kind of certificate.")
        .without("the authority's usual one")
        .example("\"shortlived\""),
    key(
        V0_1,
        "challenge",
        Words(|| literal::words(&CHALLENGES)),
        "How the authority looks whether a name is ours: \"tls-alpn-01\" comes to port 443, \"http-01\" to port 80.",
    )
    .without("both, the other one after a failure")
    .example("\"http-01\""),
    key(
        V0_1,
        "retry",
        TIME,
        "How long nothing is tried after a first failure, 1s to 6h; twice as long after each further one, up to 6h.",
    )
    .by_default(|| literal::time(acme::limits::PAUSE_FIRST)),
];
