//! Which requests a route is for, as a condition of VCL, and in which order routes are asked.

use std::cmp::Reverse;

use proxy::settings::{FieldCondition, NamePattern, RouteSettings};

use super::printed_route::Printed;
use super::vcl_texts::{RequestSide, alternatives, escaped, path, quoted};

/// Puts routes into the order in which the first that fits is the one that counts.
pub fn sort(routes: &mut [Printed<'_>]) {
    routes.sort_by_key(|printed| {
        let (route, asks) = (printed.route, conditions_count(printed.route));
        let host = match route.host.as_deref() {
            Some(host) if host.starts_with('*') => (1, Reverse(host.len())),
            Some(_) => (0, Reverse(0)),
            None => (2, Reverse(0)),
        };
        // Of patterns the first counts, whatever else it asks for.
        let path = match (&route.path_pattern, &*route.path_prefix) {
            (Some(_), _) if route.yields_to_paths => (2, Reverse(0), Reverse(0)),
            (Some(_), _) => (0, Reverse(0), Reverse(0)),
            (None, "/") => (3, Reverse(0), Reverse(asks)),
            (None, prefix) => (1, Reverse(prefix.len()), Reverse(asks)),
        };
        (host, path, printed.number)
    });
}

fn conditions_count(route: &RouteSettings) -> usize {
    usize::from(!route.methods.is_empty()) + route.fields.len()
}

/// What a route asks of a request. `None`: nothing.
pub fn of(route: &RouteSettings) -> Option<String> {
    let mut all = Vec::new();
    all.extend(route.host.as_deref().map(host));
    all.extend(of_path(route));
    if !route.methods.is_empty() {
        let in_either_case = route.guards_methods_in_either_case();
        let methods = route.methods.iter().map(|method| match in_either_case {
            true => format!("req.method ~ \"(?i)^{}$\"", escaped(method.as_bytes())),
            false => format!("req.method == \"{method}\""),
        });
        let methods: Vec<String> = methods.collect();
        all.push(if methods.len() == 1 { methods.join("") } else { format!("({})", methods.join(" || ")) });
    }
    all.extend(route.fields.iter().map(field));
    (!all.is_empty()).then(|| all.join(" && "))
}

fn host(host: &str) -> String {
    let name = match host.strip_prefix('*') {
        Some(beneath) => format!(".+{}", escaped(beneath.as_bytes())),
        None => escaped(host.as_bytes()),
    };
    format!("req.http.Host ~ \"(?i)^{name}\\.?(?::\\d+)?$\"")
}

fn of_path(route: &RouteSettings) -> Option<String> {
    if let Some(pattern) = &route.path_pattern {
        return Some(format!("{} ~ {}", path(RequestSide::Client), quoted(pattern.text())?));
    }
    match &*route.path_prefix {
        "/" => None,
        prefix if prefix.ends_with('/') => Some(format!("req.url ~ \"^{}\"", escaped(prefix.as_bytes()))),
        prefix => Some(format!("req.url ~ \"^{}(?:/|\\?|$)\"", escaped(prefix.as_bytes()))),
    }
}

fn field(condition: &FieldCondition) -> String {
    match condition.value() {
        None => format!("req.http.{}", condition.name()),
        Some(value) => {
            let case = if condition.ignores_case() { "(?i)" } else { "" };
            let (name, value) = (condition.name(), whole(value));
            match condition.is_otherwise() {
                true => format!("req.http.{name} && req.http.{name} !~ \"{case}^{value}$\""),
                false => format!("req.http.{name} ~ \"{case}^{value}$\""),
            }
        }
    }
}

fn whole(pattern: &NamePattern) -> String {
    alternatives(std::slice::from_ref(pattern), ".*")
}
