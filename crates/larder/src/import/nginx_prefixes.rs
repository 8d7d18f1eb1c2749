//! Regexes of nginx's locations that say no more than how a path begins: `^/(assets|packs)/`. A route can say that too.

/// A regex with more beginnings is no list that somebody wrote.
const PREFIXES_MAX: usize = 64;

/// The beginnings that a regex matches, and nothing else. `None`: it says more than that, or matches no whole path segments.
/// Of a regex that takes letters of either case these are the ones that it is written with.
pub fn prefixes_of(regex: &str) -> Option<Vec<String>> {
    let regex = regex.strip_prefix("(?i)").unwrap_or(regex);
    let mut rest = without_open_end(regex.strip_prefix('^')?);
    let mut prefixes = vec![String::new()];
    while !rest.is_empty() {
        let (words, behind) = match rest.strip_prefix('(') {
            Some(group) => {
                let (inside, behind) = group.split_once(')')?;
                let inside = inside.strip_prefix("?:").unwrap_or(inside);
                (inside.split('|').map(literal).collect::<Option<Vec<_>>>()?, behind)
            }
            None => {
                let end = rest.find('(').unwrap_or(rest.len());
                (vec![literal(&rest[..end])?], &rest[end..])
            }
        };
        prefixes = prefixes.iter().flat_map(|prefix| words.iter().map(move |word| format!("{prefix}{word}"))).collect();
        if prefixes.len() > PREFIXES_MAX {
            return None;
        }
        rest = behind;
    }
    prefixes
        .iter()
        .all(|prefix| prefix.len() > 1 && prefix.starts_with('/') && prefix.ends_with('/'))
        .then_some(prefixes)
}

/// Without what takes in all that follows.
fn without_open_end(regex: &str) -> &str {
    let regex = regex.strip_suffix('$').filter(|rest| rest.ends_with(['*', '+', ')'])).unwrap_or(regex);
    let is_all = |inside: &str| matches!(inside, ".*" | ".+");
    if let Some((before, group)) = regex.rsplit_once('(')
        && let Some(inside) = group.strip_suffix(')')
    {
        let name_end = inside.strip_prefix('?').and_then(|_| inside.find('>'));
        return if is_all(&inside[name_end.map_or(0, |at| at + 1)..]) { before } else { regex };
    }
    regex.strip_suffix(".*").or(regex.strip_suffix(".+")).unwrap_or(regex)
}

/// What a part of a regex matches, if that is one text.
fn literal(part: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = part.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.push(chars.next().filter(char::is_ascii_punctuation)?),
            c if c.is_ascii_alphanumeric() || matches!(c, '/' | '-' | '_') => out.push(c),
            _ => return None,
        }
    }
    (!out.is_empty()).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(regex: &str, expect: &[&str]) {
        let found = prefixes_of(regex).unwrap_or_default();
        assert_eq!(found, expect, "{regex}");
    }

    #[test]
    fn beginnings_are_read_from_a_regex_that_says_nothing_else() {
        check("^/(assets)/", &["/assets/"]);
        check("^/(assets|packs)/", &["/assets/", "/packs/"]);
        check("(?i)^/(?:a|b-c)/x/", &["/a/x/", "/b-c/x/"]);
        check("^/plugins/.*", &["/plugins/"]);
        check("^/assets/(?<asset_path>.+)$", &["/assets/"]);
        check("^/assets/(?P<rest>.*)", &["/assets/"]);
        check(r"^/v1\.2/(.*)$", &["/v1.2/"]);
        for more in [
            "/assets/",
            "^/assets",
            "^/assets/x$",
            "^/(a|)/",
            "^/(a/)?b/",
            r"^/assets/.*\.(js|css)$",
            r"^/\d/",
            "^/(a(b)c)/",
            "^/[ab]/",
            "^/a./",
            "^/",
            "^",
        ] {
            check(more, &[]);
        }
    }
}
