//! The keys of a `[[route]]` whose requests are commands to memcached.

use std::path::PathBuf;

use message::{Authority, Scheme};
use proxy::limits::{MEMCACHED_CHUNK_BYTES_MAX, MEMCACHED_CHUNKS_MAX};
use proxy::memcached_gateway::server_ring::{SERVERS_MAX, WEIGHT_MAX};
use proxy::settings::{
    BinaryKeys, MemcachedAddress, MemcachedCommand, MemcachedLogin, MemcachedMode, MemcachedServer, MemcachedSettings,
    NextServer, RequestPart,
};
use toml::de::DeValue;

use super::choices::{BINARY_KEYS, LONG_KEYS, MEMCACHED_HASHES, MEMCACHED_MODES};
use super::complaint::Complaint;
use super::meant_words;
use super::memcached_tls;
use super::nearest::nearest;
use super::section::{Node, Section, choice, count, duration, parsed, size, switch, text};
use super::static_root::named_types;
use crate::quantities::show_size;

/// memcached's own port.
const PORT_DEFAULT: u16 = 11_211;
/// What a value may have at most: all of it is held while it is on its way.
const VALUE_BYTES_CEILING: u64 = 1 << 30;
const CONNECTIONS_CEILING: u64 = 1_024;
/// Less would be more heads than bytes.
const CHUNK_BYTES_MIN: u64 = 1 << 10;
/// Of values in chunks, unless the route says otherwise.
const CHUNKED_VALUE_BYTES_MAX_DEFAULT: usize = 64 << 20;

/// All keys but `memcached` itself.
const KEYS: [&str; 26] = [
    "mode",
    "commands",
    "hash",
    "key",
    "command",
    "value",
    "flags",
    "exptime",
    "connect_timeout",
    "reply_timeout",
    "max_connections",
    "ejection_failures",
    "ejection_time",
    "next_server",
    "value_bytes_max",
    "coalesce",
    "flags_to_last_modified",
    "gzip_flag",
    "long_keys",
    "memcached_login",
    "content_type",
    "chunk_bytes",
    "binary_keys",
    "tls",
    "ca",
    "tls_name",
];

pub fn read(section: &mut Section<'_>) -> Option<MemcachedSettings> {
    let span = section.get("memcached").map(|node| node.span());
    let servers = section.read_list("memcached", server);
    let Some((servers, span)) = servers.zip(span) else {
        for key in KEYS {
            if let Some(node) = section.get(key) {
                let what = format!("`{key}` is for routes to memcached");
                let complaint = Complaint::new(node.span(), what, "no memcached here");
                let complaint = match meant_words::anywhere(key) {
                    Some(write) => complaint.suggest(write),
                    None => complaint,
                };
                section.complaints().add(complaint.following_from(&["memcached"]));
            }
        }
        return None;
    };
    if servers.is_empty() || servers.len() > SERVERS_MAX {
        // What was wrong with an address has been said.
        let is_empty =
            section.get("memcached").is_some_and(|n| matches!(n.get_ref(), DeValue::Array(a) if a.is_empty()));
        if is_empty || servers.len() > SERVERS_MAX {
            let complaint =
                Complaint::new(span, format!("a route has 1 to {SERVERS_MAX} memcached servers"), "out of range");
            section.complaints().add(complaint.suggest("write memcached = [\"127.0.0.1:11211\"]"));
        }
    }
    let mode = section.read("mode", |node| choice(node, &MEMCACHED_MODES)).unwrap_or(MemcachedMode::Clean);
    let mut settings = MemcachedSettings::of(servers, mode);
    what_is_asked(section, &mut settings);
    who_is_asked(section, &mut settings);
    what_items_are(section, &mut settings);
    in_chunks(section, &mut settings);
    settings.named_types = named_types(section).map(Box::new);
    settings.tls = memcached_tls::read(section, &settings.servers);
    Some(settings)
}

fn set<T>(to: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *to = value;
    }
}

