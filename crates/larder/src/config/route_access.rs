//! Who may ask of a route, and how often: `basic_auth` and `rate_limit`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use proxy::settings::{FieldTemplate, Login, Rate, RateLimit};

use super::complaint::Complaint;
use super::literal;
use super::route_fields;
use super::section::{Node, Section, as_switch, count, duration, is_text, parsed, path, text, whole};

const REALM: &str = "larder";
/// RFC 6585 §4.
pub const TOO_MANY_REQUESTS: u16 = 429;
const RATE_FORM: &str = "such as \"10/s\", \"100/m\" or \"1000/h\"";

/// `rate_limit`, before it is known of which route.
#[derive(Clone, Debug)]
pub struct RateWords {
    pub rate: Rate,
    pub by: Option<FieldTemplate>,
    pub status: u16,
}

impl RateWords {
    pub fn in_zone(&self, zone: &str) -> RateLimit {
        RateLimit { rate: self.rate, by: self.by.clone(), status: self.status, zone: zone.to_owned() }
    }
}

/// What tells the limits of a route from those of others: the same after a reload that leaves its conditions as they are.
pub fn zone(of: &impl std::fmt::Debug) -> String {
    let mut hasher = DefaultHasher::new();
    format!("{of:?}").hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// `basic_auth = "FILE"`, or `{ file, realm }`. `false`: none, whatever holds for all routes.
pub fn login(section: &mut Section<'_>) -> Option<Option<Login>> {
    let node = section.get("basic_auth")?;
    let file = |node| parsed(node, "password file", "a path", path);
    if as_switch(node) == Some(false) {
        return Some(None);
    }
    if is_text(node) {
        let file = section.read("basic_auth", file)?;
        return Some(Some(Login { file, realm: REALM.to_owned() }));
    }
    let mut table = section.section("basic_auth")?;
    table.require("file", "write file = \"users\", as `htpasswd -B` makes it");
    let file = table.read("file", file);
    let realm = table.read("realm", |node| {
        parsed(node, "realm", "printable characters without quotes", |realm| {
            let is_plain = realm.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte));
            (!realm.is_empty() && is_plain).then(|| realm.to_owned())
        })
    });
    table.end();
    Some(Some(Login { file: file?, realm: realm.unwrap_or_else(|| REALM.to_owned()) }))
}

/// `rate_limit = "10/s"`, a table, or a list of either.
pub fn rate_limits(section: &mut Section<'_>) -> Option<Vec<RateWords>> {
    let node = section.get("rate_limit")?;
    let nodes: Vec<Node<'_>> = match node.get_ref() {
        toml::de::DeValue::Array(items) => items.iter().collect(),
        _ => vec![node],
    };
    Some(nodes.into_iter().filter_map(|node| rate_limit(section, node)).collect())
}

/// As other programs write it: `10r/s`, `10 per second`, `10/sec`, `10 requests / minute`.
fn meant_rate(node: Node<'_>) -> Option<String> {
    let written = text(node).ok()?.to_ascii_lowercase();
    let (number, rest) = written.split_at(written.find(|c: char| !c.is_ascii_digit())?);
    let unit = rest.rsplit(|c: char| c == '/' || c.is_whitespace()).next()?;
    let unit = ["s", "m", "h"].into_iter().find(|short| {
        let long = match *short {
            "s" => ["s", "sec", "second"],
            "m" => ["m", "min", "minute"],
            _ => ["h", "hr", "hour"],
        };
        long.contains(&unit)
    })?;
    number.parse::<u32>().ok().filter(|number| *number > 0).map(|number| format!("{number}/{unit}"))
}

fn rate_limit(section: &Section<'_>, node: Node<'_>) -> Option<RateWords> {
    if is_text(node) {
        let rate = parsed(node, "rate", RATE_FORM, rate_of).map_err(|complaint| match meant_rate(node) {
            Some(rate) => complaint.suggest(format!("write {}", literal::text(&rate))),
            None => complaint,
        });
        let (requests, per) = rate.map_err(|complaint| section.complaints().add(complaint)).ok()?;
        return Some(RateWords { rate: rate_with(requests, per, None), by: None, status: TOO_MANY_REQUESTS });
    }
    let mut table = section.table_of(node, "rate_limit")?;
    let requests = table.read("requests", |node| match count(node)? {
        0 => Err(Complaint::new(node.span(), "0 is out of range", "must be at least 1")),
        requests => Ok(requests),
    });
    let per = table.read("per", duration).unwrap_or(Duration::from_secs(1));
    let burst = table.read("burst", whole::<u32>);
    let by: Option<FieldTemplate> = table.read("key", route_fields::template);
    let status = table.read("status", error_status);
    table.require("requests", "write requests = 10, and per = \"1s\" if it is another time");
    table.end();
    Some(RateWords { rate: rate_with(requests?, per, burst), by, status: status.unwrap_or(TOO_MANY_REQUESTS) })
}

/// The status of a refusal.
pub fn error_status(node: Node<'_>) -> Result<u16, Complaint> {
    let status = whole::<u16>(node)?;
    (400..=599)
        .contains(&status)
        .then_some(status)
        .ok_or_else(|| Complaint::new(node.span(), format!("{status} is no error"), "must be 400 to 599"))
}

/// Without a word on it as many may come at once as in the whole time, or in a second where that is longer.
fn rate_with(requests: u64, per: Duration, burst: Option<u32>) -> Rate {
    let per_us = u64::try_from(per.as_micros()).unwrap_or(u64::MAX).max(1);
    let period_us = (per_us / requests).max(1);
    let in_a_second = (1_000_000 / period_us).min(requests);
    let burst = burst.map_or(in_a_second, u64::from).max(1);
    Rate { period_us, burst: u32::try_from(burst).unwrap_or(u32::MAX) }
}

fn rate_of(written: &str) -> Option<(u64, Duration)> {
    let (requests, unit) = written.split_once('/')?;
    let seconds = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        "d" => 86_400,
        _ => return None,
    };
    let requests = requests.trim().parse().ok().filter(|requests| *requests > 0)?;
    Some((requests, Duration::from_secs(seconds)))
}
