//! What the tasks that play at random have in common: how they are told the amount and the seed, and how they end.

use crate::dice::Dice;
use crate::step_tally::Tally;

/// Runs `play` with the amount and the seed that `options` give. `amount` is the option of the amount with its default.
/// Without `--seed` the seed is drawn.
pub fn task(
    name: &str,
    amount: (&str, u64),
    options: &[&str],
    play: impl FnOnce(u64, u64) -> Result<Tally, String>,
) -> Result<(), String> {
    let (amount_option, default) = amount;
    let (mut amount, mut seed) = (default, Dice::drawn());
    let mut options = options.iter();
    while let Some(&option) = options.next() {
        let number = options.next().and_then(|text| text.parse().ok()).ok_or(format!("{option} needs a number"))?;
        match option {
            "--seed" => seed = number,
            _ if option == amount_option => amount = number,
            _ => return Err(format!("'{option}' is no option of {name}: {amount_option} N, --seed S")),
        }
    }
    let tally = play(amount, seed)?;
    tally.remarks.iter().for_each(|remark| println!("{remark}"));
    if tally.failed == 0 { Ok(()) } else { Err(format!("{} things are wrong", tally.failed)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(options: &[&str], failed: usize) -> Result<(u64, u64), String> {
        let mut with = (0, 0);
        let play = |amount, seed| {
            with = (amount, seed);
            Ok(Tally { failed, ..Tally::default() })
        };
        task("crash", ("--runs", 100), options, play).map(|()| with)
    }

    #[test]
    fn a_task_is_told_its_amount_and_its_seed() {
        assert_eq!(played(&["--seed", "7", "--runs", "3"], 0), Ok((3, 7)));
        assert_eq!(played(&["--seed", "7"], 0), Ok((100, 7)));
        assert_eq!(played(&["--runs"], 0), Err("--runs needs a number".to_string()));
        let unknown = "'--answers' is no option of crash: --runs N, --seed S";
        assert_eq!(played(&["--answers", "3"], 0), Err(unknown.to_string()));
    }

    #[test]
    fn a_task_fails_by_what_is_wrong() {
        assert_eq!(played(&["--seed", "7"], 2), Err("2 things are wrong".to_string()));
    }
}
