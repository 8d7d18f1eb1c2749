//! Which requests a `[[route]]` is for, beside their host: `path`, `path_pattern`, `method`, `header`.

use std::sync::Arc;

use proxy::settings::{FieldCondition, RoutePattern, RouteSettings};
use toml::de::DeValue;

use super::complaint::Complaint;
use super::literal;
use super::route_fields::is_name;
use super::section::{Node, Section, as_switch, parsed, pattern, text};

/// What is asked of a request.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Beginnings of paths.
    pub paths: Option<Vec<String>>,
    pub patterns: Vec<Arc<RoutePattern>>,
    methods: Vec<Box<str>>,
    fields: Vec<FieldCondition>,
}

pub fn read(section: &mut Section<'_>) -> Conditions {
    let paths = section.read_list("path", path);
    let patterns = section.read_list("path_pattern", |node| {
        let pattern = RoutePattern::new(pattern(node)?);
        pattern.map(Arc::new).map_err(|why| Complaint::new(node.span(), why, "a PCRE2 pattern was expected"))
    });
    if let (Some(_), Some(node)) = (&patterns, section.get("path")) {
        let what = "a route has `path` or `path_pattern`";
        let complaint = Complaint::new(node.span(), what, "beside `path_pattern`");
        section.complaints().add(complaint.suggest("write the beginning into the pattern: '^/api/.*\\.json$'"));
    }
    let methods = section.read_list("method", |node| {
        let method = parsed(node, "method", "as it is sent, such as GET or POST", |written| {
            is_method(written).then(|| written.into())
        });
        method.map_err(|complaint| match text(node).map(str::to_ascii_uppercase) {
            Ok(meant) if is_method(&meant) => complaint.suggest(format!("write \"{meant}\"")),
            _ => complaint,
        })
    });
    Conditions {
        paths,
        patterns: patterns.unwrap_or_default(),
        methods: methods.unwrap_or_default(),
        fields: fields(section),
    }
}

