//! `cargo xtask fleet-history`: does a fleet keep what the acknowledgement of a purge promises? Three larders with one log in Redis are
//! asked and told purges while nodes are killed and stopped, links are cut, frozen and slow, and Redis is killed, stopped and emptied.
//! Everything that clients saw is written down by one clock, and each answer is held against every purge that was acknowledged before
//! its request was begun (`purge_promises.rs`).
//!
//! The seed makes the same faults at the same moments, and the same clients; which request meets which moment it does not make.

use crate::project::Project;
use crate::seeded_run;
use crate::step_tally::Tally;

mod broken_link;
mod fleet_clients;
mod fleet_faults;
mod fleet_round;
mod fleet_stage;
mod judged_node;
mod judged_redis;
mod method_writers;
mod purge_history;
mod purge_promises;
mod round_report;
mod versioned_origin;

use fleet_round::FleetRound;
use fleet_stage::Planted;
use purge_history::Acknowledgement;

const ROUNDS: u64 = 30;
/// A run in which less than one answer in so many is a hit tests little.
const ANSWERS_PER_HIT_MAX: usize = 5;

pub fn task(project: &Project, options: &[&str]) -> Result<(), String> {
    let (planted, options) = planted(options)?;
    seeded_run::task("fleet-history", ("--rounds", ROUNDS), &options, |rounds, seed| {
        play(project, rounds, seed, planted, |line| println!("{line}"))
    })
}

/// Each kind of fault comes first in one of these.
const SEED_IN_TESTS: u64 = 1_400;
const ROUNDS_IN_TESTS: u64 = 14;

/// In `make test`.
pub fn run(project: &Project) -> Result<Tally, String> {
    let mut lines = Vec::new();
    let mut tally = play(project, ROUNDS_IN_TESTS, SEED_IN_TESTS, None, |line| lines.push(line))?;
    if tally.failed > 0 {
        tally.remarks.append(&mut lines);
    }
    Ok(tally)
}

/// What is planted, and the other options.
fn planted<'a>(options: &[&'a str]) -> Result<(Option<Planted>, Vec<&'a str>), String> {
    let Some(at) = options.iter().position(|option| *option == "--planted") else {
        return Ok((None, options.to_vec()));
    };
    let word = options.get(at + 1).copied().unwrap_or_default();
    let planted = Planted::named(word).ok_or("--planted takes local-as-applied or no-lease")?;
    Ok((Some(planted), [&options[..at], &options[at + 2..]].concat()))
}

/// The seed of a round is one more than that of the round before, so that each can be had alone.
fn play(
    project: &Project,
    rounds: u64,
    seed: u64,
    planted: Option<Planted>,
    mut say: impl FnMut(String),
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let (mut answers, mut hits, mut acknowledged) = (0, 0, [0; Acknowledgement::ALL.len()]);
    for seed in seed..seed + rounds {
        let round = FleetRound::play(project, seed, planted)?;
        round.lines().into_iter().for_each(&mut say);
        tally.passed += usize::from(round.broken.is_empty() && round.wrong.is_empty());
        tally.failed += round.broken.len() + round.wrong.len();
        (answers, hits) = (answers + round.history.answers.len(), hits + round.hits());
        for (count, kind) in acknowledged.iter_mut().zip(Acknowledgement::ALL) {
            *count += round.acknowledged(kind);
        }
    }
    tally.remarks.push(format!("{rounds} rounds from seed {seed} on: {answers} answers, {hits} of them hits"));
    if hits * ANSWERS_PER_HIT_MAX < answers || planted.is_none() && acknowledged.contains(&0) {
        tally.failed += 1;
        tally
            .remarks
            .push("there were too few hits, or no purges that were acknowledged: nothing was tested".to_owned());
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planted_is_taken_out_of_the_options() {
        let taken = planted(&["--rounds", "3", "--planted", "no-lease", "--seed", "1"]);
        assert_eq!(taken, Ok((Some(Planted::NoLease), vec!["--rounds", "3", "--seed", "1"])));
        assert_eq!(planted(&["--rounds", "3"]), Ok((None, vec!["--rounds", "3"])));
        assert!(planted(&["--planted"]).is_err());
        assert!(planted(&["--planted", "nothing"]).is_err());
    }
}
