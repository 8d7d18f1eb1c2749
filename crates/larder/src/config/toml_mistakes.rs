//! What of a text is no TOML: one complaint for one mistake, and what to write where it is another program's configuration.
//!
//! Behind a mistake a parser takes what is right for wrong. So each mistake is blotted out when it has been said, and the rest is read
//! again.

use toml::de::{DeTable, Error};

use super::complaint::Complaint;
use super::{foreign_words, keys, literal, quoting, said_twice, unclosed};
use crate::limits::COMPLAINTS_MAX;

/// Every mistake, in the order of the text; none if it is TOML.
pub fn complaints(text: &str) -> Vec<Complaint> {
    found(text).0
}

/// The text with its mistakes blotted out, as long as before, where one section of it is none of theirs: it has its header, and there is no
/// mistake up to the next one.
pub fn beside_mistakes(text: &str, section: &str) -> Option<String> {
    let header = format!("[{section}]");
    let (mut at, mut begin, mut end) = (0, None, text.len());
    for line in text.split_inclusive('\n') {
        let is_header = line.trim_start().starts_with('[');
        match begin {
            None if is_header && line.split('#').next()?.trim() == header => begin = Some(at),
            Some(_) if is_header => {
                end = at;
                break;
            }
            _ => {}
        }
        at += line.len();
    }
    let (complaints, rest) = found(text);
    let whole = begin?..end;
    let is_whole = rest.get(whole.clone())? == &text[whole.clone()] && DeTable::parse(&rest).is_ok();
    (is_whole && !complaints.iter().any(|complaint| whole.contains(&complaint.span.start))).then_some(rest)
}

/// All mistakes, and the text without them.
fn found(text: &str) -> (Vec<Complaint>, String) {
    let mut rest = text.to_owned();
    let mut complaints: Vec<Complaint> = Vec::new();
    while complaints.len() < COMPLAINTS_MAX {
        let (_, errors) = DeTable::parse_recoverable(&rest);
        let Some(error) = errors.first() else { break };
        let (complaint, lines) = complaint(&rest, error);
        drop(errors);
        let Some(blotted) = blot_out(&rest, lines, complaints.len()) else {
            complaints.push(complaint);
            break;
        };
        complaints.push(complaint);
        rest = blotted;
    }
    complaints.sort_by_key(|complaint| complaint.span.start);
    (complaints, rest)
}

/// A mistake, and the bytes of the lines that it spoils.
fn complaint(text: &str, error: &Error) -> (Complaint, std::ops::Range<usize>) {
    let span = error.span().unwrap_or(text.len()..text.len());
    let start = text.floor_char_boundary(span.start);
    if let Some(open) = unclosed::bracket(text, start).or_else(|| unclosed::long_text(text)) {
        let ends = if text[open..].starts_with(['[', '{']) { line_start(text, start) } else { text.len() };
        return (unclosed::complaint(text, open), line_start(text, open)..ends);
    }
    let from = line_start(text, start);
    let line = line_at(text, from);
    if let Some(place) = list_header(text, from, error) {
        return (list_header_complaint(text, place.clone()), place);
    }
    let is_twice = error.message().contains("duplicate");
    let known = || is_twice.then(|| said_twice::complaint(text, from))?;
    let known = known().or_else(|| quoting::complaint(line, from, start));
    let complaint = match known.or_else(|| foreign_line(line, from)).or_else(|| spoilt_header(line, from)) {
        Some(complaint) => complaint,
        // Its own message may have further lines ("expected …"), which belong at the caret.
        None => {
            let (what, rest) = error.message().split_once('\n').unwrap_or((error.message(), ""));
            let label = if rest.is_empty() { "not TOML" } else { rest };
            let complaint = Complaint::new(span.clone(), what, label.replace('\n', "; "));
            let meant = unquoted(line, text.get(span).unwrap_or_default(), what);
            match meant.or_else(|| with_semicolon(line)).or_else(|| with_colon(line)).or_else(|| bare_word(line)) {
                Some(meant) => complaint.suggest(format!("write {meant}")),
                None => complaint,
            }
        }
    };
    (complaint, from..from + line.len())
}

/// A line of another program's configuration.
fn foreign_line(line: &str, from: usize) -> Option<Complaint> {
    let written = line.trim_start();
    let word: &str = written.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).next()?;
    // A key of ours with its equals sign is no statement of others.
    let is_setting = written[word.len()..].trim_start().starts_with('=');
    let advice = if is_setting { foreign_words::as_key(word) } else { foreign_words::as_statement(word) }?;
    let at = from + line.len() - written.len();
    let what = format!("`{word}` is a word of {}, and not written like this here", advice.program);
    Some(Complaint::new(at..at + word.len(), what, "another language").suggest(advice.write))
}

