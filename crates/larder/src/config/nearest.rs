//! Which known word somebody meant.

use strsim::osa_distance;

/// The known word with the fewest edits, if it is near enough to be a slip and not another word; else one that is
/// made of the same parts, or begins with this one.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = fold(word);
    let edits_max = (word.chars().count() / 3).max(1);
    let known: Vec<&str> = known.into_iter().collect();
    let slip = known
        .iter()
        .map(|candidate| (osa_distance(&folded, &fold(candidate)), *candidate))
        .filter(|&(edits, candidate)| edits <= edits_max && edits < candidate.chars().count())
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate);
    let same_parts = || known.iter().copied().find(|candidate| parts(candidate) == parts(word));
    let longer = || known.iter().copied().find(|candidate| word.len() >= 4 && candidate.starts_with(word));
    slip.or_else(same_parts).or_else(longer)
}

/// `max_connections` and `connections-max` have the same.
fn parts(word: &str) -> Vec<String> {
    let mut parts: Vec<_> = word.split(['_', '-']).map(str::to_ascii_lowercase).collect();
    parts.sort();
    parts
}

/// `-` for `_` and capitals are how other programs spell the same key.
fn fold(word: &str) -> String {
    word.chars().map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[&str] = &["listen", "limits", "memory", "max_connections", "queue_max", "urls", "host", "path"];

    fn check(word: &str, expect: Option<&str>) {
        assert_eq!(nearest(word, KNOWN.iter().copied()), expect, "{word}");
    }

    #[test]
    fn a_slip_finds_its_word() {
        check("lsiten", Some("listen"));
        check("Limits", Some("limits"));
        check("limit", Some("limits"));
        check("memroy", Some("memory"));
        check("max-connections", Some("max_connections"));
        check("connections_max", Some("max_connections"));
        check("url", Some("urls"));
        check("hots", Some("host"));
        check("queue", Some("queue_max"));
    }

    #[test]
    fn another_word_finds_none() {
        check("colour", None);
        check("tls", None);
        check("", None);
    }
}
