//! `reverse_proxy`, `forward_auth` and `php_fastcgi` of Caddy as `[origin.NAME]`: who is asked, by which rule, and with which fields.
//!
//! What larder cannot ask is no origin here, and what it would answer stays shut. It knows no routes.

use std::path::{Path, PathBuf};

use crate::addresses::{parse_fastcgi, parse_origin};
use crate::import::caddy_fields::{FieldEdits, FieldsOf};
use crate::import::caddy_text::{TextScope, bytes, milliseconds, text, time};
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_upstream::Origins;
use crate::limits::ORIGIN_WEIGHT_MAX;

/// How a proxy is run, and not what is answered.
const NEEDS_NOTHING: [&str; 22] = [
    "flush_interval",
    "request_buffers",
    "response_buffers",
    "buffer_requests",
    "buffer_responses",
    "max_buffer_size",
    "stream_timeout",
    "stream_close_delay",
    "stream_buffer_size",
    "verbose_logs",
    "lb_try_interval",
    "keepalive",
    "keepalive_interval",
    "keepalive_idle_conns",
    "keepalive_idle_conns_per_host",
    "compression",
    "dial_fallback_delay",
    "max_response_header",
    "tls_timeout",
    "resolvers",
    "tls_renegotiation",
    "health_follow_redirects",
];

/// Options without which somebody would be let in, or be told what is not for him.
const CLOSES: [&str; 12] = [
    "handle_response",
    "copy_response",
    "copy_response_headers",
    "rewrite",
    "method",
    "dynamic",
    "replace_status",
    "intercept",
    "forward_proxy_url",
    "network_proxy",
    "proxy_protocol",
    "local_address",
];

/// An origin, and what its route says of requests to it and answers of it.
#[derive(Debug, PartialEq, Eq)]
pub struct CaddyOrigin {
    pub origin: String,
    pub requests: FieldEdits,
    pub answers: FieldEdits,
    pub timeouts: Option<String>,
}

/// What a `reverse_proxy` says, as it is read.
#[derive(Default)]
struct ProxyWords {
    upstreams: Vec<String>,
    /// Where relative names of files begin.
    folder: PathBuf,
    is_tls: bool,
    is_h2c: bool,
    host: Option<String>,
    tls: Vec<String>,
    lines: Vec<String>,
    probe: Vec<String>,
    has_probe_path: bool,
    timeouts: Vec<String>,
    weights: Vec<u32>,
    requests: FieldEdits,
    answers: FieldEdits,
    is_closed: bool,
}

/// The origin for this `reverse_proxy`; `words` are its upstreams, and relative names begin in `folder`. `None`: it cannot be one, which has been said.
pub fn of(
    directive: &Directive,
    words: &[String],
    scope: TextScope<'_>,
    folder: &Path,
    origins: &mut Origins,
    findings: &mut Findings,
) -> Option<CaddyOrigin> {
    let mut said = ProxyWords { upstreams: words.to_vec(), folder: folder.to_owned(), ..ProxyWords::default() };
    for line in directive.children() {
        said.take(line, scope, findings);
    }
    if said.is_closed || said.requests.closes || said.answers.closes {
        return None;
    }
    let urls = said.urls();
    let is_url = |url: &String| parse_origin(url.split_once(' ').map_or(url, |(url, _)| url)).is_ok();
    if urls.is_empty() || !urls.iter().all(is_url) {
        findings.leave(
            directive,
            "closed: an upstream is HOST:PORT, a URL without a path, or unix//PATH, without placeholders",
        );
        return None;
    }
    findings.note(directive, "what an origin lets be stored is stored; Caddy stores nothing");
    let listed: Vec<String> = urls.iter().map(|url| quoted(url)).collect();
    let mut lines = vec![format!("urls = [{}]", listed.join(", "))];
    let first = urls[0].split(' ').next().unwrap_or_default();
    let host = first.split_once("://").map_or(first, |(_, host)| host);
    lines.extend(
        said.host.take().map(|written| format!("host = {}", quoted(if written.is_empty() { host } else { &written }))),
    );
    if !said.tls.is_empty() {
        lines.push(format!("tls = {{ {} }}", said.tls.join(", ")));
    }
    lines.append(&mut said.lines);
    if said.has_probe_path {
        lines.push(format!("probe = {{ {} }}", said.probe.join(", ")));
    }
    let section = format!("[origin.app]\n{}\n[[route]]\nrespond = \"\"\n", lines.join("\n"));
    if crate::config::read(&section).is_err() {
        findings.leave(directive, "closed: larder's origins cannot have all of these options together");
        return None;
    }
    let timeouts = (!said.timeouts.is_empty()).then(|| format!("timeouts = {{ {} }}", said.timeouts.join(", ")));
    let origin = origins.named(host.trim_start_matches("unix:"), lines);
    Some(CaddyOrigin { origin, requests: said.requests, answers: said.answers, timeouts })
}

