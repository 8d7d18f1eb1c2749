//! The grammar of HAProxy's configuration file: lines of words beneath sections, and what a section takes from the `defaults`
//! before it. It knows no keyword but those that open a section.

use std::collections::BTreeSet;
use std::path::Path;

use crate::bounded_file;
use crate::import::nginx_conf::{Directive, Place};

const FILE_BYTES_MAX: u64 = 4 << 20;
/// What holds more lines is no configuration.
const LINES_MAX: usize = 100_000;

/// Lines that open a section which says what is served, or how.
const SECTIONS: [&str; 5] = ["global", "defaults", "frontend", "backend", "listen"];
/// Those of other things; what stands beneath is theirs.
const OTHER_SECTIONS: [&str; 13] = [
    "userlist",
    "cache",
    "peers",
    "resolvers",
    "mailers",
    "program",
    "http-errors",
    "ring",
    "log-forward",
    "fcgi-app",
    "crt-store",
    "acme",
    "traces",
];

/// A section with its lines; those of its `defaults` come first.
#[derive(Clone, Debug)]
pub struct HaproxySection {
    pub kind: String,
    pub name: String,
    pub head: Directive,
    pub lines: Vec<Directive>,
}

/// The sections of a file, without its `defaults`.
pub fn read(path: &Path) -> Result<Vec<HaproxySection>, String> {
    let bytes = bounded_file::read(path, FILE_BYTES_MAX).map_err(|why| format!("{}: {why}", path.display()))?;
    sections(&String::from_utf8_lossy(&bytes), path)
}

/// Does this text look like a configuration of HAProxy?
pub fn is_haproxy(text: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        let is_opened = matches!(words.next(), Some("frontend" | "listen" | "backend"));
        // VCL has backends with a brace behind their names, and nginx has none of these words.
        is_opened && words.next().is_some_and(|name| !name.starts_with(['{', '#', '='])) && !line.contains(['{', ';'])
    })
}

fn sections(text: &str, path: &Path) -> Result<Vec<HaproxySection>, String> {
    let mut found: Vec<HaproxySection> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if at >= LINES_MAX {
            return Err(format!("{}: more than {LINES_MAX} lines", path.display()));
        }
        let wrong = |why: &str| format!("{}:{}: {why}", path.display(), at + 1);
        let mut words = words(line).map_err(wrong)?.into_iter();
        let Some(name) = words.next() else { continue };
        if name.starts_with('.') {
            return Err(wrong("lines that hold under a condition (.if) are not read: write the file that holds"));
        }
        let place = Place { file: path.to_owned(), line: at + 1 };
        let line = Directive { name, arguments: words.collect(), block: None, place };
        if SECTIONS.contains(&line.name.as_str()) || OTHER_SECTIONS.contains(&line.name.as_str()) {
            let inherited = inherited(&line, &found);
            let (kind, name) = (line.name.clone(), line.argument(0).to_owned());
            found.push(HaproxySection { kind, name, head: line, lines: inherited });
        } else {
            let section = found.last_mut().ok_or_else(|| wrong("this line stands in no section"))?;
            section.lines.push(line);
        }
    }
    found.retain(|section| section.kind != "defaults");
    Ok(found)
}

/// The lines of the `defaults` that hold for a section: the one that it names, else the last before it.
fn inherited(head: &Directive, known: &[HaproxySection]) -> Vec<Directive> {
    let from = head.arguments.iter().position(|word| word == "from").and_then(|at| head.arguments.get(at + 1));
    if head.name == "global"
        || OTHER_SECTIONS.contains(&head.name.as_str())
        || head.name == "defaults" && from.is_none()
    {
        return Vec::new();
    }
    let is_it = |section: &&HaproxySection| section.kind == "defaults" && from.is_none_or(|from| section.name == *from);
    known.iter().rev().find(is_it).map(|section| with_own_tests(&section.lines)).unwrap_or_default()
}

/// What stands behind the names of tests that a `defaults` has.
const OF_DEFAULTS: &str = " of defaults";

/// The tests that a `defaults` names are for its own rules: those of the same name in whoever takes its lines are others.
fn with_own_tests(lines: &[Directive]) -> Vec<Directive> {
    let is_test = |line: &&Directive| line.name == "acl";
    let named: BTreeSet<String> = lines.iter().filter(is_test).map(|line| line.argument(0).to_owned()).collect();
    let mut lines = lines.to_vec();
    for line in &mut lines {
        if line.name == "acl" {
            line.arguments.iter_mut().take(1).for_each(|name| name.push_str(OF_DEFAULTS));
            continue;
        }
        let condition = line.arguments.iter_mut().skip_while(|word| !matches!(word.as_str(), "if" | "unless"));
        let mut is_in_braces = false;
        for word in condition {
            is_in_braces = (is_in_braces || word.ends_with('{')) && word != "}";
            if !is_in_braces && named.contains(word.trim_start_matches('!')) {
                word.push_str(OF_DEFAULTS);
            }
        }
    }
    lines
}

