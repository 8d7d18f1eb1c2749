//! What is held against what, when an act is over. Every figure is one since larder's start.

use std::collections::BTreeMap;

use super::client_record::{ClientBook, ClientEnd, ClientSight};
use super::counted_larder::{CountedLarder, Part};
use super::counted_origin::{CountedOrigin, OriginBook};
use super::figures_compared::Comparison;
use super::larder_books::{self, NamedFigures, by_label};
use super::told_exchange::{ToldEvent, ToldExchange, by, sums};

/// The classes that a counter of the cores has, with its name.
const COUNTERS: [(&str, &str); 10] = [
    ("hit", "hits"),
    ("stale", "hits_stale"),
    ("revalidated", "revalidated"),
    ("miss", "misses"),
    ("coalesced", "coalesced"),
    ("pass", "passes"),
    ("synth", "synths"),
    ("error", "errors"),
    ("refused", "refused"),
    ("purge", "purges"),
];
/// Kinds of faults by origin, and the counter of the cores that has them all.
const FAULTS: [(&[&str], &str); 6] = [
    (&["resolve"], "resolve"),
    (&["connect", "connect-timeout", "tls", "exhausted", "all-out"], "connect"),
    (&["first-byte"], "first_byte"),
    (&["protocol"], "protocol"),
    (&["truncated"], "truncated"),
    (&["busy"], "busy"),
];

/// All that is written anywhere of a part so far.
pub struct ActBooks<'a> {
    pub part: Part,
    lines: Vec<ToldExchange>,
    events: Vec<ToldEvent>,
    lost: u64,
    metrics: NamedFigures,
    stat: NamedFigures,
    varnishstat: Option<NamedFigures>,
    /// Bytes of bodies by the numbers of requests, as varnishlog has them.
    varnishlog: NamedFigures,
    clients: &'a [ClientBook],
    origins: Vec<(&'static str, OriginBook)>,
}

impl<'a> ActBooks<'a> {
    pub fn read(
        larder: &CountedLarder,
        clients: &'a [ClientBook],
        origins: &[CountedOrigin],
    ) -> Result<ActBooks<'a>, String> {
        let (events, lost) = larder_books::record(&larder.folder)?;
        let is_varnishd = larder.part == Part::Varnishd;
        Ok(ActBooks {
            part: larder.part,
            lines: larder_books::access_log(&larder.folder)?,
            events,
            lost,
            metrics: larder_books::metrics(&larder.folder)?,
            stat: larder_books::stat(&larder.program, &larder.folder)?,
            varnishstat: is_varnishd.then(|| larder_books::varnishstat(&larder.folder)).transpose()?,
            varnishlog: if is_varnishd { larder_books::varnishlog(&larder.folder)? } else { NamedFigures::new() },
            clients,
            origins: origins.iter().map(|origin| (origin.name, origin.book())).collect(),
        })
    }

    /// Lines of the access log by class.
    pub fn classes(&self) -> NamedFigures {
        by(self.lines.iter().map(|line| line.class.clone()))
    }

    /// A counter of the cores.
    fn total(&self, name: &str) -> u64 {
        self.metrics.get(&format!("larder_{name}_total")).copied().unwrap_or(0)
    }

    fn of_clients(&self, figure: impl Fn(&ClientBook) -> u64) -> u64 {
        self.clients.iter().map(figure).sum()
    }

    fn of_origins(&self, figure: impl Fn(&OriginBook) -> u64) -> u64 {
        self.origins.iter().map(|(_, book)| figure(book)).sum()
    }

    /// Has any client gone away so far?
    fn some_left(&self) -> bool {
        self.clients.len() > 1
    }

    /// Of the act that is over.
    fn sights(&self) -> impl Iterator<Item = &ClientSight> {
        self.clients.last().into_iter().flat_map(|act| &act.sights)
    }
}

pub fn judge(books: &ActBooks<'_>, to: &mut Comparison) {
    told_alike(books, to);
    counted_as_told(books, to);
    cores_count_alike(books, to);
    shown_alike(books, to);
    clients_got_it(books, to);
    bytes_of_connections(books, to);
    origins_saw_it(books, to);
    faults_are_origins(books, to);
    if let Some(varnishstat) = &books.varnishstat {
        varnish_counts_alike(books, varnishstat, to);
    }
    for trouble in books.clients.iter().flat_map(|act| &act.troubles) {
        to.each("a client", 1, vec![trouble.clone()]);
    }
}

