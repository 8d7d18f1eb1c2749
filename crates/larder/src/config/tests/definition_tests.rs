//! The definitions of keys against what the readers read, and the pages that are made of them.
//!
//! `UPDATE_DOCS=1 cargo test --release -p larder config` writes the pages anew.

use std::collections::BTreeSet;
use std::path::Path;

use toml::Value;

use super::super::definition::{KeyDefinition, SectionDefinition, ValueKind};
use super::super::keys::{self, SECTIONS};
use super::super::section::ReadForm;
use super::super::{reference as reference_text, sample as sample_text};
use super::sample_tests::read_everything;
use crate::varnish_parameters;

/// What somebody has to do who added a key.
fn missing_row(path: &str, name: &str) -> String {
    let section = keys::at(path);
    let (file, header) = section.map_or(("../keys.rs", path.to_owned()), |section| (section.file, section.header()));
    format!(
        "`{name}` of {header} is read and not defined. Add a row to crates/larder/src/config/keys/{file}:\n\n    \
         key(V0_1, \"{name}\", TYPE, \"What it does.\").by_default(|| literal::…),\n\n\
         with .without(\"what holds then\").example(\"VALUE\") where it has no default, or .required(\"VALUE\"); TYPE is a ValueKind of \
         config/definition.rs. Then UPDATE_DOCS=1 cargo test --release -p larder config writes docs/config.md and docs/larder.toml anew; \
         a line written into them by hand belongs into the row."
    )
}

