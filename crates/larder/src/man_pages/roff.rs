//! Text as roff, with the macros of man(7). It knows no command and no key.

use std::fmt::Write;

/// A page that is being written.
#[derive(Default)]
pub struct Roff(String);

impl Roff {
    /// `title`: `larder-serve`.
    pub fn page(title: &str, section: u8) -> Roff {
        let mut roff = Roff::default();
        let title = escaped(&title.to_uppercase());
        let version = env!("CARGO_PKG_VERSION");
        // No date: the same program makes the same page.
        let _ = writeln!(roff.0, ".TH {title} {section} \"\" \"larder {version}\" \"larder\"");
        // Names of files and flags are not broken.
        roff.0.push_str(".nh\n.ad l\n");
        roff
    }

    pub fn heading(&mut self, text: &str) {
        let _ = writeln!(self.0, ".SH {}", escaped(&text.to_uppercase()));
    }

    /// One of its own. Behind a heading there is one already.
    pub fn paragraph(&mut self, text: &str) {
        let last = self.0.lines().next_back().unwrap_or_default();
        if !last.starts_with(".SH") {
            self.0.push_str(".PP\n");
        }
        self.text(text);
    }

    /// Goes on where the page is.
    pub fn text(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.raw(&line_of(line.trim()));
        }
    }

    /// Lines that stay as they are.
    pub fn as_typed<'a>(&mut self, lines: impl Iterator<Item = &'a str>) {
        self.0.push_str(".EX\n");
        lines.for_each(|line| self.raw(&line_of(line)));
        self.0.push_str(".EE\n");
    }

    /// What is explained, and the explanation beneath it. `tag` is roff.
    pub fn tagged(&mut self, tag: &str, text: &str) {
        self.0.push_str(".TP\n");
        self.raw(tag);
        self.text(text);
    }

    /// A line of roff.
    pub fn raw(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

pub fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

pub fn italic(text: &str) -> String {
    format!("\\fI{}\\fR", escaped(text))
}

/// A line of text, which is no order to the formatter however it begins.
fn line_of(text: &str) -> String {
    let escaped = escaped(text);
    match escaped.starts_with(['.', '\'']) {
        true => format!("\\&{escaped}"),
        false => escaped,
    }
}

/// Characters that mean something else to roff, or that not every formatter reads.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\(aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            c if c.is_ascii() => out.push(c),
            c => {
                let _ = write!(out, "\\[u{:04X}]", u32::from(c));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        assert_eq!(line_of(text), expect);
    }

    #[test]
    fn text_means_itself() {
        check("a --flag", "a \\-\\-flag");
        check(".hidden", "\\&.hidden");
        check("'quoted'", "\\(aqquoted\\(aq");
        check("a\\b…", "a\\eb\\[u2026]");
        check("~ ^ `x`", "\\(ti \\(ha \\(gax\\(ga");
    }
}
