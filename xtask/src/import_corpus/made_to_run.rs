//! A published nginx configuration made to run here, once for larder and once for the real nginx: files beneath one folder, stubs
//! in the place of all origins, users with a known password. For nginx each place to listen becomes a port of the loopback
//! without TLS, and every location writes its line into the log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::import_corpus::directive_text::{Directive, change};
use crate::import_corpus::stub_origins::{Speaks, StubOrigins};
use crate::ports;

/// Nobody listens there: what is asked by another protocol than HTTP and FastCGI is not answered.
const NOBODY: &str = "127.0.0.1:9";

/// Of the whole process, and of no use here.
const OF_THE_PROCESS: [&str; 17] = [
    "user",
    "pid",
    "daemon",
    "worker_processes",
    "worker_rlimit_nofile",
    "worker_priority",
    "worker_cpu_affinity",
    "events",
    "load_module",
    "error_log",
    "pcre_jit",
    "env",
    "thread_pool",
    "stream",
    "mail",
    "rtmp",
    "timer_resolution",
];

/// What nginx alone would need something for that is not here, by the beginnings of names.
const NOT_FOR_NGINX: [&str; 11] = [
    "ssl_",
    "http2",
    "http3",
    "access_log",
    "error_log",
    "log_format",
    "resolver",
    "limit_req",
    "limit_conn",
    "quic",
    "proxy_ssl_",
];

/// A configuration's directives within `http { }`, with its places changed.
pub struct MadeToRun {
    pub http: Vec<Directive>,
    /// Folders that need files, relative to the run's.
    pub roots: BTreeSet<String>,
    pub servers: Vec<PublishedServer>,
}

/// What is asked of a server.
#[derive(Clone, Debug, Default)]
pub struct PublishedServer {
    pub hosts: Vec<String>,
    /// As they are written: `*:80`.
    pub listens: Vec<String>,
    /// The words of its locations.
    pub locations: Vec<Vec<String>>,
}

/// Where everything is in this run.
pub struct Here<'a> {
    pub folder: &'a Path,
    pub stubs: &'a mut StubOrigins,
}

/// Takes the whole configuration apart, and leads all of its places to here.
pub fn made_to_run(all: Vec<Directive>, here: &mut Here<'_>) -> Result<MadeToRun, String> {
    let mut http = http_of(all);
    let servers = http.iter().filter(|directive| directive.name() == "server").map(PublishedServer::of).collect();
    put_constants_in(&mut http, &[]);
    let has_own = http.iter().any(|directive| directive.name() == "ssl_certificate");
    http.iter_mut().filter(|directive| directive.name() == "server" && !has_own).for_each(certify);
    here.stubs.guard(guarded_paths(&http));
    let groups = Groups::of(&http);
    let mut roots = BTreeSet::new();
    let mut failed = None;
    change(&mut http, &[], &mut |directive, around| {
        let is_of_group = around.last().is_some_and(|name| name == "upstream");
        if !is_of_group {
            let led = lead(directive, &groups, &mut roots, here);
            failed = failed.take().or(led.err());
        }
        true
    });
    if roots.is_empty() {
        roots.insert("html".to_owned());
    }
    match failed {
        Some(error) => Err(format!("a stub: {error}")),
        None => Ok(MadeToRun { http, roots, servers }),
    }
}

/// What services are asked for that say who may come in: `auth_request` leads to a location, and that to a service.
fn guarded_paths(http: &[Directive]) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for server in http.iter().filter(|directive| directive.name() == "server") {
        let mut asked = BTreeSet::new();
        server.walk(&mut |directive| {
            if directive.name() == "auth_request" && directive.word(1).starts_with('/') {
                asked.insert(directive.word(1).to_owned());
            }
        });
        paths.extend(asked.iter().map(|path| path_at_service(server, path)));
    }
    paths
}

