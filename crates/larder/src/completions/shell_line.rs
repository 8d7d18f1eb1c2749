//! A line that is being typed, up to the cursor, taken apart as shells do: by blanks, quotes and backslashes. Nothing in it is expanded.

/// The words of a command, the last of which is being typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellLine {
    /// Without quotes; the last may be empty.
    pub words: Vec<String>,
    /// The quote that the last word has open.
    pub quote: Option<char>,
}

impl ShellLine {
    pub fn read(typed: &str) -> ShellLine {
        let mut line = ShellLine { words: vec![String::new()], quote: None };
        // A word within quotes may be empty.
        let mut is_begun = false;
        let mut chars = typed.chars();
        while let Some(c) = chars.next() {
            match (line.quote, c) {
                (Some(quote), c) if c == quote => line.quote = None,
                (Some('\''), c) => line.push(c),
                (_, '\\') => {
                    is_begun = true;
                    match chars.next() {
                        // Within quotes a backslash means itself, but before what would mean something else.
                        Some(c) if line.quote.is_some() && !"\"\\$`".contains(c) => line.push_all(&['\\', c]),
                        Some(c) => line.push(c),
                        None => {}
                    }
                }
                (Some(_), c) => line.push(c),
                (None, '\'' | '"') => {
                    line.quote = Some(c);
                    is_begun = true;
                }
                // Another command begins.
                (None, ';' | '|' | '&') => {
                    line.words = vec![String::new()];
                    is_begun = false;
                }
                (None, c) if c.is_whitespace() => {
                    if is_begun {
                        line.words.push(String::new());
                    }
                    is_begun = false;
                }
                (None, c) => {
                    line.push(c);
                    is_begun = true;
                }
            }
        }
        line
    }

    /// The word that is being typed.
    pub fn last(&self) -> &str {
        self.words.last().map_or("", String::as_str)
    }

    fn push(&mut self, c: char) {
        self.push_all(&[c]);
    }

    fn push_all(&mut self, chars: &[char]) {
        if let Some(word) = self.words.last_mut() {
            word.extend(chars);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(typed: &str, words: &[&str], quote: Option<char>) {
        let expect = ShellLine { words: words.iter().map(|word| (*word).to_owned()).collect(), quote };
        assert_eq!(ShellLine::read(typed), expect, "{typed}");
    }

    #[test]
    fn words_are_told_apart_as_shells_do() {
        check("", &[""], None);
        check("larder", &["larder"], None);
        check("larder  log ", &["larder", "log", ""], None);
        check("larder log -q 'class == mi", &["larder", "log", "-q", "class == mi"], Some('\''));
        check("larder log -q 'a'\"b c", &["larder", "log", "-q", "ab c"], Some('"'));
        check("larder log -q '' ", &["larder", "log", "-q", "", ""], None);
        check("larder a\\ b\\", &["larder", "a b"], None);
        check("x 'a\\' \"a\\b\\\"\\\\", &["x", "a\\", "a\\b\"\\"], Some('"'));
        check("cat x | larder lo", &["larder", "lo"], None);
        check("echo '|;' a", &["echo", "|;", "a"], None);
        check("a; \"x y\" z", &["x y", "z"], None);
    }
}
