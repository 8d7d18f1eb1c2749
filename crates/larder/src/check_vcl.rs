//! `larder check FILE.vcl`: the part of `larder check` that knows VCL files; the language itself is the crate `vcl`.
//!
//! Here is what that crate must not know: where files are, and how what it found is shown.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vcl::{Checked, Diagnostic, IncludeRequest, Included, Includes, Severity, Sources};

use crate::bounded_file;

/// Where Varnish looks for included files unless told otherwise.
const VCL_PATH_DEFAULT: [&str; 2] = ["/etc/varnish", "/usr/share/varnish/vcl"];

/// Files that one `+glob` may mean.
const GLOB_FILES_MAX: usize = vcl::limits::FILES_MAX;

/// A file that was read, or why not.
pub enum VclResult {
    Checked(Box<Checked>),
    Unreadable(String),
}

/// By its name, or else by its first word.
pub fn is_vcl(path: &Path) -> bool {
    if let Some(extension) = path.extension() {
        if extension == "vcl" {
            return true;
        }
        if extension == "toml" {
            return false;
        }
    }
    // Looking into a pipe would eat its beginning.
    let is_file = std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file());
    let mut start = Vec::new();
    let read = || std::fs::File::open(path)?.take(FIRST_WORD_BYTES_MAX).read_to_end(&mut start);
    is_file && { read }().is_ok() && begins_as_vcl(&start)
}

/// So much of a file may stand before its first word.
const FIRST_WORD_BYTES_MAX: u64 = 64 << 10;

/// Does a text begin as a VCL does: with a word of VCL's, and with what VCL has behind it? TOML and files of HAProxy, Squid, BIND and Caddy
/// begin with these words, too.
pub fn begins_as_vcl(text: &[u8]) -> bool {
    let mut rest = text;
    loop {
        let Some(start) = behind_comments(rest) else { return false };
        let (word, behind) = first_word(start);
        let (name, then) = first_word(behind);
        let is_opened = |text: &[u8]| text.starts_with(b"{") || text.starts_with(b"none");
        match word {
            b"vcl" => return behind.first().is_some_and(u8::is_ascii_digit),
            b"backend" | b"probe" | b"sub" => return !name.is_empty() && is_opened(then),
            b"director" => return !name.is_empty() && is_opened(first_word(then).1),
            b"import" => return !name.is_empty() && (then.starts_with(b";") || then.starts_with(b"from")),
            b"acl" => return !name.is_empty() && then.strip_prefix(b"{").is_some_and(is_acl_of_vcl),
            // BIND includes files with the same words: what stands behind it tells, or the name of the file.
            b"include" => {
                let Some((file, behind)) = included(behind) else { return false };
                if behind_comments(behind).is_none_or(<[u8]>::is_empty) {
                    return file.ends_with(b".vcl");
                }
                rest = behind;
            }
            _ => return false,
        }
    }
}

/// Behind blanks, and comments as VCL has them. `None`: a comment has no end.
fn behind_comments(text: &[u8]) -> Option<&[u8]> {
    let mut rest = text.trim_ascii_start();
    loop {
        let ending: &[u8] = match rest {
            [b'#', ..] | [b'/', b'/', ..] => b"\n",
            [b'/', b'*', ..] => b"*/",
            _ => return Some(rest),
        };
        let at = rest.windows(ending.len()).position(|window| window == ending)?;
        rest = rest[at + ending.len()..].trim_ascii_start();
    }
}

/// A name, and what stands behind it and blanks.
fn first_word(text: &[u8]) -> (&[u8], &[u8]) {
    let length = text.iter().take_while(|b| b.is_ascii_alphanumeric() || b"_-".contains(b)).count();
    (&text[..length], text[length..].trim_ascii_start())
}

/// Addresses of VCL stand between quotes, those of BIND without; and behind a block of BIND's stands a semicolon.
fn is_acl_of_vcl(inside: &[u8]) -> bool {
    let first = behind_comments(inside).unwrap_or_default();
    let first = first.trim_ascii_start().strip_prefix(b"!").unwrap_or(first).trim_ascii_start();
    let behind = inside.iter().position(|b| *b == b'}').map_or(&b""[..], |at| &inside[at + 1..]);
    first.starts_with(b"\"") && !behind.trim_ascii_start().starts_with(b";")
}

/// The file that a statement includes, and what stands behind that.
fn included(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.strip_prefix(b"\"")?;
    let end = text.iter().position(|b| *b == b'"')?;
    Some((&text[..end], text[end + 1..].trim_ascii_start().strip_prefix(b";")?))
}