/// The path at the origin of the location with the longest beginning of this one, or of it alone.
fn path_at_service(server: &Directive, path: &str) -> String {
    let mut best: Option<(&str, &str)> = None;
    for location in server.children().iter().filter(|child| child.name() == "location") {
        let begins = location.words.last().map_or("", String::as_str);
        let is_longer = best.is_none_or(|(known, _)| begins.len() > known.len());
        let pass = location.children().iter().find(|child| child.name() == "proxy_pass");
        if let (true, true, Some(pass)) = (path.starts_with(begins), is_longer, pass) {
            best = Some((begins, pass.word(1)));
        }
    }
    let Some((begins, pass)) = best else { return path.to_owned() };
    let uri = pass.split_once("://").and_then(|(_, rest)| Some(&rest[rest.find('/')?..]));
    let uri = uri.map(|uri| uri.split(['?', '$']).next().unwrap_or_default()).filter(|uri| !uri.is_empty());
    uri.map_or(path.to_owned(), |uri| format!("{uri}{}", &path[begins.len()..]))
}

/// What is or would be within `http { }`.
fn http_of(all: Vec<Directive>) -> Vec<Directive> {
    let mut inside = Vec::new();
    let mut loose = Vec::new();
    for directive in all {
        match directive.name() {
            "http" => inside.extend(directive.block.unwrap_or_default()),
            name if OF_THE_PROCESS.contains(&name) => {}
            _ => loose.push(directive),
        }
    }
    if inside.is_empty() && !loose.iter().any(|directive| directive.name() == "server") {
        loose = vec![Directive::block_of("server", loose)];
    }
    inside.extend(loose);
    inside
}

impl PublishedServer {
    fn of(server: &Directive) -> PublishedServer {
        let mut found = PublishedServer::default();
        let mut locations = Vec::new();
        for directive in server.children() {
            match directive.name() {
                "server_name" => {
                    let names = (1..directive.words.len()).filter_map(|at| host_of(directive.word(at)));
                    found.hosts.extend(names);
                }
                "listen" => found.listens.extend(listen_of(directive.word(1)).filter(|_| !has(directive, "quic"))),
                _ => {}
            }
            directive.walk(&mut |inner| {
                if inner.name() == "location" {
                    locations.push((1..inner.words.len()).map(|at| inner.word(at).to_owned()).collect());
                }
            });
        }
        found.locations = locations;
        if found.listens.is_empty() {
            found.listens.push("*:80".to_owned());
        }
        found.listens.sort();
        found.listens.dedup();
        found
    }
}

fn has(directive: &Directive, word: &str) -> bool {
    directive.words.iter().any(|other| other == word)
}

/// A name that a client may ask for.
fn host_of(name: &str) -> Option<String> {
    match name {
        "_" | "" => None,
        name if name.starts_with('~') || name.contains(['$', '<', '{', '%']) => None,
        name => Some(name.trim_start_matches('.').replacen("*.", "any.", 1).replace(".*", ".test").to_lowercase()),
    }
}

/// One place for all addresses of a port.
fn listen_of(written: &str) -> Option<String> {
    let (host, port) = match written.rsplit_once(':') {
        _ if written.starts_with("unix:") => return None,
        _ if written.bytes().all(|byte| byte.is_ascii_digit()) => ("*", written),
        Some((host, port)) if !port.contains(']') => (host, port),
        _ => (written, "80"),
    };
    let host = if ["[::]", "0.0.0.0", "*"].contains(&host) { "*" } else { host };
    Some(format!("{host}:{port}"))
}

/// Certificates are often in files of their own, which are nobody's to publish.
fn certify(server: &mut Directive) {
    let is_secure = server.children().iter().any(|directive| directive.name() == "listen" && has(directive, "ssl"));
    let has = |name: &str| server.children().iter().any(|directive| directive.name() == name);
    let missing = ["ssl_certificate", "ssl_certificate_key"].into_iter().filter(|name| is_secure && !has(name));
    let missing: Vec<Directive> = missing.map(|name| Directive::of(&format!("{name} here"))).collect();
    server.block.iter_mut().for_each(|block| block.extend(missing.iter().cloned()));
}

/// Names of groups of servers, and those of names that something asks over FastCGI.
struct Groups {
    names: BTreeSet<String>,
    applications: BTreeSet<String>,
}

