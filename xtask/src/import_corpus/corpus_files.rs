//! Which configurations a corpus of published nginx files holds. The files are others' and lie outside of the repository.
//!
//! A file is one. A folder is a publication: its `nginx.conf`, with each of its sites where it brings some; else the files in it
//! that have servers, or some of them where they are many.

use std::path::{Path, PathBuf};

use crate::import_corpus::directive_text::{Directive, Publication, read};

/// Of one publication. Its files resemble one another.
const PER_PUBLICATION_MAX: usize = 10;
const FOLDER_DEPTH_MAX: usize = 8;

/// A configuration that can be run by itself.
#[derive(Debug)]
pub struct PublishedConf {
    pub name: String,
    /// Those that stand in front, then the site.
    files: Vec<PathBuf>,
    folder: PathBuf,
}

impl PublishedConf {
    pub fn read(&self) -> Result<Vec<Directive>, String> {
        let mut all = Vec::new();
        for file in &self.files {
            all.extend(read(&Publication { file, folder: &self.folder })?);
        }
        Ok(all)
    }
}

pub fn published(corpus: &Path) -> Result<Vec<PublishedConf>, String> {
    let mut found = Vec::new();
    for entry in entries(corpus)? {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match entry.is_dir() {
            true => found.extend(of_folder(&entry, &name)?),
            false => found.push(PublishedConf { name, files: vec![entry], folder: corpus.to_owned() }),
        }
    }
    Ok(found)
}

fn of_folder(folder: &Path, name: &str) -> Result<Vec<PublishedConf>, String> {
    let mut files = Vec::new();
    gather(folder, 0, &mut files)?;
    let called = |path: &PathBuf| path.file_name().is_some_and(|name| name == "nginx.conf");
    let main = files.iter().find(|path| called(path)).cloned();
    let home = main.as_deref().and_then(Path::parent).unwrap_or(folder).to_owned();
    let shown = |path: &Path| format!("{name}/{}", path.strip_prefix(folder).unwrap_or(path).display());
    let is_site = |path: &&PathBuf| {
        let is_among_sites =
            path.parent().is_some_and(|parent| parent.ends_with("sites-available") || parent.ends_with("templates"));
        (main.is_none() || is_among_sites) && has_server(path)
    };
    let sites: Vec<&PathBuf> = files.iter().filter(is_site).collect();
    let step = sites.len().div_ceil(PER_PUBLICATION_MAX).max(1);
    let chosen = sites.into_iter().step_by(step);
    let mut found: Vec<PublishedConf> = chosen
        .map(|site| PublishedConf {
            name: shown(site),
            files: main.iter().chain([site]).cloned().collect(),
            folder: home.clone(),
        })
        .collect();
    if let (Some(main), true) = (&main, found.is_empty()) {
        found.push(PublishedConf { name: shown(main), files: vec![main.clone()], folder: home });
    }
    Ok(found)
}

fn has_server(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    String::from_utf8_lossy(&text)
        .lines()
        .any(|line| line.split_whitespace().collect::<String>().starts_with("server{"))
}

fn gather(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in entries(folder)? {
        match entry.is_dir() {
            true if depth < FOLDER_DEPTH_MAX => gather(&entry, depth + 1, found)?,
            true => {}
            false => found.push(entry),
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let read = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut found: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    found.retain(|path| !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.')));
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_publications_are_found() {
        let corpus = std::env::temp_dir().join(format!("larder-corpus-{}", std::process::id()));
        for (name, text) in [
            ("one.conf", "server { }"),
            ("whole/conf/nginx.conf", "http { include sites-enabled/*; map a b { } }"),
            ("whole/conf/sites-available/x", "server { include more.conf; }"),
            ("whole/conf/more.conf", "root /srv;"),
            ("samples/a.sample", "server\n{\n}"),
            ("samples/a2.sample", "server {\n}"),
            ("samples/b.txt", "words"),
        ] {
            let path = corpus.join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(path, text).expect("it is written");
        }
        let found = published(&corpus).expect("a corpus");
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["one.conf", "samples/a2.sample", "whole/conf/sites-available/x"]);
        let whole = found[2].read().expect("directives");
        let names: Vec<&str> = whole.iter().map(Directive::name).collect();
        assert_eq!((names, whole[1].children()[0].word(1)), (vec!["http", "server"], "/srv"));
        std::fs::remove_dir_all(&corpus).expect("it is there");
    }
}
