//! The judge of a soak, and its books: every answer is held against what the origin made of that page and version, and against what purges allow that were acknowledged before it was
//! asked for. A request that failed is excused by a window that was announced before, if it was under way or begun in it; wrong bytes are excused by nothing.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

use super::soak_page::{KEYS, PageKind, SoakPage, VersionsFound};
use super::soak_site::SoakSite;
use crate::crash_bodies::undone;
use crate::plain_exchange::Message;
use crate::project::Stopwatch;

/// So many sentences are kept of each kind; all are counted.
const SENTENCES_MAX: usize = 5_000;
pub const LARDERS: usize = 2;
/// The one of them that decides by a VCL.
pub const BY_PROGRAM: usize = 1;
/// A brief page is fresh for one second; the other is for a machine that has much else to do, and a process that is stopped.
const BRIEF_SECONDS_MAX: f64 = 2.0;
/// Of each brief page, so many changes are remembered: more than come in that time.
const CHANGES_REMEMBERED: usize = 64;

/// The ways on which clients ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoakRoad {
    Kept,
    Closing,
    OverTls,
    Streams,
    StreamsOverTls,
    Range,
    Slow,
    Posted,
    Forward,
    File,
    Memcached,
    WebSocket,
    Tunnel,
    Purge,
}

/// Why requests may fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowKind {
    /// The serving process was killed, and the next does not answer yet.
    Killed,
    /// Roads to the origin alone.
    OriginDown,
    /// Purges alone: no disk can acknowledge them.
    DiskFrozen,
    /// Purges alone: one that is under way in the process that makes way finds its disks handed over, and is answered that a crash may undo it.
    HandedOver,
}

#[derive(Clone, Copy, Debug)]
pub struct SoakWindow {
    pub kind: WindowKind,
    pub larder: Option<usize>,
    pub from: f64,
    /// `None`: it is open.
    pub to: Option<f64>,
}

/// What was asked, and what was promised of it by then.
#[derive(Clone, Debug)]
pub struct SoakQuestion {
    pub larder: usize,
    pub road: SoakRoad,
    pub page: SoakPage,
    /// The first byte wanted, and the last.
    pub range: Option<(usize, usize)>,
    pub floors: Vec<(usize, u64)>,
    pub begun: f64,
}

#[derive(Default)]
pub struct SoakSentences {
    pub count: u64,
    pub first: Vec<String>,
}

pub struct SoakBooks {
    pub clock: Stopwatch,
    pub site: Arc<SoakSite>,
    floors: [Vec<AtomicU64>; LARDERS],
    /// When brief pages changed, and to what.
    changes: Mutex<BTreeMap<usize, VecDeque<(f64, u64)>>>,
    windows: Mutex<Vec<SoakWindow>>,
    right: [AtomicU64; SoakRoad::ALL.len()],
    pub hits: AtomicU64,
    pub not_modified: AtomicU64,
    /// On a connection that larder had closed meanwhile.
    pub sent_again: AtomicU64,
    pub purges_acknowledged: AtomicU64,
    next_once: AtomicU64,
    failed_in_windows: [AtomicU64; WindowKind::ALL.len()],
    pub wrong: Mutex<SoakSentences>,
    pub failed: Mutex<SoakSentences>,
}

impl SoakRoad {
    pub const ALL: [SoakRoad; 14] = [
        SoakRoad::Kept,
        SoakRoad::Closing,
        SoakRoad::OverTls,
        SoakRoad::Streams,
        SoakRoad::StreamsOverTls,
        SoakRoad::Range,
        SoakRoad::Slow,
        SoakRoad::Posted,
        SoakRoad::Forward,
        SoakRoad::File,
        SoakRoad::Memcached,
        SoakRoad::WebSocket,
        SoakRoad::Tunnel,
        SoakRoad::Purge,
    ];

    pub fn words(self) -> &'static str {
        match self {
            SoakRoad::Kept => "HTTP/1.1, kept connections",
            SoakRoad::Closing => "HTTP/1, a connection each",
            SoakRoad::OverTls => "HTTP/1.1 over TLS",
            SoakRoad::Streams => "HTTP/2 in the clear",
            SoakRoad::StreamsOverTls => "HTTP/2 over TLS",
            SoakRoad::Range => "ranges of large pages",
            SoakRoad::Slow => "slow downloads",
            SoakRoad::Posted => "POST",
            SoakRoad::Forward => "forward proxy",
            SoakRoad::File => "files and ranges of them",
            SoakRoad::Memcached => "memcached",
            SoakRoad::WebSocket => "WebSocket messages",
            SoakRoad::Tunnel => "messages through CONNECT",
            SoakRoad::Purge => "purges",
        }
    }

    fn needs_origin(self) -> bool {
        !matches!(self, SoakRoad::File | SoakRoad::Memcached | SoakRoad::WebSocket | SoakRoad::Tunnel | SoakRoad::Purge)
    }
}

