//! `file_server`, `try_files` and `php_fastcgi` of Caddy as a route with a `root`. What would be shown under another name than its path is
//! closed.

use std::path::{Path, PathBuf};

use proxy::settings::{ClosedPaths, RoutePattern};

use crate::config::is_index_name;
use crate::import::caddy_answers::Hands;
use crate::import::caddy_leaves::AnsweredRoute;
use crate::import::caddy_origin;
use crate::import::caddy_passage::{Passage, PathNow, Scripts};
use crate::import::import_findings::{Findings, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::nginx_fields::inline_table;
use crate::import::nginx_order::escaped;

/// What Caddy's `file_server` looks for in a directory.
const INDEX: [&str; 2] = ["index.html", "index.txt"];
/// How long an application is waited for, and how much is kept meanwhile.
const OF_APPLICATIONS: [&str; 6] =
    ["resolve_root_symlink", "capture_stderr", "dial_timeout", "read_timeout", "write_timeout", "trusted_proxies"];

/// The file of `try_files` that answers where there is none; that may be none. `None`: it looks for something else.
pub fn fallback(words: &[String], directive: &Directive) -> Option<Option<String>> {
    let (last, before) = words.split_last()?;
    let is_own = |word: &String| {
        matches!(word.as_str(), "{path}" | "{path}/" | "{path}/index.html" | "{uri}" | "{http.request.uri.path}")
    };
    if !before.iter().all(is_own) || !directive.children().is_empty() {
        return None;
    }
    if is_own(last) || last == "=404" {
        return Some(None);
    }
    let file = last.split('?').next().unwrap_or_default();
    let query = &last[file.len()..];
    let is_query = matches!(query, "" | "?{query}" | "?{http.request.uri.query}");
    let is_file = !file.is_empty() && !file.contains(['{', '*', '$']) && !file.ends_with('/') && !file.contains("/.");
    (is_query && is_file).then(|| Some(format!("/{}", file.trim_start_matches('/'))))
}

/// The application of a `php_fastcgi`. `None`: it cannot be said, which has been said.
pub fn scripts(hands: &mut Hands<'_>, directive: &Directive, words: &[String], passage: &Passage) -> Option<Scripts> {
    let close = |hands: &mut Hands<'_>, at: &Directive, why: &'static str| {
        hands.findings.leave(at, why);
        None
    };
    let (mut index, mut keys, mut params) = ("index.php".to_owned(), Vec::new(), Vec::new());
    for line in directive.children() {
        let first = line.argument(0);
        match line.name.as_str() {
            "root" if !first.contains('{') => keys.push(format!("document_root = {}", quoted(first))),
            "split" => {
                let ends: Vec<String> = line.arguments.iter().map(|end| quoted(end)).collect();
                keys.push(format!("split_path = [{}]", ends.join(", ")));
            }
            "index" if first != "off" && !first.contains(['/', '{']) => first.clone_into(&mut index),
            "env" if !line.argument(1).contains('{') => params.push((first.to_owned(), line.argument(1).to_owned())),
            "try_files" if is_usual(&line.arguments, &index) => {}
            name if OF_APPLICATIONS.contains(&name) => hands.findings.note(line, "larder does so by itself"),
            _ => return close(hands, line, "closed: larder asks applications over FastCGI, and has no such option"),
        }
    }
    if !passage.path.is_own() {
        return close(hands, directive, "closed: scripts are found by the client's own path");
    }
    if index != "index.php" {
        keys.push(format!("index = {}", quoted(&index)));
    }
    if !params.is_empty() {
        keys.push(format!("params = {}", inline_table(&params)));
    }
    let origin = caddy_origin::of_application(directive, words, keys, hands.origins, hands.findings)?;
    Some(Scripts { origin, index, said: Directive { block: None, ..directive.clone() } })
}

/// Does it look for files and scripts as larder does?
fn is_usual(words: &[String], index: &str) -> bool {
    let Some((last, before)) = words.split_last() else { return false };
    let is_own =
        |word: &String| matches!(word.as_str(), "{path}" | "{path}/") || word.strip_prefix("{path}/") == Some(index);
    before.iter().all(is_own) && last.trim_start_matches('/').split('?').next() == Some(index)
}

/// What a `file_server` says of files.
#[derive(Default)]
struct FileWords {
    index: Option<Vec<String>>,
    hidden: Vec<String>,
    lines: Vec<String>,
    root: Option<String>,
    is_closed: bool,
}

impl FileWords {
    fn take(&mut self, line: &Directive, findings: &mut Findings) {
        match line.name.as_str() {
            "browse" => self.lists(),
            "root" => self.root = Some(line.argument(0).to_owned()),
            "hide" => self.hidden.extend(line.arguments.iter().cloned()),
            "index" => self.index = Some(line.arguments.clone()),
            "precompressed" => self.lines.push("precompressed = true".to_owned()),
            "etag_file_extensions" | "disable_canonical_uris" => {
                findings.leave(line, "larder has no setting that this becomes");
            }
            "pass_thru" => findings.leave(line, "404 where there is no file"),
            _ => {
                findings.leave(line, "closed: larder has no such option for files");
                self.is_closed = true;
            }
        }
    }

    fn lists(&mut self) {
        let line = LISTING.to_owned();
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// The files that answer for a directory; what is hidden is none of them.
    fn index(&mut self, directive: &Directive, root: &Path, findings: &mut Findings) -> Vec<String> {
        let mut index = self.index.take().unwrap_or_else(|| INDEX.map(str::to_owned).to_vec());
        if index.iter().any(|name| !is_index_name(name) || name.contains('{')) {
            findings.leave(directive, "an index is the name of a file");
            index = INDEX.map(str::to_owned).to_vec();
        }
        let closed: Vec<String> = self.hidden.iter().flat_map(|name| hidden_paths(name, root)).collect();
        let is_hidden = |name: &String| closed.iter().any(|pattern| closes(pattern, &format!("/{name}")));
        index.retain(|name| !is_hidden(name));
        index
    }
}

const LISTING: &str = "listing = \"negotiated\"";

/// The files of a root, with its scripts. `None`: closed, which has been said.
pub fn answer(
    hands: &mut Hands<'_>,
    directive: &Directive,
    words: &[String],
    passage: &Passage,
) -> Option<AnsweredRoute> {
    let mut said = FileWords::default();
    if words.iter().any(|word| word == "browse") {
        said.lists();
    }
    directive.children().iter().for_each(|line| said.take(line, hands.findings));
    let root = said.root.clone().or_else(|| passage.root.clone());
    let is_elsewhere = passage.looked_in.as_ref().is_some_and(|looked_in| *looked_in != root);
    let root = match root {
        _ if said.is_closed => return None,
        Some(_) if is_elsewhere => Err("closed: try_files looks for files beneath another root"),
        None => Err("closed: no root is said, and it would be the directory in which Caddy is started"),
        Some(root) if root.contains('{') => Err("closed: a root with a placeholder"),
        Some(root) if !root.starts_with('/') => {
            Err("closed: a relative root begins where Caddy is started: write it from / on")
        }
        Some(root) => root_of(Path::new(&root), &passage.path)
            .ok_or("closed: the whole path of a request is a path beneath a root: name the directory above"),
    };
    let root = match root {
        Ok(root) => root,
        Err(why) => {
            hands.findings.leave(directive, why);
            return None;
        }
    };
    if said.hidden.iter().any(|name| hides_all(name, &root)) {
        hands.findings.leave(directive, "closed: its root is hidden, or what is has a placeholder in its name");
        return None;
    }
    if !said.hidden.is_empty() && said.lines.iter().any(|line| line == LISTING) {
        hands.findings.leave(directive, "no listing: larder's would name what is hidden");
        said.lines.retain(|line| line != LISTING);
    }
    let mut index = said.index(directive, &root, hands.findings);
    let (mut origin, mut fallback) = (None, passage.fallback.clone());
    if let Some(scripts) = &passage.scripts {
        index.insert(0, scripts.index.clone());
        fallback = fallback.or_else(|| Some(format!("/{}", scripts.index)));
        origin = Some(format!("origin = {}", quoted(&scripts.origin)));
        hands.findings.leave(directive, "names that begin with a dot are hidden where programs run");
    }
    let names: Vec<String> = index.iter().map(|name| quoted(name)).collect();
    let mut who = vec![format!("root = {}", quoted(&root.display().to_string()))];
    who.extend(origin);
    who.push(format!("index = [{}]", names.join(", ")));
    who.extend(fallback.iter().map(|fallback| format!("fallback = {}", quoted(fallback))));
    who.push("charset = \"utf-8\"".to_owned());
    // Caddy hides nothing unless it is told to.
    if passage.scripts.is_none() {
        who.push("dotfiles = true".to_owned());
    }
    who.extend(said.lines);
    let mut closed: Vec<String> = said.hidden.iter().flat_map(|name| hidden_paths(name, &root)).collect();
    // A directory is no file.
    if passage.needs_file && !passage.is_path_unsure {
        closed.push("/$".to_owned());
    }
    closed.extend(own_file(hands.file, &root));
    closed.extend(hands.users.files(&root));
    let shown_elsewhere = index.iter().map(|name| format!("/{name}")).chain(fallback).collect();
    Some(AnsweredRoute { who, closed, shown_elsewhere, ..AnsweredRoute::default() })
}

/// The directory beneath which the client's own path is that of the file. `None`: there is none.
fn root_of(root: &Path, path: &PathNow) -> Option<PathBuf> {
    let PathNow::Of { stripped, added } = path else { return None };
    let root = root.join(added.trim_start_matches('/'));
    let all: PathBuf = root.components().collect();
    match stripped.is_empty() {
        true => Some(all),
        // Where the last parts of the root are those that were cut off.
        false => {
            let cut = stripped.trim_matches('/');
            all.ends_with(cut).then(|| all.ancestors().nth(cut.split('/').count()).map(Path::to_owned)).flatten()
        }
    }
}

/// A name as Go's `filepath.Match` reads it, as an expression for one name.
fn glob(written: &str) -> String {
    let (mut regex, mut letters) = (String::new(), written.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '[' if letters.as_str().contains(']') => {
                let (class, behind) = letters.as_str().split_once(']').unwrap_or_default();
                regex.push_str(&format!("[{}]", class.replace('[', "\\[")));
                letters = behind.chars();
            }
            '\\' => letters.next().into_iter().for_each(|literal| regex.push_str(&escaped(&literal.to_string()))),
            plain => regex.push_str(&escaped(&plain.to_string())),
        }
    }
    // What is no pattern is a name.
    let is_regex = RoutePattern::new(&regex).is_ok();
    if is_regex { regex } else { escaped(written) }
}

fn closes(pattern: &str, path: &str) -> bool {
    ClosedPaths::new([pattern]).map_or(true, |closed| closed.close(path.as_bytes()))
}

/// The parts of a path, without what means nothing.
fn parts(path: &str) -> Vec<String> {
    let normal = |part: std::path::Component<'_>| match part {
        std::path::Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
        _ => None,
    };
    Path::new(path).components().filter_map(normal).collect()
}