/// `ttl = 1h`: what is neither a number nor a switch stands in quotes. `spoilt`: what the parser stumbles over.
fn unquoted(line: &str, spoilt: &str, what: &str) -> Option<String> {
    if !what.contains("must be quoted") && !what.starts_with("invalid ") {
        return None;
    }
    let (key, rest) = line.split_once('=')?;
    let value = rest.split('#').next().unwrap_or_default().trim();
    let within = value.starts_with(['[', '{', '"', '\'']);
    let switch = ["true", "false"].into_iter().find(|word| value.eq_ignore_ascii_case(word));
    match (within, switch) {
        _ if value.is_empty() || value.contains(['"', '\\']) && !within => None,
        (true, _) => (!spoilt.is_empty() && what.contains("must be quoted")).then(|| literal::text(spoilt)),
        (false, Some(switch)) => Some(format!("{} = {switch}, in small letters", key.trim())),
        (false, None) => Some(format!("{} = {}", key.trim(), literal::text(value))),
    }
}

/// `a = 1;`: what other languages end a line with.
fn with_semicolon(line: &str) -> Option<String> {
    let written = line.split('#').next()?.trim();
    let rest = written.strip_suffix(';')?.trim_end();
    rest.contains('=').then(|| format!("{rest}, without the ; behind it"))
}

/// `key: value`, as YAML and others have it.
fn with_colon(line: &str) -> Option<String> {
    let (key, value) = line.split('#').next()?.split_once(':')?;
    let (key, value) = (key.trim(), value.trim());
    let is_word = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let is_plain = value.starts_with(['"', '\'', '[', '{', '-']) || value == "true" || value == "false";
    let is_plain = is_plain || value.parse::<i64>().is_ok();
    (is_word && !value.is_empty() && !value.starts_with("//"))
        .then(|| format!("{key} = {}", if is_plain { value.to_owned() } else { literal::text(value) }))
}

/// `{ word }`: within braces, too, each key has a value.
fn bare_word(line: &str) -> Option<String> {
    let (_, within) = line.split_once('{')?;
    let within = within.split('}').next()?;
    let word =
        within.split(',').map(str::trim).find(|part| !part.is_empty() && !part.contains(['=', '"', '\'', '[', ']']))?;
    let is_word = word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    is_word.then(|| format!("{word} = VALUE: within {{ }} each key has a value"))
}

/// `[origin.my app]`: a name without quotes has no blanks, and none of most other characters.
fn spoilt_header(line: &str, from: usize) -> Option<Complaint> {
    let written = line.split('#').next()?.trim();
    let brackets = if written.starts_with("[[") { 2 } else { 1 };
    let name = written.strip_prefix(&"[["[..brackets])?.strip_suffix(&"]]"[..brackets])?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.contains(['"', '\'', '[', ']', '=']) || name.split('.').all(|part| part.trim().chars().all(is_plain)) {
        return None;
    }
    let meant: Vec<String> = name.split('.').map(|part| part.trim().replace(|c| !is_plain(c), "-")).collect();
    let at = from + (line.len() - line.trim_start().len());
    let what = format!("`{written}` is no header: a name without quotes has letters, digits, - and _ alone");
    let complaint = Complaint::new(at..at + written.len(), what, "another character in a name");
    Some(complaint.suggest(format!("write {}{}{}", &"[["[..brackets], meant.join("."), &"]]"[..brackets])))
}

/// `[route]` beside others: the parser stumbles over the second of them, whichever has too few brackets.
fn list_header(text: &str, at: usize, error: &Error) -> Option<std::ops::Range<usize>> {
    let name = line_at(text, at).trim().trim_start_matches('[').split(']').next()?.trim();
    let is_list = keys::at(name).is_some_and(|section| section.is_list);
    if !is_list || !error.message().contains("duplicate") {
        return None;
    }
    let mut from = 0;
    text.split('\n').find_map(|line| {
        let place = from..from + line.len();
        from = place.end + 1;
        (line.split('#').next()?.trim() == format!("[{name}]")).then_some(place)
    })
}

fn list_header_complaint(text: &str, place: std::ops::Range<usize>) -> Complaint {
    let name = text[place.clone()].trim().trim_start_matches('[').split(']').next().unwrap_or_default().to_owned();
    let complaint = Complaint::new(place, format!("there are several [[{name}]]"), "this says that it is the only one");
    complaint.suggest(format!("write [[{name}]] with two brackets on each side"))
}

/// The text with these bytes made nothing, as long as before. What was a header becomes one of no section, so that the keys behind it
/// are not those of the table before. `None`: there is nothing to blot out.
fn blot_out(text: &str, lines: std::ops::Range<usize>, number: usize) -> Option<String> {
    let spoilt = &text[lines.clone()];
    if spoilt.trim().is_empty() {
        return None;
    }
    let header = format!("[-{number}]");
    let first = spoilt.lines().next().unwrap_or_default();
    let keeps_place = first.trim_start().starts_with('[') && first.len() >= header.len();
    let mut blank: String =
        spoilt.chars().map(|c| if c == '\n' { "\n".to_owned() } else { " ".repeat(c.len_utf8()) }).collect();
    if keeps_place {
        blank.replace_range(..header.len(), &header);
    }
    Some(format!("{}{blank}{}", &text[..lines.start], &text[lines.end..]))
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The line that begins there, without its end.
fn line_at(text: &str, from: usize) -> &str {
    text[from..].split('\n').next().unwrap_or_default()
}
