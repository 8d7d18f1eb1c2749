//! Which file of a crate names something of which other: the modules of a crate, their `use` declarations, and the paths
//! that their code spells out.
//!
//! It reads tokens and no grammar, and resolves paths as rustc does where it matters: through `use`, re-exports and globs to
//! the file that defines what is named. Tests do not count. Methods do not either, as no path names their file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::project::Project;
use crate::source;

/// A path may lead through so many re-exports.
const REEXPORTS_MAX: usize = 12;

/// A path within the crate: `["disk", "tier", "Tier"]`.
type Names = Vec<String>;

/// The modules of one crate.
#[derive(Default)]
pub struct ModuleMap {
    /// By their path; the root's is empty.
    modules: BTreeMap<Names, Module>,
    pub files: Vec<PathBuf>,
    /// All names that stand in each of the files.
    pub names: Vec<BTreeSet<String>>,
}

/// What one file names of another, itself left out.
pub type Edges = BTreeMap<(usize, usize), BTreeSet<String>>;

#[derive(Default)]
struct Module {
    file: usize,
    /// What `use` binds: a name, and the path it stands for, relative to this module.
    bound: BTreeMap<String, Names>,
    globs: Vec<Names>,
    /// Paths in its code and in its `use` declarations.
    paths: BTreeSet<Names>,
    /// What it defines itself, not within a function or an `impl`.
    types: BTreeSet<String>,
}

impl ModuleMap {
    /// Those of every crate of the workspace, by its name; of a crate the files under `src/`.
    pub fn of_crates(project: &Project) -> Result<BTreeMap<String, ModuleMap>, String> {
        let mut sources: BTreeMap<String, Vec<(PathBuf, String)>> = BTreeMap::new();
        for path in project.files()?.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")) {
            let folder = path.strip_prefix("crates").or(path.strip_prefix("xtask").map(|_| path.as_path()));
            let Ok(folder) = folder else { continue };
            let mut parts = folder.iter();
            if let (Some(name), Some("src")) = (parts.next(), parts.next().and_then(|part| part.to_str())) {
                let source = (parts.as_path().to_path_buf(), project.read(path)?);
                sources.entry(name.to_string_lossy().into_owned()).or_default().push(source);
            }
        }
        Ok(sources.into_iter().map(|(name, sources)| (name, ModuleMap::read(&sources))).collect())
    }

    /// `sources`: the files under the crate's `src/`, each by its path from there, and its text.
    pub fn read(sources: &[(PathBuf, String)]) -> ModuleMap {
        let mut map = ModuleMap::default();
        let mut tests: Vec<Names> = Vec::new();
        for (path, text) in sources {
            let module = module_of(path);
            let file = map.files.len();
            map.files.push(path.clone());
            let code = source::code_of(text);
            let tokens = tokens_of(&code);
            map.names.push(tokens.iter().filter(|token| is_word(token)).map(|token| token.to_string()).collect());
            Reading { map: &mut map, tests: &mut tests, file }.items(&tokens, &module);
        }
        map.modules.retain(|module, _| !tests.iter().any(|test| module.starts_with(test)));
        map
    }

    /// Each file with the files of which it names something, and what that is.
    pub fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (name, module) in &self.modules {
            for path in &module.paths {
                let Some((other, named)) = self.resolve(name, path, 0) else { continue };
                if other != module.file {
                    edges.entry((module.file, other)).or_default().insert(named);
                }
            }
        }
        edges
    }

    /// The names of types, each with the files that define one of that name.
    pub fn types(&self) -> BTreeMap<&str, BTreeSet<usize>> {
        let mut types: BTreeMap<&str, BTreeSet<usize>> = BTreeMap::new();
        for module in self.modules.values() {
            for name in &module.types {
                types.entry(name).or_default().insert(module.file);
            }
        }
        types
    }

    /// The file that defines what a path means in a module, and the name that it has there.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<(usize, String)> {
        if depth > REEXPORTS_MAX {
            return None;
        }
        let first = path.first()?;
        let mut at: Names = from.to_vec();
        let mut rest = path;
        match first.as_str() {
            "crate" => (at, rest) = (Names::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            _ => {
                let child = self.modules.contains_key(&[from, std::slice::from_ref(first)].concat());
                let bound = &self.modules.get(from)?.bound;
                if !child && !bound.contains_key(first) {
                    return None;
                }
            }
        }
        self.descend(at, rest, depth)
    }

    fn descend(&self, mut at: Names, mut rest: &[String], depth: usize) -> Option<(usize, String)> {
        while let Some(first) = rest.first() {
            let child = [at.as_slice(), std::slice::from_ref(first)].concat();
            // A path that ends in a module names what is beside it under the same name, if anything is.
            if self.modules.contains_key(&child)
                && (rest.len() > 1 || !self.modules.get(&at)?.bound.contains_key(first))
            {
                (at, rest) = (child, &rest[1..]);
                continue;
            }
            let module = self.modules.get(&at)?;
            // A macro that is bound to its own name is defined here; what is bound to another crate's is nobody's here.
            if let Some(bound) = module.bound.get(first).filter(|bound| **bound != [first.as_str()]) {
                return self.resolve(&at, &[bound.as_slice(), &rest[1..]].concat(), depth + 1);
            }
            if module.types.contains(first) {
                return Some((module.file, first.clone()));
            }
            let by_glob = module.globs.iter().find_map(|glob| {
                let found = self.resolve(&at, &[glob.as_slice(), rest].concat(), depth + 1)?;
                self.modules.values().any(|m| m.file == found.0 && m.types.contains(first)).then_some(found)
            });
            return by_glob.or_else(|| Some((module.file, first.clone())));
        }
        None
    }
}

