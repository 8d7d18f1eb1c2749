//! Words of routes that no program says, and what becomes of them.

use proxy::settings::{FieldLine, FieldTemplate, NamePattern, RouteRules, RouteSettings, RouteTarget};

use super::vcl_texts::{RequestSide, is_field, plain_name, template};
use crate::config::shown_route;

/// What is told above the program, each as `ROUTE: WORD`.
#[derive(Debug, Default)]
pub struct Notes {
    /// Words that hold beside a program.
    hold: Vec<String>,
    /// Words that say nothing beside one.
    lost: Vec<String>,
}

impl Notes {
    /// In lines.
    pub fn draw(&self) -> Vec<String> {
        let part = |head: &str, notes: &[String]| match notes {
            [] => Vec::new(),
            notes => {
                let own = notes.iter().map(|note| format!("  {note}"));
                [String::new(), head.to_owned()].into_iter().chain(own).collect()
            }
        };
        let mut lines = part(
            "These have no VCL and hold beside a program: leave them in a [[route]] of the same requests.",
            &self.hold,
        );
        lines.extend(part("These have no VCL, and say nothing beside a program:", &self.lost));
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines
    }
}

/// Notes what of a route has no VCL.
pub fn note(route: &RouteSettings, notes: &mut Notes) {
    let (rules, whose) = (&*route.rules, shown_route(route));
    let whole = match route.target {
        RouteTarget::Root(_) => Some("root"),
        RouteTarget::Memcached(_) => Some("memcached"),
        RouteTarget::StatusPage(_) => Some("stub_status"),
        RouteTarget::Origin(_) | RouteTarget::Itself | RouteTarget::Closed => None,
    };
    if let Some(word) = whole {
        // All that is said of it stays with it.
        return notes.hold.push(format!("{whose}: {word}, and all that its route says"));
    }
    let hold = [
        (rules.access.login.is_some(), "basic_auth"),
        (rules.access.service.is_some(), "auth_request"),
        (!rules.connection_limits.is_empty(), "connection_limit"),
        (rules.bandwidth.is_some(), "bandwidth"),
        (rules.request_fields.request_id.is_some(), "request_id"),
        (route.error_pages.is_some(), "error_pages"),
        (route.closed.is_some(), "closed_paths"),
        (
            has_guards(rules) && is_for_some_paths(route),
            "allow, deny and limits, which hold here for the path as it is written, there for every spelling of it",
        ),
    ];
    notes.hold.extend(hold.iter().filter(|(is_said, _)| *is_said).map(|(_, word)| format!("{whose}: {word}")));
    notes.hold.extend(fields(route).map(|word| format!("{whose}: {word}")));
    let lost = [
        (rules.mirror.is_some(), "mirror"),
        (rules.timeouts.whole.is_some(), "timeouts.whole"),
        (
            rules.caching.grant.ignores_set_cookie && !rules.caching.is_off,
            "ignore_origin of Set-Cookie: there the first client gets the cookie, here nobody does",
        ),
        (rules.caching.grant.stale_if_error_s.is_some(), "stale_if_error (beresp.grace is the nearest)"),
        (route.purge_from.is_some(), "purge_from (write an acl, and `return (purge);` in vcl_recv)"),
        (route.esi.is_some(), "esi (write `set beresp.do_esi = true;` in vcl_backend_response)"),
    ];
    notes.lost.extend(lost.iter().filter(|(is_said, _)| *is_said).map(|(_, word)| format!("{whose}: {word}")));
    notes.lost.extend(values_of_asking(route).map(|word| format!("{whose}: {word}")));
}

fn has_guards(rules: &RouteRules) -> bool {
    let access = &rules.access;
    access.allowed.is_some()
        || !access.denied.is_empty()
        || !rules.rate_limits.is_empty()
        || rules.request_body_bytes_max.is_some()
}

fn is_for_some_paths(route: &RouteSettings) -> bool {
    route.path_pattern.is_some() || route.path_prefix != "/"
}

/// Fields whose names have a star, or that VCL cannot name, or whose values have variables that VCL has not.
fn fields(route: &RouteSettings) -> impl Iterator<Item = String> {
    let rules = &route.rules;
    let (asked, answered) = (&rules.request_fields, &rules.answer_fields);
    let removed = [("request_headers.remove", &asked.removed), ("response_headers.remove", &answered.removed)];
    let removed = removed.into_iter().flat_map(|(word, names)| {
        let starred = names.iter().filter(|name| plain_name(name).is_none());
        starred.map(move |name| format!("{word} = [\"{}\"]", written(name)))
    });
    let put = [
        ("request_headers.set", &asked.set),
        ("request_headers.add", &asked.added),
        ("response_headers.set", &answered.set),
        ("response_headers.add", &answered.added),
        ("response_headers.default", &answered.missing),
    ];
    let put = put.into_iter().flat_map(|(word, lines)| {
        let left_out = lines.iter().filter(|line: &&FieldLine| !is_field(line.name()) || !has_vcl(line.value(), route));
        left_out.map(move |line| format!("{word} of {}", line.name()))
    });
    let own = rules.answer.iter().flat_map(|answer| answer.location.iter().chain(&answer.body));
    let own = own.filter(|value| !has_vcl(value, route)).map(|_| "redirect or respond, for its variables".to_owned());
    let keys = rules.rate_limits.iter().filter_map(|limit| limit.by.as_ref());
    let keys = keys.filter(|value| !has_vcl(value, route)).map(|_| "rate_limit, for its key".to_owned());
    removed.chain(put).chain(own).chain(keys)
}

/// The same of what an origin is asked for.
fn values_of_asking(route: &RouteSettings) -> impl Iterator<Item = String> {
    let target = route.rules.target.target.iter();
    let is_left_out = |value: &&FieldTemplate| {
        template(value, RequestSide::Fetch, route.path_pattern.as_deref(), &mut std::collections::BTreeSet::new())
            .is_none()
    };
    target.filter(is_left_out).map(|_| "rewrite, for its variables".to_owned())
}

fn has_vcl(value: &FieldTemplate, route: &RouteSettings) -> bool {
    template(value, RequestSide::Client, route.path_pattern.as_deref(), &mut std::collections::BTreeSet::new())
        .is_some()
}

fn written(name: &NamePattern) -> String {
    name.parts().map(String::from_utf8_lossy).collect::<Vec<_>>().join("*")
}
