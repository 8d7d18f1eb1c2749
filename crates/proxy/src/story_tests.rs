//! The story in memory: requests go in as bytes, answers come out, origins are mocked, and the clock stands still until it is moved. No
//! socket has a name here, no file is read, and nothing waits: what a step does is said in one sentence and seen in microseconds.

mod asked_over_fastcgi;
mod asked_why;
mod bodies_in_slices;
mod delivery;
mod edges_taken;
mod fields_of_answers;
mod files_beneath_a_root;
mod from_step_to_step;
mod how_answers_arrive;
mod led_by_a_proxy;
mod nodes_of_a_fleet;
mod origins_that_fail;
mod pages_with_parts;
mod passing;
mod pipes;
mod programs;
mod redirects_kept;
mod refusing;
mod scripts_beneath_a_root;
mod spellings_of_paths;
mod streams_at_once;
mod told_by_dictionaries;
mod traces_handed_on;
mod what_is_compressed;
mod what_is_dropped;
mod what_is_fresh;
mod what_is_recorded;
mod what_is_stored;
mod what_readers_are_told;
mod what_routes_say;
mod what_tags_find;
mod who_is_admitted;

use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use vcl::{Included, NoIncludes, NoWorld};

use crate::access_log::CacheVerdict;
use crate::clock::Clock;
use crate::core::Core;
use crate::downstream::dry_run::{DryAnswer, DryRun};
use crate::dry_exchange::{self, Manner};
use crate::dry_runner::mocked_origins::Stage;
use crate::dry_runner::watch::Watch;
use crate::dry_runner::wire_answer::{Then, WireAnswer};
use crate::dry_runner::{AnswerParts, Closed, MockedAnswer, Sent};
use crate::log_sink::LogSink;
use crate::origin::tests::settings;
use crate::records::session_records::SessionEnd;
use crate::records::{HeardKinds, RecordKind, RecordSink, RecordView};
use crate::send_outcome::End;
use crate::service::{Start, share};
use crate::settings::{
    Greeting, NamePattern, OriginSettings, OriginTimeouts, OriginUrl, QueryRules, RouteRules, RouteSettings,
    RouteTarget, Settings,
};
use crate::site::Site;
use crate::vcl_site::VclProgram;

const BEGINS_WALL_MS: u64 = 1_767_268_800_000;
const BEGINS_MONO_MS: u64 = 1_000_000_000;
const MEMORY_BYTES: usize = 16 << 20;
/// A refresh that takes longer shows in what the next request gets.
const REFRESH_WAIT_MS_MAX: usize = 1_000;
/// The story, and who asks.
const IDLE_CORE_HOLDERS: usize = 2;

/// One core, an empty store, mocked origins, and time that stands still.
pub(crate) struct Story {
    runtime: tokio::runtime::LocalRuntime,
    pub(crate) core: Rc<Core>,
    stage: Arc<Stage>,
    watch: Rc<Watch>,
    heard: Arc<Heard>,
    passed_ms: Cell<u64>,
}

/// What came of one request.
pub(crate) struct Reply {
    answer: Option<DryAnswer>,
    pub(crate) interims: Vec<DryAnswer>,
    /// May the client ask again the same way, and if not, why?
    pub(crate) ended: Option<(bool, SessionEnd)>,
    closed: Option<Closed>,
    pub(crate) log_lines: String,
    records: Vec<(bool, String)>,
    /// What origins were asked for it.
    pub(crate) asked: Vec<Sent>,
}

/// The two bits above a transaction's number, of a client's.
const OF_CLIENTS: u32 = 1;

/// The access log, and the records of Varnish's with whether they are of a client's transaction.
#[derive(Default)]
struct Heard {
    has_no_log: AtomicBool,
    lines: Mutex<String>,
    records: Mutex<Vec<(bool, String)>>,
}

impl LogSink for Heard {
    fn write(&self, lines: Vec<u8>, _: u64) -> Result<(), Vec<u8>> {
        self.lines.lock().push_str(&String::from_utf8_lossy(&lines));
        Ok(())
    }

