//! `cargo xtask mutants`: would the tests notice? One small fault at a time is planted into `rules`, into `wire`'s framing
//! and into `proxy`'s steps, and the tests of the crate are run. A fault that no test notices has survived: somebody
//! kills it with a test, or lists it with a reason in xtask/mutants/survivors.toml.
//!
//! It is no wrapper around cargo-mutants: that would have to be compiled first, which takes longer than the short run of
//! `make test` may, and it knows no list of survivors that must stay true. What it plants is in `mutants/mutation.rs`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::dice::Dice;
use crate::project::{Project, Stopwatch};

mod broken_copy;
mod figures;
mod functions;
mod mutated_crates;
mod mutation;
pub mod survivors;

use broken_copy::{BrokenCopy, Fate};
use figures::Figures;
use mutated_crates::{CRATES, MutatedCrate};
use mutation::Mutation;
use survivors::Survivors;

/// Of a crate, in `make test`. Where processors are slow, one of wire takes 20 seconds.
const COUNT_IN_TESTS: usize = 12;
/// So that the short run finds what it found yesterday.
const SEED_IN_TESTS: u64 = 1;
/// Those that are built in seconds.
const CRATES_IN_TESTS: [&str; 2] = ["rules", "wire"];
const LANES: usize = 2;
const TOLD_EVERY: usize = 100;

/// What came of a run.
#[derive(Default)]
pub struct MutantVerdict {
    /// Mutants that are killed, or live as the list says.
    pub right: usize,
    /// The figures.
    pub said: Vec<String>,
    /// A sentence for each mutant, or entry of the list, that somebody has to do something about.
    pub wrong: Vec<String>,
}

impl MutantVerdict {
    fn add(&mut self, other: MutantVerdict) {
        self.right += other.right;
        self.said.extend(other.said);
        self.wrong.extend(other.wrong);
    }
}

struct MutantOptions {
    crates: Vec<&'static MutatedCrate>,
    seed: Option<u64>,
    first: usize,
    count: usize,
    lanes: usize,
    /// Only those of the list.
    listed: bool,
    writes: bool,
}

impl MutantOptions {
    fn read(options: &[&str]) -> Result<MutantOptions, String> {
        let mut read = MutantOptions {
            crates: Vec::new(),
            seed: None,
            first: 0,
            count: usize::MAX,
            lanes: LANES,
            listed: false,
            writes: false,
        };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let mut number =
                || options.next().and_then(|text| text.parse::<u64>().ok()).ok_or(format!("{option} needs a number"));
            match *option {
                "--seed" => read.seed = Some(number()?),
                "--first" => read.first = number()? as usize,
                "--count" => read.count = number()? as usize,
                "--lanes" => read.lanes = (number()? as usize).max(1),
                "--listed" => read.listed = true,
                "--write" => read.writes = true,
                name => read.crates.push(MutatedCrate::named(name).ok_or(format!(
                    "'{name}' is no option of mutants: rules, wire, proxy, --seed S, --first N, --count N, --lanes N, \
                     --listed, --write"
                ))?),
            }
        }
        if read.crates.is_empty() {
            read.crates.extend(&CRATES);
        }
        Ok(read)
    }
}

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let options = MutantOptions::read(options)?;
    let mut verdict = MutantVerdict { wrong: survivors::stale(project)?, ..MutantVerdict::default() };
    for &of in &options.crates {
        let run = MutantRun::of(project, of, &options)?;
        let figures = run.play(project, options.lanes)?;
        verdict.add(run.verdict(&figures));
        if options.writes {
            figures::write(project, of, &figures)?;
        }
    }
    verdict.said.iter().chain(&verdict.wrong).for_each(|line| println!("{line}"));
    let wrong = verdict.wrong.len();
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} mutants are not as they should be")) }
}

/// The short run of the tests: a few of each crate that is built fast, in a lane each.
pub fn run(project: &Project) -> Result<MutantVerdict, String> {
    let options = ["--seed", &SEED_IN_TESTS.to_string(), "--count", &COUNT_IN_TESTS.to_string()];
    let options = MutantOptions::read(&[&options, CRATES_IN_TESTS.as_slice()].concat())?;
    let mut verdict = MutantVerdict { wrong: survivors::stale(project)?, ..MutantVerdict::default() };
    let played: Vec<Result<MutantVerdict, String>> = std::thread::scope(|scope| {
        let play = |of: &'static MutatedCrate| {
            let options = &options;
            scope.spawn(move || {
                let run = MutantRun::of(project, of, options)?;
                Ok(run.verdict(&run.play(project, 1)?))
            })
        };
        let lanes: Vec<_> = options.crates.iter().map(|of| play(of)).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap_or(Err("a lane panicked".to_string()))).collect()
    });
    for played in played {
        verdict.add(played?);
    }
    Ok(verdict)
}

/// One file that is mutated.
struct MutatedFile {
    path: String,
    text: String,
}

/// The mutants of one crate that are tried.
struct MutantRun {
    of: &'static MutatedCrate,
    files: Vec<MutatedFile>,
    /// With the place of its file in `files`.
    mutants: Vec<(usize, Mutation)>,
    all_count: usize,
    seed: Option<u64>,
    survivors: Survivors,
}

