//! The rows of a run: each `[[row]]` of the lab file, once for every size, number of connections and rate it names.

use std::time::Duration;

use crate::answer_coding::ContentCoding;
use crate::constructed_body::Parts;
use crate::limits::{CONNECTIONS_MAX, RATE_MAX, ROW_PAGE_BYTES_MAX, ROW_URLS_MAX, ROWS_MAX};
use crate::matrix::lab_file::{ItemsSection, RowSection, SessionsSection, Source, UrlOrder};
use crate::matrix::row_contents;
use crate::matrix::row_protocol::{self, Spoken};
use crate::memcached_catalogue::MemcachedItems;
use crate::results::{RowKind, RowUsed};

#[derive(Clone, Debug)]
pub(crate) struct PlannedRow {
    pub(crate) used: RowUsed,
    pub(crate) pages: Pages,
    /// What its answers must be in.
    pub(crate) encoding: Option<ContentCoding>,
    /// Whole `Name: value` lines.
    pub(crate) fields: Vec<String>,
    pub(crate) poisson: bool,
    /// Asked of forward proxies.
    pub(crate) forward: bool,
    pub(crate) sessions: Option<SessionsSection>,
    pub(crate) timeout: Duration,
    /// Must a cache answer all of it from what it holds?
    pub(crate) hot: bool,
    /// Idle: what a connection asks before it is held.
    pub(crate) requests_each: usize,
    pub(crate) only: Vec<String>,
    pub(crate) blocks: Option<usize>,
    pub(crate) slice: Option<Duration>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pages {
    /// One page of this size.
    One(u64),
    /// One page that is put together.
    WithParts(Parts),
    Many {
        count: usize,
        mean_bytes: u64,
        order: UrlOrder,
    },
    /// What a memcached holds, each key as likely as every other.
    Items {
        items: MemcachedItems,
        set_share: f64,
    },
}

/// What a browser sends with each request.
const BROWSER_FIELDS: [&str; 13] = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Language: en-GB,en;q=0.7,de;q=0.3",
    "Accept-Encoding: gzip, deflate, br, zstd",
    "DNT: 1",
    "Sec-GPC: 1",
    "Upgrade-Insecure-Requests: 1",
    "Sec-Fetch-Dest: document",
    "Sec-Fetch-Mode: navigate",
    "Sec-Fetch-Site: none",
    "Sec-Fetch-User: ?1",
    "Priority: u=0, i",
    "Referer: http://localhost/index.html",
];

const TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);

pub(crate) fn planned_rows(
    sections: &[RowSection],
    servers: &[&str],
    source: &Source<'_>,
) -> Result<Vec<PlannedRow>, String> {
    let mut rows: Vec<PlannedRow> = Vec::new();
    for section in sections {
        check(section, source)?;
        if let Some(wrong) = section.only.iter().find(|name| !servers.contains(&name.as_ref().as_str())) {
            return Err(source.complain_at(wrong, &source.unknown("server", wrong.as_ref(), servers)));
        }
        let all = variants(section);
        let is_alone = all.len() == 1;
        for variant in all {
            let row = planned(section, variant, is_alone);
            if rows.iter().any(|other| other.used.name == row.used.name) {
                let what = format!("a second row named `{}`", row.used.name);
                return Err(source.complain_at(&section.name, &what));
            }
            rows.push(row);
        }
    }
    match rows.len() {
        0 => Err(format!("{}: no [[row]]: what is to be measured?", source.name)),
        count if count > ROWS_MAX => Err(format!("{}: {count} rows; {ROWS_MAX} at most", source.name)),
        _ => Ok(rows),
    }
}

/// One row of those that a section stands for.
#[derive(Clone, Copy)]
struct Variant {
    pages: Pages,
    encoding: Option<ContentCoding>,
    keep_alive: bool,
    rate: Option<f64>,
    streams: usize,
    connections: usize,
}

