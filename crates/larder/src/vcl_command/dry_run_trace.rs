//! What ran in a dry run, as lines of the program: statements, whether conditions held, and what was changed.

use std::collections::HashMap;

use proxy::dry_runner::{Event, Ran};
use vcl::LogKind;
use vcl::source_files::{Sources, Span};
use vcl::typed_program::{Program, Statement, StatementKind};

use crate::quantities::counted;

/// A statement that ran, or a condition that was looked at, and what came of it.
#[derive(Clone, Debug)]
pub struct TraceLine {
    pub file: String,
    pub line: usize,
    /// How deep it stands in blocks.
    pub depth: usize,
    /// Its words, in one line, cut.
    pub text: String,
    /// Of a condition: whether it held.
    pub held: Option<bool>,
    pub effects: Vec<String>,
    pub is_builtin: bool,
}

/// How deep the statements and conditions of a program stand in blocks, and which statement is an `if`.
#[derive(Debug, Default)]
struct Depths(HashMap<Span, (usize, bool)>);

impl Depths {
    fn of(program: &Program) -> Depths {
        let mut depths = Depths::default();
        for subroutine in &program.subroutines {
            subroutine.bodies.iter().for_each(|body| depths.add(&body.statements, 0));
        }
        depths
    }

    fn add(&mut self, statements: &[Statement], depth: usize) {
        for statement in statements {
            let is_if = matches!(statement.kind, StatementKind::If { .. });
            self.0.insert(statement.span, (depth, is_if));
            match &statement.kind {
                StatementKind::If { branches, otherwise } => {
                    for (condition, inside) in branches {
                        self.0.insert(condition.span, (depth, false));
                        self.add(inside, depth + 1);
                    }
                    self.add(otherwise, depth + 1);
                }
                StatementKind::Block(inside) => self.add(inside, depth + 1),
                _ => {}
            }
        }
    }
}

/// The lines of one subroutine that ran.
pub fn trace(ran: &Ran) -> Vec<TraceLine> {
    let sources = ran.loaded.sources();
    let depths = Depths::of(ran.loaded.program());
    let mut lines: Vec<TraceLine> = Vec::new();
    let mut is_first = true;
    for event in &ran.events {
        match event {
            // Its conditions follow.
            Event::Statement(at) if depths.0.get(at).is_some_and(|&(_, is_if)| is_if) => is_first = true,
            Event::Statement(at) => lines.push(line(*at, None, &depths, sources, None)),
            Event::Condition { at, holds } => {
                let word = if is_first { "if" } else { "elseif" };
                is_first = false;
                lines.push(line(*at, Some(word), &depths, sources, Some(*holds)));
            }
            event => {
                if let (Some(line), Some(effect)) = (lines.last_mut(), effect(event)) {
                    line.effects.push(effect);
                }
            }
        }
    }
    lines
}

fn line(at: Span, word: Option<&str>, depths: &Depths, sources: &Sources, held: Option<bool>) -> TraceLine {
    let text = one_line(&sources.text(at), TEXT_CHARS_MAX);
    TraceLine {
        file: sources.file(at.file).name.clone(),
        line: sources.position(at).line,
        depth: depths.0.get(&at).map_or(0, |&(depth, _)| depth),
        text: word.map_or_else(|| text.clone(), |word| format!("{word} ({text})")),
        held,
        effects: Vec::new(),
        // The last file is the built-in one.
        is_builtin: usize::from(at.file.0) + 1 == sources.files().len(),
    }
}

const TEXT_CHARS_MAX: usize = 76;
const VALUE_CHARS_MAX: usize = 200;

fn one_line(text: &str, chars_max: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= chars_max {
        return text;
    }
    let mut cut: String = text.chars().take(chars_max - 1).collect();
    cut.push('…');
    cut
}

fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(VALUE_CHARS_MAX).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}

/// For people; `None` for what needs no word.
fn effect(event: &Event) -> Option<String> {
    Some(match event {
        Event::Statement(_) | Event::Condition { .. } => return None,
        Event::Set { name, before: Some(before), after } if before == after => {
            format!("{name} stays {}", quoted(after))
        }
        Event::Set { name, before: Some(before), after } if !before.is_empty() => {
            format!("{name}: {} becomes {}", quoted(before), quoted(after))
        }
        Event::Set { name, after, .. } => format!("{name}: {}", quoted(after)),
        Event::Added { name, line } => format!("{name}: one more line {}", quoted(line)),
        Event::Unset { name, before } if before.is_empty() => format!("{name} is gone"),
        Event::Unset { name, before } => format!("{name} is gone, it was {}", quoted(before)),
        Event::RolledBack(what) => format!("{what} is as it came"),
        Event::Hashed(Some(part)) => format!("hashed: {}", quoted(part)),
        Event::Hashed(None) => "hashed: an absent text".to_owned(),
        Event::Body(text) => format!("body: {} more", counted(text.len() as u64, "byte")),
        Event::Banned { expression, refused: None } => format!("banned: {}", quoted(expression)),
        Event::Banned { expression, refused: Some(why) } => format!("not banned: {}: {why}", quoted(expression)),
        Event::Purged { tag, is_soft, count } => {
            let what = tag.as_ref().map_or_else(String::new, |tag| format!(" with the tag {}", quoted(tag)));
            let how = if *is_soft { "softly purged" } else { "purged" };
            format!("{how}: {count} stored{what}")
        }
        Event::Logged(LogKind::Program, text) => format!("logged: {}", quoted(text)),
        Event::Logged(LogKind::Error, text) => format!("error: {text}"),
        Event::Logged(kind, text) => format!("{kind:?}: {text}"),
    })
}
