//! The keys of a `[[route]]` that serves the files of a directory.

use std::collections::BTreeMap;

use proxy::settings::{Listing, NamedTypes, RootSettings, ShownSources};

use super::choices::LISTINGS;
use super::complaint::Complaint;
use super::section::{Node, Section, as_switch, choice, parsed, path, switch};

/// Keys that mean nothing without a root.
const OF_ROOTS: [&str; 10] = [
    "index",
    "fallback",
    "charset",
    "cache_control",
    "dotfiles",
    "sources",
    "precompressed",
    "listing",
    "default_type",
    "types",
];

/// Those of them that are about names.
const OF_NAMES: [&str; 3] = ["charset", "default_type", "types"];

/// What is said of types by the ends of names.
pub fn named_types(section: &mut Section<'_>) -> Option<NamedTypes> {
    OF_NAMES.iter().any(|key| section.get(key).is_some()).then_some(())?;
    let charset = section.read("charset", charset);
    let default_type = section.read("default_type", media_type);
    Some(NamedTypes { charset, default_type, types: types(section) })
}

/// The keys of a route that serves files.
pub fn root(section: &mut Section<'_>) -> Option<RootSettings> {
    let directory = section.read("root", |node| parsed(node, "directory", "a path", path));
    let index = section.read_list("index", |node| {
        let form = "the name of a file, without slashes, blanks and commas";
        parsed(node, "index file", form, |name| is_index_name(name).then(|| name.to_owned()))
    });
    let fallback = section.read("fallback", |node| file_path(node, "fallback"));
    let cache_control = section.read("cache_control", |node| {
        parsed(node, "field value", "such as \"public, max-age=3600\"", |value| {
            let is_value =
                !value.is_empty() && value.trim() == value && value.bytes().all(|b| (b' '..=b'~').contains(&b));
            is_value.then(|| value.to_owned())
        })
    });
    let dotfiles = section.read("dotfiles", switch);
    let sources = section.read("sources", switch);
    let precompressed = section.read("precompressed", switch);
    let listing = section.read("listing", listing);
    // What a name says of a type is said of items as well.
    let is_of_items = section.get("memcached").is_some() && section.get("root").is_none();
    let named = if is_of_items { None } else { named_types(section) };
    if directory.is_none() && section.get("root").is_none() {
        for key in OF_ROOTS.into_iter().filter(|key| !(is_of_items && OF_NAMES.contains(key))) {
            if let Some(node) = section.get(key) {
                let complaint =
                    Complaint::new(node.span(), format!("`{key}` is for routes with a root"), "no root here");
                section.complaints().add(complaint.following_from(&["root", "memcached"]));
            }
        }
    }
    if let (Some(node), Some(hidden)) =
        (section.get("fallback"), fallback.as_deref().filter(|path| path.contains("/.")))
        && dotfiles != Some(true)
    {
        let what = format!("the fallback `{hidden}` is hidden: set `dotfiles = true`, or call it otherwise");
        let complaint = Complaint::new(node.span(), what, "it would never be served");
        section.complaints().add(complaint);
    }
    let ships = RootSettings::of(directory?);
    let NamedTypes { charset, types, default_type } = named.unwrap_or_default();
    Some(RootSettings {
        index: index.unwrap_or(ships.index),
        fallback,
        precompressed: precompressed.unwrap_or(ships.precompressed),
        charset,
        cache_control,
        dotfiles: dotfiles.unwrap_or(ships.dotfiles),
        listing: listing.unwrap_or(ships.listing),
        types,
        default_type,
        scripts: None,
        sources: if sources == Some(true) { ShownSources::All } else { ships.sources },
        kept_back: ships.kept_back,
        directory: ships.directory,
    })
}

fn charset(node: Node<'_>) -> Result<String, Complaint> {
    parsed(node, "charset", "a name such as utf-8 or gbk", |name| is_token(name).then(|| name.to_owned()))
}

pub fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

/// The name of one file: with blanks or commas it would be a list of them elsewhere.
pub fn is_index_name(name: &str) -> bool {
    is_file_name(name) && !name.contains(|c: char| c == ',' || c.is_whitespace())
}

/// The path of a file as it is asked for, with nothing to be decoded or resolved.
pub fn file_path(node: Node<'_>, what: &'static str) -> Result<String, Complaint> {
    let is_path = |path: &str| {
        path.len() > 1 && path.starts_with('/') && !path.contains('%') && path[1..].split('/').all(is_file_name)
    };
    let form = "the path of a file, such as \"/index.html\"";
    parsed(node, what, form, |path| is_path(path).then(|| path.to_owned()))
}

fn listing(node: Node<'_>) -> Result<Listing, Complaint> {
    choice(node, &LISTINGS).map_err(|complaint| match as_switch(node) {
        Some(true) => complaint.suggest("write listing = \"html\"".to_owned()),
        Some(false) => complaint.suggest("write listing = \"off\"".to_owned()),
        None => complaint,
    })
}

fn types(section: &mut Section<'_>) -> BTreeMap<String, String> {
    let mut types = BTreeMap::new();
    let Some(table) = section.section("types") else { return types };
    for (key, span, node) in table.entries() {
        if key.is_empty() || key.contains(['.', '/']) {
            let complaint =
                Complaint::new(span, format!("`{key}` is no end of a name"), "such as html, without its dot");
            table.complaints().add(complaint);
        }
        match media_type(node) {
            Ok(kind) => drop(types.insert(key.to_lowercase(), kind)),
            Err(complaint) => table.complaints().add(complaint),
        }
    }
    types
}

/// As it is sent, with a charset if one is to be said.
fn media_type(node: Node<'_>) -> Result<String, Complaint> {
    let form = "TYPE/SUBTYPE, with its charset if there is one to be said";
    parsed(node, "media type", form, |written| {
        let (kind, parameters) = written.split_once(';').unwrap_or((written, ""));
        let is_half = |half: &str| {
            !half.is_empty() && half.bytes().all(|b| b.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&b))
        };
        let is_type = kind.split_once('/').is_some_and(|(class, rest)| is_half(class) && is_half(rest));
        (is_type && parameters.bytes().all(|b| (b' '..=b'~').contains(&b))).then(|| written.to_owned())
    })
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:+".contains(&b))
}
