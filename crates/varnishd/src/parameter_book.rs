//! The values of all parameters of one front, and which of them may not be changed over the management port.

use std::collections::BTreeSet;

use crate::parameter_forms::Value;
use crate::parameter_table::{PARAMETERS, Parameter};

pub struct ParameterBook {
    /// In the order of the table.
    values: Vec<Value>,
    read_only: BTreeSet<String>,
}

/// Why a parameter was not set.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unset {
    Unknown,
    ReadOnly,
    Wrong(String),
}

impl ParameterBook {
    /// Varnish's defaults, and what was said behind `-p` and `-t`.
    pub fn new(set: &[(String, String)], read_only: &[String]) -> Result<ParameterBook, String> {
        let values: Vec<Value> = PARAMETERS
            .iter()
            .map(|row| row.form.read(row.default, "").unwrap_or_else(|why| bad_default(row, &why)))
            .collect();
        let mut book = ParameterBook { values, read_only: BTreeSet::new() };
        for (name, written) in set {
            // Those of other versions are for the program to judge, which knows them.
            if book.position(name).is_none() {
                continue;
            }
            let value = book.read(name, written).map_err(|why| why.sentence(name, written))?;
            book.put(name, value);
        }
        book.read_only = read_only.iter().cloned().collect();
        Ok(book)
    }

    /// Name, and value in units of one, of every parameter that has one.
    pub fn plain_values(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let rows = PARAMETERS.iter().zip(&self.values);
        rows.map(|(row, value)| (row.name, &*value.plain)).filter(|(_, value)| !value.is_empty())
    }

    /// The value of a parameter that is a number of bytes. The error is a sentence.
    pub fn bytes_of(&self, name: &str) -> Result<u64, String> {
        let found = self.plain_values().find(|(known, _)| *known == name).and_then(|(_, value)| value.parse().ok());
        found.ok_or_else(|| format!("{name} is no parameter of bytes"))
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static Parameter, &Value)> {
        PARAMETERS.iter().zip(&self.values)
    }

    pub(crate) fn read(&self, name: &str, written: &str) -> Result<Value, Unset> {
        let at = self.position(name).ok_or(Unset::Unknown)?;
        if self.read_only.contains(name) {
            return Err(Unset::ReadOnly);
        }
        let row = &PARAMETERS[at];
        let written = if written == "default" { row.default } else { written };
        let value = row.form.read(written, &self.values[at].shown).map_err(Unset::Wrong)?;
        row.check_bounds(&value).map_err(Unset::Wrong)?;
        Ok(value)
    }

    pub(crate) fn put(&mut self, name: &str, value: Value) {
        if let Some(at) = self.position(name) {
            self.values[at] = value;
        }
    }

    fn position(&self, name: &str) -> Option<usize> {
        PARAMETERS.iter().position(|row| row.name == name)
    }
}

/// A test reads every default.
fn bad_default(row: &Parameter, why: &str) -> Value {
    panic!("the default of {} is no value: {why}", row.name)
}

impl Unset {
    pub(crate) fn sentence(&self, name: &str, written: &str) -> String {
        match self {
            Unset::Unknown => format!("Unknown parameter \"{name}\"."),
            Unset::ReadOnly => format!("parameter \"{name}\" is protected."),
            Unset::Wrong(why) => format!("{why}\n\n(attempting to set param '{name}' to '{written}')"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_set_within_their_bounds_and_unless_they_are_protected() {
        let set = [("default_ttl".to_owned(), "1h".to_owned()), ("of_another_version".to_owned(), "1".to_owned())];
        let book = ParameterBook::new(&set, &["vcl_path".to_owned()]).unwrap();
        let plain =
            |name: &str| book.plain_values().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned());
        assert_eq!(plain("default_ttl").as_deref(), Some("3600.000"));
        assert_eq!(plain("http_req_size").as_deref(), Some("32768"));
        assert_eq!(book.read("vcl_path", "/a"), Err(Unset::ReadOnly));
        assert_eq!(book.read("nonesuch", "/a"), Err(Unset::Unknown));
        assert_eq!(book.read("http_max_hdr", "1"), Err(Unset::Wrong("Must be at least 32".to_owned())));
        assert_eq!(book.read("default_ttl", "default").unwrap().shown, "120.000");
        let wrong = ParameterBook::new(&[("default_ttl".to_owned(), "-1".to_owned())], &[]).err().unwrap();
        assert!(wrong.contains("(attempting to set param 'default_ttl' to '-1')"), "{wrong}");
    }
}