fn what_is_asked(section: &mut Section<'_>, settings: &mut MemcachedSettings) {
    set(&mut settings.commands, section.read_list("commands", command));
    set(&mut settings.key, section.read("key", joined_parts));
    for (key, part) in [
        ("command", &mut settings.command),
        ("value", &mut settings.value),
        ("flags", &mut settings.flags),
        ("exptime", &mut settings.exptime),
    ] {
        set(part, section.read(key, request_part));
    }
}

fn who_is_asked(section: &mut Section<'_>, settings: &mut MemcachedSettings) {
    set(&mut settings.hash, section.read("hash", |node| choice(node, &MEMCACHED_HASHES)));
    set(&mut settings.connect_timeout, section.read("connect_timeout", duration));
    set(&mut settings.reply_timeout, section.read("reply_timeout", duration));
    set(&mut settings.ejection_time, section.read("ejection_time", duration));
    let connections = section.read("max_connections", |node| whole(node, 1, CONNECTIONS_CEILING));
    set(&mut settings.connections_max, connections.map(|n| n as usize));
    let failures = section.read("ejection_failures", |node| whole(node, 1, u32::MAX.into()));
    set(&mut settings.ejection_failures, failures.map(|n| n as u32));
    if let Some(words) = section.read_list("next_server", next_server) {
        let any = |of: fn(&NextServer) -> bool| words.iter().any(of);
        settings.next_server = NextServer {
            error: any(|word| word.error),
            timeout: any(|word| word.timeout),
            invalid_response: any(|word| word.invalid_response),
            not_found: any(|word| word.not_found),
        };
    }
    settings.login = section.read("memcached_login", |node| {
        parsed(node, "login", "\"USER:PASSWORD\", as in the file that memcached -Y names", |written| {
            let (user, password) = written.split_once(':')?;
            let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_graphic());
            let is_login = is_word(user) && is_word(password) && written.len() <= 250;
            is_login.then(|| MemcachedLogin { user: user.to_owned(), password: password.to_owned() })
        })
    });
}

/// `chunk_bytes`, and what it makes of the other settings.
fn in_chunks(section: &mut Section<'_>, settings: &mut MemcachedSettings) {
    let bytes = section.read("chunk_bytes", |node| {
        let bytes = size(node)?;
        let top = MEMCACHED_CHUNK_BYTES_MAX as u64;
        let fits = (CHUNK_BYTES_MIN..=top).contains(&bytes).then_some(bytes as u32);
        let bounds = format!("must be {} to {}", show_size(CHUNK_BYTES_MIN), show_size(top));
        fits.ok_or_else(|| Complaint::new(node.span(), "the size of chunks is out of range", bounds))
    });
    let Some(bytes) = bytes else { return };
    settings.chunk_bytes = Some(bytes);
    match section.get("value_bytes_max") {
        None => settings.value_bytes_max = CHUNKED_VALUE_BYTES_MAX_DEFAULT,
        Some(node) => {
            let range = u64::from(bytes)..=u64::from(bytes) * u64::from(MEMCACHED_CHUNKS_MAX);
            if !range.contains(&(settings.value_bytes_max as u64)) {
                let (min, max) = (show_size(*range.start()), show_size(*range.end()));
                let what = "`value_bytes_max` does not go with `chunk_bytes`";
                section.complaints().add(Complaint::new(node.span(), what, format!("must be {min} to {max}")));
            }
        }
    }
    let adds = |command: &&MemcachedCommand| matches!(command, MemcachedCommand::Append | MemcachedCommand::Prepend);
    let adding = settings.commands.iter().find(adds).copied();
    match (adding, section.get("commands")) {
        (Some(_), Some(node)) => {
            let what = "`append` and `prepend` are not for values in chunks (chunk_bytes)";
            section.complaints().add(Complaint::new(node.span(), what, "one of them is offered here"));
        }
        // What the mode ships with, less these.
        (Some(_), None) => settings.commands.retain(|command| !adds(&command)),
        (None, _) => {}
    }
}