/// The application behind a `php_fastcgi`, with these keys besides. `None`: it cannot be asked, which has been said.
pub fn of_application(
    directive: &Directive,
    words: &[String],
    keys: Vec<String>,
    origins: &mut Origins,
    findings: &mut Findings,
) -> Option<String> {
    let address = |word: &String| match word.strip_prefix("unix/") {
        Some(path) => format!("unix:{path}"),
        None if word.starts_with(':') => format!("localhost{word}"),
        None => word.clone(),
    };
    let servers: Vec<String> = words.iter().map(address).collect();
    if servers.is_empty() || servers.iter().any(|server| parse_fastcgi(server).is_err()) {
        findings.leave(directive, "closed: an application is unix//PATH or HOST:PORT");
        return None;
    }
    let servers: Vec<String> = servers.iter().map(|server| quoted(server)).collect();
    let lines = [format!("fastcgi = [{}]", servers.join(", "))].into_iter().chain(keys).collect();
    Some(origins.named("php", lines))
}

impl ProxyWords {
    /// A file of the old configuration's, as a value: the new one may lie elsewhere.
    fn file(&self, written: &str) -> String {
        quoted(&self.folder.join(written).display().to_string())
    }

    fn take(&mut self, line: &Directive, scope: TextScope<'_>, findings: &mut Findings) {
        let first = line.argument(0);
        match line.name.as_str() {
            "to" => self.upstreams.extend(line.arguments.iter().cloned()),
            "header_up" if first.trim_start_matches('+').eq_ignore_ascii_case("host") => {
                self.take_host(line, scope, findings);
            }
            "header_up" => self.requests.take(&line.arguments, FieldsOf::Requests, scope, (line, findings)),
            "header_down" => self.answers.take(&line.arguments, FieldsOf::Answers, scope, (line, findings)),
            "lb_policy" => self.take_policy(line, findings),
            "lb_retries" => match first.parse::<u32>() {
                Ok(count) if count <= 10 => self.lines.push(format!("retries = {count}")),
                _ => findings.leave(line, "no number of retries"),
            },
            "lb_try_duration" => findings.note(line, "retries of [origin.NAME] says how many others are asked"),
            "trusted_proxies" => findings.note(line, "trusted_proxies, above all sections, says who is believed"),
            "fail_duration" => self.put(line, findings, "ejection_time", time(first)),
            "max_fails" => {
                self.put(line, findings, "ejection_failures", first.parse::<u32>().ok().map(|n| n.to_string()))
            }
            "transport" if first == "http" => {
                for option in line.children() {
                    self.take_transport(option, findings);
                }
            }
            name if name.starts_with("health_") => self.take_health(line, findings),
            name if NEEDS_NOTHING.contains(&name) => findings.note(line, "larder does so by itself"),
            name if name.starts_with("unhealthy_") || name.starts_with("lb_") => {
                findings.leave(line, "[origin.NAME] says when an address is left out, and what is sent again");
            }
            name if name.starts_with('@') => {}
            name if CLOSES.contains(&name) || name == "transport" => self.close(line, findings),
            _ => self.close(line, findings),
        }
    }

    fn close(&mut self, line: &Directive, findings: &mut Findings) {
        self.is_closed = true;
        findings.leave(line, "closed: larder has no such option of an origin");
    }

    fn put(&mut self, line: &Directive, findings: &mut Findings, key: &str, value: Option<String>) {
        match value {
            Some(value) => self.lines.push(format!("{key} = {value}")),
            None => findings.leave(line, "larder's setting cannot have this value"),
        }
    }

