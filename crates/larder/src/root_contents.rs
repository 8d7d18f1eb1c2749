//! What lies beneath the roots of a plan and is answered otherwise than by the server that had the site before: links that lead out, which nobody is
//! shown, and folders that a .htaccess shuts, which everybody is. Reads no more of a large site than its limits say.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use proxy::settings::{RootSettings, RouteSettings, RouteTarget};

use crate::bounded_file;
use crate::limits::{HTACCESS_BYTES_MAX, ROOT_DEPTH_MAX, ROOT_ENTRIES_MAX};
use crate::machine_check::MachineFinding;
use crate::plan::Plan;

/// What was found beneath one root, by its path there.
#[derive(Debug, Default, PartialEq, Eq)]
struct Contents {
    /// Links, and where they lead.
    leading_out: Vec<(PathBuf, PathBuf)>,
    /// Folders.
    shut: Vec<PathBuf>,
}

/// What there is to be said, each directory once.
pub fn findings(plan: &Plan) -> Vec<MachineFinding> {
    let settings = &plan.settings;
    let mut looked_at: Vec<&Path> = Vec::new();
    let mut all = Vec::new();
    for root in &settings.roots {
        if looked_at.contains(&&*root.directory) {
            continue;
        }
        looked_at.push(&root.directory);
        let is_of_it = |other: &RootSettings| other.directory == root.directory;
        let routes = settings
            .routes
            .iter()
            .filter(|route| matches!(route.target, RouteTarget::Root(at) if is_of_it(&settings.roots[at])));
        all.extend(of_root(&root.directory, &routes.collect::<Vec<_>>()));
    }
    all
}

fn of_root(root: &Path, routes: &[&RouteSettings]) -> Vec<MachineFinding> {
    let Contents { leading_out, shut } = contents(root);
    let url = |path: &Path| [b"/", path.as_os_str().as_bytes()].concat();
    // Another route may have the path.
    let is_shown = |url: &[u8]| {
        let closes = |route: &&RouteSettings| route.closed.as_ref().is_some_and(|closed| closed.close(url));
        let is_its = |route: &&RouteSettings| {
            let rest = url.strip_prefix(route.path_prefix.trim_end_matches('/').as_bytes());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
        };
        routes.iter().any(is_its) && !routes.iter().any(closes)
    };
    let mut found = Vec::new();
    let links: Vec<String> = leading_out
        .iter()
        .filter(|(link, _)| is_shown(&url(link)))
        .map(|(link, target)| format!("{} to {}", link.display(), target.display()))
        .collect();
    if let Some(named) = named(&links) {
        let message = format!(
            "beneath the root {} links lead out, and are 403: {named} ([[route]] root, --root)",
            root.display()
        );
        let advice = "copy what they lead to, mount it there (mount --bind), or write a [[route]] with that path and a root of its own; a link is \
                      followed where it is relative and stays beneath the root";
        found.push(MachineFinding::warning(message).advise(advice.to_owned()));
    }
    let shut: Vec<&PathBuf> = shut.iter().filter(|folder| is_shown(&[&url(folder)[..], b"/x"].concat())).collect();
    let files: Vec<String> = shut.iter().map(|folder| folder.join(HTACCESS).display().to_string()).collect();
    if let (Some(named), Some(first)) = (named(&files), shut.first()) {
        let message = format!(
            "beneath the root {} a .htaccess shuts what larder shows, for it reads none: {named} ([[route]] closed_paths)",
            root.display()
        );
        let beneath = format!("^/{}", first.display()).trim_end_matches('/').replace('.', "[.]");
        found.push(MachineFinding::warning(message).advise(format!("closed_paths = ['{beneath}(?:/|$)'] closes it")));
    }
    found
}

/// The first of these, and how many others there are.
fn named(all: &[String]) -> Option<String> {
    const NAMED: usize = 3;
    let first = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match all.len() {
        0 => None,
        count if count > NAMED => Some(format!("{first} and {} more", count - NAMED)),
        _ => Some(first),
    }
}

