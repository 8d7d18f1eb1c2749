//! How a query that somebody is typing may go on: fields, the operators that fit one, the words that it holds, `and` and `or`.
//!
//! It stands beside the parser (`query_text.rs`), whose words and operators it takes. It knows no shell: it gets what was typed of the
//! query alone, without the quotes around it.

use crate::events::event_fields::{EVENT_FIELDS, EventField};
use crate::events::query_text::{OPERATORS, Operator, Token, tokens};

/// A way to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryContinuation {
    /// What was typed, and what comes behind it.
    pub text: String,
    /// A sentence about it, or nothing.
    pub says: &'static str,
}

/// What stands next in a query.
enum NextWord {
    Field,
    Operator(&'static EventField),
    Value(&'static EventField),
    Joiner,
}

const JOINERS: [&str; 2] = ["and", "or"];

pub(super) fn continuations(typed: &str) -> Vec<QueryContinuation> {
    let (before, begun) = typed.split_at(begins_at(typed));
    // A text within quotes may be any.
    let Ok(tokens) = tokens(before) else { return Vec::new() };
    let found = match next_word(&tokens) {
        Some(NextWord::Field) => fields(begun),
        Some(NextWord::Operator(field)) if !begun.starts_with(char::is_alphanumeric) => operators(field, begun),
        Some(NextWord::Value(field)) => values(field, begun),
        Some(NextWord::Operator(_) | NextWord::Joiner) => joiners(begun),
        None => Vec::new(),
    };
    let is_apart = !begun.is_empty() || before.is_empty() || before.ends_with(|c: char| c.is_whitespace() || c == '(');
    let glue = if is_apart { "" } else { " " };
    let whole = |(text, says)| QueryContinuation { text: format!("{before}{glue}{text}"), says };
    found.into_iter().map(whole).collect()
}

/// Where the word or the operator begins that is being typed; at the end, if none is.
fn begins_at(typed: &str) -> usize {
    let of_operator = |c: char| OPERATORS.iter().any(|(written, _)| written.contains(c));
    let of_word = |c: char| c.is_alphanumeric() || "._-".contains(c);
    match typed.ends_with(of_operator) {
        true => typed.trim_end_matches(of_operator).len(),
        false => typed.trim_end_matches(of_word).len(),
    }
}

fn next_word(tokens: &[(usize, Token)]) -> Option<NextWord> {
    let named = |token: &Token| match token {
        Token::Word { text, quoted: false } => EventField::named(text),
        _ => None,
    };
    match tokens {
        [] | [.., (_, Token::Open | Token::And | Token::Or | Token::Not)] => Some(NextWord::Field),
        [.., (_, field), (_, Token::Operator(_))] => Some(NextWord::Value(named(field)?)),
        [.., (_, Token::Operator(_)), (_, Token::Word { .. })] | [.., (_, Token::Close)] => Some(NextWord::Joiner),
        [.., (_, field)] => Some(NextWord::Operator(named(field)?)),
    }
}

type Proposals = Vec<(String, &'static str)>;

/// A field that nothing competes with has its operators behind it: a shell that is told of one word takes it for the whole query.
fn fields(begun: &str) -> Proposals {
    let found: Vec<&EventField> = EVENT_FIELDS.iter().filter(|field| field.name.starts_with(begun)).collect();
    match found.as_slice() {
        [field] => {
            operators(field, "").into_iter().map(|(text, says)| (format!("{} {text}", field.name), says)).collect()
        }
        found => found.iter().map(|field| (field.name.to_owned(), field.says)).collect(),
    }
}

/// Those that the parser takes for the field; behind one that is there in full stand the values.
fn operators(field: &'static EventField, begun: &str) -> Proposals {
    let is_whole = OPERATORS.iter().any(|(written, _)| *written == begun);
    let valued = if is_whole { values(field, "") } else { Vec::new() };
    if !valued.is_empty() {
        return valued.into_iter().map(|(value, says)| (format!("{begun} {value}"), says)).collect();
    }
    let fits = |(written, operator): &&(&str, Operator)| {
        // `=` is another way to write `==`.
        *written != "=" && written.starts_with(begun) && operator.fits(field.kind)
    };
    OPERATORS.iter().filter(fits).map(|(written, _)| ((*written).to_owned(), "")).collect()
}

fn values(field: &'static EventField, begun: &str) -> Proposals {
    let found: Proposals = field
        .known_words()
        .into_iter()
        .filter(|(word, _)| word.starts_with(begun))
        .map(|(word, says)| (word.to_owned(), says))
        .collect();
    match found.as_slice() {
        // As above.
        [(word, says)] => {
            let further = JOINERS.iter().map(|joiner| (format!("{word} {joiner}"), ""));
            std::iter::once((word.clone(), *says)).chain(further).collect()
        }
        _ => found,
    }
}

fn joiners(begun: &str) -> Proposals {
    let found: Vec<&str> = JOINERS.into_iter().filter(|joiner| joiner.starts_with(begun)).collect();
    match found.as_slice() {
        [joiner] => EVENT_FIELDS.iter().map(|field| (format!("{joiner} {}", field.name), field.says)).collect(),
        found => found.iter().map(|joiner| ((*joiner).to_owned(), "")).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(typed: &str) -> Vec<String> {
        continuations(typed).into_iter().map(|found| found.text).collect()
    }

    #[track_caller]
    fn check(typed: &str, expect: &[&str]) {
        assert_eq!(texts(typed), expect, "{typed}");
    }

    #[test]
    fn fields_are_told_by_how_they_begin() {
        assert_eq!(texts("").len(), EVENT_FIELDS.len());
        check("tls", &["tls", "tls.sni", "tls.resumed"]);
        let behind = ["==", "!=", "!~", "<=", ">=", "<", ">", "~"];
        assert_eq!(texts("time.f"), behind.map(|operator| format!("time.first_byte {operator}")));
        assert_eq!(texts("(hos"), behind.map(|operator| format!("(host {operator}")));
        assert_eq!(texts("status >= 500 and tls.s").len(), behind.len());
        check("nothing", &[]);
        assert!(continuations("time.").iter().all(|found| found.says.len() > 10));
    }

    #[test]
    fn operators_are_those_that_fit() {
        check("client ", &["client ==", "client !=", "client !~", "client ~"]);
        check("client", &["client ==", "client !=", "client !~", "client ~"]);
        check("status >", &["status >=", "status >"]);
        check("class !", &["class !=", "class !~"]);
    }

    #[test]
    fn values_are_those_that_there_are() {
        check("class == mi", &["class == miss", "class == miss and", "class == miss or"]);
        check("class==mi", &["class==miss", "class==miss and", "class==miss or"]);
        check("(tls.resumed == ", &["(tls.resumed == yes", "(tls.resumed == no"]);
        check("tls.resumed ==", &["tls.resumed == yes", "tls.resumed == no"]);
        check(
            "status >= 500 and not protocol == 1",
            &["status >= 500 and not protocol == 1.0", "status >= 500 and not protocol == 1.1"],
        );
        assert!(texts("why == ").contains(&"why == no-store".to_owned()));
        check("status == ", &[]);
        check("user == \"a b", &[]);
    }

    #[test]
    fn conditions_are_joined() {
        check("class == hit ", &["class == hit and", "class == hit or"]);
        check("user == \"a b\"", &["user == \"a b\" and", "user == \"a b\" or"]);
        check("(user) ", &["(user) and", "(user) or"]);
        assert_eq!(texts("user a")[0], "user and client");
        check("\"user\" ", &[]);
    }

    #[test]
    fn what_is_told_can_be_parsed_as_far_as_it_goes() {
        for typed in ["", "class == ", "class == hit and why == ", "why != ", "forwarded == "] {
            for text in texts(typed) {
                assert!(crate::events::EventQuery::parse(&text).is_ok(), "{text}");
            }
        }
    }
}
