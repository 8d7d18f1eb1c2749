//! Pages with parts through larder and through the installed Varnish, each under the same VCL, as text and in gzip: are they the same, what does
//! one of 20 cached parts cost, what one of 20 that are missing, and how long does one of 20 missing parts of 50 ms each take?
//!
//! Processor time is that of the process, as the kernel counts it, in turns of both; others may be at work on the machine, so the ratio is what to
//! look at, and the middle of the turns.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::judged_cache::{Judged, JudgedCache};
use crate::object_cost::child_of;
use crate::plain_exchange::{Message, Unframed};
use crate::project::{Project, Stopwatch};
use crate::scenario_origin::{Answers, OriginAnswer, OriginFraming, RecordingOrigin};

const PARTS: usize = 20;
const PART_BYTES: usize = 300;
const PART_TAKES: Duration = Duration::from_millis(50);
const TURNS: usize = 5;
const PAGES_IN_A_TURN: usize = 2_000;
const COLD_PAGES_IN_A_TURN: usize = 100;
/// `/proc/PID/stat` counts in these (CONFIG_HZ as user space sees it).
const TICKS_PER_SECOND: f64 = 100.0;
const ANSWER_WAIT: Duration = Duration::from_secs(30);

/// Asked of both in this order, cold and then warm: path, and a Cookie.
const PAGES: [(&str, &str); 12] = [
    ("/", ""),
    ("/", "group=retail"),
    ("/?utm_source=x&gclid=1", ""),
    ("/shop/shoes?b=2&a=1", ""),
    ("/twenty", ""),
    ("/twenty", "group=trade"),
    ("/nested", ""),
    ("/wrong", ""),
    ("/customer/account", "group=trade"),
    ("/missing-part", ""),
    ("/plain.txt", ""),
    ("/endless", ""),
];

pub fn task(project: &Project) -> Result<(), String> {
    project.build_larder()?;
    let folder = project.scratch("esi-pages")?;
    let origin = RecordingOrigin::start(Shop)?;
    let vcl = project.read("xtask/esi/shop.vcl")?.replace("BACKEND_PORT", &origin.port.to_string());
    let mut caches = Vec::new();
    for which in [Judged::Larder, Judged::Varnish] {
        let own = folder.join(which.name());
        fs::create_dir_all(&own).map_err(|error| format!("{}: {error}", own.display()))?;
        let file = own.join("shop.vcl");
        fs::write(&file, &vcl).map_err(|error| format!("{}: {error}", file.display()))?;
        caches.push(JudgedCache::start(project, which, &file, &[], &own)?);
    }
    let [larder, varnish] = &caches[..] else { return Err("there are two".to_owned()) };
    let differences = compare(larder, varnish)?;
    print!("{}", speed(larder, varnish)?);
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!("{} pages differ\n{}", differences.len(), differences.join("\n")))
}

/// What a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    Gzip,
}

/// What differs of the pages, cold and warm.
fn compare(larder: &JudgedCache, varnish: &JudgedCache) -> Result<Vec<String>, String> {
    let mut differences = Vec::new();
    let mut same = 0;
    let rounds = [("cold", Form::Text), ("warm", Form::Text), ("warm, in gzip", Form::Gzip)];
    for (round, form) in rounds {
        for (path, cookie) in PAGES {
            let [one, other] = [ask(larder, path, (cookie, form))?, ask(varnish, path, (cookie, form))?];
            if form == Form::Gzip && one.field("content-encoding") != other.field("content-encoding") {
                differences.push(format!("{round} {path}: only one of them is in gzip"));
            }
            let (one, other) = (seen(one)?, seen(other)?);
            if one == other {
                same += 1;
            } else {
                let show = |(status, body): &(String, Vec<u8>)| format!("{status} {}", String::from_utf8_lossy(body));
                differences.push(format!(
                    "{round} {path} ({cookie})\nlarder  {}\nVarnish {}",
                    show(&one),
                    show(&other)
                ));
            }
        }
    }
    println!("{same} pages of {} are the same, byte for byte of their texts", rounds.len() * PAGES.len());
    Ok(differences)
}

/// The status, and the text.
fn seen(answer: Message) -> Result<(String, Vec<u8>), String> {
    let status = answer.second_word().to_owned();
    match answer.field("content-encoding") {
        Some("gzip") => Ok((status, gunzipped(answer.body)?)),
        Some(other) => Err(format!("a page in {other}")),
        None => Ok((status, answer.body)),
    }
}