fn key(told: &ToldExchange) -> String {
    format!("{told:?}")
}

/// The access log and the events are the same exchanges.
fn told_alike(books: &ActBooks<'_>, to: &mut Comparison) {
    let lines = books.lines.len() as u64;
    to.number(
        "events, those lost included",
        &[("access log", lines), ("events", books.events.len() as u64 + books.lost)],
    );
    to.number("lines", &[("access log", lines), ("larder_log_lines_total", books.total("log_lines"))]);
    to.number("lines lost", &[("larder_log_lines_lost_total", books.total("log_lines_lost")), ("allowed", 0)]);
    to.number(
        "told",
        &[("events", books.events.len() as u64), ("larder_events_told_total", books.total("events_told"))],
    );
    to.number("lost", &[("the record", books.lost), ("larder_events_lost_total", books.total("events_lost"))]);
    let mut of_log = by(books.lines.iter().map(key));
    let mut unlike = Vec::new();
    for event in books.events.iter().map(|event| key(&event.told)) {
        match of_log.get_mut(&event) {
            Some(left) if *left > 0 => *left -= 1,
            _ => unlike.push(format!("an event and no line: {event}")),
        }
    }
    // What was lost has a line alone.
    if books.lost == 0 {
        let left = of_log.iter().filter(|(_, left)| **left > 0);
        unlike.extend(left.map(|(line, _)| format!("a line and no event: {line}")));
    }
    to.each("lines and events", books.events.len(), unlike);
}

fn protocol_word(told: &ToldExchange) -> &str {
    match told.protocol.as_str() {
        "1.0" => "http/1.0",
        "1.1" => "http/1.1",
        "2.0" => "h2",
        other => other,
    }
}

/// The metrics of responses have what the log has.
fn counted_as_told(books: &ActBooks<'_>, to: &mut Comparison) {
    let (lines, metrics) = (&books.lines, &books.metrics);
    let by_class = books.classes();
    let of_metrics = by_label(metrics, "larder_responses_total", &["class"]);
    to.same("responses", &[("access log", &by_class), ("larder_responses_total", &of_metrics)]);
    let bytes = sums(lines.iter().map(|line| (line.class.clone(), line.bytes)));
    let of_metrics = by_label(metrics, "larder_response_body_bytes_total", &["class"]);
    to.same("bytes of bodies", &[("access log", &bytes), ("larder_response_body_bytes_total", &of_metrics)]);
    // What was no request has no protocol in the log.
    let is_read = |line: &&ToldExchange| line.class != "refused";
    let by_both = lines.iter().filter(is_read).map(|line| format!("{} {}", line.class, protocol_word(line)));
    let mut of_metrics = by_label(metrics, "larder_responses_total", &["class", "protocol"]);
    of_metrics.retain(|key, _| !key.starts_with("refused "));
    to.same("responses", &[("access log", &by(by_both)), ("larder_responses_total", &of_metrics)]);
    if books.lost > 0 {
        return;
    }
    let events = &books.events;
    let by_route = by(events.iter().map(|event| format!("{} {}", event.route, event.told.class)));
    let of_metrics = by_label(metrics, "larder_route_responses_total", &["route", "class"]);
    to.same("responses of routes", &[("events", &by_route), ("larder_route_responses_total", &of_metrics)]);
    let bytes = sums(events.iter().map(|event| (format!("{} {}", event.route, event.told.class), event.told.bytes)));
    let of_metrics = by_label(metrics, "larder_route_response_body_bytes_total", &["route", "class"]);
    to.same("bytes of routes", &[("events", &bytes), ("larder_route_response_body_bytes_total", &of_metrics)]);
    let begun = by(events.iter().filter(|event| event.has_begun).map(|event| event.told.class.clone()));
    let whole = by_label(metrics, "larder_response_seconds_count", &["class"]);
    let first = by_label(metrics, "larder_response_first_byte_seconds_count", &["class"]);
    to.same(
        "answers that began",
        &[
            ("events", &begun),
            ("larder_response_seconds_count", &whole),
            ("larder_response_first_byte_seconds_count", &first),
        ],
    );
}

