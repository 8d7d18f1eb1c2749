//! `cargo xtask counts`: does everything that counts in larder count the same? A random load by many clients, of HTTP/1 and HTTP/2, to a
//! larder before origins that break off, are slow or confirm; then the access log, the events of `larder log --record`, the metrics, `larder
//! stat`, varnishstat, what the clients got and what the origins saw are held against one another, by class and status, in exchanges and in
//! bytes, equal to the last one.
//!
//! Each part has two acts. In the first every client stays to the end; in the second some go away in the middle, and only what nobody can
//! know of those is left out. What is compared is in `counts_verdict.rs`.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::dice::Dice;
use crate::project::Project;
use crate::seeded_run;
use crate::step_tally::Tally;

mod answers_seen;
mod client_record;
mod counted_larder;
mod counted_load;
mod counted_origin;
mod counted_streams;
mod counts_verdict;
mod drawn_request;
mod figures_compared;
mod larder_books;
mod origin_manner;
mod told_exchange;

use client_record::{ClientBook, ClientRecord};
use counted_larder::{CountedLarder, Part};
use counted_load::CountedLoad;
use counted_origin::CountedOrigin;
use counts_verdict::{ActBooks, judge};
use figures_compared::Comparison;
use larder_books::NamedFigures;
use origin_manner::OriginManner;

const EXCHANGES: u64 = 100_000;
const EXCHANGES_IN_TESTS: u64 = 5_000;
/// Of a part, so many hundredths are asked by clients that all stay.
const STAYING_PERCENT: u64 = 60;

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    seeded_run::task("counts", ("--exchanges", EXCHANGES), options, |exchanges, seed| play(project, exchanges, seed))
}

/// The short run of the tests.
pub fn run(project: &Project) -> Result<Tally, String> {
    play(project, EXCHANGES_IN_TESTS, Dice::drawn())
}

fn play(project: &Project, exchanges: u64, seed: u64) -> Result<Tally, String> {
    let mut dice = Dice::of(seed);
    let mut tally = Tally { remarks: vec![format!("seed {seed}")], ..Tally::default() };
    let share = exchanges / Part::ALL.len() as u64;
    for part in Part::ALL {
        tally.add(play_part(project, part, share, &mut dice)?);
    }
    Ok(tally)
}

/// One larder from its start to its end.
fn play_part(project: &Project, part: Part, exchanges: u64, dice: &mut Dice) -> Result<Tally, String> {
    let folder = project.scratch(&format!("counts-{}", part.word()))?;
    let origins = [
        CountedOrigin::start("app", None, dice.next())?,
        CountedOrigin::start("other", None, dice.next())?,
        CountedOrigin::start("silent", Some(OriginManner::Silent), dice.next())?,
    ];
    let larder = CountedLarder::start(project, part, &folder, &origins)?;
    let staying = exchanges * STAYING_PERCENT / 100;
    let mut comparison = Comparison::default();
    let (mut acts, mut classes): (Vec<ClientBook>, _) = (Vec::new(), NamedFigures::new());
    for (from, to, leaves) in [(0, staying, false), (staying, exchanges, true)] {
        let load = Arc::new(CountedLoad {
            port: larder.port,
            record: ClientRecord::default(),
            next: AtomicU64::new(from),
            end: to,
            leaves,
        });
        load.run(dice);
        acts.push(load.record.book().clone());
        larder.settle(&origins)?;
        let books = ActBooks::read(&larder, &acts, &origins)?;
        comparison.within = format!("{}, {}: ", part.word(), if leaves { "some leave" } else { "all stay" });
        judge(&books, &mut comparison);
        classes = books.classes();
    }
    let Comparison { equal, mut wrong, .. } = comparison;
    wrong.extend(
        part.classes()
            .iter()
            .filter(|class| !classes.contains_key(**class))
            .map(|class| format!("{}: no answer was of class {class}: of that nothing was tested", part.word())),
    );
    let asked: usize = acts.iter().map(|act| act.sights.len()).sum();
    let counted: Vec<String> = classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
    let told =
        format!("{}: {asked} requests ({}), {equal} figures and exchanges equal", part.word(), counted.join(", "));
    Ok(Tally { passed: equal, failed: wrong.len(), remarks: [vec![told], wrong].concat() })
}
