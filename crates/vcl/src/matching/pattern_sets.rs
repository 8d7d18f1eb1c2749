//! Regexes that are asked about the same text, matched in one pass over it.
//!
//! Lists of robots and of devices are chains of hundreds of regexes about one header. Which of them match is found in
//! one pass when the first is asked for, and kept for as long as the text is the same: a text that a host has handed
//! out never changes, so the same address and length are the same text.

use std::cell::{Cell, RefCell};

use regex_automata::meta::Regex as Linear;
use regex_automata::{Input, PatternSet};
use regex_syntax::hir::Hir;

use super::least_match::least;
use super::whole_automaton::WholeAutomaton;
use crate::limits::SET_CACHE_BYTES_MAX;
use crate::plain_values::Fault;
use crate::scope_arena::Arena;

/// From so many regexes on a pass over all of them is cheaper than one after another.
pub const SET_PATTERNS_MIN: usize = 4;

/// From so many on also those are taken in that are simple enough to be compared without an engine.
pub const SET_SHAPED_PATTERNS_MIN: usize = 16;

/// Several regexes.
#[derive(Debug)]
pub struct PatternsSet {
    engine: SetEngine,
    patterns_count: usize,
    looks_for_end: bool,
    /// Shorter texts match none of them.
    bytes_min: usize,
}

#[derive(Debug)]
enum SetEngine {
    Whole(Box<WholeAutomaton>),
    Lazy(Linear),
}

/// Which of a set's regexes match a text: a bit for each.
#[derive(Clone, Copy, Debug)]
pub struct MatchedSet<'a>(&'a [u64]);

impl MatchedSet<'_> {
    #[inline]
    pub fn has(self, number: u32) -> bool {
        self.0.get(number as usize / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
    }
}

/// What is known of the last text that the set was asked about.
#[derive(Debug)]
pub struct LastPass<'a> {
    text: Cell<Option<&'a [u8]>>,
    /// A bit for each regex.
    matched: Cell<&'a [u64]>,
}

impl Default for LastPass<'_> {
    fn default() -> Self {
        LastPass { text: Cell::new(None), matched: Cell::new(&[]) }
    }
}

thread_local! {
    /// What a pass writes to. One for a thread, made as large as the largest set.
    static SCRATCH: RefCell<PatternSet> = RefCell::new(PatternSet::new(0));
}

impl PatternsSet {
    /// `None` when they are too much for one engine: then they are matched one by one.
    pub fn new(patterns: &[&Hir], looks_for_end: bool, wholes_left: &Cell<u32>) -> Option<PatternsSet> {
        let least: Vec<Hir> = patterns.iter().map(|pattern| least(pattern)).collect();
        let engine = whole(&least, wholes_left).or_else(|| lazy(&least))?;
        Some(PatternsSet::of(engine, &least, looks_for_end))
    }

    /// The same, if one pass costs little enough for texts that change from one regex to the next.
    pub fn whole(patterns: &[&Hir], looks_for_end: bool, wholes_left: &Cell<u32>) -> Option<PatternsSet> {
        let least: Vec<Hir> = patterns.iter().map(|pattern| least(pattern)).collect();
        Some(PatternsSet::of(whole(&least, wholes_left)?, &least, looks_for_end))
    }

    fn of(engine: SetEngine, patterns: &[Hir], looks_for_end: bool) -> PatternsSet {
        let bytes_min = patterns.iter().map(|syntax| syntax.properties().minimum_len().unwrap_or(0)).min();
        PatternsSet { engine, patterns_count: patterns.len(), looks_for_end, bytes_min: bytes_min.unwrap_or(0) }
    }

