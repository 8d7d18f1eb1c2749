//! The keys of a `[[route]]` whose requests are commands to memcached.

use proxy::settings::{MemcachedCommand, MemcachedMode, MemcachedSettings, NextServer, RequestPart};

use crate::config::choices::{BINARY_KEYS, LONG_KEYS, MEMCACHED_HASHES, MEMCACHED_MODES};
use crate::config::definition::ValueKind::{Count, List, Size, Switch, Text, Words};
use crate::config::definition::{COUNT, KeyDefinition, PATH, TIME, V0_1, ValueKind, key};
use crate::config::literal;

const PART: ValueKind = Text("$arg_NAME, $http_NAME, $args, \"path\", \"uri\" or a fixed text");

fn clean() -> MemcachedSettings {
    MemcachedSettings::of(Vec::new(), MemcachedMode::Clean)
}

fn part(part: &RequestPart) -> String {
    match part {
        RequestPart::Path => literal::text("path"),
        RequestPart::Argument(name) => literal::text(&format!("$arg_{name}")),
        _ => String::new(),
    }
}

fn next_servers(next: &NextServer) -> String {
    let words = [
        (next.error, "error"),
        (next.timeout, "timeout"),
        (next.invalid_response, "invalid_response"),
        (next.not_found, "not_found"),
    ];
    literal::texts(words.iter().filter(|(is_on, _)| *is_on).map(|(_, word)| *word))
}

pub const MEMCACHED: &[KeyDefinition] = &[
    key(
        V0_1,
        "memcached",
        List(&Text("HOST:PORT or unix:/PATH, with \" weight=N\" behind it if need be")),
        "The servers. One, or a list.",
    )
    .required("[\"127.0.0.1:11211 weight=2\", \"127.0.0.1:11212\"]"),
    key(
        V0_1,
        "mode",
        Words(|| literal::words(&MEMCACHED_MODES)),
        "\"clean\": methods and statuses of HTTP. \"nginx-memc\": as nginx's memc module answers.",
    )
    .by_default(|| literal::word(&clean().mode, &MEMCACHED_MODES)),
    key(V0_1, "commands", List(&Words(|| literal::words(&MemcachedCommand::WORDS))), "Commands that clients may give.")
        .by_default(|| {
            let commands = clean().commands;
            literal::list(commands.iter().map(|command| literal::word(command, &MemcachedCommand::WORDS)))
        })
        .without("with mode = \"nginx-memc\" the module's twelve"),
    key(
        V0_1,
        "key",
        Text("\"path\", \"uri\", or a text with $uri, $args, $host, $arg_NAME and $http_NAME in it"),
        "The key of the item: \"path\" is the path behind the route's own.",
    )
    .by_default(|| part(&clean().key))
    .without("with mode = \"nginx-memc\" \"$arg_key\""),
    key(V0_1, "command", PART, "Where the request says the command.").by_default(|| part(&clean().command)),
    key(V0_1, "value", PART, "Where the request says the value.").by_default(|| part(&clean().value)),
    key(V0_1, "flags", PART, "Where the request says the flags.").by_default(|| part(&clean().flags)),
    key(V0_1, "exptime", PART, "Where the request says the expiry.").by_default(|| part(&clean().exptime)),
    key(
        V0_1,
        "hash",
        Words(|| literal::words(&MEMCACHED_HASHES)),
        "Which of several servers has a key: \"ketama\" as libmemcached, \"nginx-consistent\" as nginx's `hash … consistent`.",
    )
    .by_default(|| literal::word(&clean().hash, &MEMCACHED_HASHES)),
    key(V0_1, "connect_timeout", TIME, "How long a connection may take.")
        .by_default(|| literal::time(clean().connect_timeout)),
    key(V0_1, "reply_timeout", TIME, "How long the reply to a command may take.")
        .by_default(|| literal::time(clean().reply_timeout)),
    key(V0_1, "max_connections", Count(1, 1_024), "Connections of each core to each server.")
        .by_default(|| literal::number(clean().connections_max)),
    key(V0_1, "ejection_failures", Count(1, u32::MAX as u64), "After so many commands without a reply a server is left out.")
        .by_default(|| literal::number(clean().ejection_failures)),
    key(V0_1, "ejection_time", TIME, "How long a server is left out that gave no replies.")
        .by_default(|| literal::time(clean().ejection_time)),
    key(
        V0_1,
        "next_server",
        List(&Words(|| vec!["error", "timeout", "invalid_response", "not_found", "off"])),
        "After which failures the next server is asked.",
    )
    .by_default(|| next_servers(&clean().next_server)),
    key(V0_1, "value_bytes_max", Size(1, 1 << 30), "The largest value, read or written.")
        .by_default(|| literal::size(clean().value_bytes_max as u64))
        .without("with chunk_bytes \"64MiB\""),
    key(
        V0_1,
        "chunk_bytes",
        Size(1 << 10, 8 << 20),
        "Values larger than this are stored in chunks of this size, \"1KiB\" to \"8MiB\".",
    )
    .without("larger ones are refused")
    .example("\"500KiB\""),
    key(V0_1, "coalesce", Switch, "Gets of one key that meet become one command.")
        .by_default(|| literal::switch(clean().coalesce)),
    key(
        V0_1,
        "flags_to_last_modified",
        Switch,
        "An item's flags are seconds since 1970, and are sent as Last-Modified.",
    )
    .by_default(|| literal::switch(clean().flags_as_time)),
    key(V0_1, "gzip_flag", COUNT, "The bit of an item's flags that says that the value is gzip. 0: none does.")
        .by_default(|| literal::number(clean().gzip_flag)),
    key(
        V0_1,
        "long_keys",
        Words(|| literal::words(&LONG_KEYS)),
        "Keys of more than 250 bytes: \"hash\" stores them under their hash, \"refuse\" answers 414.",
    )
    .by_default(|| literal::word(&clean().long_keys, &LONG_KEYS))
    .without("with mode = \"nginx-memc\" \"refuse\""),
    key(
        V0_1,
        "binary_keys",
        Words(|| literal::words(&BINARY_KEYS)),
        "Keys with bytes that memcached's protocol has no place for.",
    )
    .by_default(|| literal::word(&clean().binary_keys, &BINARY_KEYS)),
    key(V0_1, "memcached_login", Text("USER:PASSWORD"), "The login for servers started with -Y.")
        .without("no login")
        .example("\"larder:secret\"")
        .secret(),
    key(V0_1, "content_type", Text("TYPE/SUBTYPE"), "The Content-Type of every answer.")
        .without("by the end of the key, as for files (types, default_type, charset)")
        .example("\"application/json\""),
    key(V0_1, "tls", Switch, "Speak TLS to the servers.").without("false").example("true"),
    key(
        V0_1,
        "ca",
        PATH,
        "Who may sign their certificates: a file in PEM.",
    )
    .without("the system's authorities")
    .example("\"/etc/ssl/certs/ca-certificates.crt\""),
    key(V0_1, "tls_name", Text("a name or an address"), "The name that the certificates are for.")
        .without("the host of `memcached`")
        .example("\"cache.example.org\""),
];
