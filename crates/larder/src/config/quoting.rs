//! Lines of a config whose quotes are not those that were meant: typographic ones, which no TOML knows, and double ones around backslashes,
//! which begin escapes there.

use super::complaint::Complaint;

/// As programs for texts put them in the place of `"`.
const DOUBLE: [char; 6] = ['\u{201c}', '\u{201d}', '\u{201e}', '\u{201f}', '\u{ab}', '\u{bb}'];
/// And of `'`.
const SINGLE: [char; 4] = ['\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];

/// What is wrong with the quotes of the line that begins at byte `from` and that a parser stumbled over at `at`, if they are the matter.
pub fn complaint(line: &str, from: usize, at: usize) -> Option<Complaint> {
    typographic(line, from).or_else(|| backslash(line, from, at))
}

fn typographic(line: &str, from: usize) -> Option<Complaint> {
    let at = line.find(|c: char| DOUBLE.contains(&c) || SINGLE.contains(&c))?;
    let before = line[..at].trim_end();
    let begins_value = before.is_empty() || before.ends_with(['=', '[', ',', '{', '.']);
    let found = line[at..].chars().next().filter(|_| begins_value)?;
    let plain = match line.contains(DOUBLE) {
        true => line.replace(DOUBLE, "\""),
        false => line.replace(SINGLE, "'"),
    };
    let what = format!("{found} is a quote for texts, and no quote of TOML");
    let complaint = Complaint::new(from + at..from + at + found.len_utf8(), what, "another character than \"");
    Some(complaint.suggest(format!("write {}", plain.trim())))
}

fn backslash(line: &str, from: usize, at: usize) -> Option<Complaint> {
    let at = at.checked_sub(from)?;
    let strings = double_quoted(line);
    let (begin, end) = *strings.iter().find(|(begin, end)| (*begin..*end).contains(&at))?;
    let place = begin + line[begin..end].find('\\')?;
    let mut plain = String::new();
    let mut rest = 0;
    for (begin, end) in strings {
        plain.push_str(&line[rest..begin]);
        plain.push_str(&in_single_quotes(&line[begin..end]));
        rest = end;
    }
    plain.push_str(&line[rest..]);
    let what = "within double quotes a backslash begins an escape, and this is none";
    let complaint = Complaint::new(from + place..from + place + 2, what, "no escape of TOML");
    Some(complaint.suggest(format!("write {}", plain.trim())))
}

/// Where the texts of a line stand that have a backslash, quotes included.
fn double_quoted(line: &str) -> Vec<(usize, usize)> {
    let bytes = line.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begin = at;
        at += 1;
        match bytes[begin] {
            b'#' => break,
            quote @ (b'"' | b'\'') => {
                while at < bytes.len() && bytes[at] != quote {
                    at += if bytes[at] == b'\\' && quote == b'"' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                let is_whole = line.is_char_boundary(at) && line[begin..at].ends_with('"') && at > begin + 1;
                if quote == b'"' && is_whole && line[begin..at].contains('\\') {
                    found.push((begin, at));
                }
            }
            _ => {}
        }
    }
    found
}

/// A text between double quotes as one in which a backslash is no more than that.
fn in_single_quotes(quoted: &str) -> String {
    let inner = quoted[1..quoted.len() - 1].replace("\\\"", "\"");
    match inner.contains('\'') {
        true => format!("\"{}\"", inner.replace("\\\\", "\\").replace('\\', "\\\\").replace('"', "\\\"")),
        false => format!("'{}'", inner.replace("\\\\", "\\")),
    }
}
