//! Which fields a route takes out of requests and answers, or puts into them: `request_headers`, `response_headers`, `cors`,
//! `security_headers`, `request_id`.

use proxy::settings::{AnswerFields, CrossOrigin, FieldEdits, FieldLine, FieldTemplate, NamePattern};

use super::complaint::Complaint;
use super::section::{Node, Section, as_switch, duration, is_text, parsed, switch, text};

/// What frames a message or belongs to one connection is larder's to write; conditions and ranges say what is asked for.
const NOT_OF_REQUESTS: [&str; 17] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];
const NOT_OF_ANSWERS: [&str; 10] = [
    "age",
    "connection",
    "content-length",
    "content-range",
    "date",
    "keep-alive",
    "proxy-connection",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// By which an origin is told who asks; what a client or a route says of it is not sent on.
pub const SENT_BY_US: [&str; 5] =
    ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-port", "x-forwarded-proto"];

/// The same, where a route says it: larder sends none of these by itself, and no client's word stands beside the route's.
const CLIENT_ADDRESS: [&str; 3] = ["x-real-ip", "true-client-ip", "x-client-ip"];

/// Does a field of this name say a client's address? A route may set it, and add none.
pub fn says_client_address(name: &str) -> bool {
    CLIENT_ADDRESS.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// What `security_headers = true` says, where an answer does not: no guessing of types, no frames of other sites, no paths to them.
const SECURITY: [(&str, &str); 3] = [
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "SAMEORIGIN"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
];
const REQUEST_ID: &str = "X-Request-Id";

/// About requests.
#[derive(Clone, Debug, Default)]
pub struct FieldWords {
    removed: Vec<NamePattern>,
    set: Vec<FieldLine>,
    added: Vec<FieldLine>,
    request_id: Option<FieldLine>,
}

/// About answers.
#[derive(Clone, Debug, Default)]
pub struct AnswerFieldWords {
    removed: Vec<NamePattern>,
    set: Vec<FieldLine>,
    added: Vec<FieldLine>,
    missing: Vec<FieldLine>,
}

impl FieldWords {
    pub fn add_to(&self, edits: &mut FieldEdits) {
        edits.removed.extend_from_slice(&self.removed);
        replace(&mut edits.set, &self.set);
        edits.added.extend_from_slice(&self.added);
        edits.request_id = self.request_id.clone().or(edits.request_id.take());
    }
}

impl AnswerFieldWords {
    pub fn add_to(&self, edits: &mut AnswerFields) {
        edits.removed.extend_from_slice(&self.removed);
        replace(&mut edits.set, &self.set);
        edits.added.extend_from_slice(&self.added);
        replace(&mut edits.missing, &self.missing);
        // What comes anyway is never missing.
        edits.missing.retain(|line| {
            let mut coming = edits.set.iter().chain(&edits.added);
            !coming.any(|other| other.name().eq_ignore_ascii_case(line.name()))
        });
    }
}

/// A value of the same name is said once.
fn replace(lines: &mut Vec<FieldLine>, by: &[FieldLine]) {
    lines.retain(|line| !by.iter().any(|new| new.name().eq_ignore_ascii_case(line.name())));
    lines.extend_from_slice(by);
}

pub fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// The name of a field that may be put into requests.
pub fn name_for_requests<'a>(node: Node<'a>) -> Result<&'a str, Complaint> {
    let name = text(node)?;
    match check(name, &NOT_OF_REQUESTS) {
        None => Ok(name),
        Some(why) => Err(Complaint::new(node.span(), why, "not this one")),
    }
}

/// A value with variables.
pub fn template(node: Node<'_>) -> Result<FieldTemplate, Complaint> {
    let written = text(node)?;
    if written.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(Complaint::new(node.span(), "a value is one line", "has a line end or a control in it"));
    }
    let explain = |why| Complaint::new(node.span(), why, "no such variable").suggest("write $$ for a dollar");
    FieldTemplate::parse(written).map_err(explain)
}