/// What of a hidden path is left behind the root, where that is one of those that it stands for.
fn beneath(name: &str, root: &Path) -> Option<Vec<String>> {
    let (name, root) = (parts(name), parts(&root.display().to_string()));
    let is_part = |(glob, part): (&String, &String)| is_named(glob, part);
    name.iter().zip(&root).all(is_part).then(|| name.iter().skip(root.len()).cloned().collect())
}

fn is_named(name: &str, part: &str) -> bool {
    RoutePattern::new(&format!("^{}$", glob(name))).is_ok_and(|pattern| pattern.is_match(part.as_bytes()))
}

/// Is the root itself hidden, or is what is hidden unknown?
fn hides_all(name: &str, root: &Path) -> bool {
    let is_beneath = || beneath(name, root).is_some_and(|rest| rest.is_empty());
    let is_within = || parts(&root.display().to_string()).iter().any(|part| is_named(name, part));
    name.contains('{')
        || name.contains("..")
        || if name.contains('/') { name.starts_with('/') && is_beneath() } else { is_within() }
}

/// The patterns of what is hidden by a name, or by a path. Where a relative path begins nobody knows: it is one of the root's, too.
fn hidden_paths(name: &str, root: &Path) -> Vec<String> {
    if !name.contains('/') {
        return vec![format!("/{}(?:/|$)", glob(name))];
    }
    let of_parts = |parts: &[String]| {
        let parts: Vec<String> = parts.iter().map(|part| glob(part)).collect();
        format!("^/{}(?:/|$)", parts.join("/"))
    };
    match name.starts_with('/') {
        true => beneath(name, root).iter().map(|rest| of_parts(rest)).collect(),
        false => (0..parts(name).len()).map(|at| of_parts(&parts(name)[at..])).collect(),
    }
}