    fn is_on(&self) -> bool {
        !self.has_no_log.load(Ordering::Relaxed)
    }
}

impl RecordSink for Heard {
    fn put(&self, mut records: &[u8]) {
        let mut heard = self.records.lock();
        while let Some((record, behind)) = RecordView::split_first(records) {
            let (kind, text) =
                (RecordKind::ALL[usize::from(record.number) - 1], String::from_utf8_lossy(record.text()));
            heard.push((record.transaction >> 30 == OF_CLIENTS, format!("{} {text}", kind.name())));
            records = behind;
        }
    }

    fn heard(&self) -> Arc<HeardKinds> {
        Arc::new(HeardKinds::all())
    }
}

/// A parameter that makes no difference, on all routes.
pub(crate) fn ignore_query(settings: &mut Settings, name: &str) {
    let query = QueryRules { ignored: vec![NamePattern::new(name)], ..QueryRules::default() };
    let rules = Arc::new(RouteRules { query, ..RouteRules::default() });
    settings.routes.iter_mut().for_each(|route| route.rules = Arc::clone(&rules));
}

impl Story {
    /// The built-in policy before one origin.
    pub(crate) fn builtin() -> Story {
        Story::with(|_| {})
    }

    /// The same with other settings.
    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Story {
        Story::start(None, false, change)
    }

    /// Under this program. It needs no version and no backend.
    pub(crate) fn vcl(text: &str) -> Story {
        Story::start(Some(text), false, |_| {})
    }

    /// The same with other settings.
    pub(crate) fn vcl_with(text: &str, change: impl FnOnce(&mut Settings)) -> Story {
        Story::start(Some(text), false, change)
    }

    /// Under this program, with records of it as Varnish's log has them.
    pub(crate) fn recorded(text: &str) -> Story {
        Story::start(Some(text), true, |_| {})
    }

