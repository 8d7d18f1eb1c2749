//! The beginnings of paths by which Apache divides requests, the spellings of a path that larder does not take for them, and names of
//! files as patterns of paths.
//!
//! Apache decodes a path, makes one slash of many and follows its dots before it looks at it. A route sees the path as it was sent. So
//! every spelling of a path in which the two may differ is closed, and beginnings are made of letters alone that need no escape.

use proxy::settings::ClosedPaths;

use crate::import::nginx_order::escaped;

/// Spellings that nobody needs who means no harm: escapes of what needs none or of what divides paths, empty segments, dots, and a backslash.
pub const UNUSUAL: &str =
    r"(?i)//|/\.{1,2}(?:/|$)|\\|%(?:[01][0-9a-f]|2[35def]|3[0-9bf]|4[1-9a-f]|5[0-9acf]|6[1-9a-f]|7[0-9aef])";

/// Names of what is a program, a source or a configuration wherever it lies: Apache may run or hide it, and larder shows no source.
pub const PROGRAMS: &str =
    r"(?i)\.(?:ph(?:p[0-9]?|tml|ar|ps|t)|inc|f?cgi|pl|py|rb|lua|aspx?|jspx?|shtml?|stm|asis|var)(?:[./~]|$)|/\.ht|~$";

/// The same where an application runs scripts, which larder shows in no case either.
pub const PROGRAMS_BESIDE_PHP: &str = r"\.(?!php(?:[./~]|$))(?i:ph(?:p[0-9]?|tml|ar|ps|t)|inc|f?cgi|pl|py|rb|lua|aspx?|jspx?|shtml?|stm|asis|var)(?:[./~]|$)|/\.ht|~$";

/// How a path begins, by whole segments: `/a` is `/a` and all beneath it, `/a/` all beneath it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PathBeginning(String);

impl PathBeginning {
    /// `None`: it has letters that a path may spell otherwise.
    pub fn new(written: &str) -> Option<PathBeginning> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte);
        let is_usual = !written.contains("//") && !written.split('/').any(|part| matches!(part, "." | ".."));
        (written.starts_with('/') && written.bytes().all(is_plain) && is_usual)
            .then(|| PathBeginning(written.to_owned()))
    }

    pub fn text(&self) -> &str {
        &self.0
    }

    /// Without a slash at its end.
    pub fn trimmed(&self) -> &str {
        self.0.trim_end_matches('/')
    }

    pub fn is_directory(&self) -> bool {
        self.0.ends_with('/')
    }

    /// Is all that begins so among what begins as the other says?
    pub fn is_within(&self, other: &PathBeginning) -> bool {
        match other.is_directory() {
            true => self.0.starts_with(&other.0),
            false => self.0 == other.0 || self.0.strip_prefix(&other.0).is_some_and(|rest| rest.starts_with('/')),
        }
    }

    /// The last name in it.
    pub fn last_name(&self) -> &str {
        self.trimmed().rsplit('/').next().unwrap_or_default()
    }

    /// As an expression for the route.
    pub fn regex(&self) -> String {
        match self.is_directory() {
            true => format!("^{}", escaped(&self.0)),
            false => format!("^{}(?:/|$)", escaped(&self.0)),
        }
    }
}

/// The part of a path with wildcards that has none, up to a slash.
pub fn before_wildcards(written: &str) -> &str {
    match written.find(['*', '?', '[', '\\']) {
        Some(at) => &written[..written[..at].rfind('/').map_or(0, |slash| slash + 1)],
        None => written,
    }
}

/// The paths whose names of files one of Apache's expressions may match, each segment being a name. `None`: they cannot be said.
pub fn of_names(regex: &str) -> Option<String> {
    let (mut out, mut letters, mut is_class) = (String::new(), regex.chars().peekable(), false);
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let next = letters.next()?;
                // Ends of texts, and what counts letters in its own way.
                if matches!(next, 'A' | 'Z' | 'z' | 'G' | 'Q' | 'E' | 'K') || next.is_ascii_digit() {
                    return None;
                }
                out.extend(['\\', next]);
            }
            '[' if !is_class => {
                is_class = true;
                out.push('[');
                // A bracket in the first place is one of its letters.
                if let Some(negation) = letters.next_if_eq(&'^') {
                    out.push(negation);
                }
                if letters.next_if_eq(&']').is_some() {
                    out.push_str("\\]");
                }
            }
            ']' if is_class => {
                is_class = false;
                out.push(']');
            }
            '^' if !is_class => out.push_str("(?<=/)"),
            '$' if !is_class => out.push_str("(?=/|$)"),
            '(' if !is_class && letters.peek() == Some(&'?') => {
                letters.next();
                match letters.next()? {
                    ':' => out.push_str("(?:"),
                    'i' if letters.peek() == Some(&')') => out.push_str("(?i"),
                    'i' if letters.peek() == Some(&':') => out.push_str("(?i"),
                    _ => return None,
                }
            }
            other => out.push(other),
        }
    }
    is_expression(&out).then_some(out)
}

