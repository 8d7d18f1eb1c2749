//! The largest circle of imports of each crate: files that all name each other, directly or through others, so that none of
//! them can be understood, tested or moved without the rest.
//!
//! `xtask/allowances.toml` says how many files the largest circle of a crate may have. `cargo xtask tidy --circles` shows the
//! files of a circle and what would open it.

use std::collections::{BTreeMap, BTreeSet};

use crate::allowances::{self, Allowances, FILE};
use crate::findings::Findings;
use crate::module_map::{Edges, ModuleMap};
use crate::project::Project;

/// So many edges are proposed to somebody who wants to open a circle.
const PROPOSED_MAX: usize = 40;

/// Circles that are larger than allowed, and as a warning those that are smaller.
pub fn look(crates: &BTreeMap<String, ModuleMap>, allowed: &Allowances, findings: &mut Findings) {
    for (name, map) in crates {
        let size = largest(&map.edges()).len();
        let allowed = allowed.circles.get(name).copied().unwrap_or(0);
        if size > allowed {
            findings.complaints.push(format!(
                "crate {name}: its largest circle of imports has {size} files, and {FILE} allows {allowed}: \
                 `cargo xtask tidy --circles {name}` shows what would open it"
            ));
        }
        if size < allowed {
            findings.warnings.push(format!("{FILE} allows {name} a circle of {allowed} files; its largest has {size}"));
        }
    }
    findings.complaints.extend(allowances::strangers(crates, allowed.circles.keys(), "circles"));
}

/// Prints the largest circle of each of these crates, or of all, and what would open it.
pub fn task(project: &Project, named: &[&str]) -> Result<(), String> {
    let crates = ModuleMap::of_crates(project)?;
    if let Some(name) = named.iter().find(|name| !crates.contains_key(**name)) {
        return Err(format!("no crate is called {name}"));
    }
    for (name, map) in crates.iter().filter(|(name, _)| named.is_empty() || named.contains(&name.as_str())) {
        print!("{}", report(name, map));
    }
    Ok(())
}

/// A circle, and what opens it when one thing is done after the other, the most telling first.
fn report(name: &str, map: &ModuleMap) -> String {
    use std::fmt::Write as _;
    let mut edges = map.edges();
    let circle = largest(&edges);
    let file = |index: usize| map.files[index].display();
    let mut text = format!("crate {name}: {} files in its largest circle\n", circle.len());
    edges.retain(|(from, to), _| circle.contains(from) && circle.contains(to));
    for member in &circle {
        let count = |own: fn(&(usize, usize)) -> usize| edges.keys().filter(|edge| own(edge) == *member).count();
        let (names, named) = (count(|edge| edge.0), count(|edge| edge.1));
        let _ = writeln!(text, "  {} names {names} of them and is named by {named}", file(*member));
    }
    for _ in 0..PROPOSED_MAX {
        let Some((cut, left)) = most_telling(&edges) else { break };
        let _ = match &cut {
            Cut::Edge(from, to) => {
                let names: Vec<&str> = edges[&(*from, *to)].iter().map(String::as_str).collect();
                writeln!(text, "  {left:>4} if {} does not name {}: {}", file(*from), file(*to), names.join(" "))
            }
            Cut::Name(at, name) => writeln!(text, "  {left:>4} if {name} moves from {} to a leaf", file(*at)),
        };
        cut.make(&mut edges);
    }
    text
}

/// What may open a circle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cut {
    /// The first file names nothing of the second any more.
    Edge(usize, usize),
    /// What of this name the file defines is defined by one that names nothing itself.
    Name(usize, String),
}

impl Cut {
    fn make(&self, edges: &mut Edges) {
        match self {
            Cut::Edge(from, to) => drop(edges.remove(&(*from, *to))),
            Cut::Name(at, name) => edges.retain(|(_, to), names| {
                if to == at {
                    names.remove(name);
                }
                !names.is_empty()
            }),
        }
    }
}

/// What leaves the largest circle smallest, and how large that is then; of several a name that moves, and the edge of fewest names.
fn most_telling(edges: &Edges) -> Option<(Cut, usize)> {
    let circle = largest(edges);
    let within = edges.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to));
    let mut candidates = BTreeMap::new();
    for ((from, to), names) in within {
        candidates.insert(Cut::Edge(*from, *to), names.len());
        candidates.extend(names.iter().map(|name| (Cut::Name(*to, name.clone()), 0)));
    }
    let rated = candidates.into_iter().map(|(cut, names)| {
        let mut without = edges.clone();
        cut.make(&mut without);
        (largest(&without).len(), names, cut)
    });
    rated.min().map(|(left, _, cut)| (cut, left))
}

/// The files of the largest circle; none, where nothing is in one.
pub fn largest(edges: &Edges) -> BTreeSet<usize> {
    let circles = circles(edges);
    let largest = circles.into_iter().filter(|circle| circle.len() > 1).max_by_key(Vec::len);
    largest.unwrap_or_default().into_iter().collect()
}

/// The strongly connected components, by Kosaraju's algorithm.
fn circles(edges: &Edges) -> Vec<Vec<usize>> {
    let files = edges.keys().map(|(from, to)| 1 + from.max(to)).max().unwrap_or(0);
    let (mut forth, mut back) = (vec![Vec::new(); files], vec![Vec::new(); files]);
    for &(from, to) in edges.keys() {
        forth[from].push(to);
        back[to].push(from);
    }
    let (mut order, mut seen) = (Vec::new(), vec![false; files]);
    for file in 0..files {
        reach(file, &forth, &mut seen, &mut order);
    }
    let mut seen = vec![false; files];
    let mut circles = Vec::new();
    for &file in order.iter().rev() {
        let mut circle = Vec::new();
        reach(file, &back, &mut seen, &mut circle);
        circles.push(circle);
    }
    circles
}

/// Adds what is reached from a file and was not seen yet, each behind all that is reached from it.
fn reach(file: usize, edges: &[Vec<usize>], seen: &mut [bool], order: &mut Vec<usize>) {
    if !std::mem::replace(&mut seen[file], true) {
        for &next in &edges[file] {
            reach(next, edges, seen, order);
        }
        order.push(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(pairs: &[(usize, usize)]) -> Edges {
        pairs.iter().map(|pair| (*pair, BTreeSet::new())).collect()
    }

    #[test]
    fn the_largest_circle_is_found() {
        let circle = |pairs: &[(usize, usize)]| largest(&edges(pairs)).into_iter().collect::<Vec<_>>();
        assert_eq!(circle(&[]), [0; 0]);
        assert_eq!(circle(&[(0, 1), (1, 2), (0, 2)]), [0; 0]);
        assert_eq!(circle(&[(0, 1), (1, 0), (1, 2), (2, 3), (3, 4), (4, 2), (4, 5)]), [2, 3, 4]);
        assert_eq!(circle(&[(0, 1), (1, 0), (1, 2), (2, 1)]), [0, 1, 2]);
    }

    #[test]
    fn what_opens_most_is_proposed_first() {
        let two_rings = edges(&[(0, 1), (1, 2), (2, 0), (2, 3), (3, 2)]);
        assert_eq!(most_telling(&two_rings), Some((Cut::Edge(0, 1), 2)));
    }

    #[test]
    fn a_name_that_many_need_moves_to_a_leaf() {
        let mut ring = edges(&[(0, 1)]);
        ring.extend(
            [((1, 0), "A"), ((2, 0), "A"), ((0, 2), "B")].map(|(edge, name)| (edge, [name.to_string()].into())),
        );
        assert_eq!(most_telling(&ring), Some((Cut::Name(0, "A".to_string()), 0)));
    }
}