fn variants(section: &RowSection) -> Vec<Variant> {
    let pages: Vec<Pages> = match (&section.size, &section.urls) {
        _ if let Some(all) = section.items => vec![Pages::of_items(all)],
        _ if let Some(all) = section.parts => vec![Pages::WithParts(row_contents::parts(all))],
        (Some(sizes), _) => sizes.all().into_iter().map(Pages::One).collect(),
        (None, Some(urls)) => {
            vec![Pages::Many { count: urls.count, mean_bytes: urls.mean_bytes, order: urls.order }]
        }
        (None, None) => Vec::new(),
    };
    let keeps = section.keep_alive.as_ref().map_or(vec![true], |keep| keep.all());
    let rates = section.rate.as_ref().map_or(vec![None], |rate| rate.all().into_iter().map(Some).collect());
    let all_streams = section.streams.as_ref().map_or(vec![1], |streams| streams.all());
    let mut all = Vec::new();
    for encoding in row_contents::codings(section) {
        for &pages in &pages {
            for &keep_alive in &keeps {
                for &rate in &rates {
                    for &streams in &all_streams {
                        let of = |connections| Variant { pages, encoding, keep_alive, rate, streams, connections };
                        all.extend(section.connections.all().into_iter().map(of));
                    }
                }
            }
        }
    }
    all
}

fn check(section: &RowSection, source: &Source<'_>) -> Result<(), String> {
    let refuse =
        |what: String| Err(source.complain_at(&section.name, &format!("row `{}`: {what}", section.name.as_ref())));
    let (items, parts) = (section.items.is_some(), section.parts.is_some());
    let sources = [section.size.is_some(), section.urls.is_some(), items, parts];
    if sources.iter().filter(|is_there| **is_there).count() > 1 {
        return refuse("size, urls, items and parts exclude each other".to_owned());
    }
    if let Some(all) = section.items {
        let http_only =
            section.kind != RowKind::Hit || section.forward || section.browser || !section.headers.is_empty();
        if http_only || section.sessions.is_some() {
            return refuse("items are asked of a memcached: no kind, forward, browser, headers or sessions".to_owned());
        }
        if !(0.0..=1.0).contains(&all.set_share) {
            return refuse(format!("items.set_share = {}: 0 to 1", all.set_share));
        }
        let Pages::Items { items, .. } = Pages::of_items(all) else { unreachable!("made so") };
        items.check().or_else(refuse)?;
    }
    match (&section.size, &section.urls) {
        (None, None) if !items && !parts => {
            return refuse("needs size = BYTES, urls = { count, mean_bytes } or, for a memcached, items".to_owned());
        }
        (None, Some(urls)) if urls.count == 0 || urls.count > ROW_URLS_MAX => {
            return refuse(format!("urls.count must be 1 to {ROW_URLS_MAX}"));
        }
        _ => {}
    }
    let sizes =
        section.size.iter().flat_map(|sizes| sizes.all()).chain(section.urls.iter().map(|urls| urls.mean_bytes));
    if let Some(wrong) = sizes.max().filter(|&size| size > ROW_PAGE_BYTES_MAX) {
        return refuse(format!("pages of {wrong} bytes; {ROW_PAGE_BYTES_MAX} at most"));
    }
    if let Some(wrong) = section.connections.all().into_iter().find(|n| !(1..=CONNECTIONS_MAX).contains(n)) {
        return refuse(format!("{wrong} connections; 1 to {CONNECTIONS_MAX}"));
    }
    let mut rates =
        section.rate.iter().flat_map(|rate| rate.all()).chain(section.sessions.iter().filter_map(|s| s.rate));
    if let Some(wrong) = rates.find(|rate| !(*rate > 0.0 && *rate <= RATE_MAX)) {
        return refuse(format!("a rate of {wrong}; more than 0, up to {RATE_MAX}"));
    }
    if section.rate.is_some() && section.sessions.is_some() {
        return refuse("rate and sessions exclude each other; sessions have a rate of their own".to_owned());
    }
    if section.sessions.as_ref().is_some_and(|all| all.count == 0 || all.calls == 0) {
        return refuse("sessions need a count and calls of at least 1".to_owned());
    }
    if section.poisson && section.rate.is_none() {
        return refuse("poisson needs rate = REQUESTS_PER_SECOND".to_owned());
    }
    if section.kind == RowKind::Idle && (section.rate.is_some() || section.sessions.is_some() || section.urls.is_some())
    {
        return refuse("an idle row takes size and connections, no rate, sessions or urls".to_owned());
    }
    if section.kind == RowKind::Idle && section.forward {
        return refuse("an idle row cannot be asked of forward proxies".to_owned());
    }
    if section.requests.is_some() && section.kind != RowKind::Idle {
        return refuse("requests is for idle rows".to_owned());
    }
    if let Some(why) = row_protocol::refusal(section).or_else(|| row_contents::refusal(section)) {
        return refuse(why);
    }
    if variants(section).is_empty() || section.blocks == Some(0) || section.requests == Some(0) {
        return refuse("an empty list, or a count of 0".to_owned());
    }
    Ok(())
}