/// The same of a name with wildcards.
pub fn of_wildcards(written: &str) -> Option<String> {
    let mut out = String::from("/");
    for letter in written.chars() {
        match letter {
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' | '\\' | '/' => return None,
            plain => out.push_str(&escaped(&plain.to_string())),
        }
    }
    Some(out + "(?:/|$)")
}

/// All names with one of these in them behind a dot.
pub fn of_extensions<'a>(written: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<String> = written.into_iter().map(|end| escaped(end.trim_start_matches('.'))).collect();
    format!("(?i)\\.(?:{})(?:[./]|$)", all.join("|"))
}

pub fn is_expression(regex: &str) -> bool {
    ClosedPaths::new([regex]).is_ok()
}

/// Is this path one of those that are closed?
pub fn closes(regexes: &[String], path: &str) -> bool {
    ClosedPaths::new(regexes.iter().map(String::as_str)).map_or(true, |closed| closed.close(path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginnings_are_whole_segments() {
        let of = |text: &str| PathBeginning::new(text).unwrap();
        for (one, other, expect) in [
            ("/a/b", "/a", true),
            ("/ab", "/a", false),
            ("/a", "/a/", false),
            ("/a/", "/a", true),
            ("/a/b", "/a/", true),
            ("/a", "/", true),
        ] {
            assert_eq!(of(one).is_within(&of(other)), expect, "{one} {other}");
        }
        for none in ["a", "/a b", "/a//b", "/../a", "/%61", "/a*", "/a/./b", "/ä"] {
            assert_eq!(PathBeginning::new(none), None, "{none}");
        }
    }

    #[test]
    fn unusual_spellings_are_closed() {
        let unusual = [UNUSUAL.to_owned()];
        for path in [
            "//a", "/a/../b", "/a/.", "/%61", "/a%2fb", "/a%2E", "/a%5cb", "/a%00", "/a%0a", "/a%25b", "/a\\b", "/%7e",
            "/a%zz",
        ] {
            assert!(closes(&unusual, path), "{path}");
        }
        for path in ["/", "/a.b/c", "/...", "/a%20b", "/caf%c3%a9", "/a+b,c", "/x%40y", "/%5bx%5d", "/.well-known/x"] {
            assert!(!closes(&unusual, path), "{path}");
        }
    }

    #[test]
    fn names_are_looked_for_in_every_segment() {
        for (regex, path, expect) in [
            (r"^\.ht", "/a/.htaccess", true),
            (r"^\.ht", "/a.ht", false),
            (r"\.(bak|old)$", "/a.bak/x", true),
            (r"\.(bak|old)$", "/a.bakx", false),
            (r"^(a|b)\.txt$", "/x/b.txt", true),
            (r"^[^.]+$", "/x.y/none", true),
            (r"(?i)secret", "/SECRET.txt", true),
            (r"[]$^]", "/a$", true),
        ] {
            let pattern = of_names(regex).unwrap();
            assert_eq!(closes(std::slice::from_ref(&pattern), path), expect, "{regex} {path} {pattern}");
        }
        for none in [r"^(?!index)", r"x\z", r"(a)\1", "(a"] {
            assert_eq!(of_names(none), None, "{none}");
        }
        assert!(
            closes(&[of_wildcards("*.bak").unwrap()], "/a/b.bak")
                && !closes(&[of_wildcards("*.bak").unwrap()], "/a.bakk")
        );
        assert!(closes(&[of_extensions([".cgi", "x"])], "/a.CGI.txt"));
        assert_eq!(before_wildcards("/var/*/www"), "/var/");
    }

    #[test]
    fn programs_are_known_by_their_names() {
        let programs = [PROGRAMS.to_owned()];
        for path in
            ["/a.php", "/a.PHP5", "/a.php/x", "/a.php.bak", "/a.cgi", "/.htaccess", "/a/.htpasswd", "/a.txt~", "/a.inc"]
        {
            assert!(closes(&programs, path), "{path}");
        }
        for path in ["/a.html", "/phpinfo", "/a.phpx.html", "/includes/a.js", "/a.plan"] {
            assert!(!closes(&programs, path), "{path}");
        }
    }
}
