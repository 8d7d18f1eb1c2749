//! What each section of larder.toml may say, one function a section.

use std::net::{IpAddr, SocketAddr};

use acme::NameSet;
use cache::{Admission, DiskFile};
use proxy::settings::{
    ListenAddress, ListenMode, ListenerSettings, NamePattern, OriginSettings, PolicySettings, ResolverSettings,
    Settings,
};
use toml::de::DeValue;

use super::choices::{EVICTIONS, LISTEN_MODES, LOG_FORMATS};
use super::complaint::Complaint;
use super::keys;
use super::literal;
use super::origin_balance;
use super::route_words::{self, ForAll};
use super::section::{
    Node, Section, choice, count, duration, host_field, is_table, kind, network, parsed, path, size, switch, text,
    whole,
};
use crate::acme_plan::AcmeSettings;
use crate::addresses::{meant_origin, parse_listen};
use crate::limits::DISK_SENDFILE_MIN;
use crate::plan::{LogTarget, Plan, check_disk, check_memory, https_port_of, origin_with_defaults};
use crate::tls_files::TlsFiles;
use crate::varnish_parameters;

/// What all `[[listen]]` come to.
#[derive(Default)]
pub struct Listeners {
    pub settings: Vec<ListenerSettings>,
    pub tls_files: Vec<(ListenAddress, TlsFiles)>,
    /// The names for which certificates are ordered.
    pub ordered: Vec<NameSet>,
}

/// `[[listen]]`
pub fn listeners(sections: Vec<Section<'_>>, acme: Option<&AcmeSettings>) -> Listeners {
    let mut listeners: Vec<ListenerSettings> = Vec::new();
    let (mut tls_files, mut ordered) = (Vec::new(), Vec::new());
    for mut section in sections {
        let address = section.read("address", |node| {
            let written = address_text(node)?;
            let address = parse_listen(written)
                .map_err(|why| Complaint::new(node.span(), format!("larder cannot listen on `{written}`"), why))
                // Whose port stands in a key of its own is told by that.
                .map_err(|complaint| complaint.following_from(&["address"]))?;
            // Port 0 is another one each time.
            let picks_a_port = matches!(address, ListenAddress::Tcp(tcp) if tcp.port() == 0);
            match !picks_a_port && listeners.iter().any(|l| l.address == address) {
                true => {
                    Err(Complaint::new(node.span(), format!("`{written}` is listened on twice"), "the second time"))
                }
                false => Ok(address),
            }
        });
        let mode = listen_mode(&mut section);
        let proxy_protocol = section.read("proxy_protocol", switch).unwrap_or(false);
        let tls = super::listen_tls::read(&mut section, mode, acme);
        let h2c = section.read("h2c", switch).unwrap_or(false);
        section.require("address", "write address = \"127.0.0.1:8080\"");
        if let Some(address) = address {
            let tls = tls.map(|(files, tls, sets)| {
                tls_files.push((address.clone(), files));
                ordered.extend(sets);
                tls
            });
            // Where that is not said, it is known when all are.
            let mode = mode.unwrap_or(ListenMode::Redirect { https_port: 0 });
            listeners.push(ListenerSettings { proxy_protocol, mode, tls, h2c, ..ListenerSettings::at(address) });
        }
        section.end();
    }
    let https_port = https_port_of(&listeners);
    for listener in &mut listeners {
        if listener.mode == (ListenMode::Redirect { https_port: 0 }) {
            listener.mode = ListenMode::Redirect { https_port };
        }
    }
    // Two addresses may show the same.
    let mut sets: Vec<NameSet> = Vec::new();
    ordered.into_iter().for_each(|set| {
        if !sets.contains(&set) {
            sets.push(set)
        }
    });
    Listeners { settings: listeners, tls_files, ordered: sets }
}

/// An address. What is only a port needs one of two, and says which.
pub fn address_text<'a>(node: Node<'a>) -> Result<&'a str, Complaint> {
    text(node).map_err(|complaint| match node.get_ref() {
        DeValue::Integer(port) => complaint.suggest(match port.as_str().parse::<u16>() {
            Ok(port) => format!("write \"127.0.0.1:{port}\" for this machine only, \"*:{port}\" for all"),
            Err(_) => {
                "a port is 1 to 65535: write \"127.0.0.1:8080\" for this machine only, \"*:80\" for all".to_owned()
            }
        }),
        DeValue::Array(items) if items.len() > 1 => complaint.suggest("write a [[listen]] for each address"),
        _ => complaint,
    })
}

