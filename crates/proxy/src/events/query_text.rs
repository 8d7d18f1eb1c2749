//! A query as people type it, read into a condition.
//!
//! ```text
//! query      = [ any ]
//! any        = all *( ( "or" / "||" ) all )
//! all        = one *( ( "and" / "&&" ) one )
//! one        = ( "not" / "!" ) one / "(" any ")" / FIELD [ OPERATOR VALUE ]
//! OPERATOR   = "==" / "=" / "!=" / "<" / "<=" / ">" / ">=" / "~" / "!~"
//! VALUE      = a word, or a text within " or '
//! ```

use std::cmp::Ordering::{self, Equal, Greater, Less};
use std::iter::Peekable;
use std::vec::IntoIter;

use vcl::{Pattern, nearest};

use crate::events::event_fields::{EVENT_FIELDS, EventField, FieldKind};
use crate::events::event_query::{Asks, Comparand, FieldTest, QueryCondition};
use crate::limits::{EVENT_QUERY_BYTES_MAX, EVENT_QUERY_DEPTH_MAX};

/// What is wrong with a query, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The character at which it begins, counted from 0.
    pub at: usize,
    pub why: String,
}

impl std::fmt::Display for QueryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at character {}: {}", self.at + 1, self.why)
    }
}

impl std::error::Error for QueryError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Order(&'static [Ordering]),
    Matches,
    Differs,
}

impl Operator {
    /// Can a field of this kind be compared so?
    pub(super) fn fits(self, kind: FieldKind) -> bool {
        !matches!((self, kind), (Operator::Order(_), FieldKind::Address))
    }
}

pub(super) const OPERATORS: [(&str, Operator); 9] = [
    ("==", Operator::Equal),
    ("!=", Operator::Unequal),
    ("!~", Operator::Differs),
    ("<=", Operator::Order(&[Less, Equal])),
    (">=", Operator::Order(&[Greater, Equal])),
    ("=", Operator::Equal),
    ("<", Operator::Order(&[Less])),
    (">", Operator::Order(&[Greater])),
    ("~", Operator::Matches),
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// `quoted`: it stood within quotes, and is no keyword.
    Word {
        text: String,
        quoted: bool,
    },
    Operator(Operator),
    Open,
    Close,
    And,
    Or,
    Not,
}

pub(super) fn parse(text: &str) -> Result<Option<QueryCondition>, QueryError> {
    // Places are found as bytes, and told as characters.
    read(text).map_err(|error| QueryError { at: text[..error.at].chars().count(), ..error })
}

fn read(text: &str) -> Result<Option<QueryCondition>, QueryError> {
    if text.len() > EVENT_QUERY_BYTES_MAX {
        return Err(QueryError { at: 0, why: format!("a query has at most {EVENT_QUERY_BYTES_MAX} bytes") });
    }
    let tokens = tokens(text)?;
    if tokens.is_empty() {
        return Ok(None);
    }
    let mut reader = QueryReader { tokens: tokens.into_iter().peekable(), end: text.len(), depth: 0 };
    let root = reader.any()?;
    match reader.tokens.next() {
        None => Ok(Some(root)),
        Some((at, Token::Close)) => Err(QueryError { at, why: "nothing is open that `)` closes".to_owned() }),
        Some((at, _)) => Err(QueryError { at, why: "write `and` or `or` between two conditions".to_owned() }),
    }
}

pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, QueryError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let begins_at = at;
        let follows_operator = matches!(tokens.last(), Some((_, Token::Operator(_))));
        let token = match first {
            _ if first.is_whitespace() => {
                at += first.len_utf8();
                continue;
            }
            '"' | '\'' => {
                let end = rest[1..]
                    .find(first)
                    .ok_or_else(|| QueryError { at, why: format!("the text that begins with {first} has no end") })?;
                at += end + 2;
                Token::Word { text: rest[1..=end].to_owned(), quoted: true }
            }
            '(' if !follows_operator => single(&mut at, 1, Token::Open),
            ')' => single(&mut at, 1, Token::Close),
            '&' if rest.starts_with("&&") => single(&mut at, 2, Token::And),
            '|' if rest.starts_with("||") => single(&mut at, 2, Token::Or),
            _ => match OPERATORS.iter().find(|(written, _)| !follows_operator && rest.starts_with(written)) {
                Some((written, operator)) => single(&mut at, written.len(), Token::Operator(*operator)),
                None if first == '!' && !follows_operator => single(&mut at, 1, Token::Not),
                None => {
                    let end = if follows_operator { value_bytes(rest) } else { name_bytes(rest) };
                    if end == 0 {
                        return Err(QueryError { at, why: format!("`{first}` does not belong here") });
                    }
                    at += end;
                    word(&rest[..end], follows_operator)
                }
            },
        };
        tokens.push((begins_at, token));
    }
    Ok(tokens)
}