/// By a program that shares no code with either.
fn gunzipped(gzip: Vec<u8>) -> Result<Vec<u8>, String> {
    let started = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let mut program = started.map_err(|error| format!("gzip: {error}"))?;
    let mut to = program.stdin.take().ok_or("gzip reads nothing")?;
    // It may write before it has read all of it.
    let writer = std::thread::spawn(move || to.write_all(&gzip));
    let output = program.wait_with_output().map_err(|error| format!("gzip: {error}"))?;
    let written = writer.join().map_err(|_| "the writer to gzip panicked")?;
    written.map_err(|error| format!("gzip: {error}"))?;
    if output.status.success() { Ok(output.stdout) } else { Err("gzip cannot read a page".to_owned()) }
}

fn speed(larder: &JudgedCache, varnish: &JudgedCache) -> Result<String, String> {
    let mut said = String::new();
    let mut late = [Vec::new(), Vec::new()];
    let mut costs: Vec<(String, [Vec<f64>; 2])> = Vec::new();
    for turn in 0..TURNS {
        for (nth, cache) in [larder, varnish].into_iter().enumerate() {
            for (row, (name, us)) in costs_of(cache, turn)?.into_iter().enumerate() {
                if row == costs.len() {
                    costs.push((name, [Vec::new(), Vec::new()]));
                }
                costs[row].1[nth].push(us);
            }
            late[nth].push(seconds_of(cache, &format!("/late-{turn}"))?);
        }
    }
    let one = seconds_of(larder, "/late-one")?;
    for (name, us) in costs {
        let [larder_us, varnish_us] = us.map(middle);
        let ratio = larder_us / varnish_us;
        said += &format!("{name}: larder {larder_us:.0} us of processor time, Varnish {varnish_us:.0}: {ratio:.2} x\n");
    }
    let [larder_s, varnish_s] = late.map(middle);
    let lines = [format!(
        "a page of {PARTS} missing parts of {} ms each: larder {:.0} ms, Varnish {:.0} ms; with one such part larder {:.0} ms",
        PART_TAKES.as_millis(),
        larder_s * 1e3,
        varnish_s * 1e3,
        one * 1e3
    )];
    lines.iter().for_each(|line| said += &format!("{line}\n"));
    Ok(said)
}

fn middle(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Microseconds of processor time for one page, of each kind.
fn costs_of(cache: &JudgedCache, turn: usize) -> Result<Vec<(String, f64)>, String> {
    let mut costs = Vec::new();
    for form in [Form::Text, Form::Gzip] {
        let of = |kind: &str, us: Result<f64, String>| match us {
            Ok(us) => Ok((format!("a page of {PARTS} {kind} parts, {form:?}"), us)),
            Err(why) => Err(format!("{}: {why}", cache.name())),
        };
        costs.push(of("cached", cpu_of_pages(cache, form, PAGES_IN_A_TURN, |_| "/twenty".to_owned()))?);
        let cold = |nth: usize| format!("/cold-{turn}-{form:?}-{nth}");
        costs.push(of("missing", cpu_of_pages(cache, form, COLD_PAGES_IN_A_TURN, cold))?);
    }
    Ok(costs)
}

/// Of one of so many pages, over a connection that is kept.
fn cpu_of_pages(cache: &JudgedCache, form: Form, pages: usize, path: impl Fn(usize) -> String) -> Result<f64, String> {
    let mut connection = Connection::to(cache).map_err(|error| error.to_string())?;
    connection.ask(&path(pages), ("", form)).map_err(|error| error.to_string())?;
    let before = cpu_ticks(cache.process_id())?;
    for nth in 0..pages {
        connection.ask(&path(nth), ("", form)).map_err(|error| error.to_string())?;
    }
    let ticks = cpu_ticks(cache.process_id())? - before;
    Ok(ticks as f64 / TICKS_PER_SECOND * 1e6 / pages as f64)
}

/// Of a process, or of the child that does its work.
fn cpu_ticks(process: u32) -> Result<u64, String> {
    let worker = child_of(process).unwrap_or(process);
    let stat = fs::read_to_string(Path::new("/proc").join(worker.to_string()).join("stat"))
        .map_err(|error| error.to_string())?;
    // The name in brackets may have blanks; utime and stime are the 12th and 13th words behind it (proc(5)).
    let behind = stat.rsplit_once(')').ok_or("no such line")?.1;
    let words: Vec<&str> = behind.split_whitespace().collect();
    let ticks = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).ok_or("a number is missing");
    Ok(ticks(11)? + ticks(12)?)
}

fn seconds_of(cache: &JudgedCache, path: &str) -> Result<f64, String> {
    let watch = Stopwatch::start();
    let answer = ask(cache, path, ("", Form::Text))?;
    let seconds = watch.seconds();
    match answer.second_word() {
        "200" => Ok(seconds),
        _ => Err(format!("{path}: {}", answer.start)),
    }
}

fn ask(cache: &JudgedCache, path: &str, by: (&str, Form)) -> Result<Message, String> {
    let asked = Connection::to(cache).and_then(|mut connection| connection.ask(path, by));
    asked.map_err(|error| format!("{}: {path}: {error}: {}", cache.name(), cache.last_words()))
}

