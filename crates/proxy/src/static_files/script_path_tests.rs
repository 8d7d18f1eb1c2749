//! What paths mean beneath a root with scripts in it, by the disk and by what the kernel remembers.

use std::os::unix::fs::symlink;

use super::*;
use crate::settings::{Listing, RootScripts, ShownSources};
use crate::static_files::finding::tests::TestFolder;
use crate::static_files::finding::{self, Found, Terms};

fn settings(folder: &TestFolder) -> RootSettings {
    RootSettings {
        index: vec!["index.php".to_owned(), "index.html".to_owned()],
        fallback: Some("/index.php".to_owned()),
        scripts: Some(RootScripts { origin: 0, endings: vec![".php".to_owned()] }),
        ..RootSettings::of(folder.path(""))
    }
}

fn folder(name: &str) -> TestFolder {
    let folder = TestFolder::new(name);
    for name in [
        "index.php",
        "app/run.php",
        "app/index.php",
        "plain/index.html",
        "empty/x.txt",
        "uploads/photo.jpg",
        "odd.php/x.txt",
        "odd.php/run.php",
        "a.css",
        "config.php.bak",
        "lib.inc",
        "UPPER.PHP",
        "under/.well-known/x",
    ] {
        folder.write(name, name);
    }
    symlink("/etc/passwd", folder.path("out.php")).unwrap();
    symlink("app/run.php", folder.path("link.php")).unwrap();
    symlink("app/run.php", folder.path("link.txt")).unwrap();
    symlink("link.txt", folder.path("twice.jpg")).unwrap();
    symlink("a.css", folder.path("style.css")).unwrap();
    folder
}

/// `script` and `path info` for a script, else what is found: the length of a file, or a word.
fn found(settings: &RootSettings, path: &str) -> String {
    let path = match FilePath::read(path.as_bytes(), settings.dotfiles) {
        Ok(path) => path,
        Err(why) => return format!("{why:?}"),
    };
    match finding::find(settings, &path, None, Terms::PLAIN, None) {
        Ok(Found::Script(script)) => text(&script),
        Ok(Found::File(_)) => "file".to_owned(),
        Ok(Found::Directory) => "directory".to_owned(),
        Ok(Found::Listing(_)) => "listing".to_owned(),
        Err(why) => format!("{why:?}"),
    }
}

fn text(script: &ScriptPath) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{} + {:?}", text(&script.relative), text(&script.path_info))
}

fn check(settings: &RootSettings, path: &str, expect: &str) {
    assert_eq!(found(settings, path), expect, "{path}");
    // What is remembered says the same of scripts, and nothing of all else.
    let Ok(read) = FilePath::read(path.as_bytes(), settings.dotfiles) else { return };
    match at_hand(settings, &read) {
        AtHand::Script(script) => assert_eq!(text(&script), expect, "{path}"),
        AtHand::Absent => assert_eq!(expect, "Absent", "{path}"),
        AtHand::Unknown => {}
    }
}

#[test]
fn a_script_is_a_regular_file_on_the_way() {
    let folder = folder("scripts");
    let settings = settings(&folder);
    check(&settings, "/index.php", "index.php + \"\"");
    check(&settings, "/index.php/", "index.php + \"/\"");
    check(&settings, "/index.php/a/b", "index.php + \"/a/b\"");
    check(&settings, "/index.php/a//b/", "index.php + \"/a/b/\"");
    check(&settings, "/app/run.php/x.php/y", "app/run.php + \"/x.php/y\"");
    check(&settings, "/app/", "app/index.php + \"\"");
    check(&settings, "/", "index.php + \"\"");
    check(&settings, "/%69ndex.php/%61", "index.php + \"/a\"");
    check(&settings, "/link.php", "link.php + \"\"");
    check(&settings, "/odd.php/run.php/z", "odd.php/run.php + \"/z\"");
}

/// A server beside us would show `x.PHP`, or run it where visitors may write: here nobody does either.
#[test]
fn a_source_in_another_spelling_or_behind_a_link_is_neither_run_nor_shown() {
    let folder = folder("other-spellings");
    let settings = settings(&folder);
    check(&settings, "/UPPER.PHP", "Source");
    check(&settings, "/UPPER.PHP/x.jpg", "Absent");
    check(&settings, "/link.txt", "Source");
    check(&settings, "/twice.jpg", "Source");
    check(&settings, "/style.css", "file");
    let index = RootSettings { index: vec!["twice.jpg".to_owned()], ..settings };
    check(&index, "/", "Source");
}

#[test]
fn a_directory_without_an_index_is_refused_where_a_file_answers_for_what_is_none() {
    let folder = folder("no-index");
    let settings = |fallback: &str| RootSettings { fallback: Some(fallback.to_owned()), ..settings(&folder) };
    check(&settings("/index.php"), "/empty/", "Absent");
    check(&settings("/a.css"), "/empty/", "NoIndex");
    check(&settings("/a.css"), "/some/page", "Absent");
    check(&RootSettings { index: Vec::new(), ..settings("/a.css") }, "/empty/", "Absent");
}