impl WindowKind {
    pub const ALL: [WindowKind; 4] =
        [WindowKind::Killed, WindowKind::OriginDown, WindowKind::DiskFrozen, WindowKind::HandedOver];

    pub fn words(self) -> &'static str {
        match self {
            WindowKind::Killed => "a serving process was killed",
            WindowKind::OriginDown => "the origin was down",
            WindowKind::DiskFrozen => "the disk was frozen (purges)",
            WindowKind::HandedOver => "the disk was handed over (purges)",
        }
    }

    fn excuses(self, road: SoakRoad) -> bool {
        match self {
            WindowKind::Killed => true,
            WindowKind::OriginDown => road.needs_origin(),
            WindowKind::DiskFrozen | WindowKind::HandedOver => road == SoakRoad::Purge,
        }
    }
}

impl SoakBooks {
    pub fn open(site: Arc<SoakSite>) -> SoakBooks {
        SoakBooks {
            clock: Stopwatch::start(),
            site,
            floors: std::array::from_fn(|_| (0..KEYS).map(|_| AtomicU64::new(0)).collect()),
            changes: Mutex::default(),
            windows: Mutex::default(),
            right: Default::default(),
            hits: AtomicU64::default(),
            not_modified: AtomicU64::default(),
            sent_again: AtomicU64::default(),
            purges_acknowledged: AtomicU64::default(),
            next_once: AtomicU64::default(),
            failed_in_windows: Default::default(),
            wrong: Mutex::default(),
            failed: Mutex::default(),
        }
    }

    /// The number of the next page that is asked for once.
    pub fn once(&self) -> usize {
        self.next_once.fetch_add(1, SeqCst) as usize
    }

    /// What is promised now of a page at a larder: by purges, of which a forward proxy is told none, and by its time.
    pub fn question(&self, larder: usize, road: SoakRoad, page: SoakPage) -> SoakQuestion {
        let begun = self.clock.seconds();
        let purged = |key: usize| if road == SoakRoad::Forward { 0 } else { self.floors[larder][key].load(SeqCst) };
        let mut floors: Vec<_> = page.with_parts().into_iter().map(|key| (key, purged(key))).collect();
        // Under a VCL there is a grace of ten seconds.
        if page.kind() == PageKind::Brief && (road == SoakRoad::Forward || larder != BY_PROGRAM) {
            floors[0].1 = floors[0].1.max(self.version_before(page.0, begun - BRIEF_SECONDS_MAX));
        }
        SoakQuestion { larder, road, page, range: None, floors, begun }
    }

    /// Raises these pages at the origin, and says which versions they have now at least.
    pub fn raise(&self, keys: &[usize]) -> Vec<(usize, u64)> {
        let raised = self.site.raise(keys);
        let (now, mut changes) = (self.clock.seconds(), self.changes.lock().expect("nobody panicked"));
        for &(key, version) in raised.iter().filter(|(key, _)| SoakPage(*key).kind() == PageKind::Brief) {
            let changes = changes.entry(key).or_default();
            changes.push_back((now, version));
            if changes.len() > CHANGES_REMEMBERED {
                changes.pop_front();
            }
        }
        raised
    }

    /// The newest version that a brief page had by then, as far as that is remembered.
    fn version_before(&self, key: usize, moment: f64) -> u64 {
        let changes = self.changes.lock().expect("nobody panicked");
        let before = changes.get(&key).into_iter().flatten().filter(|(at, _)| *at <= moment);
        before.map(|(_, version)| *version).max().unwrap_or(0)
    }

    /// From now on nothing older is served there.
    pub fn acknowledge(&self, larder: usize, least: &[(usize, u64)]) {
        self.purges_acknowledged.fetch_add(1, SeqCst);
        for &(key, version) in least {
            self.floors[larder][key].fetch_max(version, SeqCst);
        }
    }

    /// An answer to the last byte, or why there is none.
    pub fn close(&self, question: &SoakQuestion, answer: Result<Message, String>) {
        let expected = if question.range.is_some() { "206" } else { "200" };
        let answer = match answer {
            Ok(answer) if answer.second_word() == expected => answer,
            Ok(answer) => return self.fails(question, &told(&answer)),
            Err(why) => return self.fails(question, &why),
        };
        if answer.field("cache-status").is_some_and(|status| status.contains("; hit")) {
            self.hits.fetch_add(1, SeqCst);
        }
        let found = match self.versions_in(question, &answer) {
            Ok(found) => found,
            Err(why) if self.may_be_cut(question, &answer) => return self.fails(question, &why),
            Err(why) => return self.is_wrong(question, &why),
        };
        match self.judge(question, found) {
            Ok(()) => self.counts(question.road),
            Err(why) => self.is_wrong(question, &why),
        }
    }

