//! The grammar of Apache's configuration files: lines, words, containers, includes, `Define` and the conditions that are decided while a file
//! is read. A condition that cannot be decided here stays in the tree as a container, and who reads it closes what it is about.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::bounded_file;
use crate::import::include_pattern;
use crate::import::nginx_conf::{Directive, Place};

/// What holds more is no configuration.
const INCLUDE_DEPTH_MAX: usize = 16;
const DIRECTIVES_MAX: usize = 100_000;
const FILE_BYTES_MAX: u64 = 4 << 20;
const BLOCK_DEPTH_MAX: usize = 64;

/// Containers and directives that no other server has.
const MARKS: [&str; 14] = [
    "<virtualhost",
    "<directory",
    "<directorymatch",
    "<location",
    "<locationmatch",
    "<files",
    "<filesmatch",
    "<ifmodule",
    "documentroot",
    "serverroot",
    "loadmodule",
    "proxypass",
    "includeoptional",
    "servername",
];

/// Modules that are in every Apache.
const BUILT_IN: [&str; 4] = ["core.c", "mod_so.c", "http_core.c", "mod_version.c"];

/// Modules whose words are understood. Where a file loads none, it is a part of a configuration, and these are taken to be there.
const UNDERSTOOD: [&str; 17] = [
    "mod_ssl.c",
    "mod_rewrite.c",
    "mod_headers.c",
    "mod_proxy.c",
    "mod_proxy_http.c",
    "mod_proxy_balancer.c",
    "mod_proxy_fcgi.c",
    "mod_alias.c",
    "mod_authz_core.c",
    "mod_authz_host.c",
    "mod_auth_basic.c",
    "mod_authn_file.c",
    "mod_dir.c",
    "mod_expires.c",
    "mod_deflate.c",
    "mod_filter.c",
    "mod_setenvif.c",
];

/// A whole configuration, its includes in their places.
#[derive(Debug)]
pub struct ApacheConf {
    pub directives: Vec<Directive>,
    /// Includes that name a file which is not there.
    pub absent: Vec<Directive>,
    /// Where relative names begin.
    pub home: PathBuf,
    /// It says which modules there are, as a whole configuration does.
    pub is_whole: bool,
}

/// Does this text look like a configuration of Apache?
pub fn is_apache(text: &str) -> bool {
    text.lines().any(|line| {
        let word = line.split_whitespace().next().unwrap_or_default();
        MARKS.contains(&word.trim_end_matches('>').to_ascii_lowercase().as_str())
            && !line.trim_end().ends_with(['{', ';'])
    })
}

/// The name of a directive or a container, as it is compared.
pub fn name_of(directive: &Directive) -> String {
    directive.name.to_ascii_lowercase()
}

/// Is it a condition that could not be decided?
pub fn is_undecided(directive: &Directive) -> bool {
    matches!(
        name_of(directive).as_str(),
        "<ifmodule" | "<ifdefine" | "<ifversion" | "<iffile" | "<ifdirective" | "<ifsection"
    )
}

/// Reads a file and what it includes. `prefix`: where relative names begin, unless the file says it.
pub fn read(path: &Path, prefix: Option<&Path>) -> Result<ApacheConf, String> {
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let home = prefix.unwrap_or(beside);
    let home = std::path::absolute(home).unwrap_or(home.to_owned());
    let mut reader = ApacheReader {
        home,
        defines: BTreeMap::new(),
        modules: BTreeSet::new(),
        absent: Vec::new(),
        count: 0,
        is_sure: true,
    };
    let directives = reader.file(path, 0)?;
    let ApacheReader { absent, home, modules, .. } = reader;
    Ok(ApacheConf { directives, absent, home, is_whole: !modules.is_empty() })
}

struct ApacheReader {
    home: PathBuf,
    defines: BTreeMap<String, Option<String>>,
    /// By both of their names.
    modules: BTreeSet<String>,
    absent: Vec<Directive>,
    count: usize,
    /// What is read is not within an undecided condition.
    is_sure: bool,
}

/// Lines of a file that are joined, each with the number of its first.
type Lines = std::vec::IntoIter<(usize, String)>;