/// The counters of the cores have every answer that began, by its class.
fn cores_count_alike(books: &ActBooks<'_>, to: &mut Comparison) {
    let read = books.lines.iter().filter(|line| !line.method.is_empty()).count() as u64;
    to.number("requests", &[("access log", read), ("larder_requests_total", books.total("requests"))]);
    let of_clients = [("clients", books.of_clients(|act| act.connections))];
    let accepted = ("larder_connections_accepted_total", books.total("connections_accepted"));
    let handled = ("larder_connections_handled_total", books.total("connections_handled"));
    // To see whether it listens one was opened.
    let probes = if books.part == Part::Varnishd { 1 } else { 0 };
    to.number("connections", &[(of_clients[0].0, of_clients[0].1 + probes), accepted, handled]);
    let http2 = ("larder_http2_connections_total", books.total("http2_connections"));
    to.number("connections of HTTP/2", &[("clients", books.of_clients(|act| act.http2_connections)), http2]);
    if books.lost > 0 {
        return;
    }
    let begun = |class: &str| {
        let events = books.events.iter().filter(|event| event.told.class == class);
        events.filter(|event| event.has_begun || class == "refused").count() as u64
    };
    // What a program purges it answers itself: a synth.
    let purged = books.lines.iter().filter(|line| line.method == "PURGE").count() as u64;
    if books.part == Part::Varnishd {
        to.number("purges", &[("access log", purged), ("larder_purges_total", books.total("purges"))]);
    }
    for (class, counter) in COUNTERS {
        if (books.part, class) == (Part::Varnishd, "purge") {
            continue;
        }
        let name = format!("larder_{counter}_total");
        to.number("answers that began", &[(class, begun(class)), (&name, books.total(counter))]);
    }
}

/// `larder stat` shows the figures of the metrics.
fn shown_alike(books: &ActBooks<'_>, to: &mut Comparison) {
    let requests = ("larder stat", books.stat.get("requests").copied().unwrap_or(0));
    to.number("requests", &[requests, ("larder_requests_total", books.total("requests"))]);
    for (name, shown) in &books.stat {
        let Some(metric) = books.metrics.get(&format!("larder_{name}_total")) else { continue };
        to.number(name, &[("larder stat", *shown), ("metrics", *metric)]);
    }
}

fn of_number<T>(all: impl Iterator<Item = T>, number: impl Fn(&T) -> String) -> BTreeMap<String, Vec<T>> {
    let mut by_number: BTreeMap<String, Vec<T>> = BTreeMap::new();
    all.for_each(|one| by_number.entry(number(&one)).or_default().push(one));
    by_number
}

/// What each client got is what the log says of its request.
fn clients_got_it(books: &ActBooks<'_>, to: &mut Comparison) {
    let lines = of_number(books.lines.iter(), |line| line.number.clone());
    let mut unlike = Vec::new();
    for sight in books.sights() {
        let told = lines.get(&sight.number).map(Vec::as_slice).unwrap_or_default();
        let is_right = match (sight.end, told) {
            (ClientEnd::Answered { status, body_bytes, .. }, [line]) => {
                (line.status, line.bytes) == (u64::from(status), body_bytes)
            }
            (ClientEnd::Unanswered, []) | (ClientEnd::Left, [] | [_]) => true,
            _ => false,
        };
        if !is_right {
            let (method, target) = (sight.method, &sight.target);
            unlike.push(format!("{method} {target}: {:?}, told: {told:?}", sight.end));
        }
    }
    to.each("clients and log", books.sights().count(), unlike);
    let of_clients = books.clients.iter().flat_map(|act| &act.to_malformed).filter(|(status, _)| *status > 0);
    let of_clients = sums(
        of_clients.map(|(status, bytes)| (format!("{status}, bytes"), *bytes)).chain(
            books
                .clients
                .iter()
                .flat_map(|act| &act.to_malformed)
                .filter(|(status, _)| *status > 0)
                .map(|(status, _)| (status.to_string(), 1)),
        ),
    );
    let refused = || books.lines.iter().filter(|line| line.number.is_empty());
    let of_log = sums(
        refused()
            .map(|line| (format!("{}, bytes", line.status), line.bytes))
            .chain(refused().map(|line| (line.status.to_string(), 1))),
    );
    to.same("answers to what is no request", &[("clients", &of_clients), ("access log", &of_log)]);
}

/// What went over the clients' connections, heads and frames included.
fn bytes_of_connections(books: &ActBooks<'_>, to: &mut Comparison) {
    let got = ("clients", books.of_clients(|act| act.bytes_received));
    let sent = ("larder_sent_bytes_total", books.total("sent_bytes"));
    let asked = ("clients", books.of_clients(|act| act.bytes_sent));
    let read = ("larder_received_bytes_total", books.total("received_bytes"));
    if !books.some_left() {
        to.number("bytes to clients", &[got, sent]);
        to.number("bytes from clients", &[asked, read]);
    }
}