fn is_method(written: &str) -> bool {
    !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

fn path(node: Node<'_>) -> Result<String, Complaint> {
    if let Some(write) = nginx_location(text(node)?) {
        let complaint = Complaint::new(node.span(), format!("`{}` is no path", text(node)?), "no patterns here");
        return Err(complaint.suggest(write));
    }
    if let Some((before, _)) = text(node)?.split_once('*') {
        let what = "a path stands for all that lies beneath it, and a * in it for nothing";
        let beneath = before.trim_end_matches('/');
        return Err(Complaint::new(node.span(), what, "no patterns here").suggest(match (before, beneath) {
            ("", _) => "write path_pattern = '[.]php$' for names that end so".to_owned(),
            (_, "") => "write \"/\", or leave path out".to_owned(),
            (_, beneath) => format!("write \"{beneath}\", or path_pattern = '^{beneath}'"),
        }));
    }
    let path = parsed(node, "path", "begins with / and has no ?, # or space", |written| {
        is_path(written).then(|| written.to_owned())
    });
    path.map_err(|complaint| with_slash(node, complaint))
}

/// What a location of nginx becomes, by the sign before it; a regex may come without its sign.
fn nginx_location(written: &str) -> Option<String> {
    let (sign, rest) = written.split_once(' ').unwrap_or(("", written));
    let rest = rest.trim_start();
    let instead = |pattern: &str| Some(format!("write path_pattern = {} in place of path", literal::text(pattern)));
    match sign {
        "~" => instead(rest),
        "~*" => instead(&format!("(?i){rest}")),
        "^~" => Some(format!("write path = {}: the longest path counts by itself", literal::text(rest))),
        "=" => instead(&format!("^{}$", rest.replace('.', "[.]"))),
        "" if rest.starts_with(['^', '~']) => instead(rest.trim_start_matches(['~', '*'])),
        _ => None,
    }
}

fn is_path(written: &str) -> bool {
    written.starts_with('/') && !written.contains(['?', '#']) && written.bytes().all(|b| b.is_ascii_graphic())
}

/// Of a path that wants nothing but its first slash.
pub fn with_slash(node: Node<'_>, complaint: Complaint) -> Complaint {
    match text(node).map(|written| format!("/{written}")) {
        Ok(path) if is_path(&path) && path.len() > 1 && !path.starts_with("//") => {
            complaint.suggest(format!("write \"{path}\""))
        }
        _ => complaint,
    }
}

/// `header = { NAME = "VALUE" }`, `(?i)VALUE` for letters of either case, `~PATTERN`, `!` before each for anything else, `true` for any value,
/// or `false` for none; of several all.
fn fields(section: &mut Section<'_>) -> Vec<FieldCondition> {
    let Some(table) = section.section("header") else { return Vec::new() };
    let mut fields = Vec::new();
    for (name, span, node) in table.entries() {
        if !is_name(name) {
            let what = format!("`{name}` is no name of a field");
            table.complaints().add(Complaint::new(span, what, "such as Accept-Language"));
        }
        match (as_switch(node), values(node)) {
            (Some(true), _) => fields.push(FieldCondition::present(name)),
            (Some(false), _) => fields.push(FieldCondition::missing(name)),
            (_, Some(values)) => {
                let conditions =
                    values.map(|value| condition(name, value).map_err(|complaint| table.complaints().add(complaint)));
                fields.extend(conditions.flatten());
            }
            _ => {
                let what = "a field must have a value, in which a * stands for any text, or true for any value, or false for none";
                table.complaints().add(Complaint::new(node.span(), what, "neither"));
            }
        }
    }
    fields
}

fn condition(name: &str, value: Node<'_>) -> Result<FieldCondition, Complaint> {
    let written = text(value)?;
    let complaint = |what| Complaint::new(value.span(), what, "a value, or ~ and a PCRE2 pattern, was expected");
    if let Some(pattern) = written.trim_start_matches('!').strip_prefix("(?i)~") {
        let complaint = complaint("the (?i) of a pattern stands behind its ~".to_owned());
        return Err(complaint.suggest(format!("write {}", literal::text(&format!("~(?i){pattern}")))));
    }
    FieldCondition::written(name, written).map_err(complaint)
}

/// A text, or those of a list that has nothing else.
fn values<'a>(node: Node<'a>) -> Option<impl Iterator<Item = Node<'a>>> {
    let items = match node.get_ref() {
        DeValue::Array(items) => items,
        _ => std::slice::from_ref(node),
    };
    let are_texts = !items.is_empty() && items.iter().all(|item| text(item).is_ok());
    are_texts.then(|| items.iter())
}

impl Conditions {
    /// The route for each of the paths on each of the hosts.
    pub fn routes(&self, hosts: &[Option<String>], route: &RouteSettings) -> Vec<RouteSettings> {
        let route = RouteSettings { methods: self.methods.clone(), fields: self.fields.clone(), ..route.clone() };
        let everything = || vec!["/".to_owned()];
        let mut routes = Vec::new();
        for host in hosts {
            let at = |path_prefix: &str, path_pattern: Option<&Arc<RoutePattern>>| RouteSettings {
                host: host.clone(),
                path_prefix: path_prefix.to_owned(),
                path_pattern: path_pattern.cloned(),
                ..route.clone()
            };
            match self.patterns.is_empty() {
                true => {
                    let paths = self.paths.clone().unwrap_or_else(everything);
                    routes.extend(paths.iter().map(|path| at(path, None)));
                }
                false => routes.extend(self.patterns.iter().map(|pattern| at("/", Some(pattern)))),
            }
        }
        routes
    }
}

/// Would two routes answer the same requests?
pub fn ask_for_the_same(one: &RouteSettings, other: &RouteSettings) -> bool {
    let pattern = |route: &RouteSettings| route.path_pattern.as_ref().map(|pattern| pattern.text().to_owned());
    one.host == other.host
        && one.path_prefix == other.path_prefix
        && pattern(one) == pattern(other)
        && one.methods == other.methods
        && one.fields == other.fields
}

/// As people say it.
pub fn shown(route: &RouteSettings) -> String {
    let host = route.host.as_deref().unwrap_or("any host");
    match &route.path_pattern {
        Some(pattern) => format!("{host} and {}", pattern.text()),
        None => format!("{host} and {}", route.path_prefix),
    }
}