fn planned(section: &RowSection, variant: Variant, is_alone: bool) -> PlannedRow {
    let Variant { pages, encoding, keep_alive, rate, streams, connections } = variant;
    let (what, size_bytes, urls) = match pages {
        Pages::One(size) => (format!("{size} B"), Some(size), 1),
        Pages::WithParts(parts) => row_contents::of_parts(parts),
        Pages::Many { count, mean_bytes, .. } => (format!("{count} URLs of {mean_bytes} B on average"), None, count),
        Pages::Items { items: all, set_share } => {
            let of_keys = format!("{} keys of {} B with values of {} B", all.keys, all.key_bytes, all.value_bytes);
            (format!("{of_keys}, {} % sets", set_share * 100.0), None, all.keys)
        }
    };
    let kept = if keep_alive { "kept" } else { "short" };
    let at = rate.map_or(String::new(), |rate| format!(", {rate}/s"));
    let at = if section.streams.is_some() { format!("{at}, {streams} streams") } else { at };
    let at = encoding.map_or(at.clone(), |coding| format!("{at}, {}", coding.name()));
    let name = section.name.as_ref();
    let family = if is_alone { name.clone() } else { format!("{name}: {what}, {kept}{at}") };
    let row_name =
        if is_alone { name.clone() } else { format!("{name}: {what}, {connections} connections, {kept}{at}") };
    let mut fields = section.headers.clone();
    if section.browser {
        fields.extend(BROWSER_FIELDS.map(str::to_owned));
    }
    fields.extend(encoding.map(ContentCoding::field));
    let row = PlannedRow {
        used: RowUsed {
            name: row_name,
            family,
            size_bytes,
            urls: urls as u64,
            connections,
            keep_alive,
            tls: section.tls,
            http2: section.http2,
            streams: section.http2.then_some(streams),
            resume: section.resume,
            encoding: encoding.map(|coding| coding.name().to_owned()),
            rate_per_second: rate.or(section.sessions.as_ref().and_then(|sessions| sessions.rate)),
            load: String::new(),
            kind: section.kind,
            null_ceiling_per_second: None,
        },
        pages,
        encoding,
        fields,
        poisson: section.poisson,
        forward: section.forward,
        sessions: section.sessions.clone(),
        timeout: section.timeout.map_or(TIMEOUT_DEFAULT, |span| span.0),
        hot: section.hot.unwrap_or(section.kind == RowKind::Hit && !pages.reach_the_origin()),
        requests_each: section.requests.unwrap_or(1),
        only: section.only.iter().map(|name| name.as_ref().clone()).collect(),
        blocks: section.blocks,
        slice: section.slice.map(|span| span.0),
    };
    let load = row.in_words(&what, section.browser);
    PlannedRow { used: RowUsed { load, ..row.used }, ..row }
}

impl Pages {
    /// Must something of them be asked of the origin each time, or is there none?
    fn reach_the_origin(self) -> bool {
        matches!(self, Pages::Items { .. } | Pages::WithParts(Parts { missing: true, .. }))
    }