    /// Which versions these bytes are, to the last one.
    fn versions_in(&self, question: &SoakQuestion, answer: &Message) -> Result<VersionsFound, String> {
        let version = answer.field("x-version").and_then(|text| text.parse().ok());
        let version: u64 = version.ok_or_else(|| format!("no version: {}", told(answer)))?;
        let body = undone(answer)?;
        match question.range {
            None => question.page.versions_in(&body, version),
            Some((from, to)) => {
                let whole = question.page.body(version);
                let (from, to) = (from.min(whole.len() - 1), to.min(whole.len() - 1));
                let said = format!("bytes {from}-{to}/{}", whole.len());
                if answer.field("content-range") != Some(said.as_str()) || body != whole[from..=to] {
                    return Err(format!("not {said} of version {version}: {}", told(answer)));
                }
                Ok(vec![(question.page.0, version)])
            }
        }
    }

    fn judge(&self, question: &SoakQuestion, found: VersionsFound) -> Result<(), String> {
        for (key, version) in found {
            let floor = question.floors.iter().find(|(known, _)| *known == key).map_or(0, |(_, floor)| *floor);
            if version < floor {
                return Err(format!(
                    "page {key} has version {version}, and a purge or its time allows none below {floor}"
                ));
            }
            if version > self.site.newest(key) {
                return Err(format!("page {key} has version {version}, which nobody made yet"));
            }
        }
        Ok(())
    }

    /// Something of this road was right.
    pub fn counts(&self, road: SoakRoad) {
        self.right[road as usize].fetch_add(1, SeqCst);
    }

    pub fn right(&self, road: SoakRoad) -> u64 {
        self.right[road as usize].load(SeqCst)
    }

    pub fn is_wrong(&self, question: &SoakQuestion, why: &str) {
        self.wrong.lock().expect("nobody panicked").add(sentence(question, self.clock.seconds(), why));
    }

    pub fn fails(&self, question: &SoakQuestion, why: &str) {
        let ended = self.clock.seconds();
        match self.excuse(question, ended) {
            Some(kind) => drop(self.failed_in_windows[kind as usize].fetch_add(1, SeqCst)),
            None => self.failed.lock().expect("nobody panicked").add(sentence(question, ended, why)),
        }
    }

    /// In a window, what no framing tells from a whole answer: one that ends with its connection, and a page of which a part could not be had.
    fn may_be_cut(&self, question: &SoakQuestion, answer: &Message) -> bool {
        let is_framed = answer.field("content-length").is_some()
            || answer.field("transfer-encoding").is_some()
            || answer.start.starts_with("HTTP/2");
        match self.excuse(question, self.clock.seconds()) {
            Some(WindowKind::OriginDown) => question.page.kind() == PageKind::Whole || !is_framed,
            Some(_) => !is_framed,
            None => false,
        }
    }

    fn excuse(&self, question: &SoakQuestion, ended: f64) -> Option<WindowKind> {
        let windows = self.windows.lock().expect("nobody panicked");
        let excuses = |window: &&SoakWindow| {
            window.larder.is_none_or(|larder| larder == question.larder)
                && window.kind.excuses(question.road)
                && window.from <= ended
                && window.to.is_none_or(|to| question.begun <= to)
        };
        windows.iter().rev().find(excuses).map(|window| window.kind)
    }

    pub fn failed_in(&self, kind: WindowKind) -> u64 {
        self.failed_in_windows[kind as usize].load(SeqCst)
    }

    /// Announces a window; what is done to larder comes after that.
    pub fn open_window(&self, kind: WindowKind, larder: Option<usize>) {
        let window = SoakWindow { kind, larder, from: self.clock.seconds(), to: None };
        self.windows.lock().expect("nobody panicked").push(window);
    }

    /// All that are open.
    pub fn close_windows(&self) {
        let now = self.clock.seconds();
        for window in self.windows.lock().expect("nobody panicked").iter_mut().filter(|window| window.to.is_none()) {
            window.to = Some(now);
        }
    }

    pub fn windows(&self) -> Vec<SoakWindow> {
        self.windows.lock().expect("nobody panicked").clone()
    }
}

impl SoakSentences {
    fn add(&mut self, sentence: String) {
        self.count += 1;
        if self.first.len() < SENTENCES_MAX {
            self.first.push(sentence);
        }
    }
}

