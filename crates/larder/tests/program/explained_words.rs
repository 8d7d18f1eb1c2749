//! The words by which Cache-Status says why an origin was asked: each is explained in docs/what-is-cached.md, each verdict of the access log in
//! docs/access-log.md. Reasons beside them are a table (crates/proxy/src/reason.rs), from which the page has them.

use std::collections::BTreeSet;
use std::path::Path;

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Between the quotes behind this text, wherever it stands in a file.
fn quoted_behind(path: &str, before: &str) -> BTreeSet<String> {
    let text = read(path);
    let words = text.lines().filter(|line| line.contains(before)).filter_map(|line| line.split('"').nth(1));
    let words: BTreeSet<String> = words.map(str::to_owned).filter(|word| !word.is_empty()).collect();
    assert!(!words.is_empty(), "{path} has none of {before}");
    words
}

fn check(page: &str, words: BTreeSet<String>) {
    let text = read(page);
    // Of a word with a value only the word.
    let is_there = |word: &String| text.contains(&format!("`{word}`"));
    let missing: Vec<&String> = words.iter().filter(|word| !is_there(word)).collect();
    assert!(missing.is_empty(), "{page} does not explain {missing:?}");
}

#[test]
fn every_forward_reason_is_explained() {
    let text = read("crates/proxy/src/transaction/deliver.rs");
    let written = text
        .split("fwd=")
        .skip(1)
        .filter_map(|rest| rest.split(|c: char| !(c.is_ascii_lowercase() || c == '-')).next())
        .filter(|word| !word.is_empty())
        .map(str::to_owned);
    let mut reasons = quoted_behind("crates/proxy/src/transaction/why_forwarded.rs", "Forwarded::");
    reasons.extend(quoted_behind("crates/proxy/src/transaction.rs", "CacheVerdict::Pass"));
    reasons.extend(written);
    for word in ["uri-miss", "method", "bypass", "partial"] {
        assert!(reasons.contains(word), "{word} is not found any more: {reasons:?}");
    }
    check("docs/what-is-cached.md", reasons.into_iter().map(|reason| format!("fwd={reason}")).collect());
}

#[test]
fn every_verdict_is_explained() {
    check("docs/access-log.md", quoted_behind("crates/proxy/src/access_log.rs", "CacheVerdict::"));
}