    fn take_host(&mut self, line: &Directive, scope: TextScope<'_>, findings: &mut Findings) {
        match line.argument(1) {
            "{host}" | "{hostport}" | "{http.request.host}" | "{http.request.hostport}" => {}
            "{upstream_hostport}" | "{http.reverse_proxy.upstream.hostport}" => self.host = Some(String::new()),
            value => match text(value, scope).filter(|said| !said.contains('$') && !said.is_empty()) {
                Some(host) => self.host = Some(host),
                None => self.close(line, findings),
            },
        }
    }

    fn take_policy(&mut self, line: &Directive, findings: &mut Findings) {
        let mut balanced = |lines: &[&str]| self.lines.extend(lines.iter().map(|&line| line.to_owned()));
        match (line.argument(0), line.argument(1)) {
            ("random", _) => findings.note(line, "addresses take turns"),
            ("round_robin", _) => balanced(&["balance = \"round-robin\""]),
            ("least_conn", _) => balanced(&["balance = \"least-conn\""]),
            ("random_choose", _) => balanced(&["balance = \"two-choices\""]),
            ("first", _) => balanced(&["balance = \"first\""]),
            ("ip_hash" | "client_ip_hash", _) => {
                findings.note(line, "by larder's own hash: other clients share a server");
                balanced(&["balance = \"hash\"", "hash = \"client\""]);
            }
            ("uri_hash", _) => {
                findings.note(line, "by larder's own hash: other URLs share a server");
                balanced(&["balance = \"hash\"", "hash = \"url\""]);
            }
            ("header", name) if !name.is_empty() => {
                balanced(&["balance = \"hash\"", &format!("hash = {}", quoted(&format!("header:{name}")))]);
            }
            ("cookie", name) => {
                let name = if name.is_empty() { "lb" } else { name };
                balanced(&[&format!("sticky_cookie = {}", quoted(name))]);
                if line.arguments.len() > 2 {
                    findings.note(line, "sticky_secret of [origin.NAME] is one of larder's own");
                }
            }
            ("weighted_round_robin", _) => {
                let weights = line.arguments[1..].iter().map(|weight| weight.parse().ok());
                let is_weight = |weight: &u32| (1..=ORIGIN_WEIGHT_MAX).contains(weight);
                match weights.collect::<Option<Vec<u32>>>().filter(|all| all.iter().all(is_weight)) {
                    Some(weights) => self.weights = weights,
                    None => findings.leave(line, "no weight of an address; they take turns"),
                }
            }
            _ => findings.leave(line, "no rule by which larder balances; addresses take turns"),
        }
    }

    fn take_health(&mut self, line: &Directive, findings: &mut Findings) {
        let first = line.argument(0);
        let said = match line.name.as_str() {
            "health_uri" | "health_path" if first.starts_with('/') => {
                self.has_probe_path = true;
                Some(format!("path = {}", quoted(first)))
            }
            "health_interval" => time(first).map(|time| format!("interval = {time}")),
            "health_timeout" => time(first).map(|time| format!("timeout = {time}")),
            "health_status" => first.parse::<u16>().ok().map(|status| format!("expected = [{status}]")),
            _ => None,
        };
        match said {
            Some(said) => self.probe.push(said),
            None => findings.leave(line, "no word of a probe of larder's"),
        }
    }

