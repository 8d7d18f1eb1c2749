//! How often a client asks, as HAProxy counts it in a stick-table, as a `rate_limit` of a `[[route]]`. Of what is counted there
//! requests by a client's address are carried over, and nothing else.

use std::collections::BTreeMap;

use crate::import::haproxy_conf::HaproxySection;
use crate::import::haproxy_times::milliseconds;
use crate::import::nginx_conf::Directive;

/// What a proxy counts, and what its tables and others' keep.
#[derive(Clone, Debug, Default)]
pub struct RatesTracked {
    /// Over how long requests are counted, by the table's name.
    periods_ms: BTreeMap<String, u64>,
    /// The table in which each counter counts requests of a client.
    counters: BTreeMap<String, String>,
    own_table: String,
}

impl RatesTracked {
    pub fn of(proxy: &HaproxySection, sections: &[HaproxySection]) -> RatesTracked {
        let mut tracked = RatesTracked { own_table: proxy.name.clone(), ..RatesTracked::default() };
        for section in sections {
            let table = section.lines.iter().find(|line| line.name == "stick-table");
            if let Some(period_ms) = table.and_then(request_period_ms) {
                tracked.periods_ms.insert(section.name.clone(), period_ms);
            }
        }
        for line in &proxy.lines {
            if let Some((counter, table)) = counter_of(line) {
                tracked.counters.entry(counter).or_insert(table.unwrap_or_else(|| proxy.name.clone()));
            }
        }
        tracked
    }

    /// The limit that this test is about. `None`: it counts something else.
    pub fn rate(&self, fetch: &str, of: &str, values: &[String]) -> Option<String> {
        let (counter, table) = match fetch.strip_suffix("_http_req_rate")? {
            "sc" => of.split_once(',').map_or((of, None), |(counter, table)| (counter, Some(table))),
            "src" => ("", Some(of).filter(|of| !of.is_empty()).or(Some(&*self.own_table))),
            fetch => (fetch.strip_prefix("sc")?, Some(of).filter(|of| !of.is_empty())),
        };
        let counted_in = self.counters.get(counter).map(String::as_str);
        let table = match fetch {
            "src_http_req_rate" => self.counters.values().map(String::as_str).find(|known| table == Some(*known))?,
            _ => counted_in.filter(|known| table.is_none_or(|table| table == *known))?,
        };
        let period_ms = self.periods_ms.get(table)?;
        let requests = match values {
            [how, number] if how == "gt" => number.parse::<u64>().ok()?,
            [how, number] if how == "ge" => number.parse::<u64>().ok()?.checked_sub(1)?,
            _ => return None,
        };
        let burst = u32::try_from(requests).ok().filter(|burst| *burst > 0)?;
        Some(format!("{{ requests = {requests}, per = \"{period_ms}ms\", burst = {burst}, status = STATUS }}"))
    }
}

/// The period of a table of addresses that counts requests.
fn request_period_ms(table: &Directive) -> Option<u64> {
    let words = &table.arguments;
    let behind = |name: &str| words.iter().position(|word| word == name).and_then(|at| words.get(at + 1));
    let is_of_addresses = behind("type").is_some_and(|kind| kind == "ip" || kind == "ipv6");
    let stored = words.iter().find_map(|word| word.split_once("http_req_rate(").map(|(_, rest)| rest))?;
    let period = stored.split(')').next()?;
    milliseconds(period).filter(|period_ms| is_of_addresses && *period_ms > 0)
}

/// The counter that a line makes count all requests of a client, and the table that is named.
fn counter_of(line: &Directive) -> Option<(String, Option<String>)> {
    let words: Vec<&str> = line.arguments.iter().map(String::as_str).collect();
    let words = match (line.name.as_str(), &words[..]) {
        ("http-request", words) => words,
        ("tcp-request", ["connection" | "content", words @ ..]) => words,
        _ => return None,
    };
    let counter = words.first()?.strip_prefix("track-sc")?;
    match words[1..] {
        ["src"] => Some((counter.to_owned(), None)),
        ["src", "table", table] => Some((counter.to_owned(), Some(table.to_owned()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn proxy(name: &str, lines: &[&str]) -> HaproxySection {
        let lines = lines.iter().map(|line| directive(line)).collect();
        HaproxySection { kind: "frontend".into(), name: name.into(), head: directive("frontend web"), lines }
    }

    fn check(lines: &[&str], test: (&str, &str, &str), expect: Option<&str>) {
        let web = proxy("web", lines);
        let other = proxy("rates", &["stick-table type ip size 1m expire 1m store gpc0,http_req_rate(1m)"]);
        let tracked = RatesTracked::of(&web, &[web.clone(), other]);
        let values: Vec<String> = test.2.split(' ').map(str::to_owned).collect();
        assert_eq!(tracked.rate(test.0, test.1, &values).as_deref(), expect, "{lines:?} {test:?}");
    }

    #[test]
    fn requests_of_a_client_are_counted() {
        let own = ["stick-table type ip size 100k expire 30s store http_req_rate(10s)", "http-request track-sc0 src"];
        let ten = "{ requests = 20, per = \"10000ms\", burst = 20, status = STATUS }";
        check(&own, ("sc_http_req_rate", "0", "gt 20"), Some(ten));
        check(&own, ("sc0_http_req_rate", "", "ge 21"), Some(ten));
        check(&own, ("src_http_req_rate", "", "gt 20"), Some(ten));
        check(&own, ("sc_http_req_rate", "1", "gt 20"), None);
        check(&own, ("sc_conn_rate", "0", "gt 20"), None);
        check(&own, ("sc_http_req_rate", "0", "gt 0"), None);
        let minute = "{ requests = 5, per = \"60000ms\", burst = 5, status = STATUS }";
        check(&["http-request track-sc1 src table rates"], ("sc_http_req_rate", "1,rates", "gt 5"), Some(minute));
        check(&["http-request track-sc0 hdr(x) table rates"], ("sc_http_req_rate", "0", "gt 5"), None);
        check(&["http-request track-sc0 src table rates if { path / }"], ("sc_http_req_rate", "0", "gt 5"), None);
    }
}