/// Caddy shows nobody its own configuration.
fn own_file(file: &Path, root: &Path) -> Option<String> {
    let file = std::path::absolute(file).ok()?;
    let rest = file.strip_prefix(root).ok()?;
    Some(format!("^/{}(?:/|$)", escaped(&rest.display().to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    #[test]
    fn files_that_answer_for_others_are_named() {
        let check = |words: &str, expect: Option<Option<&str>>| {
            let directive = directive(&format!("try_files {words}"));
            let found = fallback(&directive.arguments, &directive);
            assert_eq!(found, expect.map(|path| path.map(str::to_owned)), "{words}");
        };
        check("{path} /index.html", Some(Some("/index.html")));
        check("{path} {path}/ index.php?{query}", Some(Some("/index.php")));
        check("{path} =404", Some(None));
        check("{path}", Some(None));
        check("{path}.html {path}", None);
        check("{path} /index.php?p={path}", None);
        check("{path} /{host}.html", None);
    }

    #[test]
    fn a_root_is_where_the_whole_path_lies() {
        let of = |stripped: &str, added: &str| PathNow::Of { stripped: stripped.to_owned(), added: added.to_owned() };
        for (path, expect) in [
            (of("", ""), Some("/srv/app")),
            (of("", "/sub"), Some("/srv/app/sub")),
            (of("/app", ""), Some("/srv")),
            (of("/srv/app", ""), Some("/")),
            (of("/other", ""), None),
            (of("/pp", ""), None),
            (PathNow::Fixed("/x".to_owned()), None),
        ] {
            assert_eq!(root_of(Path::new("/srv/app/"), &path), expect.map(PathBuf::from), "{path:?}");
        }
    }

    #[test]
    fn what_is_hidden_is_closed() {
        let root = Path::new("/srv/site");
        for (name, path, expect) in [
            (".git", "/.git/config", true),
            (".git", "/sub/.git", true),
            (".git", "/.gitignore", false),
            ("*.bak", "/a/b.bak", true),
            ("*.ba?", "/a/b.bak", true),
            (".ht[ap]*", "/.htaccess", true),
            (".ht[^a]*", "/.htaccess", false),
            ("a\\*b", "/a*b", true),
            ("a\\*b", "/axb", false),
            ("/srv/site/private", "/private/x", true),
            ("/srv/*/priv*", "/private/x", true),
            ("/srv/site/private", "/public/private", false),
            ("/other/private", "/private", false),
            ("./private", "/private/x", true),
            ("site/private", "/private/x", true),
        ] {
            let is_closed = hidden_paths(name, root).iter().any(|pattern| closes(pattern, path));
            assert_eq!(is_closed, expect, "{name} {path}");
        }
        for (name, expect) in [
            ("srv", true),
            ("s*", true),
            ("/srv", true),
            ("/srv/site", true),
            ("{env.X}", true),
            ("x", false),
            ("/srv/site/x", false),
        ] {
            assert_eq!(hides_all(name, root), expect, "{name}");
        }
    }

    #[test]
    fn an_index_that_is_hidden_is_none() {
        let mut said = FileWords { hidden: vec!["*.txt".to_owned()], ..FileWords::default() };
        let index = said.index(&directive("file_server"), Path::new("/srv"), &mut Findings::default());
        assert_eq!(index, ["index.html"]);
    }
}
