//! The files that a location shows: its indexes, what answers where there is no file, and the scripts of its root.

use crate::import::import_findings::quoted;
use crate::import::nginx_closed_paths::{is_about, is_seen_by_all, may_be_about};
use crate::import::nginx_conditions;
use crate::import::nginx_found::{AnsweredBy, FoundLocation};
use crate::import::nginx_found_server::FoundServer;
use crate::import::nginx_level::FilesShown;
use crate::import::nginx_order::Kind;
use crate::import::nginx_rulings::CaseOf;
use crate::import::nginx_substitute::Substitute;

/// A file that no root has: what answers where nginx looks for no other.
const NO_FILE: &str = "not-in-nginx.html";

/// The lines of a route that says who answers.
pub struct Answered {
    pub lines: Vec<String>,
    /// Files that answer under another path than their own.
    pub shown_elsewhere: Vec<String>,
}

impl FoundServer<'_, '_> {
    /// The origin that runs this script, of the root of a location.
    fn runner(&self, at: usize, script: &Substitute) -> Option<String> {
        let to = self.find_script(script).filter(|_| script.is_script())?;
        let to = Some(to).filter(|to| self.has_root_of(at, *to) && self.has_guards_of(at, *to))?;
        match &self.found[to].answer {
            AnsweredBy::Scripts(origin) => Some(origin.clone()),
            _ => None,
        }
    }

    /// The same for the index of a directory. nginx asks one for a page alone, and with no other method; where nobody else may ask for the script,
    /// none of those would come to it.
    fn index_runner(&self, at: usize, path: String) -> Option<String> {
        let is_internal = self.find(&path).is_some_and(|of| self.found[of].is_internal);
        self.runner(at, &Substitute::whole(path)).filter(|_| !is_internal)
    }

    /// The files of a root; where a script answers for a directory, or for what is no file, the root's scripts with them.
    pub fn files(&mut self, at: usize) -> Answered {
        let found = &self.found[at];
        let folder = match (&found.spot.path, found.spot.kind) {
            (Some(path), Kind::Exact) if !path.ends_with('/') => None,
            (Some(path), _) => Some(format!("{}/", path.trim_end_matches('/'))),
            (None, _) => None,
        };
        let (mut index, mut origin) = (Vec::new(), None);
        let passes_directories_by = found.level.passes_directories_by
            || found.rulings.passes_directories_by
            || self.of_server.passes_directories_by;
        let names = if passes_directories_by { Vec::new() } else { found.level.index() };
        let named = names.len();
        let names = self.seen_by_all(at, folder.as_deref().unwrap_or("/"), names);
        // nginx takes the first that is there: none behind one that nobody runs here.
        for name in &names {
            let runner = folder.as_ref().and_then(|folder| self.index_runner(at, format!("{folder}{name}")));
            match (self.is_source(&format!("/{name}")), runner) {
                (false, _) => index.push(name.clone()),
                (true, Some(runner)) => {
                    origin = Some(runner);
                    index.push(name.clone());
                }
                (true, None) => {
                    self.leave(at, "closed: an index that is a program's, which nobody runs here, and those behind it");
                    break;
                }
            }
        }
        // Of one directory whose index is kept from people, nginx asks nobody else.
        let is_one_kept = names.len() < named && self.found[at].spot.kind == Kind::Exact;
        let (fallback, runner) = if is_one_kept { (None, None) } else { self.fallback(at) };
        let origin = runner.or(origin);
        if origin.is_none() {
            index.retain(|name| !self.is_source(&format!("/{name}")));
        }
        let may_list = index.len() == named && !passes_directories_by;
        let mut fallback = fallback.filter(|path| origin.is_some() || !self.is_source(path));
        if origin.is_some() {
            // larder would take names of its own.
            fallback = fallback.or_else(|| Some(format!("/{NO_FILE}")));
        }
        // Without any, a directory is no file at all.
        if index.is_empty() && !passes_directories_by {
            index.push(NO_FILE.to_owned());
        }
        let found = &self.found[at];
        let shown = FilesShown {
            prefix: self.tree.prefix,
            only: found.spot.path.as_deref().filter(|_| found.spot.kind == Kind::Exact),
            shows_dotfiles: self.sources.is_none(),
            index: &index,
            fallback: fallback.as_deref(),
            may_list,
        };
        let mut lines = found.level.root_lines(&shown);
        lines.extend(origin.map(|origin| format!("origin = {}", quoted(&origin))));
        let shown_elsewhere = index.iter().map(|name| format!("/{name}")).chain(fallback).collect();
        Answered { lines, shown_elsewhere }
    }