fn sentence(question: &SoakQuestion, ended: f64, why: &str) -> String {
    let SoakQuestion { larder, road, page, begun, .. } = question;
    format!("{begun:.3}-{ended:.3} s, larder {larder}, {}, {}: {why}", road.words(), page.path())
}

/// The answer in a line.
pub fn told(answer: &Message) -> String {
    let body = String::from_utf8_lossy(&answer.body[..answer.body.len().min(200)]).trim_end().replace('\n', " ");
    let status = answer.field("cache-status").unwrap_or_default();
    format!("{} ({status}): {body}", answer.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn books() -> SoakBooks {
        SoakBooks::open(SoakSite::serve(false).expect("it serves"))
    }

    fn answer(page: SoakPage, version: u64) -> Message {
        let fields = vec![("X-Version".to_owned(), version.to_string())];
        Message { start: "HTTP/1.1 200 OK".to_owned(), fields, body: page.body(version) }
    }

    fn totals(books: &SoakBooks) -> (u64, u64, u64) {
        let count = |sentences: &Mutex<SoakSentences>| sentences.lock().unwrap().count;
        (books.right(SoakRoad::Kept), count(&books.wrong), count(&books.failed))
    }

    #[test]
    fn what_is_old_new_cut_or_of_another_page_is_wrong() {
        let (books, page) = (books(), SoakPage(0));
        let ask = |answer: Message| books.close(&books.question(0, SoakRoad::Kept, page), Ok(answer));
        ask(answer(page, 1));
        assert_eq!(totals(&books), (1, 0, 0));
        ask(answer(page, 2));
        assert_eq!(totals(&books), (1, 1, 0), "nobody made it");
        let least = books.site.raise(&[0]);
        let before = books.question(0, SoakRoad::Kept, page);
        books.acknowledge(0, &least);
        ask(answer(page, 1));
        assert_eq!(totals(&books), (1, 2, 0), "it was purged");
        books.close(&before, Ok(answer(page, 1)));
        books.close(&books.question(1, SoakRoad::Kept, page), Ok(answer(page, 1)));
        assert_eq!(totals(&books), (3, 2, 0), "asked before, and of the other larder");
        let mut cut = answer(page, 2);
        cut.body.pop();
        ask(cut);
        ask(answer(SoakPage(6), 2));
        assert_eq!(totals(&books), (3, 4, 0));
    }

    #[test]
    fn a_brief_page_is_not_older_than_its_time_but_under_a_vcl() {
        let (books, page) = (books(), SoakPage(5));
        books.raise(&[5]);
        let changed = books.changes.lock().expect("nobody panicked")[&5][0];
        assert_eq!(books.version_before(5, changed.0 + 0.1), 2);
        assert_eq!(books.version_before(5, changed.0 - 0.1), 0);
        books.changes.lock().expect("nobody panicked").get_mut(&5).expect("it changed")[0].0 -= BRIEF_SECONDS_MAX + 0.1;
        let floor = |larder, road| books.question(larder, road, page).floors[0].1;
        assert_eq!((floor(0, SoakRoad::Kept), floor(BY_PROGRAM, SoakRoad::Kept)), (2, 0));
        assert_eq!(floor(BY_PROGRAM, SoakRoad::Forward), 2);
    }

    fn fail(larder: usize, road: SoakRoad, books: &SoakBooks) -> bool {
        let before = totals(books).2;
        books.fails(&books.question(larder, road, SoakPage(0)), "gone");
        totals(books).2 == before
    }

    #[test]
    fn a_window_excuses_whom_it_was_announced_for_until_it_is_over() {
        let books = books();
        assert!(!fail(0, SoakRoad::Kept, &books));
        let under_way = books.question(0, SoakRoad::Kept, SoakPage(0));
        books.open_window(WindowKind::Killed, Some(0));
        assert!(fail(0, SoakRoad::File, &books) && !fail(1, SoakRoad::File, &books));
        let begun_in_it = books.question(0, SoakRoad::Kept, SoakPage(0));
        books.close_windows();
        for question in [under_way, begun_in_it] {
            books.fails(&question, "gone");
        }
        assert_eq!(books.failed_in(WindowKind::Killed), 3);
        let closed = books.clock.seconds();
        while books.clock.seconds() <= closed {}
        assert!(!fail(0, SoakRoad::Kept, &books));
        books.open_window(WindowKind::OriginDown, None);
        assert!(fail(1, SoakRoad::Streams, &books) && !fail(1, SoakRoad::File, &books));
        books.close_windows();
        books.open_window(WindowKind::DiskFrozen, None);
        assert!(fail(1, SoakRoad::Purge, &books) && !fail(1, SoakRoad::Kept, &books));
    }
}