/// A URL to lead somebody to.
pub fn location(node: Node<'_>) -> Result<FieldTemplate, Complaint> {
    let written = text(node)?;
    let is_url = written.starts_with('/') || written.starts_with('$') || written.contains("://");
    match is_url && !written.contains([' ', '"']) {
        true => template(node),
        false => {
            let complaint = Complaint::new(node.span(), format!("`{written}` is no URL"), "nobody can be sent there");
            Err(complaint.suggest("write a whole URL, \"https://www.example.org$request_uri\", or a path"))
        }
    }
}

/// A value that the pattern of a path has no part in.
fn value(node: Node<'_>) -> Result<FieldTemplate, Complaint> {
    let template = template(node)?;
    match template.has_groups() || template.has_user() {
        true => Err(Complaint::new(
            node.span(),
            "$0 to $9 and $remote_user mean nothing in a field of an answer",
            "nobody knows them there",
        )),
        false => Ok(template),
    }
}

/// `request_id`: the field in which each request gets a number.
pub fn of_requests(section: &mut Section<'_>, request_id: Option<&str>) -> FieldWords {
    let mut words = FieldWords::default();
    if let Some(mut table) = section.section("request_headers") {
        words.set = lines(&mut table, "set", &NOT_OF_REQUESTS, template);
        words.added = lines(&mut table, "add", &not_added(), template);
        words.removed = removed(&mut table, &NOT_OF_REQUESTS);
        table.end();
    }
    words.request_id = request_id.map(|name| FieldLine::new(name, random_number()));
    words
}

fn not_added() -> Vec<&'static str> {
    NOT_OF_REQUESTS.into_iter().chain(CLIENT_ADDRESS).collect()
}

fn random_number() -> FieldTemplate {
    FieldTemplate::parse("$request_id").expect("a variable that there is")
}

pub fn of_answers(section: &mut Section<'_>, request_id: Option<&str>) -> AnswerFieldWords {
    let mut words = AnswerFieldWords::default();
    if let Some(mut table) = section.section("response_headers") {
        words.set = lines(&mut table, "set", &NOT_OF_ANSWERS, value);
        words.added = lines(&mut table, "add", &NOT_OF_ANSWERS, value);
        words.missing = lines(&mut table, "default", &NOT_OF_ANSWERS, value);
        words.removed = removed(&mut table, &NOT_OF_ANSWERS);
        table.end();
    }
    if section.read("security_headers", switch) == Some(true) {
        let usual = SECURITY.iter().map(|(name, value)| FieldLine::new(name, FieldTemplate::of_text(value)));
        replace(&mut words.missing, &usual.collect::<Vec<_>>());
    }
    if let Some(name) = request_id {
        let variable = format!("${{http_{}}}", name.to_ascii_lowercase().replace('-', "_"));
        let value = FieldTemplate::parse(&variable).expect("a variable that there is");
        replace(&mut words.set, &[FieldLine::new(name, value)]);
    }
    words
}

/// `request_id = true`, or the name of the field.
pub fn request_id(section: &mut Section<'_>) -> Option<String> {
    let node = section.get("request_id")?;
    match as_switch(node) {
        Some(is_on) => is_on.then(|| REQUEST_ID.to_owned()),
        None => section.read("request_id", |node| {
            parsed(node, "name of a field", "true, or a name such as \"X-Request-Id\"", |name| {
                is_name(name).then(|| name.to_owned())
            })
        }),
    }
}

fn lines(
    table: &mut Section<'_>,
    key: &'static str,
    not_these: &[&str],
    read: impl Fn(Node<'_>) -> Result<FieldTemplate, Complaint>,
) -> Vec<FieldLine> {
    let Some(fields) = table.section(key) else { return Vec::new() };
    let mut lines = Vec::new();
    for (name, span, node) in fields.entries() {
        match check(name, not_these) {
            None => match read(node) {
                Ok(value) => lines.push(FieldLine::new(name, value)),
                Err(complaint) => fields.complaints().add(complaint),
            },
            Some(why) => fields.complaints().add(Complaint::new(span, why, "not this one")),
        }
    }
    lines
}

fn removed(table: &mut Section<'_>, not_these: &[&str]) -> Vec<NamePattern> {
    let read = |node: Node<'_>| {
        let name = text(node)?.to_ascii_lowercase();
        match check(&name.replace('*', "x"), &[]).or_else(|| check(&name, not_these)) {
            Some(why) => Err(Complaint::new(node.span(), why, "not this one")),
            None => Ok(NamePattern::new(&name)),
        }
    };
    table.read_list("remove", read).unwrap_or_default()
}