    /// Names of indexes that nginx shows to all whom the location lets in, by their own paths.
    fn seen_by_all(&mut self, at: usize, folder: &str, mut names: Vec<String>) -> Vec<String> {
        let named = names.len();
        let folders = ["", "any-name/", "0/"].map(|beneath| format!("{folder}{beneath}"));
        let mut own: Vec<&String> = folders.iter().filter(|folder| self.find(folder) == Some(at)).collect();
        let is_known = !own.is_empty();
        // Of a regex nobody knows a folder.
        if !is_known {
            own.extend(folders.last());
        }
        let prefix = self.tree.prefix;
        let is_seen = |path: String| {
            !self.is_ruled_by_server(&path) && is_seen_by_all(&self.found, at, (&path, is_known), prefix)
        };
        // nginx takes the first that is there: none behind one that is kept from somebody.
        let seen = names.iter().take_while(|name| own.iter().all(|folder| is_seen(format!("{folder}{name}"))));
        let seen = seen.count();
        names.truncate(seen);
        if names.len() < named {
            let why =
                "closed in part: where an index would answer, nginx asks the location of that file who may come in";
            self.leave(at, why);
        }
        names
    }

    /// What answers where there is no file, and the origin that runs it if it is a script.
    fn fallback(&mut self, at: usize) -> (Option<String>, Option<String>) {
        let block = self.found[at].spot.blocks.last();
        if block.is_some_and(|block| nginx_conditions::has_mere_condition(block)) && self.of_server.fallback.is_none() {
            self.leave(at, "404 where there is no file: who meets an `if` beside it is told nothing else by nginx");
            return (None, None);
        }
        let FoundLocation { level, rulings, .. } = &self.found[at];
        let of_rules = self.of_server.fallback.clone().or_else(|| rulings.fallback.clone());
        let (level, to) = (level.clone(), of_rules.or_else(|| level.fallback.clone()));
        let (to, origin) = match (to, self.tree.named_script(&level, &self.found[at].access)) {
            (Some(to), _) if self.is_ruled_by_server(&to.path) => {
                self.leave(at, "404 where there is no file: the server has a rule of its own for what nginx asks then");
                return (None, None);
            }
            (Some(to), _) => (to, None),
            (None, Some((to, origin))) => (to, origin),
            (None, None) => {
                if level.named.is_some() {
                    self.leave(at, "404 where there is no file: larder cannot ask the location that is named there");
                }
                return (None, None);
            }
        };
        if let Some(origin) = origin.or_else(|| self.runner(at, &to)) {
            return (Some(to.path), Some(origin));
        }
        let is_file = self.find(&to.path).is_some_and(|of| {
            let is_shown = self.found[of].answer == AnsweredBy::Files && !self.found[of].is_internal;
            let is_ruled =
                |case: &CaseOf| if of == at { is_about(case, &to.path) } else { may_be_about(case, &to.path) };
            let is_shown = is_shown && !self.found[of].rulings.cases.iter().any(is_ruled);
            is_shown && self.has_root_of(at, of) && self.has_guards_of(at, of)
        });
        if is_file && !to.is_followed && !self.is_source(&to.path) {
            self.say_if_absent(at, &to.path);
            return (Some(to.path), None);
        }
        self.leave(at, "404 where there is no file: what nginx asks then is not one of this root's files or scripts");
        (None, None)
    }

    /// Where the file that answers is absent itself, nginx has what its own location says of that.
    fn say_if_absent(&mut self, at: usize, path: &str) {
        let goes_on = self.find(path).is_some_and(|of| {
            let to = &self.found[of].level.fallback;
            !self.found[of].shows_files_alone() && to.as_ref().is_none_or(|to| to.path != path)
        });
        let file = self.found[at].level.root(self.tree.prefix).join(path.trim_start_matches('/'));
        if goes_on && !file.is_file() {
            self.leave(at, "404 where the file is absent, too, that try_files ends with: it is not here");
        }
    }

    /// The scripts of a root, and nothing else of it.
    pub fn scripts(&mut self, at: usize, origin: &str) -> Answered {
        let (fallback, runner) = self.fallback(at);
        let found = &self.found[at];
        let fallback = fallback.filter(|_| runner.is_some()).unwrap_or_else(|| format!("/{NO_FILE}"));
        let index = vec![found.level.scripts.index().unwrap_or(NO_FILE).to_owned()];
        let shown = FilesShown {
            prefix: self.tree.prefix,
            only: None,
            shows_dotfiles: false,
            index: &index,
            fallback: Some(&fallback),
            may_list: false,
        };
        let mut lines = found.level.root_lines(&shown);
        lines.push(format!("origin = {}", quoted(origin)));
        Answered { lines, shown_elsewhere: vec![fallback, format!("/{}", index[0])] }
    }
}