/// What reached the origins is what larder says it asked them.
fn origins_saw_it(books: &ActBooks<'_>, to: &mut Comparison) {
    let seen = books.origins.iter().map(|(name, book)| (name.to_string(), book.sights.len() as u64)).collect();
    if books.part == Part::Builtin {
        let asked = by_label(&books.metrics, "larder_origin_asked_total", &["origin"]);
        to.same("requests to origins", &[("origins", &seen), ("larder_origin_asked_total", &asked)]);
    }
    let requests = ("larder_origin_requests_total", books.total("origin_requests"));
    to.number("requests to origins", &[("origins", seen.values().sum()), requests]);
    let opened = ("larder_origin_connections_opened_total", books.total("origin_connections_opened"));
    let accepted = books.of_origins(|book| book.connections);
    // Whose client leaves before it knows of its connection counts none.
    let left = books.sights().filter(|sight| sight.end == ClientEnd::Left).count() as u64;
    let least = ("those of clients that stay", accepted - left.min(accepted));
    to.between("connections to origins", [least, opened, ("origins", accepted)]);
    let reused = ("larder_origin_connections_reused_total", books.total("origin_connections_reused"));
    let seen = books.of_origins(|book| book.sights.iter().filter(|sight| !sight.is_first).count() as u64);
    to.number("requests on connections that were open", &[("origins", seen), reused]);
    if books.part == Part::Builtin {
        bytes_of_origins(books, to);
    }
    if !books.some_left() {
        let written = ("what the origins sent", books.of_origins(|book| book.bytes_written));
        let wanted = books.of_origins(|book| book.bytes_written - book.bytes_unsure);
        let read = ("larder_origin_received_bytes_total", books.total("origin_received_bytes"));
        to.between("bytes from origins", [("what was wanted of it", wanted), read, written]);
    }
    tries_are_requests(books, to);
}

/// What was written to each origin and read from it.
fn bytes_of_origins(books: &ActBooks<'_>, to: &mut Comparison) {
    let carried = by_label(&books.metrics, "larder_origin_bytes_total", &["origin", "direction"]);
    let of = |key: String| carried.get(&key).copied().unwrap_or(0);
    let received = carried.iter().filter(|(key, _)| key.ends_with(" received")).map(|(_, bytes)| bytes).sum();
    let all = ("larder_origin_received_bytes_total", books.total("origin_received_bytes"));
    to.number("bytes from origins", &[("larder_origin_bytes_total", received), all]);
    for (name, book) in books.origins.iter().filter(|_| !books.some_left()) {
        let metric = "larder_origin_bytes_total";
        let sent = of(format!("{name} sent"));
        to.number(&format!("bytes to {name}"), &[("the origin", book.bytes_read), (metric, sent)]);
        let wanted = ("what was wanted of it", book.bytes_written - book.bytes_unsure);
        let read = (metric, of(format!("{name} received")));
        to.between(&format!("bytes from {name}"), [wanted, read, ("what it sent", book.bytes_written)]);
    }
}

/// Each exchange's tries are the requests that reached an origin for it; what is fetched behind an answer has no event.
fn tries_are_requests(books: &ActBooks<'_>, to: &mut Comparison) {
    if books.lost > 0 {
        return;
    }
    let sights = of_number(books.origins.iter().flat_map(|(_, book)| &book.sights), |sight| sight.number.clone());
    let left = books.sights().filter(|sight| sight.end == ClientEnd::Left).map(|sight| sight.number.as_str());
    let left: std::collections::BTreeSet<&str> = left.collect();
    let mut unlike = Vec::new();
    for event in books.events.iter().filter(|event| !left.contains(event.told.number.as_str())) {
        let seen = sights.get(&event.told.number).map(Vec::as_slice).unwrap_or_default();
        let behind = seen.len().checked_sub(event.tries.len());
        let is_right = behind == Some(0) || behind.is_some() && event.told.class == "stale";
        if !is_right {
            unlike.push(format!("{:?}, tries: {:?}, seen: {seen:?}", event.told, event.tries));
        }
    }
    to.each("tries and origins", books.events.len(), unlike);
}

