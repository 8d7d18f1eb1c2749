//! What of a regex decides whether it matches at all: `a=[^;]+(; )?` does where `a=[^;]` does.
//!
//! What may follow a match and need not is left out, and what repeats at its end does so no more than it must. An automaton
//! of several such regexes is far smaller, because it need not remember which of them it is still in.

use regex_syntax::hir::{Hir, HirKind, Repetition};

/// The same answer, for less.
pub fn least(pattern: &Hir) -> Hir {
    match pattern.kind() {
        HirKind::Concat(parts) => {
            let mut parts = parts.as_slice();
            while let Some((_, before)) = parts.split_last().filter(|(last, _)| need_not_be(last)) {
                parts = before;
            }
            let Some((last, before)) = parts.split_last() else { return Hir::empty() };
            Hir::concat(before.iter().cloned().chain([least(last)]).collect())
        }
        HirKind::Alternation(branches) => Hir::alternation(branches.iter().map(least).collect()),
        HirKind::Capture(capture) => least(&capture.sub),
        HirKind::Repetition(_) if need_not_be(pattern) => Hir::empty(),
        HirKind::Repetition(repeated) => Hir::repetition(Repetition { max: Some(repeated.min), ..repeated.clone() }),
        _ => pattern.clone(),
    }
}

/// It can be nothing, wherever it stands.
fn need_not_be(part: &Hir) -> bool {
    part.properties().minimum_len() == Some(0) && part.properties().look_set().is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::pattern::syntax_config;
    use super::*;

    fn check(pattern: &str, expect: &str) {
        let parse = |text| regex_automata::util::syntax::parse_with(text, &syntax_config()).expect("it is one");
        assert_eq!(least(&parse(pattern)), parse(expect), "{pattern}");
    }

    #[test]
    fn what_follows_and_need_not_be_is_left_out() {
        check("a=[^;]+(; )?", "a=[^;]");
        check("(x|y+)z*", "x|y");
        check("a{2,4}", "a{2}");
        check("a*", "");
        check("(\\?.*)?$", "(\\?.*)?$");
        check("ab?$", "ab?$");
        check("a(b|c*)", "a");
        check("a(b|cd*)e?", "a(?:b|c)");
    }
}
