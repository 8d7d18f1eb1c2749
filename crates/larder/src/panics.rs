//! What becomes of a panic: a line for the operator, a count for each place, and a report that outlives the process.
//!
//! A backtrace with names maps the debug info of the whole program, a hundred MB of it, and holds its thread up for a
//! second; a program that serves goes on with addresses, which `larder support` names. `RUST_BACKTRACE=full` asks for all of it at once; a
//! process that has given up its files (`sandbox`) finds no names then.

use std::panic::PanicHookInfo;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy::{LineAllowance, Moment};
use supervisor::{CrashReports, ServingLink};

use crate::build_identity::BuildIdentity;
use crate::crash_report::{location_of, report_of, sentence_of};
use crate::limits::{PANIC_LOCATIONS_MAX, PANICS_REPORTED_EACH};
use crate::say::say;

/// How often it came to a panic at one location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanicLocation {
    /// File, line and column.
    pub location: String,
    pub count: u64,
}

/// What there is to tell of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PanicFigures {
    pub count: u64,
    /// From the first on.
    pub locations: Vec<PanicLocation>,
    /// The last ones of this process and of those before it, and deaths of those, each a line.
    pub reports: Vec<String>,
}

static BOARD: Mutex<PanicBoard> = Mutex::new(PanicBoard::new());

/// Of this process.
struct PanicBoard {
    count: u64,
    locations: Vec<Known>,
    reports: Option<CrashReports>,
    /// Where reports outlive the process.
    supervisor: Option<Arc<ServingLink>>,
}

struct Known {
    location: String,
    count: u64,
    /// Those among them that nothing was said of.
    unsaid: u64,
    allowance: LineAllowance,
}

/// What is done about one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PanicVerdict {
    /// It is one of the first there.
    Reported,
    /// It is said, with how many there were unsaid before it.
    Said {
        unsaid: u64,
    },
    Counted,
}

/// For those beyond the locations that are counted apart.
const ELSEWHERE: &str = "elsewhere";

impl PanicBoard {
    const fn new() -> PanicBoard {
        PanicBoard { count: 0, locations: Vec::new(), reports: None, supervisor: None }
    }

    fn note(&mut self, location: &str, now_ms: u64) -> PanicVerdict {
        self.count += 1;
        let known = self.known(location);
        known.count += 1;
        if !known.allowance.take(now_ms) {
            known.unsaid += 1;
            return PanicVerdict::Counted;
        }
        let unsaid = std::mem::take(&mut known.unsaid);
        // One that never ends must not push out what is kept of others.
        if known.count <= PANICS_REPORTED_EACH { PanicVerdict::Reported } else { PanicVerdict::Said { unsaid } }
    }

    fn known(&mut self, location: &str) -> &mut Known {
        let is_full = self.locations.len() >= PANIC_LOCATIONS_MAX;
        let find = |all: &[Known], location: &str| all.iter().position(|known| known.location == location);
        let location = if is_full && find(&self.locations, location).is_none() { ELSEWHERE } else { location };
        let at = find(&self.locations, location).unwrap_or_else(|| {
            self.locations.push(Known {
                location: location.to_owned(),
                count: 0,
                unsaid: 0,
                allowance: LineAllowance::of(PANICS_REPORTED_EACH),
            });
            self.locations.len() - 1
        });
        &mut self.locations[at]
    }
}

/// From here on.
pub fn are_said_in_a_line() {
    let is_wanted = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value == "full");
    BuildIdentity::of_this_program();
    std::panic::set_hook(Box::new(move |panic| {
        if met(panic) != PanicVerdict::Counted && is_wanted {
            say!("{}", std::backtrace::Backtrace::force_capture());
        }
    }));
}

fn met(panic: &PanicHookInfo<'_>) -> PanicVerdict {
    let verdict = BOARD.lock().note(&location_of(panic), Moment::now().millis());
    let sentence = match verdict {
        PanicVerdict::Counted => return verdict,
        PanicVerdict::Said { .. } | PanicVerdict::Reported => sentence_of(panic),
    };
    match verdict {
        PanicVerdict::Reported => {
            report(&sentence);
            say!("error: {sentence}; `larder support` has the report");
        }
        PanicVerdict::Said { unsaid } => say!("error: {sentence} ({unsaid} more there since it was last said)"),
        PanicVerdict::Counted => {}
    }
    verdict
}

