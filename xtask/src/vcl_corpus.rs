//! Whether `larder check` and Varnish's own compiler agree: every .vcl file of a folder is given to both.
//!
//! The folder holds other people's files and is no part of the repository; what is, is the list of differences in
//! docs/vcl-differences.md, each with its reason. A difference that is not on it fails the task. Names of backends and
//! in ACLs are looked up by Varnish and not by larder, so in a copy those that do not resolve become 127.0.0.1, and
//! ports that are no ports 80.
//!
//! Each folder within DIR is counted for itself, and in it whole files apart from parts that others include.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::project::Project;
use crate::{originals, vcl_load_time};

const LIST: &str = "docs/vcl-differences.md";

/// Names that are replaced in one file before it is given up.
const NAMES_MAX: usize = 60;

/// Files that one run looks at.
const FILES_MAX: usize = 20_000;

pub fn task(project: &Project, folder: &str) -> Result<(), String> {
    project.build_larder()?;
    let mut list = List::read(&project.read(LIST)?);
    let copy = project.scratch("vcl-corpus")?;
    std::fs::remove_dir_all(&copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    copy_tree(Path::new(folder), &copy)?;
    let mut files = Vec::new();
    vcl_files(&copy, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(format!("{folder} holds no .vcl files"));
    }
    let varnish = Varnish::find()?;
    let mut tally = Tally::default();
    let mut longest: Option<(usize, &PathBuf)> = None;
    for file in &files {
        let paths = ancestors(file, &copy);
        let outcome = compare(&varnish.check(file, &paths)?, &larder(project, file, &paths)?, &mut list);
        let name = file.strip_prefix(&copy).unwrap_or(file);
        if let Outcome::Unlisted(what) = &outcome {
            println!("{}: {what}", name.display());
        }
        let text = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        if matches!(outcome, Outcome::BothAccept) && is_whole(&text) {
            longest = longest.max(Some((text.len(), file)));
        }
        tally.add(name, &text, outcome);
    }
    tally.print();
    println!();
    for row in list.rows.iter().filter(|row| row.used > 0) {
        println!("{:6}  differ as listed: {}", row.used, row.why);
    }
    let loading = match &longest {
        Some((_, file)) => vcl_load_time::measure(project, file, &ancestors(file, &copy)),
        None => Ok(()),
    };
    let at_work = originals::run(project, Path::new(folder), &[]);
    match tally.unlisted {
        0 => loading.and(at_work),
        count => Err(format!("{count} files on which larder and Varnish differ without a reason in {LIST}")),
    }
}

/// What came of the files, by folder of the corpus. A text that is there twice is counted once.
#[derive(Default)]
struct Tally {
    groups: BTreeMap<Group, [usize; OUTCOMES.len()]>,
    seen: HashSet<(Group, Vec<u8>)>,
    copies: usize,
    /// Folders within a folder of the corpus of which a whole file is accepted by both: repositories, as they are kept.
    sources: HashSet<PathBuf>,
    modules: BTreeMap<String, usize>,
    unlisted: usize,
}

/// The folder, and whether the files are whole.
type Group = (String, bool);

impl Tally {
    /// The name of the file is relative to the corpus.
    fn add(&mut self, name: &Path, text: &[u8], outcome: Outcome) {
        let mut folders = name.components().map(|part| PathBuf::from(part.as_os_str()));
        let (folder, source) = (folders.next().unwrap_or_default(), folders.next().unwrap_or_default());
        let has_sources = name.components().count() > 2;
        let folder = if folder == name { ".".to_string() } else { folder.display().to_string() };
        self.unlisted += usize::from(matches!(outcome, Outcome::Unlisted(_)));
        let whole = is_whole(text);
        let group = (folder.clone(), whole);
        if !self.seen.insert((group.clone(), text.to_vec())) {
            self.copies += 1;
            return;
        }
        if let Outcome::NotCompared(module) = &outcome {
            *self.modules.entry(module.clone()).or_default() += 1;
        }
        if whole && has_sources && matches!(outcome, Outcome::BothAccept) {
            self.sources.insert(Path::new(&folder).join(source));
        }
        self.groups.entry(group).or_default()[outcome.column()] += 1;
    }

    fn print(&self) {
        println!("\n{:<28}{}", "", OUTCOMES.map(|word| format!("{word:>18}")).concat());
        for ((folder, whole), counts) in &self.groups {
            let name = format!("{folder}, {}", if *whole { "whole files" } else { "parts" });
            println!("{name:<28}{}", counts.map(|count| format!("{count:>18}")).concat());
        }
        println!("\n{} more texts are copies of one that is counted", self.copies);
        for folder in self.groups.keys().filter(|(_, whole)| *whole).map(|(folder, _)| folder) {
            let count = self.sources.iter().filter(|source| source.starts_with(folder)).count();
            if count > 0 {
                println!("{count} folders of {folder} have a whole file that both accept");
            }
        }
        let modules: Vec<String> = self.modules.iter().map(|(module, count)| format!("{module} ({count})")).collect();
        println!("not compared, because Varnish has no such vmod here: {}", modules.join(", "));
    }
}

/// A program begins with its version; what others include need not.
fn is_whole(text: &[u8]) -> bool {
    let mut rest = text;
    loop {
        rest = rest.trim_ascii_start();
        let end = match rest {
            [b'#', ..] | [b'/', b'/', ..] => rest.iter().position(|b| *b == b'\n'),
            [b'/', b'*', ..] => rest.windows(2).position(|two| two == b"*/").map(|at| at + 1),
            _ => return rest.starts_with(b"vcl ") || rest.starts_with(b"vcl\t"),
        };
        let Some(end) = end else { return false };
        rest = &rest[end + 1..];
    }
}

/// What Varnish says of a file.
enum Verdict {
    Good,
    Bad(String),
    /// It lacks a module, so nothing behind the import was looked at.
    NoModule(String),
}

/// Of one file, from both.
enum Outcome {
    BothAccept,
    BothRefuse,
    NotCompared(String),
    Listed,
    Unlisted(String),
}

/// The columns of the table.
const OUTCOMES: [&str; 5] = ["accepted by both", "refused by both", "differ as listed", "DIFFER", "not compared"];

impl Outcome {
    fn column(&self) -> usize {
        match self {
            Outcome::BothAccept => 0,
            Outcome::BothRefuse => 1,
            Outcome::Listed => 2,
            Outcome::Unlisted(_) => 3,
            Outcome::NotCompared(_) => 4,
        }
    }
}

/// The errors of larder, `code: message`; none when it accepts.
fn compare(varnish: &Verdict, errors: &[String], list: &mut List) -> Outcome {
    match (varnish, errors) {
        (Verdict::NoModule(module), _) => Outcome::NotCompared(module.clone()),
        (Verdict::Good, []) => Outcome::BothAccept,
        (Verdict::Bad(_), [_, ..]) => Outcome::BothRefuse,
        (Verdict::Bad(said), []) => match list.takes(true, said) {
            true => Outcome::Listed,
            false => Outcome::Unlisted(format!(
                "only Varnish refuses it: {}",
                said.lines().take(3).collect::<Vec<_>>().join(" / ")
            )),
        },
        (Verdict::Good, errors) => match errors.iter().find(|error| !list.takes(false, error)) {
            None => Outcome::Listed,
            Some(error) => Outcome::Unlisted(format!("only larder refuses it: {error}")),
        },
    }
}

/// The table of docs/vcl-differences.md.
struct List {
    rows: Vec<Row>,
}

struct Row {
    refused_by_varnish: bool,
    /// All of them are in what is said.
    words: Vec<String>,
    why: String,
    used: usize,
}

impl List {
    /// Rows are `| Varnish | ``words`` | why |`.
    fn read(page: &str) -> List {
        let row = |line: &str| {
            let cells: Vec<&str> = line.trim().trim_matches('|').split(" | ").map(str::trim).collect();
            let [by, words, why] = cells[..] else { return None };
            let refused_by_varnish = match by {
                "Varnish" => true,
                "larder" => false,
                _ => return None,
            };
            let words = words.split('`').skip(1).step_by(2).map(str::to_string).collect();
            Some(Row { refused_by_varnish, words, why: why.to_string(), used: 0 })
        };
        List { rows: page.lines().filter_map(row).collect() }
    }

    fn takes(&mut self, by_varnish: bool, said: &str) -> bool {
        let fits = |row: &&mut Row| {
            row.refused_by_varnish == by_varnish
                && !row.words.is_empty()
                && row.words.iter().all(|word| said.contains(word.as_str()))
        };
        let row = self.rows.iter_mut().find(fits);
        row.map(|row| row.used += 1).is_some()
    }
}

/// The real compiler, with the flags that its version has.
struct Varnish {
    /// Unused definitions are no errors for larder either.
    unused_allowed: &'static str,
}

impl Varnish {
    fn find() -> Result<Varnish, String> {
        let known = |parameter: &str| {
            let output = Command::new("varnishd").args(["-x", "parameter"]).output();
            output.map(|output| String::from_utf8_lossy(&output.stdout).contains(parameter))
        };
        match known("vcc_feature") {
            Ok(true) => Ok(Varnish { unused_allowed: "vcc_feature=-err_unref" }),
            Ok(false) => Ok(Varnish { unused_allowed: "vcc_err_unref=off" }),
            Err(e) => Err(format!("varnishd: {e}: install Debian's package varnish")),
        }
    }

    fn check(&self, file: &Path, paths: &[PathBuf]) -> Result<Verdict, String> {
        let mut said = String::new();
        for _ in 0..NAMES_MAX {
            said = self.run(file, paths)?;
            let replaced = match said.contains("Servname not supported") {
                true => replace_port(file)?,
                false if said.contains("could not be resolved") || said.contains("DNS lookup") => replace_name(&said),
                false => false,
            };
            if !replaced {
                break;
            }
        }
        // The translation to C has ended well when nothing says otherwise; the C compiler is not asked.
        if !said.contains("Running VCC-compiler failed") {
            return match said.contains("vdef.h") {
                true => Ok(Verdict::Good),
                false => Err(format!("varnishd says nothing of {}: {said}", file.display())),
            };
        }
        let lacks = said.split_once("Could not find VMOD ").map(|(_, rest)| rest);
        if let Some(module) = lacks.and_then(|rest| rest.split_whitespace().next()) {
            return Ok(Verdict::NoModule(module.to_string()));
        }
        let noise = ["Warnings:", "Change will take effect", "Could not delete", "Message from VCC"];
        let lines = said.lines().filter(|line| !line.is_empty() && !noise.iter().any(|noise| line.starts_with(noise)));
        Ok(Verdict::Bad(lines.take(12).collect::<Vec<_>>().join("\n")))
    }

    fn run(&self, file: &Path, paths: &[PathBuf]) -> Result<String, String> {
        let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
        let output = Command::new("varnishd")
            .args(["-C", "-p", "cc_command=true", "-p", self.unused_allowed])
            .args(["-p", &format!("vcl_path={}", paths.join(":")), "-f"])
            .arg(file)
            .stdin(Stdio::null())
            .output()
            .map_err(|e| format!("varnishd: {e}"))?;
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Ok(format!("{out}\n{err}"))
    }
}

/// Puts 127.0.0.1 in the place of the name that `('FILE' Line 3 Pos 9)` points to; whether that was done.
fn replace_name(said: &str) -> bool {
    let place = said.lines().find_map(|line| {
        let (file, rest) = line.split_once("('")?.1.split_once("' Line ")?;
        let mut numbers = rest.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        Some((file.to_string(), numbers.next()?.parse::<usize>().ok()?, numbers.next()?.parse::<usize>().ok()?))
    });
    let Some((file, line, column)) = place else { return false };
    let Ok(bytes) = std::fs::read(&file) else { return false };
    let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let Some(text) = lines.get_mut(line - 1) else { return false };
    let quote = |text: &[u8], from: usize| text.get(from..)?.iter().position(|b| *b == b'"').map(|at| from + at);
    let Some(start) = quote(text, column.saturating_sub(1)) else { return false };
    let Some(end) = quote(text, start + 1) else { return false };
    if &text[start + 1..end] == b"127.0.0.1" {
        return false;
    }
    text.splice(start + 1..end, *b"127.0.0.1");
    std::fs::write(&file, lines.join(&b'\n')).is_ok()
}

/// Puts 80 in the place of the first port that is neither a number nor a name; whether there was one.
fn replace_port(file: &Path) -> Result<bool, String> {
    let text = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut from = 0;
    while let Some(at) = text[from..].windows(5).position(|window| window == b".port") {
        from += at + 5;
        let rest = &text[from..];
        let Some(start) = rest.iter().position(|b| *b == b'"') else { break };
        let Some(length) = rest[start + 1..].iter().position(|b| *b == b'"') else { break };
        let port = from + start + 1..from + start + 1 + length;
        let good = text[port.clone()].iter().all(|b| b.is_ascii_digit());
        if rest[..start].iter().all(|b| b.is_ascii_whitespace() || *b == b'=') && !good {
            let mut text = text;
            text.splice(port, *b"80");
            return std::fs::write(file, text).map(|()| true).map_err(|e| format!("{}: {e}", file.display()));
        }
    }
    Ok(false)
}

/// larder's errors, as `code: message`.
fn larder(project: &Project, file: &Path, paths: &[PathBuf]) -> Result<Vec<String>, String> {
    let mut command = Command::new(project.larder());
    command.args(["check", "--json"]).arg(file);
    for path in paths {
        command.arg("--vcl-path").arg(path);
    }
    let output = command.output().map_err(|e| format!("{}: {e}", project.larder().display()))?;
    let answer: Value =
        serde_json::from_slice(&output.stdout).map_err(|e| format!("larder check {}: {e}", file.display()))?;
    let row = &answer["files"][0];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let errors = row["errors"].as_array().cloned().unwrap_or_default();
    let errors: Vec<String> = errors.iter().map(|e| format!("{}: {}", text(&e["code"]), text(&e["message"]))).collect();
    match row["ok"].as_bool() {
        Some(ok) if ok == errors.is_empty() && output.status.success() == ok => Ok(errors),
        _ => Err(format!("larder check {} contradicts itself: {answer}", file.display())),
    }
}

/// The file's folder and those around it, up to the corpus: where included files are looked for.
pub fn ancestors(file: &Path, corpus: &Path) -> Vec<PathBuf> {
    file.ancestors().skip(1).take_while(|folder| folder.starts_with(corpus)).map(Path::to_path_buf).collect()
}

pub fn vcl_files(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => vcl_files(&path, files)?,
            Ok(kind) if kind.is_file() && path.extension().is_some_and(|e| e == "vcl") && files.len() < FILES_MAX => {
                files.push(path);
            }
            _ => {}
        }
    }
    Ok(())
}

