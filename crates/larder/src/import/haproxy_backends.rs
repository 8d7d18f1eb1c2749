//! A backend of HAProxy's as an `[origin.NAME]`: whom it asks, by which rule, how it looks whether they are well, and how long it
//! waits.

use crate::import::haproxy_conf::HaproxySection;
use crate::import::haproxy_servers::{BackendServers, CertificateFolders};
use crate::import::haproxy_times::quoted_time;
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::limits::ORIGIN_RETRIES_MAX;

/// HAProxy's own numbers: so many checks in a row are good, or bad, before a server is taken for that.
const RISE_USUAL: u32 = 2;
const FALL_USUAL: u32 = 3;

/// Statuses of a good check where nothing is said.
const GOOD_STATUSES: [u16; 14] = [200, 201, 202, 203, 204, 205, 206, 300, 301, 302, 303, 304, 307, 308];

/// The keys of an origin. `None`: the backend can ask nobody, which has been said.
pub fn origin_lines(
    backend: &HaproxySection,
    host: Option<&str>,
    folders: &CertificateFolders,
    findings: &mut Findings,
) -> Option<Vec<String>> {
    let servers = BackendServers::read(&backend.lines, folders, findings)?;
    if servers.urls.is_empty() || servers.urls.iter().all(|url| url.ends_with(" backup")) {
        findings.leave(&backend.head, "closed: there is no server in it that larder could ask");
        return None;
    }
    let urls: Vec<String> = servers.urls.iter().map(|url| quoted(url)).collect();
    let mut lines = vec![format!("urls = [{}]", urls.join(", "))];
    lines.extend(host.map(|host| format!("host = {}", quoted(host))));
    lines.extend(servers.tls_line());
    if servers.is_http2 {
        lines.push("http2 = true".to_owned());
    }
    lines.extend(servers.max_connections().map(|max| format!("max_connections = {max}")));
    lines.extend(servers.slow_start.as_ref().map(|time| format!("slow_start = {time}")));
    lines.extend(balance_lines(backend, findings));
    lines.extend(sticky_line(backend, findings));
    lines.extend(waiting_lines(backend, findings));
    lines.extend(probe_line(backend, &servers, findings));
    Some(lines)
}

/// The last line of a name counts.
fn last<'a>(backend: &'a HaproxySection, name: &str) -> Option<&'a Directive> {
    backend.lines.iter().rev().find(|line| line.name == name)
}

fn balance_lines(backend: &HaproxySection, findings: &mut Findings) -> Vec<String> {
    let Some(line) = last(backend, "balance") else { return Vec::new() };
    let by = |by: &str| vec![format!("balance = \"{by}\"")];
    let hash = |of: &str| vec!["balance = \"hash\"".to_owned(), format!("hash = {}", quoted(of))];
    let word = line.argument(0);
    let inside = |name: &str| word.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    match word {
        "roundrobin" | "static-rr" | "" => Vec::new(),
        "leastconn" => by("least-conn"),
        "first" => by("first"),
        "source" => hash("client"),
        "uri" => hash("url"),
        word if word.starts_with("random") => by("two-choices"),
        _ => match inside("hdr").or(inside("req.hdr")) {
            Some(name) => hash(&format!("header:{name}")),
            None => {
                findings.leave(line, "servers take turns: larder has no such key");
                Vec::new()
            }
        },
    }
}

fn sticky_line(backend: &HaproxySection, findings: &mut Findings) -> Option<String> {
    for line in backend.lines.iter().filter(|line| line.name == "stick" || line.name == "persist") {
        findings.leave(line, "a client comes back to its server by a cookie (sticky_cookie) or a hash (balance)");
    }
    let line = last(backend, "cookie")?;
    if !line.arguments.iter().any(|word| word == "insert") {
        findings.leave(line, "a cookie of the application's own says nothing to larder: see sticky_cookie");
        return None;
    }
    findings.note(line, "larder's own cookie of this name: clients are told a server anew");
    Some(format!("sticky_cookie = {}", quoted(line.argument(0))))
}

fn waiting_lines(backend: &HaproxySection, findings: &mut Findings) -> Vec<String> {
    let timeout = |name: &str| {
        let is_it = |line: &&Directive| line.name == "timeout" && line.argument(0) == name;
        backend.lines.iter().rev().find(is_it).and_then(|line| quoted_time(line.argument(1)))
    };
    let (mut lines, mut waits) = (Vec::new(), Vec::new());
    waits.extend(timeout("connect").map(|time| format!("connect = {time}")));
    for key in ["first_byte", "between_bytes"] {
        waits.extend(timeout("server").map(|time| format!("{key} = {time}")));
    }
    if !waits.is_empty() {
        lines.push(format!("timeouts = {{ {} }}", waits.join(", ")));
    }
    lines.extend(timeout("queue").map(|time| format!("queue_timeout = {time}")));
    if let Some(line) = last(backend, "retries") {
        match line.argument(0).parse::<u32>() {
            Ok(retries) => lines.push(format!("retries = {}", retries.min(ORIGIN_RETRIES_MAX))),
            Err(_) => findings.leave(line, "no number"),
        }
    }
    if let Some(line) = last(backend, "retry-on") {
        findings.leave(line, "larder asks another server when one cannot be connected to: see retry_on");
    }
    lines
}

