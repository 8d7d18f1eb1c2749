//! Conditions of HAProxy's rules (`if { path_beg /a } !known or METH_POST`) over named and nameless tests, and what of some requests
//! meets one: a list of cells, of which the first that a request is in says whether it does.

use std::collections::BTreeMap;

use crate::import::haproxy_acls::{Alternative, TestWorld, alternatives, predefined, unsure};
use crate::import::nginx_conf::Directive;
use crate::import::request_cells::{Asks, RequestCell};

/// A condition that is longer is none that a person wrote.
const TERMS_MAX: usize = 64;
/// Cells of one condition.
pub const CELLS_MAX: usize = 1_024;

/// Does a request meet a condition?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Met {
    Yes,
    No,
    /// Nobody can tell here.
    Unknown,
}

/// `if` or `unless`, and what stands behind it; or nothing, which everybody meets.
#[derive(Clone, Debug, Default)]
pub struct RuleCondition {
    /// One of them is met by all of its tests.
    terms: Vec<Vec<TermTest>>,
    is_unless: bool,
    is_there: bool,
}

#[derive(Clone, Debug)]
struct TermTest {
    is_not: bool,
    alternatives: Vec<Alternative>,
}

/// The `acl` lines of a section.
pub type NamedTests = BTreeMap<String, Vec<Alternative>>;

/// Lines of one name are alternatives.
pub fn named_tests(lines: &[Directive], world: &TestWorld<'_>) -> NamedTests {
    let mut named = NamedTests::new();
    for line in lines.iter().filter(|line| line.name == "acl") {
        let known = named.entry(line.argument(0).to_owned()).or_default();
        known.extend(alternatives(line.arguments.get(1..).unwrap_or_default(), world));
    }
    named
}

/// The words of a rule without its condition, and the condition.
pub fn divided<'a>(words: &'a [String], named: &NamedTests, world: &TestWorld<'_>) -> (&'a [String], RuleCondition) {
    let is_word = |word: &String| word == "if" || word == "unless";
    match words.iter().position(is_word) {
        Some(at) => {
            let terms = terms(&words[at + 1..], named, world);
            (&words[..at], RuleCondition { terms, is_unless: words[at] == "unless", is_there: true })
        }
        None => (words, RuleCondition::default()),
    }
}

fn terms(words: &[String], named: &NamedTests, world: &TestWorld<'_>) -> Vec<Vec<TermTest>> {
    let mut terms = vec![Vec::new()];
    let mut words = words.iter();
    let mut is_not = false;
    while let Some(word) = words.next() {
        let bare = word.trim_start_matches('!');
        is_not ^= (word.len() - bare.len()) % 2 == 1;
        let alternatives = match bare {
            "" => continue,
            "or" | "||" => {
                terms.push(Vec::new());
                continue;
            }
            "and" | "&&" => continue,
            "{" => {
                let inside: Vec<String> = words.by_ref().take_while(|word| *word != "}").cloned().collect();
                alternatives(&inside, world)
            }
            name => named.get(name).cloned().or_else(|| predefined(name)).unwrap_or_else(unsure),
        };
        if let Some(term) = terms.last_mut() {
            term.push(TermTest { is_not: std::mem::take(&mut is_not), alternatives });
        }
    }
    if terms.len() > TERMS_MAX || terms.iter().any(|term| term.len() > TERMS_MAX) {
        return vec![vec![TermTest { is_not: false, alternatives: unsure() }]];
    }
    terms
}

impl RuleCondition {
    /// Is it the same for everybody? Then whether all meet it.
    pub fn constant(&self) -> Option<bool> {
        match &self.cells(&RequestCell::default(), &|_| false)[..] {
            [(cell, met @ (Met::Yes | Met::No)), ..] if *cell == RequestCell::default() => Some(*met == Met::Yes),
            _ => None,
        }
    }