impl Groups {
    fn of(http: &[Directive]) -> Groups {
        let mut groups = Groups { names: BTreeSet::new(), applications: BTreeSet::new() };
        let mut see = |directive: &Directive| {
            let name = directive.word(1).to_owned();
            match directive.name() {
                "upstream" => drop(groups.names.insert(name)),
                "fastcgi_pass" => drop(groups.applications.insert(name)),
                _ => {}
            }
        };
        http.iter().for_each(|directive| directive.walk(&mut see));
        groups
    }
}

/// Who is asked stands there by itself: names that are no addresses would have to be looked up.
fn put_constants_in(all: &mut [Directive], around: &[(String, String)]) {
    let mut known = around.to_vec();
    for set in all.iter().filter(|directive| directive.name() == "set") {
        let value = known.iter().fold(set.word(2).to_owned(), |value, (name, text)| value.replace(name, text));
        if !value.contains('$') && !known.iter().any(|(name, _)| name == set.word(1)) {
            known.push((set.word(1).to_owned(), value));
        }
    }
    known.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    for directive in all {
        if directive.name().ends_with("_pass") || matches!(directive.name(), "root" | "alias") {
            for word in &mut directive.words[1..] {
                *word = known.iter().fold(std::mem::take(word), |word, (name, text)| word.replace(name, text));
            }
        }
        if let Some(block) = &mut directive.block {
            put_constants_in(block, &known);
        }
    }
}

/// The servers of a group. Their options stay. Which of them is asked is chosen anew for each request, by either side: all say the group's
/// name, but for those that are asked where the others fail.
fn lead_group(group: &mut Directive, groups: &Groups, here: &mut Here<'_>) -> std::io::Result<()> {
    let speaks = if groups.applications.contains(group.word(1)) { Speaks::FastCgi } else { Speaks::Http };
    let of_group = group.word(1).to_owned();
    for server in group.block.iter_mut().flatten().filter(|directive| directive.name() == "server") {
        let name = server.word(1).to_owned();
        let said = if has(server, "backup") { format!("{of_group}-backup") } else { of_group.clone() };
        server.words[1] =
            format!("127.0.0.1:{}", here.stubs.port_of_one(speaks, &format!("{of_group} {name}"), &said)?);
        server.words.retain(|word| word != "resolve");
    }
    Ok(())
}

fn lead(
    directive: &mut Directive,
    groups: &Groups,
    roots: &mut BTreeSet<String>,
    here: &mut Here<'_>,
) -> std::io::Result<()> {
    let first = directive.word(1).to_owned();
    let inside = |path: &str| format!("\"{}/roots{path}\"", here.folder.display());
    match directive.name() {
        "upstream" => lead_group(directive, groups, here)?,
        // An import has no names that end in a star, and what stands within would not be judged.
        "server_name" => directive.words.iter_mut().skip(1).for_each(|name| {
            if let Some(rest) = name.strip_suffix(".*") {
                *name = format!("{}.test", rest.trim_start_matches('~'));
            }
        }),
        "root" | "alias" if first.starts_with('/') => {
            directive.words[1] = inside(&first);
            let plain = first.split('$').next().unwrap_or_default();
            roots.insert(format!("roots{}", plain.trim_end_matches('/')));
        }
        "root" | "alias" if !first.contains('$') => drop(roots.insert(first.trim_end_matches('/').to_owned())),
        "fastcgi_param"
            if directive.word(2).starts_with('/') && matches!(&*first, "SCRIPT_FILENAME" | "DOCUMENT_ROOT") =>
        {
            let path = directive.word(2).to_owned();
            directive.words[2] = inside(&path);
            roots.extend(path.split_once('$').map(|(root, _)| format!("roots{}", root.trim_end_matches('/'))));
        }
        "auth_basic_user_file" => directive.words[1] = format!("{}/users", here.folder.display()),
        "ssl_certificate" => directive.words[1] = format!("{}/site.pem", here.folder.display()),
        "ssl_certificate_key" => directive.words[1] = format!("{}/site.key", here.folder.display()),
        "proxy_cache_path" | "fastcgi_cache_path" => {
            directive.words[1] = format!("{}/cache/{}", here.folder.display(), first.replace('/', "-"));
        }
        "fastcgi_pass" if !groups.names.contains(&first) => {
            directive.words[1] = format!("127.0.0.1:{}", here.stubs.port(Speaks::FastCgi, &first)?);
        }
        "uwsgi_pass" | "scgi_pass" | "memcached_pass" | "memc_pass" => directive.words[1] = NOBODY.to_owned(),
        "grpc_pass" => directive.words[1] = format!("grpc://{NOBODY}"),
        "proxy_pass" => lead_pass(directive, &first, groups, here)?,
        // Numbers of a second are judged elsewhere.
        "limit_req" => directive.words.retain(|word| !word.starts_with("burst=")),
        _ => {}
    }
    if directive.name() == "limit_req" {
        directive.words.push("burst=100000".to_owned());
    }
    Ok(())
}