    fn start(program: Option<&str>, is_recorded: bool, change: impl FnOnce(&mut Settings)) -> Story {
        let stage = Arc::new(Stage::default());
        let mut origin = mocked_origin();
        stage.take_over(&mut origin);
        let mut settings = settings(vec![origin]);
        settings.memory_bytes_max = MEMORY_BYTES;
        settings.server_name = "larder".to_owned();
        let target = RouteTarget::Origin(0);
        settings.routes = vec![RouteSettings::to(target)];
        change(&mut settings);
        let heard = Arc::new(Heard::default());
        let start = Start {
            records: is_recorded.then(|| Arc::clone(&heard) as Arc<dyn RecordSink>),
            settings: settings.clone(),
            workers: 1,
            log: Some(Arc::clone(&heard) as Arc<dyn LogSink>),
            world: Arc::new(NoWorld),
            program: None,
            beneath: cache::Beneath::default(),
            fleet: None,
            memory: None,
        };
        let instance: Arc<str> = "test".into();
        let shared = share(start, &instance, Some(Arc::clone(&stage))).unwrap_or_else(|e| panic!("{e}"));
        if let Some(text) = program {
            let mut site = Site::new(settings, &instance, Some(&shared.site.load_full()));
            let ready = shared.shelf.prepare(checked(text), &site).unwrap_or_else(|e| panic!("{e}"));
            let vcl = shared.shelf.put(&mut shared.shelf.changes(), ready).unwrap_or_else(|e| panic!("{e}"));
            site.program = Some(vcl);
            shared.set_site(site);
        }
        let watch = Rc::new(Watch::default());
        let core = Rc::new(Core::watched(shared, Rc::clone(&watch), clock_after(0)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build_local(Default::default());
        Story { runtime: runtime.expect("a runtime"), core, stage, watch, heard, passed_ms: Cell::new(0) }
    }

    /// The settings are others from here on, as after a reload.
    pub(crate) fn reload(&self, change: impl FnOnce(&mut Settings)) {
        let former = self.core.site();
        let mut settings = former.settings.clone();
        change(&mut settings);
        self.core.shared.set_site(Site::new(settings, "test", Some(&former)));
        *self.core.site.borrow_mut() = self.core.shared.site.load_full();
    }

    /// There is no access log from here on.
    pub(crate) fn keep_no_log(&self) {
        self.heard.has_no_log.store(true, Ordering::Relaxed);
    }

    /// What origins answer from here on, one after the other; the last one again.
    pub(crate) fn origin(&self, answers: impl IntoIterator<Item = MockedAnswer>) {
        self.stage.begin(answers.into_iter().collect());
    }

    /// Origins close the connections that rest, unseen until somebody writes to one.
    pub(crate) fn origins_hang_up(&self) {
        self.stage.hang_up();
    }

    /// Time goes by.
    pub(crate) fn pass_seconds(&self, seconds: u64) {
        self.passed_ms.set(self.passed_ms.get() + seconds * 1_000);
        self.core.set_clock(clock_after(self.passed_ms.get()));
    }

    /// Asks for a path, with these field lines.
    pub(crate) fn get(&self, path: &str, lines: &[&str]) -> Reply {
        self.ask(&format!("GET {path}"), lines, "")
    }

    /// Asks with method and path. A body has its length said.
    pub(crate) fn ask(&self, line: &str, lines: &[&str], body: &str) -> Reply {
        let mut text = format!("{line} HTTP/1.1\r\nHost: a.test\r\n");
        lines.iter().for_each(|line| text.push_str(&format!("{line}\r\n")));
        if !body.is_empty() {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        self.send(format!("{text}\r\n{body}").as_bytes())
    }

    /// Asks for a path and leaves as soon as it has to wait.
    pub(crate) fn leave(&self, path: &str, lines: &[&str]) -> Reply {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n{lines}\r\n");
        self.send_as(bytes.as_bytes(), Manner { leaves: true, ..Manner::default() })
    }

    /// Two clients ask for a path at once. Returns what each got, and how many requests an origin saw.
    pub(crate) fn get_together(&self, path: &str) -> ([String; 2], usize) {
        let bytes = format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
        let core = Rc::clone(&self.core);
        let ask = || dry_exchange::ask(&core, Ipv4Addr::LOCALHOST.into(), bytes.as_bytes());
        let (one, other) = self.runtime.block_on(async { tokio::join!(ask(), ask()) });
        self.watch.take();
        let body = |run: DryRun| String::from_utf8_lossy(&run.answer.map_or(Vec::new(), |it| it.body)).into_owned();
        ([body(one), body(other)], self.stage.take_sent().len())
    }

    /// Asks with these bytes.
    pub(crate) fn send(&self, bytes: &[u8]) -> Reply {
        self.send_as(bytes, Manner::default())
    }

    /// The same for a client of this manner.
    pub(crate) fn send_as(&self, bytes: &[u8], manner: Manner) -> Reply {
        let client = IpAddr::V4(Ipv4Addr::LOCALHOST);
        let (core, watch) = (Rc::clone(&self.core), Rc::clone(&self.watch));
        let run: DryRun = self.runtime.block_on(async {
            let run = dry_exchange::ask_as(&core, client, bytes, manner).await;
            // A refresh that is left behind ends before the next request: every fetch holds the core.
            for _ in 0..REFRESH_WAIT_MS_MAX {
                if !watch.has_fetches() && Rc::strong_count(&core) <= IDLE_CORE_HOLDERS {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            run
        });
        let (_, _, closed) = self.watch.take();
        self.core.flush_log();
        let DryRun { answer, interims, ended, .. } = run;
        let (log_lines, records) = self.take_heard();
        Reply { answer, interims, ended, closed, asked: self.stage.take_sent(), log_lines, records }
    }

    /// Lines of the log, and records, since they were taken last.
    pub(crate) fn take_heard(&self) -> (String, Vec<(bool, String)>) {
        (std::mem::take(&mut *self.heard.lines.lock()), std::mem::take(&mut *self.heard.records.lock()))
    }
}

impl Reply {
    pub(crate) fn status(&self) -> u16 {
        self.answer.as_ref().map_or(0, |answer| answer.status)
    }

    pub(crate) fn body(&self) -> &str {
        let body = self.answer.as_ref().map_or(&b""[..], |answer| &answer.body);
        std::str::from_utf8(body).expect("tests have text")
    }

    /// How it ended for the client.
    pub(crate) fn end(&self) -> End {
        self.answer.as_ref().map_or(End::ClientLeft, |answer| answer.end)
    }

    /// The lines of a field, in one.
    pub(crate) fn field(&self, name: &str) -> String {
        let fields = self.answer.iter().flat_map(|answer| &answer.fields);
        let lines = fields.filter(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str());
        lines.collect::<Vec<_>>().join(", ")
    }

    /// How the log classes it, and why.
    pub(crate) fn verdict(&self) -> (CacheVerdict, &'static str) {
        let closed = self.closed.expect("every request has a record");
        (closed.verdict, closed.why)
    }

    /// The records of the client's request that begin so.
    pub(crate) fn records_of_client(&self, begin: &str) -> Vec<&str> {
        let records = self.records.iter().filter(|(is_client_s, text)| *is_client_s && text.starts_with(begin));
        records.map(|(_, text)| text.as_str()).collect()
    }

    /// Request lines that origins saw.
    pub(crate) fn asked(&self) -> Vec<String> {
        let line = |sent: &Sent| sent.request.as_ref().map(|head| format!("{} {}", head.method, head.url));
        self.asked.iter().map(|sent| line(sent).unwrap_or_else(|| "refused".to_owned())).collect()
    }

    /// The ranges that origins were asked for.
    pub(crate) fn asked_ranges(&self) -> Vec<Option<&str>> {
        self.asked.iter().map(|sent| sent.request.as_ref()?.field("range")).collect()
    }

    /// A field of the first request that an origin saw.
    pub(crate) fn asked_with(&self, name: &str) -> Option<&str> {
        self.asked.first()?.request.as_ref()?.field(name)
    }
}

/// An origin's answer with this status line's number, field lines and body.
pub(crate) fn answer(status: u16, lines: &[&str], body: &str) -> MockedAnswer {
    let fields = lines.iter().map(|line| line.split_once(": ").unwrap_or((line, "")));
    let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    MockedAnswer::Given(AnswerParts { status, reason: "Mocked".to_owned(), fields, body: body.as_bytes().to_vec() })
}

/// An origin's answer by its bytes, and what becomes of its connection.
pub(crate) fn wire(text: &str, then: Then) -> MockedAnswer {
    MockedAnswer::Wire(WireAnswer { bytes: text.as_bytes().to_vec(), then })
}

/// A 200 on a connection that goes into the pool.
pub(crate) fn pooled(lines: &[&str], body: &str, then: Then) -> MockedAnswer {
    let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
    wire(&format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {}\r\n\r\n{body}", body.len()), then)
}

/// One that may be stored for so many seconds.
pub(crate) fn fresh(seconds: u32, body: &str) -> MockedAnswer {
    answer(200, &[&format!("Cache-Control: max-age={seconds}")], body)
}

fn mocked_origin() -> OriginSettings {
    OriginSettings {
        name: "shop".to_owned(),
        urls: vec![OriginUrl::Tcp { host: "192.0.2.1".to_owned(), port: 80 }],
        connections_max: 100,
        queue_max: 100,
        queue_timeout: Duration::from_secs(60),
        ejection_failures: u32::MAX,
        ejection_time: Duration::from_secs(10),
        balance: Default::default(),
        probe: None,
        retries: Default::default(),
        host: None,
        timeouts: OriginTimeouts::default(),
        greeting: Greeting::default(),
        tls: crate::settings::OriginTls::default(),
        http2: false,
        fastcgi: None,
    }
}

fn checked(text: &str) -> VclProgram {
    let backend = "backend default { .host = \"192.0.2.1\"; }";
    let text = format!("vcl 4.1; {backend} {text}").into_bytes();
    let checked = vcl::check(Included { name: "test.vcl".to_owned(), bytes: text }, &NoIncludes);
    let program = checked.program.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    VclProgram { name: "test".to_owned(), program, sources: checked.sources }
}

fn clock_after(ms: u64) -> Clock {
    Clock::standing(BEGINS_MONO_MS + ms, BEGINS_WALL_MS + ms)
}