struct Connection {
    to: TcpStream,
    from: BufReader<TcpStream>,
}

impl Connection {
    fn to(cache: &JudgedCache) -> io::Result<Connection> {
        let mut to = TcpStream::connect(("127.0.0.1", cache.port))?;
        to.set_read_timeout(Some(ANSWER_WAIT))?;
        to.set_nodelay(true)?;
        to.write_all(b"PROXY TCP4 127.0.0.1 127.0.0.1 40000 80\r\n")?;
        let from = BufReader::new(to.try_clone()?);
        Ok(Connection { to, from })
    }

    fn ask(&mut self, path: &str, (cookie, form): (&str, Form)) -> io::Result<Message> {
        let cookie = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
        let takes = if form == Form::Gzip { "Accept-Encoding: gzip\r\n" } else { "" };
        let head = format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{cookie}{takes}\r\n");
        self.to.write_all(head.as_bytes())?;
        let answer = Message::read(&mut self.from, Unframed::UntilEnd, true)?;
        answer.ok_or_else(|| io::Error::other("closed without an answer"))
    }
}

/// What the shop answers.
struct Shop;

impl Answers for Shop {
    fn takes(&self, request: &Message) -> Duration {
        if request.second_word().starts_with("/part/late") { PART_TAKES } else { Duration::ZERO }
    }

    fn answer(&self, request: &Message, _: &str, _: usize) -> OriginAnswer {
        let target = request.second_word();
        let path = target.split('?').next().unwrap_or_default();
        let group = request.field("x-group").unwrap_or("none");
        let (status, kind, life, body) = match path {
            "/" => (200, "text/html", "max-age=600", home(group)),
            "/shop/shoes" => (
                200,
                "text/html",
                "max-age=600",
                format!("<html>{target}<esi:include src=\"block?b={group}\"/></html>"),
            ),
            "/nested" => (200, "text/html", "max-age=600", "<p><esi:include src=\"/twenty\"/></p>".to_owned()),
            "/endless" => (200, "text/html", "max-age=600", "<p><esi:include src=\"/endless\"/></p>".to_owned()),
            "/wrong" => (200, "text/html", "max-age=600", WRONG.to_owned()),
            "/missing-part" => (200, "text/html", "max-age=600", "<p>a<esi:include src=\"/none\"/>b</p>".to_owned()),
            "/none" => (404, "text/html", "max-age=600", "<b>not here</b>".to_owned()),
            "/customer/account" => {
                (200, "text/html", "private", format!("<p>{group}<esi:include src=\"/block?c=1\"/></p>"))
            }
            "/plain.txt" => (200, "text/plain", "max-age=600", "no markup: <esi:include src=\"/none\"/>".to_owned()),
            "/late-one" => (200, "text/html", "max-age=600", parts(1, "late-one")),
            path if path.starts_with("/late-") => (200, "text/html", "max-age=600", parts(PARTS, &path[1..])),
            path if path.starts_with("/cold-") => (200, "text/html", "max-age=600", parts(PARTS, &path[1..])),
            "/twenty" => (200, "text/html", "max-age=600", parts(PARTS, "kept")),
            _ => (200, "text/html", "max-age=600", format!("<i>{target} for {group}</i>{}", ".".repeat(PART_BYTES))),
        };
        let head = format!("HTTP/1.1 {status} OK\r\nContent-Type: {kind}; charset=utf-8\r\nCache-Control: {life}\r\n");
        OriginAnswer { head, body: body.into_bytes(), framing: OriginFraming::Length, unrecorded: true }
    }
}

/// A page of so many parts.
fn parts(count: usize, of: &str) -> String {
    let mut page = "<html><body>\n".to_owned();
    for nth in 0..count {
        let _ =
            writeln!(page, "<div id=\"{nth}\"><esi:include src=\"/part/{of}/{nth}\"/></div>{}", "x".repeat(PART_BYTES));
    }
    page + "</body></html>\n"
}

fn home(group: &str) -> String {
    format!(
        "<html><head><title>{group}</title></head><body>\n<!--esi <esi:include src=\"/block/top?handles=a&amp;b=1\"/> -->\n\
         <esi:remove><p>without ESI</p></esi:remove><esi:comment text=\"a block\"/>\n\
         <esi:include src=\"http://shop.example/block/basket\"/><!-- <esi:include src=\"/never\"/> -->\n\
         <script>if (a<b) {{ c(); }}</script><![CDATA[<esi:include src=\"/never\"/>]]></body></html>\n"
    )
}

const WRONG: &str = "<p>a<esi:include/>b<esi:include src=\"https://a.test/\"/>c<esi:include src=\"/x y\"/>d\
                     <esi:bogus/>e<esi:remove/>f<esi:include src=\"/block?w=1\">g</esi:include>h<esi:include src=\"/unclosed\"</p>";
