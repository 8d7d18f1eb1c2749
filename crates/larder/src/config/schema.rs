//! A JSON schema of larder.toml, for editors: `larder config schema`. It is made of the definitions, and says less than the readers:
//! how keys depend on each other, and what stands in a text.

use serde_json::{Map, Value, json};

use super::definition::{KeyDefinition, SectionDefinition, ValueKind};
use super::keys::{self, SECTIONS};
use crate::quantities::{DURATION_PATTERN, SIZE_PATTERN};
use crate::varnish_parameters;

/// JSON Schema, draft 7: what Taplo reads.
pub fn schema() -> Value {
    let mut top = table("");
    let members = top.as_object_mut();
    if let Some(members) = members {
        members.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
        members.insert("title".to_owned(), json!("larder.toml"));
    }
    top
}

/// The table of a path, with its keys and with the sections that lie in it.
fn table(path: &str) -> Value {
    let mut properties = Map::new();
    if let Some(section) = keys::at(path) {
        for key in section.keys().filter(|key| !matches!(key.kind, ValueKind::Table)) {
            let inner = keys::at(&format!("{path}.{}", key.name)).map(of_section);
            properties.insert(key.name.to_owned(), property(key, inner.as_ref()));
        }
    }
    for section in SECTIONS.iter().filter(|section| is_in(path, section)) {
        let name = section.path.rsplit('.').find(|word| *word != "NAME").unwrap_or_default();
        // Where a key takes other values beside a table, it has been told of.
        properties.entry(name.to_owned()).or_insert_with(|| of_section(section));
    }
    if path == "policy" {
        // Taken, with a warning that it changes nothing.
        let idle = varnish_parameters::all().map(|(name, _)| *name);
        for name in idle.filter(|name| varnish_parameters::note(name).is_some()) {
            properties
                .insert(name.to_owned(), json!({ "deprecated": true, "description": varnish_parameters::note(name) }));
        }
    }
    let required: Vec<&str> = keys::at(path).map_or_else(Vec::new, always_required);
    match required.is_empty() {
        true => json!({ "type": "object", "additionalProperties": false, "properties": properties }),
        false => json!({
            "type": "object", "additionalProperties": false, "properties": properties, "required": required,
        }),
    }
}

fn always_required(section: &SectionDefinition) -> Vec<&'static str> {
    let is_always = |key: &&KeyDefinition| key.is_required && key.without.is_none() && !section.is_one_of_groups;
    section.keys().filter(is_always).map(|key| key.name).collect()
}

/// Does the section lie right in the table of this path?
fn is_in(path: &str, section: &SectionDefinition) -> bool {
    let inner = match path {
        "" => Some(section.path),
        _ => section.path.strip_prefix(path).and_then(|rest| rest.strip_prefix('.')),
    };
    inner.is_some_and(|inner| !inner.is_empty() && !inner.trim_end_matches(".NAME").contains('.'))
}

fn of_section(section: &SectionDefinition) -> Value {
    let mut value = match (section.is_list, section.path.ends_with(".NAME")) {
        (true, _) => json!({ "type": "array", "minItems": 1, "items": table(section.path) }),
        (_, true) => json!({ "type": "object", "additionalProperties": table(section.path) }),
        _ => table(section.path),
    };
    let intro = section.groups.first().map_or("", |group| group.intro).trim_start_matches("--- ");
    if let Some(members) = value.as_object_mut()
        && !intro.is_empty()
    {
        members.insert("description".to_owned(), json!(intro));
    }
    value
}

/// `inner`: what its table may hold, if it has one.
fn property(key: &KeyDefinition, inner: Option<&Value>) -> Value {
    let mut value = of_kind(&key.kind, inner);
    let without = key.without.map_or_else(String::new, |words| format!(" Without it: {words}."));
    let unit = key.unit.map_or_else(String::new, |unit| format!(" In {unit}."));
    let since = key.since;
    if let Some(members) = value.as_object_mut() {
        members.insert("description".to_owned(), json!(format!("{}{unit}{without} (since {since})", key.says)));
        if let Some(default) = key.default.and_then(|literal| json_of(&literal())) {
            members.insert("default".to_owned(), default);
        }
        if let Some(example) = key.example.and_then(json_of) {
            members.insert("examples".to_owned(), json!([example]));
        }
    }
    value
}

/// A literal of TOML.
fn json_of(literal: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("x = {literal}")).ok()?;
    serde_json::to_value(table.get("x")?).ok()
}

fn of_kind(kind: &ValueKind, inner: Option<&Value>) -> Value {
    match kind {
        ValueKind::Switch => json!({ "type": "boolean" }),
        ValueKind::Count(min, max) => whole_number(*min, *max),
        ValueKind::Size(min, max) => json!({ "anyOf": [
            whole_number(*min, *max), { "type": "string", "pattern": SIZE_PATTERN },
        ] }),
        ValueKind::Time(_) => json!({ "type": "string", "pattern": DURATION_PATTERN }),
        ValueKind::Words(words) => json!({ "enum": words() }),
        ValueKind::Text(_) => json!({ "type": "string" }),
        ValueKind::Parameter(_) => json!({ "type": ["string", "number", "boolean"] }),
        ValueKind::List(items) => {
            let one = of_kind(items, inner);
            json!({ "anyOf": [one.clone(), { "type": "array", "items": one }] })
        }
        ValueKind::Either(kinds) => {
            json!({ "anyOf": kinds.iter().map(|kind| of_kind(kind, inner)).collect::<Vec<_>>() })
        }
        ValueKind::Map(_, values) => json!({ "type": "object", "additionalProperties": of_kind(values, inner) }),
        ValueKind::Table => inner.cloned().unwrap_or_else(|| json!({ "type": "object" })),
    }
}

/// Bounds that TOML's own numbers cannot reach are none.
fn whole_number(min: u64, max: u64) -> Value {
    match i64::try_from(max) {
        Ok(max) => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Err(_) => json!({ "type": "integer", "minimum": min }),
    }
}