impl MutantRun {
    fn of(project: &Project, of: &'static MutatedCrate, options: &MutantOptions) -> Result<MutantRun, String> {
        let mut files = Vec::new();
        for path in project.files()?.into_iter().filter(|path| of.has(path)) {
            files.push(MutatedFile { text: project.read(&path)?, path: path.display().to_string() });
        }
        let mut mutants = Vec::new();
        for (index, file) in files.iter().enumerate() {
            mutants.extend(mutation::all(&file.text).into_iter().map(|mutation| (index, mutation)));
        }
        if let Some(seed) = options.seed {
            let mut dice = Dice::of(seed);
            for end in (1..mutants.len()).rev() {
                mutants.swap(end, dice.below(end as u64 + 1) as usize);
            }
        }
        let (survivors, all_count) = (Survivors::read(project)?, mutants.len());
        if options.listed {
            mutants.retain(|(file, mutation)| survivors.entry(&files[*file].path, mutation).is_some());
        }
        let mutants = mutants.into_iter().skip(options.first).take(options.count).collect();
        Ok(MutantRun { of, files, mutants, all_count, seed: options.seed, survivors })
    }

    /// Tries them all, so many at a time, and writes down what became of each.
    fn play(&self, project: &Project, lanes: usize) -> Result<Figures, String> {
        let watch = Stopwatch::start();
        let (next, fates) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
        let log = self.log(project)?;
        let run_lane = |lane: usize| {
            let copy = BrokenCopy::make(project, self.of, lane)?;
            loop {
                let number = next.fetch_add(1, SeqCst);
                let Some((file, mutation)) = self.mutants.get(number) else { return Ok(()) };
                let file = &self.files[*file];
                let fate = copy.try_out(file.path.as_ref(), &file.text, mutation)?;
                self.tell(number, &fate, &watch, &log)?;
                fates.lock().expect("no lane panicked").insert(number, fate);
            }
        };
        let lanes: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..lanes).map(|lane| scope.spawn(move || run_lane(lane))).collect();
            lanes.into_iter().map(|lane| lane.join().unwrap_or(Err("a lane panicked".to_string()))).collect()
        });
        lanes.into_iter().collect::<Result<(), String>>()?;
        let fates: Vec<Fate> = fates.into_inner().expect("no lane panicked").into_values().collect();
        Ok(self.figures(fates, watch.seconds()))
    }

    /// A line in the log; and to people what they have to do something about.
    fn tell(&self, number: usize, fate: &Fate, watch: &Stopwatch, mut log: &File) -> Result<(), String> {
        let (file, mutation) = &self.mutants[number];
        let path = &self.files[*file].path;
        let Mutation { line_number, line, becomes, .. } = mutation;
        let told = format!("{fate:?}\t{path}:{line_number}\t{line}\t{becomes}").replace('\n', " ") + "\n";
        log.write_all(told.as_bytes()).map_err(|error| format!("the log: {error}"))?;
        if *fate == Fate::Survived && self.survivors.entry(path, mutation).is_none() {
            println!("{path}:{line_number} survives\n{}", survivors::draft(path, mutation));
        }
        if (number + 1).is_multiple_of(TOLD_EVERY) {
            println!("{} {} of {}, {:.0} s", self.of.name, number + 1, self.mutants.len(), watch.seconds());
        }
        Ok(())
    }

    /// The fate of each mutant as it is known, in a file for people.
    fn log(&self, project: &Project) -> Result<File, String> {
        let file = project.scratch("mutants")?.join(format!("{}.tsv", self.of.name));
        File::create(&file).map_err(|error| format!("{}: {error}", file.display()))
    }

    fn figures(&self, fates: Vec<Fate>, seconds: f64) -> Figures {
        let mut figures = Figures::new(self.all_count, self.seed, seconds);
        for ((file, mutation), fate) in self.mutants.iter().zip(&fates) {
            let path = &self.files[*file].path;
            figures.add(path, fate, self.survivors.entry(path, mutation).map(|entry| entry.kind));
        }
        figures.fates = fates;
        figures
    }

    fn verdict(&self, figures: &Figures) -> MutantVerdict {
        let mut wrong = Vec::new();
        for ((file, mutation), fate) in self.mutants.iter().zip(&figures.fates) {
            let path = &self.files[*file].path;
            let said = || format!("{path}:{}: `{}` → `{}`", mutation.line_number, mutation.line, mutation.becomes);
            match (self.survivors.entry(path, mutation), fate) {
                (None, Fate::Survived) => wrong.push(format!("{} survives: kill it, or list it", said())),
                (Some(_), Fate::Survived) | (None, _) => {}
                (Some(_), fate) => wrong.push(format!("{} is listed as a survivor, and is not: {fate:?}", said())),
            }
        }
        let right = figures.fates.len().saturating_sub(wrong.len());
        MutantVerdict { right, said: vec![figures.said(self.of.name)], wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_told_its_crates_and_its_sample() {
        let read = MutantOptions::read(&["wire", "--seed", "7", "--count", "9"]).unwrap();
        assert_eq!((read.crates[0].name, read.seed, read.first, read.count), ("wire", Some(7), 0, 9));
        assert_eq!(MutantOptions::read(&[]).unwrap().crates.len(), CRATES.len());
        assert!(MutantOptions::read(&["--seed"]).is_err_and(|why| why == "--seed needs a number"));
        assert!(MutantOptions::read(&["store"]).is_err_and(|why| why.starts_with("'store' is no option of mutants")));
    }
}