impl ApacheReader {
    fn file(&mut self, path: &Path, depth: usize) -> Result<Vec<Directive>, String> {
        if depth > INCLUDE_DEPTH_MAX {
            return Err(format!("{}: more than {INCLUDE_DEPTH_MAX} files within files", path.display()));
        }
        let bytes = bounded_file::read(path, FILE_BYTES_MAX).map_err(|why| format!("{}: {why}", path.display()))?;
        let text = String::from_utf8(bytes).map_err(|_| format!("{}: it is no UTF-8", path.display()))?;
        let mut lines = joined(&text).into_iter();
        let found = self.block(&mut lines, path, None, (0, depth))?;
        Ok(found)
    }

    /// Up to the end of the container `within`, or of the file.
    fn block(
        &mut self,
        lines: &mut Lines,
        path: &Path,
        within: Option<&str>,
        (blocks, depth): (usize, usize),
    ) -> Result<Vec<Directive>, String> {
        let mut found = Vec::new();
        while let Some((line, text)) = lines.next() {
            let wrong = |why: &str| Err(format!("{}:{line}: {why}", path.display()));
            self.count += 1;
            if self.count > DIRECTIVES_MAX || blocks > BLOCK_DEPTH_MAX {
                return wrong("more directives, or deeper ones, than a configuration has");
            }
            let text = self.with_defines(&text);
            if let Some(end) = text.strip_prefix("</") {
                let end = end.trim().trim_end_matches('>').trim();
                return match within.is_some_and(|within| within[1..].eq_ignore_ascii_case(end)) {
                    true => Ok(found),
                    false => wrong("the end of another container"),
                };
            }
            let place = Place { file: path.to_owned(), line };
            if !text.starts_with('<') {
                let Some(words) = words(&text) else { return wrong("a quote without its end") };
                let mut words = words.into_iter();
                let name = words.next().unwrap_or_default();
                let directive = Directive { name, arguments: words.collect(), block: None, place };
                found.append(&mut self.directive(directive, depth)?);
                continue;
            }
            let Some((inner, "")) = text.rsplit_once('>') else { return wrong("a container whose line has no end") };
            let Some(words) = words(inner) else { return wrong("a quote without its end") };
            let mut words = words.into_iter();
            let name = words.next().unwrap_or_default();
            let mut directive = Directive { name: name.clone(), arguments: words.collect(), block: None, place };
            let decided = self.decided(&directive);
            let was = (self.is_sure, self.defines.clone(), self.modules.clone(), self.home.clone(), self.absent.len());
            self.is_sure &= !is_undecided(&directive) || decided.is_some();
            let inner = self.block(lines, path, Some(&name), (blocks + 1, depth))?;
            self.is_sure = was.0;
            match decided {
                Some(true) => found.extend(inner),
                // What it would have changed it has not.
                Some(false) => {
                    (self.defines, self.modules, self.home) = (was.1, was.2, was.3);
                    self.absent.truncate(was.4);
                }
                None => {
                    directive.block = Some(inner);
                    found.push(directive);
                }
            }
        }
        match within {
            None => Ok(found),
            Some(within) => Err(format!("{}: {within}> has no end", path.display())),
        }
    }

    /// What is done with a directive while the file is read.
    fn directive(&mut self, directive: Directive, depth: usize) -> Result<Vec<Directive>, String> {
        let first = directive.argument(0);
        match name_of(&directive).as_str() {
            "include" | "includeoptional" => return self.include(directive, depth),
            "define" if !first.is_empty() => {
                match self.is_sure {
                    true => drop(self.defines.insert(first.to_owned(), directive.arguments.get(1).cloned())),
                    // Nobody knows what it stands for from here on.
                    false => drop(self.defines.remove(first)),
                }
            }
            "undefine" => drop(self.defines.remove(first)),
            "serverroot" if self.is_sure && Path::new(first).is_absolute() => self.home = PathBuf::from(first),
            "loadmodule" if self.is_sure => {
                self.modules.extend(names_of_module(first, Path::new(directive.argument(1))));
            }
            _ => return Ok(vec![directive]),
        }
        Ok(Vec::new())
    }