/// `None`: it redirects to the port of the first listener that speaks TLS.
fn listen_mode(section: &mut Section<'_>) -> Option<ListenMode> {
    let mode = section.read("mode", |node| choice(node, &LISTEN_MODES)).unwrap_or(Some(ListenMode::Accelerate));
    let port = section.read("https_port", |node| {
        let port = u16::try_from(count(node)?).ok().filter(|&port| port > 0 && mode.is_none());
        let why = "a port, 1 to 65535, of a [[listen]] with mode = \"redirect\"";
        port.ok_or_else(|| Complaint::new(node.span(), "no such port can be redirected to", why))
    });
    mode.or(port.map(|https_port| ListenMode::Redirect { https_port }))
}

/// `[origin.NAME]`
pub fn origins(top: &mut Section<'_>) -> Vec<OriginSettings> {
    if let Some(node) = top.get("origin").filter(|node| !is_table(node)) {
        top.complaints().add(no_table_of_origins(node));
        return Vec::new();
    }
    let Some(all) = top.section("origin") else { return Vec::new() };
    let mut entries: Vec<_> = all.entries().collect();
    entries.sort_by_key(|(_, span, _)| span.start);
    let read = |(name, span, node): (&str, _, Node<'_>)| {
        let label = format!("origin.{name}");
        // `[origin]` itself has the keys of one.
        let is_key = ["url", "address", "addr"].contains(&name)
            || keys::at("origin.NAME").is_some_and(|section| section.key(name).is_some());
        if is_key && !is_table(node) {
            let complaint = Complaint::new(node.span(), format!("`{name}` is said of no origin"), "which one is it?");
            let complaint =
                complaint.of_key("origin").suggest("write [origin.site], or another name, in place of [origin]");
            all.complaints().add(complaint);
            return None;
        }
        if name.trim().is_empty() || name.chars().any(char::is_control) {
            let complaint = Complaint::new(span, "an origin needs a name", "this is none").of_key("origin");
            all.complaints().add(complaint.suggest("write [origin.site], or another name"));
            return None;
        }
        if let Some(complaint) = no_origin(node, &label) {
            all.complaints().add(complaint);
            return None;
        }
        origin(all.section_of(node, format!("[{label}]"))?, name)
    };
    entries.into_iter().filter_map(read).collect()
}

/// What stands in place of the table of all origins: `[[origin]]`, an address, or a list of addresses.
fn no_table_of_origins(node: Node<'_>) -> Complaint {
    let DeValue::Array(items) = node.get_ref() else { return mere_address(node, node, "origin", "origin.site") };
    let Some(first) = items.iter().find_map(|item| match item.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }) else {
        return mere_address(node, items.first().unwrap_or(node), "origin", "origin.site");
    };
    // Some say the name as they would say it of a route.
    let named = first.get("name").and_then(|name| match name.get_ref() {
        DeValue::String(name) => Some(literal::key(name)),
        _ => None,
    });
    let complaint = Complaint::new(node.span(), "an origin is no item of a list: it has a name", "[[origin]] has none");
    complaint.of_key("origin").suggest(match named {
        Some(name) => format!("write [origin.{name}] in place of [[origin]], and no `name` below it"),
        None => "write [origin.site] in place of [[origin]], and another name for each other one".to_owned(),
    })
}

/// What stands in place of the table of one origin.
fn no_origin(node: Node<'_>, label: &str) -> Option<Complaint> {
    match node.get_ref() {
        DeValue::Table(_) => None,
        DeValue::Array(items) if items.len() > 1 && items.iter().all(is_table) => {
            let what = format!("there are several [[{label}]]");
            let complaint = Complaint::new(node.span(), what, "one origin has all addresses that share its load");
            Some(complaint.of_key("origin").suggest(format!("write [{label}] once, with urls = [\"URL\", \"URL\"]")))
        }
        DeValue::Array(items) if items.iter().any(is_table) => None,
        DeValue::Array(items) => Some(mere_address(node, items.first().unwrap_or(node), label, label)),
        _ => Some(mere_address(node, node, label, label)),
    }
}

/// An address in place of the section that has it.
fn mere_address(node: Node<'_>, address: Node<'_>, label: &str, section: &str) -> Complaint {
    let what = format!("[{label}] must be a table, but this is {}", kind(node.get_ref()));
    let complaint = Complaint::new(node.span(), what, "a table of keys was expected").of_key("origin");
    let url = match address.get_ref() {
        DeValue::String(written) => meant_origin(written),
        DeValue::Integer(port) => meant_origin(port.as_str()),
        _ => None,
    };
    let url = url.unwrap_or_else(|| "http://HOST:PORT".to_owned());
    complaint.suggest(format!("write [{section}] on a line of its own, and below it urls = [\"{url}\"]"))
}

