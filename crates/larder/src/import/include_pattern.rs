//! The files that an include of another server's configuration means: a path, in whose parts `*`, `?` and `[…]` stand for
//! what they stand for in a shell. It knows no configuration.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// More names than this are no configuration.
const NAMES_MAX: usize = 10_000;

/// Is there anything in it that stands for something else?
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files, in the order of their names. What cannot be looked for is an error, as is more than a configuration has: what
/// is left out might be what keeps people out.
pub fn files(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = paths(pattern)?;
    found.retain(|path| path.is_file());
    Ok(found)
}

/// All that has such a name: files, folders, and links that lead nowhere.
pub fn paths(pattern: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = vec![PathBuf::new()];
    for part in pattern.components() {
        let name = part.as_os_str().to_string_lossy();
        found = match part {
            Component::Normal(_) if is_pattern(&name) => {
                let mut names = Vec::new();
                for folder in &found {
                    entries(folder, &name, &mut names)?;
                    if names.len() > NAMES_MAX {
                        return Err(format!("{}: more than {NAMES_MAX} names", pattern.display()));
                    }
                }
                names
            }
            _ => found.into_iter().map(|folder| folder.join(part)).collect(),
        };
    }
    found.retain(|path| path.symlink_metadata().is_ok());
    found.sort();
    Ok(found)
}

/// Those of a folder that fit, one more than may be at most.
fn entries(folder: &Path, pattern: &str, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
    let entries = match std::fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(()),
        entries => entries.map_err(wrong)?,
    };
    for entry in entries {
        let entry = entry.map_err(wrong)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // A name that is hidden has to be asked for by its dot.
        if (!name.starts_with('.') || pattern.starts_with('.')) && fits(pattern.as_bytes(), name.as_bytes()) {
            found.push(entry.path());
            if found.len() > NAMES_MAX {
                break;
            }
        }
    }
    Ok(())
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
    let (mut rest, mut found) = (members, false);
    while let [first, behind @ ..] = rest {
        rest = match behind {
            [b'-', last, behind @ ..] => {
                found |= (first..=last).contains(&&byte);
                behind
            }
            _ => {
                found |= *first == byte;
                behind
            }
        };
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
            let found = files(&folder.join(pattern)).unwrap();
            found.iter().map(|path| path.strip_prefix(&folder).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found("*/a*.co*f"), ["one/a.conf", "two/a.conf"]);
        assert_eq!(found("t?o/.*.conf"), ["two/.a.conf"]);
        assert_eq!(found("one/b.conf"), ["one/b.conf"]);
        assert!(found("*.conf").is_empty() && found("none/*").is_empty() && found("one/z").is_empty());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Who is kept out may stand in the file that would be left out.
    #[test]
    fn too_many_names_are_said() {
        let folder = std::env::temp_dir().join(format!("larder-include-many-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let write = |number: usize| std::fs::write(folder.join(number.to_string()), "").unwrap();
        (0..NAMES_MAX).for_each(write);
        assert_eq!(files(&folder.join("*")).map(|found| found.len()), Ok(NAMES_MAX));
        write(NAMES_MAX);
        let said = files(&folder.join("*")).expect_err("one too many");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(said.ends_with("*: more than 10000 names"), "{said}");
    }
}