/// `disk/tier.rs` is `disk::tier`.
fn module_of(path: &Path) -> Names {
    let mut names: Names = path.with_extension("").iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.len() == 1 && ["lib", "main"].contains(&names[0].as_str()) {
        names.clear();
    }
    names
}

/// Words and signs; `::` is one of them, a lifetime none.
fn tokens_of(code: &str) -> Vec<&str> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => 1 + rest[1..].find(|c: char| !in_word(c)).unwrap_or(rest.len() - 1),
            _ if in_word(first) => rest.find(|c: char| !in_word(c)).unwrap_or(rest.len()),
            ':' if rest.starts_with("::") => 2,
            _ => first.len_utf8(),
        };
        tokens.extend(Some(&rest[..length]).filter(|_| first != '\''));
        rest = rest[length..].trim_start();
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

struct Reading<'a> {
    map: &'a mut ModuleMap,
    tests: &'a mut Vec<Names>,
    file: usize,
}

impl Reading<'_> {
    fn module(&mut self, name: &[String]) -> &mut Module {
        let file = self.file;
        self.map.modules.entry(name.to_vec()).or_insert_with(|| Module { file, ..Module::default() })
    }

    /// The tokens of one module; those of modules in it are read as theirs.
    fn items(&mut self, tokens: &[&str], name: &[String]) {
        self.module(name);
        let (mut at, mut depth) = (0, 0);
        while at < tokens.len() {
            let rest = &tokens[at..];
            at += match rest {
                ["#", "[", ..] => {
                    let attribute = balanced(&rest[1..]);
                    match is_for_tests(&rest[1..=attribute]) {
                        true => 1 + attribute + self.tested(&rest[1 + attribute..], name),
                        false => 1 + attribute,
                    }
                }
                ["mod", child, "{", ..] => {
                    let length = balanced(&rest[2..]);
                    self.items(&rest[3..2 + length - 1], &[name, &[child.to_string()]].concat());
                    2 + length
                }
                ["use", ..] => {
                    let length = rest.iter().position(|token| *token == ";").unwrap_or(rest.len());
                    self.used(&mut rest[1..length].iter().peekable(), &Names::new(), name);
                    length
                }
                ["struct" | "enum" | "trait" | "union" | "type", word, ..] if depth == 0 && is_word(word) => {
                    let module = self.module(name);
                    module.types.insert(word.to_string());
                    2
                }
                ["::", word, ..] if is_word(word) => 1 + path_length(&rest[1..]),
                [word, "::", ..] if is_word(word) => {
                    let length = path_length(rest);
                    let path: Names = rest[..length].iter().step_by(2).map(|name| name.to_string()).collect();
                    self.module(name).paths.insert(path);
                    length
                }
                ["{", ..] => (1, depth += 1).0,
                ["}", ..] => (1, depth -= 1).0,
                _ => 1,
            };
        }
    }

    /// What stands behind a `cfg(test)` is left out: an item, or a module with all that is in it.
    fn tested(&mut self, rest: &[&str], name: &[String]) -> usize {
        if let Some(at) = rest.iter().take(6).position(|token| *token == "mod") {
            self.tests.push([name, &[rest[at + 1].to_string()]].concat());
        }
        let end = rest.iter().position(|token| ["{", ";"].contains(token));
        match end {
            Some(at) if rest[at] == "{" => at + balanced(&rest[at..]),
            Some(at) => at + 1,
            None => rest.len(),
        }
    }

    /// One tree of a `use`: `a::{self, b::C as D, e::*}`.
    fn used<'t>(
        &mut self,
        tokens: &mut std::iter::Peekable<impl Iterator<Item = &'t &'t str>>,
        before: &[String],
        name: &[String],
    ) {
        let mut path = before.to_vec();
        while let Some(token) = tokens.next() {
            match *token {
                "{" => {
                    while tokens.peek().is_some_and(|token| **token != "}") {
                        self.used(tokens, &path, name);
                    }
                    tokens.next();
                    return self.skip_comma(tokens);
                }
                "*" => {
                    self.module(name).globs.push(path);
                    return self.skip_comma(tokens);
                }
                "as" => {
                    let alias = tokens.next().map(|alias| alias.to_string()).unwrap_or_default();
                    self.bind(name, alias, path);
                    return self.skip_comma(tokens);
                }
                "self" if !path.is_empty() => {}
                "::" => {}
                word => path.push(word.to_string()),
            }
            if tokens.peek().is_none_or(|next| [",", "}"].contains(&**next)) {
                let alias = path.last().cloned().unwrap_or_default();
                self.bind(name, alias, path);
                return self.skip_comma(tokens);
            }
        }
    }

    fn skip_comma<'t>(&mut self, tokens: &mut std::iter::Peekable<impl Iterator<Item = &'t &'t str>>) {
        if tokens.peek().is_some_and(|token| **token == ",") {
            tokens.next();
        }
    }

    fn bind(&mut self, name: &[String], alias: String, path: Names) {
        let module = self.module(name);
        module.paths.insert(path.clone());
        module.bound.insert(alias, path);
    }
}

