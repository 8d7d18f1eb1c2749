//! The blocks of a Caddyfile: global options, sites, snippets, and what is imported, as directives. Words are put in place of `{args[0]}`
//! and `{block}` before anything is read, as Caddy does. It knows no directive but `import`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bounded_file;
use crate::import::caddy_words::{CaddyWord, words};
use crate::import::include_pattern;
use crate::import::nginx_conf::{Directive, Place};

const FILE_BYTES_MAX: u64 = 4 << 20;
const BLOCK_DEPTH_MAX: usize = 64;
/// Imports within imports.
const IMPORT_DEPTH_MAX: usize = 16;
/// Words of all files, with snippets as often as they are imported.
const EXPANDED_WORDS_MAX: usize = 200_000;

/// A whole configuration.
#[derive(Debug, Default)]
pub struct CaddyFile {
    pub options: Vec<Directive>,
    pub sites: Vec<CaddySite>,
    /// Imports of what is not here.
    pub absent: Vec<Directive>,
}

/// A block behind addresses.
#[derive(Debug)]
pub struct CaddySite {
    /// As they are written, and the first one's place.
    pub head: Directive,
    pub directives: Vec<Directive>,
}

/// Is it Caddy's by its name?
pub fn is_caddyfile(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    name == "caddyfile" || name.starts_with("caddyfile.") || name.ends_with(".caddyfile")
}

/// What only Caddy's files begin lines with.
const TELLING: [&str; 14] = [
    "reverse_proxy",
    "file_server",
    "php_fastcgi",
    "forward_auth",
    "basic_auth",
    "basicauth",
    "handle",
    "handle_path",
    "handle_errors",
    "handle_response",
    "redir",
    "respond",
    "encode",
    "header_up",
];

/// Does this text look like a Caddyfile?
pub fn is_caddy(text: &str) -> bool {
    text.lines().any(|line| {
        let mut words = line.split_whitespace();
        // nginx ends its lines, and TOML has values.
        TELLING.contains(&words.next().unwrap_or_default())
            && !line.trim_end().ends_with(';')
            && words.next() != Some("=")
    })
}

/// Reads a file and what it imports. Relative names begin where the file lies that has them.
pub fn read(file: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<CaddyFile, String> {
    let mut reader = FileReader { variable, snippets: BTreeMap::new(), count: 0 };
    let written = reader.words_of(file)?;
    let words = reader.expanded(written, 0)?;
    let mut read = CaddyFile::default();
    let mut words = Words { all: &words, at: 0 };
    if words.peek().is_some_and(CaddyWord::opens) {
        words.next();
        read.options = words.block(0)?;
    }
    while words.peek().is_some() {
        let (head, is_opened) = words.addresses()?;
        if head.name.starts_with('(') {
            // Its words have been put where it is imported.
            words.block(0)?;
            continue;
        }
        if head.name == "import" {
            if is_opened {
                words.block(0)?;
            }
            read.absent.push(head);
            continue;
        }
        let directives = if is_opened { words.block(0)? } else { words.until_the_end()? };
        read.sites.push(CaddySite { head, directives });
    }
    Ok(read)
}

struct FileReader<'a> {
    variable: &'a dyn Fn(&str) -> Option<String>,
    snippets: BTreeMap<String, Vec<CaddyWord>>,
    count: usize,
}