fn single(at: &mut usize, bytes: usize, token: Token) -> Token {
    *at += bytes;
    token
}

/// How long the word is with which a text begins.
fn name_bytes(text: &str) -> usize {
    text.find(|c: char| c.is_whitespace() || "()!=<>~&|\"'".contains(c)).unwrap_or(text.len())
}

/// The same of a value, which may hold what is an operator elsewhere: it ends at a blank, or at a `)` that nothing in it opens.
fn value_bytes(text: &str) -> usize {
    let mut open = 0_usize;
    let ends = |c: char| match c {
        '(' => {
            open += 1;
            false
        }
        ')' if open == 0 => true,
        ')' => {
            open -= 1;
            false
        }
        c => c.is_whitespace(),
    };
    text.find(ends).unwrap_or(text.len())
}

fn word(text: &str, is_value: bool) -> Token {
    match text.to_ascii_lowercase().as_str() {
        "and" if !is_value => Token::And,
        "or" if !is_value => Token::Or,
        "not" if !is_value => Token::Not,
        _ => Token::Word { text: text.to_owned(), quoted: false },
    }
}

struct QueryReader {
    tokens: Peekable<IntoIter<(usize, Token)>>,
    end: usize,
    depth: usize,
}

impl QueryReader {
    fn any(&mut self) -> Result<QueryCondition, QueryError> {
        let mut any = vec![self.all()?];
        while self.tokens.next_if(|(_, token)| *token == Token::Or).is_some() {
            any.push(self.all()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { QueryCondition::Any(any) })
    }

    fn all(&mut self) -> Result<QueryCondition, QueryError> {
        let mut all = vec![self.one()?];
        while self.tokens.next_if(|(_, token)| *token == Token::And).is_some() {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { QueryCondition::All(all) })
    }

    fn one(&mut self) -> Result<QueryCondition, QueryError> {
        match self.tokens.next() {
            Some((at, Token::Not)) => {
                self.deeper(at)?;
                let one = self.one()?;
                self.depth -= 1;
                Ok(QueryCondition::Not(Box::new(one)))
            }
            Some((at, Token::Open)) => {
                self.deeper(at)?;
                let inner = self.any()?;
                self.depth -= 1;
                match self.tokens.next() {
                    Some((_, Token::Close)) => Ok(inner),
                    _ => Err(QueryError { at, why: "what `(` opens is not closed".to_owned() }),
                }
            }
            Some((at, Token::Word { text, quoted: false })) => self.test(at, &text),
            Some((at, _)) => {
                Err(QueryError { at, why: "a condition begins with a field, as in `status >= 500`".to_owned() })
            }
            None => Err(QueryError { at: self.end, why: "a condition is missing".to_owned() }),
        }
    }

    fn deeper(&mut self, at: usize) -> Result<(), QueryError> {
        self.depth += 1;
        match self.depth > EVENT_QUERY_DEPTH_MAX {
            true => Err(QueryError { at, why: format!("no more than {EVENT_QUERY_DEPTH_MAX} levels can be nested") }),
            false => Ok(()),
        }
    }

    fn test(&mut self, at: usize, name: &str) -> Result<QueryCondition, QueryError> {
        let field = EventField::named(name).ok_or_else(|| unknown(at, name))?;
        let Some((_, Token::Operator(operator))) =
            self.tokens.next_if(|(_, token)| matches!(token, Token::Operator(_)))
        else {
            return Ok(QueryCondition::Test(FieldTest { field, asks: Asks::IsThere }));
        };
        let Some((value_at, Token::Word { text, .. })) = self.tokens.next() else {
            return Err(QueryError { at: self.end, why: format!("what is {name} to be compared with?") });
        };
        let fails = |why: String| QueryError { at: value_at, why };
        let pattern = || Pattern::checked(text.as_bytes()).map_err(fails);
        let wanted = || wanted(field, &text).map_err(fails);
        let asks = match operator {
            Operator::Equal | Operator::Unequal => {
                let wanted = wanted()?;
                check_value(field, &text, &wanted).map_err(fails)?;
                Asks::Equals(wanted)
            }
            Operator::Order(_) if !operator.fits(field.kind) => {
                return Err(fails(format!("{name} is an address, which has no order: write == or !=")));
            }
            Operator::Order(orders) => Asks::Orders(orders, wanted()?),
            Operator::Matches | Operator::Differs => Asks::Matches(pattern()?),
        };
        let test = QueryCondition::Test(FieldTest { field, asks });
        Ok(match operator {
            Operator::Unequal | Operator::Differs => QueryCondition::Not(Box::new(test)),
            _ => test,
        })
    }
}

fn unknown(at: usize, name: &str) -> QueryError {
    let parts_match = |field: &&EventField| {
        let last = field.name.rsplit('.').next().unwrap_or_default();
        last == name || field.name.replace(['.', '_'], "") == name.replace(['.', '_', '-'], "")
    };
    let names = || EVENT_FIELDS.iter().map(|field| field.name);
    let meant = EVENT_FIELDS.iter().find(parts_match).map(|field| field.name).or_else(|| nearest(name, names()));
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
    };
    QueryError { at, why: format!("no field is called `{name}`; {hint}") }
}