    fn take_transport(&mut self, line: &Directive, findings: &mut Findings) {
        let first = line.argument(0);
        let is_time = |key: &str| milliseconds(first).and(time(first)).map(|time| format!("{key} = {time}"));
        let mut timeout = |said: Option<String>| match said {
            Some(said) => self.timeouts.push(said),
            None => findings.leave(line, "larder's setting cannot have this value"),
        };
        match line.name.as_str() {
            "dial_timeout" => timeout(is_time("connect")),
            "response_header_timeout" => timeout(is_time("first_byte")),
            "read_timeout" => timeout(is_time("between_bytes")),
            "write_timeout" => findings.note(line, "limits.send_timeout says it for clients"),
            "tls" => self.is_tls = true,
            "tls_insecure_skip_verify" => {
                self.is_tls = true;
                self.tls.push("verify = false".to_owned());
            }
            "tls_server_name" if !first.contains('{') => {
                self.is_tls = true;
                self.tls.push(format!("name = {}", quoted(first)));
            }
            "tls_trusted_ca_certs" if line.arguments.len() == 1 => {
                self.is_tls = true;
                self.tls.push(format!("ca = {}", self.file(first)));
            }
            "tls_trust_pool" if first == "file" && line.arguments.len() == 2 => {
                self.is_tls = true;
                self.tls.push(format!("ca = {}", self.file(line.argument(1))));
            }
            "tls_client_auth" if line.arguments.len() == 2 => {
                self.tls.push(format!("cert = {}, key = {}", self.file(first), self.file(line.argument(1))));
            }
            "versions" => {
                self.is_h2c |= line.arguments.iter().any(|version| version == "h2c");
                if !self.is_h2c {
                    findings.note(line, "http2 of [origin.NAME] says whether it is asked over HTTP/2");
                }
            }
            "max_conns_per_host" if first.parse::<u32>().is_ok_and(|count| count > 0) => {
                self.lines.push(format!("max_connections = {first}"));
            }
            "read_buffer" | "write_buffer" if bytes(first).is_some() => findings.note(line, "larder does so by itself"),
            name if NEEDS_NOTHING.contains(&name) => findings.note(line, "larder does so by itself"),
            _ => self.close(line, findings),
        }
    }

    /// All upstreams as larder's URLs; with one that is none, what nobody can parse.
    fn urls(&self) -> Vec<String> {
        let mut urls: Vec<String> = self.upstreams.iter().flat_map(|upstream| self.of_upstream(upstream)).collect();
        if self.weights.len() == urls.len() {
            urls.iter_mut().zip(&self.weights).for_each(|(url, weight)| url.push_str(&format!(" weight={weight}")));
        }
        urls
    }