    /// Which regexes match; `None` when the text must be asked about otherwise.
    #[inline]
    pub fn matched<'a>(
        &self,
        text: &'a [u8],
        last: &LastPass<'a>,
        arena: &'a Arena,
    ) -> Result<Option<MatchedSet<'a>>, Fault> {
        if text.len() < self.bytes_min {
            return Ok(Some(MatchedSet(&[])));
        }
        if !last.text.get().is_some_and(|known| std::ptr::eq(known, text)) {
            if self.looks_for_end && text.last() == Some(&b'\n') {
                return Ok(None);
            }
            last.matched.set(self.pass(text, arena)?);
            last.text.set(Some(text));
        }
        Ok(Some(MatchedSet(last.matched.get())))
    }

    /// The same for a text of which nobody asks again.
    pub fn matched_once<'a>(&self, text: &[u8], arena: &'a Arena) -> Result<Option<MatchedSet<'a>>, Fault> {
        if text.len() < self.bytes_min {
            return Ok(Some(MatchedSet(&[])));
        }
        if self.looks_for_end && text.last() == Some(&b'\n') {
            return Ok(None);
        }
        Ok(Some(MatchedSet(self.pass(text, arena)?)))
    }

    fn pass<'a>(&self, text: &[u8], arena: &'a Arena) -> Result<&'a [u64], Fault> {
        let words_count = self.patterns_count.div_ceil(64);
        let mut words: &mut [u64] = &mut [];
        let mut note = |number: usize| {
            if words.is_empty() {
                words = arena.filled(words_count, |_| 0u64)?;
            }
            words[number / 64] |= 1 << (number % 64);
            Ok(())
        };
        match &self.engine {
            SetEngine::Whole(automaton) => automaton.matched(text, note)?,
            SetEngine::Lazy(engine) => SCRATCH.with_borrow_mut(|scratch| {
                if scratch.capacity() < self.patterns_count {
                    *scratch = PatternSet::new(self.patterns_count);
                }
                scratch.clear();
                engine.which_overlapping_matches(&Input::new(text), scratch);
                scratch.iter().try_for_each(|id| note(id.as_usize()))
            })?,
        }
        Ok(words)
    }
}

/// An automaton that lies ready. It takes its time to make, so a program has few of them.
fn whole(patterns: &[Hir], wholes_left: &Cell<u32>) -> Option<SetEngine> {
    wholes_left.set(wholes_left.get().checked_sub(1)?);
    WholeAutomaton::new(patterns).map(|whole| SetEngine::Whole(Box::new(whole)))
}

/// An engine that makes its automaton as texts need it, for each thread.
fn lazy(patterns: &[Hir]) -> Option<SetEngine> {
    let config = Linear::config()
        .utf8_empty(false)
        // Of no use where all that match are wanted.
        .auto_prefilter(false)
        .hybrid_cache_capacity(SET_CACHE_BYTES_MAX)
        .which_captures(regex_automata::nfa::thompson::WhichCaptures::None)
        .match_kind(regex_automata::MatchKind::All);
    Linear::builder().configure(config).build_many_from_hir(patterns).ok().map(SetEngine::Lazy)
}

#[cfg(test)]
mod tests {
    use super::super::pattern::Pattern;
    use super::*;

    #[test]
    fn a_set_says_of_each_what_each_says_of_itself() {
        let written = ["bot", "(?i)CRAWL", "^Mozilla", "\\.$", "[0-9]{3}", "^$", "a|b|", "spider.*x", "é"];
        let patterns: Vec<Pattern> = written.iter().map(|text| Pattern::new(text.as_bytes())).collect();
        let syntaxes: Vec<&Hir> = patterns.iter().filter_map(|pattern| Some(pattern.for_set()?.0)).collect();
        assert_eq!(syntaxes.len(), written.len());
        let wholes_left = Cell::new(1);
        let set = PatternsSet::new(&syntaxes, true, &wholes_left).expect("they are few");
        let lazy = PatternsSet::new(&syntaxes, true, &wholes_left).expect("they are few");
        assert!(matches!((&set.engine, &lazy.engine), (SetEngine::Whole(_), SetEngine::Lazy(_))));
        assert!(PatternsSet::whole(&syntaxes, true, &wholes_left).is_none());
        let arena = Arena::default();
        let (last, last_of_lazy) = (LastPass::default(), LastPass::default());
        for text in ["", "Mozilla/5.0 robot crawler.", "a spider 123 x\u{e9}", "bot 99", "CRAWL\n"] {
            for (number, pattern) in patterns.iter().enumerate() {
                let alone = pattern.is_match(text.as_bytes()).expect("nothing explodes");
                let together = set.matched(text.as_bytes(), &last, &arena).expect("there is room");
                let expect = if text.ends_with('\n') { None } else { Some(alone) };
                let by_lazy = lazy.matched(text.as_bytes(), &last_of_lazy, &arena).expect("there is room");
                let once = set.matched_once(text.as_bytes(), &arena).expect("there is room");
                for matched in [together, by_lazy, once] {
                    let has = matched.map(|matched| matched.has(number as u32));
                    assert_eq!(has, expect, "{} {text}", written[number]);
                }
            }
        }
    }
}