    fn of_items(section: ItemsSection) -> Pages {
        let ItemsSection { keys, key_bytes, value_bytes, set_share } = section;
        Pages::Items { items: MemcachedItems { keys, key_bytes, value_bytes }, set_share }
    }
}

/// Where a gateway is asked: the key is the argument `key`.
pub(crate) const GATEWAY_PATH: &str = "/memc";

/// Where a gateway has the value of a key.
pub(crate) fn asked_of_a_gateway(key: &str) -> String {
    format!("{GATEWAY_PATH}?key={key}")
}

impl PlannedRow {
    fn in_words(&self, what: &str, browser: bool) -> String {
        let used = &self.used;
        let connections = used.connections;
        let spoken = Spoken::of(used).in_words(used.streams.unwrap_or(1));
        if used.kind == RowKind::Idle {
            let each = self.requests_each;
            return format!("{connections} connections ask for {what} {each} times each and are held{spoken}");
        }
        let pace = match (&self.sessions, used.rate_per_second) {
            (Some(sessions), rate) => format!(
                "{} sessions{} of {} calls with {:?} between them, {connections} users at most",
                sessions.count,
                rate.map_or(String::new(), |rate| format!(" at {rate} a second")),
                sessions.calls,
                sessions.think.0
            ),
            (None, Some(rate)) => {
                let spread = if self.poisson { "as Poisson" } else { "evenly" };
                format!("{rate} requests a second {spread} on {connections} connections")
            }
            (None, None) => format!("{connections} connections, each asks again when it was answered"),
        };
        let kept = match (used.keep_alive, used.resume) {
            (true, _) => "connections kept",
            (false, false) => "a connection for each request",
            (false, true) => "a connection for each request, which resumes the session of the one before",
        };
        let order = match self.pages {
            Pages::One(_) | Pages::WithParts(_) | Pages::Items { .. } => "",
            Pages::Many { order: UrlOrder::Random, .. } => " in random order",
            Pages::Many { order: UrlOrder::InTurn, .. } => " one after another",
            Pages::Many { order: UrlOrder::Zipf, .. } => " by Zipf's law",
        };
        let kind = match used.kind {
            RowKind::Pass => ", which may not be stored",
            RowKind::Miss => ", each under a URL of its own",
            RowKind::Hit | RowKind::Idle => "",
        };
        let head = if browser { ", with a browser's 13 header fields" } else { "" };
        let own = self.fields.len() - if browser { BROWSER_FIELDS.len() } else { 0 };
        let own: String = self.fields[..own].iter().map(|field| format!(", with `{field}`")).collect();
        let through = if self.forward { ", as from a forward proxy" } else { "" };
        format!("{pace}; {kept}; {what}{order}{kind}{head}{own}{through}{spoken}")
    }

    /// Of a catalogue's pages.
    pub(crate) fn mean_bytes(&self) -> Option<u64> {
        match self.pages {
            Pages::One(_) | Pages::WithParts(_) | Pages::Items { .. } => None,
            Pages::Many { mean_bytes, .. } => Some(mean_bytes),
        }
    }

    pub(crate) fn is_of_memcached(&self) -> bool {
        matches!(self.pages, Pages::Items { .. })
    }

    /// Of a memcached: is anything stored while it is measured?
    pub(crate) fn sets(&self) -> bool {
        matches!(self.pages, Pages::Items { set_share, .. } if set_share > 0.0)
    }

