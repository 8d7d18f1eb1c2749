//! The grammar of nginx's configuration files: words, blocks and includes. It knows no directive but `include`.

use std::path::{Path, PathBuf};

use crate::bounded_file;
use crate::import::include_pattern;

/// Files within files, and directives of all of them: what holds more is no configuration.
const INCLUDE_DEPTH_MAX: usize = 16;
const DIRECTIVES_MAX: usize = 100_000;
const FILE_BYTES_MAX: u64 = 4 << 20;
const BLOCK_DEPTH_MAX: usize = 64;

/// One directive, with the block behind it if it has one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directive {
    pub name: String,
    pub arguments: Vec<String>,
    pub block: Option<Vec<Directive>>,
    pub place: Place,
}

/// Where a directive stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub file: PathBuf,
    pub line: usize,
}

impl Directive {
    /// As it is written, without its block. What is said of it is `shown_directive`'s.
    #[cfg(test)]
    pub fn text(&self) -> String {
        let words: Vec<&str> = [&self.name].into_iter().chain(&self.arguments).map(String::as_str).collect();
        words.join(" ")
    }

    pub fn argument(&self, at: usize) -> &str {
        self.arguments.get(at).map_or("", String::as_str)
    }

    pub fn children(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// Is the same written there, whatever the place?
    pub fn is_written_like(&self, other: &Directive) -> bool {
        self.name == other.name
            && self.arguments == other.arguments
            && self.block.is_some() == other.block.is_some()
            && are_written_alike(self.children(), other.children())
    }
}

/// Do they say the same in the same order?
pub fn are_written_alike<'a>(
    one: impl IntoIterator<Item = &'a Directive>,
    other: impl IntoIterator<Item = &'a Directive>,
) -> bool {
    let mut other = other.into_iter();
    one.into_iter().all(|line| other.next().is_some_and(|like| line.is_written_like(like))) && other.next().is_none()
}

/// A whole configuration, its includes in their places.
#[derive(Debug, Default)]
pub struct NginxConf {
    pub directives: Vec<Directive>,
    /// Includes that name a file which is not there.
    pub absent: Vec<Directive>,
    /// Some file is included, or named.
    pub has_includes: bool,
}

/// Reads a file and what it includes. Relative names begin where the file itself lies, as with nginx.
pub fn read(path: &Path) -> Result<NginxConf, String> {
    let home = path.parent().unwrap_or(Path::new("")).to_owned();
    let mut reader = Reader { home, ..Reader::default() };
    let directives = reader.file(path, 0)?;
    Ok(NginxConf { directives, absent: reader.absent, has_includes: reader.has_includes })
}

/// Does this text look like a configuration of nginx?
pub fn is_nginx(text: &str) -> bool {
    let is_opened = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let (name, rest) = name.split_once('{').map_or((name, words.next()), |(name, _)| (name, Some("{")));
        // A part of one, as packages bring them, is one too.
        matches!(name, "http" | "server" | "events" | "upstream" | "location")
            && rest.is_none_or(|rest| rest.starts_with('{') || matches!(name, "upstream" | "location"))
    };
    text.lines().any(|line| is_opened(line.trim()))
}

#[derive(Default)]
struct Reader {
    home: PathBuf,
    absent: Vec<Directive>,
    has_includes: bool,
    count: usize,
}

#[derive(Debug, PartialEq, Eq)]
enum Token {
    Word(String),
    End,
    Open,
    Close,
}