    /// Who of a cell meets it: the first that a request is in says so, and the last is the cell itself. `is_stale`: what is asked
    /// has been changed by a rule before, and nobody knows into what.
    pub fn cells(&self, cell: &RequestCell, is_stale: &dyn Fn(&Asks) -> bool) -> Vec<(RequestCell, Met)> {
        if !self.is_there {
            return vec![(cell.clone(), Met::Yes)];
        }
        let mut found = Vec::new();
        decide(cell, &self.terms, is_stale, &mut found);
        if found.len() > CELLS_MAX {
            return vec![(cell.clone(), Met::Unknown)];
        }
        if self.is_unless {
            for (_, met) in &mut found {
                *met = match *met {
                    Met::Yes => Met::No,
                    Met::No => Met::Yes,
                    Met::Unknown => Met::Unknown,
                };
            }
        }
        // What stands behind a cell that takes all is nobody's.
        let end = found.iter().position(|(one, _)| one == cell).map_or(found.len(), |at| at + 1);
        found.truncate(end);
        found
    }
}

fn decide(
    cell: &RequestCell,
    terms: &[Vec<TermTest>],
    is_stale: &dyn Fn(&Asks) -> bool,
    found: &mut Vec<(RequestCell, Met)>,
) {
    if found.len() > CELLS_MAX {
        return;
    }
    let Some((term, others)) = terms.split_first() else { return found.push((cell.clone(), Met::No)) };
    let (not, is): (Vec<&TermTest>, Vec<&TermTest>) = term.iter().partition(|test| test.is_not);
    // The sure ones come first: who is in one of them has met it, whatever else could be.
    let mut positive = meeting(cell, &is, is_stale);
    positive.sort_by_key(|(_, is_sure)| !is_sure);
    for (cell, is_sure) in positive {
        let mut rest = Some((cell, is_sure));
        for alternative in not.iter().flat_map(|test| &test.alternatives) {
            let Some((cell, is_sure)) = rest.take() else { break };
            let is_known = alternative.is_sure && !alternative.asks.as_ref().is_some_and(is_stale);
            rest = match &alternative.asks {
                None if is_known => None,
                Some(Asks::Path(test)) if is_known => cell.without_path(test).map(|cell| (cell, is_sure)),
                Some(asks) if is_known => {
                    if let Some(those) = cell.asking(asks) {
                        decide(&those, others, is_stale, found);
                    }
                    Some((cell, is_sure))
                }
                Some(asks) if !is_stale(asks) => {
                    found.extend(cell.asking(asks).map(|those| (those, Met::Unknown)));
                    Some((cell, is_sure))
                }
                _ => Some((cell, false)),
            };
        }
        found.extend(rest.map(|(cell, is_sure)| (cell, if is_sure { Met::Yes } else { Met::Unknown })));
    }
    decide(cell, others, is_stale, found);
}

