//! Holds GLOSSARY.md against the names of the code: a type that it explains is there, and a word that another replaces is in no
//! name of the crates that it is kept out of.

use std::collections::BTreeMap;

use crate::module_map::ModuleMap;
use crate::page_tables::{self, quoted};

/// Where the words stand.
pub const FILE: &str = "GLOSSARY.md";

/// What breaks the glossary, a sentence each.
pub fn complaints(glossary: &str, crates: &BTreeMap<String, ModuleMap>) -> Vec<String> {
    let words = page_tables::rows(glossary, ["word", "types", "means here", "from"]);
    let replaced = page_tables::rows(glossary, ["instead of", "say", "kept out of"]);
    let mut complaints = Vec::new();
    for (table, rows) in [("words", words.len()), ("words that others replace", replaced.len())] {
        if rows == 0 {
            complaints.push(format!("{FILE} has no table of {table}"));
        }
    }
    for [word, types, ..] in &words {
        let is_there = |name: &String| crates.values().any(|map| map.types().contains_key(name.as_str()));
        let absent = quoted(types).filter(|name| !is_there(name));
        complaints.extend(absent.map(|name| format!("{FILE}: '{word}' has the type {name}, which no crate has")));
    }
    for [old, new, kept_out_of] in &replaced {
        for name in quoted(kept_out_of) {
            let Some(map) = crates.get(&name) else {
                complaints.push(format!("{FILE}: '{new}' speaks of {name}, which is no crate"));
                continue;
            };
            for word in quoted(old) {
                complaints.extend(bearers(map, &word).map(|(file, bearer)| {
                    format!("crate {name}: {file} has the name {bearer}; {FILE} says '{new}' instead of {word}")
                }));
            }
        }
    }
    complaints
}

/// The names that have a word in them, and their files.
fn bearers(map: &ModuleMap, word: &str) -> impl Iterator<Item = (String, String)> {
    let is_type = word.starts_with(|c: char| c.is_uppercase());
    let parts = words_of(word);
    let has_it = move |name: &str| match is_type {
        true => name == word,
        false => words_of(name).windows(parts.len()).any(|window| window == parts),
    };
    let mut bearers = Vec::new();
    for (file, names) in map.files.iter().zip(&map.names) {
        bearers.extend(names.iter().filter(|name| has_it(name)).map(|name| (file.display().to_string(), name.clone())));
    }
    bearers.into_iter()
}

/// The words of a name: `LeasedBody`, `LEASED_BODY` and `leased_body` have two.
fn words_of(name: &str) -> Vec<String> {
    let is_constant = !name.contains(|c: char| c.is_lowercase());
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && !is_constant {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("there is one").extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn check(word: &str, replaced: &str, code: &str, expect: &[&str]) {
        let page = format!(
            "| word | types | means here | from |\n|---|---|---|---|\n{word}\n\n| instead of | say | kept out of |\n|---|---|---|\n{replaced}\n"
        );
        let crates =
            BTreeMap::from([("low".to_string(), ModuleMap::read(&[(PathBuf::from("a.rs"), code.to_string())]))]);
        assert_eq!(complaints(&page, &crates), expect);
    }

    #[test]
    fn a_type_of_the_glossary_is_there() {
        let (word, replaced) = ("| lease | `Lease` | x | y |", "| `lent` | lease | `low` |");
        check(word, replaced, "struct Lease;", &[]);
        check(word, replaced, "struct Leased;", &["GLOSSARY.md: 'lease' has the type Lease, which no crate has"]);
        check("", replaced, "", &["GLOSSARY.md has no table of words"]);
        check(word, "", "struct Lease;", &["GLOSSARY.md has no table of words that others replace"]);
    }

    #[test]
    fn a_word_that_was_replaced_is_in_no_name() {
        let lease = "| lease | — | x | y |";
        let says = |name: &str, word: &str| {
            format!("crate low: a.rs has the name {name}; GLOSSARY.md says 'lease' instead of {word}")
        };
        let row = "| `lent` `let_go` | lease | `low` |";
        check(lease, row, "// lent\nfn silent() { \"lent\"; letter.goes() }", &[]);
        check(lease, row, "struct LentBody;", &[&says("LentBody", "lent")]);
        check(lease, row, "const LENT_MAX: u8 = 1;", &[&says("LENT_MAX", "lent")]);
        check(lease, row, "fn f() { x.let_go_of() }", &[&says("let_go_of", "let_go")]);
        check(lease, "| `Lent` | lease | `low` |", "struct LentBody; fn lent() {}", &[]);
        check(lease, "| `Lent` | lease | `low` |", "struct Lent;", &[&says("Lent", "Lent")]);
        check(lease, "| `lent` | lease | `high` |", "", &["GLOSSARY.md: 'lease' speaks of high, which is no crate"]);
    }
}
