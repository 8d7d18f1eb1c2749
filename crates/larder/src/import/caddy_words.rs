//! The words of a Caddyfile: quotes, backticks, heredocs, comments, continued lines, and `{$NAME:default}`. It knows no directive and no
//! block.

use std::path::Path;

use crate::import::nginx_conf::Place;

/// Words of one file: what holds more is no configuration.
const WORDS_MAX: usize = 100_000;
/// Values of the environment that stand in one file.
const ENVIRONMENT_MAX: usize = 1_000;

/// One word, and whether it stood between quotes: a quoted `{` opens nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaddyWord {
    pub text: String,
    pub is_quoted: bool,
    /// It is the first of a line.
    pub begins_line: bool,
    pub place: Place,
}

impl CaddyWord {
    pub fn opens(&self) -> bool {
        !self.is_quoted && self.text == "{"
    }

    pub fn closes(&self) -> bool {
        !self.is_quoted && self.text == "}"
    }
}

/// The words of a file. `variable`: what the environment says of a name.
pub fn words(text: &str, file: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<CaddyWord>, String> {
    let text = with_environment(text, variable).map_err(|why| format!("{}: {why}", file.display()))?;
    let mut reader = WordReader { rest: &text, line: 1, begins_line: true, words: Vec::new(), file };
    reader.all().map_err(|(line, why)| format!("{}:{line}: {why}", file.display()))?;
    Ok(reader.words)
}

/// `{$NAME}` and `{$NAME:default}`. A name that nobody has set and that has no default stays as it is written: what it should say is
/// not known here, and what uses it is not carried over.
fn with_environment(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest, mut count) = (String::new(), text, 0);
    while let Some(at) = rest.find("{$") {
        let Some(end) = rest[at..].find('}').map(|end| at + end) else { break };
        count += 1;
        if count > ENVIRONMENT_MAX {
            return Err(format!("more than {ENVIRONMENT_MAX} values of the environment"));
        }
        let inside = &rest[at + 2..end];
        let (name, default) =
            inside.split_once(':').map_or((inside, None), |(name, default)| (name, Some(default.to_owned())));
        out.push_str(&rest[..at]);
        match variable(name).filter(|value| !value.is_empty()).or(default) {
            Some(value) => out.push_str(&value),
            None => out.push_str(&rest[at..=end]),
        }
        rest = &rest[end + 1..];
    }
    Ok(out + rest)
}

struct WordReader<'a> {
    rest: &'a str,
    line: usize,
    begins_line: bool,
    words: Vec<CaddyWord>,
    file: &'a Path,
}

