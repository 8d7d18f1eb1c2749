//! One regex, with the means to match it.
//!
//! By its shape if it is simple, else in linear time if that means the same (`pattern_translation`), else by PCRE2 under
//! the limits `PCRE_MATCHES_MAX` and `PCRE_DEPTH_MAX`. Past one the transaction fails and says so. (Varnish says *no
//! match* there, which lets through what a rule should have stopped.)

use std::sync::OnceLock;

use regex_automata::Input;
use regex_automata::meta::Regex as Linear;
use regex_automata::util::captures::Captures;
use regex_automata::util::syntax as linear_syntax;
use regex_syntax::hir::{Hir, HirKind, Look};

use super::pattern_shape::Shape;
use super::pattern_translation::translate;
use crate::limits::{PCRE_DEPTH_MAX, PCRE_MATCHES_MAX};
use crate::plain_values::Fault;

/// Groups that a substitution can name: the whole and nine.
pub const GROUPS_MAX: usize = 10;

/// Where the groups of a match lie.
pub type Groups = [Option<(usize, usize)>; GROUPS_MAX];

/// A regex. For people who debug it is what was written: what of it is made meanwhile says nothing of what it matches.
pub struct Pattern {
    written: Box<[u8]>,
    linear: Option<LinearPattern>,
    backtracking: OnceLock<Box<Backtracking>>,
}

#[derive(Debug)]
struct LinearPattern {
    shape: Option<Shape>,
    /// Made when it is first needed: what has a shape or is in a set seldom needs one. `None`: it would be too large.
    engine: OnceLock<Option<Linear>>,
    syntax: Hir,
    /// `$` is in it.
    looks_for_end: bool,
    /// A repeated part can match nothing.
    has_empty_loop: bool,
    /// Shorter texts do not match.
    bytes_min: usize,
}

/// The same for PCRE2, and once more in the variant that takes no empty match.
#[derive(Debug)]
struct Backtracking {
    any: pcre2::bytes::Regex,
    not_empty: pcre2::bytes::Regex,
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pattern").field(&String::from_utf8_lossy(&self.written)).finish()
    }
}

impl Pattern {
    /// A pattern from elsewhere than a program, as in a ban. The error is for people.
    pub fn checked(written: &[u8]) -> Result<Pattern, String> {
        match crate::regex_syntax::check(written) {
            Ok(()) => Ok(Pattern::new(written)),
            Err((why, _)) => Err(format!("`{}` is no regular expression: {why}", String::from_utf8_lossy(written))),
        }
    }

    /// The pattern has been checked; PCRE2 takes it.
    pub fn new(written: &[u8]) -> Pattern {
        Pattern { written: written.into(), linear: LinearPattern::new(written), backtracking: OnceLock::new() }
    }

    /// What a set can be made of: the pattern as the linear engine has it, and whether `$` is in it.
    pub fn for_set(&self) -> Option<(&Hir, bool)> {
        self.linear.as_ref().map(|linear| (&linear.syntax, linear.looks_for_end))
    }

    pub fn has_shape(&self) -> bool {
        self.linear.as_ref().is_some_and(|linear| linear.shape.is_some())
    }

    /// Shorter texts do not match; 0 where that is not known.
    pub fn bytes_min(&self) -> usize {
        self.linear.as_ref().map_or(0, |linear| linear.bytes_min)
    }

    #[inline]
    pub fn is_match(&self, text: &[u8]) -> Result<bool, Fault> {
        match &self.linear {
            Some(linear) if text.len() < linear.bytes_min => Ok(false),
            Some(linear) if !linear.looks_for_end || text.last() != Some(&b'\n') => {
                if let Some(shape) = &linear.shape {
                    return Ok(shape.is_match(text));
                }
                match linear.engine() {
                    Some(engine) => Ok(engine.is_match(text)),
                    None => self.is_match_backtracking(text),
                }
            }
            _ => self.is_match_backtracking(text),
        }
    }

    fn is_match_backtracking(&self, text: &[u8]) -> Result<bool, Fault> {
        self.backtracking()?.any.is_match(text).map_err(|error| self.fault(&error, text))
    }

    /// Makes the engine that will be asked, so that no request waits for it.
    pub fn prepare(&self) {
        if let Some(linear) = self.linear.as_ref().filter(|linear| linear.shape.is_none()) {
            linear.engine();
        }
    }

    /// The first match from there on. `^` is still the start of the text. Groups beside the whole match are found only if
    /// somebody wants them.
    pub fn find(
        &self,
        text: &[u8],
        from: usize,
        not_empty: bool,
        wants_groups: bool,
        groups: &mut Groups,
    ) -> Result<bool, Fault> {
        match &self.linear {
            Some(linear) if linear.may_find(text, not_empty) => match linear.find(text, from, wants_groups, groups) {
                Some(found) => Ok(found),
                None => self.find_backtracking(text, from, not_empty, groups),
            },
            _ => self.find_backtracking(text, from, not_empty, groups),
        }
    }