#[test]
fn every_key_that_is_read_is_defined_and_every_other_way_round() {
    let asked = read_everything().asked.take();
    let mut wrong = Vec::new();
    for (path, name) in asked.keys() {
        let is_idle = path == "policy" && varnish_parameters::sets_nothing(name);
        if !is_idle && !is_section(path, name) && keys::key(path, name).is_none() {
            wrong.push(missing_row(path, name));
        }
    }
    for section in SECTIONS {
        for key in section.keys().filter(|key| !asked.contains_key(&(section.path.to_owned(), key.name))) {
            let (name, header, file) = (key.name, section.header(), section.file);
            wrong.push(format!("`{name}` of {header} is defined in keys/{file}, and no reader asks for it"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
    assert!(asked.len() > 250, "only {} keys were asked for", asked.len());
}

fn is_section(path: &str, name: &str) -> bool {
    let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    keys::at(&path).is_some() || keys::at(&format!("{path}.NAME")).is_some()
}

#[test]
fn every_key_is_read_as_what_it_is_defined_to_be() {
    let asked = read_everything().asked.take();
    let mut wrong = Vec::new();
    for (section, key) in all().filter(|(_, key)| !matches!(key.kind, ValueKind::Table)) {
        let Some(read) = asked.get(&(section.path.to_owned(), key.name)) else { continue };
        let (of, header) = (key.name, section.header());
        if !read.is_there {
            wrong.push(format!("`{of}` of {header} does not stand in the sample"));
        }
        let Some(forms) = forms(&key.kind) else { continue };
        let others: Vec<_> = read.forms.difference(&forms).collect();
        if !others.is_empty() {
            let kind = key.kind;
            wrong.push(format!("`{of}` of {header} is defined as {kind:?}, and its reader takes it for {others:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a reader may take a value for. `None`: anything.
fn forms(kind: &ValueKind) -> Option<BTreeSet<ReadForm>> {
    Some(match kind {
        ValueKind::Switch => [ReadForm::Switch].into(),
        ValueKind::Count(..) => [ReadForm::Count].into(),
        ValueKind::Size(..) => [ReadForm::Size].into(),
        ValueKind::Time(_) => [ReadForm::Time].into(),
        ValueKind::Words(words) => [ReadForm::Words(words()), ReadForm::Text].into(),
        ValueKind::Text(_) => [ReadForm::Text].into(),
        ValueKind::List(inner) => forms(inner)?,
        ValueKind::Either(kinds) => {
            kinds.iter().map(forms).collect::<Option<Vec<_>>>()?.into_iter().flatten().collect()
        }
        ValueKind::Parameter(_) | ValueKind::Map(..) | ValueKind::Record(_) | ValueKind::Table => return None,
    })
}

fn all() -> impl Iterator<Item = (&'static SectionDefinition, &'static KeyDefinition)> {
    SECTIONS.iter().flat_map(|section| section.keys().map(move |key| (section, key)))
}

#[test]
fn every_definition_is_whole() {
    let mut seen = BTreeSet::new();
    for (section, key) in all() {
        let of = format!("`{}` of {}", key.name, section.header());
        assert!(seen.insert((section.path, key.name)), "{of} is defined twice");
        let names_page = key.says.rsplit(' ').next().is_some_and(|word| word.starts_with("docs/"));
        assert!(key.says.ends_with(['.', '…']) || names_page, "{of}: {:?} is no sentence", key.says);
        assert!(is_version(key.since), "{of}: since {:?} is no version up to this one", key.since);
        if matches!(key.kind, ValueKind::Table) {
            continue;
        }
        let what_holds = key.default.is_some() || key.without.is_some() || key.is_required;
        assert!(what_holds, "{of} does not say what holds without it: by_default, without or required");
        let literals = [key.default.map(|literal| literal()), key.example.map(str::to_owned)];
        assert!(literals.iter().any(Option::is_some), "{of} has no example");
        for literal in literals.into_iter().flatten() {
            let value = toml::from_str::<toml::Table>(&format!("x = {literal}"));
            let value = value.unwrap_or_else(|error| panic!("{of}: `{literal}` is no TOML: {error}"));
            assert!(is_of(&value["x"], &key.kind), "{of}: `{literal}` is none of {:?}", key.kind);
        }
    }
}

fn is_version(since: &str) -> bool {
    let numbers = |version: &str| version.split('.').map(|part| part.parse::<u32>().ok()).collect::<Option<Vec<_>>>();
    numbers(since).is_some_and(|since| since.len() == 3 && Some(since) <= numbers(env!("CARGO_PKG_VERSION")))
}

/// Is it of the type? Texts are not looked into.
fn is_of(value: &Value, kind: &ValueKind) -> bool {
    match (kind, value) {
        (ValueKind::Switch, Value::Boolean(_)) | (ValueKind::Text(_), Value::String(_)) => true,
        (ValueKind::Count(min, max), Value::Integer(n)) => u64::try_from(*n).is_ok_and(|n| (*min..=*max).contains(&n)),
        (ValueKind::Size(min, max), Value::Integer(n)) => u64::try_from(*n).is_ok_and(|n| (*min..=*max).contains(&n)),
        (ValueKind::Size(min, max), Value::String(text)) => {
            crate::quantities::parse_size(text).is_ok_and(|n| (*min..=*max).contains(&n))
        }
        (ValueKind::Time(_), Value::String(text)) => crate::quantities::parse_duration(text).is_ok(),
        (ValueKind::Words(words), Value::String(text)) => words().contains(&text.as_str()),
        (ValueKind::List(inner), Value::Array(items)) => items.iter().all(|item| is_of(item, inner)),
        (ValueKind::List(inner), one) => is_of(one, inner),
        (ValueKind::Either(kinds), value) => kinds.iter().any(|kind| is_of(value, kind)),
        (ValueKind::Map(_, inner), Value::Table(table)) => table.values().all(|value| is_of(value, inner)),
        (ValueKind::Record(keys), Value::Table(table)) => {
            let is_key =
                |(name, value): (&String, &Value)| keys.iter().any(|key| key.name == name && is_of(value, &key.kind));
            table.iter().all(is_key)
        }
        (ValueKind::Parameter(_), _) | (ValueKind::Table, Value::Table(_)) => true,
        _ => false,
    }
}

#[test]
fn the_pages_are_what_the_definitions_make_of_them() {
    check_page("larder.toml", &sample_text());
    check_page("config.md", &reference_text());
}

fn check_page(name: &str, now: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        // Other tests read it meanwhile.
        let beside = page.with_extension("new");
        std::fs::write(&beside, now).and_then(|()| std::fs::rename(&beside, &page)).expect("docs/ can be written");
    }
    let text = std::fs::read_to_string(&page).unwrap_or_default();
    let differs = text.lines().zip(now.lines()).enumerate().find(|(_, (is, should))| is != should);
    let place = differs.map_or(String::new(), |(at, (is, should))| {
        format!("line {}: it says\n{is}\nand would be\n{should}\n", at + 1)
    });
    assert!(
        text == now,
        "docs/{name} is not what the definitions in crates/larder/src/config/keys/ make of it. {place}\
         Write into a row there what was written into the page, and then UPDATE_DOCS=1 cargo test --release -p larder config"
    );
}

/// The bounds in the definitions are those of the readers.
#[test]
fn a_number_past_its_bounds_is_refused() {
    let refused = |section: &SectionDefinition, key: &KeyDefinition, value: &str| {
        let header = section.header().replace("NAME", "x");
        let others =
            section.keys().filter(|other| other.is_required && other.name != key.name && !section.is_one_of_groups);
        let others: String = others.map(|other| format!("{} = {}\n", other.name, other.shown())).collect();
        let text = format!("{header}\n{others}{} = {value}\n", key.name);
        super::read(&text)
            .err()
            .unwrap_or_default()
            .iter()
            .any(|complaint| complaint.span.start >= text.len() - value.len() - 2)
    };
    let mut tried = 0;
    for (section, key) in all().filter(|(section, _)| !["", "route", "listen"].contains(&section.path)) {
        let (ValueKind::Count(min, max) | ValueKind::Size(min, max)) = key.kind else { continue };
        let (min_text, max_text) = (min.to_string(), max.to_string());
        let of = format!("`{}` of {}", key.name, section.header());
        assert!(!refused(section, key, &min_text), "{of} refuses {min}");
        assert!(min == 0 || refused(section, key, &(min - 1).to_string()), "{of} takes {}", min - 1);
        if max < i64::MAX as u64 {
            assert!(!refused(section, key, &max_text), "{of} refuses {max}");
            assert!(refused(section, key, &(max + 1).to_string()), "{of} takes {}", max + 1);
        }
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
}
