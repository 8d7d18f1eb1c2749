//! What filters cost, and how much of that one turn may hold: a core goes on to others after a moment, whatever a body goes through.
//!
//! Costs are estimates by kind and level. They decide where a step is worked on, never what comes of it.

use coding::Coding;

use crate::filter_chain::FilterKind;
use crate::limits::{FILTER_JOB_INSTRUCTIONS, FILTER_PIECE_BYTES, FILTER_THREAD_STEP_BYTES, FILTER_TURN_INSTRUCTIONS};

/// What is left of a turn.
pub(crate) struct FilterTurn {
    instructions_left: u64,
    /// A step that costs more is not begun; else the first that goes beyond it is the last.
    is_strict: bool,
}

impl FilterTurn {
    /// On a core, where others wait for their turn.
    pub(crate) fn of_core() -> FilterTurn {
        FilterTurn { instructions_left: FILTER_TURN_INSTRUCTIONS, is_strict: true }
    }

    /// On a thread, where other bodies do; there a step may cost what it will.
    pub(crate) fn of_thread() -> FilterTurn {
        FilterTurn { instructions_left: FILTER_JOB_INSTRUCTIONS, is_strict: false }
    }

    /// May a step of this cost begin?
    pub(crate) fn allows(&self, instructions: u64) -> bool {
        match self.is_strict {
            true => instructions <= self.instructions_left,
            false => self.instructions_left > 0,
        }
    }

    /// How much of a text that is to be coded one step takes.
    pub(crate) fn step_bytes(&self) -> usize {
        if self.is_strict { FILTER_PIECE_BYTES } else { FILTER_THREAD_STEP_BYTES }
    }

    /// A step of this cost was worked. A thread gives way after each: the scheduler would let it go on for milliseconds, with a core waiting
    /// for its processor.
    pub(crate) fn spend(&mut self, instructions: u64) {
        self.instructions_left = self.instructions_left.saturating_sub(instructions);
        if !self.is_strict {
            std::thread::yield_now();
        }
    }
}

/// Instructions for each byte of the text, what is not coded: on its way in of an encoder, on its way out of a decoder; of what is cut, for each
/// byte that is coded. Counted by
/// callgrind over a page of 60 KiB of prose in HTML; other texts are within a factor of two.
pub(crate) fn instructions_per_byte(filter: FilterKind) -> u64 {
    match filter {
        FilterKind::Decode(coding) | FilterKind::Check(coding) => match coding {
            Coding::Gzip => 22,
            Coding::Brotli => 20,
            Coding::Zstd => 11,
        },
        FilterKind::Cut => 30,
        FilterKind::Encode(Coding::Gzip, level) | FilterKind::Delta(Coding::Gzip, level) => match level {
            0 => 9,
            1 | 2 => 35,
            3..=6 => 90,
            7 => 110,
            _ => 140,
        },
        FilterKind::Encode(Coding::Brotli, level) | FilterKind::Delta(Coding::Brotli, level) => match level {
            0..=3 => 110,
            4..=6 => 250,
            7..=9 => 430,
            10 => 5_500,
            _ => 16_000,
        },
        FilterKind::Encode(Coding::Zstd, level) | FilterKind::Delta(Coding::Zstd, level) => match level {
            0..=3 => 45,
            4..=8 => 200,
            9..=12 => 800,
            13..=16 => 1_300,
            _ => 4_700,
        },
    }
}

/// Does its codec gather what it is given, to work on much of it at once? gzip works on all of it as it comes.
pub(crate) fn is_put_off(filter: FilterKind) -> bool {
    matches!(filter, FilterKind::Encode(Coding::Brotli | Coding::Zstd, _) | FilterKind::Delta(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_begins_nothing_that_it_has_no_time_for() {
        let mut turn = FilterTurn::of_core();
        assert!(turn.allows(FILTER_TURN_INSTRUCTIONS) && !turn.allows(FILTER_TURN_INSTRUCTIONS + 1));
        turn.spend(FILTER_TURN_INSTRUCTIONS - 10);
        assert!(turn.allows(10) && !turn.allows(11));
        turn.spend(u64::MAX);
        assert!(turn.allows(0) && !turn.allows(1));
    }

    #[test]
    fn a_thread_begins_anything_while_it_has_time() {
        let mut turn = FilterTurn::of_thread();
        assert!(turn.allows(u64::MAX));
        turn.spend(FILTER_JOB_INSTRUCTIONS - 1);
        assert!(turn.allows(u64::MAX));
        turn.spend(1);
        assert!(!turn.allows(0));
    }

    #[test]
    fn a_higher_level_never_costs_less() {
        for coding in Coding::ALL {
            let costs: Vec<u64> = (0..=22).map(|n| instructions_per_byte(FilterKind::Encode(coding, n))).collect();
            assert!(costs.is_sorted() && costs[0] > 0, "{coding:?}: {costs:?}");
            // One step of a decoder is no more than a core may do.
            let step = instructions_per_byte(FilterKind::Decode(coding)) * FILTER_PIECE_BYTES as u64;
            assert!(step <= FILTER_TURN_INSTRUCTIONS, "{coding:?}");
        }
    }
}
