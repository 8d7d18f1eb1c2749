//! The files that an include of another server's configuration means: a path, in whose parts `*`, `?` and `[…]` stand for
//! what they stand for in a shell. It knows no configuration.

use std::path::{Component, Path, PathBuf};

/// More names than this are no configuration.
const NAMES_MAX: usize = 10_000;

/// Is there anything in it that stands for something else?
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files, in the order of their names.
pub fn files(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        found = match part {
            Component::Normal(_) if is_pattern(&name) => {
                found.iter().flat_map(|folder| entries(folder, &name)).take(NAMES_MAX).collect()
            }
            _ => found.into_iter().map(|folder| folder.join(part)).collect(),
        };
    }
    found.retain(|path| path.is_file());
    found.sort();
    found
}

fn entries(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().take(NAMES_MAX);
    let fits = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        // A name that is hidden has to be asked for by its dot.
        (!name.starts_with('.') || pattern.starts_with('.')) && fits(pattern.as_bytes(), name.as_bytes())
    };
    names.map(|entry| entry.path()).filter(fits).collect()
}

/// Goes back to the last star only, so that no pattern takes long.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of_name) = (0, 0);
    let mut last_star = None;
    while of_name < name.len() {
        if pattern.get(at) == Some(&b'*') {
            last_star = Some((at, of_name));
            at += 1;
            continue;
        }
        match (one(&pattern[at..], name[of_name]), last_star) {
            (Some(length), _) => {
                at += length;
                of_name += 1;
            }
            (None, Some((star, from))) => {
                last_star = Some((star, from + 1));
                (at, of_name) = (star + 1, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|&b| b == b'*')
}

/// How much of the pattern stands for this one byte; `None`: what stands there does not.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'[' => match pattern.iter().skip(2).position(|&b| b == b']') {
            Some(end) => is_among(&pattern[1..end + 2], byte).then_some(end + 3),
            None => (byte == b'[').then_some(1),
        },
        plain => (plain == byte).then_some(1),
    }
}

/// `abc`, `a-z`, and with `!` or `^` in front what is none of these.
fn is_among(class: &[u8], byte: u8) -> bool {
    let (members, is_negated) = match class {
        [b'!' | b'^', members @ ..] => (members, true),
        members => (members, false),
    };
    let (mut at, mut found) = (0, false);
    while at < members.len() {
        match members[at..] {
            [first, b'-', last, ..] => {
                found |= (first..=last).contains(&byte);
                at += 3;
            }
            [one, ..] => {
                found |= one == byte;
                at += 1;
            }
            [] => break,
        }
    }
    found != is_negated
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, name: &str, expect: bool) {
        assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expect, "{pattern} {name}");
    }

    #[test]
    fn patterns_fit_names() {
        check("*.conf", "a.conf", true);
        check("*.conf", "a.confx", false);
        check("a*b*c", "a-b-b-c", true);
        check("a*b*c", "a-c-b", false);
        check("*", "", true);
        check("a*", "a", true);
        check("a?c", "abc", true);
        check("a?c", "ac", false);
        check("[0-9][!0]*", "10", false);
        check("[0-9][!0]*", "12-x", true);
        check("[]a]", "]", true);
        check("[a", "[a", true);
        check(&"*a".repeat(40), &"a".repeat(39), false);
        check(&"*a".repeat(40), &"a".repeat(2_000), true);
    }

    #[test]
    fn every_part_of_a_path_may_be_one() {
        let folder = std::env::temp_dir().join(format!("larder-include-{}", std::process::id()));
        for name in ["one/a.conf", "one/b.conf", "two/a.conf", "two/.a.conf", "two/c.txt", "x.conf/y"] {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |pattern: &str| {
            let found = files(&folder.join(pattern));
            found.iter().map(|path| path.strip_prefix(&folder).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found("*/a*.co*f"), ["one/a.conf", "two/a.conf"]);
        assert_eq!(found("t?o/.*.conf"), ["two/.a.conf"]);
        assert_eq!(found("one/b.conf"), ["one/b.conf"]);
        assert!(found("*.conf").is_empty() && found("none/*").is_empty() && found("one/z").is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
