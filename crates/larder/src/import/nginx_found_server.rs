//! A server of nginx whose locations were found, and what is asked of all of them: which one a path comes to, and whose root and guards are
//! the same.

use crate::import::nginx_closed_paths::{is_about, matches, may_be_about};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_found::FoundLocation;
use crate::import::nginx_guards;
use crate::import::nginx_rulings::Rulings;
use crate::import::nginx_substitute::Substitute;
use crate::import::nginx_tree::Tree;

/// A server whose locations are known.
pub struct FoundServer<'t, 'a> {
    pub tree: &'t mut Tree<'a>,
    pub found: Vec<FoundLocation<'a>>,
    /// Names of sources, where programs run any.
    pub sources: Option<&'static str>,
    /// What the server itself rules, whatever location is found.
    pub of_server: Rulings,
}

impl FoundServer<'_, '_> {
    pub fn find(&self, path: &str) -> Option<usize> {
        self.found.iter().position(|found| found.spot.matches(path))
    }

    /// The location that is asked for a script, with all that is handed to it in its path. `None` also where it has a rule for some of those
    /// who ask it.
    pub fn find_script(&self, script: &Substitute) -> Option<usize> {
        let to = self.find(&script.path)?;
        let Rulings { cases, only_methods, .. } = &self.found[to].rulings;
        if only_methods.is_some() || cases.iter().any(|case| may_be_about(case, &script.path)) {
            return None;
        }
        let takes_more = |to: usize| {
            let is_same = self.find(&format!("{}/behind", script.path)) == Some(to);
            is_same && !self.found[to].level.looks_for_whole_path
        };
        (!script.is_followed || takes_more(to)).then_some(to)
    }

    pub fn is_source(&self, path: &str) -> bool {
        self.sources.is_some_and(|sources| matches(sources, path))
    }

    pub fn has_root_of(&self, one: usize, other: usize) -> bool {
        let root = |at: usize| self.found[at].level.root(self.tree.prefix);
        root(one) == root(other)
    }

    /// Does a location keep out whom another one does? nginx asks both where one answers in place of the other.
    pub fn has_guards_of(&self, at: usize, other: usize) -> bool {
        nginx_guards::are_guarded_like(&self.found[at].access, &self.found[other].access)
    }

    /// nginx asks a server's own rulings again for the file that it has found.
    pub fn is_ruled_by_server(&self, path: &str) -> bool {
        self.of_server.cases.iter().any(|case| is_about(case, path))
    }

    pub fn leave(&mut self, at: usize, why: &'static str) {
        let block: &Directive = self.found[at].spot.blocks.last().copied().unwrap_or(self.tree.server);
        self.tree.findings.leave(block, why);
    }
}