const HTACCESS: &str = ".htaccess";

fn contents(root: &Path) -> Contents {
    let mut found = Contents::default();
    let Ok(real) = root.canonicalize() else { return found };
    let mut folders = vec![(PathBuf::new(), 0)];
    let mut left = ROOT_ENTRIES_MAX;
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = real.join(&folder).read_dir() else { continue };
        for entry in entries.flatten() {
            left -= 1;
            if left == 0 {
                break;
            }
            let name = folder.join(entry.file_name());
            let Ok(kind) = entry.file_type() else { continue };
            if entry.file_name() == HTACCESS && kind.is_file() && shuts(&entry.path()) {
                found.shut.push(folder.clone());
            }
            // What begins with a dot is hidden.
            if entry.file_name().as_bytes().starts_with(b".") {
                continue;
            }
            if kind.is_symlink() {
                found.leading_out.extend(leads_out(&real, &entry.path()).map(|target| (name, target)));
            } else if kind.is_dir() && depth < ROOT_DEPTH_MAX {
                folders.push((name, depth + 1));
            }
        }
        if left == 0 {
            break;
        }
    }
    found.leading_out.sort_unstable();
    found.shut.sort_unstable();
    found
}

/// Where a link leads that is not followed. One that leads nowhere is none.
fn leads_out(root: &Path, link: &Path) -> Option<PathBuf> {
    let target = link.read_link().ok()?;
    let real = link.canonicalize().ok()?;
    (target.is_absolute() || !real.starts_with(root)).then_some(target)
}

/// Does it shut its folder, and let nobody in again?
fn shuts(htaccess: &Path) -> bool {
    let Ok(text) = bounded_file::read_text(htaccess, HTACCESS_BYTES_MAX) else { return false };
    let words = |line: &str| line.split_whitespace().map(str::to_ascii_lowercase).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = text.lines().map(words).collect();
    let says = |what: &[&str]| lines.iter().any(|line| what.contains(&line.as_str()));
    says(&["deny from all", "require all denied"]) && !says(&["allow from all", "require all granted"])
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::config;

    /// What is said of a site that such a route shows.
    fn said(name: &str, words: &str) -> Vec<String> {
        let folder = std::env::temp_dir().join(format!("larder-contents-{name}-{}", std::process::id()));
        let site = folder.join("site");
        for (file, text) in [
            ("logs/.htaccess", "Order deny,allow\n  Deny   from all\n"),
            ("open/.htaccess", "Require all denied\n<FilesMatch css$>\nRequire all granted\n</FilesMatch>\n"),
            (".git/.htaccess", "deny from all"),
            ("a.css", "p {}"),
        ] {
            let file = site.join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        std::fs::write(folder.join("b.js"), "b").unwrap();
        let _ = symlink("../b.js", site.join("out.js"));
        let _ = symlink("/nowhere/at/all", site.join("dangling"));
        let _ = symlink("a.css", site.join("inside.css"));
        let _ = symlink(site.join("a.css"), site.join("absolute.css"));
        let text = format!("[[route]]\nroot = {site:?}\n{words}\n");
        let plan = config::read(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        let found = findings(&plan).into_iter().map(|finding| finding.show()).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        found
    }

    #[test]
    fn links_that_lead_out_and_folders_that_a_htaccess_shuts_are_named() {
        let found = said("all", "");
        let [links, shut] = &found[..] else { panic!("{found:?}") };
        assert!(links.contains("absolute.css to /") && links.contains("out.js to ../b.js"), "{links}");
        assert!(!links.contains("dangling") && !links.contains("inside.css"), "{links}");
        assert!(shut.contains(": logs/.htaccess (") && shut.contains("'^/logs(?:/|$)'"), "{shut}");
    }

    #[test]
    fn what_is_closed_is_not_said_of() {
        assert_eq!(said("closed", "closed_paths = ['^/logs/', '[.]css$', '[.]js$']"), [""; 0]);
        assert_eq!(said("elsewhere", "path = \"/open\""), [""; 0]);
    }
}
