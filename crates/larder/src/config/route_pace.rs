//! How much at a time, and how fast: `connection_limit` and `bandwidth`.

use proxy::settings::{Bandwidth, ConnectionLimit, CountedBy};

use toml::de::DeValue;

use super::complaint::Complaint;
use super::section::{Node, Section, as_switch, choice, is_text, parsed, size, whole};
use super::{route_access, route_fields};
use crate::quantities::parse_size;

/// `connection_limit`, before it is known of which route.
#[derive(Clone, Debug)]
pub struct ConnectionWords {
    requests_max: u32,
    by: CountedBy,
    status: u16,
}

impl ConnectionWords {
    pub fn in_zone(&self, zone: &str) -> ConnectionLimit {
        let ConnectionWords { requests_max, by, status } = self.clone();
        ConnectionLimit { requests_max, by, status, zone: zone.to_owned() }
    }
}

/// `connection_limit = 10`, a table, or a list of either. `false`: none, whatever holds for all routes.
pub fn connection_limits(section: &mut Section<'_>) -> Option<Vec<ConnectionWords>> {
    let node = section.get("connection_limit")?;
    if as_switch(node) == Some(false) {
        return Some(Vec::new());
    }
    let nodes: Vec<Node<'_>> = match node.get_ref() {
        DeValue::Array(items) => items.iter().collect(),
        _ => vec![node],
    };
    Some(nodes.into_iter().filter_map(|node| connection_limit(section, node)).collect())
}

fn connection_limit(section: &Section<'_>, node: Node<'_>) -> Option<ConnectionWords> {
    if matches!(node.get_ref(), DeValue::Integer(_)) {
        let requests_max = at_least_one(node).map_err(|complaint| section.complaints().add(complaint)).ok()?;
        return Some(ConnectionWords { requests_max, by: CountedBy::Client, status: route_access::TOO_MANY_REQUESTS });
    }
    let mut table = section.table_of(node, "connection_limit")?;
    let requests_max = table.read("requests", at_least_one);
    let by = table.read("by", |node| choice(node, &[("client", false), ("route", true)]));
    let key = table.read("key", route_fields::template);
    let status = table.read("status", route_access::error_status);
    if let (Some(_), Some(_), Some(node)) = (&by, &key, table.get("by")) {
        let what = "`by` and `key` both say whose requests are counted";
        table.complaints().add(Complaint::new(node.span(), what, "beside `key`"));
    }
    table.require("requests", "write requests = 10");
    table.end();
    let by = match (by, key) {
        (_, Some(key)) => CountedBy::Key(key),
        (Some(true), None) => CountedBy::Route,
        (Some(false) | None, None) => CountedBy::Client,
    };
    Some(ConnectionWords { requests_max: requests_max?, by, status: status.unwrap_or(route_access::TOO_MANY_REQUESTS) })
}

fn at_least_one(node: Node<'_>) -> Result<u32, Complaint> {
    match whole(node)? {
        0 => Err(Complaint::new(node.span(), "0 is out of range", "must be at least 1")),
        requests => Ok(requests),
    }
}

/// `bandwidth = "1MiB/s"`, or `{ rate, after }`. `false`: as fast as it goes.
pub fn bandwidth(section: &mut Section<'_>) -> Option<Option<Bandwidth>> {
    let node = section.get("bandwidth")?;
    if as_switch(node) == Some(false) {
        return Some(None);
    }
    if is_text(node) {
        let bytes_per_second = section.read("bandwidth", rate)?;
        return Some(Some(Bandwidth { bytes_per_second, after_bytes: 0 }));
    }
    let mut table = section.section("bandwidth")?;
    let rate = table.read("rate", rate);
    let after_bytes = table.read("after", size).unwrap_or(0);
    table.require("rate", "write rate = \"1MiB/s\"");
    table.end();
    Some(Some(Bandwidth { bytes_per_second: rate?, after_bytes }))
}

fn rate(node: Node<'_>) -> Result<u64, Complaint> {
    parsed(node, "rate", "bytes a second, such as \"1MiB/s\" or \"64KiB/s\"", |written| {
        let size = written.strip_suffix("/s")?.trim_end();
        parse_size(size).ok().filter(|bytes| *bytes > 0)
    })
}

#[cfg(test)]
mod tests {
    use proxy::settings::RouteRules;

    use super::super::read as read_config;
    use super::*;

    const SITE: &str = "[origin.web]\nurls = \"http://a\"\n[[route]]\n";

    fn rules(word: &str) -> RouteRules {
        let plan = read_config(&format!("{SITE}{word}\n")).unwrap_or_else(|wrong| panic!("{wrong:?}"));
        (*plan.settings.routes[0].rules).clone()
    }

    #[test]
    fn requests_are_limited_by_client_by_route_or_by_a_key() {
        let shown = |word: &str| {
            let limits = rules(word).connection_limits;
            let of = |limit: &ConnectionLimit| {
                let by = match limit.by {
                    CountedBy::Client => "client",
                    CountedBy::Route => "route",
                    CountedBy::Key(_) => "key",
                };
                format!("{} {by} {}", limit.requests_max, limit.status)
            };
            limits.iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(shown("connection_limit = 10"), ["10 client 429"]);
        let two = "connection_limit = [5, { requests = 200, by = \"route\", status = 503 }]";
        assert_eq!(shown(two), ["5 client 429", "200 route 503"]);
        assert_eq!(shown("connection_limit = { requests = 1, key = \"$http_x_key\" }"), ["1 key 429"]);
        assert_eq!(shown("connection_limit = false\n[policy]\nconnection_limit = 3"), [""; 0]);
        let zones: Vec<_> = rules(two).connection_limits.iter().map(|limit| limit.zone.clone()).collect();
        assert_ne!(zones[0], zones[1]);
    }

    #[test]
    fn bandwidth_is_bytes_a_second() {
        let of = |word: &str| rules(word).bandwidth.map(|pace| (pace.bytes_per_second, pace.after_bytes));
        assert_eq!(of("bandwidth = \"1MiB/s\""), Some((1 << 20, 0)));
        assert_eq!(of("bandwidth = { rate = \"64KiB/s\", after = \"10MiB\" }"), Some((64 << 10, 10 << 20)));
        assert_eq!(of("bandwidth = false\n[policy]\nbandwidth = \"1MiB/s\""), None);
    }

    fn check(word: &str, expect: &str) {
        let wrong = read_config(&format!("{SITE}{word}\n")).expect_err("it is taken for good");
        assert_eq!(wrong.iter().map(|complaint| complaint.what.as_str()).collect::<Vec<_>>(), [expect], "{word}");
    }

    #[test]
    fn what_cannot_be_is_refused() {
        check("connection_limit = 0", "0 is out of range");
        check("connection_limit = { by = \"route\" }", "`requests` is missing");
        check("connection_limit = { requests = 1, by = \"host\" }", "`host` is not among the choices");
        check(
            "connection_limit = { requests = 1, by = \"client\", key = \"$host\" }",
            "`by` and `key` both say whose requests are counted",
        );
        check("bandwidth = \"1MiB\"", "`1MiB` is no rate");
        check("bandwidth = \"0/s\"", "`0/s` is no rate");
        check("bandwidth = { after = \"1MiB\" }", "`rate` is missing");
    }
}
