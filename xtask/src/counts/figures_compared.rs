//! NamedFigures of several sources held against one another: which are equal, and which are not.

use std::collections::{BTreeMap, BTreeSet};

/// Of what is made up of many exchanges, so many are shown.
const SHOWN_MAX: usize = 12;

#[derive(Debug, Default)]
pub struct Comparison {
    pub equal: usize,
    pub wrong: Vec<String>,
    /// Goes before what is wrong.
    pub within: String,
}

impl Comparison {
    /// The same figures, by kind, of two or more sources. What one does not name it has none of.
    pub fn same(&mut self, what: &str, sources: &[(&str, &BTreeMap<String, u64>)]) {
        let kinds: BTreeSet<&String> = sources.iter().flat_map(|(_, figures)| figures.keys()).collect();
        for kind in kinds {
            let figures: Vec<u64> = sources.iter().map(|(_, of)| of.get(kind).copied().unwrap_or(0)).collect();
            let said = sources.iter().zip(&figures).map(|((source, _), figure)| format!("{source} {figure}"));
            self.note(figures.windows(2).all(|two| two[0] == two[1]), || {
                format!("{what}, {kind}: {}", said.collect::<Vec<_>>().join(", "))
            });
        }
    }

    /// One figure of two or more sources.
    pub fn number(&mut self, what: &str, sources: &[(&str, u64)]) {
        let is_equal = sources.windows(2).all(|two| two[0].1 == two[1].1);
        self.note(is_equal, || {
            let said = sources.iter().map(|(source, figure)| format!("{source} {figure}"));
            format!("{what}: {}", said.collect::<Vec<_>>().join(", "))
        });
    }

    /// One figure that lies between two others.
    pub fn between(&mut self, what: &str, [low, is, high]: [(&str, u64); 3]) {
        self.note(low.1 <= is.1 && is.1 <= high.1, || {
            format!("{what}: {} {} is not between {} {} and {} {}", is.0, is.1, low.0, low.1, high.0, high.1)
        });
    }

    /// Exchanges that are not alike to two sources, each with what they say; `looked_at` of them were compared.
    pub fn each(&mut self, what: &str, looked_at: usize, unlike: Vec<String>) {
        self.equal += looked_at - unlike.len().min(looked_at);
        let count = unlike.len();
        for one in unlike.into_iter().take(SHOWN_MAX) {
            self.wrong.push(format!("{}{what}: {one}", self.within));
        }
        if count > SHOWN_MAX {
            self.wrong.push(format!("{}{what}: and {} more", self.within, count - SHOWN_MAX));
        }
    }

    fn note(&mut self, is_right: bool, says: impl FnOnce() -> String) {
        match is_right {
            true => self.equal += 1,
            false => {
                let said = says();
                self.wrong.push(format!("{}{said}", self.within));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(of: &[(&str, u64)]) -> BTreeMap<String, u64> {
        of.iter().map(|(name, figure)| (name.to_string(), *figure)).collect()
    }

    #[test]
    fn one_more_is_found_whichever_source_has_it() {
        let (log, metrics) = (figures(&[("hit", 3), ("miss", 1)]), figures(&[("hit", 4), ("miss", 1), ("pass", 0)]));
        let mut comparison = Comparison::default();
        comparison.same("responses", &[("log", &log), ("events", &log), ("metrics", &metrics)]);
        assert_eq!(
            (comparison.equal, &comparison.wrong[..]),
            (2, &["responses, hit: log 3, events 3, metrics 4".to_owned()][..])
        );
        comparison.number("bytes", &[("log", 7), ("client", 7)]);
        comparison.number("bytes", &[("log", 7), ("client", 6)]);
        comparison.between("faults", [("a", 1), ("b", 2), ("c", 2)]);
        comparison.between("faults", [("a", 1), ("b", 3), ("c", 2)]);
        assert_eq!((comparison.equal, comparison.wrong.len()), (4, 3));
    }

    #[test]
    fn not_all_of_many_exchanges_are_shown() {
        let mut comparison = Comparison::default();
        comparison.each("exchanges", 100, (0..20).map(|n| n.to_string()).collect());
        assert_eq!((comparison.equal, comparison.wrong.len()), (80, SHOWN_MAX + 1));
    }
}
