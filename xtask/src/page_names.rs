//! Holds the pages for people against the repository: each link leads to a file that is there, and to a heading of it;
//! each Rust file that a page names is there.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

/// It tells what was, and names files that have gone since.
const OF_THE_PAST: &str = "CHANGELOG.md";

/// The pages and the files that they may lead to.
pub struct Pages<'a> {
    files: &'a [PathBuf],
    /// The anchors of each page.
    anchors: BTreeMap<&'a Path, Vec<String>>,
}

impl<'a> Pages<'a> {
    /// `pages` has the text of every Markdown file.
    pub fn new(files: &'a [PathBuf], pages: &'a [(PathBuf, String)]) -> Pages<'a> {
        let anchors = pages.iter().map(|(path, text)| (path.as_path(), prose(text).filter_map(anchor).collect()));
        Pages { files, anchors: anchors.collect() }
    }

    /// What one page says that is not so, a sentence each.
    pub fn complaints(&self, path: &Path, text: &str) -> Vec<String> {
        let links = prose(text).flat_map(links).filter_map(|link| self.misled(path, link));
        let names = prose(text).flat_map(quoted).filter(|_| path != Path::new(OF_THE_PAST));
        let absent = names.filter(|name| is_rust_file(name) && !self.files.iter().any(|file| file.ends_with(name)));
        links.chain(absent.map(|name| format!("names `{name}`, which is no file"))).collect()
    }

    fn misled(&self, page: &Path, link: &str) -> Option<String> {
        if link.contains("://") || link.starts_with("mailto:") {
            return None;
        }
        let (file, heading) = link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
        let target = match file {
            "" => page.to_path_buf(),
            file => beside(page, file),
        };
        if !self.files.iter().any(|file| file.starts_with(&target)) {
            return Some(format!("leads to {link}, which is no file"));
        }
        let anchors = self.anchors.get(target.as_path())?;
        let is_absent = |heading: &str| !anchors.iter().any(|anchor| anchor == heading);
        heading.filter(|heading| is_absent(heading)).map(|_| format!("leads to {link}, where no such heading is"))
    }
}

/// The lines outside of blocks of code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence && !line.starts_with("    ")
    })
}

/// Where the links of a line lead.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Capitals stand for a name of the reader's own.
fn is_rust_file(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_/.-".contains(c);
    name.ends_with(".rs") && name.chars().all(is_plain)
}

/// What leads to a heading: its letters, digits and hyphens, in lower case, with hyphens for blanks.
fn anchor(line: &str) -> Option<String> {
    let heading = line.trim_start_matches('#');
    let is_heading = heading.len() < line.len() && heading.starts_with(' ');
    is_heading.then(|| {
        let kept = heading.trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

fn beside(page: &Path, relative: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_path_buf).unwrap_or_default();
    for part in Path::new(relative).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::CurDir => {}
            part => path.push(part),
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[&str]) {
        let pages = [("docs/a.md", text), ("b.md", "# B\n## Two `words`, here\n")];
        let pages = pages.map(|(path, text)| (PathBuf::from(path), text.to_owned()));
        let mut files = ["crates/x/src/y.rs", "crates/x/src/z/w.rs", "spec/hit/a.vtc"].map(PathBuf::from).to_vec();
        files.extend(pages.iter().map(|(path, _)| path.clone()));
        let complaints = Pages::new(&files, &pages).complaints(&pages[0].0, text);
        assert_eq!(complaints, expect, "{text}");
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        check("[b](../b.md), [c](../b.md#two-words-here), [d](#here), [e](../spec/), [f](http://a/b.md)\n# Here", &[]);
        check("[b](b.md)", &["leads to b.md, which is no file"]);
        check("[b](../b.md#three)", &["leads to ../b.md#three, where no such heading is"]);
        check("[b](#there)", &["leads to #there, where no such heading is"]);
        check("```\n[b](b.md)\n```\n    [b](b.md)", &[]);
    }

    #[test]
    fn files_that_are_named_are_there() {
        check("`y.rs` and `z/w.rs`, `x/src/y.rs`; `NAME.rs`, `a b.rs`, y.rs, w.txt", &[]);
        check("`v.rs` and `x/y.rs`", &["names `v.rs`, which is no file", "names `x/y.rs`, which is no file"]);
    }
}
