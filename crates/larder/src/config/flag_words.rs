//! What flags say, as keys of larder.toml, to be shown beside those of a file. Whoever reads flags fills it in.

/// The sections that flags replace, and the keys that they set.
#[derive(Debug, Default)]
pub struct FlagWords {
    replaced: Vec<&'static str>,
    pub tables: Vec<FlagTable>,
    /// Path, key, literal, flag.
    values: Vec<(&'static str, String, String, &'static str)>,
    /// The default listener is there, too, where there is something to stand in front of.
    pub joins_default_listener: bool,
}

/// A table that a flag stands for.
#[derive(Debug)]
pub struct FlagTable {
    pub path: &'static str,
    pub keys: Vec<(&'static str, String)>,
    pub flag: &'static str,
}

impl FlagWords {
    /// Nothing that the file says in these sections counts.
    pub fn replace(&mut self, sections: &[&'static str]) {
        self.replaced.extend(sections);
    }

    pub fn replaces(&self, section: &str) -> bool {
        self.replaced.contains(&section)
    }

    pub fn value(&mut self, path: &'static str, key: &str, literal: String, flag: &'static str) {
        self.values.push((path, key.to_owned(), literal, flag));
    }

    pub fn table(
        &mut self,
        path: &'static str,
        keys: impl IntoIterator<Item = (&'static str, String)>,
        flag: &'static str,
    ) {
        self.tables.push(FlagTable { path, keys: keys.into_iter().collect(), flag });
    }

    /// The value of a key and its flag: the last one counts.
    pub fn of(&self, path: &str, key: &str) -> Option<(&str, &'static str)> {
        let is_it = |said: &&(&str, String, String, &str)| said.0 == path && said.1 == key;
        self.values.iter().rev().find(is_it).map(|(_, _, literal, flag)| (literal.as_str(), *flag))
    }
}