    fn find_backtracking(&self, text: &[u8], from: usize, not_empty: bool, groups: &mut Groups) -> Result<bool, Fault> {
        let backtracking = self.backtracking()?;
        let engine = if not_empty { &backtracking.not_empty } else { &backtracking.any };
        let mut locations = engine.capture_locations();
        let found = engine.captures_read_at(&mut locations, text, from).map_err(|error| self.fault(&error, text))?;
        // Without a match the library leaves the places as they happen to be.
        let count = if found.is_some() { locations.len() } else { 0 };
        for (index, group) in groups.iter_mut().enumerate() {
            *group = if index < count { locations.get(index) } else { None };
        }
        Ok(count > 0)
    }

    fn backtracking(&self) -> Result<&Backtracking, Fault> {
        if let Some(made) = self.backtracking.get() {
            return Ok(made);
        }
        let build = |verb: &str| {
            let limits = format!("(*LIMIT_MATCH={PCRE_MATCHES_MAX})(*LIMIT_DEPTH={PCRE_DEPTH_MAX}){verb}");
            let pattern = limits + &as_text(&self.written);
            pcre2::bytes::RegexBuilder::new().jit_if_available(true).build(&pattern)
        };
        let made = build("").and_then(|any| Ok(Backtracking { any, not_empty: build("(*NOTEMPTY)")? }));
        let made = made.map_err(|error| Fault::new(format!("the regex \"{}\": {error}", self.show())))?;
        Ok(self.backtracking.get_or_init(|| Box::new(made)))
    }

    #[cold]
    fn fault(&self, error: &pcre2::Error, text: &[u8]) -> Fault {
        Fault::new(format!(
            "the regex \"{}\" was given up on a text of {} bytes: {error} (PCRE_MATCHES_MAX {PCRE_MATCHES_MAX})",
            self.show(),
            text.len()
        ))
    }

    /// As it was written.
    pub fn show(&self) -> String {
        String::from_utf8_lossy(&self.written).into_owned()
    }
}

impl LinearPattern {
    fn new(written: &[u8]) -> Option<LinearPattern> {
        let syntax = linear_syntax::parse_with(&translate(written)?, &syntax_config()).ok()?;
        Some(LinearPattern {
            shape: Shape::of(&syntax),
            engine: OnceLock::new(),
            looks_for_end: syntax.properties().look_set().contains(Look::End),
            has_empty_loop: has_empty_loop(&syntax),
            bytes_min: syntax.properties().minimum_len().unwrap_or(0),
            syntax,
        })
    }

    #[inline]
    fn engine(&self) -> Option<&Linear> {
        let make = || {
            let config = Linear::config().utf8_empty(false);
            Linear::builder().configure(config).build_from_hir(&self.syntax).ok()
        };
        self.engine.get_or_init(make).as_ref()
    }

    /// Whether PCRE2 would find the same part of the text.
    fn may_find(&self, text: &[u8], not_empty: bool) -> bool {
        let can_be_empty = self.bytes_min == 0;
        let ends_oddly = self.looks_for_end && text.last() == Some(&b'\n');
        !(self.has_empty_loop || not_empty && can_be_empty || ends_oddly)
    }

    /// `None` without an engine.
    fn find(&self, text: &[u8], from: usize, wants_groups: bool, groups: &mut Groups) -> Option<bool> {
        if text.len() < from + self.bytes_min {
            return Some(false);
        }
        if let Some(found) = self.shape.as_ref().and_then(|shape| shape.find(text, from)) {
            *groups = Groups::default();
            groups[0] = found;
            return Some(found.is_some());
        }
        let engine = self.engine()?;
        let input = Input::new(text).range(from..);
        // Most searches find nothing, and most replacements name no group.
        let Some(whole) = engine.search(&input) else { return Some(false) };
        groups[0] = Some((whole.start(), whole.end()));
        if wants_groups {
            let mut found: Captures = engine.create_captures();
            engine.search_captures(&input, &mut found);
            for (index, group) in groups.iter_mut().enumerate() {
                *group = found.get_group(index).map(|span| (span.start, span.end));
            }
        }
        Some(true)
    }
}

/// Bytes, and ASCII alone.
pub fn syntax_config() -> linear_syntax::Config {
    linear_syntax::Config::new().unicode(false).utf8(false)
}

fn has_empty_loop(part: &Hir) -> bool {
    match part.kind() {
        HirKind::Repetition(repetition) => {
            let repeats = repetition.max != Some(1);
            repeats && repetition.sub.properties().minimum_len() == Some(0) || has_empty_loop(&repetition.sub)
        }
        HirKind::Capture(capture) => has_empty_loop(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_empty_loop),
        _ => false,
    }
}