/// How many tokens a path has that begins here.
fn path_length(tokens: &[&str]) -> usize {
    let pairs = tokens[1..].chunks_exact(2).take_while(|pair| pair[0] == "::" && is_word(pair[1])).count();
    1 + 2 * pairs
}

/// How many tokens there are up to the bracket that closes the first one.
fn balanced(tokens: &[&str]) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "{" | "[" | "(" => depth += 1,
            "}" | "]" | ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// `[cfg(test)]`, `[cfg(all(test, …))]`; not `[cfg(not(test))]`.
fn is_for_tests(attribute: &[&str]) -> bool {
    let test = attribute.iter().position(|token| *token == "test");
    attribute.get(1) == Some(&"cfg") && test.is_some_and(|at| attribute[at - 2] != "not")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(files: &[(&str, &str)], expect: &[&str]) {
        let sources: Vec<_> = files.iter().map(|(path, text)| (PathBuf::from(path), text.to_string())).collect();
        let map = ModuleMap::read(&sources);
        let file = |index: usize| map.files[index].display();
        let edges = map.edges();
        let found = edges.iter().map(|((from, to), names)| {
            format!("{} {}: {}", file(*from), file(*to), names.iter().cloned().collect::<Vec<_>>().join(" "))
        });
        let found: Vec<String> = found.collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn paths_lead_to_the_file_that_defines_what_they_name() {
        let root = ("lib.rs", "mod a;\nmod b;\npub use a::A;\n");
        check(&[root, ("a.rs", "pub struct A;"), ("b.rs", "use crate::A;")], &["lib.rs a.rs: A", "b.rs a.rs: A"]);
        let all = ("b.rs", "use crate::{a::{self, A as X}, c};\nfn f() { a::g(); X::new(); ::a::h(); b.c::<u8>() }");
        check(&[("lib.rs", ""), ("a.rs", ""), all, ("c.rs", "")], &["b.rs a.rs: A g"]);
        check(
            &[("lib.rs", ""), ("a.rs", ""), ("a/b.rs", "use super::A;\nfn f() { super::super::x() }")],
            &["a/b.rs lib.rs: x", "a/b.rs a.rs: A"],
        );
        check(&[("lib.rs", ""), ("a.rs", "mod b;\nfn f() { b::g() }"), ("a/b.rs", "")], &["a.rs a/b.rs: g"]);
    }

    #[test]
    fn what_has_the_name_of_its_module_is_found() {
        let files = [("lib.rs", ""), ("a.rs", "mod near;\npub use near::near;"), ("a/near.rs", "pub fn near() {}")];
        let named = [("b.rs", "use crate::a::near;\nfn f() { crate::a::near() }")];
        check(&[files.as_slice(), &named].concat(), &["a.rs a/near.rs: near", "b.rs a/near.rs: near"]);
    }

    #[test]
    fn globs_and_private_imports_of_a_parent_are_followed() {
        let files = |child: &'static str| [("a.rs", "use crate::c::C;"), ("a/b.rs", child), ("c.rs", "struct C;")];
        check(&files("use super::C;"), &["a.rs c.rs: C", "a/b.rs c.rs: C"]);
        let glob = [("lib.rs", "use a::*;"), ("a.rs", "pub enum A {}"), ("b.rs", "use crate::A;")];
        check(&glob, &["b.rs a.rs: A"]);
    }

    #[test]
    fn tests_strings_and_bare_modules_do_not_count() {
        let tests = "#[cfg(test)]\nmod tests {\n use crate::a::A;\n}\n#[cfg(test)]\nuse crate::a::B;\nfn f() {}";
        check(&[("lib.rs", ""), ("a.rs", ""), ("b.rs", tests)], &[]);
        check(&[("lib.rs", ""), ("a.rs", ""), ("b.rs", "#[cfg(test)]\nmod t;"), ("b/t.rs", "use crate::a::A;")], &[]);
        check(
            &[("lib.rs", ""), ("a.rs", ""), ("b.rs", "use crate::a;\n// crate::a::A\nlet x = \"crate::a::A\";")],
            &[],
        );
        let all = "#[cfg(all(test, not(feature = \"x\")))]\nmod tests { use crate::a::A; }";
        check(&[("lib.rs", ""), ("a.rs", ""), ("b.rs", all)], &[]);
        check(&[("lib.rs", ""), ("a.rs", ""), ("b.rs", "#[cfg(not(test))]\nuse crate::a::A;")], &["b.rs a.rs: A"]);
    }

    #[test]
    fn types_are_found_with_their_files() {
        let items =
            "struct A; enum B {}\nimpl A { type C = u8; }\nfn f() { struct D; }\n#[cfg(test)]\nmod t { struct E; }";
        let sources = [("a.rs", items), ("b.rs", "mod c { pub type A = u8; }")];
        let map = ModuleMap::read(&sources.map(|(path, text)| (PathBuf::from(path), text.to_string())));
        let types = map.types().into_iter().map(|(name, files)| (name, files.into_iter().collect()));
        assert_eq!(types.collect::<Vec<(&str, Vec<usize>)>>(), [("A", vec![0, 1]), ("B", vec![0])]);
    }
}
