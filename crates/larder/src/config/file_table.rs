//! A table of a larder.toml: its values, and on which lines they stand.

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// Two readings of one text: the parser's own values print themselves, and the spanned ones know their places.
#[derive(Clone, Copy)]
pub struct FileTable<'a> {
    pub values: &'a Table,
    pub places: &'a DeTable<'a>,
}

impl<'a> FileTable<'a> {
    pub fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    /// The table of a key.
    pub fn table(&self, key: &str) -> Option<FileTable<'a>> {
        match (self.values.get(key)?, self.places.get(key)?.get_ref()) {
            (Value::Table(values), DeValue::Table(places)) => Some(FileTable { values, places }),
            _ => None,
        }
    }

    /// The tables of a list.
    pub fn tables(&self, key: &str) -> Vec<FileTable<'a>> {
        let (Some(Value::Array(values)), Some(places)) = (self.values.get(key), self.places.get(key)) else {
            return Vec::new();
        };
        let DeValue::Array(places) = places.get_ref() else { return Vec::new() };
        let both = |(value, place): (&'a Value, &'a toml::Spanned<DeValue<'a>>)| match (value, place.get_ref()) {
            (Value::Table(values), DeValue::Table(places)) => Some(FileTable { values, places }),
            _ => None,
        };
        values.iter().zip(places.iter()).filter_map(both).collect()
    }

    /// Its keys as they stand in the file.
    pub fn keys(&self) -> Vec<&'a str> {
        let mut keys: Vec<_> = self.places.iter().map(|(key, _)| (key.span().start, key.get_ref().as_ref())).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }

    /// A value, and the line that it stands on.
    pub fn shown(&self, text: &str, key: &str) -> Option<(&'a Value, usize)> {
        let at = self.places.get(key)?.span().start;
        let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
        Some((self.values.get(key)?, line))
    }
}
