//! The variables: which there are, of which type, and where they may be read, set and unset.
//!
//! One table for all versions (`variable_table`); docs/vcl-variables.md is made from it.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::subroutines::MethodSet;
use crate::types::Type;
use crate::variable_table::ROWS;

/// In which syntax a row of the table is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    Any,
    /// Only under `vcl 4.0;`.
    Vcl40,
    /// Said to be of 4.1 only. Accepted under 4.0 too, unless 4.0 has a row of its own.
    Vcl41,
}

/// A row of the table, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VariableId(pub u8);

/// A variable. The headers of a message are one.
#[derive(Debug)]
pub struct Variable {
    pub name: &'static str,
    pub of: Type,
    pub readable: MethodSet,
    pub writable: MethodSet,
    pub unsettable: MethodSet,
    pub syntax: Syntax,
    pub since: &'static str,
}

impl VariableId {
    pub fn get(self) -> &'static Variable {
        &table().rows[self.0 as usize]
    }
}

/// What a name means.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Variable(VariableId),
    /// Of `req.http.*` and its like, the name of the header.
    Header(VariableId, String),
    /// Of `storage.<name>.*`, the name of the store.
    Storage(VariableId, String),
}

struct Table {
    rows: Vec<Variable>,
    by_name: HashMap<&'static str, Vec<u8>>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut by_name: HashMap<&'static str, Vec<u8>> = HashMap::new();
        let rows = ROWS.iter().enumerate().map(|(index, &(name, of, read, write, unset, syntax, since))| {
            by_name.entry(name).or_default().push(index as u8);
            let (readable, writable) = (MethodSet::by_words(read), MethodSet::by_words(write));
            Variable { name, of, readable, writable, unsettable: MethodSet::by_words(unset), syntax, since }
        });
        Table { rows: rows.collect(), by_name }
    })
}

/// The variable of a dotted name, in any case of letters. `None` when nothing is called that in this version.
pub fn find(parts: &[&str], version: u8) -> Option<Found> {
    let lower: Vec<String> = parts.iter().map(|part| part.to_ascii_lowercase()).collect();
    if let [message, http, _] = &lower[..]
        && http == "http"
    {
        // The two rows for single headers say what newer versions forbid; the program refers to the message's row.
        let row = pick(&format!("{message}.http.*"), version)?;
        return Some(Found::Header(row, parts[2].to_owned()));
    }
    if let [storage, _, property] = &lower[..]
        && storage == "storage"
    {
        let row = pick(&format!("storage.<name>.{property}"), version)?;
        return Some(Found::Storage(row, parts[1].to_owned()));
    }
    pick(&lower.join("."), version).map(Found::Variable)
}

fn pick(name: &str, version: u8) -> Option<VariableId> {
    let table = table();
    let rows = table.by_name.get(name)?;
    let fits = |row: &&u8| match table.rows[**row as usize].syntax {
        Syntax::Any => true,
        Syntax::Vcl40 => version <= 40,
        Syntax::Vcl41 => version >= 41,
    };
    rows.iter().find(fits).map(|row| VariableId(*row))
}

/// Headers that frame a body: since 7.4 they cannot be set or unset.
pub fn is_framing_header(header: &str) -> bool {
    header.eq_ignore_ascii_case("content-length") || header.eq_ignore_ascii_case("transfer-encoding")
}

/// All names, for suggestions.
pub fn names() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.0)
}

/// docs/vcl-variables.md, as it should be.
pub fn documentation() -> String {
    let mut page = String::from(
        "# The variables of VCL\n\n\
         In *client* subroutines (vcl_recv, _pipe, _pass, _hash, _purge, _miss, _hit, _deliver, _synth), *backend*\n\
         subroutines (vcl_backend_fetch, _refresh, _response, _error; *b-resp* without _fetch), or *all*, which adds\n\
         vcl_init and vcl_fini. This page is made from crates/vcl/src/variable_table.rs:\n\
         `UPDATE_DOCS=1 cargo test --release -p vcl` writes it anew.\n\n\
         | variable | type | read | set | unset | since |\n|---|---|---|---|---|---|\n",
    );
    for (name, of, read, write, unset, syntax, since) in ROWS {
        let only = match syntax {
            Syntax::Any => "",
            Syntax::Vcl40 => " (4.0 only)",
            Syntax::Vcl41 => " (4.1)",
        };
        page.push_str(&format!("| `{name}`{only} | {} | {read} | {write} | {unset} | {since} |\n", of.name()));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subroutines::Method;

    #[test]
    fn the_table_is_whole() {
        assert_eq!(ROWS.len(), 163);
        for (index, row) in ROWS.iter().enumerate() {
            let same = ROWS[index + 1..].iter().filter(|other| other.0 == row.0 && other.5 == row.5).count();
            assert_eq!(same, 0, "{} is there twice", row.0);
            assert_eq!(row.0, row.0.to_ascii_lowercase());
            for words in [row.2, row.3, row.4] {
                let known = words.split(", ").filter(|word| !word.is_empty());
                known.for_each(|word| assert!(!MethodSet::by_words(word).is_empty(), "{}: {word}", row.0));
            }
            assert!(!MethodSet::by_words(row.2).is_empty() || row.1 == Type::Body, "{} can be read nowhere", row.0);
        }
    }

    #[test]
    fn the_documentation_is_made_from_this_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/vcl-variables.md");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, documentation()).expect("docs/ can be written");
        }
        assert_eq!(std::fs::read_to_string(path).unwrap_or_default(), documentation(), "UPDATE_DOCS=1 writes it anew");
    }

    #[test]
    fn names_are_found_by_version() {
        let check = |name: &str, version, expect: Option<(&str, bool)>| {
            let parts: Vec<&str> = name.split('.').collect();
            let found = find(&parts, version).map(|found| match found {
                Found::Variable(id) | Found::Header(id, _) | Found::Storage(id, _) => id.get(),
            });
            assert_eq!(found.map(|v| (v.name, v.writable.has(Method::Recv))), expect, "{name} {version}");
        };
        check("Req.URL", 41, Some(("req.url", true)));
        check("req.http.X-Y", 41, Some(("req.http.*", true)));
        check("req.proto", 40, Some(("req.proto", true)));
        check("req.proto", 41, Some(("req.proto", false)));
        check("req.esi", 41, None);
        check("req.esi", 40, Some(("req.esi", true)));
        check("sess.xid", 40, None);
        check("sess.xid", 41, Some(("sess.xid", false)));
        check("storage.s0.happy", 41, Some(("storage.<name>.happy", false)));
        check("req.nosuch", 41, None);
    }
}
