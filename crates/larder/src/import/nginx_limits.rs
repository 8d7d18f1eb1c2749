//! How often and how much at a time: `limit_req` and `limit_conn` of nginx with their zones, as `rate_limit` and
//! `connection_limit` of a `[[route]]`. It knows no routes.

use std::collections::BTreeMap;

use proxy::settings::FieldTemplate;

use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;

/// nginx refuses with this what is too much.
const STATUS_USUAL: u16 = 503;

/// What a level says of limits and the levels inside it inherit. Lines of one kind are inherited all together or not at all.
#[derive(Clone, Debug, Default)]
pub struct LimitLevel {
    rates: Option<Vec<Directive>>,
    connections: Option<Vec<Directive>>,
    too_often: Option<u16>,
    too_many: Option<u16>,
}

/// `limit_req_zone` and `limit_conn_zone` of a configuration, by their names.
#[derive(Clone, Debug, Default)]
pub struct LimitZones {
    rates: BTreeMap<String, RateZone>,
    /// Keys.
    connections: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
struct RateZone {
    key: String,
    requests: u64,
    per: &'static str,
}

fn word<'a>(directive: &'a Directive, name: &str) -> Option<&'a str> {
    directive.arguments.iter().find_map(|word| word.strip_prefix(name))
}

impl LimitZones {
    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        match directive.name.as_str() {
            "limit_req_zone" => self.take_rate(directive, findings),
            "limit_conn_zone" => {
                let name = word(directive, "zone=").unwrap_or_default().split(':').next().unwrap_or_default();
                self.connections.insert(name.to_owned(), directive.argument(0).to_owned());
            }
            _ => return false,
        }
        true
    }

    fn take_rate(&mut self, directive: &Directive, findings: &mut Findings) {
        let name = word(directive, "zone=").unwrap_or_default().split(':').next().unwrap_or_default();
        let rate = word(directive, "rate=").unwrap_or_default();
        let rate = rate.strip_suffix("r/s").map(|n| (n, "1s")).or(rate.strip_suffix("r/m").map(|n| (n, "1m")));
        match rate.and_then(|(n, per)| Some((n.parse().ok().filter(|n| *n > 0)?, per))) {
            Some((requests, per)) if !name.is_empty() => {
                let key = directive.argument(0).to_owned();
                self.rates.insert(name.to_owned(), RateZone { key, requests, per });
            }
            _ => findings.leave(directive, "no rate that larder can limit"),
        }
    }
}

/// By what requests are counted.
#[derive(Debug, PartialEq, Eq)]
enum CountingKey {
    Client,
    Server,
    Template(String),
}

impl CountingKey {
    /// `None`: larder cannot count by this.
    fn of(key: &str) -> Option<CountingKey> {
        match key {
            "$binary_remote_addr" | "$remote_addr" => Some(CountingKey::Client),
            "$server_name" => Some(CountingKey::Server),
            // nginx counts by a name that nobody has proved, larder by no other than a proved one.
            key if key.contains("remote_user") => None,
            key => {
                let key = key.replace("$binary_remote_addr", "$remote_addr");
                FieldTemplate::parse(&key).is_ok_and(|key| !key.has_groups()).then_some(CountingKey::Template(key))
            }
        }
    }
}

impl LimitLevel {
    pub fn within(self, outer: &LimitLevel) -> LimitLevel {
        LimitLevel {
            rates: self.rates.or_else(|| outer.rates.clone()),
            connections: self.connections.or_else(|| outer.connections.clone()),
            too_often: self.too_often.or(outer.too_often),
            too_many: self.too_many.or(outer.too_many),
        }
    }

    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive, findings: &mut Findings) -> bool {
        match directive.name.as_str() {
            "limit_req" => self.rates.get_or_insert_default().push(directive.clone()),
            "limit_conn" => self.connections.get_or_insert_default().push(directive.clone()),
            "limit_req_status" => self.too_often = directive.argument(0).parse().ok(),
            "limit_conn_status" => self.too_many = directive.argument(0).parse().ok(),
            "limit_req_log_level" | "limit_conn_log_level" => findings.note(directive, "larder does so by itself"),
            _ => return false,
        }
        true
    }

    /// The lines of a route.
    pub fn lines(&self, zones: &LimitZones, findings: &mut Findings) -> Vec<String> {
        let rates = self.rates.iter().flatten().filter_map(|line| self.rate(line, zones, findings)).collect::<Vec<_>>();
        let connections = self.connections.iter().flatten();
        let connections = connections.filter_map(|line| self.at_a_time(line, zones, findings)).collect::<Vec<_>>();
        let lines = [("rate_limit", rates), ("connection_limit", connections)];
        lines.into_iter().filter_map(|(key, limits)| list_line(key, &limits)).collect()
    }

    fn rate(&self, line: &Directive, zones: &LimitZones, findings: &mut Findings) -> Option<String> {
        let Some(zone) = word(line, "zone=").and_then(|zone| zones.rates.get(zone)) else {
            findings.leave(line, "no such limit_req_zone");
            return None;
        };
        let key = match CountingKey::of(&zone.key) {
            Some(CountingKey::Client) => String::new(),
            Some(CountingKey::Template(key)) => format!(", key = {}", quoted(&key)),
            Some(CountingKey::Server) | None => {
                findings.leave(line, "no key by which larder counts requests");
                return None;
            }
        };
        // nginx counts those that come beside the one that is always let through.
        let burst = word(line, "burst=").and_then(|burst| burst.parse::<u64>().ok()).unwrap_or(0) + 1;
        findings.note(line, "who comes too often is refused and never kept waiting, and each route counts by itself");
        let (requests, per, status) = (zone.requests, zone.per, refused_with(self.too_often));
        Some(format!("{{ requests = {requests}, per = \"{per}\", burst = {burst}{key}, status = {status} }}"))
    }

    /// `limit_conn ZONE NUMBER`: requests that are under way, which is what nginx counts, too.
    fn at_a_time(&self, line: &Directive, zones: &LimitZones, findings: &mut Findings) -> Option<String> {
        let requests = line.argument(1).parse::<u32>().ok().filter(|requests| *requests > 0);
        let (Some(key), Some(requests)) = (zones.connections.get(line.argument(0)), requests) else {
            findings.leave(line, "no such limit_conn_zone, or no number");
            return None;
        };
        let by = match CountingKey::of(key) {
            Some(CountingKey::Client) => String::new(),
            Some(CountingKey::Server) => ", by = \"route\"".to_owned(),
            Some(CountingKey::Template(key)) => format!(", key = {}", quoted(&key)),
            None => {
                findings.leave(line, "no key by which larder counts requests");
                return None;
            }
        };
        findings.note(line, "each route counts by itself");
        Some(format!("{{ requests = {requests}{by}, status = {} }}", refused_with(self.too_many)))
    }
}