#[test]
fn what_is_no_script_is_a_file_or_nothing_and_never_a_source() {
    let folder = folder("no-scripts");
    let settings = settings(&folder);
    check(&settings, "/a.css", "file");
    check(&settings, "/plain/", "file");
    check(&settings, "/odd.php/x.txt", "file");
    check(&settings, "/app", "directory");
    check(&settings, "/odd.php", "directory");
    // The hole of cgi.fix_pathinfo: a file that somebody has uploaded is no script, whatever stands behind it.
    check(&settings, "/uploads/photo.jpg", "file");
    check(&settings, "/uploads/photo.jpg/x.php", "Absent");
    check(&settings, "/uploads/photo.jpg%00.php", "Malformed");
    check(&settings, "/none.php", "Absent");
    check(&settings, "/none.php/index.php", "Absent");
    check(&settings, "/some/page", "Absent");
    check(&settings, "/empty/", "Absent");
    check(&settings, "/.env", "Hidden");
    check(&settings, "/a%2Fb", "Hidden");
    check(&settings, "/config.php.bak", "Source");
    check(&settings, "/lib.inc", "Source");
    check(&settings, "/out.php", "LeadsOut");
    check(&settings, "/out.php/x", "LeadsOut");
    let listed = RootSettings { listing: Listing::Html, ..settings };
    assert!(matches!(look(&listed, &FilePath::read(b"/empty/", false).unwrap(), Reach::Disk), Ok(None)));
}

#[test]
fn what_was_looked_at_a_moment_ago_is_remembered() {
    let folder = folder("remembered");
    let settings = settings(&folder);
    if path_meaning::open_root(&settings, Reach::Memory).is_err() {
        return; // A kernel before 5.12.
    }
    let remembered = |path: &str| {
        found(&settings, path);
        at_hand(&settings, &FilePath::read(path.as_bytes(), false).unwrap())
    };
    assert!(matches!(remembered("/app/run.php/x"), AtHand::Script(script) if text(&script) == "app/run.php + \"/x\""));
    assert_eq!(remembered("/no/such/page"), AtHand::Absent);
    assert_eq!(remembered("/a.css"), AtHand::Unknown);
}

#[test]
fn an_index_is_never_a_source_either() {
    let folder = folder("index-sources");
    let settings = RootSettings { index: vec!["x.txt".to_owned(), "config.php.bak".to_owned()], ..settings(&folder) };
    check(&settings, "/", "Source");
    // Without scripts nobody runs it, and nobody is shown it, unless an operator says so.
    let plain = RootSettings { scripts: None, ..settings };
    let kept = "SourceNotRun".to_owned();
    for path in ["/", "/index.php", "/link.txt", "/UPPER.PHP"] {
        assert_eq!(found(&plain, path), kept, "{path}");
    }
    assert_eq!((found(&plain, "/lib.inc"), found(&plain, "/none.php")), ("file".to_owned(), "Absent".to_owned()));
    let beside = ShownSources::Nothing { endings: vec![".php".to_owned()] };
    assert_eq!(found(&RootSettings { sources: beside, ..plain.clone() }, "/lib.inc"), kept);
    let shown = RootSettings { sources: ShownSources::All, ..plain };
    assert_eq!((found(&shown, "/"), found(&shown, "/index.php")), ("file".to_owned(), "file".to_owned()));
}

#[test]
fn a_fetch_gets_a_script_whatever_the_path_has_become() {
    let folder = folder("fetched");
    let settings = settings(&folder);
    let script = |path: &str| of_fetch(&settings, path.as_bytes()).map(|script| text(&script));
    assert_eq!(script("/app/run.php/x").as_deref(), Ok("app/run.php + \"/x\""));
    for path in ["/a.css", "/none", "/app", "/.env", "/a%2fb"] {
        assert_eq!(script(path).as_deref(), Ok("index.php + \"\""), "{path}");
    }
    assert_eq!(script("/out.php"), Err(NotShown::LeadsOut));
    std::fs::remove_file(folder.path("index.php")).unwrap();
    assert_eq!(script("/none"), Err(NotShown::Absent));
}

fn check_names(names: &[&str], is_source: bool) {
    let endings = [".php".to_owned(), ".run".to_owned()];
    for name in names {
        assert_eq!(super::is_source(name.as_bytes(), &endings), is_source, "{name}");
    }
}

#[test]
fn sources_are_known_by_what_stands_behind_a_dot() {
    check_names(
        &["a.php", "a.php~", "a.PHP", "b/a.php.bak", "a.php.txt", "#a.php#", "a.phtml", "a.php5", "a.phar"],
        true,
    );
    check_names(&["a.php_old", "a.inc", "a.inc~", "a.run.orig", "x/.php"], true);
    check_names(
        &["a.css", "php", "learn-php.html", "a.inc.js", "phpinfo.html", "a.phpx", "a.php/b.css", "inc", ""],
        false,
    );
}