/// What a field can never hold is nobody's question.
fn check_value(field: &EventField, text: &str, wanted: &Comparand) -> Result<(), String> {
    if let Comparand::Number(number) = wanted
        && !field.can_be(*number)
    {
        return Err(format!("{} is never {number}: a status has three digits, and many are met by >= 500", field.name));
    }
    let Some(words) = field.words().filter(|words| !words.contains(&text)) else { return Ok(()) };
    let hint = match nearest(text, words.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("it is one of {}", words.join(", ")),
    };
    Err(format!("{} is never `{text}`; {hint}", field.name))
}

fn wanted(field: &EventField, text: &str) -> Result<Comparand, String> {
    match field.kind {
        FieldKind::Text => Ok(Comparand::Text(text.as_bytes().into())),
        FieldKind::Number => text.parse().map(Comparand::Number).map_err(|_| {
            let class = text.strip_suffix("xx").and_then(|class| class.parse::<u64>().ok());
            match class.filter(|class| (1..10).contains(class)) {
                Some(class) => {
                    let name = field.name;
                    format!("{name} is a number: write {name} >= {class}00 and {name} < {}00", class + 1)
                }
                None => format!("{} is a number, `{text}` is none", field.name),
            }
        }),
        FieldKind::Micros => scaled(text, &MICROS_UNITS, false)
            .map(Comparand::Number)
            .ok_or_else(|| format!("{} is a time: write 250us, 20ms, 1.5s or 2m, not `{text}`", field.name)),
        FieldKind::Bytes => scaled(&text.to_ascii_lowercase(), &BYTES_UNITS, true)
            .map(Comparand::Number)
            .ok_or_else(|| format!("{} are bytes: write 512, 20K, 1.5M or 1G, not `{text}`", field.name)),
        FieldKind::Address => text
            .parse()
            .map(Comparand::Network)
            .map_err(|()| format!("{} is an address: write 192.0.2.7 or 10.0.0.0/8, not `{text}`", field.name)),
    }
}

/// As sizes are written everywhere.
const BYTES_UNITS: [(&str, u64); 9] = [
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("k", 1 << 10),
    ("m", 1 << 20),
    ("g", 1 << 30),
];

const MICROS_UNITS: [(&str, u64); 5] = [("us", 1), ("\u{b5}s", 1), ("ms", 1_000), ("s", 1_000_000), ("m", 60_000_000)];