/// `proxy_pass`, of an address; names of groups stay.
fn lead_pass(directive: &mut Directive, target: &str, groups: &Groups, here: &mut Here<'_>) -> std::io::Result<()> {
    let Some((_, rest)) = target.split_once("://") else { return Ok(()) };
    let (authority, uri) = match rest.strip_prefix("unix:") {
        Some(socket) => {
            let (path, uri) = socket.split_once(':').unwrap_or((socket, ""));
            (format!("unix:{path}"), uri)
        }
        None => {
            let end = rest.find('/').unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        }
    };
    let (authority, variables) = match authority.split_once('$') {
        // Where it leads is a client's word.
        Some(("", _)) => return Ok(()),
        Some((authority, behind)) => (authority.to_owned(), format!("${behind}")),
        None => (authority, String::new()),
    };
    let asked = match groups.names.contains(&authority) {
        true => authority,
        false => format!("127.0.0.1:{}", here.stubs.port(Speaks::Http, &authority)?),
    };
    directive.words[1] = format!("http://{asked}{variables}{uri}");
    Ok(())
}

/// The whole file for nginx, and the port of each place to listen.
pub struct ForNginx {
    pub all: Vec<Directive>,
    pub ports: BTreeMap<String, u16>,
}

/// nginx's copy, which says in its log which locations a request came to.
pub fn for_nginx(http: &[Directive], folder: &Path) -> Result<ForNginx, String> {
    let mut http = http.to_vec();
    let (mut ports, mut secure) = (BTreeMap::new(), BTreeSet::new());
    let mut failed = None;
    change(&mut http, &[], &mut |directive, _| {
        if directive.name() == "server" && directive.block.is_some() {
            failed = failed.take().or(listen(directive, &mut ports, &mut secure).err());
        }
        if matches!(directive.name(), "server" | "location") {
            let line = format!("\"${{corpus_line}} {}\"", directive.line);
            if let Some(block) = &mut directive.block {
                block.insert(
                    0,
                    Directive { words: vec!["set".into(), "$corpus_line".into(), line], ..Directive::default() },
                );
            }
        }
        directive.words.iter_mut().for_each(|word| *word = by_port(word));
        !NOT_FOR_NGINX.iter().any(|start| directive.name().starts_with(start))
    });
    if let Some(why) = failed {
        return Err(why);
    }
    let folder = folder.display();
    let mut inside: Vec<Directive> = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| Directive::of(&format!("{kind}_temp_path {folder}/tmp")))
        .collect();
    http.retain(|directive| !directive.name().ends_with("_temp_path"));
    inside.push(Directive::of("log_format corpus '$http_x_row|$corpus_line'"));
    inside.push(Directive::of(&format!("access_log {folder}/rows.log corpus")));
    for (variable, of_secure, of_others) in [("scheme", "https", "http"), ("https", "on", "\"\"")] {
        let ports = secure.iter().map(|port| Directive::of(&format!("{port} {of_secure}")));
        let values = ports.chain([Directive::of(&format!("default {of_others}"))]).collect();
        inside.push(Directive::block_of(&format!("map $server_port $corpus_{variable}"), values));
    }
    inside.extend(http);
    let mut all: Vec<Directive> = ["daemon off", "error_log stderr", "worker_processes 1"].map(Directive::of).into();
    all.push(Directive::of(&format!("pid {folder}/nginx.pid")));
    all.push(Directive::of("user root"));
    all.push(Directive::block_of("events", vec![Directive::of("worker_connections 512")]));
    all.push(Directive::block_of("http", inside));
    Ok(ForNginx { all, ports })
}