fn what_items_are(section: &mut Section<'_>, settings: &mut MemcachedSettings) {
    let bytes = section.read("value_bytes_max", |node| {
        let bytes = size(node)?;
        (1..=VALUE_BYTES_CEILING)
            .contains(&bytes)
            .then_some(bytes as usize)
            .ok_or_else(|| Complaint::new(node.span(), "the size of values is out of range", "must be 1 to 1GiB"))
    });
    set(&mut settings.value_bytes_max, bytes);
    set(&mut settings.coalesce, section.read("coalesce", switch));
    set(&mut settings.flags_as_time, section.read("flags_to_last_modified", switch));
    let flag = section.read("gzip_flag", |node| whole(node, 0, u32::MAX.into()));
    set(&mut settings.gzip_flag, flag.map(|n| n as u32));
    set(&mut settings.long_keys, section.read("long_keys", |node| choice(node, &LONG_KEYS)));
    let binary = section.read("binary_keys", |node| match (choice(node, &BINARY_KEYS)?, settings.mode) {
        (BinaryKeys::Base64, MemcachedMode::NginxMemc) => {
            let what = "keys in base64 are for the clean mode: the module escapes them";
            Err(Complaint::new(node.span(), what, "not with mode = \"nginx-memc\""))
        }
        (binary, _) => Ok(binary),
    });
    set(&mut settings.binary_keys, binary);
    settings.content_type = section.read("content_type", |node| {
        parsed(node, "media type", "such as \"text/plain; charset=utf-8\"", |written| {
            let is_value = written.contains('/') && written.bytes().all(|b| (b' '..=b'~').contains(&b));
            is_value.then(|| written.to_owned())
        })
    });
}

fn whole(node: Node<'_>, min: u64, max: u64) -> Result<u64, Complaint> {
    let number = count(node)?;
    let is_in = (min..=max).contains(&number);
    is_in.then_some(number).ok_or_else(|| {
        Complaint::new(node.span(), format!("{number} is out of range"), format!("must be {min} to {max}"))
    })
}

/// `HOST:PORT`, `HOST` or `unix:PATH`, and perhaps ` weight=N`.
fn server(node: Node<'_>) -> Result<MemcachedServer, Complaint> {
    let form = "HOST:PORT or unix:PATH, and a weight if need be: \"10.0.0.7:11211 weight=2\"";
    parsed(node, "memcached", form, |written| {
        let (place, weight) = match written.split_once(' ') {
            Some((place, rest)) => (place, rest.trim_start().strip_prefix("weight=")?.parse().ok()?),
            None => (written, 1),
        };
        (1..=WEIGHT_MAX).contains(&weight).then_some(())?;
        let address = match place.strip_prefix("unix:") {
            Some(path) => (!path.is_empty()).then(|| MemcachedAddress::Unix(PathBuf::from(path)))?,
            None => {
                let authority = Authority::parse(place.as_bytes(), Scheme::Http)?;
                let host = std::str::from_utf8(&authority.host).ok()?.to_owned();
                // 80 is HTTP's default, and left out of an authority.
                let port = if place.ends_with(":80") { 80 } else { authority.port.unwrap_or(PORT_DEFAULT) };
                MemcachedAddress::Tcp { host, port }
            }
        };
        Some(MemcachedServer { address, weight })
    })
}

fn command(node: Node<'_>) -> Result<MemcachedCommand, Complaint> {
    let written = text(node)?;
    MemcachedCommand::of(written.as_bytes()).ok_or_else(|| {
        let complaint = Complaint::new(node.span(), format!("`{written}` is no command"), "no such command");
        match nearest(written, MemcachedCommand::WORDS.iter().map(|(word, _)| *word)) {
            Some(meant) => complaint.suggest(format!("did you mean \"{meant}\"?")),
            None => complaint.suggest("such as commands = [\"get\", \"set\", \"delete\"]"),
        }
    })
}

fn request_part(node: Node<'_>) -> Result<RequestPart, Complaint> {
    let form = "\"path\", \"uri\", \"$arg_NAME\", \"$http_NAME\", \"$args\" or a text of its own";
    parsed(node, "part of a request", form, |written| match &parts(written)?[..] {
        [] => Some(RequestPart::Nothing),
        [RequestPart::Host] => None,
        [part] => Some(part.clone()),
        _ => None,
    })
}

