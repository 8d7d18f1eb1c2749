//! Which known name somebody meant: the one with the fewest edits, if it is near enough to be a slip.

use strsim::osa_distance;

/// The nearest of the known names, or one that this one is the beginning of.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word_folded = fold(word);
    let edits_max = (word_folded.len() / 3).clamp(1, 4);
    let known: Vec<&str> = known.into_iter().collect();
    let slip = known
        .iter()
        .map(|candidate| (osa_distance(&word_folded, &fold(candidate)), *candidate))
        .filter(|&(edits, candidate)| edits <= edits_max && edits < candidate.len())
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate);
    slip.or_else(|| known.iter().copied().find(|candidate| word.len() >= 4 && candidate.starts_with(word)))
}

fn fold(word: &str) -> String {
    // Longer names are nobody's slip; the cut keeps the table of edits small.
    word.chars().take(64).map(|c| if c == '-' { '_' } else { c.to_ascii_lowercase() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        const KNOWN: [&str; 4] = ["req.url", "req.method", "beresp.ttl", "deliver"];
        let check = |word: &str, expect: Option<&str>| assert_eq!(nearest(word, KNOWN), expect, "{word}");
        check("req.ulr", Some("req.url"));
        check("beresp.tll", Some("beresp.ttl"));
        check("Deliver", Some("deliver"));
        check("deli", Some("deliver"));
        check("obj.hits", None);
    }
}
