//! vmod str: texts counted, compared, cut and split. Parts of a text are not copied.

use super::{Arguments, functions};
use crate::evaluation::evaluator::Run;
use crate::host::Host;
use crate::plain_values::{Fault, Plain};

functions! {
    StrFunction {
        Count "count",
        StartsWith "startswith",
        EndsWith "endswith",
        Contains "contains",
        Take "take",
        Reverse "reverse",
        Split "split",
        TokenIntersect "token_intersect",
    }
}

pub fn call<'a, H: Host<'a>>(
    run: &Run<'a, '_, H>,
    function: StrFunction,
    given: &Arguments<'_, 'a>,
) -> Result<Plain<'a>, Fault> {
    let both = |holds: fn(&[u8], &[u8]) -> bool| match (given.text(0), given.text(1)) {
        (Some(text), Some(other)) => Plain::Bool(holds(text, other)),
        _ => Plain::Bool(false),
    };
    Ok(match function {
        StrFunction::Count => Plain::Int(given.text(0).map_or(-1, |text| text.len() as i64)),
        StrFunction::StartsWith => both(|text, start| text.starts_with(start)),
        StrFunction::EndsWith => both(|text, end| text.ends_with(end)),
        StrFunction::Contains => both(contains),
        StrFunction::Take => Plain::Text(given.text(0).map(|text| taken(text, given.int(1), given.int(2)))),
        StrFunction::Reverse => match given.text(0) {
            Some(text) => {
                let made = run.arena.zeroed(text.len())?;
                made.copy_from_slice(text);
                made.reverse();
                Plain::Text(Some(made))
            }
            None => Plain::Text(None),
        },
        StrFunction::Split => Plain::Text(token(given.bytes(0), given.int(1), given.bytes(2))),
        StrFunction::TokenIntersect => {
            let separators = if given.is_given(2) { given.bytes(2) } else { b" ," };
            Plain::Bool(share_token(given.bytes(0), given.bytes(1), separators))
        }
    })
}

fn contains(text: &[u8], wanted: &[u8]) -> bool {
    wanted.is_empty() || text.windows(wanted.len()).any(|window| window == wanted)
}

/// So many bytes from there on. A negative offset counts from the end; so does none with a negative count, and a
/// negative count takes what stands before. What lies outside the text is left away.
fn taken(text: &[u8], count: i64, offset: i64) -> &[u8] {
    let length = text.len() as i64;
    let from_end = offset < 0 || offset == 0 && count < 0;
    let anchor = if from_end { length.saturating_add(offset) } else { offset };
    let other = anchor.saturating_add(count);
    let within = |place: i64| place.clamp(0, length) as usize;
    &text[within(anchor.min(other))..within(anchor.max(other))]
}

fn tokens<'t>(text: &'t [u8], separators: &'t [u8]) -> impl DoubleEndedIterator<Item = &'t [u8]> {
    text.split(|byte| separators.contains(byte)).filter(|token| !token.is_empty())
}

/// The n-th token from the start, or from the end if it is negative.
fn token<'t>(text: &'t [u8], number: i64, separators: &'t [u8]) -> Option<&'t [u8]> {
    let index = usize::try_from(number.unsigned_abs()).ok()?.checked_sub(1)?;
    if separators.is_empty() {
        return None;
    }
    match number > 0 {
        true => tokens(text, separators).nth(index),
        false => tokens(text, separators).nth_back(index),
    }
}

fn share_token(left: &[u8], right: &[u8], separators: &[u8]) -> bool {
    let mut known: Vec<&[u8]> = tokens(right, separators).collect();
    known.sort_unstable();
    tokens(left, separators).any(|token| known.binary_search(&token).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_taken_from_both_ends() {
        let check = |count: i64, offset: i64, expect: &str| {
            assert_eq!(taken(b"haystack", count, offset).escape_ascii().to_string(), expect, "{count}, {offset}");
        };
        check(3, 0, "hay");
        check(3, 3, "sta");
        check(-3, 0, "ack");
        check(3, -4, "tac");
        check(-3, -4, "ays");
        check(-3, 2, "ha");
        check(3, -10, "h");
        check(9, 6, "ck");
        check(0, 3, "");
        check(3, 9, "");
        check(-3, -9, "");
        check(i64::MAX, i64::MAX, "");
        check(i64::MIN, i64::MIN, "");
        check(i64::MIN, 0, "haystack");
    }

    #[test]
    fn tokens_are_counted_from_both_ends() {
        let check = |text: &str, number: i64, separators: &str, expect: Option<&str>| {
            let given = token(text.as_bytes(), number, separators.as_bytes());
            assert_eq!(given, expect.map(str::as_bytes), "{text:?} {number}");
        };
        check("a b c", 2, " \t", Some("b"));
        check("a b c", -1, " \t", Some("c"));
        check(" a  b\t", -1, " \t", Some("b"));
        check("a b", 3, " ", None);
        check("a b", -3, " ", None);
        check("a b", 0, " ", None);
        check("a b", 1, "", None);
        check("", 1, " ", None);
        check("a", i64::MIN, " ", None);
    }
}
