//! The words and blocks of an nginx configuration, read and written again, with its includes in their places. By code of the
//! task's own: what is judged reads the same files by another.

use std::path::{Path, PathBuf};

/// No publication includes more deeply.
const INCLUDE_DEPTH_MAX: usize = 8;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directive {
    /// As they are written, with their quotes.
    pub words: Vec<String>,
    pub block: Option<Vec<Directive>>,
    /// Of the text that was written last.
    pub line: usize,
}

/// A file, and where the names of what it includes begin.
pub struct Publication<'a> {
    pub file: &'a Path,
    pub folder: &'a Path,
}

impl Directive {
    pub fn of(text: &str) -> Directive {
        Directive { words: text.split(' ').map(str::to_owned).collect(), ..Directive::default() }
    }

    pub fn block_of(name: &str, inside: Vec<Directive>) -> Directive {
        Directive { block: Some(inside), ..Directive::of(name) }
    }

    pub fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Without its quotes.
    pub fn word(&self, at: usize) -> &str {
        let word = self.words.get(at).map_or("", String::as_str);
        let inside = |quote: char| word.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        inside('"').or(inside('\'')).unwrap_or(word)
    }

    pub fn children(&self) -> &[Directive] {
        self.block.as_deref().unwrap_or_default()
    }

    /// The last line that it takes.
    pub fn end(&self) -> usize {
        self.children().iter().map(Directive::end).max().unwrap_or(0).max(self.line)
    }

    /// Itself and all within it, outer ones first.
    pub fn walk(&self, see: &mut dyn FnMut(&Directive)) {
        see(self);
        self.children().iter().for_each(|child| child.walk(see));
    }
}

/// Goes through all directives with the names of the blocks around each, and keeps what is told to be kept.
pub fn change(all: &mut Vec<Directive>, around: &[String], turn: &mut dyn FnMut(&mut Directive, &[String]) -> bool) {
    all.retain_mut(|directive| turn(directive, around));
    for directive in all {
        let inside: Vec<String> = around.iter().cloned().chain([directive.name().to_owned()]).collect();
        if let Some(block) = &mut directive.block {
            change(block, &inside, turn);
        }
    }
}

/// The text of it, one directive a line; each is told its line.
pub fn write(all: &mut [Directive]) -> String {
    let mut out = String::new();
    let mut line = 1;
    write_into(all, &mut out, &mut line);
    out
}

fn write_into(all: &mut [Directive], out: &mut String, line: &mut usize) {
    for directive in all {
        directive.line = *line;
        // A word of several lines would hide on which line the next one is.
        out.push_str(&directive.words.join(" ").replace('\n', " "));
        match &mut directive.block {
            None => out.push_str(";\n"),
            Some(block) => {
                out.push_str(" {\n");
                *line += 1;
                write_into(block, out, line);
                out.push_str("}\n");
            }
        }
        *line += 1;
    }
}

/// The directives of a text without includes.
pub fn parsed(text: &str) -> Result<Vec<Directive>, String> {
    let pieces = pieces(text);
    let mut at = 0;
    match (blocks(&pieces, &mut at), at < pieces.len()) {
        (Ok(_), true) => Err("a block ends that has not begun".to_owned()),
        (all, _) => all,
    }
}

pub fn read(publication: &Publication<'_>) -> Result<Vec<Directive>, String> {
    read_file(publication.file, publication, 0)
}

fn read_file(file: &Path, publication: &Publication<'_>, depth: usize) -> Result<Vec<Directive>, String> {
    let bytes = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let text = filled_in(&String::from_utf8_lossy(&bytes));
    let all = parsed(&text).map_err(|why| format!("{}: {why}", file.display()))?;
    included(all, publication, depth)
}

fn included(all: Vec<Directive>, publication: &Publication<'_>, depth: usize) -> Result<Vec<Directive>, String> {
    let mut out = Vec::new();
    for mut directive in all {
        if directive.name() == "include" && depth < INCLUDE_DEPTH_MAX {
            for file in files_of(directive.word(1), publication) {
                out.extend(read_file(&file, publication, depth + 1)?);
            }
            continue;
        }
        if let Some(block) = directive.block.take() {
            directive.block = Some(included(block, publication, depth)?);
        }
        out.push(directive);
    }
    Ok(out)
}

