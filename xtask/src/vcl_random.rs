//! `cargo xtask vcl-random`: random VCL programs and random requests, put to larder in the place of varnishd and to the
//! installed Varnish, each before an origin of its own: status, body and fields of every answer, and what reached the
//! origins, must be alike.
//!
//! larder runs by Varnish's own command line (`larder varnishd`) and not as `larder serve` with a VCL: then both have the
//! same parameters, and everything in which larder as a server of its own is stricter or more careful by intent is not
//! in question. Programs are loaded by the management port of both, one after the other into the same process: starting
//! a Varnish for each would take longer than everything else. What a program leaves behind is banned before the next.
//!
//! What differs is run again, because a loaded machine may be late, and then made smaller (`case_shrinking.rs`). What
//! may differ is listed with its reason in xtask/vcl-random/argued.toml, and nothing else may.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::dice::Dice;
use crate::project::{Project, Stopwatch};
use crate::step_tally::Tally;

mod answer_comparison;
mod argued_differences;
mod case_shrinking;
mod compared_pair;
mod management_port;
mod origin_words;
mod random_expressions;
mod random_program;
mod random_requests;
mod random_statements;
mod replayed_case;
mod syntax_tree;

use answer_comparison::Difference;
use argued_differences::ArguedDifferences;
use compared_pair::ComparedPair;
use replayed_case::Case;

const PROGRAMS: u64 = 1_000;
const PROGRAMS_IN_TESTS: u64 = 15;
/// So that the short run finds what it found yesterday.
const SEED_IN_TESTS: u64 = 1;
/// They wait for what is stored to grow old, and for the C compiler.
const LANES: usize = 4;
/// A difference that a loaded machine made does not come so often.
const CONFIRMATIONS: usize = 2;
/// A run that found so much is over.
const FOUND_MAX: usize = 20;
/// An entry that matches nothing in so long a run is named.
const LONG_RUN: u64 = 1_000;

struct Options {
    programs: u64,
    first: u64,
    seed: u64,
    shrinks: bool,
    replay: Option<String>,
}

impl Options {
    fn read(options: &[&str]) -> Result<Options, String> {
        let mut read = Options { programs: PROGRAMS, first: 0, seed: Dice::drawn(), shrinks: true, replay: None };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut word = || options.next().ok_or(format!("{option} needs a value"));
            let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{option} needs a number"));
            match *option {
                "--programs" => read.programs = number(word()?)?,
                "--first" => read.first = number(word()?)?,
                "--seed" => read.seed = number(word()?)?,
                "--as-found" => read.shrinks = false,
                "--replay" => read.replay = Some(word()?.to_string()),
                _ => {
                    return Err(format!(
                        "'{option}' is no option of vcl-random: --programs N, --seed S, --first N, --as-found, --replay FILE"
                    ));
                }
            }
        }
        Ok(read)
    }
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let options = Options::read(options)?;
    if let Some(file) = &options.replay {
        return replay(project, Path::new(file));
    }
    let tally = play(project, &options)?;
    tally.remarks.iter().for_each(|remark| println!("{remark}"));
    if tally.failed == 0 { Ok(()) } else { Err(format!("{} programs differ in what is not argued", tally.failed)) }
}

/// The short run of the tests.
pub fn run(project: &Project) -> Result<Tally, String> {
    let options = Options { programs: PROGRAMS_IN_TESTS, first: 0, seed: SEED_IN_TESTS, shrinks: true, replay: None };
    play(project, &options)
}

fn replay(project: &Project, file: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let case = Case::read(&text)?;
    let argued = ArguedDifferences::read(project)?;
    let mut pair = ComparedPair::start(project, "replay")?;
    let found = pair.play(&case)?;
    for difference in &found.differences {
        let of =
            argued.reason(&case, difference).map_or("NOT ARGUED".to_string(), |reason| format!("argued: {reason}"));
        println!("{difference}\n    {of}");
    }
    let unlisted = argued.unlisted(&case, &found.differences);
    println!("{} differences, {} of them not argued", found.differences.len(), usize::from(unlisted.is_some()));
    if unlisted.is_none() { Ok(()) } else { Err("they differ".to_string()) }
}

