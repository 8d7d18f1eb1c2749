//! One program walked through a scenario: each step's request sent, its answer and what reached the origin held against
//! what is expected; and, once both programs have been walked, what they saw held against each other.
//!
//! Headers that no two programs say alike, or that depend on the second, are left out of the comparison by name.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::judged_cache::JudgedCache;
use crate::original_scenario::{Scenario, Step};
use crate::plain_exchange::{Message, Unframed};
use crate::project::Stopwatch;
use crate::scenario_origin::{Asked, RecordingOrigin};

const ANSWER_SECONDS_MAX: u64 = 10;
/// A probe every five seconds, and a window of ten of them.
const HEALTH_SECONDS_MAX: f64 = 90.0;
/// What is fetched behind an answer has come by then.
const ORIGIN_PATIENCE: Duration = Duration::from_secs(2);

/// Who answers and when, how it is framed, and what one connection agreed on.
const ANSWER_HEADERS_ASIDE: [&str; 11] = [
    "accept-ranges",
    "age",
    "connection",
    "content-length",
    "date",
    "expires",
    "keep-alive",
    "server",
    "transfer-encoding",
    "via",
    "x-varnish",
];
const REQUEST_HEADERS_ASIDE: [&str; 3] = ["connection", "via", "x-varnish"];

/// What one step showed.
pub struct Seen {
    answer: Option<Message>,
    asked: Vec<Asked>,
}

impl Seen {
    /// The page that builtin.vcl makes; larder's is its own.
    fn has_varnishs_page(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| String::from_utf8_lossy(&answer.body).contains("Guru Meditation"))
    }
}

/// What was seen, and what was not as the scenario expects.
pub fn walk(
    scenario: &Scenario,
    cache: &JudgedCache,
    origin: &RecordingOrigin,
) -> Result<(Vec<Seen>, Vec<String>), String> {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for step in &scenario.step {
        let seen = take(step, cache, origin)
            .map_err(|why| format!("'{}': {why}; its log ends: {}", step.say, cache.last_words()))?;
        let mut complain = |what: String| wrong.push(format!("'{}': {what}", step.say));
        if let Some(answer) = &seen.answer {
            look_at_answer(step, answer, &mut complain);
        }
        look_at_origin(step, &seen.asked, &mut complain);
        all.push(seen);
    }
    Ok((all, wrong))
}

fn take(step: &Step, cache: &JudgedCache, origin: &RecordingOrigin) -> Result<Seen, String> {
    if step.after > 0.0 {
        std::thread::sleep(Duration::from_secs_f64(step.after));
    }
    if let Some(mode) = &step.mode {
        origin.set_mode(mode);
    }
    if let Some(word) = &step.health {
        wait_for_health(cache, word == "healthy")?;
    }
    let answer = match &step.request {
        None => None,
        Some(request) => Some(ask(step, request, cache.port).map_err(|e| e.to_string())?),
    };
    Ok(Seen { answer, asked: origin.take(step.reached.len(), ORIGIN_PATIENCE) })
}

