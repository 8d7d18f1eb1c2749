//! In which order addresses of different weights take turns: a round in which each has as many turns as it weighs, as far from one
//! another as can be (smooth weighted round robin, as nginx plays it). It is made once for a list of addresses, so that whose turn it is
//! takes a look into it and nobody keeps count but of the turns.

use super::limits::TURNS_MAX;

/// Positions in a list of addresses, one for each turn of a round.
#[derive(Debug, Default)]
pub struct TurnSchedule {
    turns: Vec<u16>,
    /// Those that have turns, in the order of the list, with their weights.
    members: Vec<(u16, u32)>,
}

impl TurnSchedule {
    /// Of those that weigh nothing none has a turn.
    pub fn of(members: impl Iterator<Item = (u16, u32)>) -> TurnSchedule {
        let members: Vec<(u16, u32)> = members.filter(|(_, weight)| *weight > 0).collect();
        let divisor = members.iter().fold(0, |divisor, (_, weight)| common_divisor(divisor, *weight)).max(1);
        let total: u64 = members.iter().map(|(_, weight)| u64::from(weight / divisor)).sum();
        // A longer round is played coarsely.
        let part = |weight: u32| {
            let part = u64::from(weight / divisor);
            if total <= TURNS_MAX { part } else { (part * TURNS_MAX / total).max(1) }
        };
        let parts: Vec<i64> = members.iter().map(|(_, weight)| part(*weight) as i64).collect();
        let round: i64 = parts.iter().sum();
        let mut credits = vec![0_i64; parts.len()];
        let mut turns = Vec::with_capacity(round as usize);
        for _ in 0..round {
            credits.iter_mut().zip(&parts).for_each(|(credit, part)| *credit += part);
            // The first of those that have waited longest.
            let richest = (0..credits.len()).rev().max_by_key(|&at| credits[at]).unwrap_or(0);
            credits[richest] -= round;
            turns.push(members[richest].0);
        }
        TurnSchedule { turns, members }
    }

    /// Who has this turn; `None` where nobody has any.
    #[inline]
    pub fn at(&self, turn: usize) -> Option<usize> {
        Some(usize::from(self.turns[turn.checked_rem(self.turns.len())?]))
    }

    /// In a round.
    pub fn turns_count(&self) -> usize {
        self.turns.len()
    }

    /// A round, from this turn on.
    pub fn round_from(&self, turn: usize) -> impl Iterator<Item = usize> {
        let (before, from) = self.turns.split_at(turn.checked_rem(self.turns.len()).unwrap_or(0));
        from.iter().chain(before).map(|&at| usize::from(at))
    }

    /// Each that has turns, once, in the order of the list, beginning at this turn's place in it; and what it weighs.
    pub fn members_from(&self, turn: usize) -> impl Iterator<Item = (usize, u32)> {
        let (before, from) = self.members.split_at(turn.checked_rem(self.members.len()).unwrap_or(0));
        from.iter().chain(before).map(|&(at, weight)| (usize::from(at), weight))
    }
}

fn common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(weights: &[u32], expect: &[usize]) {
        let schedule = TurnSchedule::of(weights.iter().copied().enumerate().map(|(at, weight)| (at as u16, weight)));
        assert_eq!(schedule.round_from(0).collect::<Vec<_>>(), expect, "{weights:?}");
        let turns: Vec<usize> = (0..expect.len()).map(|turn| schedule.at(turn).unwrap()).collect();
        assert_eq!(turns, expect, "{weights:?}");
    }

    #[test]
    fn each_has_as_many_turns_as_it_weighs_far_from_one_another() {
        check(&[1, 1, 1], &[0, 1, 2]);
        check(&[5, 1, 1], &[0, 0, 1, 0, 2, 0, 0]);
        check(&[2, 4], &[1, 0, 1]);
        check(&[0, 3], &[1]);
        check(&[256, 256], &[0, 1]);
    }

    #[test]
    fn a_round_has_an_end() {
        let schedule = TurnSchedule::of((0..100_u16).map(|at| (at, 999 + u32::from(at % 2))));
        assert!(schedule.turns_count() as u64 <= TURNS_MAX + 100);
        assert_eq!(schedule.members_from(0).count(), 100);
    }

    #[test]
    fn nobody_has_a_turn_where_nobody_weighs_anything() {
        let schedule = TurnSchedule::of([(0, 0)].into_iter());
        assert_eq!((schedule.at(7), schedule.round_from(7).count(), schedule.members_from(7).count()), (None, 0, 0));
    }
}