    fn include(&mut self, directive: Directive, depth: usize) -> Result<Vec<Directive>, String> {
        let pattern = self.home.join(directive.argument(0));
        let is_optional = directive.name.eq_ignore_ascii_case("includeoptional");
        let mut files = Vec::new();
        for path in include_pattern::paths(&pattern)? {
            match path.is_dir() {
                true => files.extend(files_beneath(&path)?),
                // A link that leads nowhere has something in it that is not here.
                false if !path.is_file() => self.absent.push(directive.clone()),
                false => files.push(path),
            }
        }
        files.sort();
        if directive.arguments.len() != 1 || directive.argument(0).contains("${") || files.is_empty() && !is_optional {
            self.absent.push(directive);
            return Ok(Vec::new());
        }
        let mut found = Vec::new();
        for file in files {
            found.append(&mut self.file(&file, depth + 1)?);
        }
        Ok(found)
    }

    /// What is put in is not looked through again.
    fn with_defines(&self, text: &str) -> String {
        let (mut out, mut rest) = (String::new(), text);
        while let Some((before, behind)) = rest.split_once("${") {
            let (name, after) = behind.split_once('}').unwrap_or((behind, ""));
            out.push_str(before);
            match self.defines.get(name) {
                Some(Some(value)) if behind.contains('}') => out.push_str(value),
                // One without a value is there for IfDefine alone.
                _ => {
                    out.push_str("${");
                    rest = behind;
                    continue;
                }
            }
            rest = after;
        }
        out + rest
    }

    /// Does what stands in a container hold? `None`: it is no condition, or one that cannot be decided.
    fn decided(&self, container: &Directive) -> Option<bool> {
        let written = container.argument(0);
        let (asked, is_negated) = written.strip_prefix('!').map_or((written, false), |asked| (asked, true));
        let holds = match name_of(container).as_str() {
            "<ifmodule" => self.has_module(asked)?,
            "<ifdefine" => self.defines.contains_key(asked).then_some(true)?,
            "<ifversion" => return of_version(written, container.argument(1)),
            _ => return None,
        };
        (container.arguments.len() == 1).then_some(holds != is_negated)
    }

    /// `None`: it may be one that is built in.
    fn has_module(&self, asked: &str) -> Option<bool> {
        let by_file = asked.strip_suffix("_module").map_or(asked.to_owned(), |name| format!("mod_{name}.c"));
        let is_here = self.modules.contains(asked)
            || self.modules.contains(&by_file)
            || BUILT_IN.contains(&by_file.as_str())
            || self.modules.is_empty() && UNDERSTOOD.contains(&by_file.as_str());
        is_here.then_some(true)
    }
}

/// By which names IfModule knows a module that is loaded: its own, and that of the file that it was made of.
fn names_of_module(name: &str, file: &Path) -> Vec<String> {
    const MADE_OF: [(&str, &str); 4] = [
        ("mpm_event_module", "event.c"),
        ("mpm_worker_module", "worker.c"),
        ("mpm_prefork_module", "prefork.c"),
        ("ldap_module", "util_ldap.c"),
    ];
    if let Some((_, made_of)) = MADE_OF.iter().find(|(known, _)| *known == name) {
        return vec![name.to_owned(), (*made_of).to_owned()];
    }
    let mut names = vec![format!("{}.c", file.file_stem().unwrap_or_default().to_string_lossy())];
    if let Some(plain) = name.strip_suffix("_module") {
        names.extend([name.to_owned(), format!("mod_{plain}.c")]);
    }
    names
}

/// It is a 2.4.
fn of_version(operator: &str, version: &str) -> Option<bool> {
    let (operator, version) = match version.is_empty() {
        true => ("=", operator),
        false => (operator, version),
    };
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor) = (parts.next()??, parts.next().unwrap_or(Some(0))?);
    let is_older = (major, minor) < (2, 4);
    let is_newer = (major, minor) > (2, 4);
    let is_2_4 = (major, minor) == (2, 4) && parts.next().is_none_or(|patch| patch == Some(0));
    match operator {
        ">=" if is_older || is_2_4 => Some(true),
        ">" if is_older => Some(true),
        "<" if is_older || is_2_4 => Some(false),
        "<=" if is_older => Some(false),
        ">=" | ">" if is_newer => Some(false),
        "<" | "<=" if is_newer => Some(true),
        _ => None,
    }
}

