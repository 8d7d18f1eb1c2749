//! Random requests: a few targets that are asked for again and again, by clients that differ.

use super::random_expressions::pick;
use super::replayed_case::{Request, USUAL_CLIENT, WELL};
use crate::dice::Dice;

const REQUESTS_MAX: u64 = 9;
const TARGETS_MAX: u64 = 3;
/// Longer than the short lives that programs and origins give.
const WAIT_MS: u64 = 500;
const LONG_WAIT_MS: u64 = 1_300;
const WAITS_MAX: usize = 2;

const PATHS: [&str; 6] = ["/a", "/a", "/b", "/c.css", "/A/b", "/"];
const WORDS: [&str; 33] = [
    "ma=10",
    "ma=10",
    "ma=100",
    "ma=1",
    "ma=1",
    "ma=0",
    "cc=private",
    "cc=no-cache",
    "cc=no-store",
    "cc=s-maxage=5",
    "ex=past",
    "ex=future",
    "age=3",
    "et=strong",
    "et=strong",
    "et=weak",
    "et=new",
    "lm=1",
    "v=X-A",
    "v=X-A",
    "thenv=X-A",
    "v=X-A,X-B",
    "s=404",
    "s=500",
    "s=302",
    "s=204",
    "then=503",
    "then=404",
    "sc=1",
    "two=1",
    "hop=1",
    "loc=1",
    "part=1",
];
const FRAMINGS: [&str; 6] = ["f=chunked", "f=chunked", "f=close", "f=cut", "f=nothing", "len=3000"];
const FIELDS: [&str; 24] = [
    "X-A: 1",
    "X-A: 1",
    "X-A: 2",
    "X-A: a",
    "X-B: 1",
    "X-B: abc",
    "Cookie: x=1; y=2",
    "Cookie: y=2",
    "If-None-Match: \"e\"",
    "If-None-Match: W/\"e\"",
    "If-None-Match: \"o\", \"e\"",
    "If-Modified-Since: Thu, 01 Jan 2015 00:00:00 GMT",
    "If-Modified-Since: Thu, 01 Jan 2004 00:00:00 GMT",
    "Range: bytes=0-3",
    "Range: bytes=5-",
    "Range: bytes=-4",
    "Range: bytes=90000-",
    "Cache-Control: no-cache",
    "Authorization: Basic eDp5",
    "User-Agent: abc",
    "Accept-Encoding: gzip",
    "X-Two: a\r\nX-Two: b",
    "Connection: close",
    "Host: B.example",
];

pub fn drawn(dice: &mut Dice) -> Vec<Request> {
    let targets: Vec<String> = (0..1 + dice.below(TARGETS_MAX)).map(|_| target(dice)).collect();
    let mut waits = 0;
    let mut requests: Vec<Request> = Vec::new();
    for _ in 0..2 + dice.below(REQUESTS_MAX - 1) {
        let target = targets[dice.often_small(targets.len() as u64) as usize].clone();
        let mut request = request(dice, &target);
        if waits < WAITS_MAX && !requests.is_empty() && dice.below(8) == 0 {
            request.wait_ms = if dice.below(3) == 0 { LONG_WAIT_MS } else { WAIT_MS };
            waits += 1;
        }
        requests.push(request);
    }
    // What a body that breaks off leaves of hit-for-miss is argued in docs/vcl.md, and would show everywhere.
    let mut cut: Vec<String> = Vec::new();
    for request in requests.iter_mut().filter(|request| request.line.contains("f=cut")) {
        let target = request.line.split(' ').nth(1).unwrap_or_default().to_string();
        if cut.contains(&target) {
            request.line = request.line.replace("f=cut", "f=whole");
        }
        cut.push(target);
    }
    // An origin that fails does so for a while.
    if dice.below(4) == 0 {
        let from = dice.below(requests.len() as u64) as usize;
        let mode = pick(dice, &["failing", "gone"]);
        for request in requests.iter_mut().skip(from).take(2) {
            request.origin = mode.to_string();
        }
    }
    requests
}

fn target(dice: &mut Dice) -> String {
    let mut words: Vec<&str> = (0..dice.below(4)).map(|_| pick(dice, &WORDS)).collect();
    if dice.below(3) == 0 {
        words.push(pick(dice, &FRAMINGS));
    }
    // Of two words of one name std.querysort makes now this and now that order in Varnish, if one begins the other.
    words.sort_by_key(|word| word.split('=').next());
    words.dedup_by_key(|word| word.split('=').next());
    let path = pick(dice, &PATHS);
    if words.is_empty() { path.to_string() } else { format!("{path}?{}", words.join("&")) }
}

fn request(dice: &mut Dice, target: &str) -> Request {
    let method = match dice.below(20) {
        0..=13 => "GET",
        14..=15 => "HEAD",
        16..=17 => "POST",
        _ => pick(dice, &["PUT", "DELETE", "OPTIONS", "PURGE"]),
    };
    let count = [0, 0, 0, 1, 1, 2][dice.below(6) as usize];
    let mut fields: Vec<String> = (0..count).map(|_| pick(dice, &FIELDS).to_string()).collect();
    // Two lines of one name are a matter of their own.
    fields.sort();
    fields.dedup_by(|one, other| one.split(':').next() == other.split(':').next());
    let body = match method {
        "POST" | "PUT" => Some(pick(dice, &["", "x=1", "a longer body"]).to_string()),
        _ => None,
    };
    let client = if dice.below(8) == 0 { pick(dice, &["127.0.0.9", "10.1.2.3", "10.2.2.3"]) } else { USUAL_CLIENT };
    // Varnish spoils the connection of a HEAD that has a range.
    fields.retain(|field| method != "HEAD" || !field.starts_with("Range:"));
    Request {
        line: format!("{method} {target}"),
        fields: fields.iter().flat_map(|field| field.split("\r\n")).map(str::to_string).collect(),
        body,
        wait_ms: 0,
        client: client.to_string(),
        origin: WELL.to_string(),
    }
}