/// May a route set this field in requests?
pub fn may_be_set_in_requests(name: &str) -> bool {
    check(name, &NOT_OF_REQUESTS).is_none()
}

/// The same in answers.
pub fn may_be_set_in_answers(name: &str) -> bool {
    check(name, &NOT_OF_ANSWERS).is_none()
}

/// Why a field of this name cannot be edited.
fn check(name: &str, not_these: &[&str]) -> Option<String> {
    if !is_name(name) {
        return Some(format!("`{name}` is no name of a field"));
    }
    let is_it = |other: &&str| other.eq_ignore_ascii_case(name);
    match not_these.iter().find(|other| is_it(other)) {
        _ if not_these.contains(&"host") && SENT_BY_US.iter().any(is_it) => Some(
            "origins are told who asks by X-Forwarded-For, X-Forwarded-Proto and Forwarded, which are larder's own"
                .to_owned(),
        ),
        Some(name) if says_client_address(name) => Some(format!(
            "write set = {{ {name} = \"$remote_addr\" }}: no other word on a client's address stands beside it"
        )),
        Some(&"host") => Some("the Host that an origin gets is `host` of its [origin.NAME]".to_owned()),
        Some(_) => Some(format!("`{name}` is larder's own to write")),
        None => None,
    }
}

/// `cors = true`, an origin, or a table. `false` says that nothing is said, whatever holds for all routes.
pub fn cross_origin(section: &mut Section<'_>) -> Option<Option<CrossOrigin>> {
    let node = section.get("cors")?;
    if let Some(is_on) = as_switch(node) {
        return Some(is_on.then(everybody));
    }
    if is_text(node) {
        let origin = section.read("cors", site)?;
        return Some(Some(CrossOrigin { origins: Some(vec![origin]), ..everybody() }));
    }
    let mut table = section.section("cors")?;
    let usual = everybody();
    let origins = table.read_list("origins", |node| match text(node) {
        Ok("*") => Ok(None),
        _ => site(node).map(Some),
    });
    let list = |table: &mut Section<'_>, key| {
        let names = table.read_list(key, |node| {
            parsed(node, "name", "a token such as X-Token or PUT", |name| is_name(name).then(|| name.to_owned()))
        });
        names.map(|names| names.join(", ").into())
    };
    let cors = CrossOrigin {
        origins: origins.and_then(|origins| origins.into_iter().collect()),
        methods: list(&mut table, "methods").unwrap_or(usual.methods),
        request_fields: list(&mut table, "headers").unwrap_or(usual.request_fields),
        exposed_fields: list(&mut table, "expose").unwrap_or(usual.exposed_fields),
        credentials: table.read("credentials", switch).unwrap_or(false),
        max_age: table.read("max_age", duration),
    };
    if let (true, None, Some(node)) = (cors.credentials, &cors.origins, table.get("credentials")) {
        let what = "credentials for every site would let any site act for its visitors";
        let complaint = Complaint::new(node.span(), what, "no site is named");
        table.complaints().add(complaint.suggest("add origins = [\"https://app.example.org\"]"));
    }
    table.end();
    Some(Some(cors))
}

/// Any site may read, none with the cookies of its visitors.
fn everybody() -> CrossOrigin {
    CrossOrigin {
        origins: None,
        methods: "GET, HEAD, POST, PUT, PATCH, DELETE".into(),
        request_fields: "".into(),
        exposed_fields: "".into(),
        credentials: false,
        max_age: None,
    }
}

fn site(node: Node<'_>) -> Result<NamePattern, Complaint> {
    parsed(node, "site", "SCHEME://HOST[:PORT], where a * stands for any text, such as https://*.example.org", |site| {
        let host = site.split_once("://").map(|(_, host)| host)?;
        (!host.is_empty() && !host.contains(['/', ' ', '?', '#'])).then(|| NamePattern::new(site))
    })
}
