//! larder.toml(5): every section and key, from the definitions that the file's readers are held against.

use super::ManPage;
use super::roff::{Roff, bold, italic};
use crate::config::{KeyDefinition, SECTIONS, SectionDefinition, shown_kind};

pub const NAME: &str = "larder.toml";

const VALUES: &str = "\
A size is \"64MiB\", \"64M\" (1024s), \"64MB\" (1000s), or a number of bytes.
A time is \"250ms\", \"10s\", \"5m\", \"2h\", \"1d\" or \"1w\"; the unit is part of it.
A network is \"10.0.0.0/8\" or \"::1\".
A list of one may be written without brackets.
A relative path begins at the folder of the file.";

pub fn page() -> ManPage {
    let mut roff = Roff::page(NAME, 5);
    roff.heading("name");
    roff.raw("larder.toml \\- the configuration of larder");
    roff.heading("description");
    roff.text("The file is TOML. \"larder check larder.toml\" finds mistakes in it, \"larder config show\" prints what holds and from where.");
    roff.paragraph(VALUES);
    SECTIONS.iter().for_each(|section| tell(&mut roff, section));
    roff.heading("see also");
    let pages = ["larder", "larder-serve", "larder-check", "larder-config-show", "larder-reload"];
    roff.raw(&pages.map(|page| format!("{}(1)", bold(page))).join(", "));
    ManPage { name: NAME.to_owned(), section: 5, text: roff.into_text() }
}

fn tell(roff: &mut Roff, section: &SectionDefinition) {
    roff.heading(&section.header());
    for group in section.groups {
        let intro = group.intro.trim_start_matches("--- ");
        if !intro.is_empty() {
            roff.text(intro);
        }
        group.keys.iter().for_each(|key| explain(roff, key));
    }
}

fn explain(roff: &mut Roff, key: &KeyDefinition) {
    let unit = key.unit.map_or_else(String::new, |unit| format!(", {unit}"));
    let kind = format!("{}{unit}", shown_kind(&key.kind)).replace('`', "");
    let without = match (key.is_required, key.default, key.without) {
        (true, _, None) => "It is required.".to_owned(),
        (true, _, Some(words)) => format!("It is required, unless {words}."),
        (_, Some(literal), Some(words)) => format!("Without it: {}; {words}.", literal()),
        (_, Some(literal), None) => format!("Without it: {}.", literal()),
        (_, None, words) => format!("Without it: {}.", words.unwrap_or("nothing")),
    };
    let example = match (key.default, key.shown()) {
        (None, value) if !value.is_empty() => format!("\nExample: {} = {value}", key.name),
        _ => String::new(),
    };
    roff.tagged(&format!("{} = {}", bold(key.name), italic(&kind)), &format!("{}\n{without}{example}", key.says));
}