/// What a VCL may refer to beside itself.
#[derive(Clone, Copy, Debug)]
pub struct Beside<'a> {
    /// Folders of what it includes.
    pub vcl_path: &'a [PathBuf],
    /// Origins of larder.toml that it may name as backends.
    pub origins: &'a [String],
}

impl<'a> Beside<'a> {
    /// No larder.toml.
    pub fn alone(vcl_path: &'a [PathBuf]) -> Beside<'a> {
        Beside { vcl_path, origins: &[] }
    }
}

pub fn load(path: &Path, beside: Beside<'_>) -> VclResult {
    match read_vcl(path) {
        Ok(bytes) => check_text(&path.display().to_string(), bytes, beside),
        Err(why) => VclResult::Unreadable(format!("{}: error: {why}", path.display())),
    }
}

/// A text under the name of the file that it is of, or would be.
pub fn check_text(name: &str, bytes: Vec<u8>, beside: Beside<'_>) -> VclResult {
    let includes = Disk { vcl_path: beside.vcl_path };
    let first = Included { name: name.to_owned(), bytes };
    VclResult::Checked(Box::new(vcl::check_beside(first, &includes, beside.origins)))
}

pub fn read_vcl(path: &Path) -> Result<Vec<u8>, String> {
    let metadata = std::fs::metadata(path).map_err(|e| e.to_string())?;
    if !metadata.is_file() {
        return Err("not a file".to_owned());
    }
    bounded_file::read(path, vcl::limits::FILE_BYTES_MAX as u64)
}

/// Finds included files as Varnish does: absolute, beside the including file (`./`), or in the VCL path.
pub struct Disk<'a> {
    pub vcl_path: &'a [PathBuf],
}

impl Includes for Disk<'_> {
    fn find(&self, request: &IncludeRequest<'_>) -> Result<Vec<Included>, String> {
        let mut tried = Vec::new();
        for candidate in self.candidates(request) {
            let paths = if request.glob { matching(&candidate) } else { vec![candidate.clone()] };
            let mut found = Vec::new();
            for path in paths {
                match read_vcl(&path) {
                    Ok(bytes) => found.push(Included { name: path.display().to_string(), bytes }),
                    // What a pattern matches is meant: left out, it would be missing and nobody told.
                    Err(why) if request.glob => return Err(format!("{}: {why}", path.display())),
                    Err(why) => tried.push(format!("{}: {why}", path.display())),
                }
            }
            if !found.is_empty() {
                return Ok(found);
            }
            if request.glob {
                tried.push(format!("{}: matches no file", candidate.display()));
            }
        }
        Err(format!("tried {}", tried.join("; ")))
    }
}

impl Disk<'_> {
    fn candidates(&self, request: &IncludeRequest<'_>) -> Vec<PathBuf> {
        let written = Path::new(request.written);
        if written.is_absolute() {
            return vec![written.to_owned()];
        }
        if let Some(beside) = request.written.strip_prefix("./") {
            return vec![Path::new(request.from).parent().unwrap_or(Path::new("")).join(beside)];
        }
        if self.vcl_path.is_empty() {
            return VCL_PATH_DEFAULT.iter().map(|folder| Path::new(folder).join(written)).collect();
        }
        self.vcl_path.iter().map(|folder| folder.join(written)).collect()
    }
}

/// The files of a folder whose names fit `*` and `?` in the last part of the pattern, by name.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let Some(name) = pattern.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let folder = pattern.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let fits = |entry: &std::fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|file| !file.starts_with('.') && fits(name.as_bytes(), file.as_bytes()))
    };
    let mut paths: Vec<PathBuf> = entries.filter(fits).map(|entry| entry.path()).take(GLOB_FILES_MAX).collect();
    paths.sort();
    paths
}

