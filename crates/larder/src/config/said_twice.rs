//! What a config says twice: a key or the name of a section, with the line of the first one, which the parser does not tell.

use super::complaint::Complaint;
use super::definition::ValueKind;
use super::keys;

/// Of the line that begins at this byte, which a parser calls a duplicate. `None`: no line before it is alike.
pub fn complaint(text: &str, from: usize) -> Option<Complaint> {
    let line = text[from..].lines().next()?;
    let at = from + (line.len() - line.trim_start().len());
    match header(line) {
        Some(written) => of_section(text, from, &written).map(|(what, label, suggestion)| {
            Complaint::new(at..at + line.split('#').next().unwrap_or(line).trim().len(), what, label)
                .suggest(suggestion)
        }),
        None => {
            let key = key(line)?;
            of_key(text, from, key)
                .map(|(what, label, suggestion)| Complaint::new(at..at + key.len(), what, label).suggest(suggestion))
        }
    }
}

/// The headline, what stands at the caret, and what to write.
type Said = (String, String, String);

fn of_section(text: &str, from: usize, written: &str) -> Option<Said> {
    let first = text[..from].lines().position(|line| header(line).is_some_and(|before| before == written))? + 1;
    let what = format!("{written} stands here twice");
    let label = format!("the first one is on line {first}");
    let is_origin = written.starts_with("[origin.") && written.matches('.').count() == 1;
    let other = if is_origin { ", or give this one another name" } else { "" };
    Some((what, label, format!("write these keys below the {written} of line {first}{other}")))
}

fn of_key(text: &str, from: usize, key_here: &str) -> Option<Said> {
    // In the same section, which begins with the header above.
    let begins = text[..from].lines().enumerate().filter(|(_, line)| header(line).is_some()).last();
    let (above, section) = begins.map_or((0, None), |(at, line)| (at + 1, header(line)));
    let lines = text[..from].lines().enumerate().skip(above);
    let (first, _) = lines.into_iter().find(|(_, line)| key(line) == Some(key_here))?;
    let what = format!("`{key_here}` is said twice");
    let label = format!("the first time is on line {}", first + 1);
    let path = section.as_deref().map_or("", |header| header.trim_matches(['[', ']']));
    let path = if path.starts_with("origin.") && path.matches('.').count() == 1 { "origin.NAME" } else { path };
    let is_list = keys::at(path)
        .and_then(|section| section.key(key_here))
        .is_some_and(|definition| matches!(definition.kind, ValueKind::List(_)));
    let suggestion = match is_list {
        true => format!("write both as one list, {key_here} = [\"…\", \"…\"], or leave one of them out"),
        false => "leave one of them out".to_owned(),
    };
    Some((what, label, suggestion))
}

/// `[memory]` of `[ memory ] # …`. `None`: the line is no header.
fn header(line: &str) -> Option<String> {
    let written = line.split('#').next().unwrap_or_default().trim();
    let is_header = written.starts_with('[') && written.ends_with(']') && !written.contains(['=', ',']);
    is_header.then(|| written.split_whitespace().collect())
}

fn key(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let key = key.trim();
    let is_key = !key.is_empty() && !key.starts_with(['#', '[', '{']);
    is_key.then_some(key)
}