    /// What is asked for over HTTP, without host: of what a memcached holds, from a gateway.
    pub(crate) fn paths(&self) -> Vec<String> {
        let query = if self.used.kind == RowKind::Pass { "?c=0" } else { "" };
        match self.pages {
            Pages::One(size) if self.encoding.is_some() => vec![format!("/t{size}.html{query}")],
            Pages::One(size) => vec![format!("/f{size}.html{query}")],
            Pages::WithParts(parts) => vec![parts.path()],
            Pages::Many { count, .. } => (0..count).map(|n| format!("/u/{n}.html{query}")).collect(),
            Pages::Items { items, .. } => (0..items.keys).map(|n| asked_of_a_gateway(&items.key(n))).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::lab_file::tests::source;

    fn rows(text: &str) -> Result<Vec<PlannedRow>, String> {
        let text = format!("title = \"t\"\nreference = \"larder\"\n{text}");
        let source = source(&text);
        planned_rows(&source.read()?.row, &["larder", "nginx-cache"], &source)
    }

    #[test]
    fn a_row_is_made_once_for_each_of_its_values() {
        let made = rows("[[row]]\nname = \"hit\"\nsize = [10, 20]\nconnections = [1, 2]\nkeep_alive = [true, false]\n");
        let made = made.unwrap();
        assert_eq!(made.len(), 8);
        assert_eq!(made[0].used.name, "hit: 10 B, 1 connections, kept");
        assert_eq!(made[0].used.family, made[1].used.family);
        assert_ne!(made[1].used.family, made[2].used.family);
        assert!(made[0].hot && made[0].paths() == ["/f10.html"]);
        let one = rows("[[row]]\nname = \"pass\"\nkind = \"pass\"\nsize = 10\nconnections = 1\nrate = 5\n").unwrap();
        assert_eq!((one[0].used.name.as_str(), one[0].used.rate_per_second), ("pass", Some(5.0)));
        assert!(!one[0].hot && one[0].paths() == ["/f10.html?c=0"]);
        let many =
            rows("[[row]]\nname = \"m\"\nurls = { count = 3, mean_bytes = 9, order = \"zipf\" }\nconnections = 1\n");
        assert_eq!(many.unwrap()[0].paths(), ["/u/0.html", "/u/1.html", "/u/2.html"]);
        let spoken = "tls = true\nhttp2 = true\nstreams = [10, 1]\n";
        let made = rows(&format!("[[row]]\nname = \"h2\"\nsize = 10\nconnections = 2\n{spoken}")).unwrap();
        assert_eq!(made[1].used.name, "h2: 10 B, 2 connections, kept, 1 streams");
        assert_eq!((made[0].used.streams, Spoken::of(&made[0].used)), (Some(10), Spoken::H2));
        assert!(
            made[0].used.load.ends_with(", over TLS, over HTTP/2 with 10 streams at once"),
            "{}",
            made[0].used.load
        );
    }

    fn check_refused(row: &str, part: &str) {
        let error = rows(row).map(|rows| rows.len()).unwrap_err();
        assert!(error.contains(part), "{row}: {error}");
    }

    #[test]
    fn what_makes_no_row_is_refused() {
        check_refused("", "no [[row]]");
        let head = "[[row]]\nname = \"a\"\n";
        check_refused(&format!("{head}connections = 1\n"), "a.toml:4: row `a`: needs size");
        check_refused(&format!("{head}size = 1\nconnections = 0\n"), "0 connections");
        check_refused(&format!("{head}size = 1\nconnections = 1\nrate = 0\n"), "a rate of 0");
        check_refused(&format!("{head}size = 9999999999\nconnections = 1\n"), "pages of 9999999999 bytes");
        check_refused(&format!("{head}size = 1\nconnections = []\n"), "an empty list");
        check_refused(&format!("{head}size = 1\nconnections = [1, 1]\n"), "a second row named");
        check_refused(&format!("{head}size = 1\nconnections = 1\nonly = [\"lader\"]\n"), "unknown server `lader`");
        let items = "items = { keys = 10, key_bytes = 8, value_bytes = 8 }\n";
        check_refused(&format!("{head}size = 1\nconnections = 1\n{items}"), "exclude each other");
        check_refused(&format!("{head}browser = true\nconnections = 1\n{items}"), "asked of a memcached");
        let long = items.replace("key_bytes = 8", "key_bytes = 1000");
        check_refused(&format!("{head}connections = 1\n{long}"), "a key has 250 bytes at most");
        check_refused(&format!("{head}kind = \"idle\"\nsize = 1\nconnections = 1\nrate = 1\n"), "no rate");
        check_refused(&format!("{head}size = 1\nconnections = 1\nstreams = 2\n"), "row `a`: streams need http2");
    }
}