/// Without recursion: after a failure behind a star, the star takes one byte more.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(b) if *b == b'?' || *b == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match &mut star {
                Some((at, taken)) => {
                    *taken += 1;
                    (p, n) = (*at + 1, *taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

impl VclResult {
    pub fn is_good(&self) -> bool {
        matches!(self, VclResult::Checked(checked) if checked.is_good())
    }

    /// Was something of this kind found?
    pub fn has(&self, code: vcl::Code) -> bool {
        matches!(self, VclResult::Checked(checked) if checked.diagnostics.iter().any(|found| found.code == code))
    }

    /// What goes to the terminal besides the summary.
    pub fn show(&self, colour: bool) -> String {
        match self {
            VclResult::Unreadable(why) => format!("{why}\n"),
            VclResult::Checked(checked) => {
                let mut out = String::new();
                for diagnostic in &checked.diagnostics {
                    let _ = writeln!(out, "{}", vcl::draw(diagnostic, &checked.sources, colour));
                }
                out
            }
        }
    }

    /// For a good file, what it holds; in one line.
    pub fn summary(&self) -> Option<String> {
        let VclResult::Checked(checked) = self else { return None };
        let counted = |n: usize, one: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") };
        let (_, warnings) = self.by_severity();
        let program = checked.program.as_ref()?;
        Some(format!("{}, {}", program.summary(), counted(warnings.len(), "warning")))
    }

    /// Errors and warnings.
    fn by_severity(&self) -> (Vec<&Diagnostic>, Vec<&Diagnostic>) {
        match self {
            VclResult::Unreadable(_) => (Vec::new(), Vec::new()),
            VclResult::Checked(checked) => checked.diagnostics.iter().partition(|d| d.severity() == Severity::Error),
        }
    }

    pub fn row(&self, path: &Path) -> Value {
        let file = path.display().to_string();
        let checked = match self {
            VclResult::Unreadable(why) => return json!({ "file": file, "ok": false, "errors": [{ "message": why }] }),
            VclResult::Checked(checked) => checked,
        };
        let (errors, warnings) = self.by_severity();
        let rows =
            |found: Vec<&Diagnostic>| found.iter().map(|d| diagnostic_row(d, &checked.sources)).collect::<Vec<_>>();
        let mut row = json!({
            "file": file, "ok": checked.is_good(), "errors": rows(errors), "warnings": rows(warnings)
        });
        if let Some(summary) = self.summary() {
            row["summary"] = summary.into();
        }
        row
    }
}

/// Lines and columns count from 1, columns in characters.
pub fn diagnostic_row(diagnostic: &Diagnostic, sources: &Sources) -> Value {
    let position = sources.position(diagnostic.span);
    let notes: Vec<&str> = diagnostic.notes.iter().map(|(_, note)| note.as_str()).collect();
    json!({
        "file": sources.file(diagnostic.span.file).name,
        "line": position.line,
        "column": position.column,
        "code": diagnostic.code.name(),
        "message": diagnostic.what,
        "detail": diagnostic.label,
        "notes": notes,
        "suggestion": diagnostic.way_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_a_suffix_is_what_its_first_word_says() {
        let check = |text: &str, expect| assert_eq!(begins_as_vcl(text.as_bytes()), expect, "{text}");
        check("vcl 4.1;", true);
        check("# made by us\n\n// twice\n/* vcl = 1\n*/ vcl 4.1;", true);
        check("backend a { .host = \"b\"; }", true);
        check("sub vcl_recv {", true);
        check("# a config\nserver_name = \"a\"", false);
        check("director a round-robin {", true);
        check("backend a none;", true);
        check("acl office { ! \"10.0.0.1\"; \"10.0.0.0\"/8; }", true);
        check("import std;", true);
        check("include \"a.vcl\";", true);
        check("include \"a\";\nsub vcl_recv {", true);
        check("backend = 1", false);
        // HAProxy, Squid, BIND, Redis, Caddy, Python.
        check("backend a\n server a 127.0.0.1:80", false);
        check("acl office src 10.0.0.0/8", false);
        check("acl office { 10.0.0.0/8; };", false);
        check("acl office { \"others\"; };", false);
        check("acl \"office\" { 10.0.0.0/8; };", false);
        check("include \"/etc/bind/named.conf.options\";\nzone \"a\" {", false);
        check("include /etc/redis/local.conf", false);
        check("import common\n", false);
        check("import os\nprint()", false);
        check("sub.a = 1", false);
        check("[policy]\nvcl = \"a\"", false);
        check("/* vcl 4.1;", false);
        check("", false);
    }

    #[test]
    fn patterns_fit_names() {
        let check = |pattern: &str, name: &str, expect| {
            assert_eq!(fits(pattern.as_bytes(), name.as_bytes()), expect, "{pattern} {name}");
        };
        check("*.vcl", "a.vcl", true);
        check("*.vcl", "a.vcl.bak", false);
        check("a?c*", "abcd", true);
        check("a*b*c", "a_b_b_c", true);
        check("a*b*c", "a_c", false);
    }
}