impl Reader {
    fn file(&mut self, path: &Path, depth: usize) -> Result<Vec<Directive>, String> {
        if depth > INCLUDE_DEPTH_MAX {
            return Err(format!("{}: more than {INCLUDE_DEPTH_MAX} files within files", path.display()));
        }
        let bytes = bounded_file::read(path, FILE_BYTES_MAX).map_err(|why| format!("{}: {why}", path.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let mut tokens = tokens(&text).map_err(|(line, why)| format!("{}:{line}: {why}", path.display()))?.into_iter();
        let found = self.block(&mut tokens, path, 0, depth)?;
        match tokens.next() {
            None => Ok(found),
            Some((line, _)) => Err(format!("{}:{line}: a }} too many", path.display())),
        }
    }

    /// Up to the end of the block; the `}` is taken only inside of one.
    fn block(
        &mut self,
        tokens: &mut std::vec::IntoIter<(usize, Token)>,
        path: &Path,
        blocks: usize,
        depth: usize,
    ) -> Result<Vec<Directive>, String> {
        let mut found = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut first_line = 0;
        let wrong = |line: usize, why: &str| Err(format!("{}:{line}: {why}", path.display()));
        while let Some((line, token)) = tokens.next() {
            match token {
                Token::Word(word) => {
                    first_line = if words.is_empty() { line } else { first_line };
                    words.push(word);
                }
                Token::Close if !words.is_empty() => return wrong(line, "a ; is missing before this }"),
                Token::Close if blocks == 0 => return wrong(line, "a } too many"),
                Token::Close => return Ok(found),
                Token::End | Token::Open => {
                    if words.is_empty() {
                        return wrong(line, "a directive without a name");
                    }
                    self.count += 1;
                    if self.count > DIRECTIVES_MAX || blocks > BLOCK_DEPTH_MAX {
                        return wrong(line, "too many directives, or too many within one another");
                    }
                    let name = words.remove(0);
                    let place = Place { file: path.to_owned(), line: first_line };
                    let mut directive = Directive { name, arguments: std::mem::take(&mut words), block: None, place };
                    if token == Token::Open {
                        directive.block = Some(self.block(tokens, path, blocks + 1, depth)?);
                    }
                    match directive.name.as_str() {
                        "include" => found.extend(self.include(directive, depth)?),
                        _ => found.push(directive),
                    }
                }
            }
        }
        if blocks > 0 || !words.is_empty() {
            return Err(format!("{}: the file ends inside of a block or directive", path.display()));
        }
        Ok(found)
    }

    fn include(&mut self, directive: Directive, depth: usize) -> Result<Vec<Directive>, String> {
        self.has_includes = true;
        let pattern = self.home.join(directive.argument(0));
        let at = |why| format!("{}:{}: {why}", directive.place.file.display(), directive.place.line);
        let files = include_pattern::files(&pattern).map_err(at)?;
        let mut found = Vec::new();
        if files.is_empty() && !include_pattern::is_pattern(directive.argument(0)) {
            found.extend(which_script(&directive));
            self.absent.push(directive);
        }
        for file in files {
            found.extend(self.file(&file, depth + 1)?);
        }
        Ok(found)
    }
}

/// What two files of nginx's packages say of scripts, where they are not here; `fastcgi_params` does not.
fn which_script(include: &Directive) -> Option<Directive> {
    let says = ["fastcgi.conf", "fastcgi-php.conf"].iter().any(|file| include.argument(0).ends_with(file));
    let arguments = ["SCRIPT_FILENAME", "$document_root$fastcgi_script_name"].map(str::to_owned).to_vec();
    says.then(|| Directive { name: "fastcgi_param".to_owned(), arguments, ..include.clone() })
}

/// Words and marks with the lines on which they begin.
fn tokens(text: &str) -> Result<Vec<(usize, Token)>, (usize, &'static str)> {
    let mut found = Vec::new();
    let mut line = 1;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => line += 1,
            c if c.is_whitespace() => {}
            '#' => while chars.next_if(|&c| c != '\n').is_some() {},
            ';' => found.push((line, Token::End)),
            '{' => found.push((line, Token::Open)),
            '}' => found.push((line, Token::Close)),
            '"' | '\'' => {
                let begin = line;
                let mut word = String::new();
                loop {
                    match chars.next() {
                        None => return Err((begin, "a string that does not end")),
                        Some('\\') => push_escape(&mut word, chars.next()),
                        Some(end) if end == c => break,
                        Some(other) => {
                            line += usize::from(other == '\n');
                            word.push(other);
                        }
                    }
                }
                found.push((begin, Token::Word(word)));
            }
            first => {
                let mut word = String::new();
                match first {
                    '\\' => push_escape(&mut word, chars.next()),
                    first => word.push(first),
                }
                // `${name}` is part of a word, though it has braces.
                while let Some(&next) = chars.peek() {
                    let in_name = word.ends_with('$') && next == '{' || next == '}' && word.contains("${");
                    if !in_name && (next.is_whitespace() || matches!(next, ';' | '{' | '}')) {
                        break;
                    }
                    chars.next();
                    match next {
                        '\\' => push_escape(&mut word, chars.next()),
                        next => word.push(next),
                    }
                }
                found.push((line, Token::Word(word)));
            }
        }
    }
    Ok(found)
}

