//! What to write in place of a key that is unknown where it stands: one of another section, or a word of another program.

use super::definition::SectionDefinition;
use super::foreign_words;
use super::keys::{self, SECTIONS};
use super::literal;
use super::meant_words;
use super::section::{Advice, UnknownKey, Written};

/// Names and passwords stand in a file of their own.
const BASIC_AUTH: &str = "write basic_auth = \"FILE\"; htpasswd -B -c FILE NAME makes it";

/// Sections that are listed, at most.
const PLACES_MAX: usize = 3;

/// What to write in place of a key. `None`: nobody knows the word, or it is another spelling of a key that its section has.
pub fn for_key(unknown: UnknownKey<'_>) -> Option<Advice> {
    let UnknownKey { path, key, spelling_of, .. } = unknown;
    if let Some((write, of)) = meant_words::within(path, key) {
        return Some(Advice { write: write.to_owned(), of });
    }
    if spelling_of.is_some() {
        return None;
    }
    let foreign = || {
        let advice = foreign_words::as_key(key)?;
        Some(format!("that is a word of {}: {}", advice.program, advice.write))
    };
    let elsewhere = || places(path, key).map(|places| format!("`{key}` belongs in {places}"));
    let write = within_a_table(path, key)
        .or_else(|| name_of_a_site(path, key))
        .or_else(|| of_the_top(unknown))
        .or_else(|| inner_section(path, key))
        .or_else(|| section(key))
        .or_else(elsewhere)
        .or_else(foreign);
    write.map(|write| Advice { write, of: None })
}

/// What is one word here and another one where it came from is another one.
fn name_of_a_site(path: &str, key: &str) -> Option<String> {
    let is_it = key == "server_name" && ["route", "listen", "policy"].contains(&path);
    is_it.then(|| foreign_words::as_statement(key).map(|advice| advice.write.to_owned()))?
}

/// A key of none of the sections, which TOML takes for one of the section that stands above it.
fn of_the_top(unknown: UnknownKey<'_>) -> Option<String> {
    let UnknownKey { path, label, key, .. } = unknown;
    let is_of_top = !path.is_empty() && keys::at("").is_some_and(|top| top.key(key).is_some());
    is_of_top.then(|| {
        format!("`{key}` belongs above all sections: write it before the first line with a [, or it is a key of the section above it, here {label}")
    })
}

/// A section that lies in another one, written as one of its own.
fn inner_section(path: &str, key: &str) -> Option<String> {
    let ways = SECTIONS.iter().filter_map(|section| {
        let (parent, last) = section.path.rsplit_once('.')?;
        (path.is_empty() && last == key).then(|| match parent {
            "route" => of_routes(key),
            "listen" => format!("{} below its [[listen]]", section.header()),
            _ => section.header(),
        })
    });
    let ways: Vec<String> = ways.collect();
    (!ways.is_empty()).then(|| format!("it is no section of its own: write {}", ways.join(", or ")))
}

/// A table of a route's, on one line.
fn of_routes(key: &str) -> String {
    let example = keys::at("route").and_then(|route| route.key(key)).map(|key| key.shown()).unwrap_or_default();
    let for_all = if keys::is_word_of_routes(key) { ", or for all routes in [policy]" } else { "" };
    format!("{key} = {example} in [[route]]{for_all}")
}

/// What to write in place of a value that is no table: the table that was meant, the example of its key, or a section with what it cannot do
/// without.
pub fn for_table(path: &str, written: Written<'_>) -> Option<String> {
    // What [policy] says of all routes is defined as a word of one.
    let path = path.strip_prefix("policy.").map_or(path.to_owned(), |key| format!("route.{key}"));
    if let Some(advice) = short_table(&path, written).or_else(|| meant_section(&path, written)) {
        return Some(advice);
    }
    let of_parent = path.rsplit_once('.').and_then(|(parent, key)| keys::at(parent)?.key(key));
    if let Some(key) = of_parent
        && let Some(example) = key.example
    {
        return Some(format!("write {} = {example}", key.name));
    }
    let section = keys::at(&path)?;
    let mut needed: Vec<_> = section.keys().filter(|key| key.is_required).collect();
    // Of several groups each has its own.
    if section.is_list && (needed.is_empty() || section.is_one_of_groups) {
        return None;
    }
    if needed.is_empty() {
        needed.extend(section.keys().next());
    }
    let lines: Vec<String> = needed.iter().map(|key| format!("{} = {}", key.name, key.shown())).collect();
    Some(format!("write {} on a line of its own, and below it {}", section.header(), lines.join(" and ")))
}

