//! What a run comes to, by file, and its table in docs/behaviours.md.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::broken_copy::Fate;
use super::mutated_crates::MutatedCrate;
use super::survivors::SurvivorKind;
use crate::project::Project;

const PAGE: &str = "docs/behaviours.md";

/// How many mutants came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub tried: usize,
    pub killed: usize,
    pub timed_out: usize,
    pub not_built: usize,
    pub equal: usize,
    pub open: usize,
    pub unlisted: usize,
}

pub struct Figures {
    /// In the order in which they were tried.
    pub fates: Vec<Fate>,
    by_file: BTreeMap<String, Count>,
    /// Of the crate, tried or not.
    all_count: usize,
    seed: Option<u64>,
    seconds: f64,
}

impl Figures {
    pub fn new(all_count: usize, seed: Option<u64>, seconds: f64) -> Figures {
        Figures { fates: Vec::new(), by_file: BTreeMap::new(), all_count, seed, seconds }
    }

    pub fn add(&mut self, path: &str, fate: &Fate, listed: Option<SurvivorKind>) {
        self.by_file.entry(path.to_string()).or_default().add(fate, listed);
    }

    fn whole(&self) -> Count {
        self.by_file.values().fold(Count::default(), |whole, file| whole.and(file))
    }

    /// In a line.
    pub fn said(&self, name: &str) -> String {
        let Count { tried, killed, timed_out, not_built, equal, open, unlisted } = self.whole();
        let seed = self.seed.map_or(String::new(), |seed| format!(", seed {seed}"));
        format!(
            "{name}: {tried} of {} mutants{seed}: {killed} killed, {timed_out} timed out, {not_built} do not build, {equal} \
             are no other program, {open} not killed yet, {unlisted} not listed; {:.0} s",
            self.all_count, self.seconds
        )
    }

    /// A sentence and a table.
    fn section(&self) -> String {
        let whole = self.whole();
        let mut text = match self.seed {
            Some(seed) if whole.tried < self.all_count => {
                format!("{} of {} mutants were tried, drawn by seed {seed}.\n\n", whole.tried, self.all_count)
            }
            _ => format!("{} of {} mutants were tried.\n\n", whole.tried, self.all_count),
        };
        text += "| file | tried | killed | timed out | not built | no other program | not killed yet |\n";
        text += "|---|---|---|---|---|---|---|\n";
        for (file, count) in &self.by_file {
            let name = file.rsplit_once("/src/").map_or(file.as_str(), |(_, name)| name);
            text += &count.row(&format!("[{name}](../{file})"));
        }
        text + &whole.row("all")
    }
}

impl Count {
    fn add(&mut self, fate: &Fate, listed: Option<SurvivorKind>) {
        self.tried += 1;
        match (fate, listed) {
            (Fate::Killed(_), _) => self.killed += 1,
            (Fate::TimedOut, _) => self.timed_out += 1,
            (Fate::DoesNotBuild, _) => self.not_built += 1,
            (Fate::Survived, Some(SurvivorKind::Equal)) => self.equal += 1,
            (Fate::Survived, Some(SurvivorKind::Open)) => self.open += 1,
            (Fate::Survived, None) => self.unlisted += 1,
        }
    }

    fn and(self, other: &Count) -> Count {
        Count {
            tried: self.tried + other.tried,
            killed: self.killed + other.killed,
            timed_out: self.timed_out + other.timed_out,
            not_built: self.not_built + other.not_built,
            equal: self.equal + other.equal,
            open: self.open + other.open,
            unlisted: self.unlisted + other.unlisted,
        }
    }

    fn row(&self, name: &str) -> String {
        let Count { tried, killed, timed_out, not_built, equal, open, unlisted } = self;
        let open = open + unlisted;
        let mut row = String::new();
        writeln!(row, "| {name} | {tried} | {killed} | {timed_out} | {not_built} | {equal} | {open} |")
            .expect("a string takes all");
        row
    }
}

/// Puts the crate's table under its heading.
pub fn write(project: &Project, of: &MutatedCrate, figures: &Figures) -> Result<(), String> {
    let heading = format!("## {}: {}", of.name, of.what);
    let page = with_section(&project.read(PAGE)?, &heading, &figures.section())
        .ok_or(format!("{PAGE} has no heading '{heading}'"))?;
    std::fs::write(project.root.join(PAGE), page).map_err(|error| format!("{PAGE}: {error}"))
}

fn with_section(page: &str, heading: &str, section: &str) -> Option<String> {
    let start = page.find(&format!("{heading}\n"))? + heading.len() + 1;
    let rest = page[start..].find("\n## ").map_or("", |at| &page[start + at..]);
    Some([&page[..start], "\n", section, rest].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_takes_the_place_of_the_one_before() {
        let page = "# A\n\n## b: c\n\nold\n\n## d: e\n\nold\n";
        assert_eq!(with_section(page, "## b: c", "new\n").unwrap(), "# A\n\n## b: c\n\nnew\n\n## d: e\n\nold\n");
        assert_eq!(with_section(page, "## d: e", "new\n").unwrap(), "# A\n\n## b: c\n\nold\n\n## d: e\n\nnew\n");
        assert_eq!(with_section(page, "## f: g", "new\n"), None);
    }

    #[test]
    fn what_survives_counts_by_its_reason() {
        let mut count = Count::default();
        count.add(&Fate::Survived, Some(SurvivorKind::Equal));
        count.add(&Fate::Survived, None);
        count.add(&Fate::Killed("a".to_string()), None);
        assert_eq!(count.row("a"), "| a | 3 | 1 | 0 | 0 | 1 | 1 |\n");
    }
}
