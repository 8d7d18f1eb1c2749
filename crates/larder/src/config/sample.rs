//! docs/larder.toml, and what `larder config sample` prints: every section and every key, with what it does and what holds without it.
//!
//! "# " begins an explanation there, "#" alone a setting that is switched off. All of it comes from the definitions.

use super::definition::{KeyDefinition, KeyGroup, SectionDefinition, ValueKind};
use super::keys::SECTIONS;

/// An explanation is broken before this column.
const COLUMNS: usize = 120;

const HEAD: &str = "\
# larder.toml: every section and every key of larder's configuration, with what it does and what it is set to
# without you.
#
#   larder check larder.toml                    finds mistakes, and says what was probably meant
#   larder config show --config larder.toml     shows what holds, and from where
#   larder serve --config larder.toml           starts with it; flags win over the file
#   larder reload --config larder.toml          has it read again, as kill -HUP does; the cache and all connections stay
#
# A reload takes over everything but workers, [process], [[disk]], [store], memory.eviction, limits.object_bytes_max,
# limits.variants_max, limits.coding_threads and the address of [admin]; of these it says that they change with a restart.
#
# How to read it: \"# \" begins an explanation. A line that begins with \"#\" and a key is a setting, switched off; take
# the \"#\" away, and the one of its [section], to set it. The value that you see is the default, unless \"example\" stands
# behind it: then the explanation says what holds without the key. A line marked \"required\" comes with its section.
#
# Sizes: \"64MiB\", \"64M\" (1024s), \"64MB\" (1000s), or a number of bytes. Times: \"250ms\", \"10s\", \"5m\", \"2h\", \"1d\", \"1w\";
# the unit is part of a time. Networks: \"10.0.0.0/8\", \"::1\". A list of one may be written without brackets. A relative
# path, of a file, a folder or a UNIX socket, begins at the folder of this file, wherever larder was started; one behind a
# flag begins where it was started.
";

/// The whole of it.
pub fn text() -> String {
    let mut out = HEAD.to_owned();
    for section in SECTIONS.iter().filter(|section| !is_on_one_line(section)) {
        let mut has_header = section.path.is_empty();
        for group in section.groups {
            introduce(&mut out, group);
            if !has_header || section.is_one_of_groups || group.shown_at.is_some() {
                out.push_str(&header(section, group));
                has_header = true;
            }
            if let Some(path) = group.shown_at.filter(|_| !is_on(section)) {
                out.push_str(&format!("#path = \"{path}\" # example\n"));
                // Another origin speaks FastCGI.
                if group.beside.is_none() {
                    out.push_str("#origin = \"site\" # example\n");
                }
            }
            let keys = group.keys.iter().filter(|key| !key.shown().is_empty());
            keys.for_each(|key| setting(&mut out, key, is_on(section) && group.shown_at.is_none()));
        }
    }
    out
}

/// It is shown as the value of a key above it.
fn is_on_one_line(section: &SectionDefinition) -> bool {
    ["origin.NAME.", "route.", "fleet."].iter().any(|above| section.path.starts_with(above))
}

/// The one section that is switched on, with its required keys: where the origin is.
fn is_on(section: &SectionDefinition) -> bool {
    section.path == "origin.NAME"
}

/// Of a section whose name is the operator's word, another one for each group.
fn header(section: &SectionDefinition, group: &KeyGroup) -> String {
    match (is_on(section), group.shown_at) {
        (true, Some(name)) => format!("#{}\n", section.header().replace("NAME", name)),
        (true, None) => format!("{}\n", section.header().replace("NAME", "site")),
        (false, _) => format!("#{}\n", section.header()),
    }
}

fn introduce(out: &mut String, group: &KeyGroup) {
    out.push('\n');
    for (at, paragraph) in group.intro.lines().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        explain(out, paragraph);
        // A part of the file has its title for itself.
        if at == 0 && paragraph.starts_with("--- ") && !group.intro.contains('\n') {
            out.push('\n');
        }
    }
}

fn setting(out: &mut String, key: &KeyDefinition, is_on: bool) {
    // The page that has more comes last.
    let (says, page) = match key.says.rsplit_once(' ') {
        Some((says, page)) if page.starts_with("docs/") => (says, page),
        _ => (key.says, ""),
    };
    let without = match (key.without, key.default) {
        (Some(words), None) if !key.is_required => format!("Without it: {words}."),
        (Some(words), Some(_)) => format!("But {words}."),
        _ => String::new(),
    };
    explain(out, &[says, &form(says, &key.kind), &without, page].join(" "));
    let mark = match (key.is_required, key.default) {
        (true, _) => " # required",
        (_, None) => " # example",
        _ => "",
    };
    let off = if is_on && key.is_required { "" } else { "#" };
    let value = if mark.is_empty() { key.default.map_or_else(String::new, |literal| literal()) } else { key.shown() };
    out.push_str(&format!("{off}{} = {value}{mark}\n", key.name));
}

/// How a value is written, where the example and what is said do not tell.
fn form(says: &str, kind: &ValueKind) -> String {
    match kind {
        ValueKind::Words(words) => {
            let words: Vec<String> = words().iter().map(|word| format!("\"{word}\"")).collect();
            match words.iter().all(|word| says.contains(word.as_str())) {
                true => String::new(),
                false => format!("One of {}.", words.join(", ")),
            }
        }
        ValueKind::Text(form) if !form.starts_with("a ") => format!("It is {form}."),
        ValueKind::List(inner) => form(says, inner),
        _ => String::new(),
    }
}

/// Broken into lines.
fn explain(out: &mut String, sentences: &str) {
    let mut line = String::from("#");
    for word in sentences.split_whitespace() {
        if line.chars().count() + word.chars().count() >= COLUMNS {
            out.push_str(&format!("{line}\n"));
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    if line.len() > 1 {
        out.push_str(&format!("{line}\n"));
    }
}
