//! The grammar of squid.conf: a directive on each line, words, comments, includes. It knows no directive but `include`.

use std::path::Path;

use crate::bounded_file;
use crate::import::include_pattern;
use crate::import::nginx_conf::{Directive, Place};

/// Files within files, and lines of all of them: what holds more is no configuration.
const INCLUDE_DEPTH_MAX: usize = 16;
const DIRECTIVES_MAX: usize = 100_000;
const FILE_BYTES_MAX: u64 = 4 << 20;

/// What only squid's files begin lines with.
const TELLING: [&str; 10] = [
    "http_port",
    "https_port",
    "http_access",
    "cache_peer",
    "cache_dir",
    "cache_mem",
    "refresh_pattern",
    "visible_hostname",
    "cache_effective_user",
    "auth_param",
];

/// Does this text look like a configuration of squid?
pub fn is_squid(text: &str) -> bool {
    let told = |line: &str| {
        let mut words = line.split_whitespace();
        TELLING.contains(&words.next().unwrap_or_default()) && words.next() != Some("=")
    };
    // It has no blocks: where a line opens one, the word is another program's.
    let opens = |line: &str| line.trim_end().ends_with('{') && !line.trim_start().starts_with('#');
    text.lines().any(|line| told(line) && !line.trim_end().ends_with([';', '{'])) && !text.lines().any(opens)
}

/// Reads a file and what it includes, in its place. An include that is not there stays as a directive.
pub fn read(path: &Path) -> Result<Vec<Directive>, String> {
    let mut found = Vec::new();
    read_into(path, 0, &mut found)?;
    Ok(found)
}

fn read_into(path: &Path, depth: usize, found: &mut Vec<Directive>) -> Result<(), String> {
    let shown = path.display();
    if depth > INCLUDE_DEPTH_MAX {
        return Err(format!("{shown}: more than {INCLUDE_DEPTH_MAX} files within files"));
    }
    let bytes = bounded_file::read(path, FILE_BYTES_MAX).map_err(|why| format!("{shown}: {why}"))?;
    for directive in directives(&String::from_utf8_lossy(&bytes), path) {
        let line = directive.place.line;
        match directive.name.as_str() {
            "if" | "else" | "endif" => {
                return Err(format!(
                    "{shown}:{line}: which lines a condition is for is not known here: keep those that count"
                ));
            }
            "include" if !directive.arguments.is_empty() => {
                for pattern in &directive.arguments {
                    let names = include_pattern::files(Path::new(pattern));
                    let names = names.map_err(|why| format!("{shown}:{line}: {why}"))?;
                    if names.is_empty() {
                        found.push(Directive { arguments: vec![pattern.clone()], ..directive.clone() });
                    }
                    for name in names {
                        read_into(&name, depth + 1, found)?;
                    }
                }
            }
            _ => found.push(directive),
        }
        if found.len() > DIRECTIVES_MAX {
            return Err(format!("{shown}: more than {DIRECTIVES_MAX} directives"));
        }
    }
    Ok(())
}

fn directives(text: &str, path: &Path) -> Vec<Directive> {
    let mut found = Vec::new();
    // What says nothing is gone before lines are joined: a comment never reaches for the next line, nor ends one.
    let says_something = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let lines = text.lines().enumerate().map(|(number, line)| (number, line.trim_start()));
    let mut lines = lines.filter(|(_, line)| says_something(line));
    while let Some((number, first)) = lines.next() {
        let mut line = first.to_owned();
        while let Some(rest) = line.strip_suffix('\\').map(str::to_owned) {
            match lines.next() {
                Some((_, next)) => line = rest + next,
                None => line = rest,
            }
        }
        let mut words = words(&line).into_iter();
        if let Some(name) = words.next() {
            let place = Place { file: path.to_owned(), line: number + 1 };
            found.push(Directive { name, arguments: words.collect(), block: None, place });
        }
    }
    found
}

/// Quotes hold blanks together; `#` at the start of a word begins a comment.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '"' => {
                is_quoted = !is_quoted;
                word.get_or_insert_default();
            }
            '#' if !is_quoted && word.is_none() => break,
            c if c.is_whitespace() && !is_quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_words_and_comments() {
        let text = "# a\n\nhttp_port 80 accel\nacl x src 10.0.0.0/8 \\\n  10.1.0.0/16 # why\nauth_param basic realm \"a b\" c#d\n";
        let found = directives(text, Path::new("s"));
        let shown: Vec<String> = found.iter().map(Directive::text).collect();
        assert_eq!(shown, ["http_port 80 accel", "acl x src 10.0.0.0/8 10.1.0.0/16", "auth_param basic realm a b c#d"]);
        assert_eq!(found.iter().map(|one| one.place.line).collect::<Vec<_>>(), [3, 4, 6]);
        assert_eq!(found[2].arguments.len(), 4);
    }

    fn check(text: &str, expect: &[&str]) {
        let found = directives(text, Path::new("s"));
        assert_eq!(found.iter().map(Directive::text).collect::<Vec<_>>(), expect, "{text:?}");
    }

    /// As squid 5.7 has it: comments and empty lines go before lines are joined, and joined lines have nothing between them.
    #[test]
    fn a_backslash_joins_a_line_with_the_next_that_says_something() {
        check("# a \\\nhttp_access deny bad\n", &["http_access deny bad"]);
        check("  # a \\\r\nhttp_access deny bad\r\n", &["http_access deny bad"]);
        check("acl x src 10.0.0.0/8 \\\n# why \\\n\n  \n 10.1.0.0/16\nb\n", &["acl x src 10.0.0.0/8 10.1.0.0/16", "b"]);
        check("visible_host\\\n  name edge", &["visible_hostname edge"]);
        check("a b\\ \nc \\", &["a b\\", "c"]);
    }

    #[test]
    fn what_is_included_and_absent_is_kept() {
        let folder = std::env::temp_dir().join(format!("larder-squid-include-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (main, there, absent) = (folder.join("squid.conf"), folder.join("there"), folder.join("absent"));
        std::fs::write(&there, "http_port 80\n").unwrap();
        std::fs::write(&main, format!("include {} {}\n", there.display(), absent.display())).unwrap();
        let shown: Vec<String> = read(&main).unwrap().iter().map(Directive::text).collect();
        assert_eq!(shown, ["http_port 80".to_owned(), format!("include {}", absent.display())]);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_condition_is_not_guessed() {
        let file = std::env::temp_dir().join(format!("larder-squid-if-{}", std::process::id()));
        std::fs::write(&file, "http_port 80\nif false\nhttp_access allow all\nendif\n").unwrap();
        let said = read(&file).expect_err("a condition");
        std::fs::remove_file(&file).unwrap();
        assert!(said.contains(":2: which lines a condition is for"), "{said}");
    }

    #[test]
    fn a_squid_conf_is_told_from_the_others() {
        assert!(is_squid("# x\nhttp_port 3128\n"));
        assert!(!is_squid("acl purge {\n\"localhost\";\n}\nsub vcl_recv {}\n"));
        assert!(!is_squid("http {\n  server { listen 80; }\n}\n"));
    }
}
