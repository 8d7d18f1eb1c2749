//! Holds the import table of ARCHITECTURE.md against what cargo sees: every crate has a row, every row a crate,
//! and nobody imports what its row does not allow.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::page_tables::{self, Allowed, quoted};

/// What breaks the table, one sentence each.
pub fn complaints(architecture: &str, metadata: &Value) -> Vec<String> {
    let table = table(architecture);
    if table.is_empty() {
        return vec!["ARCHITECTURE.md has no table with the columns 'crate' and 'may import'".to_string()];
    }
    let imports = workspace_imports(metadata);
    let mut complaints = Vec::new();
    for (name, imported) in &imports {
        match table.get(name) {
            None => complaints.push(format!("crate {name} has no row in the import table of ARCHITECTURE.md")),
            Some(allowed) => {
                for other in imported.iter().filter(|other| !allowed.has(other)) {
                    complaints.push(format!("crate {name} imports {other}, which its row in ARCHITECTURE.md forbids"));
                }
            }
        }
    }
    for (name, allowed) in &table {
        if !imports.contains_key(name) {
            complaints.push(format!("ARCHITECTURE.md has a row for {name}, which is no crate of the workspace"));
        }
        for other in allowed.names().filter(|other| !imports.contains_key(*other)) {
            complaints.push(format!("ARCHITECTURE.md lets {name} import {other}, which is no crate"));
        }
    }
    complaints
}

/// What the table allows each crate.
fn table(page: &str) -> BTreeMap<String, Allowed> {
    let rows = page_tables::rows(page, ["crate", "may import"]);
    rows.into_iter().filter_map(|[name, imports]| Some((quoted(&name).next()?, Allowed::read(&imports)))).collect()
}

/// Each crate of the workspace with those that it imports, for whatever purpose.
fn workspace_imports(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let members: BTreeSet<&str> = list(&metadata["workspace_members"]).filter_map(Value::as_str).collect();
    let packages: Vec<&Value> =
        list(&metadata["packages"]).filter(|p| p["id"].as_str().is_some_and(|id| members.contains(id))).collect();
    let names: BTreeSet<&str> = packages.iter().filter_map(|p| p["name"].as_str()).collect();
    let imports = |package: &Value| {
        let dependencies = list(&package["dependencies"]).filter(|d| !d["path"].is_null());
        dependencies.filter_map(|d| d["name"].as_str()).filter(|n| names.contains(n)).map(str::to_string).collect()
    };
    packages.iter().filter_map(|p| Some((p["name"].as_str()?.to_string(), imports(p)))).collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(crates: &[(&str, &[&str])]) -> Value {
        let packages: Vec<Value> = crates
            .iter()
            .map(|(name, imports)| {
                let dependencies: Vec<Value> =
                    imports.iter().map(|i| serde_json::json!({"name": i, "path": format!("/{i}")})).collect();
                serde_json::json!({"id": name, "name": name, "dependencies": dependencies})
            })
            .collect();
        let members: Vec<&str> = crates.iter().map(|(name, _)| *name).collect();
        serde_json::json!({"packages": packages, "workspace_members": members})
    }

    fn check(rows: &str, crates: &[(&str, &[&str])], expect: &[&str]) {
        let text = format!("# x\n\n| a | b |\n|---|---|\n\n| crate | holds | may import |\n|---|---|---|\n{rows}\nend");
        let found = complaints(&text, &metadata(crates));
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (complaint, part) in found.iter().zip(expect) {
            assert!(complaint.contains(part), "{complaint:?} says nothing of {part:?}");
        }
    }

    #[test]
    fn the_table_is_held_against_the_crates() {
        let rows = "| `low` | x | — |\n| `high` | y | `low` |\n| `top` | z | all |";
        check(rows, &[("low", &[]), ("high", &["low"]), ("top", &["low", "high"])], &[]);
        check(rows, &[("low", &["high"]), ("high", &[]), ("top", &[])], &["low imports high"]);
        check(rows, &[("low", &[]), ("high", &[]), ("top", &[]), ("new", &[])], &["new has no row"]);
        check(rows, &[("low", &[]), ("high", &["low"])], &["a row for top"]);
        check("", &[("low", &[])], &["no table"]);
    }
}