/// What all lanes share.
struct Stage<'a> {
    options: &'a Options,
    argued: ArguedDifferences,
    next: AtomicU64,
    answers: AtomicU64,
    refused: AtomicU64,
    passing: AtomicU64,
    found: Mutex<Vec<String>>,
}

fn play(project: &Project, options: &Options) -> Result<Tally, String> {
    let watch = Stopwatch::start();
    let stage = Stage {
        options,
        argued: ArguedDifferences::read(project)?,
        next: AtomicU64::new(options.first),
        answers: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        passing: AtomicU64::new(0),
        found: Mutex::default(),
    };
    let lanes: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let run = |lane: usize| {
            scope.spawn({
                let stage = &stage;
                move || stage.run_lane(project, lane)
            })
        };
        let lanes: Vec<_> = (0..LANES.min(options.programs as usize)).map(run).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap_or(Err("a lane panicked".to_string()))).collect()
    });
    lanes.into_iter().collect::<Result<(), String>>()?;
    let found = stage.found.into_inner().expect("no lane panicked");
    let [answers, refused, passing] =
        [&stage.answers, &stage.refused, &stage.passing].map(|number| number.load(SeqCst));
    let mut remarks = vec![format!(
        "seed {}: {} programs, {refused} of them refused by both, {answers} answers, {passing} differences that did not \
         come again, {:.0} s",
        options.seed,
        options.programs,
        watch.seconds()
    )];
    let mut failed = found.len();
    if refused * 10 > options.programs {
        remarks.push("too many programs are refused: nothing was tested".to_string());
        failed += 1;
    }
    if options.programs >= LONG_RUN {
        remarks.extend(stage.argued.unused().map(|name| format!("argued, and did not come: {name}")));
    }
    remarks.extend(found);
    Ok(Tally { passed: (options.programs as usize).saturating_sub(failed), failed, remarks })
}

impl Stage<'_> {
    fn run_lane(&self, project: &Project, lane: usize) -> Result<(), String> {
        let mut pair = ComparedPair::start(project, &format!("lane-{lane}"))?;
        loop {
            let number = self.next.fetch_add(1, SeqCst);
            if number >= self.options.first + self.options.programs || self.lock().len() >= FOUND_MAX {
                return Ok(());
            }
            self.try_program(project, &mut pair, number)?;
        }
    }

    fn try_program(&self, project: &Project, pair: &mut ComparedPair, number: u64) -> Result<(), String> {
        let mut dice = Dice::of(Dice::of(self.options.seed).next() ^ number);
        let program = random_program::drawn(&mut dice);
        let requests = random_requests::drawn(&mut dice);
        let case = Case { vcl: program.text(), requests };
        let found = pair.play(&case)?;
        self.answers.fetch_add(found.answers as u64, SeqCst);
        if let Some(why) = &found.refused
            && self.refused.fetch_add(1, SeqCst) == 0
        {
            println!("program {number} is refused by both, and so may others be: {}", why[1]);
        }
        let Some(first) = self.argued.unlisted(&case, &found.differences) else { return Ok(()) };
        for _ in 0..CONFIRMATIONS {
            let again = pair.play(&case)?;
            if self.argued.unlisted(&case, &again.differences).is_none_or(|again| !again.is_like(&first)) {
                self.passing.fetch_add(1, SeqCst);
                return Ok(());
            }
        }
        let (case, difference) = match self.options.shrinks {
            true => case_shrinking::shrink(pair, &self.argued, program, case, first)?,
            false => (case, first),
        };
        self.report(project, number, &case, &difference)
    }

    fn report(&self, project: &Project, number: u64, case: &Case, difference: &Difference) -> Result<(), String> {
        let file = project.scratch("vcl-random")?.join(format!("found-{}-{number}.toml", self.options.seed));
        let text = case.written();
        std::fs::write(&file, &text).map_err(|error| format!("{}: {error}", file.display()))?;
        let seed = self.options.seed;
        let said = format!(
            "program {number} of seed {seed}: {difference}\n  again by --replay {}, or whole by --seed {seed} --first \
             {number} --programs 1 --as-found\n{text}",
            file.display()
        );
        println!("{said}");
        self.lock().push(format!("program {number} of seed {seed}: {difference}"));
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<String>> {
        self.found.lock().expect("no lane panicked")
    }
}