fn origin(mut section: Section<'_>, name: &str) -> Option<OriginSettings> {
    let urls = section.read_list("urls", origin_balance::url);
    let (urls, fastcgi) = match super::fastcgi_section::of_origin(&mut section) {
        Some((urls, fastcgi)) => (Some(urls.into_iter().map(|url| (url, Default::default())).collect()), Some(fastcgi)),
        None => (urls, None),
    };
    let has_none = urls.as_ref().is_some_and(Vec::is_empty);
    let (urls, shares) = urls.unwrap_or_default().into_iter().unzip();
    let mut origin = origin_with_defaults(name.to_owned(), urls);
    origin.fastcgi = fastcgi;
    connection_words(&mut section, &mut origin);
    origin.host = section.read("host", host_field);
    origin.balance = origin_balance::balance(&mut section, shares);
    origin.probe = origin_balance::probe(&mut section, origin.host.as_deref(), &origin.urls);
    origin.retries = origin_balance::retries(&mut section);
    origin.tls = super::origin_tls::read(&mut section, &origin.urls);
    origin.http2 = super::origin_protocol::read(&mut section, &origin.urls);
    origin.timeouts = super::timeout_words::of_origin(&mut section);
    if section.get("fastcgi").is_none() {
        section.require_among("urls", &["urls", "fastcgi"], "write urls = [\"http://127.0.0.1:3000\"]");
    }
    if has_none && section.get("urls").is_some_and(is_empty_list) {
        let span = section.get("urls").map_or(section.span(), |node| node.span());
        section.complaints().add(Complaint::new(span, format!("the origin `{name}` has no address"), "an empty list"));
    }
    section.end();
    Some(origin)
}

/// How many connections there are to it, who waits for one, and who is left out for failures.
pub fn connection_words(section: &mut Section<'_>, origin: &mut OriginSettings) {
    if let Some(n) = section.read("max_connections", at_least_one) {
        origin.connections_max = n;
    }
    if let Some(n) = section.read("queue_max", whole) {
        origin.queue_max = n;
    }
    if let Some(time) = section.read("queue_timeout", duration) {
        origin.queue_timeout = time;
    }
    if let Some(n) = section.read("ejection_failures", at_least_one) {
        origin.ejection_failures = n;
    }
    if let Some(time) = section.read("ejection_time", duration) {
        origin.ejection_time = time;
    }
}

fn is_empty_list(node: Node<'_>) -> bool {
    matches!(node.get_ref(), DeValue::Array(items) if items.is_empty())
}

/// `[memory]`
pub fn memory(mut section: Section<'_>, settings: &mut Settings) {
    let bytes = section.read("size", |node| {
        check_memory(size(node)?)
            .map_err(|why| Complaint::new(node.span(), why, "too small").suggest("such as size = \"512MiB\""))
    });
    if let Some(bytes) = bytes {
        settings.memory_bytes_max = bytes;
    }
    if let Some(eviction) = section.read("eviction", |node| choice(node, &EVICTIONS)) {
        settings.eviction = eviction;
    }
    section.end();
}

/// `[[disk]]`
pub fn disks(sections: Vec<Section<'_>>) -> Vec<DiskFile> {
    sections.into_iter().filter_map(disk).collect()
}

fn disk(mut section: Section<'_>) -> Option<DiskFile> {
    section.require("path", "path = \"/var/cache/larder\"");
    section.require("size", "size = \"10GiB\"");
    let file = section.read("path", |node| parsed(node, "path", "a file, or a directory that it is made in", path));
    let bytes = section.read("size", |node| {
        check_disk(size(node)?)
            .map_err(|why| Complaint::new(node.span(), why, "too small").suggest("such as size = \"10GiB\""))
    });
    section.end();
    Some(DiskFile { path: file?, bytes: bytes? })
}

/// `[store]`
pub fn store(mut section: Section<'_>, plan: &mut Plan) {
    let from = section.read("disk_at_once_min", size).unwrap_or(1);
    let to = section.read("disk_at_once_max", size).unwrap_or(0);
    let kinds = [("all", Admission::All), ("second-fetch", Admission::SecondFetch { at_once: (from, to) })];
    if let Some(admission) = section.read("disk_admission", |node| choice(node, &kinds)) {
        plan.disk_admission = admission;
    }
    let leases_from = section.read("disk_sendfile_min", size).unwrap_or(DISK_SENDFILE_MIN);
    plan.disk_leases_from = section.read("disk_sendfile", switch).unwrap_or(false).then_some(leases_from);
    section.end();
}