fn refused_with(status: Option<u16>) -> u16 {
    status.filter(|status| (400..=599).contains(status)).unwrap_or(STATUS_USUAL)
}

fn list_line(key: &str, limits: &[String]) -> Option<String> {
    match limits {
        [] => None,
        [one] => Some(format!("{key} = {one}")),
        several => Some(format!("{key} = [{}]", several.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn check(lines: &[&str], expect: &[&str], left: usize) {
        let (mut level, mut zones, mut findings) = (LimitLevel::default(), LimitZones::default(), Findings::default());
        for zone in [
            "limit_req_zone $binary_remote_addr zone=one:10m rate=5r/m",
            "limit_req_zone $server_name zone=two:10m rate=9r/s",
            "limit_req_zone $binary_remote_addr$uri zone=three:10m rate=2r/s",
            "limit_conn_zone $binary_remote_addr zone=each:10m",
            "limit_conn_zone $server_name zone=all:10m",
            "limit_conn_zone $http_x_key zone=key:10m",
            "limit_conn_zone $geoip_city zone=city:10m",
            "limit_req_zone $remote_user zone=user:10m rate=2r/s",
            "limit_conn_zone $binary_remote_addr$remote_user zone=users:10m",
        ] {
            assert!(zones.take(&directive(zone), &mut findings), "{zone}");
        }
        assert!(lines.iter().all(|line| level.take(&directive(line), &mut findings)));
        let made = level.lines(&zones, &mut findings);
        assert_eq!(
            (made.as_slice(), findings.left_count()),
            (&expect.iter().map(|&l| l.to_owned()).collect::<Vec<_>>()[..], left),
            "{lines:?}: {findings:?}"
        );
        let site = "[origin.a]\nurls = \"http://a\"\n[[route]]\n";
        assert!(crate::config::read(&format!("{site}{}\n", made.join("\n"))).is_ok(), "{made:?}");
    }

    #[test]
    fn rates_are_those_of_their_zones() {
        let one = "rate_limit = { requests = 5, per = \"1m\", burst = 5, status = 429 }";
        check(&["limit_req zone=one burst=4 nodelay", "limit_req_status 429"], &[one], 0);
        let three = "rate_limit = { requests = 2, per = \"1s\", burst = 1, key = \"$remote_addr$uri\", status = 503 }";
        check(&["limit_req zone=three"], &[three], 0);
        check(&["limit_req zone=two burst=5"], &[], 1);
        check(&["limit_req zone=none"], &[], 1);
    }

    #[test]
    fn what_is_under_way_is_counted_by_the_key_of_its_zone() {
        check(&["limit_conn each 10"], &["connection_limit = { requests = 10, status = 503 }"], 0);
        let all = "connection_limit = { requests = 200, by = \"route\", status = 429 }";
        check(&["limit_conn all 200", "limit_conn_status 429"], &[all], 0);
        let both = "connection_limit = [{ requests = 1, key = \"$http_x_key\", status = 503 }, { requests = 2, status = 503 }]";
        check(&["limit_conn key 1", "limit_conn each 2"], &[both], 0);
        for unsaid in ["limit_conn city 1", "limit_conn none 1", "limit_conn each 0"] {
            check(&[unsaid], &[], 1);
        }
        // A name that nobody has proved counts for nothing in larder.
        check(&["limit_req zone=user"], &[], 1);
        check(&["limit_conn users 3"], &[], 1);
    }

    #[test]
    fn levels_inside_say_all_of_it_anew() {
        let level = |lines: &[&str]| {
            let (mut level, mut findings) = (LimitLevel::default(), Findings::default());
            lines.iter().for_each(|line| assert!(level.take(&directive(line), &mut findings)));
            level
        };
        let inner = level(&["limit_conn each 1"]).within(&level(&["limit_conn all 9", "limit_conn_status 429"]));
        assert_eq!(inner.connections.map(|lines| lines.len()), Some(1));
        assert_eq!(inner.too_many, Some(429));
    }
}