impl FileReader<'_> {
    fn words_of(&self, file: &Path) -> Result<Vec<CaddyWord>, String> {
        let bytes = bounded_file::read(file, FILE_BYTES_MAX).map_err(|why| format!("{}: {why}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        words(text.trim_start_matches('\u{feff}'), file, self.variable)
    }

    /// With what is imported in place of each `import`; snippets are remembered.
    fn expanded(&mut self, words: Vec<CaddyWord>, depth: usize) -> Result<Vec<CaddyWord>, String> {
        let mut out: Vec<CaddyWord> = Vec::new();
        let (mut at, mut block_depth) = (0, 0usize);
        while at < words.len() {
            let word = &words[at];
            let is_snippet =
                block_depth == 0 && word.begins_line && word.text.starts_with('(') && word.text.ends_with(')');
            if is_snippet && words.get(at + 1).is_some_and(CaddyWord::opens) {
                let end = end_of_block(&words, at + 1)?;
                self.snippets.insert(word.text[1..word.text.len() - 1].to_owned(), words[at + 2..end].to_vec());
                at = end + 1;
                continue;
            }
            if word.begins_line && word.text == "import" && !word.is_quoted {
                at = self.import(&words, at, &mut out, depth)?;
                continue;
            }
            block_depth = if word.opens() { block_depth + 1 } else { block_depth.saturating_sub(word.closes().into()) };
            self.count(&word.place)?;
            out.push(word.clone());
            at += 1;
        }
        Ok(out)
    }

    fn count(&mut self, place: &Place) -> Result<(), String> {
        self.count += 1;
        match self.count > EXPANDED_WORDS_MAX {
            true => Err(said(place, &format!("more than {EXPANDED_WORDS_MAX} words, with what is imported"))),
            false => Ok(()),
        }
    }

    /// Puts what an `import` names to `out`, and says where it ends.
    fn import(
        &mut self,
        words: &[CaddyWord],
        at: usize,
        out: &mut Vec<CaddyWord>,
        depth: usize,
    ) -> Result<usize, String> {
        let place = &words[at].place;
        if depth >= IMPORT_DEPTH_MAX {
            return Err(said(place, &format!("more than {IMPORT_DEPTH_MAX} imports within imports")));
        }
        let mut end = at + 1;
        while words.get(end).is_some_and(|word| !word.begins_line && !word.opens() && !word.closes()) {
            end += 1;
        }
        let mut block: &[CaddyWord] = &[];
        let named = words[at + 1..end].split_first();
        let Some((name, arguments)) = named else { return Err(said(place, "an import of nothing")) };
        if words.get(end).is_some_and(|word| word.opens() && !word.begins_line) {
            let close = end_of_block(words, end)?;
            block = &words[end + 1..close];
            end = close + 1;
        }
        let Some(imported) = self.imported(name, place)? else {
            // What it says may guard what stands beside it: who reads the site closes that.
            out.extend(words[at..end].iter().cloned());
            return Ok(end);
        };
        for imported in imported {
            let filled = filled(&imported, arguments, block);
            for word in self.expanded(filled, depth + 1)? {
                out.push(word);
            }
        }
        Ok(end)
    }

    /// The words of a snippet, or of each file that a name stands for. `None`: there is none.
    fn imported(&mut self, name: &CaddyWord, place: &Place) -> Result<Option<Vec<Vec<CaddyWord>>>, String> {
        if let Some(snippet) = self.snippets.get(&name.text) {
            return Ok(Some(vec![snippet.clone()]));
        }
        let home = place.file.parent().unwrap_or(Path::new(""));
        let files = include_pattern::files(&home.join(&name.text)).map_err(|why| said(place, &why))?;
        if files.is_empty() && !include_pattern::is_pattern(&name.text) {
            return Ok(None);
        }
        files.iter().map(|file| self.words_of(file)).collect::<Result<_, _>>().map(Some)
    }
}

fn said(place: &Place, why: &str) -> String {
    format!("{}:{}: {why}", place.file.display(), place.line)
}

/// Where the block that opens at `at` closes.
fn end_of_block(words: &[CaddyWord], at: usize) -> Result<usize, String> {
    let mut depth = 0usize;
    for (end, word) in words.iter().enumerate().skip(at) {
        depth += usize::from(word.opens());
        if word.closes() {
            depth -= 1;
            if depth == 0 {
                return Ok(end);
            }
        }
    }
    Err(said(&words[at].place, "a block that does not end"))
}

/// With arguments and a block in the places that are for them.
fn filled(words: &[CaddyWord], arguments: &[CaddyWord], block: &[CaddyWord]) -> Vec<CaddyWord> {
    let mut out = Vec::new();
    for word in words {
        match word.text.as_str() {
            "{block}" => out.extend(block.iter().cloned()),
            "{args[:]}" | "{args.*}" => {
                out.extend(arguments.iter().map(|argument| CaddyWord { begins_line: false, ..argument.clone() }));
            }
            _ => {
                let mut text = word.text.clone();
                for (at, argument) in arguments.iter().enumerate() {
                    text = text.replace(&format!("{{args[{at}]}}"), &argument.text);
                    text = text.replace(&format!("{{args.{at}}}"), &argument.text);
                }
                out.push(CaddyWord { text, ..word.clone() });
            }
        }
    }
    out
}

struct Words<'a> {
    all: &'a [CaddyWord],
    at: usize,
}

