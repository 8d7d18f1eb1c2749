//! Tables of Markdown pages that `tidy` reads.

use std::collections::BTreeSet;

/// What a cell of a table allows: the names that it quotes, or all.
#[derive(Debug)]
pub enum Allowed {
    These(BTreeSet<String>),
    All,
}

/// The cells of the first table whose header has all of these columns, in this order for each row.
pub fn rows<const N: usize>(page: &str, columns: [&str; N]) -> Vec<[String; N]> {
    let mut rows = Vec::new();
    let mut places: Option<[usize; N]> = None;
    for line in page.lines() {
        let Some(inner) = line.trim().strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) else {
            if rows.is_empty() {
                places = None;
                continue;
            }
            break;
        };
        let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
        match places {
            None => {
                let found = columns.map(|name| cells.iter().position(|cell| *cell == name));
                places = found.iter().all(Option::is_some).then(|| found.map(Option::unwrap_or_default));
            }
            Some(places) => {
                let row = places.map(|at| cells.get(at).copied().unwrap_or_default().to_string());
                rows.extend(Some(row).filter(|row| !row[0].starts_with("--")));
            }
        }
    }
    rows
}

/// What a cell has between back quotes.
pub fn quoted(cell: &str) -> impl Iterator<Item = String> + '_ {
    cell.split('`').skip(1).step_by(2).map(str::to_string)
}

impl Allowed {
    pub fn read(cell: &str) -> Allowed {
        if cell == "all" { Allowed::All } else { Allowed::These(quoted(cell).collect()) }
    }

    pub fn has(&self, name: &str) -> bool {
        match self {
            Allowed::These(names) => names.contains(name),
            Allowed::All => true,
        }
    }

    pub fn names(&self) -> impl Iterator<Item = &String> {
        match self {
            Allowed::These(names) => Some(names),
            Allowed::All => None,
        }
        .into_iter()
        .flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_with_the_columns_is_found() {
        let page = "| a | b |\n|---|---|\n| 1 | 2 |\n\ntext\n| b | x | a |\n|--|--|--|\n| `3` | - | 4 |\n| 5 |\nend\n| 6 | 7 | 8 |";
        assert_eq!(rows(page, ["x", "a"]), [["-".to_string(), "4".to_string()], [String::new(), String::new()]]);
        assert_eq!(rows(page, ["b", "a"])[0], ["2", "1"]);
        assert_eq!(rows(page, ["c"]), [[""; 1]; 0]);
        assert_eq!(quoted("`a`, `b` and c").collect::<Vec<_>>(), ["a", "b"]);
    }
}