/// Of tables whose example says more than somebody wants who has said one word.
fn short_table(path: &str, written: Written<'_>) -> Option<String> {
    let said = match (path, written) {
        ("listen.tls", _) => {
            "write tls = { cert = \"FILE\", key = \"FILE\" }, or tls = { acme = [\"NAME\"] } and a section [acme]: docs/tls.md"
        }
        ("origin.NAME.tls", _) => {
            "leave it out where this system knows who has signed the server's certificate, or write tls = { ca = \"FILE\" }; \
             https:// in urls is what has TLS spoken"
        }
        ("origin.NAME.probe", Written::Text(path)) if path.starts_with('/') => {
            return Some(format!("write probe = {{ path = {} }}", literal::text(path)));
        }
        ("origin.NAME.probe", _) => "write probe = { path = \"/health\" }",
        ("route.rate_limit", Written::Number(number)) if number.parse::<u32>().is_ok_and(|number| number > 0) => {
            return Some(format!("write rate_limit = \"{number}/s\", or with /m or /h for a minute or an hour"));
        }
        ("route.rate_limit", _) => "write rate_limit = \"10/s\"",
        ("route.bandwidth", _) => "write bandwidth = \"1MiB/s\"",
        ("route.basic_auth", Written::Text(file)) => {
            return Some(format!("write basic_auth = {}", literal::text(file)));
        }
        ("route.basic_auth", _) => BASIC_AUTH,
        ("route.auth_request", Written::Text(path)) if path.starts_with('/') => {
            let path = literal::text(path);
            return Some(format!(
                "write auth_request = {{ origin = \"NAME\", path = {path} }}, and [origin.NAME] with urls"
            ));
        }
        ("route.auth_request", _) => {
            "write auth_request = { origin = \"NAME\", path = \"/verify\" }, and [origin.NAME] with urls"
        }
        ("route.cors", Written::Text(site)) => {
            return Some(format!("write cors = {{ origins = [{}] }}", literal::text(site)));
        }
        _ => return None,
    };
    Some(said.to_owned())
}

/// A section of which somebody has said the one value that matters.
fn meant_section(path: &str, written: Written<'_>) -> Option<String> {
    let key = match (path, written) {
        ("listen" | "admin", Written::Text(_) | Written::Number(_)) => "address",
        ("memory", Written::Text(_)) => "size",
        ("log", Written::Text(_)) => "path",
        ("disk", Written::Text(_)) => "path",
        ("resolver", Written::Text(_)) => "servers",
        ("policy", Written::Text(file)) if file.ends_with(".vcl") => "vcl",
        ("route", Written::Text(path)) if path.starts_with('/') => "path",
        ("compress", Written::Switch(_)) => "enabled",
        _ => return None,
    };
    let value = match written {
        Written::Text(text) => literal::text(text),
        Written::Number(port) => literal::text(&format!("127.0.0.1:{}", port.parse::<u16>().ok()?)),
        Written::Switch(on) => literal::switch(on),
        Written::Other => return None,
    };
    let more = if path == "disk" { " and size = \"10GiB\"" } else { "" };
    Some(format!("write {} on a line of its own, and below it {key} = {value}{more}", keys::at(path)?.header()))
}

/// Of tables whose keys are easily taken for those of a table within.
fn within_a_table(path: &str, key: &str) -> Option<String> {
    let table = path.rsplit('.').next()?;
    match (table, key) {
        ("request_headers" | "response_headers", _) if key.contains('-') || key.starts_with(char::is_uppercase) => {
            Some(format!("write {table} = {{ set = {{ {key} = \"VALUE\" }} }}"))
        }
        ("basic_auth", _) => Some(BASIC_AUTH.to_owned()),
        ("cookies", "pass" | "skip" | "no_cache" | "nocache" | "session" | "sessions") => {
            Some("write bypass = [\"NAME\"]: who brings one of these is answered by the origin alone".to_owned())
        }
        _ => None,
    }
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
    section.header()
}