/// Who of a cell meets all of these tests, and whether that is sure.
fn meeting(cell: &RequestCell, tests: &[&TermTest], is_stale: &dyn Fn(&Asks) -> bool) -> Vec<(RequestCell, bool)> {
    let mut cells = vec![(cell.clone(), true)];
    for test in tests {
        let mut narrower = Vec::new();
        for ((cell, is_sure), alternative) in
            cells.iter().flat_map(|one| test.alternatives.iter().map(move |alternative| (one, alternative)))
        {
            match &alternative.asks {
                Some(asks) if !is_stale(asks) => {
                    narrower.extend(cell.asking(asks).map(|cell| (cell, *is_sure && alternative.is_sure)));
                }
                Some(_) => narrower.push((cell.clone(), false)),
                None => narrower.push((cell.clone(), *is_sure && alternative.is_sure)),
            }
        }
        cells = narrower;
        if cells.len() > CELLS_MAX {
            return vec![(cell.clone(), false)];
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::haproxy_rates::RatesTracked;
    use crate::import::haproxy_users::UserLists;
    use crate::import::nginx_conf::directive;

    /// The first cell with this path and method says whether a condition is met. `src` of tests is taken as not met.
    fn check(acls: &[&str], rule: &str, requests: &[(&str, &str, Met)]) {
        let world = TestWorld { is_secure: false, users: &UserLists::default(), rates: &RatesTracked::default() };
        let acls: Vec<Directive> = acls.iter().map(|line| directive(line)).collect();
        let named = named_tests(&acls, &world);
        let words: Vec<String> = rule.split(' ').map(str::to_owned).collect();
        let (action, condition) = divided(&words, &named, &world);
        assert_eq!(action, ["deny"]);
        let cells = condition.cells(&RequestCell::default(), &|_| false);
        for (method, path, expect) in requests {
            let is_in = |cell: &RequestCell| {
                let pattern = cell.pattern().map(|pattern| proxy::settings::RoutePattern::new(&pattern).unwrap());
                pattern.is_none_or(|pattern| pattern.is_match(path.as_bytes()))
                    && cell.methods().is_none_or(|methods| methods.contains(*method))
                    && cell.guards().is_empty()
            };
            let met = cells.iter().find(|(cell, _)| is_in(cell)).map(|(_, met)| *met);
            assert_eq!(met, Some(*expect), "{rule}: {method} {path} {cells:?}");
        }
    }

    #[test]
    fn conditions_are_met_as_they_are_written() {
        use Met::{No, Unknown, Yes};
        let acls = ["acl api path_beg /api", "acl api path /special", "acl post method POST", "acl odd url_len gt 5"];
        check(&acls, "deny if api", &[("GET", "/api/x", Yes), ("GET", "/special", Yes), ("GET", "/", No)]);
        check(&acls, "deny unless api", &[("GET", "/api/x", No), ("GET", "/", Yes)]);
        check(&acls, "deny if api !post", &[("GET", "/api", Yes), ("POST", "/api", No), ("GET", "/", No)]);
        check(&acls, "deny if !api !post", &[("GET", "/api", No), ("POST", "/", No), ("GET", "/", Yes)]);
        check(&acls, "deny if !post or api", &[("POST", "/", No), ("POST", "/api", Yes), ("GET", "/", Yes)]);
        check(&acls, "deny if api || post", &[("POST", "/", Yes), ("GET", "/api", Yes), ("GET", "/", No)]);
        check(&acls, "deny if api odd", &[("GET", "/api", Unknown), ("GET", "/", No)]);
        check(&acls, "deny if api !odd", &[("GET", "/api", Unknown), ("GET", "/", No)]);
        check(&acls, "deny if post or odd", &[("POST", "/", Yes), ("GET", "/", Unknown)]);
        check(&acls, "deny if nobody-knows", &[("GET", "/", Unknown)]);
        check(&acls, "deny if ! { path /a }", &[("GET", "/a", No), ("GET", "/b", Yes)]);
        check(&acls, "deny if !{ path /a } api", &[("GET", "/api", Yes), ("GET", "/b", No)]);
        check(&acls, "deny if { ssl_fc }", &[("GET", "/", No)]);
        check(&acls, "deny unless { ssl_fc }", &[("GET", "/", Yes)]);
        check(&acls, "deny", &[("GET", "/", Yes)]);
    }

    #[test]
    fn what_is_the_same_for_everybody_is_told() {
        let world = TestWorld { is_secure: true, users: &UserLists::default(), rates: &RatesTracked::default() };
        let constant = |rule: &str| {
            let words: Vec<String> = rule.split(' ').map(str::to_owned).collect();
            divided(&words, &NamedTests::new(), &world).1.constant()
        };
        assert_eq!(constant("x if { ssl_fc }"), Some(true));
        assert_eq!(constant("x if !{ ssl_fc }"), Some(false));
        assert_eq!(constant("x"), Some(true));
        assert_eq!(constant("x if { path / }"), None);
        assert_eq!(constant("x if { status 500 }"), None);
    }
}
