//! What is shown in place of values that are for their owner alone. Which ones are is said where keys are defined ([`Secrecy`]).

use toml::{Table, Value};

use super::definition::{KeyDefinition, Secrecy};
use super::keys;

/// Too short for a token, so nobody starts larder with it.
const HIDDEN: &str = "(secret)";

/// What names of fields and variables have in them that carry credentials.
const NAMES_OF_CREDENTIALS: [&str; 9] =
    ["authorization", "cookie", "token", "secret", "passw", "credential", "auth", "key", "dsn"];

/// A value of a key, without its secrets. `section`: of which path the key is.
pub fn hidden(section: &str, definition: Option<&KeyDefinition>, key: &str, value: &Value) -> Value {
    match (definition.map_or(Secrecy::Open, |definition| definition.secrecy), value) {
        (Secrecy::Secret, value) => hide(value),
        (Secrecy::ByName, Value::Table(named)) => {
            let shown = |(name, value): (&String, &Value)| {
                (name.clone(), if is_of_credentials(name) { hide(value) } else { value.clone() })
            };
            Value::Table(named.iter().map(shown).collect())
        }
        (_, Value::Table(inner)) => Value::Table(hidden_table(section, key, inner)),
        (_, Value::Array(items)) => {
            let shown = |item: &Value| match item {
                Value::Table(inner) => Value::Table(hidden_table(section, key, inner)),
                other => other.clone(),
            };
            Value::Array(items.iter().map(shown).collect())
        }
        (_, value) => value.clone(),
    }
}

/// A table with keys of its own. What [policy] says of all routes is defined with those of one.
fn hidden_table(section: &str, key: &str, table: &Table) -> Table {
    let path = format!("{section}.{key}");
    let inner = keys::at(&path).or_else(|| keys::at(&format!("route.{key}")));
    let shown = |(name, value): (&String, &Value)| {
        let definition = inner.and_then(|inner| inner.key(name));
        (name.clone(), hidden(&path, definition, name, value))
    };
    table.iter().map(shown).collect()
}

fn hide(value: &Value) -> Value {
    match value {
        Value::Table(named) => Value::Table(named.iter().map(|(name, value)| (name.clone(), hide(value))).collect()),
        Value::Array(items) => Value::Array(items.iter().map(hide).collect()),
        // Whether something is wanted at all.
        Value::Boolean(is_on) => Value::Boolean(*is_on),
        _ => Value::String(HIDDEN.to_owned()),
    }
}

fn is_of_credentials(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES_OF_CREDENTIALS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::super::keys::SECTIONS;
    use super::*;

    fn check(section: &str, key: &str, written: &str, expect: &str) {
        let table: Table = toml::from_str(&format!("value = {written}")).unwrap();
        let definition = keys::at(section).and_then(|section| section.key(key));
        // [policy] takes words of routes.
        assert!(definition.is_some() || section == "policy", "{section}.{key}");
        assert_eq!(hidden(section, definition, key, &table["value"]).to_string(), expect, "{section}.{key}");
    }

    #[test]
    fn secrets_are_not_shown_and_all_else_is() {
        check("admin", "token", "\"0123456789abcdef\"", "\"(secret)\"");
        check("admin", "token_file", "\"admin.token\"", "\"admin.token\"");
        check("traces", "headers", "{ Authorization = \"Bearer x\" }", "{ Authorization = \"(secret)\" }");
        check(
            "origin.NAME",
            "params",
            "{ APP_ENV = \"a\", DB_PASSWORD = \"b\" }",
            "{ APP_ENV = \"a\", DB_PASSWORD = \"(secret)\" }",
        );
        check("route", "memcached_login", "\"u:p\"", "\"(secret)\"");
        check(
            "route",
            "header",
            "{ X-Token = true, X-Key = [\"a\"], X-Beta = \"b\" }",
            "{ X-Beta = \"b\", X-Key = [\"(secret)\"], X-Token = true }",
        );
        for section in ["route", "policy"] {
            check(
                section,
                "request_headers",
                "{ set = { Authorization = \"Basic x\", X-Site = \"a\" } }",
                "{ set = { Authorization = \"(secret)\", X-Site = \"a\" } }",
            );
        }
    }

    /// Whoever adds a key with such a name says whether it is one.
    #[test]
    fn keys_that_are_called_like_secrets_are_marked() {
        let called = |name: &str| ["token", "secret", "login", "password"].iter().any(|word| name.ends_with(word));
        let missing: Vec<&str> = SECTIONS
            .iter()
            .flat_map(|section| section.keys())
            // A path, and a path to go to.
            .filter(|key| {
                called(key.name) && key.secrecy == Secrecy::Open && !matches!(key.name, "ticket_secret" | "login")
            })
            .map(|key| key.name)
            .collect();
        assert!(missing.is_empty(), "{missing:?}");
    }
}
