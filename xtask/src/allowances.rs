//! What is not yet as it should be, and how much of it there may be: `xtask/allowances.toml`. `tidy` fails when there is more,
//! so that it only shrinks.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::module_map::ModuleMap;
use crate::project::Project;

/// Where they stand.
pub const FILE: &str = "xtask/allowances.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Allowances {
    /// The number of files in the largest circle of imports, by crate; one that is missing may have no circle.
    pub circles: BTreeMap<String, usize>,
    /// The names that several types of a crate have; one that is missing may have none.
    pub homonyms: BTreeMap<String, BTreeSet<String>>,
}

impl Allowances {
    pub fn read(project: &Project) -> Result<Allowances, String> {
        toml::from_str(&project.read(FILE)?).map_err(|e| format!("{FILE}: {e}"))
    }
}

/// Names in a table of the file that are no crate's.
pub fn strangers<'a>(
    crates: &BTreeMap<String, ModuleMap>,
    named: impl Iterator<Item = &'a String>,
    table: &str,
) -> Vec<String> {
    let strangers = named.filter(|name| !crates.contains_key(*name));
    strangers.map(|name| format!("{FILE}: [{table}] names {name}, which is no crate")).collect()
}