impl Words<'_> {
    fn peek(&self) -> Option<&CaddyWord> {
        self.all.get(self.at)
    }

    fn next(&mut self) -> Option<CaddyWord> {
        let word = self.all.get(self.at).cloned();
        self.at += 1;
        word
    }

    /// The addresses of a site, and whether a block follows. A comma at the end goes on in the next line.
    fn addresses(&mut self) -> Result<(Directive, bool), String> {
        let mut names: Vec<String> = Vec::new();
        let first = self.peek().expect("the caller has looked").clone();
        let (mut goes_on, mut is_opened) = (true, false);
        while let Some(word) = self.peek().cloned() {
            if word.opens() {
                self.next();
                is_opened = true;
                break;
            }
            if word.begins_line && !goes_on && !names.is_empty() {
                break;
            }
            self.next();
            goes_on = word.text.ends_with(',');
            names.extend(word.text.split(',').filter(|name| !name.is_empty()).map(str::to_owned));
        }
        if names.is_empty() {
            return Err(said(&first.place, "a block without an address that is not the first"));
        }
        let name = names.remove(0);
        Ok((Directive { name, arguments: names, block: None, place: first.place }, is_opened))
    }

    /// Up to the end of the block.
    fn block(&mut self, depth: usize) -> Result<Vec<Directive>, String> {
        let place = self.all.get(self.at.saturating_sub(1)).map(|word| word.place.clone());
        if depth > BLOCK_DEPTH_MAX {
            return Err(said(
                &place.expect("a block has opened"),
                &format!("more than {BLOCK_DEPTH_MAX} blocks within blocks"),
            ));
        }
        let mut found = Vec::new();
        loop {
            match self.peek() {
                None => return Err(said(&place.expect("a block has opened"), "a block that does not end")),
                Some(word) if word.closes() => {
                    self.next();
                    return Ok(found);
                }
                Some(_) => found.push(self.directive(depth)?),
            }
        }
    }

    fn until_the_end(&mut self) -> Result<Vec<Directive>, String> {
        let mut found = Vec::new();
        while self.peek().is_some() {
            found.push(self.directive(0)?);
        }
        Ok(found)
    }

    /// A line, with the block behind it.
    fn directive(&mut self, depth: usize) -> Result<Directive, String> {
        let first = self.next().expect("the caller has looked");
        if first.opens() || first.closes() {
            return Err(said(&first.place, "a brace where a directive was expected"));
        }
        let mut directive = Directive { name: first.text, arguments: Vec::new(), block: None, place: first.place };
        while let Some(word) = self.peek().cloned() {
            if word.begins_line || word.closes() {
                break;
            }
            self.next();
            if word.opens() {
                directive.block = Some(self.block(depth + 1)?);
                break;
            }
            directive.arguments.push(word.text);
        }
        Ok(directive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<CaddyFile, String> {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned();
        let folder = std::env::temp_dir().join(format!("larder-caddy-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("Caddyfile");
        std::fs::write(&file, text).expect("written");
        std::fs::write(folder.join("more.conf"), "respond /more {args[0]}\n").expect("written");
        let done = read(&file, &|_| None).map_err(|why| why.replace(&format!("{}/", folder.display()), ""));
        let _ = std::fs::remove_dir_all(&folder);
        done
    }

    fn shown(directives: &[Directive]) -> String {
        let one = |directive: &Directive| match &directive.block {
            Some(block) => format!("{} {{{}}}", directive.text(), shown(block)),
            None => directive.text(),
        };
        directives.iter().map(one).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn sites_have_addresses_and_blocks() {
        let read = read_text(
            "{\n email a@b.test\n servers { trusted_proxies static 10.0.0.0/8 }\n}\n\
             (common) {\n header A {args[0]}\n handle {\n {block}\n }\n}\n\
             a.test, b.test,\nc.test {\n import common x {\n respond 404\n }\n import more.conf 410\n import none/*.conf\n}\n\
             http://d.test {\n}\n",
        )
        .expect("a Caddyfile");
        assert_eq!(shown(&read.options), "email a@b.test; servers {trusted_proxies static 10.0.0.0/8}");
        let heads: Vec<String> = read.sites.iter().map(|site| site.head.text()).collect();
        assert_eq!(heads, ["a.test b.test c.test", "http://d.test"]);
        let expect = "header A x; handle {respond 404}; respond /more 410";
        assert_eq!(shown(&read.sites[0].directives), expect);
        assert!(read.absent.is_empty());
    }

    #[test]
    fn one_site_needs_no_braces() {
        let read = read_text(":80\n\nroot * /srv\nfile_server {\n browse\n}\nimport none.conf\n").expect("a Caddyfile");
        assert_eq!(shown(&read.sites[0].directives), "root * /srv; file_server {browse}; import none.conf");
        let read = read_text("import none.conf\n:80 {\n}\n").expect("a Caddyfile");
        assert_eq!((read.absent.len(), read.sites.len()), (1, 1));
    }

    #[test]
    fn what_is_no_caddyfile_says_where() {
        for (text, expect) in [
            (":80 {\n respond 1\n", "Caddyfile:1: a block that does not end"),
            ("a {\n}\n{\n}\n", "Caddyfile:3: a block without an address that is not the first"),
            ("(a) {\n import a\n}\n:80 {\n import a\n}\n", "Caddyfile:2: more than 16 imports within imports"),
            (":80 {\n import\n}\n", "Caddyfile:2: an import of nothing"),
            (":80 {\n {\n }\n}\n", "Caddyfile:2: a brace where a directive was expected"),
        ] {
            assert_eq!(read_text(text).map(|_| ()).unwrap_err(), expect, "{text}");
        }
        let deep = format!(":80 {{\n{}{}}}\n", "handle {\n".repeat(70), "}\n".repeat(70));
        assert!(read_text(&deep).unwrap_err().contains("more than 64 blocks within blocks"));
    }
}
