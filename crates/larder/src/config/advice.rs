//! What to write in place of a key that is unknown where it stands: one of another section, or a word of another program.

use super::definition::SectionDefinition;
use super::foreign_words;
use super::keys::{self, SECTIONS};

/// Sections that are listed, at most.
const PLACES_MAX: usize = 3;

/// For `key` in the section of this path. `None`: nobody knows the word.
pub fn for_key(path: &str, key: &str) -> Option<String> {
    let elsewhere = || places(path, key).map(|places| format!("`{key}` belongs in {places}"));
    let foreign = || {
        let advice = foreign_words::as_key(key)?;
        Some(format!("that is a word of {}: {}", advice.program, advice.write))
    };
    section(key).or_else(elsewhere).or_else(foreign)
}

/// A section that is not one of this one's.
fn section(key: &str) -> Option<String> {
    let found = SECTIONS.iter().find(|section| section.path.split('.').next() == Some(key))?;
    Some(format!("{} is a section of its own, and lies in no other", header(found)))
}

/// Where a key of this name, or a section, is at home.
fn places(path: &str, key: &str) -> Option<String> {
    let has_it = |section: &&SectionDefinition| {
        let is_inner = section.path.rsplit_once('.').is_some_and(|(_, last)| last == key);
        section.path != path && (section.key(key).is_some() || is_inner)
    };
    let mut headers: Vec<String> = SECTIONS.iter().filter(has_it).map(header).collect();
    headers.dedup();
    // [policy] takes the words of routes, too.
    if path != "policy" && keys::is_word_of_routes(key) {
        let of_one = headers.iter().position(|header| header == "[[route]]");
        of_one.into_iter().for_each(|at| headers[at] = "[[route]], or for all routes in [policy]".to_owned());
    }
    headers.truncate(PLACES_MAX);
    (!headers.is_empty()).then(|| headers.join(" or "))
}

fn header(section: &SectionDefinition) -> String {
    match section.path {
        "" => "the top level, above all sections".to_owned(),
        _ => section.header(),
    }
}
