//! Holds the table of walls of ARCHITECTURE.md against `crates/larder`: which folder of it may name what of the rest, and by whom
//! it may be named. A folder is a module of the crate's root with files beneath it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::module_map::ModuleMap;
use crate::page_tables::{self, Allowed, quoted};

/// The crate that has walls.
const CRATE: &str = "larder";

/// A row of the table.
struct Wall {
    may_name: Allowed,
    named_by: Allowed,
}

/// What breaks the walls, a sentence each.
pub fn complaints(architecture: &str, crates: &BTreeMap<String, ModuleMap>) -> Vec<String> {
    let walls = walls(architecture);
    let Some(map) = crates.get(CRATE) else { return vec![format!("no crate is called {CRATE}")] };
    let rooms: Vec<String> = map.files.iter().map(|file| room(file)).collect();
    let mut complaints = Vec::new();
    for folder in folders(map).iter().filter(|folder| !walls.contains_key(*folder)) {
        complaints.push(format!("crates/{CRATE}/src/{folder} has no row in the table of walls of ARCHITECTURE.md"));
    }
    for name in walls.iter().flat_map(|(folder, wall)| [folder].into_iter().chain(wall.names())) {
        if !rooms.contains(name) {
            complaints.push(format!("the table of walls of ARCHITECTURE.md names {name}, which is nothing in {CRATE}"));
        }
    }
    let edges = map.edges();
    let named: BTreeSet<_> = edges.keys().map(|(from, to)| (&rooms[*from], &rooms[*to])).collect();
    for (folder, wall) in &walls {
        let unused = wall.may_name.names().map(|other| (folder, other));
        let unused =
            unused.chain(wall.named_by.names().map(|other| (other, folder))).filter(|pair| !named.contains(pair));
        complaints
            .extend(unused.map(|(one, other)| format!("the table of walls lets {one} name {other}; it does not")));
    }
    for ((from, to), names) in edges {
        let (room, other) = (&rooms[from], &rooms[to]);
        let names = || names.iter().cloned().collect::<Vec<_>>().join(" ");
        let (file, of) = (map.files[from].display(), map.files[to].display());
        if room != other && walls.get(room).is_some_and(|wall| !wall.may_name.has(other)) {
            complaints.push(format!("{CRATE}: {file} names {} of {of}, which the walls of {room} forbid", names()));
        } else if room != other && walls.get(other).is_some_and(|wall| !wall.named_by.has(room)) {
            complaints.push(format!("{CRATE}: {file} names {} of {of}, and is not among those who may", names()));
        }
    }
    complaints
}

impl Wall {
    fn names(&self) -> impl Iterator<Item = &String> {
        self.may_name.names().chain(self.named_by.names())
    }
}

fn walls(page: &str) -> BTreeMap<String, Wall> {
    let rows = page_tables::rows(page, ["folder", "may name", "named by"]);
    let wall = |[folder, may_name, named_by]: [String; 3]| {
        let wall = Wall { may_name: Allowed::read(&may_name), named_by: Allowed::read(&named_by) };
        Some((quoted(&folder).next()?, wall))
    };
    rows.into_iter().filter_map(wall).collect()
}

/// The module of the root that a file is or lies beneath.
fn room(file: &Path) -> String {
    let first = file.iter().next().map(Path::new).unwrap_or(file);
    first.with_extension("").to_string_lossy().into_owned()
}

/// The modules of the root that have files beneath them.
fn folders(map: &ModuleMap) -> BTreeSet<String> {
    map.files.iter().filter(|file| file.components().count() > 1).map(|file| room(file)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    const FILES: [(&str, &str); 4] = [
        ("main.rs", "mod tool;\nmod words;\nfn f() { tool::a::run() }"),
        ("tool.rs", ""),
        ("tool/a.rs", ""),
        ("words.rs", ""),
    ];

    fn check(row: &str, planted: (&str, &str), expect: &[&str]) {
        let page = format!("| folder | holds | may name | named by |\n|---|---|---|---|\n{row}\n");
        let mut sources = FILES.map(|(path, text)| (PathBuf::from(path), text.to_string())).to_vec();
        sources.push((PathBuf::from(planted.0), planted.1.to_string()));
        let crates = BTreeMap::from([(CRATE.to_string(), ModuleMap::read(&sources))]);
        let found = complaints(&page, &crates);
        assert_eq!(found.len(), expect.len(), "{found:?}");
        for (complaint, part) in found.iter().zip(expect) {
            assert!(complaint.contains(part), "{complaint:?} says nothing of {part:?}");
        }
    }

    #[test]
    fn walls_hold_on_both_sides() {
        let row = "| `tool` | x | `words` | `main` |";
        check(row, ("tool/b.rs", "use crate::words::W;"), &[]);
        check(row, ("tool/b.rs", "use crate::tool::a::A;"), &["lets tool name words; it does not"]);
        let row = "| `tool` | x | — | `main` |";
        check(row, ("other.rs", "use crate::tool::a::A;"), &["other.rs names A of tool/a.rs, and is not"]);
        check(
            "| `tool` | x | — | `main` |",
            ("tool/b.rs", "use crate::words::W;"),
            &["names W of words.rs, which the walls"],
        );
        check("| `tool` | x | all | all |", ("tool/b.rs", "use crate::words::W;"), &[]);
    }

    #[test]
    fn the_table_is_held_against_the_folders() {
        check("| `tool` | x | `gone` | `main` |", ("b.rs", ""), &["names gone", "lets tool name gone; it does not"]);
        check("| `tool` | x | all | all |", ("new/b.rs", ""), &["src/new has no row"]);
    }
}
