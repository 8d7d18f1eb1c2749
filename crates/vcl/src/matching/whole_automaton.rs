//! A few regexes as one automaton that is made whole when the program is loaded: a byte of the text is one step in a
//! table, where an automaton that is made as it is needed looks at each step whether it is there.
//!
//! Tables grow faster than the regexes of which they are made, so this is for a few of them, under limits.

use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{NFA, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::{Input, MatchKind};
use regex_syntax::hir::Hir;

use crate::limits::{WHOLE_AUTOMATON_BYTES_MAX, WHOLE_AUTOMATON_PARTS_MAX};

#[derive(Debug)]
pub struct WholeAutomaton {
    automaton: dense::DFA<Vec<u32>>,
    /// Where it stands before the first byte of a text.
    start: StateID,
}

impl WholeAutomaton {
    /// `None` when they are too much.
    pub fn new(patterns: &[Hir]) -> Option<WholeAutomaton> {
        let config = NFA::config().utf8(false).which_captures(WhichCaptures::None);
        let parts = NFA::compiler().configure(config).build_many_from_hir(patterns).ok()?;
        if parts.states().len() > WHOLE_AUTOMATON_PARTS_MAX {
            return None;
        }
        let config = dense::Config::new()
            .match_kind(MatchKind::All)
            .start_kind(StartKind::Unanchored)
            .accelerate(false)
            .dfa_size_limit(Some(WHOLE_AUTOMATON_BYTES_MAX))
            .determinize_size_limit(Some(WHOLE_AUTOMATON_BYTES_MAX));
        let automaton = dense::Builder::new().configure(config).build_from_nfa(&parts).ok()?;
        let start = automaton.start_state_forward(&Input::new(b"")).ok()?;
        Some(WholeAutomaton { automaton, start })
    }

    /// Tells the number of each regex that matches somewhere, of some more than once.
    #[inline]
    pub fn matched<E>(&self, text: &[u8], mut found: impl FnMut(usize) -> Result<(), E>) -> Result<(), E> {
        let WholeAutomaton { automaton, start } = self;
        let mut note = |state| {
            (0..automaton.match_len(state)).try_for_each(|at| found(automaton.match_pattern(state, at).as_usize()))
        };
        let mut state = *start;
        for byte in text {
            state = automaton.next_state(state, *byte);
            if automaton.is_special_state(state) {
                if automaton.is_match_state(state) {
                    note(state)?;
                } else if automaton.is_dead_state(state) {
                    return Ok(());
                }
            }
        }
        state = automaton.next_eoi_state(state);
        if automaton.is_match_state(state) { note(state) } else { Ok(()) }
    }
}
