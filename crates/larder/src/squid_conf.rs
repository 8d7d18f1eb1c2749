//! The grammar of squid.conf: a directive on each line, words, comments, includes. It knows no directive but `include`.

use std::path::Path;

use crate::include_pattern;
use crate::nginx_conf::{Directive, Place};

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
    let told = |line: &str| TELLING.contains(&line.split_whitespace().next().unwrap_or_default());
    text.lines().any(|line| told(line) && !line.trim_end().ends_with([';', '{']))
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
    let length = std::fs::metadata(path).map_err(|error| format!("{shown}: {error}"))?.len();
    if length > FILE_BYTES_MAX {
        return Err(format!("{shown}: {length} bytes; a file may have {FILE_BYTES_MAX}"));
    }
    let bytes = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    for directive in directives(&String::from_utf8_lossy(&bytes), path) {
        let names: Vec<_> = match directive.name.as_str() {
            "include" => {
                directive.arguments.iter().flat_map(|pattern| include_pattern::files(Path::new(pattern))).collect()
            }
            _ => Vec::new(),
        };
        if names.is_empty() {
            found.push(directive);
        }
        for name in names {
            read_into(&name, depth + 1, found)?;
        }
        if found.len() > DIRECTIVES_MAX {
            return Err(format!("{shown}: more than {DIRECTIVES_MAX} directives"));
        }
    }
    Ok(())
}

fn directives(text: &str, path: &Path) -> Vec<Directive> {
    let mut found = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, first)) = lines.next() {
        let mut line = first.to_owned();
        while let Some(rest) = line.strip_suffix('\\').map(str::to_owned) {
            match lines.next() {
                Some((_, next)) => line = rest + " " + next,
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

    #[test]
    fn a_squid_conf_is_told_from_the_others() {
        assert!(is_squid("# x\nhttp_port 3128\n"));
        assert!(!is_squid("acl purge {\n\"localhost\";\n}\nsub vcl_recv {}\n"));
        assert!(!is_squid("http {\n  server { listen 80; }\n}\n"));
    }
}
