//! Types of one crate that bear the same name: a reader of one file has to know which of them is meant.
//!
//! `xtask/allowances.toml` lists those that there are; a new one is refused, and so is a name on the list that only one type bears.

use std::collections::{BTreeMap, BTreeSet};

use crate::allowances::{self, Allowances, FILE};
use crate::module_map::ModuleMap;

/// What breaks the list, a sentence each.
pub fn complaints(crates: &BTreeMap<String, ModuleMap>, allowed: &Allowances) -> Vec<String> {
    let none = BTreeSet::new();
    let mut complaints = allowances::strangers(crates, allowed.homonyms.keys(), "homonyms");
    for (name, map) in crates {
        let allowed = allowed.homonyms.get(name).unwrap_or(&none);
        let types = map.types();
        let several = types.iter().filter(|(_, files)| files.len() > 1);
        let homonyms: BTreeMap<&str, &BTreeSet<usize>> = several.map(|(name, files)| (*name, files)).collect();
        for (homonym, files) in homonyms.iter().filter(|(homonym, _)| !allowed.contains(**homonym)) {
            let files: Vec<String> = files.iter().map(|file| map.files[*file].display().to_string()).collect();
            complaints.push(format!("crate {name}: {} types are called {homonym}: {}", files.len(), files.join(", ")));
        }
        for homonym in allowed.iter().filter(|homonym| !homonyms.contains_key(homonym.as_str())) {
            complaints.push(format!("{FILE} lists {homonym} of {name}, which is no homonym any more: take it out"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn check(listed: &str, files: &[(&str, &str)], expect: &[&str]) {
        let sources: Vec<_> = files.iter().map(|(path, text)| (PathBuf::from(path), text.to_string())).collect();
        let crates = BTreeMap::from([("low".to_string(), ModuleMap::read(&sources))]);
        let allowed: Allowances = toml::from_str(&format!("[circles]\n[homonyms]\n{listed}")).unwrap();
        assert_eq!(complaints(&crates, &allowed), expect);
    }

    #[test]
    fn a_name_means_one_type() {
        let (one, other) = (("a.rs", "struct State; struct A;"), ("b.rs", "enum State {}"));
        check("", &[one], &[]);
        check("", &[one, other], &["crate low: 2 types are called State: a.rs, b.rs"]);
        check("low = [\"State\"]", &[one, other], &[]);
        check(
            "low = [\"State\"]",
            &[one],
            &["xtask/allowances.toml lists State of low, which is no homonym any more: take it out"],
        );
        check("high = []", &[one], &["xtask/allowances.toml: [homonyms] names high, which is no crate"]);
    }
}