/// The same, or several of them one after the other: `$uri?$args`.
fn joined_parts(node: Node<'_>) -> Result<RequestPart, Complaint> {
    let form = "\"path\", \"uri\", or a text with $uri, $args, $host, $arg_NAME and $http_NAME in it";
    parsed(node, "part of a request", form, |written| {
        let mut parts = parts(written)?;
        Some(match parts.len() {
            0 => RequestPart::Nothing,
            1 => parts.remove(0),
            _ => RequestPart::Joined(parts),
        })
    })
}

/// Variables and the texts between them.
fn parts(written: &str) -> Option<Vec<RequestPart>> {
    match written {
        "path" => return Some(vec![RequestPart::Path]),
        "uri" => return Some(vec![RequestPart::WholePath]),
        _ => {}
    }
    let (text, mut rest) = written.split_at(written.find('$').unwrap_or(written.len()));
    let fixed = |text: &str| (!text.is_empty()).then(|| RequestPart::Fixed(text.to_owned()));
    let mut parts: Vec<RequestPart> = fixed(text).into_iter().collect();
    while let Some(variable) = rest.strip_prefix('$') {
        let end = variable.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(variable.len());
        let (name, behind) = variable.split_at(end);
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        parts.push(match (name, name.strip_prefix("arg_"), name.strip_prefix("http_")) {
            ("uri", ..) => RequestPart::WholePath,
            ("args" | "query_string", ..) => RequestPart::Query,
            ("host", ..) => RequestPart::Host,
            (_, Some(name), _) => RequestPart::Argument(named(name)?),
            (_, _, Some(name)) => RequestPart::Field(named(name)?.to_lowercase().replace('_', "-")),
            _ => return None,
        });
        let (text, variable) = behind.split_at(behind.find('$').unwrap_or(behind.len()));
        parts.extend(fixed(text));
        rest = variable;
    }
    Some(parts)
}