fn wait_for_health(cache: &JudgedCache, healthy: bool) -> Result<(), String> {
    let watch = Stopwatch::start();
    while cache.backends_healthy()?.iter().any(|one| *one != healthy) {
        if watch.seconds() > HEALTH_SECONDS_MAX {
            return Err(format!("health does not change within {HEALTH_SECONDS_MAX} s"));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    Ok(())
}

/// Sends the request on a connection of its own; the answer's body is what came through the tunnel, if there is one.
fn ask(step: &Step, request: &str, port: u16) -> std::io::Result<Message> {
    let mut to = TcpStream::connect(("127.0.0.1", port))?;
    to.set_read_timeout(Some(Duration::from_secs(ANSWER_SECONDS_MAX)))?;
    let client = step.client.as_deref().unwrap_or("127.0.0.1");
    let mut head = format!("PROXY TCP4 {client} 127.0.0.1 40000 80\r\n{request} HTTP/1.1\r\n");
    if !step.headers.iter().any(|field| field.to_ascii_lowercase().starts_with("host:")) {
        head.push_str("Host: shop.example\r\n");
    }
    step.headers.iter().for_each(|field| head.push_str(&format!("{field}\r\n")));
    let body = step.send.as_deref().unwrap_or_default();
    if step.send.is_some() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    to.write_all(format!("{head}\r\n{body}").as_bytes())?;
    let mut from = BufReader::new(to.try_clone()?);
    let answer = Message::read(&mut from, Unframed::UntilEnd, !request.starts_with("HEAD "))?;
    let mut answer = answer.ok_or_else(|| std::io::Error::other("closed without an answer"))?;
    if let Some(line) = &step.tunnel {
        to.write_all(format!("{line}\n").as_bytes())?;
        let mut echoed = String::new();
        from.read_line(&mut echoed)?;
        answer.body = echoed.trim_end().as_bytes().to_vec();
    }
    Ok(answer)
}

fn look_at_answer(step: &Step, answer: &Message, complain: &mut impl FnMut(String)) {
    let text = String::from_utf8_lossy(&answer.body);
    let reason = answer.start.splitn(3, ' ').nth(2).unwrap_or_default();
    if step.status.is_some_and(|status| answer.second_word() != status.to_string()) {
        complain(format!("the answer is {}", answer.start));
    }
    if step.reason.as_ref().is_some_and(|expected| reason != expected) {
        complain(format!("the reason is '{reason}'"));
    }
    let expected = step.tunnel.as_ref().map(|line| line.to_uppercase()).or_else(|| step.body.clone());
    if expected.as_ref().is_some_and(|expected| text != *expected) {
        complain(format!("the body is '{text}'"));
    }
    for (name, value) in &step.has {
        if answer.field(name) != Some(value) {
            complain(format!("{name} is {:?}, not '{value}'", answer.field(name)));
        }
    }
    for name in step.lacks.iter().filter(|name| answer.field(name).is_some()) {
        complain(format!("{name} is {:?} and should not be there", answer.field(name)));
    }
}

fn look_at_origin(step: &Step, asked: &[Asked], complain: &mut impl FnMut(String)) {
    let lines: Vec<&str> = asked.iter().map(|asked| asked.line.as_str()).collect();
    if lines != step.reached.iter().map(String::as_str).collect::<Vec<_>>() {
        complain(format!("{lines:?} reached the origin, not {:?}", step.reached));
        return;
    }
    let Some(last) = asked.last() else { return };
    for (name, value) in &step.asked {
        let known = last.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value);
        if known.map_or("", String::as_str) != value {
            complain(format!("the origin was asked with {name} {known:?}, not '{value}'"));
        }
    }
}

/// In what the two were not alike, step by step.
pub fn differences(scenario: &Scenario, of_larder: &[Seen], of_varnish: &[Seen]) -> Vec<String> {
    let mut found = Vec::new();
    for ((step, larder), varnish) in scenario.step.iter().zip(of_larder).zip(of_varnish) {
        let mut compare = |what: &str, larder: Vec<String>, varnish: Vec<String>| {
            let only = |these: &[String], those: &[String]| {
                these.iter().filter(|one| !those.contains(one)).cloned().collect::<Vec<_>>().join("; ")
            };
            if larder != varnish {
                let (mine, theirs) = (only(&larder, &varnish), only(&varnish, &larder));
                found.push(format!("'{}': {what}: only larder: {mine}; only Varnish: {theirs}", step.say));
            }
        };
        let page = varnish.has_varnishs_page();
        compare("answer", answer_lines(scenario, larder, !page), answer_lines(scenario, varnish, !page));
        compare("origin", origin_lines(larder), origin_lines(varnish));
    }
    found
}

fn answer_lines(scenario: &Scenario, seen: &Seen, with_body: bool) -> Vec<String> {
    let Some(answer) = &seen.answer else { return Vec::new() };
    let known = |name: &str| scenario.differ.keys().any(|differs| differs.eq_ignore_ascii_case(name));
    let mut lines = field_lines(&answer.fields, &ANSWER_HEADERS_ASIDE);
    lines.retain(|line| !known(line.split(':').next().unwrap_or_default()));
    lines.push(answer.start.clone());
    if with_body {
        lines.extend(String::from_utf8_lossy(&answer.body).lines().map(str::to_string));
    }
    lines
}

fn origin_lines(seen: &Seen) -> Vec<String> {
    let one = |asked: &Asked| {
        let body = format!("body {:?}", String::from_utf8_lossy(&asked.body));
        [vec![asked.line.clone()], field_lines(&asked.fields, &REQUEST_HEADERS_ASIDE), vec![body]].concat()
    };
    seen.asked.iter().flat_map(one).collect()
}

/// `name: value`, sorted, names in lower case.
fn field_lines(fields: &[(String, String)], aside: &[&str]) -> Vec<String> {
    let lower = fields.iter().map(|(name, value)| (name.to_ascii_lowercase(), value));
    let kept = lower.filter(|(name, _)| !aside.contains(&name.as_str()));
    let mut lines: Vec<String> = kept.map(|(name, value)| format!("{name}: {value}")).collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCENARIO: &str = "originals = ['a/b.vcl']\nfrom = 'c'\ndiffer = { X-Odd = 'a reason' }\n[[step]]\nsay = 's'\n\
        request = 'GET /'\nstatus = 200\nreason = 'OK'\nbody = 'b'\nhas = { A = '1' }\nlacks = ['Z']\n\
        reached = ['GET /']\nasked = { Cookie = '' }\n";

    const ANSWER: &str = "HTTP/1.1 200 OK\r\nA: 1\r\nDate: x\r\n\r\nb";

    fn seen(answer: &str, asked: &str, cookie: bool) -> Seen {
        let answer = Message::read(&mut answer.as_bytes(), Unframed::UntilEnd, true).expect("readable");
        let fields = if cookie { vec![("cookie".to_string(), "c".to_string())] } else { Vec::new() };
        Seen { answer, asked: vec![Asked { line: asked.to_string(), fields, body: Vec::new() }] }
    }

    fn check(seen: &Seen, expect: &str) {
        let scenario = Scenario::read(SCENARIO).expect("a scenario");
        let mut said = Vec::new();
        look_at_answer(&scenario.step[0], seen.answer.as_ref().expect("an answer"), &mut |what| said.push(what));
        look_at_origin(&scenario.step[0], &seen.asked, &mut |what| said.push(what));
        assert_eq!(said.join(", "), expect);
    }

    #[test]
    fn whatever_is_not_as_expected_is_said() {
        check(&seen(ANSWER, "GET /", false), "");
        check(&seen(&ANSWER.replace("200", "201"), "GET /", false), "the answer is HTTP/1.1 201 OK");
        check(&seen(&ANSWER.replace("OK", "Ok"), "GET /", false), "the reason is 'Ok'");
        check(&seen(&ANSWER.replace("\r\nb", "\r\nc"), "GET /", false), "the body is 'c'");
        check(&seen(&ANSWER.replace("A: 1", "A: 2"), "GET /", false), "A is Some(\"2\"), not '1'");
        let more = ANSWER.replace("A: 1", "A: 1\r\nZ: 3");
        check(&seen(&more, "GET /", false), "Z is Some(\"3\") and should not be there");
        check(&seen(ANSWER, "GET /x", false), "[\"GET /x\"] reached the origin, not [\"GET /\"]");
        check(&seen(ANSWER, "GET /", true), "the origin was asked with Cookie Some(\"c\"), not ''");
    }

    #[test]
    fn two_programs_are_held_against_each_other() {
        let check = |larder: &Seen, count: usize| {
            let scenario = Scenario::read(SCENARIO).expect("a scenario");
            let varnish = [seen(ANSWER, "GET /", false)];
            assert_eq!(differences(&scenario, std::slice::from_ref(larder), &varnish).len(), count);
        };
        check(&seen(ANSWER, "GET /", false), 0);
        check(&seen(&ANSWER.replace("Date: x", "Date: y\r\nVia: z\r\nX-Odd: q"), "GET /", false), 0);
        check(&seen(&ANSWER.replace("A: 1", "A: 1\r\nB: 1"), "GET /", false), 1);
        check(&seen(&ANSWER.replace("\r\nb", "\r\nc"), "GET /", true), 2);
    }
}
