//! Words that would fit, as each shell wants to be told of them.

use clap_complete::CompletionCandidate;

use super::shell_line::ShellLine;

/// A word that fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldWord {
    pub text: String,
    /// In a line; or nothing.
    pub says: String,
}

impl ToldWord {
    /// One that cannot be written in a line is not told of.
    pub fn of(candidate: &CompletionCandidate) -> Option<ToldWord> {
        let text = candidate.get_value().to_str()?.to_owned();
        let says = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        let says = says.lines().next().unwrap_or_default().replace('\t', " ");
        (!text.contains(['\n', '\t'])).then_some(ToldWord { text, says })
    }

    pub fn is_flag(&self) -> bool {
        self.text.starts_with('-')
    }
}

/// zsh and fish write quotes themselves.
pub fn with_sentences(told: &[ToldWord]) -> String {
    told.iter().map(|word| format!("{}\t{}\n", word.text, word.says)).collect()
}

/// bash has each word as it would be typed, from `replaced` on: it parts words at `=` and `:`, too, and writes no quotes.
pub fn for_bash(told: &[ToldWord], line: &ShellLine, replaced: &str) -> String {
    let kept = line.last().strip_suffix(replaced).unwrap_or_default();
    let rests: Vec<&str> = told.iter().filter_map(|word| word.text.strip_prefix(kept)).collect();
    let lines = |words: &[String]| words.iter().map(|word| format!("{word}\n")).collect::<String>();
    if let Some(quote) = line.quote {
        let fits = |rest: &&&str| !rest.contains(quote);
        return lines(&rests.iter().filter(fits).map(|rest| (*rest).to_owned()).collect::<Vec<_>>());
    }
    let plain: Vec<String> = rests.iter().filter(|rest| is_plain(rest)).map(|rest| (*rest).to_owned()).collect();
    if !plain.is_empty() {
        return lines(&plain);
    }
    let quoted: Vec<&&str> = rests.iter().filter(|rest| !rest.contains('\'')).collect();
    // Of several bash types what they begin with: more is to come before the quote is closed.
    let end = if quoted.len() == 1 { "'" } else { "" };
    lines(&quoted.iter().map(|rest| format!("'{rest}{end}")).collect::<Vec<_>>())
}

/// Does it mean itself without quotes?
fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || "_-+=./:,@%^".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str]) -> Vec<ToldWord> {
        words.iter().map(|word| ToldWord { text: (*word).to_owned(), says: "a sentence".to_owned() }).collect()
    }

    #[track_caller]
    fn check(typed: &str, replaced: &str, words: &[&str], expect: &[&str]) {
        let answer = for_bash(&told(words), &ShellLine::read(typed), replaced);
        assert_eq!(answer.lines().collect::<Vec<_>>(), expect, "{typed}");
    }

    #[test]
    fn bash_is_told_what_it_replaces() {
        check("larder se", "se", &["serve"], &["serve"]);
        check("larder check --config=la", "la", &["--config=larder.toml"], &["larder.toml"]);
        check("larder log -q class==mi", "mi", &["class==miss", "class==miss and"], &["miss"]);
    }

    #[test]
    fn bash_is_told_of_words_with_blanks_as_they_are_typed() {
        let classes = ["class ==", "class !="];
        check("larder log -q cla", "cla", &classes, &["'class ==", "'class !="]);
        check("larder log -q 'cla", "cla", &classes, &classes);
        check("larder check a", "a", &["a b.toml"], &["'a b.toml'"]);
        check("larder check \"a", "a", &["a\"b", "ab"], &["ab"]);
        check("larder check a", "a", &["a'b"], &[]);
    }

    #[test]
    fn other_shells_are_told_what_a_word_means() {
        assert_eq!(with_sentences(&told(&["serve", "class =="])), "serve\ta sentence\nclass ==\ta sentence\n");
    }
}