fn next_server(node: Node<'_>) -> Result<NextServer, Complaint> {
    let off = NextServer::OFF;
    let words = [
        ("error", NextServer { error: true, ..off }),
        ("timeout", NextServer { timeout: true, ..off }),
        ("invalid_response", NextServer { invalid_response: true, ..off }),
        ("not_found", NextServer { not_found: true, ..off }),
        ("off", off),
    ];
    choice(node, &words)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::read as read_config;
    use super::*;

    #[test]
    fn a_route_to_memcached_says_who_has_what_and_what_may_be_asked() {
        let text = "[[route]]\npath = \"/mc\"\n\
                    memcached = [\"127.0.0.1:11211\", \"cache.example weight=3\", \"unix:/run/m.sock\"]\n\
                    mode = \"nginx-memc\"\ncommands = [\"get\", \"set\"]\nhash = \"nginx-consistent\"\nkey = \"$http_x_key\"\n\
                    command = \"$arg_c\"\nvalue = \"\"\nflags = \"7\"\nnext_server = [\"error\", \"not_found\"]\n\
                    reply_timeout = \"200ms\"\nvalue_bytes_max = \"2MiB\"\nmemcached_login = \"u:p\"\n";
        let settings = &read_config(text).unwrap().settings.memcached[0];
        let address = |host: &str| MemcachedAddress::Tcp { host: host.to_owned(), port: 11_211 };
        let servers: Vec<_> = settings.servers.iter().map(|s| (s.address.clone(), s.weight)).collect();
        let unix = MemcachedAddress::Unix(PathBuf::from("/run/m.sock"));
        assert_eq!(servers, [(address("127.0.0.1"), 1), (address("cache.example"), 3), (unix, 1)]);
        assert_eq!(settings.mode, MemcachedMode::NginxMemc);
        assert_eq!(settings.commands, [MemcachedCommand::Get, MemcachedCommand::Set]);
        assert_eq!(settings.key, RequestPart::Field("x-key".to_owned()));
        assert_eq!(settings.flags, RequestPart::Fixed("7".to_owned()));
        assert_eq!(settings.next_server, NextServer { error: true, not_found: true, ..NextServer::OFF });
        assert_eq!((settings.value_bytes_max, settings.reply_timeout.as_millis()), (2 << 20, 200));
    }

    #[test]
    fn a_key_may_be_of_several_parts() {
        let key = |written: &str| {
            let text = format!("[[route]]\nmemcached = \"a\"\nkey = \"{written}\"\n");
            read_config(&text).unwrap().settings.memcached[0].key.clone()
        };
        let fixed = |text: &str| RequestPart::Fixed(text.to_owned());
        assert_eq!(key("uri"), RequestPart::WholePath);
        assert_eq!(key("$uri"), RequestPart::WholePath);
        assert_eq!(key(""), RequestPart::Nothing);
        assert_eq!(key("plain"), fixed("plain"));
        let joined = vec![RequestPart::WholePath, fixed("?"), RequestPart::Query];
        assert_eq!(key("$uri?$args"), RequestPart::Joined(joined));
        let joined = vec![fixed("ns:"), RequestPart::Argument("k".to_owned()), fixed(":v1")];
        assert_eq!(key("ns:$arg_k:v1"), RequestPart::Joined(joined));
    }

    #[test]
    fn values_in_chunks_may_be_larger_and_are_not_appended_to() {
        let read = |more: &str| {
            let text = format!("[[route]]\nmemcached = \"a\"\nchunk_bytes = \"500KiB\"\n{more}\n");
            read_config(&text).unwrap().settings.memcached[0].clone()
        };
        assert_eq!((read("").chunk_bytes, read("").value_bytes_max), (Some(500 << 10), 64 << 20));
        assert_eq!(read("value_bytes_max = \"1GiB\"").value_bytes_max, 1 << 30);
        let memc = read("mode = \"nginx-memc\"").commands;
        assert!(memc.len() == 10 && !memc.contains(&MemcachedCommand::Append), "{memc:?}");
    }

    /// What is said of a route.
    pub fn check(route: &str, expect: &str) {
        let wrong = read_config(&format!("[[route]]\n{route}\n")).unwrap_err();
        let said: Vec<_> = wrong.iter().map(|complaint| complaint.what.as_str()).collect();
        assert_eq!(said, [expect], "{route}");
    }

    #[test]
    fn what_cannot_be_is_said() {
        check("memcached = []", "a route has 1 to 256 memcached servers");
        check("memcached = \"unix:\"", "`unix:` is no memcached");
        check("memcached = \"a:99999\"", "`a:99999` is no memcached");
        check("memcached = \"a weight=0\"", "`a weight=0` is no memcached");
        check("memcached = \"a\"\ncommands = [\"gett\"]", "`gett` is no command");
        check("memcached = \"a\"\nkey = \"$uri_x\"", "`$uri_x` is no part of a request");
        check("memcached = \"a\"\ntypes = { html = \"x\" }", "`x` is no media type");
        check("memcached = \"a\"\nlisting = \"html\"", "`listing` is for routes with a root");
        check("memcached = \"a\"\nkey = \"$\"", "`$` is no part of a request");
        check("memcached = \"a\"\nflags = \"$uri$args\"", "`$uri$args` is no part of a request");
        check("memcached = \"a\"\nchunk_bytes = 100", "the size of chunks is out of range");
        check("memcached = \"a\"\nchunk_bytes = \"9MiB\"", "the size of chunks is out of range");
        check(
            "memcached = \"a\"\nchunk_bytes = \"1KiB\"\nvalue_bytes_max = \"1GiB\"",
            "`value_bytes_max` does not go with `chunk_bytes`",
        );
        check(
            "memcached = \"a\"\nchunk_bytes = \"1MiB\"\ncommands = [\"get\", \"append\"]",
            "`append` and `prepend` are not for values in chunks (chunk_bytes)",
        );
        check(
            "memcached = \"a\"\nmode = \"nginx-memc\"\nbinary_keys = \"base64\"",
            "keys in base64 are for the clean mode: the module escapes them",
        );
        check("memcached = \"a\"\nmemcached_login = \"nobody\"", "`nobody` is no login");
        check("memcached = \"a\"\nvalue_bytes_max = 0", "the size of values is out of range");
        check("root = \"/a\"\nhash = \"ketama\"", "`hash` is for routes to memcached");
    }
}
