//! Words that people write for something that larder has under another name, by the sections in which they stand: the key that is meant,
//! and what to write. What is a word of one other program is in `foreign_words.rs`.

/// One or more words that mean the same.
struct MeantWords {
    /// Paths of the sections in which they mean it; none: wherever they stand.
    within: &'static [&'static str],
    words: &'static [&'static str],
    /// The key of that section in whose place they stand, which is not missing then.
    of: Option<&'static str>,
    write: &'static str,
}

const ANYWHERE: &[&str] = &[];
const TOP: &[&str] = &[""];
const LISTEN: &[&str] = &["listen"];
const ORIGIN: &[&str] = &["origin.NAME"];
const ROUTE: &[&str] = &["route", "policy"];
const TOP_AND_ROUTE: &[&str] = &["", "route", "policy"];

const fn row(
    within: &'static [&'static str],
    words: &'static [&'static str],
    of: Option<&'static str>,
    write: &'static str,
) -> MeantWords {
    MeantWords { within, words, of, write }
}

const MEANT: &[MeantWords] = &[
    row(
        ANYWHERE,
        &["grace"],
        None,
        "write stale_while_revalidate = \"1m\" in [[route]], or for all routes in [policy]; stale_if_error = \"1d\" there is for when the origin fails",
    ),
    row(
        ANYWHERE,
        &["max_body"],
        None,
        "write request_body_max = \"10MiB\" in [[route]], or for all routes in [policy]; how large a body may be that is stored, object_bytes_max = \"256MiB\" in [limits]",
    ),
    row(
        ANYWHERE,
        &["connect_timeout"],
        None,
        "write timeouts = { connect = \"5s\" } in [origin.NAME] or [[route]], or for all origins connect_timeout = \"5s\" in [limits]",
    ),
    row(
        ANYWHERE,
        &["max_connections"],
        None,
        "write max_connections = 100 in [origin.NAME]; how many clients may have, connections_max = 10000 in [limits]",
    ),
    row(
        ANYWHERE,
        &["cache_key", "hash_key"],
        None,
        "the key is host, path and query by itself: query = { ignore = [\"NAME\"] } in [[route]] takes parameters out of it, vary_by = [\"header:NAME\"] adds a field",
    ),
    row(ANYWHERE, &["websocket", "websockets"], None, "leave it out: a WebSocket goes to the origin by itself"),
    row(
        ANYWHERE,
        &["beresp", "bereq", "req", "resp", "obj", "vcl_backend_response", "vcl_deliver", "vcl_hash"],
        None,
        "that is VCL, which stands in a file of its own: [policy] with vcl = \"FILE\"; without one, ttl = \"5m\" in [[route]] says how long responses are fresh, \
         and request_headers and response_headers there change fields",
    ),
    row(
        ANYWHERE,
        &["include", "includes"],
        None,
        "a larder.toml is one file; what is the same for all routes stands once, in [policy]",
    ),
    row(
        ANYWHERE,
        &["purge_acl", "purgers", "allow_purge", "purge_allow", "purge"],
        None,
        "write purge_from = [\"10.0.0.0/8\"] in [policy], or in one [[route]]",
    ),
    row(
        TOP_AND_ROUTE,
        &["headers", "header"],
        None,
        "write request_headers = { set = { NAME = \"VALUE\" } } for what the origin gets, or response_headers = { set = { NAME = \"VALUE\" } } for what \
         clients get, in [[route]]; header = { NAME = \"VALUE\" } there says which requests a route is for",
    ),
    row(
        ORIGIN,
        &["headers", "header"],
        None,
        "write request_headers = { set = { NAME = \"VALUE\" } } in the [[route]] of this origin; of the Host field, host = \"NAME\" here",
    ),
    row(
        TOP_AND_ROUTE,
        &["pass", "no_cache", "nocache", "bypass"],
        None,
        "write cache = false in [[route]], of which nothing is stored then; of requests with a cookie, cookies = { keep = [], bypass = [\"NAME\"] }",
    ),
    row(TOP_AND_ROUTE, &["default_ttl"], None, "write ttl = \"2m\" in [[route]], or for all routes in [policy]"),
    row(
        TOP_AND_ROUTE,
        &["default_grace"],
        None,
        "write stale_while_revalidate = \"10s\" in [[route]], or for all routes in [policy]",
    ),
    row(
        &["", "route", "listen"],
        &["force_https", "force_ssl", "https_only", "ssl_redirect", "https_redirect", "redirect_https"],
        None,
        "write a [[listen]] with address = \"*:80\" and mode = \"redirect\", which leads everybody to https://",
    ),
    row(
        LISTEN,
        &["redirect"],
        None,
        "write mode = \"redirect\", and no tls: everybody who asks here is led to https://",
    ),
    row(
        LISTEN,
        &["ssl", "https", "cert", "certificate", "key", "acme"],
        None,
        "write tls = { cert = \"FILE\", key = \"FILE\" }, or tls = { acme = [\"NAME\"] } and a section [acme]: docs/tls.md",
    ),
    row(
        LISTEN,
        &["port", "host", "ip", "bind", "listen", "addr"],
        Some("address"),
        "write address = \"*:80\" for all addresses of this machine, or address = \"127.0.0.1:80\" for itself alone",
    ),
    row(
        ORIGIN,
        &[
            "address", "addr", "port", "server", "servers", "backend", "backends", "upstream", "target", "targets",
            "to", "endpoint",
        ],
        Some("urls"),
        "write urls = [\"http://127.0.0.1:3000\"], with an entry for each address",
    ),
    row(
        ORIGIN,
        &["weight", "weights", "backup"],
        None,
        "write it behind the address that it is of: urls = [\"http://10.0.0.1:80 weight=3\", \"http://10.0.0.2:80 backup\"]",
    ),
    row(
        ORIGIN,
        &["health_check", "healthcheck", "health_checks", "health", "check"],
        None,
        "write probe = { path = \"/health\" }",
    ),
    row(
        &["origin.NAME", "route", "policy"],
        &["timeout", "read_timeout"],
        None,
        "write timeouts = { connect = \"2s\", first_byte = \"30s\", between_bytes = \"10s\" }",
    ),
    row(
        &["", "limits"],
        &["timeout", "timeouts"],
        None,
        "write idle_timeout, request_head_timeout or send_timeout in [limits] for clients, and connect_timeout, first_byte_timeout or \
         between_bytes_timeout there for origins: docs/config.md",
    ),
    row(ORIGIN, &["ssl", "https"], None, "write https:// in urls, which is what has TLS spoken"),
    row(TOP, &["ssl", "https"], None, "write tls = { cert = \"FILE\", key = \"FILE\" } in [[listen]]: docs/tls.md"),
    row(
        TOP,
        &["user", "group", "username"],
        None,
        "write user = \"NAME:GROUP\" in [process]: root becomes that user once its addresses are bound. Under systemd User= of the unit says it, and \
         ports below 1024 need CAP_NET_BIND_SERVICE alone (dist/larder.service)",
    ),
    row(
        TOP,
        &["global", "general", "main", "defaults", "settings", "options", "larder"],
        None,
        "what is for all of larder stands above all sections, without a header, and for all routes in [policy]",
    ),
    row(
        &["", "policy", "admin", "listen"],
        &["allow_from", "allow_ips", "whitelist"],
        None,
        "write allow = [\"10.0.0.0/8\"] in [[route]], or for all routes in [policy]",
    ),
    row(
        &["log"],
        &["file", "filename", "output", "target", "destination", "access_log"],
        Some("path"),
        "write path = \"/var/log/larder/access.log\", or path = \"-\" for standard output",
    ),
    row(ROUTE, &["error_page"], None, "write error_pages = { 404 = \"/404.html\" }"),
    row(
        ROUTE,
        &["domain", "domains", "hostname", "hostnames", "names"],
        None,
        "write host = [\"www.example.org\"] in [[route]]",
    ),
    row(ROUTE, &["uri", "url", "prefix", "match"], None, "write path = \"/PATH\" in [[route]]"),
    row(
        ROUTE,
        &["proxy", "service", "target", "to", "urls"],
        Some("origin"),
        "write [origin.NAME] with urls = [\"http://HOST:PORT\"], and origin = \"NAME\" in [[route]]",
    ),
    row(ROUTE, &["status", "body"], Some("respond"), "write respond = { status = 404, body = \"TEXT\" } in [[route]]"),
    row(&["memory", "disk"], &["max_size", "max", "capacity", "limit", "bytes"], Some("size"), "write size = \"1GiB\""),
    row(
        TOP,
        &["cache"],
        None,
        "how long pages live: ttl = \"5m\" in [[route]], or for all routes in [policy]; how much is stored: [memory] with size = \"1GiB\", and [[disk]]; \
         cache = false in [[route]] stores nothing",
    ),
    row(
        TOP,
        &["cookies"],
        None,
        "write cookies = { keep = [], bypass = [\"sessionid\"] } in [[route]], or for all routes in [policy]",
    ),
];