pub fn copy_tree(from: &Path, to: &Path) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(|e| format!("{}: {e}", to.display()))?;
    for entry in std::fs::read_dir(from).map_err(|e| format!("{}: {e}", from.display()))?.flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy_tree(&entry.path(), &target)?,
            Ok(kind) if kind.is_file() => {
                std::fs::copy(entry.path(), &target).map_err(|e| format!("{}: {e}", target.display()))?;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "| refused by | when it says | why |\n|---|---|---|\n\
        | Varnish | `Symbol not found` `(vcl(` | labels |\n| larder | `unknown-vmod` | no module |\n";

    fn check(varnish: &Verdict, errors: &[&str], expect: &str) {
        let errors: Vec<String> = errors.iter().map(|error| (*error).to_string()).collect();
        assert_eq!(OUTCOMES[compare(varnish, &errors, &mut List::read(PAGE)).column()], expect);
    }

    #[test]
    fn differences_are_held_against_the_list() {
        check(&Verdict::Good, &[], "accepted by both");
        check(&Verdict::Bad("x".into()), &["syntax: y"], "refused by both");
        check(&Verdict::Bad("Symbol not found: 'a'\nreturn (vcl(a));".into()), &[], "differ as listed");
        check(&Verdict::Bad("Symbol not found: 'a'".into()), &[], "DIFFER");
        check(&Verdict::Good, &["unknown-vmod: x"], "differ as listed");
        check(&Verdict::Good, &["unknown-vmod: x", "syntax: y"], "DIFFER");
        check(&Verdict::NoModule("x".into()), &["syntax: y"], "not compared");
    }

    #[test]
    fn a_whole_file_begins_with_its_version() {
        let check = |text: &str, expect| assert_eq!(is_whole(text.as_bytes()), expect, "{text}");
        check("vcl 4.1;", true);
        check("# a\n // b\n/* vcl */\n\tvcl 4.0;", true);
        check("sub vcl_recv { }", false);
        check("/* vcl 4.0;", false);
        check("# vcl 4.0;", false);
    }

    #[test]
    fn a_text_is_counted_once() {
        let mut tally = Tally::default();
        tally.add(Path::new("files/a+b/x.vcl"), b"vcl 4.1;", Outcome::BothAccept);
        tally.add(Path::new("files/a+c/x.vcl"), b"vcl 4.1;", Outcome::BothAccept);
        tally.add(Path::new("files/a+c/y.vcl"), b"sub x { }", Outcome::Unlisted(String::new()));
        assert_eq!(tally.groups[&("files".to_string(), true)], [1, 0, 0, 0, 0]);
        assert_eq!(tally.groups[&("files".to_string(), false)], [0, 0, 0, 1, 0]);
        assert_eq!((tally.copies, tally.sources.len(), tally.unlisted), (1, 1, 1));
    }
}