/// Before anybody who does not read stderr can hold it up.
fn report(sentence: &str) {
    let line = report_of(sentence);
    let mut board = BOARD.lock();
    board.reports.get_or_insert_default().keep(&line);
    let supervisor = board.supervisor.clone();
    drop(board);
    // One that takes nothing keeps nothing.
    let _ = supervisor.map(|supervisor| supervisor.report(&line));
}

/// What a supervisor has kept, and that it is to be told of what comes.
pub fn outlive_the_process(supervisor: Arc<ServingLink>, before: CrashReports) {
    let mut board = BOARD.lock();
    board.supervisor = Some(supervisor);
    board.reports = Some(before);
}

pub fn figures() -> PanicFigures {
    let board = BOARD.lock();
    let of = |known: &Known| PanicLocation { location: known.location.clone(), count: known.count };
    let reports = board.reports.iter().flat_map(CrashReports::lines).map(str::to_owned);
    PanicFigures { count: board.count, locations: board.locations.iter().map(of).collect(), reports: reports.collect() }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use supervisor::LinkSocket;

    use super::*;

    #[test]
    fn the_first_ones_of_a_location_are_reported_and_later_one_a_minute_is_said() {
        let (mut board, now) = (PanicBoard::new(), 7_000_000);
        let said: Vec<PanicVerdict> = (0..6).map(|_| board.note("a.rs:1:1", now)).collect();
        use PanicVerdict::{Counted, Reported, Said};
        assert_eq!(said, [Reported, Reported, Reported, Counted, Counted, Counted]);
        assert_eq!(board.note("b.rs:1:1", now), Reported, "another one has its own");
        let later = now + proxy::limits::NOTICE_EVERY_MS;
        assert_eq!(board.note("a.rs:1:1", later), Said { unsaid: 3 });
        assert_eq!(board.note("a.rs:1:1", later), Counted);
        assert_eq!((board.count, board.locations[0].count), (9, 8));
    }

    #[test]
    fn locations_are_counted_apart_up_to_a_number() {
        let (mut board, now) = (PanicBoard::new(), 7_000_000);
        (0..PANIC_LOCATIONS_MAX + 5).for_each(|line| {
            board.note(&format!("a.rs:{line}:1"), now);
        });
        board.note("a.rs:0:1", now);
        assert_eq!(board.locations.len(), PANIC_LOCATIONS_MAX + 1);
        assert_eq!(board.locations[0].count, 2);
        let last = board.locations.last().expect("one");
        assert_eq!((last.location.as_str(), last.count), (ELSEWHERE, 5));
    }

    /// Run by the test below, in a process of its own.
    #[test]
    #[ignore = "it panics"]
    fn a_thread_panics_with_what_a_client_has_sent() {
        are_said_in_a_line();
        let (serving, supervisor) = LinkSocket::pair().expect("a pair");
        let mut before = CrashReports::default();
        before.keep("a death before");
        outlive_the_process(Arc::new(ServingLink::on(serving)), before);
        let sent = std::env::args().next().unwrap_or_default() + "a client's secret";
        let thread = std::thread::Builder::new().name("larder-0".to_owned());
        let ended = thread.spawn(move || assert!(sent.is_empty(), "cannot read: {sent}")).expect("a thread").join();
        assert!(ended.is_err());
        let figures = figures();
        assert_eq!((figures.count, figures.locations[0].count), (1, 1));
        figures.reports.iter().for_each(|line| println!("kept {line}"));
        println!("told {}", supervisor.receive_now().expect("a word").expect("a word").text);
    }

    #[test]
    fn a_report_has_location_build_and_backtrace_and_nothing_of_the_client() {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let test = "panics::tests::a_thread_panics_with_what_a_client_has_sent";
        let output = command.args(["--exact", test, "--ignored", "--nocapture"]).output().expect("it can be started");
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{out}{said}");
        let sentence = "error: thread 'larder-0' panicked at crates/larder/src/panics.rs:";
        assert!(said.contains(sentence) && said.contains(": cannot …; `larder support` has the report"), "{said}");
        let kept: Vec<&str> = out.lines().filter_map(|line| line.strip_prefix("kept ")).collect();
        assert_eq!((kept.len(), kept[0]), (2, "a death before"), "{out}");
        let build = &BuildIdentity::of_this_program().id;
        let (_, way) = kept[1].split_once(&format!("; backtrace: build {build} ")).expect("its build");
        assert!(way.split(' ').count() > 3 && way.split(' ').all(|word| word.starts_with("0x")), "{out}");
        assert!(out.contains(&format!("told report {}", kept[1])), "{out}");
        assert!(!(out + &said).contains("secret"));
    }
}