fn probe_line(backend: &HaproxySection, servers: &BackendServers, findings: &mut Findings) -> Option<String> {
    let is_check = |line: &&Directive| line.name == "option" && line.argument(0) == "httpchk";
    let Some(check) = backend.lines.iter().rev().find(is_check) else {
        if servers.is_checked {
            findings.note(
                &backend.head,
                "no connection is tried ahead: a server that fails is left out (ejection_failures)",
            );
        }
        return None;
    };
    if !servers.is_checked || servers.is_http2 || servers.urls.iter().any(|url| url.starts_with("h2://")) {
        return None;
    }
    let (mut path, mut host, mut expected) = ("/".to_owned(), None, GOOD_STATUSES.to_vec());
    match &check.arguments[1..] {
        [] => {}
        [uri] => path = uri.clone(),
        [_, uri, version @ ..] => {
            path = uri.clone();
            let version = version.join(" ").replace("\\r\\n", "\n");
            let named = |line: &str| line.to_lowercase().strip_prefix("host:").map(|name| name.trim().to_owned());
            host = version.lines().find_map(named);
        }
    }
    for line in backend.lines.iter().filter(|line| line.name == "http-check") {
        let behind =
            |name: &str| line.arguments.iter().position(|word| word == name).map(|at| line.argument(at + 1).to_owned());
        match line.argument(0) {
            "send" => {
                path = behind("uri").unwrap_or(path);
                let of_host =
                    line.arguments.windows(3).find(|words| words[0] == "hdr" && words[1].eq_ignore_ascii_case("host"));
                host = of_host.map(|words| words[2].clone()).or(host);
            }
            "expect" => match (line.argument(1) == "status").then(|| statuses(line.argument(2))).flatten() {
                Some(statuses) => expected = statuses,
                None => findings.leave(line, "a check is good by its status alone (probe.expected)"),
            },
            "disable-on-404" | "send-state" => findings.leave(line, "larder's probes do not say so"),
            _ => findings.leave(line, "larder's probe is one GET"),
        }
    }
    findings.note(check, "asked with GET, over a connection of its own");
    let (rise, fall) = (servers.rise.unwrap_or(RISE_USUAL).max(1), servers.fall.unwrap_or(FALL_USUAL).max(1));
    let window = (rise + fall - 1).min(64);
    let mut keys = vec![format!("path = {}", quoted(&path))];
    keys.extend(host.map(|host| format!("host = {}", quoted(&host))));
    keys.extend(servers.interval.as_ref().map(|time| format!("interval = {time}")));
    let statuses: Vec<String> = expected.iter().map(u16::to_string).collect();
    keys.push(format!("window = {window}, threshold = {}, expected = [{}]", rise.min(window), statuses.join(", ")));
    Some(format!("probe = {{ {} }}", keys.join(", ")))
}

/// `200`, `200,204` or `200-399`.
fn statuses(text: &str) -> Option<Vec<u16>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u16, u16) = (first.parse().ok()?, last.parse().ok()?);
        if !(100..=last).contains(&first) || last > 599 {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn check(lines: &[&str], expect: Option<&[&str]>, left: usize) {
        let all = ["server a 10.0.0.1:80"].iter().chain(lines).map(|line| directive(line)).collect();
        let backend =
            HaproxySection { kind: "backend".into(), name: "a".into(), head: directive("backend a"), lines: all };
        let mut findings = Findings::default();
        let lines = origin_lines(&backend, None, &CertificateFolders::default(), &mut findings);
        let keys = lines.as_ref().map(|lines| lines[1..].iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(keys.as_deref(), expect);
        assert_eq!(findings.left_count(), left, "{findings:?}");
    }

    #[test]
    fn a_backend_is_an_origin() {
        check(&["balance leastconn"], Some(&["balance = \"least-conn\""]), 0);
        check(&["balance hdr(X-A)"], Some(&["balance = \"hash\"", "hash = \"header:X-A\""]), 0);
        check(&["balance url_param a"], Some(&[]), 1);
        check(&["cookie SRV insert indirect nocache"], Some(&["sticky_cookie = \"SRV\""]), 0);
        check(&["cookie JSESSIONID prefix"], Some(&[]), 1);
        let waits = ["timeout connect 5s", "timeout server 1m", "timeout queue 500", "retries 3"];
        let keys = [
            "timeouts = { connect = \"5s\", first_byte = \"60s\", between_bytes = \"60s\" }",
            "queue_timeout = \"500ms\"",
            "retries = 3",
        ];
        check(&waits, Some(&keys), 0);
        check(&["server b b:80 send-proxy"], None, 1);
    }

    #[test]
    fn checks_are_probes() {
        let lines = [
            "default-server check inter 3s",
            "server b b:80 fall 5",
            "option httpchk GET /up",
            "http-check expect status 200-201",
        ];
        let probe = "probe = { path = \"/up\", interval = \"3s\", window = 6, threshold = 2, expected = [200, 201] }";
        check(&lines, Some(&[probe]), 0);
        check(&["server b b:80 check"], Some(&[]), 0);
        check(&["option httpchk"], Some(&[]), 0);
        assert_eq!(statuses("200,2x"), None);
    }
}