/// `[policy]`; what it says of all routes is returned.
pub fn policy(mut section: Section<'_>, plan: &mut Plan) -> ForAll {
    if let Some(file) = section.read("vcl", |node| parsed(node, "VCL file", "a path", path)) {
        plan.vcl_file = Some(file);
    }
    if let Some(folders) = section.read_list("vcl_path", |node| parsed(node, "folder", "a path", path)) {
        plan.vcl_path = folders;
    }
    for (name, _) in varnish_parameters::all().filter(|(name, _)| *name != "vcl_path") {
        section.read(name, |node| {
            let (span, written) = (node.span(), as_written(node)?);
            varnish_parameters::set(plan, name, written)
                .map_err(|why| Complaint::new(span, format!("the value of `{name}` is wrong"), why))
        });
    }
    let has_program = plan.vcl_file.is_some();
    let words = section.read_as("route", |section| {
        if has_program {
            route_words::check_beside_program(section);
        }
        route_words::read(section, &plan.settings.origins)
    });
    let ignored = builtin_policy(section, &mut plan.settings.policy);
    ForAll { words: words.ignoring(ignored), has_program }
}

/// A parameter as it would stand behind `-p`.
fn as_written<'a>(node: Node<'a>) -> Result<&'a str, Complaint> {
    match node.get_ref() {
        DeValue::Integer(number) => Ok(number.as_str()),
        DeValue::Float(number) => Ok(number.as_str()),
        DeValue::Boolean(on) => Ok(if *on { "on" } else { "off" }),
        _ => text(node),
    }
}

/// Returns the parameters that `ignore_query` names.
fn builtin_policy(mut section: Section<'_>, policy: &mut PolicySettings) -> Vec<NamePattern> {
    if let Some(networks) = section.read_list("purge_from", network) {
        policy.purge_from = networks;
    }
    if let Some(on) = section.read("honour_client_cache_control", switch) {
        policy.honour_client_cache_control = on;
    }
    if let Some(on) = section.read("share_set_cookie", switch) {
        policy.share_set_cookie = on;
    }
    if let Some(on) = section.read("share_by_max_age", switch) {
        policy.share_by_max_age = on;
    }
    policy.ignore_tracking = section.read("ignore_tracking", switch);
    let ignored = route_words::names(&mut section, "ignore_query", "query parameter").unwrap_or_default();
    if let Some(percent) = section.read("heuristic_percent", |node| {
        let percent = count(node)?;
        u32::try_from(percent).ok().filter(|p| *p <= 100).ok_or_else(|| {
            Complaint::new(node.span(), format!("{percent} is out of range"), "must be 0 to 100 (per cent)")
        })
    }) {
        policy.heuristic_percent = percent;
    }
    for (key, slot) in [
        ("heuristic_max", &mut policy.heuristic_max),
        ("uncacheable", &mut policy.uncacheable),
        ("keep", &mut policy.keep),
    ] {
        if let Some(time) = section.read(key, duration) {
            *slot = time;
        }
    }
    section.end();
    ignored
}

/// `[log]`
pub fn log(mut section: Section<'_>, plan: &mut Plan) {
    plan.log = section.read("path", |node| {
        parsed(node, "path", "a file, or \"-\" for standard output", |path| {
            (!path.is_empty()).then(|| LogTarget::parse(path))
        })
    });
    if let Some(format) = section.read("format", |node| choice(node, &LOG_FORMATS)) {
        plan.settings.log_format = format;
    }
    section.require("path", "write path = \"/var/log/larder/access.log\", or path = \"-\" for standard output");
    section.end();
}

/// `[resolver]`
pub fn resolver(mut section: Section<'_>, resolver: &mut ResolverSettings) {
    if let Some(servers) = section.read_list("servers", |node| {
        parsed(node, "name server", "an IP address, with a port if it is not 53", name_server)
    }) {
        resolver.servers = servers;
    }
    if let Some(hosts) = section.section("hosts") {
        for (name, _, node) in hosts.entries() {
            let addresses = addresses_of(node, &hosts);
            resolver.hosts.push((name.to_ascii_lowercase(), addresses));
        }
    }
    section.end();
}

fn addresses_of(node: Node<'_>, hosts: &Section<'_>) -> Vec<IpAddr> {
    let read = |node| {
        let address =
            parsed(node, "IP address", "such as 192.0.2.7 or [2001:db8::7] without brackets", |t| t.parse().ok());
        address.map_err(|complaint| hosts.complaints().add(complaint)).ok()
    };
    match node.get_ref() {
        DeValue::Array(items) => items.iter().filter_map(read).collect(),
        _ => read(node).into_iter().collect(),
    }
}

fn name_server(written: &str) -> Option<SocketAddr> {
    let with_default_port = |ip: IpAddr| SocketAddr::new(ip, 53);
    written.parse().ok().or_else(|| written.parse().ok().map(with_default_port))
}

fn at_least_one<T: TryFrom<u64>>(node: Node<'_>) -> Result<T, Complaint> {
    match count(node)? {
        0 => Err(Complaint::new(node.span(), "0 is out of range", "must be at least 1")),
        _ => whole(node),
    }
}