/// All files of a directory that is included, in the directories of it, too.
fn files_beneath(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        let wrong = |error: std::io::Error| format!("{}: {error}", folder.display());
        for entry in std::fs::read_dir(&folder).map_err(wrong)? {
            let path = entry.map_err(wrong)?.path();
            if path.is_dir() {
                folders.push(path)
            } else {
                files.push(path)
            }
            if files.len() + folders.len() > DIRECTIVES_MAX {
                return Err(format!("{}: more files than a configuration has", folder.display()));
            }
        }
    }
    Ok(files)
}

/// The lines that say something: a backslash at the end joins two.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        let (number, mut all) = open.take().unwrap_or((at + 1, String::new()));
        match line.strip_suffix('\\') {
            Some(part) => {
                all.push_str(part);
                open = Some((number, all));
            }
            None => {
                all.push_str(line);
                found.push((number, all));
            }
        }
    }
    found.extend(open);
    let said = found.into_iter().map(|(number, line)| (number, line.trim().to_owned()));
    said.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect()
}

/// The words of a line: those in quotes are one, in which a backslash stands before a quote or another. `None`: a quote has no end.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut letters) = (Vec::new(), line.chars().peekable());
    loop {
        while letters.next_if(|letter| letter.is_whitespace()).is_some() {}
        let Some(&first) = letters.peek() else { return Some(words) };
        let mut word = String::new();
        if matches!(first, '"' | '\'') {
            letters.next();
            loop {
                match letters.next()? {
                    '\\' => match letters.peek() {
                        Some(&next) if next == first || next == '\\' => word.extend(letters.next()),
                        _ => word.push('\\'),
                    },
                    letter if letter == first => break,
                    letter => word.push(letter),
                }
            }
        } else {
            while let Some(letter) = letters.next_if(|letter| !letter.is_whitespace()) {
                word.push(letter);
            }
        }
        words.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_divided_as_apache_does() {
        let check = |line: &str, expect: Option<&[&str]>| {
            assert_eq!(words(line), expect.map(|all| all.iter().map(|&one| one.to_owned()).collect()), "{line}");
        };
        check("Alias /a  /b", Some(&["Alias", "/a", "/b"]));
        check(r#"Header set X "a \"b\" c\d""#, Some(&["Header", "set", "X", r#"a "b" c\d"#]));
        check("<Files '*.a'", Some(&["<Files", "*.a"]));
        check("Alias \"/a", None);
    }

    #[test]
    fn conditions_are_decided_or_stay() {
        let folder = std::env::temp_dir().join(format!("larder-apache-conf-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("d")).unwrap();
        let check = |text: &str, expect: &[&str]| {
            let path = folder.join("a.conf");
            std::fs::write(&path, text).unwrap();
            std::fs::write(folder.join("d/one.conf"), "One ${X}\n").unwrap();
            let read = read(&path, None).unwrap();
            let shown: Vec<String> = read.directives.iter().map(Directive::text).collect();
            assert_eq!(shown, expect, "{text}");
        };
        check("<IfModule mod_ssl.c>\nA\n</IfModule>\n<IfModule !ssl_module>\nB\n</IfModule>", &["A"]);
        check("LoadModule a_module a.so\n<IfModule mod_ssl.c>\nA\n</IfModule>", &["<IfModule mod_ssl.c"]);
        check("LoadModule ssl_module a.so\n<IfModule mod_ssl.c>\nA\n</IfModule>", &["A"]);
        check("<IfModule !mod_unknown.c>\nA\n</IfModule>", &["<IfModule !mod_unknown.c"]);
        check(
            "Define X \"1 2\"\nA ${X} ${Y}\n<IfDefine X>\nB\n</IfDefine>\nInclude d",
            &["A 1 2 ${Y}", "B", "One 1 2"],
        );
        check("Define X 1\n<IfDefine Y>\nDefine X 2\n</IfDefine>\nA ${X}", &["<IfDefine Y", "A ${X}"]);
        check("<IfVersion >= 2.4>\nA\n</IfVersion>\n<IfVersion < 2.4>\nB\n</IfVersion>", &["A"]);
        check("A b\\\n c\n# B \\\n C\nIncludeOptional none/*.conf", &["A b c"]);
        assert_eq!(of_version(">=", "2.4.17"), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