/// A number, perhaps with a fraction, in a unit. The units stand from the longest to the shortest that ends alike.
fn scaled(text: &str, units: &[(&str, u64)], may_be_bare: bool) -> Option<u64> {
    let found = units.iter().find_map(|(unit, scale)| text.strip_suffix(unit).map(|number| (number, *scale)));
    let (number, scale) = match found {
        Some(found) => found,
        None if may_be_bare => (text, 1),
        None if text == "0" => return Some(0),
        None => return None,
    };
    let is_plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value: f64 = number.parse().ok().filter(|_| is_plain)?;
    Some((value * scale as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fails(query: &str, at: usize, says: &str) {
        let error = parse(query).expect_err(query);
        assert!(error.at == at && error.why.contains(says), "{query}: {error}");
    }

    #[test]
    fn mistakes_are_named_where_they_stand() {
        fails("colour == 500", 0, "no field is called `colour`; there are: client, user");
        fails("stauts == 500", 0, "no field is called `stauts`; did you mean `status`?");
        fails("orign == app", 0, "did you mean `origin`?");
        fails("first_byte > 1s", 0, "did you mean `time.first_byte`?");
        fails("timefirstbyte > 1s", 0, "did you mean `time.first_byte`?");
        fails("class == mis", 9, "class is never `mis`; did you mean `miss`?");
        fails("class != Hit", 9, "did you mean `hit`?");
        fails("class == cached", 9, "it is one of hit, file, memcached, stale");
        fails("origin.reused == true", 17, "it is one of yes, no");
        fails("protocol == HTTP/1.1", 12, "it is one of 1.0, 1.1, 2.0");
        fails("tls == 1.3", 7, "it is one of TLSv1.2, TLSv1.3");
        fails("status == 5xx", 10, "write status >= 500 and status < 600");
        fails("status == 50", 10, "status is never 50");
        fails("status == abc", 10, "status is a number");
        fails("time.whole > 5", 13, "write 250us, 20ms");
        fails("time.whole > 5h", 13, "write 250us, 20ms");
        fails("bytes > 1.x", 8, "write 512, 20K");
        fails("client == here", 10, "write 192.0.2.7");
        fails("client > 10.0.0.1", 9, "has no order");
        fails("url ~ \"(\"", 6, "no regular expression");
        fails("url ~ \"a", 6, "has no end");
        fails("status == 500 class == hit", 14, "write `and` or `or`");
        fails("(status == 500", 0, "is not closed");
        fails("status == 500)", 13, "nothing is open");
        fails("host == \"\u{e9}\" stauts", 12, "write `and` or `or`");
        fails("status ==", 9, "what is status to be compared with?");
        fails("status == 500 and", 17, "a condition is missing");
        fails("\"status\" == 500", 0, "begins with a field");
        fails("== 500", 0, "begins with a field");
        fails("& status", 0, "`&` does not belong here");
        fails(&"(".repeat(1_000), EVENT_QUERY_DEPTH_MAX, "levels can be nested");
        fails(&"not ".repeat(1_000), EVENT_QUERY_DEPTH_MAX * 4, "levels can be nested");
        fails(&"a".repeat(EVENT_QUERY_BYTES_MAX + 1), 0, "a query has at most");
    }

    #[test]
    fn quantities_have_units() {
        for (text, micros) in [("250us", 250), ("20ms", 20_000), ("1.5s", 1_500_000), ("2m", 120_000_000), ("0", 0)] {
            assert_eq!(scaled(text, &MICROS_UNITS, false), Some(micros), "{text}");
        }
        for text in ["", "s", "-1s", "1e9s", "NaNs", "infs", "1 s", "5"] {
            assert_eq!(scaled(text, &[("s", 1_000_000)], false), None, "{text}");
        }
    }

    #[test]
    fn a_value_ends_with_a_blank() {
        for query in [
            "url ~ ^/a=b&c!=d",
            "url == a(b",
            "(path ~ ^/(a|b)) or user",
            "path ~ ^/(a|b)$ ",
            "agent == \"a b\"",
            "(url == a)",
            "url=='x y'",
        ] {
            assert!(parse(query).is_ok(), "{query}: {:?}", parse(query));
        }
    }
}
