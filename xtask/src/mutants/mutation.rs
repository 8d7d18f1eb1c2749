//! Where a file can be broken, and how: one small change of its code each, such as somebody might make by mistake. It
//! reads text as `cargo fmt` leaves it, where an operator stands between spaces and a bracket of generics does not, and
//! knows no types: what does not build is found by building it.
//!
//! Left alone are tests, attributes, imports and assertions: a weaker assertion is noticed by nobody, and need not be.

use std::collections::HashMap;

use super::functions::{self, Function};
use crate::source;

/// One change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutation {
    /// From 1, for people.
    pub line_number: usize,
    /// The function it stands in; empty outside of any.
    pub within: String,
    /// The line as it is, and what becomes of it, without indentation. With `within` this finds it again when lines
    /// above come and go.
    pub line: String,
    pub becomes: String,
    /// Of those in one function whose words are alike, from 1.
    pub which: usize,
    start: usize,
    end: usize,
    replacement: String,
}

impl Mutation {
    pub fn applied(&self, text: &str) -> String {
        [&text[..self.start], &self.replacement, &text[self.end..]].concat()
    }
}

const OPERATORS: [(&str, &str); 18] = [
    (" == ", " != "),
    (" != ", " == "),
    (" < ", " <= "),
    (" <= ", " < "),
    (" > ", " >= "),
    (" >= ", " > "),
    (" && ", " || "),
    (" || ", " && "),
    (" + ", " - "),
    (" - ", " + "),
    (" * ", " / "),
    (" / ", " * "),
    (" % ", " / "),
    (" += ", " -= "),
    (" -= ", " += "),
    (" << ", " >> "),
    (" |= ", " = "),
    ("..=", ".."),
];

const CALLS: [(&str, &str); 14] = [
    (".is_some()", ".is_none()"),
    (".is_none()", ".is_some()"),
    (".is_ok()", ".is_err()"),
    (".is_err()", ".is_ok()"),
    (".is_some_and(", ".is_none_or("),
    (".is_none_or(", ".is_some_and("),
    (".any(", ".all("),
    (".all(", ".any("),
    (".min(", ".max("),
    (".max(", ".min("),
    (".first()", ".last()"),
    (".last()", ".first()"),
    (".starts_with(", ".ends_with("),
    (".ends_with(", ".starts_with("),
];

/// A line that begins so is no statement whose loss would build.
const NOT_REMOVED: [&str; 14] = [
    "let ", "return", "use ", "pub", "const ", "static ", "type ", "mod ", "break", "struct ", "fn ", "impl", "if ",
    "for ",
];

/// All changes of a file, in the order in which they stand in it.
pub fn all(text: &str) -> Vec<Mutation> {
    let code = blank_what_is_left_alone(source::code_of(text));
    let functions = functions::of(&code);
    let mut found = Places { text, code: &code, functions: &functions, mutations: Vec::new() };
    found.swaps(&OPERATORS);
    found.swaps(&CALLS);
    found.negations();
    found.words();
    found.guards();
    found.options();
    found.statements();
    found.bodies();
    let mut mutations = found.mutations;
    mutations.sort_by(|a, b| (a.start, a.end, &a.becomes).cmp(&(b.start, b.end, &b.becomes)));
    let mut seen: HashMap<(String, String, String), usize> = HashMap::new();
    for mutation in &mut mutations {
        let words = (mutation.within.clone(), mutation.line.clone(), mutation.becomes.clone());
        let count = seen.entry(words).or_default();
        *count += 1;
        mutation.which = *count;
    }
    mutations
}

struct Places<'a> {
    text: &'a str,
    code: &'a str,
    functions: &'a [Function],
    mutations: Vec<Mutation>,
}

