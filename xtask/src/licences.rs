//! Holds the licences and names of all dependencies against deny.toml: the part of `cargo deny` that needs no
//! network, so that it also runs where cargo-deny is not installed.

use std::collections::BTreeSet;

/// The format for `cargo tree`, which `complaints` reads. Not `cargo metadata`: that lists optional dependencies of
/// dependencies too, which nobody switched on.
pub const TREE_FORMAT: &str = "{p}|{l}";

pub fn complaints(deny: &str, tree: &str) -> Vec<String> {
    let rules = match deny.parse::<toml::Table>() {
        Ok(rules) => rules,
        Err(why) => return vec![format!("deny.toml: {why}")],
    };
    let allowed = strings(rules.get("licenses").and_then(|l| l.get("allow")));
    let banned: Vec<Ban> = rules
        .get("bans")
        .and_then(|b| b.get("deny"))
        .and_then(toml::Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Ban::read)
        .collect();
    let mut complaints = Vec::new();
    let packages: BTreeSet<&str> = tree.lines().filter(|line| !line.is_empty()).collect();
    for package in packages {
        let (named, licence) = package.split_once('|').unwrap_or((package, ""));
        // `name v1.2.3`, then a note for path dependencies and procedural macros; `(*)` marks a repetition.
        let mut words = named.split(' ');
        let name = words.next().unwrap_or_default();
        let version = words.next().unwrap_or_default().trim_start_matches('v');
        let licence = licence.trim_end_matches("(*)").trim_end();
        if !permits(licence, &allowed) {
            complaints
                .push(format!("dependency {name} {version} has the licence '{licence}', not allowed by deny.toml"));
        }
        if banned.iter().any(|ban| ban.matches(name, version)) {
            complaints.push(format!("dependency {name} {version} is banned by deny.toml"));
        }
    }
    complaints
}

/// A banned crate; with a version, only where the version begins like that.
struct Ban {
    name: String,
    version: Option<String>,
}

impl Ban {
    fn read(entry: &toml::Value) -> Option<Ban> {
        let spec = entry.as_str().or_else(|| entry.get("crate").and_then(toml::Value::as_str))?;
        let (name, version) = spec.split_once('@').map_or((spec, None), |(name, version)| (name, Some(version)));
        Some(Ban { name: name.to_string(), version: version.map(|v| v.trim_start_matches('^').to_string()) })
    }

    fn matches(&self, name: &str, version: &str) -> bool {
        let prefix = |wanted: &String| version == wanted || version.starts_with(&format!("{wanted}."));
        self.name == name && self.version.as_ref().is_none_or(prefix)
    }
}

fn strings(value: Option<&toml::Value>) -> BTreeSet<String> {
    let array = value.and_then(toml::Value::as_array).into_iter().flatten();
    array.filter_map(|v| v.as_str().map(str::to_string)).collect()
}

/// Can the SPDX expression be met with allowed licences alone? `/` is the old way to write OR.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any_of(&mut rest, allowed);
    met && rest.is_empty()
}

fn any_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = all_of(rest, allowed);
    while let ["OR", tail @ ..] = *rest {
        *rest = tail;
        met |= all_of(rest, allowed);
    }
    met
}

fn all_of(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = one(rest, allowed);
    while let ["AND", tail @ ..] = *rest {
        *rest = tail;
        met &= one(rest, allowed);
    }
    met
}

fn one(rest: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    match *rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let met = any_of(rest, allowed);
            match *rest {
                [")", tail @ ..] => *rest = tail,
                _ => return false,
            }
            met
        }
        [licence, "WITH", exception, tail @ ..] => {
            *rest = tail;
            allowed.contains(&format!("{licence} WITH {exception}"))
        }
        [licence, tail @ ..] => {
            *rest = tail;
            allowed.contains(*licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expression: &str, met: bool) {
        let allowed = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        assert_eq!(permits(expression, &allowed.map(str::to_string).into()), met, "{expression}");
    }

    #[test]
    fn expressions_are_met_by_allowed_licences() {
        check("MIT", true);
        check("MIT/Apache-2.0", true);
        check("GPL-3.0 OR MIT", true);
        check("GPL-3.0 AND MIT", false);
        check("(MIT OR Apache-2.0) AND Unicode-3.0", true);
        check("(MIT OR Apache-2.0) AND GPL-3.0", false);
        check("Apache-2.0 WITH LLVM-exception", true);
        check("GPL-2.0 WITH Classpath-exception-2.0", false);
        check("", false);
        check("(MIT", false);
    }

    #[test]
    fn every_dependency_is_looked_at() {
        let deny = "[licenses]\nallow = [\"MIT\"]\n[bans]\ndeny = [\"bad\", { crate = \"old@1\", reason = \"x\" }]";
        let check = |tree: &str, expect: &[&str]| assert_eq!(complaints(deny, tree), expect, "{tree}");
        check("a v1.0.0 (/x/a)|MIT\nb v0.1.2|MIT OR X (*)\n\nold v2.0.0 (proc-macro)|MIT", &[]);
        check("a v1.0.0|X", &["dependency a 1.0.0 has the licence 'X', not allowed by deny.toml"]);
        check("bad v1.0.0|MIT\nbad v1.0.0|MIT", &["dependency bad 1.0.0 is banned by deny.toml"]);
        check("old v1.9.0|MIT", &["dependency old 1.9.0 is banned by deny.toml"]);
    }

    #[test]
    fn bans_are_by_name_and_version() {
        let ban = |text: &str| Ban::read(&toml::Value::String(text.to_string())).unwrap();
        assert!(ban("openssl").matches("openssl", "0.10.2"));
        assert!(!ban("openssl").matches("openssl-sys", "0.10.2"));
        assert!(ban("bincode@1").matches("bincode", "1.3.3"));
        assert!(!ban("bincode@1").matches("bincode", "2.0.0"));
        assert!(!ban("bincode@1").matches("bincode", "10.0.0"));
    }
}
