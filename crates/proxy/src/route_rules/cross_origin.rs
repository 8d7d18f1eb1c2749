//! Which scripts of other sites may read the answers of a route (CORS, Fetch Standard §3.2).

use std::time::Duration;

use message::{FieldName, FieldsView, Method, Request};

use crate::route_rules::name_patterns::NamePattern;

/// Who may read what.
#[derive(Clone, Debug)]
pub struct CrossOrigin {
    /// Sites, as `https://app.example`; `None`: all, but none with its cookies.
    pub origins: Option<Vec<NamePattern>>,
    /// Methods beyond GET, HEAD and POST, as a list for the field.
    pub methods: Box<str>,
    /// Fields that a script may send, as a list for the field; empty: those that it asks for.
    pub request_fields: Box<str>,
    /// Fields of answers that a script may read.
    pub exposed_fields: Box<str>,
    /// With the cookies of the reader.
    pub credentials: bool,
    /// How long a browser may remember it.
    pub max_age: Option<Duration>,
}

/// The fields by which this is said, none of which an origin's answer keeps.
pub(crate) const FIELDS: [&str; 6] = [
    "access-control-allow-origin",
    "access-control-allow-credentials",
    "access-control-allow-methods",
    "access-control-allow-headers",
    "access-control-expose-headers",
    "access-control-max-age",
];

const ORIGIN: &[u8] = b"Origin";
const ASKED_METHOD: &[u8] = b"Access-Control-Request-Method";
const ASKED_FIELDS: &[u8] = b"Access-Control-Request-Headers";

impl CrossOrigin {
    /// Does a browser ask beforehand whether a script may ask?
    pub(crate) fn is_preflight(request: &Request<'_>) -> bool {
        request.method == Method::Options
            && first(request.fields, ORIGIN).is_some()
            && first(request.fields, ASKED_METHOD).is_some()
    }

    /// What an answer to this request says of it.
    pub(crate) fn say(&self, request: &Request<'_>, mut say: impl FnMut(&'static [u8], &[u8])) {
        let is_told_by_origin = self.origins.is_some() || self.credentials;
        if is_told_by_origin {
            say(b"Vary", ORIGIN);
        }
        let Some(origin) = first(request.fields, ORIGIN) else {
            // Whoever stores it may give it to any site.
            if !is_told_by_origin {
                say(b"Access-Control-Allow-Origin", b"*");
            }
            return;
        };
        if self.origins.as_ref().is_some_and(|origins| !origins.iter().any(|site| site.is_match_of_site(origin))) {
            return;
        }
        say(b"Access-Control-Allow-Origin", if is_told_by_origin { origin } else { b"*" });
        if self.credentials {
            say(b"Access-Control-Allow-Credentials", b"true");
        }
        if !CrossOrigin::is_preflight(request) {
            if !self.exposed_fields.is_empty() {
                say(b"Access-Control-Expose-Headers", self.exposed_fields.as_bytes());
            }
            return;
        }
        say(b"Access-Control-Allow-Methods", self.methods.as_bytes());
        let asked = first(request.fields, ASKED_FIELDS);
        let fields = if self.request_fields.is_empty() { asked } else { Some(self.request_fields.as_bytes()) };
        if let Some(fields) = fields {
            say(b"Access-Control-Allow-Headers", fields);
        }
        if let Some(max_age) = self.max_age {
            say(b"Access-Control-Max-Age", max_age.as_secs().to_string().as_bytes());
        }
    }
}

fn first<'a>(fields: FieldsView<'a>, name: &[u8]) -> Option<&'a [u8]> {
    fields.get_named(FieldName::classify(name), name)
}
