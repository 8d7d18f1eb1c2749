//! `cargo xtask import-random`: configurations that nobody wrote, imported, beside the real nginx. What is open in larder and was closed
//! is made smaller, as long as it stays open, and kept.

use crate::import_corpus::directive_text::{Directive, write};
use crate::import_corpus::stub_origins::StubOrigins;
use crate::import_corpus::{NotCompared, Table, compare, random_configuration};
use crate::project::Project;
use crate::seeded_run;
use crate::step_tally::Tally;

const FILES: u64 = 300;
const FILES_IN_TESTS: u64 = 25;
/// So that the short run finds what it found yesterday.
const SEED_IN_TESTS: u64 = 1;
/// A run that found so many is over.
const FOUND_MAX: usize = 10;

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    seeded_run::task("import-random", ("--files", FILES), options, |files, seed| play(project, files, seed))
}

/// The short run of the tests.
pub fn run(project: &Project) -> Result<Tally, String> {
    play(project, FILES_IN_TESTS, SEED_IN_TESTS)
}

fn play(project: &Project, files: u64, seed: u64) -> Result<Tally, String> {
    let mut stubs = StubOrigins::default();
    let (mut tally, mut refused, mut rows) = (Tally::default(), 0, 0);
    let folder = project.scratch("import-random")?;
    for number in 0..files {
        let all = random_configuration::made(seed, number)?;
        let wrong = match compare(project, all.clone(), &mut stubs, false) {
            Ok(table) if table.taken_out.is_empty() => {
                rows += table.rows;
                what_is_wrong(&table)
            }
            Ok(_) | Err(NotCompared::Refused(_)) => {
                refused += 1;
                continue;
            }
            Err(NotCompared::Failed(why)) => Some(Wrong::NotRun(why)),
        };
        let Some(wrong) = wrong else {
            tally.passed += 1;
            continue;
        };
        let mut smallest =
            smaller(all, &mut |tried| is_wrong_alike(&wrong, compare(project, tried, &mut stubs, false)));
        let file = folder.join(format!("found-{seed}-{number}.conf"));
        std::fs::write(&file, write(&mut smallest)).map_err(|error| format!("{}: {error}", file.display()))?;
        let row = match compare(project, smallest, &mut stubs, false) {
            Ok(table) => what_is_wrong(&table).map(|wrong| wrong.said()),
            Err(_) => None,
        };
        tally.failed += 1;
        tally.remarks.push(format!("{}: {}", file.display(), row.unwrap_or_else(|| wrong.said())));
        if tally.failed >= FOUND_MAX {
            break;
        }
    }
    tally.remarks.push(format!("seed {seed}: {rows} requests, {refused} configurations refused by nginx"));
    Ok(tally)
}

/// What is wrong with a configuration's import.
enum Wrong {
    Open(String),
    Unlisted(String),
    NotRun(String),
}

impl Wrong {
    fn said(&self) -> String {
        match self {
            Wrong::Open(row) => format!("open: {row}"),
            Wrong::Unlisted(row) => format!("not listed: {row}"),
            Wrong::NotRun(why) => why.clone(),
        }
    }
}

fn what_is_wrong(table: &Table) -> Option<Wrong> {
    let open = table.open.first().cloned().map(Wrong::Open);
    open.or_else(|| table.unlisted.first().cloned().map(Wrong::Unlisted))
}

fn is_wrong_alike(wrong: &Wrong, compared: Result<Table, NotCompared>) -> bool {
    match (wrong, compared) {
        (_, Ok(table)) if !table.taken_out.is_empty() => false,
        (Wrong::Open(_), Ok(table)) => !table.open.is_empty(),
        (Wrong::Unlisted(_), Ok(table)) => !table.unlisted.is_empty(),
        (Wrong::NotRun(_), Err(NotCompared::Failed(_))) => true,
        _ => false,
    }
}

/// Without each directive that is not needed for `is_it`.
fn smaller(mut all: Vec<Directive>, is_it: &mut dyn FnMut(Vec<Directive>) -> bool) -> Vec<Directive> {
    let mut at = 0;
    while at < count(&all) {
        let mut tried = all.clone();
        let is_out = take_out(&mut tried, &mut at.clone());
        match is_out && is_it(tried.clone()) {
            true => all = tried,
            false => at += 1,
        }
    }
    all
}

fn count(all: &[Directive]) -> usize {
    all.iter().map(|directive| 1 + count(directive.children())).sum()
}

/// Takes out the one with this number, outer ones counted first. An application that is not told its script is another thing.
fn take_out(all: &mut Vec<Directive>, at: &mut usize) -> bool {
    for place in 0..all.len() {
        if *at == 0 {
            return all[place].name() != "fastcgi_param" && {
                all.remove(place);
                true
            };
        }
        *at -= 1;
        if let Some(block) = &mut all[place].block
            && take_out(block, at)
        {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import_corpus::directive_text::parsed;

    #[test]
    fn what_is_not_needed_is_taken_out() {
        let all = parsed("a 1; server { b; location / { c; d; } } e;").expect("blocks");
        let mut is_it = |tried: Vec<Directive>| {
            let mut has = (false, false);
            tried.iter().for_each(|one| {
                one.walk(&mut |directive| match directive.name() {
                    "d" => has.0 = true,
                    "e" => has.1 = true,
                    _ => {}
                });
            });
            has == (true, true)
        };
        let mut smallest = smaller(all, &mut is_it);
        assert_eq!(write(&mut smallest), "server {\nlocation / {\nd;\n}\n}\ne;\n");
    }
}