impl WordReader<'_> {
    fn all(&mut self) -> Result<(), (usize, String)> {
        while let Some(next) = self.rest.chars().next() {
            match next {
                '\n' => {
                    self.skip(1);
                    self.begins_line = true;
                }
                '\\' if self.rest[1..].trim_start_matches('\r').starts_with('\n') => {
                    let to = self.rest.find('\n').unwrap_or(0) + 1;
                    self.skip(to);
                }
                _ if next.is_whitespace() => self.skip(next.len_utf8()),
                '#' => self.skip(self.rest.find('\n').unwrap_or(self.rest.len())),
                '"' | '`' => self.quoted(next)?,
                _ if self.rest.starts_with("<<") && self.heredoc()? => {}
                _ => self.plain()?,
            }
        }
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        self.line += self.rest[..bytes].matches('\n').count();
        self.rest = &self.rest[bytes..];
    }

    fn add(&mut self, text: String, is_quoted: bool, line: usize) -> Result<(), (usize, String)> {
        if self.words.len() >= WORDS_MAX {
            return Err((line, format!("more than {WORDS_MAX} words")));
        }
        let place = Place { file: self.file.to_owned(), line };
        self.words.push(CaddyWord { text, is_quoted, begins_line: self.begins_line, place });
        self.begins_line = false;
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<(), (usize, String)> {
        let (line, mut text, mut end) = (self.line, String::new(), None);
        let mut chars = self.rest.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            match c {
                c if c == quote => {
                    end = Some(at + 1);
                    break;
                }
                // Between backticks a backslash is one.
                '\\' if quote == '"' => match chars.next() {
                    Some((_, '"')) => text.push('"'),
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                c => text.push(c),
            }
        }
        let end = end.ok_or_else(|| (line, "quotes that do not end".to_owned()))?;
        self.skip(end);
        self.add(text, true, line)
    }

    /// `<<MARK`, lines, and `MARK` on a line of its own, whose indent is taken from all of them. False: it is a usual word.
    fn heredoc(&mut self) -> Result<bool, (usize, String)> {
        let line = self.line;
        let Some(end) = self.rest.find('\n') else { return Ok(false) };
        let mark = self.rest[2..end].trim_end_matches('\r').to_owned();
        if mark.is_empty() || !mark.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Ok(false);
        }
        let mut at = end + 1;
        let mut lines: Vec<&str> = Vec::new();
        loop {
            let text = self.rest.get(at..).filter(|rest| !rest.is_empty());
            let Some(text) = text else { return Err((line, format!("`<<{mark}` that does not end"))) };
            let one = text.split('\n').next().unwrap_or_default();
            let trimmed = one.trim_start();
            let is_end =
                trimmed.strip_prefix(&mark).is_some_and(|rest| rest.is_empty() || rest.starts_with(['\r', ' ']));
            if is_end {
                let indent = &one[..one.len() - trimmed.len()];
                let body: Vec<&str> = lines.iter().map(|line| line.strip_prefix(indent).unwrap_or(line)).collect();
                let body = body.join("\n");
                self.add(body, true, line)?;
                self.skip(at + indent.len() + mark.len());
                return Ok(true);
            }
            lines.push(one.trim_end_matches('\r'));
            at += one.len() + 1;
        }
    }

    /// Up to white space. A placeholder, `{a b}`, is none: its words are two.
    fn plain(&mut self) -> Result<(), (usize, String)> {
        let (line, mut text, mut length) = (self.line, String::new(), 0);
        let mut chars = self.rest.chars();
        while let Some(c) = chars.next().filter(|c| !c.is_whitespace()) {
            length += c.len_utf8();
            match (c, chars.clone().next()) {
                ('\\', Some('\n')) => {
                    length -= 1;
                    break;
                }
                ('\\', Some(escaped @ ('"' | '`' | '<'))) => {
                    text.push(escaped);
                    length += escaped.len_utf8();
                    chars.next();
                }
                _ => text.push(c),
            }
        }
        self.skip(length.max(1));
        if text.is_empty() { Ok(()) } else { self.add(text, false, line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let variable = |name: &str| (name == "SET").then(|| "value".to_owned());
        let words = words(text, Path::new("Caddyfile"), &variable).expect("words");
        words.into_iter().map(|word| format!("{}{}", if word.begins_line { "|" } else { "" }, word.text)).collect()
    }

    #[test]
    fn words_are_what_caddy_reads() {
        for (text, expect) in [
            ("a b # c\n d", vec!["|a", "b", "|d"]),
            ("a#b", vec!["|a#b"]),
            ("a \"b # \\\"c\\\" \\d\" e", vec!["|a", "b # \"c\" \\d", "e"]),
            ("a `b \"c\\`", vec!["|a", "b \"c\\"]),
            ("a \\\n b", vec!["|a", "b"]),
            ("a {$SET} {$NONE:d e} {$NONE}", vec!["|a", "value", "d", "e", "{$NONE}"]),
            ("a <<END\n  one\n    two\n  END 200\nb", vec!["|a", "one\n  two", "200", "|b"]),
            ("a <<\nb", vec!["|a", "<<", "|b"]),
            ("\u{feff}", vec!["|\u{feff}"]),
        ] {
            assert_eq!(read(text), expect, "{text}");
        }
    }

    #[test]
    fn lines_are_counted_and_ends_are_missed() {
        let words_of = |text: &str| words(text, Path::new("Caddyfile"), &|_| None);
        let read = words_of("a\n\"b\nc\" d\n<<X\n1\nX\ne").expect("words");
        let lines: Vec<(usize, bool)> = read.iter().map(|word| (word.place.line, word.is_quoted)).collect();
        assert_eq!(lines, [(1, false), (2, true), (3, false), (4, true), (7, false)]);
        assert_eq!(words_of("a\n\"b"), Err("Caddyfile:2: quotes that do not end".to_owned()));
        assert!(words_of("<<X\nb").unwrap_err().contains("that does not end"));
        assert!(words_of(&"a ".repeat(WORDS_MAX + 1)).unwrap_err().contains("more than 100000 words"));
        assert!(words_of(&"{$A:}".repeat(ENVIRONMENT_MAX + 1)).unwrap_err().contains("values of the environment"));
    }
}
