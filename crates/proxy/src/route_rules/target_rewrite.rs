//! The path that an origin is asked for, where it is another than the client's. The store, the log and whoever invalidates know the client's
//! alone: two routes that ask two origins for the same path are two URLs.

use message::Request;

use crate::closed_paths;
use crate::route_rules::field_template::{FieldTemplate, TemplateSource};
use crate::route_rules::route_conditions::RoutePattern;

/// What becomes of a path.
#[derive(Clone, Debug, Default)]
pub struct TargetRewrite {
    /// The beginning of a path that is cut off, by whole segments.
    pub stripped_prefix: Option<Box<str>>,
    /// What stands in place of the path, and of the query where it has a `?`.
    pub target: Option<FieldTemplate>,
}

impl TargetRewrite {
    pub fn acts(&self) -> bool {
        self.stripped_prefix.is_some() || self.target.is_some()
    }

    /// Path and query that an origin is asked for. `None`: those of the request. The error: they can be no request-target (RFC 9112 §3.2), for a blank
    /// or a control would begin another line.
    pub(crate) fn of(&self, request: &Request<'_>, pattern: Option<&RoutePattern>) -> Result<Option<Vec<u8>>, Unsound> {
        let target = match &self.target {
            Some(template) => Some(named(template, request, pattern)),
            None => self.stripped(request),
        };
        let is_sound = |byte: &u8| byte.is_ascii_graphic() && *byte != b'#' || *byte >= 0x80;
        // Dots in what was put together would lead out of what it is confined to.
        let has_dots = |target: &[u8]| self.target.is_some() && closed_paths::has_dot_segments(path_of(target));
        match target {
            Some(target) if !target.iter().all(is_sound) || has_dots(&target) => Err(Unsound),
            target => Ok(target),
        }
    }

    fn stripped(&self, request: &Request<'_>) -> Option<Vec<u8>> {
        let prefix = self.stripped_prefix.as_deref()?.trim_end_matches('/').as_bytes();
        let rest = request.path.strip_prefix(prefix)?;
        if !rest.is_empty() && !rest.starts_with(b"/") {
            return None;
        }
        let mut target = if rest.is_empty() { b"/".to_vec() } else { rest.to_vec() };
        push_query(&mut target, request);
        Some(target)
    }
}

/// What would be no request-target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unsound;

fn named(template: &FieldTemplate, request: &Request<'_>, pattern: Option<&RoutePattern>) -> Vec<u8> {
    let groups = pattern.and_then(|pattern| pattern.groups(request.path));
    let nobody = std::net::Ipv4Addr::UNSPECIFIED.into();
    let mut target = Vec::new();
    template.write(&TemplateSource { request, client: nobody, user: None, groups: groups.as_ref() }, &mut target);
    if !target.starts_with(b"/") {
        target.insert(0, b'/');
    }
    // As in nginx, a template without a query keeps the one that came, and one that ends with `?` leaves it out.
    match target.iter().position(|&byte| byte == b'?') {
        None => push_query(&mut target, request),
        Some(at) if at + 1 == target.len() => target.truncate(at),
        Some(_) => {}
    }
    target
}

fn path_of(target: &[u8]) -> &[u8] {
    target.split(|&byte| byte == b'?').next().unwrap_or_default()
}

fn push_query(target: &mut Vec<u8>, request: &Request<'_>) {
    if let Some(query) = request.query {
        target.push(b'?');
        target.extend_from_slice(query);
    }
}