/// The words of a line: blanks divide, quotes and backslashes keep them together.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let (mut words, mut word, mut is_word) = (Vec::new(), String::new(), false);
    let mut letters = line.chars();
    let mut quote = None;
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\'', Some('\'')) | ('"', Some('"')) => quote = None,
            (letter, Some('\'')) => word.push(letter),
            ('\\', _) => {
                is_word = true;
                push_escaped(&mut letters, quote, &mut word)?;
            }
            ('$', Some('"'))
                if letters.clone().next().is_some_and(|next| next == '{' || next == '_' || next.is_alphabetic()) =>
            {
                return Err("a variable of the environment is not read: write what it stands for");
            }
            (letter, Some(_)) => word.push(letter),
            ('\'' | '"', None) => {
                (quote, is_word) = (Some(letter), true);
            }
            ('#', None) => break,
            (letter, None) if letter.is_whitespace() => {
                if std::mem::take(&mut is_word) {
                    words.push(std::mem::take(&mut word));
                }
            }
            (letter, None) => {
                is_word = true;
                word.push(letter);
            }
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    if is_word {
        words.push(word);
    }
    Ok(words)
}

/// What stands behind a backslash; where it means nothing, the backslash stays.
fn push_escaped(letters: &mut std::str::Chars<'_>, quote: Option<char>, word: &mut String) -> Result<(), &'static str> {
    let meant = match letters.clone().next() {
        Some('x') => {
            letters.next();
            let digits: String = letters.by_ref().take(2).collect();
            let byte =
                u8::from_str_radix(&digits, 16).ok().filter(|byte| digits.len() == 2 && (1..0x80).contains(byte));
            word.push(char::from(byte.ok_or("a byte that no text has stands behind \\x")?));
            return Ok(());
        }
        Some('$') if quote == Some('"') => Some('$'),
        Some('n') => Some('\n'),
        Some('r') => Some('\r'),
        Some('t') => Some('\t'),
        Some(letter @ (' ' | '\\' | '#' | '\'' | '"')) => Some(letter),
        _ => None,
    };
    match meant {
        Some(letter) => {
            letters.next();
            word.push(letter);
        }
        None => word.push('\\'),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_words(line: &str, expect: Option<&[&str]>) {
        let found = words(line).ok();
        assert_eq!(found.as_deref().map(|words| words.iter().map(String::as_str).collect()), expect.map(<[_]>::to_vec));
    }

    #[test]
    fn blanks_divide_words_but_for_quotes() {
        check_words("  bind :80   # here", Some(&["bind", ":80"]));
        check_words(r#"set-header X "a b\" c" d\ e"#, Some(&["set-header", "X", "a b\" c", "d e"]));
        check_words(r"acl a path_reg '^/a\.b$' '' # x", Some(&["acl", "a", "path_reg", r"^/a\.b$", ""]));
        check_words(r"a\#b 'it''s'", Some(&["a#b", "its"]));
        check_words("\"a", None);
        check_words(r"replace-path /a\.b/(.*) /\1", Some(&["replace-path", r"/a\.b/(.*)", r"/\1"]));
        check_words("\"${HOME}\"", None);
        check_words("\"$_HOME\"", None);
        check_words(r#"path_reg "^/a(/|\$)" b\$"#, Some(&["path_reg", "^/a(/|$)", r"b\$"]));
        check_words(r"path_beg /hid\x64en", Some(&["path_beg", "/hidden"]));
        check_words(r"\xff", None);
        check_words(r"\x6", None);
        check_words("# all of it", Some(&[]));
    }

    #[test]
    fn sections_take_what_their_defaults_say() {
        let text = "global\n maxconn 5\ndefaults one\n mode http\nfrontend a\n bind :80\ndefaults two from one\n \
                    timeout client 5s\nbackend b\n server s 10.0.0.1:80\nlisten c from one\n bind :81\nuserlist u\n user x\n";
        let found = sections(text, Path::new("f")).unwrap();
        let shown: Vec<String> = found
            .iter()
            .map(|one| {
                let lines: Vec<String> = one.lines.iter().map(Directive::text).collect();
                format!("{} {}: {}", one.kind, one.name, lines.join(", "))
            })
            .collect();
        assert_eq!(
            shown,
            [
                "global : maxconn 5",
                "frontend a: mode http, bind :80",
                "backend b: mode http, timeout client 5s, server s 10.0.0.1:80",
                "listen c: mode http, bind :81",
                "userlist u: user x",
            ]
        );
        assert!(sections("bind :80\n", Path::new("f")).is_err());
        assert!(sections("global\n.if x\n", Path::new("f")).unwrap_err().starts_with("f:2: "));
    }

    #[test]
    fn tests_of_defaults_are_for_their_own_rules() {
        let text = "defaults d\n acl ok path_beg /pub\n http-request deny if !ok { path ok } or ok\n\
                    frontend web from d\n acl ok path_beg /other\n http-request set-header X 1 if ok\n";
        let found = sections(text, Path::new("f")).unwrap();
        let lines: Vec<String> = found[0].lines.iter().map(Directive::text).collect();
        assert_eq!(
            lines,
            [
                "acl ok of defaults path_beg /pub",
                "http-request deny if !ok of defaults { path ok } or ok of defaults",
                "acl ok path_beg /other",
                "http-request set-header X 1 if ok",
            ]
        );
    }

    #[test]
    fn a_file_of_haproxys_is_known() {
        for text in ["frontend web\n  bind :80\n", "defaults\n mode http\nbackend app\n server a b:80\n", "listen x"] {
            assert!(is_haproxy(text), "{text}");
        }
        for text in ["backend default {\n .host = \"a\"; }\n", "server {\n listen 80;\n}\n", "http_port 80\n"] {
            assert!(!is_haproxy(text), "{text}");
        }
    }
}