    fn of_upstream(&self, upstream: &str) -> Vec<String> {
        if let Some(path) = upstream.strip_prefix("unix/") {
            return vec![format!("unix:{path}")];
        }
        let (scheme, address) = match upstream.split_once("://") {
            Some(("h2c", address)) => ("h2", address),
            Some((scheme, address)) => (scheme, address),
            None if self.is_tls || upstream.ends_with(":443") && !self.is_h2c => ("https", upstream),
            None => ("http", upstream),
        };
        let scheme = match (scheme, self.is_h2c, self.is_tls) {
            ("http", true, _) => "h2",
            ("http", _, true) => "https",
            (scheme, ..) => scheme,
        };
        let address = address.trim_end_matches('/');
        let address = if address.starts_with(':') { format!("localhost{address}") } else { address.to_owned() };
        // A range of ports is an address for each.
        let range = address.rsplit_once(':').and_then(|(host, ports)| {
            let (first, last) = ports.split_once('-')?;
            let (first, last) = (first.parse::<u16>().ok()?, last.parse::<u16>().ok()?);
            (first <= last && last - first < 256)
                .then(|| (first..=last).map(|port| format!("{scheme}://{host}:{port}")).collect())
        });
        range.unwrap_or_else(|| vec![format!("{scheme}://{address}")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    /// The sections that come of a `reverse_proxy` with these lines, and how much is left.
    fn check(upstreams: &str, lines: &[Directive], expect: Option<&str>, left: usize) {
        let (mut origins, mut findings) = (Origins::default(), Findings::default());
        let proxy = directive(&format!("reverse_proxy {upstreams}"));
        let proxy = Directive { block: Some(lines.to_vec()), ..proxy };
        let asked =
            of(&proxy, &proxy.arguments, TextScope::default(), Path::new("/etc/caddy"), &mut origins, &mut findings);
        let mut text = String::new();
        origins.write(&mut text);
        assert_eq!(asked.map(|_| text.trim()), expect, "{upstreams}");
        assert_eq!(findings.left_count(), left, "{upstreams}: {findings:?}");
        assert!(
            expect.is_none() || crate::config::read(&format!("{text}[[route]]\nrespond = \"\"\n")).is_ok(),
            "{text}"
        );
    }

    fn transport(options: &[&str]) -> Directive {
        let options = options.iter().map(|option| directive(option)).collect();
        Directive { block: Some(options), ..directive("transport http") }
    }

    #[test]
    fn upstreams_are_urls() {
        for (upstreams, urls) in [
            ("localhost:3000", "\"http://localhost:3000\""),
            (":3000", "\"http://localhost:3000\""),
            ("a:1 http://b:2", "\"http://a:1\", \"http://b:2\""),
            ("h2c://a:1", "\"h2://a:1\""),
            ("unix//run/a.sock", "\"unix:/run/a.sock\""),
            ("a:1-3", "\"http://a:1\", \"http://a:2\", \"http://a:3\""),
            ("https://a.test", "\"https://a.test\""),
        ] {
            let name = urls.trim_matches('"').split('"').next().unwrap_or_default();
            let name = name.split_once("://").map_or(name, |(_, name)| name).trim_start_matches("unix:");
            check(upstreams, &[], Some(&format!("[origin.\"{name}\"]\nurls = [{urls}]")), 0);
        }
        for none in ["", "{env.APP}", "http://a/path", "srv+http://a", "fd/3"] {
            check(none, &[], None, 1);
        }
    }

    #[test]
    fn options_are_keys_of_the_origin() {
        let first = "[origin.\"a:1\"]\nurls = [\"http://a:1\"]";
        for (line, expect) in [
            ("lb_policy least_conn", "balance = \"least-conn\""),
            ("lb_policy cookie sid", "sticky_cookie = \"sid\""),
            ("lb_policy header X-T", "balance = \"hash\"\nhash = \"header:X-T\""),
            ("lb_retries 3", "retries = 3"),
            ("fail_duration 30s", "ejection_time = \"30000ms\""),
            ("header_up Host {upstream_hostport}", "host = \"a:1\""),
            ("header_up Host b.test", "host = \"b.test\""),
            ("health_uri /up", "probe = { path = \"/up\" }"),
        ] {
            check("a:1", &[directive(line)], Some(&format!("{first}\n{expect}")), 0);
        }
        let weighed = "[origin.\"a:1\"]\nurls = [\"http://a:1 weight=3\", \"http://b:1 weight=1\"]";
        check("a:1 b:1", &[directive("lb_policy weighted_round_robin 3 1")], Some(weighed), 0);
        let tls = "[origin.\"a:1\"]\nurls = [\"https://a:1\"]\ntls = { verify = false, name = \"b.test\" }";
        check("a:1", &[transport(&["tls_insecure_skip_verify", "tls_server_name b.test"])], Some(tls), 0);
        check("a:1", &[transport(&["versions h2c 2"])], Some("[origin.\"a:1\"]\nurls = [\"h2://a:1\"]"), 0);
    }

    /// Relative names of the new file begin at its own folder.
    #[test]
    fn files_are_where_they_were() {
        for (written, key) in [
            ("tls_trusted_ca_certs ca.pem", "ca = \"/etc/caddy/ca.pem\""),
            ("tls_trust_pool file ca.pem", "ca = \"/etc/caddy/ca.pem\""),
            ("tls_trusted_ca_certs /etc/ssl/ca.pem", "ca = \"/etc/ssl/ca.pem\""),
            ("tls_client_auth a.pem b.pem", "cert = \"/etc/caddy/a.pem\", key = \"/etc/caddy/b.pem\""),
        ] {
            let mut said = ProxyWords { folder: PathBuf::from("/etc/caddy"), ..ProxyWords::default() };
            said.take(&transport(&[written]), TextScope::default(), &mut Findings::default());
            assert_eq!(said.tls, [key], "{written}");
        }
    }

    #[test]
    fn what_may_withhold_an_answer_closes() {
        for line in [
            "handle_response @x",
            "rewrite /x",
            "method GET",
            "dynamic srv a",
            "transport fastcgi",
            "transport ntlm",
            "unheard x",
        ] {
            check("a:1", &[directive(line)], None, 1);
        }
        check("a:1", &[transport(&["forward_proxy_url http://b"])], None, 1);
        let first = "[origin.\"a:1\"]\nurls = [\"http://a:1\"]";
        for line in
            ["lb_policy query k", "unhealthy_status 5xx", "health_body ok", "header_up A {env.X}", "header_down A b c"]
        {
            check("a:1", &[directive(line)], Some(first), 1);
        }
    }
}