/// PCRE2's front takes text; bytes that are none are written as escapes, also within `\Q…\E`.
fn as_text(pattern: &[u8]) -> String {
    if let Ok(text) = std::str::from_utf8(pattern) {
        return text.to_owned();
    }
    let (mut text, mut quoted, mut at) = (String::new(), false, 0);
    while at < pattern.len() {
        match &pattern[at..] {
            [b'\\', b'Q', ..] if !quoted => quoted = true,
            [b'\\', b'E', ..] => quoted = false,
            _ => {}
        }
        match pattern[at] {
            b'\\' if !quoted && at + 1 < pattern.len() && pattern[at + 1].is_ascii() => {
                text.push('\\');
                at += 1;
                text.push(char::from(pattern[at]));
            }
            byte if byte.is_ascii() => text.push(char::from(byte)),
            byte if quoted => text.push_str(&format!("\\E\\x{byte:02x}\\Q")),
            byte => text.push_str(&format!("\\x{byte:02x}")),
        }
        at += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is matched in a simpler manner is matched as PCRE2 would.
    fn check(pattern: &str, texts: &[&str]) {
        let ours = Pattern::new(pattern.as_bytes());
        let theirs = Pattern { linear: None, ..Pattern::new(pattern.as_bytes()) };
        for text in texts.iter().map(|text| text.as_bytes()) {
            let both = (ours.is_match(text), theirs.is_match(text));
            assert_eq!(both.0, both.1, "{pattern} {}", text.escape_ascii());
            for not_empty in [false, true] {
                for from in 0..=text.len() {
                    let (mut left, mut right) = (Groups::default(), Groups::default());
                    let found = ours.find(text, from, not_empty, true, &mut left);
                    assert_eq!(found, theirs.find(text, from, not_empty, true, &mut right), "{pattern} from {from}");
                    assert_eq!(left, right, "{pattern} {} from {from} {not_empty}", text.escape_ascii());
                    let mut whole = Groups::default();
                    assert_eq!(ours.find(text, from, not_empty, false, &mut whole), found);
                    assert_eq!(whole[0], left[0], "{pattern} {} from {from} {not_empty}", text.escape_ascii());
                }
            }
        }
    }

    #[test]
    fn every_engine_finds_the_same() {
        let texts = [
            "",
            "a",
            "b",
            "ab",
            "aab",
            "abab",
            "ABAB",
            "xaby",
            "GET",
            "get",
            "HEAD\n",
            "/a.jpg",
            "/a.jpg\n",
            "/a.JPG",
            "a\nb",
            "\u{e9}\u{e9}",
            "foo=bar; x=y",
            "_-[]&~",
            "\x0b\x0c",
            "a+b",
            "aaa",
            "Mozilla/5.0 (bot)",
            "10.0.0.1",
        ];
        let patterns = [
            "^(GET|HEAD)$",
            "\\.jpg$",
            "(?i)\\.(jpg|png)$",
            "^/",
            "[A-Z]",
            "(?i:get|head)",
            "a*",
            "(a|b)*",
            "(a*)*",
            "(|a)+",
            "(a|ab)(c|bcd)*",
            "a??",
            "^a|b$",
            "\u{e9}+",
            "[\u{e9}x]",
            "\\s",
            "\\bbar\\b",
            "(?:a|(b))+",
            "((a)|b)*",
            "x?",
            "^$",
            "^\\s*$",
            "^([a-z]+)$",
            "^[^.]{2,}$",
            "$",
            ".",
            ".+",
            "[^a]",
            "a$.",
            "(?i)[^a-c]",
            "[[:upper:]]+",
            "(?i)[[:upper:]]+",
            "foo=([^;]+)",
            "a|b|",
            "[a-c&_[~-]",
            "((?i)a|b)B",
            "\\Aa",
            "(a{1,2}){2}",
            "a{0}b",
            "(a?)?b",
            "\\W\\D\\S",
        ];
        patterns.iter().for_each(|pattern| check(pattern, &texts));
    }

    #[test]
    fn simple_patterns_have_a_shape() {
        let shaped =
            |pattern: &str, expect| assert_eq!(Pattern::new(pattern.as_bytes()).has_shape(), expect, "{pattern}");
        shaped("^/admin", true);
        shaped("(?i)\\.jpg$", true);
        shaped("^(GET|HEAD|POST)$", true);
        shaped("[A-Z]", true);
        shaped("^\\s*$", true);
        shaped("^a(?i:b)", false);
        shaped("a.*b", false);
        shaped("abc", false);
    }

    #[test]
    fn a_regex_that_explodes_is_given_up() {
        let bad = Pattern::new(b"^(?=(a+)+$)a");
        let why = bad.is_match(&b"a".repeat(40).into_iter().chain(*b"!").collect::<Vec<u8>>());
        assert!(why.expect_err("it explodes").reason().contains("PCRE_MATCHES_MAX"));
        assert_eq!(bad.is_match(b"aaa"), Ok(true));
        assert_eq!(Pattern::new(b"\xff\\Q\xfe.\\E(?=x)").is_match(b"\xff\xfe.x"), Ok(true));
    }
}