impl Places<'_> {
    fn push(&mut self, start: usize, end: usize, replacement: impl Into<String>) {
        let replacement = replacement.into();
        let line_start = self.text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line_end = self.text[end..].find('\n').map_or(self.text.len(), |at| end + at);
        let becomes = [&self.text[line_start..start], &replacement, &self.text[end..line_end]].concat();
        self.mutations.push(Mutation {
            line_number: self.text[..start].matches('\n').count() + 1,
            within: functions::innermost(self.functions, start).map_or(String::new(), |f| f.name.clone()),
            line: self.text[line_start..line_end].trim().to_string(),
            becomes: becomes.trim().to_string(),
            which: 1,
            start,
            end,
            replacement,
        });
    }

    fn swaps(&mut self, pairs: &[(&str, &str)]) {
        for (is, becomes) in pairs {
            for (at, _) in self.code.match_indices(is) {
                self.push(at, at + is.len(), *becomes);
            }
        }
    }

    /// `!` before what it negates, which a macro's name, an attribute and `!=` are not.
    fn negations(&mut self) {
        for (at, _) in self.code.match_indices('!') {
            let follows = self.code[at + 1..].chars().next().is_some_and(|c| is_of_word(c) || c == '(');
            if follows && !self.code[..at].ends_with(|c: char| is_of_word(c) || c == '#') {
                self.push(at, at + 1, "");
            }
        }
    }

    /// `true`, `false`, and numbers, which become one more.
    fn words(&mut self) {
        for (at, word) in words(self.code) {
            match word {
                "true" => self.push(at, at + word.len(), "false"),
                "false" => self.push(at, at + word.len(), "true"),
                _ => {
                    let of_tuple_or_fraction = self.code[..at].ends_with('.') && !self.code[..at].ends_with("..");
                    if let (false, Some(more)) = (of_tuple_or_fraction, one_more(word)) {
                        self.push(at, at + word.len(), more);
                    }
                }
            }
        }
    }

    /// What stands between `if` and `=>` in one line.
    fn guards(&mut self) {
        let mut line_start = 0;
        for line in self.code.split_inclusive('\n') {
            let guard = line.find(" if ").map(|at| at + 4).zip(line.find(" =>")).filter(|(start, end)| start < end);
            if let Some((start, end)) = guard {
                self.push(line_start + start, line_start + end, "true");
                self.push(line_start + start, line_start + end, "false");
            }
            line_start += line.len();
        }
    }

    /// `Some(…)` where it is what an arm or a function comes to, and no pattern.
    fn options(&mut self) {
        for (at, _) in self.code.match_indices("Some(") {
            let before = self.code[..at].trim_end();
            let is_value = ["=>", "return", "{", ";", "}"].iter().any(|end| before.ends_with(end));
            let Some(end) = functions::closing(self.code, at + 4) else { continue };
            let after = self.code[end..].trim_start();
            if is_value && after.starts_with([',', ';', '}']) {
                self.push(at, end, "None");
            }
        }
    }

    /// A statement of one line is left out, and so is an early return.
    fn statements(&mut self) {
        let (mut line_start, mut before) = (0, "{");
        for line in self.code.split_inclusive('\n') {
            let statement = line.trim();
            let start = line_start + line.len() - line.trim_start().len();
            line_start += line.len();
            if statement.is_empty() {
                continue;
            }
            let begins = before.ends_with(['{', '}', ';']);
            before = statement;
            let is_early = statement.starts_with("return") && statement.ends_with(';');
            let is_act = statement.starts_with(|c: char| c.is_lowercase() || c == '*')
                && (statement.ends_with(");") || statement.contains(" = ") && statement.ends_with(';'))
                && !NOT_REMOVED.iter().any(|word| statement.starts_with(word));
            if begins && (is_early || is_act) && is_balanced(statement) {
                self.push(start, start + statement.len(), "");
            }
        }
    }

    /// A function that does nothing, or says the same whatever it is asked.
    fn bodies(&mut self) {
        for function in self.functions {
            let values: &[&str] = match function.returns.as_str() {
                "" => &["return;"],
                "bool" => &["return true;", "return false;"],
                "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => &["return 0;", "return 1;"],
                "fmt::Result" | "Result<(), fmt::Error>" => &[],
                returns if returns.starts_with("Option<") => &["return None;"],
                returns if returns.starts_with("Vec<") => &["return Vec::new();"],
                returns if returns.contains("Result<()") => &["return Ok(());"],
                _ => &[],
            };
            for value in values {
                self.push(function.body, function.body, format!(" {value}"));
            }
        }
    }
}

fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn words(code: &str) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(start) = code[at..].find(is_of_word).map(|offset| at + offset) {
        let end = code[start..].find(|c| !is_of_word(c)).map_or(code.len(), |offset| start + offset);
        words.push((start, &code[start..end]));
        at = end;
    }
    words
}