/// Files of the publication, or else of nginx's package; of what is nowhere, none.
fn files_of(name: &str, publication: &Publication<'_>) -> Vec<PathBuf> {
    let relative = ["/etc/nginx/", "/config/nginx/", "/usr/local/nginx/conf/", "/"]
        .iter()
        .find_map(|start| name.strip_prefix(start))
        .unwrap_or(name);
    for folder in [publication.folder, publication.file.parent().unwrap_or(publication.folder), Path::new("/etc/nginx")]
    {
        let path = folder.join(relative);
        if path.is_file() {
            return vec![path];
        }
        let (Some(parent), Some(pattern)) = (path.parent(), path.file_name()) else { continue };
        let pattern = pattern.to_string_lossy();
        let Some((before, after)) = pattern.split_once('*').filter(|_| folder != Path::new("/etc/nginx")) else {
            continue;
        };
        let fits = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            path.is_file() && !name.starts_with('.') && name.starts_with(before) && name.ends_with(after)
        };
        let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
        let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(fits).collect();
        found.sort();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// A template with something in its places: `{{ name }}`.
fn filled_in(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{") {
        let Some((_, after)) = behind.split_once("}}").filter(|(inside, _)| !inside.contains([';', '\n'])) else {
            break;
        };
        out.push_str(before);
        out.push_str("filled.test");
        rest = after;
    }
    out + rest
}

/// Words, `;`, `{` and `}`.
fn pieces(text: &str) -> Vec<String> {
    let (mut found, mut word) = (Vec::new(), String::new());
    let mut chars = text.chars().peekable();
    let mut quote = None;
    while let Some(c) = chars.next() {
        if let Some(open) = quote {
            word.push(c);
            match c {
                '\\' => word.extend(chars.next()),
                c if c == open => quote = None,
                _ => {}
            }
            continue;
        }
        match c {
            '#' if word.is_empty() => while chars.next_if(|c| *c != '\n').is_some() {},
            '"' | '\'' if word.is_empty() => {
                quote = Some(c);
                word.push(c);
            }
            '\\' => {
                word.push(c);
                word.extend(chars.next());
            }
            '{' if word.ends_with('$') => word.push(c),
            '}' if word.rfind("${").is_some_and(|at| !word[at..].contains('}')) => word.push(c),
            c if c.is_whitespace() || matches!(c, ';' | '{' | '}') => {
                if !word.is_empty() {
                    found.push(std::mem::take(&mut word));
                }
                if !c.is_whitespace() {
                    found.push(c.to_string());
                }
            }
            c => word.push(c),
        }
    }
    found.extend(Some(word).filter(|word| !word.is_empty()));
    found
}

fn blocks(pieces: &[String], at: &mut usize) -> Result<Vec<Directive>, String> {
    let (mut found, mut words) = (Vec::new(), Vec::new());
    while let Some(piece) = pieces.get(*at) {
        match piece.as_str() {
            "}" => return Ok(found),
            ";" => {
                let words = std::mem::take(&mut words);
                found.extend(Some(Directive { words, ..Directive::default() }).filter(|one| !one.words.is_empty()));
            }
            "{" => {
                *at += 1;
                let block = Some(blocks(pieces, at)?);
                if *at >= pieces.len() {
                    return Err("a block does not end".to_owned());
                }
                found.push(Directive { words: std::mem::take(&mut words), block, line: 0 });
            }
            word => words.push(word.to_owned()),
        }
        *at += 1;
    }
    if words.is_empty() { Ok(found) } else { Err(format!("'{}' does not end", words.join(" "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read_and_written() {
        let text = "a b; # not; {\nserver { root \"x y\"; location ~ \"\\.php{2}$\" { set $a ${b}c; } }";
        let mut all = parsed(text).expect("blocks");
        let expect = "a b;\nserver {\nroot \"x y\";\nlocation ~ \"\\.php{2}$\" {\nset $a ${b}c;\n}\n}\n";
        assert_eq!(write(&mut all), expect);
        assert_eq!((all[1].line, all[1].end(), all[1].children()[0].word(1)), (2, 5, "x y"));
        assert_eq!(filled_in("a {{ b }}; c { { d; } }"), "a filled.test; c { { d; } }");
        assert!(parsed("a { b;").is_err() && parsed("a").is_err());
    }

    #[test]
    fn what_is_told_is_changed_or_taken_out() {
        let mut all = parsed("http { server { listen 80; gone 1; } }").expect("blocks");
        change(&mut all, &[], &mut |directive, around| {
            if directive.name() == "listen" && around == ["http", "server"] {
                directive.words[1] = "81".to_owned();
            }
            directive.name() != "gone"
        });
        assert_eq!(write(&mut all), "http {\nserver {\nlisten 81;\n}\n}\n");
    }
}
