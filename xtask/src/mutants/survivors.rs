//! The closed list of what may survive, xtask/mutants/survivors.toml: mutants that are no other program, and those that no
//! test kills yet, each with its reason. A survivor that is not listed fails the run, and so does an entry that is wrong.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::mutated_crates::CRATES;
use super::mutation::{self, Mutation};
use crate::project::Project;

pub const FILE: &str = "xtask/mutants/survivors.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survivors {
    #[serde(default)]
    pub survivor: Vec<Survivor>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Survivor {
    pub file: String,
    /// The function it stands in; empty outside of any.
    pub within: String,
    pub line: String,
    /// One mutant each, all for one reason.
    pub becomes: Vec<String>,
    /// Of those in the function whose words are alike, from 1.
    #[serde(default = "first")]
    pub which: usize,
    pub kind: SurvivorKind,
    pub reason: String,
}

fn first() -> usize {
    1
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum SurvivorKind {
    /// It does what the unbroken program does, wherever that can be seen: the reason says why.
    Equal,
    /// A fault that no test of the crate sees: the reason says what it would come to, or what sees it instead.
    Open,
}

impl Survivors {
    pub fn read(project: &Project) -> Result<Survivors, String> {
        Survivors::of(&project.read(FILE)?).map_err(|why| format!("{FILE}: {why}"))
    }

    fn of(text: &str) -> Result<Survivors, String> {
        let survivors: Survivors = toml::from_str(text).map_err(|error| error.to_string())?;
        match survivors.survivor.iter().find(|entry| entry.reason.trim().len() < 10) {
            Some(bare) => Err(format!("{} has no reason", bare.said())),
            None => Ok(survivors),
        }
    }

    pub fn entry(&self, file: &str, mutation: &Mutation) -> Option<&Survivor> {
        self.survivor.iter().find(|entry| entry.is_in(file, mutation) && entry.becomes.contains(&mutation.becomes))
    }
}

impl Survivor {
    fn is_in(&self, file: &str, mutation: &Mutation) -> bool {
        self.file == file
            && self.within == mutation.within
            && self.line == mutation.line
            && self.which == mutation.which
    }

    /// What of it is no mutant of the file any more.
    pub fn gone<'a>(&'a self, mutations: &'a [Mutation]) -> impl Iterator<Item = &'a String> {
        let there = |becomes: &String| {
            mutations.iter().any(|mutation| self.is_in(&self.file, mutation) && mutation.becomes == *becomes)
        };
        self.becomes.iter().filter(move |becomes| !there(becomes))
    }

    pub fn said(&self) -> String {
        let Survivor { file, within, line, .. } = self;
        format!("{file}: in '{within}': `{line}`")
    }
}

/// Entries of the list whose line is gone. `tidy` asks, too, because it takes no time.
pub fn stale(project: &Project) -> Result<Vec<String>, String> {
    let mut mutants: BTreeMap<String, Vec<Mutation>> = BTreeMap::new();
    let mut stale = Vec::new();
    for entry in &Survivors::read(project)?.survivor {
        let found = mutants
            .entry(entry.file.clone())
            .or_insert_with(|| project.read(&entry.file).map(|text| mutation::all(&text)).unwrap_or_default());
        for gone in entry.gone(found) {
            stale.push(format!("{}: there is no such mutant any more: {} → `{gone}`", FILE, entry.said()));
        }
        if !CRATES.iter().any(|of| of.has(entry.file.as_ref())) {
            stale.push(format!("{}: {} is not mutated", FILE, entry.file));
        }
    }
    Ok(stale)
}

/// How an entry of the list would begin.
pub fn draft(file: &str, mutation: &Mutation) -> String {
    let Mutation { within, line, becomes, which, .. } = mutation;
    let [line, becomes] = [line, becomes].map(|text| toml::Value::String(text.clone()).to_string());
    let which = if *which == 1 { String::new() } else { format!("which = {which}\n") };
    format!(
        "[[survivor]]\nfile = \"{file}\"\nwithin = \"{within}\"\nline = {line}\nbecomes = [{becomes}]\n{which}kind \
         = \"open\"\nreason = \"\"\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE_MUTATED: &str = "crates/rules/src/a.rs";

    #[test]
    fn an_entry_is_found_by_what_it_says_of_the_line() {
        let mutations = mutation::all("fn a() {\n    b == \"c\" < d;\n}");
        let text: String = mutations.iter().map(|mutation| draft(FILE_MUTATED, mutation)).collect();
        let survivors = Survivors::of(&text.replace("\"\"\n", "\"nobody can see it\"\n")).unwrap();
        let found = mutations.iter().filter(|mutation| survivors.entry(FILE_MUTATED, mutation).is_some());
        assert_eq!(found.count(), mutations.len());
        assert!(survivors.entry("crates/rules/src/b.rs", &mutations[0]).is_none());
        assert!(survivors.survivor.iter().all(|entry| entry.gone(&mutations).count() == 0));
        assert!(survivors.survivor.iter().all(|entry| entry.gone(&[]).count() == 1));
    }

    #[test]
    fn an_entry_needs_a_reason() {
        let mutations = mutation::all("b == c;");
        let why = Survivors::of(&draft(FILE_MUTATED, &mutations[0])).err();
        assert!(why.is_some_and(|why| why.ends_with("has no reason")));
    }
}
