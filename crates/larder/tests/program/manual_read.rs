//! `larder man`: what man and mandoc make of its pages.

use std::path::{Path, PathBuf};
use std::process::Command;

fn written() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("manual");
    let _ = std::fs::remove_dir_all(&folder); // it may not be there
    let done = Command::new(env!("CARGO_BIN_EXE_larder")).args(["man", "--to"]).arg(&folder).output();
    let done = done.expect("larder can be started");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    folder
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let of = |section: &str| std::fs::read_dir(folder.join(section)).expect("it was written").flatten();
    let mut files: Vec<PathBuf> = of("man1").chain(of("man5")).map(|entry| entry.path()).collect();
    files.sort();
    assert!(files.len() > 40, "only {} pages", files.len());
    files
}

/// Where one of the two is not installed it is not asked.
#[test]
fn formatters_find_nothing_wrong() {
    let folder = written();
    let files = files(&folder);
    let asked = |program: &str, words: &[&str]| {
        let done = Command::new(program).args(words).args(&files).output();
        match done {
            Ok(done) => Some(String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()),
            Err(error) => {
                println!("{program} is not asked: {error}");
                None
            }
        }
    };
    // Pages have no date, so that the same program makes the same page.
    let is_wrong = |line: &&str| !line.is_empty() && !line.contains("missing date");
    if let Some(said) = asked("mandoc", &["-T", "lint", "-W", "warning"]) {
        let wrong: Vec<&str> = said.lines().filter(is_wrong).take(20).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
    if let Some(said) = asked("groff", &["-man", "-Tutf8", "-ww", "-z"]) {
        let wrong: Vec<&str> = said.lines().filter(|line| !line.is_empty()).take(20).collect();
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

#[test]
fn a_page_is_printed_by_its_words() {
    let print = |words: &[&str]| {
        let done = Command::new(env!("CARGO_BIN_EXE_larder")).arg("man").args(words).output();
        let done = done.expect("larder can be started");
        (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    assert!(print(&["lab", "run"]).1.starts_with(".TH LARDER\\-LAB\\-RUN 1 "));
    assert!(print(&["larder-lab-run"]).1.starts_with(".TH LARDER\\-LAB\\-RUN 1 "));
    assert!(print(&[]).1.starts_with(".TH LARDER 1 "));
    assert!(print(&["larder.toml"]).1.starts_with(".TH LARDER.TOML 5 "));
    let (code, said) = print(&["nothing"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("there is no page larder-nothing; there are larder, larder-serve"), "{said}");
}