/// What stands for one character, in any word: a backslash before others is one.
fn push_escape(word: &mut String, behind: Option<char>) {
    match behind {
        Some(plain @ ('"' | '\'' | '\\')) => word.push(plain),
        Some('t') => word.push('\t'),
        Some('r') => word.push('\r'),
        Some('n') => word.push('\n'),
        other => word.extend(['\\'].into_iter().chain(other)),
    }
}

/// A directive without a block, its words divided by single blanks.
#[cfg(test)]
pub fn directive(text: &str) -> Directive {
    let mut words = text.split(' ').map(str::to_owned);
    let place = Place { file: "nginx.conf".into(), line: 1 };
    Directive { name: words.next().unwrap_or_default(), arguments: words.collect(), block: None, place }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Result<&str, &str>) {
        let mut reader = Reader::default();
        let got = tokens(text)
            .map_err(|(line, why)| format!("{line}: {why}"))
            .and_then(|tokens| reader.block(&mut tokens.into_iter(), Path::new("f"), 0, 0));
        let got = got.map(|all| all.iter().map(show).collect::<Vec<_>>().join(" "));
        assert_eq!(got.as_deref().map_err(String::as_str), expect, "{text}");
    }

    fn show(directive: &Directive) -> String {
        let text = directive.text();
        match &directive.block {
            None => format!("{}:{text};", directive.place.line),
            Some(inner) => format!("{text}{{{}}}", inner.iter().map(show).collect::<Vec<_>>().join(" ")),
        }
    }

    #[test]
    fn words_and_blocks_are_read() {
        check(
            "a b  c;\n# no d;\nhttp\n{ root \"x y\"; location ~ \\.php$ { e; } }",
            Ok("1:a b c; http{4:root x y; location ~ \\.php${4:e;}}"),
        );
        check("charset GBK ;", Ok("1:charset GBK;"));
        check("a 'b\\'c' ${d}e;", Ok("1:a b'c ${d}e;"));
        // Two backslashes are one, outside of strings too: a regex means another text otherwise.
        check("a \\\\.php \"x\\n\" ^\\.a$;", Ok("1:a \\.php x\n ^\\.a$;"));
        check("", Ok(""));
    }

    #[test]
    fn what_is_no_configuration_is_said_with_its_line() {
        check("a;\n}", Err("f:2: a } too many"));
        check("http { a; ", Err("f: the file ends inside of a block or directive"));
        check("http {\n a }", Err("f:2: a ; is missing before this }"));
        check("a 'b", Err("1: a string that does not end"));
        check(";", Err("f:1: a directive without a name"));
        check(&"a { ".repeat(100), Err("f:1: too many directives, or too many within one another"));
    }

    /// `fastcgi_params` is no such file, and is taken for none.
    #[test]
    fn files_of_packages_that_are_not_here_say_which_script_runs() {
        for (file, expect) in [
            ("fastcgi.conf", true),
            ("snippets/fastcgi-php.conf", true),
            ("/etc/nginx/fastcgi.conf", true),
            ("fastcgi_params", false),
            ("mime.types", false),
        ] {
            let said = which_script(&directive(&format!("include {file}"))).map(|said| said.text());
            let script = "fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name".to_owned();
            assert_eq!(said, expect.then_some(script), "{file}");
        }
    }

    #[test]
    fn nginx_is_known_by_its_blocks() {
        assert!(is_nginx("events\n{\n}") && is_nginx("  http {") && is_nginx("server{"));
        assert!(is_nginx("location ~ \\.php$ {") && is_nginx("upstream app {"));
        assert!(!is_nginx("vcl 4.1;\nbackend http { }") && !is_nginx("http_port 80 accel"));
    }
}