/// Where TLS is taken off, the port says what would have come by it.
fn by_port(word: &str) -> String {
    let (mut out, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once('$') {
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let (name, behind) = match after.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            Some((name, behind)) => (name, behind),
            None => after.split_at(end),
        };
        out.push_str(before);
        match name {
            // In conditions nginx takes no braces.
            "scheme" | "https" if behind.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') => {
                out.push_str(&format!("${{corpus_{name}}}"));
            }
            "scheme" | "https" => out.push_str(&format!("$corpus_{name}")),
            _ => out.push_str(&format!("${}", &after[..after.len() - behind.len()])),
        }
        rest = behind;
    }
    out + rest
}

/// A port of its own for each place, without TLS; which of them have it otherwise is told.
fn listen(server: &mut Directive, ports: &mut BTreeMap<String, u16>, secure: &mut BTreeSet<u16>) -> Result<(), String> {
    let Some(block) = &mut server.block else { return Ok(()) };
    let is_all_secure = block.iter().any(|directive| directive.name() == "ssl" && directive.word(1) == "on");
    let is_secure = |directive: &Directive| is_all_secure || has(directive, "ssl");
    let with_tls: BTreeSet<String> = {
        let listens = block.iter().filter(|directive| directive.name() == "listen" && is_secure(directive));
        listens.filter_map(|directive| listen_of(directive.word(1))).collect()
    };
    let mut listens: BTreeMap<String, bool> = BTreeMap::new();
    for directive in block.iter().filter(|directive| directive.name() == "listen" && !has(directive, "quic")) {
        let is_default = has(directive, "default_server") || has(directive, "default");
        if let Some(place) = listen_of(directive.word(1)) {
            *listens.entry(place).or_default() |= is_default;
        }
    }
    if listens.is_empty() {
        listens.insert("*:80".to_owned(), false);
    }
    block.retain(|directive| directive.name() != "listen");
    for (place, is_default) in listens {
        let port = match ports.get(&place) {
            Some(port) => *port,
            None => ports::free()?,
        };
        if with_tls.contains(&place) {
            secure.insert(port);
        }
        ports.insert(place, port);
        let default = if is_default { " default_server" } else { "" };
        block.insert(0, Directive::of(&format!("listen 127.0.0.1:{port}{default}")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_says_what_came_by_tls() {
        for (word, expect) in [
            ("$scheme://$host", "$corpus_scheme://$host"),
            ("${https}x", "${corpus_https}x"),
            ("$https_x$http_host$", "$https_x$http_host$"),
            ("^/a$", "^/a$"),
        ] {
            assert_eq!(by_port(word), expect);
        }
        let both = ["listen 80", "listen 443 ssl", "if ($scheme = http) {}"].map(Directive::of).into();
        let made = for_nginx(&[Directive::block_of("server", both)], Path::new("/x")).unwrap();
        let text = crate::import_corpus::directive_text::write(&mut made.all.clone());
        let port = made.ports["*:443"];
        assert!(
            text.contains(&format!("map $server_port $corpus_scheme {{\n{port} https;\ndefault http;\n}}")),
            "{text}"
        );
        assert!(text.contains("($corpus_scheme = http)"), "{text}");
    }

    #[test]
    fn a_service_is_asked_at_its_own_path() {
        let location = |head: &str, pass: &str| {
            Directive::block_of(&format!("location {head}"), vec![Directive::of(&format!("proxy_pass {pass}"))])
        };
        let path = |locations: Vec<Directive>| {
            let guarded = Directive::block_of("location /", vec![Directive::of("auth_request /in/auth")]);
            let all = locations.into_iter().chain([guarded]).collect();
            guarded_paths(&[Directive::block_of("server", all)])
        };
        let one = |path: &str| BTreeSet::from([path.to_owned()]);
        assert_eq!(path(vec![location("= /in/auth", "http://a")]), one("/in/auth"));
        assert_eq!(path(vec![location("/in/", "http://a/api/"), location("/", "http://b/")]), one("/api/auth"));
        assert_eq!(path(vec![location("/in/auth", "http://a/v?x=1")]), one("/v"));
    }
}
