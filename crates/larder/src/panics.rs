//! What becomes of a panic: a line for the operator, a count for each place, and a report that outlives the process.
//!
//! A backtrace with names maps the debug info of the whole program, a hundred MB of it, and holds its thread up for a
//! second; a program that serves goes on with addresses, which `larder support` names. `RUST_BACKTRACE=full` asks for all of it at once.

use std::panic::PanicHookInfo;
use std::sync::Arc;

use parking_lot::Mutex;
use proxy::manager_now_us;
use supervisor::{CrashReports, ServingLink};

use crate::build_identity::BuildIdentity;
use crate::crash_report::CrashReport;
use crate::limits::{PANIC_PLACES_MAX, PANIC_SAY_EVERY, PANICS_SAID_EACH};
use crate::say::say;

/// How often it came to a panic at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PanicPlace {
    /// File, line and column.
    pub place: String,
    pub count: u64,
}

/// What there is to tell of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PanicFigures {
    pub count: u64,
    /// From the first on.
    pub places: Vec<PanicPlace>,
    /// The last ones of this process and of those before it, and deaths of those, each a line.
    pub reports: Vec<String>,
}

static BOARD: Mutex<PanicBoard> = Mutex::new(PanicBoard::new());

/// Of this process.
struct PanicBoard {
    count: u64,
    places: Vec<Known>,
    reports: Option<CrashReports>,
    /// Where reports outlive the process.
    supervisor: Option<Arc<ServingLink>>,
}

struct Known {
    place: String,
    count: u64,
    /// Those among them that nothing was said of.
    unsaid: u64,
    /// By the clock of the service manager.
    said_us: Option<u64>,
}

/// For places beyond those that are counted apart.
const ELSEWHERE: &str = "elsewhere";

impl PanicBoard {
    const fn new() -> PanicBoard {
        PanicBoard { count: 0, places: Vec::new(), reports: None, supervisor: None }
    }

    /// Counts one. `Some`: it is to be said, with how many there were unsaid before it.
    fn note(&mut self, place: &str, now_us: u64) -> Option<u64> {
        self.count += 1;
        let at = match self.places.iter().position(|known| known.place == place) {
            Some(at) => at,
            None => {
                let is_full = self.places.len() >= PANIC_PLACES_MAX;
                let place = if is_full { ELSEWHERE } else { place };
                match self.places.iter().position(|known| known.place == place) {
                    Some(at) => at,
                    None => {
                        self.places.push(Known { place: place.to_owned(), count: 0, unsaid: 0, said_us: None });
                        self.places.len() - 1
                    }
                }
            }
        };
        let known = &mut self.places[at];
        known.count += 1;
        let is_over = |said_us: u64| u128::from(now_us.saturating_sub(said_us)) >= PANIC_SAY_EVERY.as_micros();
        let is_due = known.said_us.is_none_or(is_over);
        if known.count > PANICS_SAID_EACH && !is_due {
            known.unsaid += 1;
            return None;
        }
        known.said_us = Some(now_us);
        Some(std::mem::take(&mut known.unsaid))
    }
}

/// From here on.
pub fn are_said_in_a_line() {
    let is_wanted = std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value == "full");
    BuildIdentity::of_this_program();
    std::panic::set_hook(Box::new(move |panic| {
        met(panic);
        if is_wanted {
            say!("{}", std::backtrace::Backtrace::force_capture());
        }
    }));
}

fn met(panic: &PanicHookInfo<'_>) {
    let report = CrashReport::of(panic);
    let mut board = BOARD.lock();
    let Some(unsaid) = board.note(&report.place, manager_now_us()) else { return };
    let line = report.line();
    board.reports.get_or_insert_default().keep(&line);
    let supervisor = board.supervisor.clone();
    drop(board);
    let more = if unsaid == 0 { String::new() } else { format!(" ({unsaid} more there since it was last said)") };
    say!("error: {}{more}; `larder support` has the report", report.sentence());
    // One that takes nothing keeps nothing; the sentence is said all the same.
    let _ = supervisor.map(|supervisor| supervisor.report(&line));
}

/// What a supervisor has kept, and that it is to be told of what comes.
pub fn outlive_the_process(supervisor: Arc<ServingLink>, before: &[String]) {
    let mut board = BOARD.lock();
    board.supervisor = Some(supervisor);
    let reports = board.reports.get_or_insert_default();
    before.iter().for_each(|line| reports.keep(line));
}

pub fn figures() -> PanicFigures {
    let board = BOARD.lock();
    let places = board.places.iter().map(|known| PanicPlace { place: known.place.clone(), count: known.count });
    let reports = board.reports.iter().flat_map(CrashReports::lines).map(str::to_owned);
    PanicFigures { count: board.count, places: places.collect(), reports: reports.collect() }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn the_first_ones_of_a_place_are_said_and_then_one_a_minute() {
        let (mut board, now) = (PanicBoard::new(), 7_000_000);
        let said: Vec<Option<u64>> = (0..6).map(|_| board.note("a.rs:1:1", now)).collect();
        assert_eq!(said, [Some(0), Some(0), Some(0), None, None, None]);
        assert_eq!(board.note("b.rs:1:1", now), Some(0), "another place has its own");
        let later = now + PANIC_SAY_EVERY.as_micros() as u64;
        assert_eq!(board.note("a.rs:1:1", later), Some(3));
        assert_eq!(board.note("a.rs:1:1", later), None);
        assert_eq!((board.count, board.places[0].count), (9, 8));
    }

    #[test]
    fn places_are_counted_apart_up_to_a_number() {
        let (mut board, now) = (PanicBoard::new(), 7_000_000);
        (0..PANIC_PLACES_MAX + 5).for_each(|line| {
            board.note(&format!("a.rs:{line}:1"), now);
        });
        assert_eq!(board.places.len(), PANIC_PLACES_MAX + 1);
        let last = board.places.last().expect("one");
        assert_eq!((last.place.as_str(), last.count), (ELSEWHERE, 5));
    }

    /// Run by the test below, in a process of its own.
    #[test]
    #[ignore = "it panics"]
    fn a_thread_panics_with_what_a_client_has_sent() {
        are_said_in_a_line();
        let sent = std::env::args().next().unwrap_or_default() + "a client's secret";
        let thread = std::thread::Builder::new().name("larder-0".to_owned());
        let ended = thread.spawn(move || assert!(sent.is_empty(), "cannot read: {sent}")).expect("a thread").join();
        assert!(ended.is_err());
        let figures = figures();
        println!("figures {} {:?}", figures.count, figures.places);
        figures.reports.iter().for_each(|line| println!("report {line}"));
    }

    #[test]
    fn a_report_has_place_build_and_way_there_and_nothing_of_the_client() {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        let test = "panics::tests::a_thread_panics_with_what_a_client_has_sent";
        let output = command.args(["--exact", test, "--ignored", "--nocapture"]).output().expect("it can be started");
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{out}{said}");
        let sentence = "error: thread 'larder-0' panicked at crates/larder/src/panics.rs:";
        assert!(said.contains(sentence) && said.contains("cannot read …; `larder support` has the report"), "{said}");
        let report = out.lines().find_map(|line| line.strip_prefix("report ")).expect("one is kept");
        let build = &BuildIdentity::of_this_program().id;
        let (_, way) = report.split_once(&format!("; way there: build {build} ")).expect("its build");
        assert!(way.split(' ').count() > 3 && way.split(' ').all(|word| word.starts_with("0x")), "{report}");
        assert!(!(out + &said).contains("secret"));
    }
}
