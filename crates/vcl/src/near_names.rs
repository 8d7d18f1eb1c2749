//! Which known name somebody meant: the one with the fewest edits, if it is near enough to be a slip.

/// The nearest of the known names, or one that this one is the beginning of.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word_folded = fold(word);
    let edits_max = (word_folded.len() / 3).clamp(1, 4);
    let known: Vec<&str> = known.into_iter().collect();
    let slip = known
        .iter()
        .map(|candidate| (edits(&word_folded, &fold(candidate)), *candidate))
        .filter(|&(edits, candidate)| edits <= edits_max && edits < candidate.len())
        .min_by_key(|&(edits, _)| edits)
        .map(|(_, candidate)| candidate);
    slip.or_else(|| known.iter().copied().find(|candidate| word.len() >= 4 && candidate.starts_with(word)))
}

fn fold(word: &str) -> Vec<u8> {
    // Longer names are nobody's slip; the cut keeps the table below small.
    word.bytes().take(64).map(|b| if b == b'-' { b'_' } else { b.to_ascii_lowercase() }).collect()
}

/// Insertions, deletions, replacements and swaps of neighbours.
fn edits(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
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