/// Of a number in decimal digits, with its type if it has one.
fn one_more(word: &str) -> Option<String> {
    let digits = word.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(word.len());
    let (number, of_type) = word.split_at(digits);
    if !(of_type.is_empty() || of_type.starts_with(['u', 'i'])) {
        return None;
    }
    let number: u128 = number.replace('_', "").parse().ok()?;
    Some(format!("{}{of_type}", number + 1))
}

fn is_balanced(line: &str) -> bool {
    [('(', ')'), ('{', '}'), ('[', ']')]
        .iter()
        .all(|&(open, close)| line.matches(open).count() == line.matches(close).count())
}

/// Tests, attributes, imports and assertions become spaces.
fn blank_what_is_left_alone(code: String) -> String {
    let mut ranges = Vec::new();
    for (at, _) in code.match_indices("#[cfg(test)]") {
        ranges.push((at, functions::end_of_item(&code, at + "#[cfg(test)]".len())));
    }
    for (at, _) in code.match_indices("#[").chain(code.match_indices("#![")) {
        let open = at + code[at..].find('[').unwrap_or(0);
        ranges.extend(functions::closing(&code, open).map(|end| (at, end)));
    }
    for name in ["assert!", "assert_eq!", "assert_ne!"] {
        for (at, _) in code.match_indices(name) {
            ranges.extend(functions::closing(&code, at + name.len()).map(|end| (at, end)));
        }
    }
    let mut line_start = 0;
    for line in code.split_inclusive('\n') {
        let trimmed = line.trim_start();
        if ["use ", "pub use ", "pub(crate) use "].iter().any(|import| trimmed.starts_with(import)) {
            ranges.push((line_start, line_start + line.len()));
        }
        line_start += line.len();
    }
    let mut bytes = code.into_bytes();
    for (start, end) in ranges {
        bytes[start..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of the text, with the function it stands in.
    fn check(text: &str, expect: &[&str]) {
        let mutations = all(text);
        let found: Vec<&str> = mutations.iter().map(|mutation| mutation.becomes.as_str()).collect();
        assert_eq!(found, expect, "{text}");
        assert!(mutations.iter().all(|mutation| mutation.applied(text).contains(&mutation.becomes)));
    }

    #[test]
    fn operators_and_calls_are_turned_round() {
        check("let a = b < c && d;", &["let a = b <= c && d;", "let a = b < c || d;"]);
        check("let a: Vec<u8> = b.iter().any(f);", &["let a: Vec<u8> = b.iter().all(f);"]);
        check(
            "let a = !b.is_some() != c!(d);",
            &["let a = b.is_some() != c!(d);", "let a = !b.is_none() != c!(d);", "let a = !b.is_some() == c!(d);"],
        );
    }

    #[test]
    fn words_and_numbers_are_others() {
        check(
            "let a = (true, b.0, 0x1f, 9u8);",
            &["let a = (false, b.0, 0x1f, 9u8);", "let a = (true, b.0, 0x1f, 10u8);"],
        );
        check("let a = &b[1..];", &["let a = &b[2..];"]);
    }

    #[test]
    fn guards_options_and_statements_go() {
        check("A if b.c() => Some(d),", &["A if false => Some(d),", "A if true => Some(d),", "A if b.c() => None,"]);
        check("Some(a) => b,", &[]);
        check("{\n    self.a(b);\n    return c;\n    a\n        .b(c);\n}", &["", ""]);
    }

    #[test]
    fn a_function_says_nothing_or_always_the_same() {
        check(
            "fn a(b: u8) -> bool {\n    c(b)\n}",
            &["fn a(b: u8) -> bool { return false;", "fn a(b: u8) -> bool { return true;"],
        );
        check("fn a<B>(b: B)\nwhere\n    B: C,\n{\n}", &["{ return;"]);
        assert_eq!(all("fn a() -> bool {\n    fn b() -> C { d == e }\n}")[2].within, "b");
    }

    #[test]
    fn tests_assertions_and_imports_are_left_alone() {
        check("use a::{b1, 2};\n#[a(1)]\nassert!(a < b);\n// a < b\n", &[]);
        check("#[cfg(test)]\nmod a;\nlet a = 1;", &["let a = 2;"]);
        check("#[cfg(test)]\nmod a {\n    fn b() { c < d }\n}\nlet a = 1;", &["let a = 2;"]);
    }
}