/// What went wrong is what the origins did wrong.
fn faults_are_origins(books: &ActBooks<'_>, to: &mut Comparison) {
    let of_metrics = by_label(&books.metrics, "larder_origin_faults_total", &["origin", "kind"]);
    let of_kinds = |kinds: &[&str]| {
        let is_of = |key: &str| key.rsplit(' ').next().is_some_and(|kind| kinds.contains(&kind));
        of_metrics.iter().filter(|(key, _)| is_of(key)).map(|(_, count)| count).sum::<u64>()
    };
    if books.part == Part::Builtin {
        for (kinds, counter) in FAULTS {
            let name = format!("origin_errors_{counter}");
            to.number("faults", &[(&name, books.total(&name)), ("by origin", of_kinds(kinds))]);
        }
        let of_origins = by_label(&books.metrics, "larder_origin_errors_total", &["origin"]);
        let summed =
            sums(of_metrics.iter().map(|(key, count)| (key.split(' ').next().unwrap_or_default().to_owned(), *count)));
        to.same("faults", &[("larder_origin_errors_total", &of_origins), ("larder_origin_faults_total", &summed)]);
    }
    if books.some_left() {
        return;
    }
    // Who closes a connection that has served others may not have seen what was sent: that is asked anew.
    let is_fault = |fault: &str, is_first: bool| fault != "first-byte" || is_first;
    let mut seen = by(books.origins.iter().flat_map(|(name, book)| {
        let faults = book.sights.iter().filter_map(|sight| Some((sight.fault?, sight.is_first)));
        faults.filter(|(fault, is_first)| is_fault(fault, *is_first)).map(move |(fault, _)| format!("{name} {fault}"))
    }));
    let down = books.events.iter().flat_map(|event| &event.unconnected).filter(|(origin, _)| origin == "down");
    seen.insert("down connect".to_owned(), down.count() as u64);
    if books.part == Part::Builtin {
        to.same("faults", &[("origins", &seen), ("larder_origin_faults_total", &of_metrics)]);
    }
}

/// varnishstat's figures.
fn varnish_counts_alike(books: &ActBooks<'_>, varnishstat: &NamedFigures, to: &mut Comparison) {
    let main = |name: &str| varnishstat.get(&format!("MAIN.{name}")).copied().unwrap_or(0);
    let sum = |names: &[&str]| names.iter().map(|name| books.total(name)).sum::<u64>();
    let lines =
        |is_meant: &dyn Fn(&ToldExchange) -> bool| books.lines.iter().filter(|line| is_meant(line)).count() as u64;
    for (name, counters) in [
        ("client_req", &["requests"][..]),
        ("client_req_400", &["refused"]),
        ("cache_hit", &["hits", "hits_stale", "coalesced"]),
        ("cache_hit_grace", &["hits_stale"]),
        ("cache_miss", &["misses", "revalidated"]),
        ("s_pass", &["passes"]),
        ("s_synth", &["synths", "errors"]),
        ("backend_req", &["origin_requests"]),
        ("backend_conn", &["origin_connections_opened"]),
        ("backend_reuse", &["origin_connections_reused"]),
        ("n_purges", &["purges"]),
        ("larder_bytes_in", &["received_bytes"]),
        ("larder_bytes_out", &["sent_bytes"]),
        ("larder_origin_bytes_in", &["origin_received_bytes"]),
    ] {
        to.number(name, &[("varnishstat", main(name)), ("metrics", sum(counters))]);
    }
    to.number(
        "client_resp_500",
        &[("varnishstat", main("client_resp_500")), ("log", lines(&|line| line.status == 500))],
    );
    // In a session of HTTP/2 frames have bytes that are of no request.
    let mut bytes: u64 = books.lines.iter().map(|line| line.bytes).sum();
    bytes += books.varnishlog.get(larder_books::SESSION).copied().unwrap_or(0);
    to.number("s_resp_bodybytes", &[("varnishstat", main("s_resp_bodybytes")), ("access log, and frames", bytes)]);
    let of_log = sums(books.lines.iter().map(|line| (line.number.clone(), line.bytes)));
    let told = of_number(books.lines.iter(), |line| line.number.clone());
    let unlike = of_log.iter().filter(|(number, bytes)| books.varnishlog.get(*number) != Some(bytes));
    let said = unlike.map(|(number, _)| format!("{:?}: {:?}", told[number], books.varnishlog.get(number)));
    to.each("varnishlog and access log", of_log.len(), said.collect());
    for (name, book) in &books.origins {
        let of = |figure: &str| varnishstat.get(&format!("VBE.boot.{name}.{figure}")).copied().unwrap_or(0);
        to.number(&format!("VBE.{name}.req"), &[("varnishstat", of("req")), ("origin", book.sights.len() as u64)]);
    }
}