/// What is meant by a word in the section of this path, and in place of which key it stands.
pub fn within(path: &str, word: &str) -> Option<(&'static str, Option<&'static str>)> {
    let is_it = |row: &&MeantWords| (row.within.is_empty() || row.within.contains(&path)) && row.words.contains(&word);
    MEANT.iter().find(is_it).map(|row| (row.write, row.of))
}

/// The same of a word that means it wherever it stands.
pub fn anywhere(word: &str) -> Option<&'static str> {
    MEANT.iter().find(|row| row.within.is_empty() && row.words.contains(&word)).map(|row| row.write)
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn words_stand_once_for_keys_that_there_are() {
        for (at, row) in MEANT.iter().enumerate() {
            for path in row.within {
                let section = keys::at(path).unwrap_or_else(|| panic!("no section is called {path}"));
                for word in row.words {
                    let is_known = section.key(word).is_some() || *path == "policy" && keys::is_word_of_routes(word);
                    // What is a key of one section may be a slip in another of the same row.
                    assert!(!is_known || row.within.len() > 1, "{word} is a key of {path}");
                    let before = &MEANT[..at];
                    let is_twice = |other: &MeantWords| other.within.contains(path) && other.words.contains(word);
                    assert!(!before.iter().any(is_twice), "{word} of {path} stands twice");
                }
            }
            if let (Some(of), Some(path)) = (row.of, row.within.first()) {
                assert!(keys::at(path).is_some_and(|section| section.key(of).is_some()), "{of} is no key of {path}");
            }
            assert!(!row.write.ends_with('.'), "{}", row.write);
        }
    }
}
