//! Pages with parts through larder and through the installed Varnish, each under the same VCL: are they the same, what does one of 20 cached parts cost, and
//! how long does one of 20 missing parts of 50 ms each take?
//!
//! Processor time is that of the process, as the kernel counts it, in turns of both; others may be at work on the machine, so the ratio is what to
//! look at, and the middle of the turns.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufReader, Write as _};
use std::net::TcpStream;
use std::path::Path;
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

/// What differs of the pages, cold and warm.
fn compare(larder: &JudgedCache, varnish: &JudgedCache) -> Result<Vec<String>, String> {
    let mut differences = Vec::new();
    let mut same = 0;
    for round in ["cold", "warm"] {
        for (path, cookie) in PAGES {
            let [one, other] = [ask(larder, path, cookie)?, ask(varnish, path, cookie)?];
            let (one, other) = ((one.second_word().to_owned(), one.body), (other.second_word().to_owned(), other.body));
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
    println!("{same} pages of {} are the same, byte for byte", 2 * PAGES.len());
    Ok(differences)
}

fn speed(larder: &JudgedCache, varnish: &JudgedCache) -> Result<String, String> {
    let mut said = String::new();
    let mut warm = [Vec::new(), Vec::new()];
    let mut late = [Vec::new(), Vec::new()];
    for turn in 0..TURNS {
        for (nth, cache) in [larder, varnish].into_iter().enumerate() {
            warm[nth].push(cpu_of_pages(cache).map_err(|why| format!("{}: {why}", cache.name()))?);
            late[nth].push(seconds_of(cache, &format!("/late-{turn}"))?);
        }
    }
    let one = seconds_of(larder, "/late-one")?;
    let [larder_us, varnish_us] = warm.map(middle);
    let [larder_s, varnish_s] = late.map(middle);
    let lines = [
        format!(
            "a page of {PARTS} cached parts: larder {larder_us:.0} us of processor time, Varnish {varnish_us:.0}: {:.2} x",
            larder_us / varnish_us
        ),
        format!(
            "a page of {PARTS} missing parts of {} ms each: larder {:.0} ms, Varnish {:.0} ms; with one such part larder {:.0} ms",
            PART_TAKES.as_millis(),
            larder_s * 1e3,
            varnish_s * 1e3,
            one * 1e3
        ),
    ];
    lines.iter().for_each(|line| said += &format!("{line}\n"));
    Ok(said)
}

fn middle(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// Microseconds of processor time for one warm page, over a connection that is kept.
fn cpu_of_pages(cache: &JudgedCache) -> Result<f64, String> {
    let mut connection = Connection::to(cache).map_err(|error| error.to_string())?;
    connection.ask("/twenty", "").map_err(|error| error.to_string())?;
    let before = cpu_ticks(cache.process_id())?;
    for _ in 0..PAGES_IN_A_TURN {
        connection.ask("/twenty", "").map_err(|error| error.to_string())?;
    }
    let ticks = cpu_ticks(cache.process_id())? - before;
    Ok(ticks as f64 / TICKS_PER_SECOND * 1e6 / PAGES_IN_A_TURN as f64)
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
    let answer = ask(cache, path, "")?;
    let seconds = watch.seconds();
    match answer.second_word() {
        "200" => Ok(seconds),
        _ => Err(format!("{path}: {}", answer.start)),
    }
}

fn ask(cache: &JudgedCache, path: &str, cookie: &str) -> Result<Message, String> {
    let asked = Connection::to(cache).and_then(|mut connection| connection.ask(path, cookie));
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

    fn ask(&mut self, path: &str, cookie: &str) -> io::Result<Message> {
        let cookie = if cookie.is_empty() { String::new() } else { format!("Cookie: {cookie}\r\n") };
        self.to.write_all(format!("GET {path} HTTP/1.1\r\nHost: shop.example\r\n{cookie}\r\n").as_bytes())?;
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
