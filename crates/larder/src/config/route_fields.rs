//! Which fields a route takes out of requests and answers, or puts into them: `request_headers`, `response_headers`, `cors`,
//! `security_headers`, `request_id`.

use std::time::Duration;

use proxy::settings::{AnswerFields, CrossOrigin, FieldEdits, FieldLine, FieldTemplate, NamePattern, VARIABLES};

use super::complaint::Complaint;
use super::nearest::nearest;
use super::section::{Node, Section, as_switch, is_text, parsed, seconds, switch, text};

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
    /// `Some(None)`: it gets no number, whatever was said before.
    request_id: Option<Option<FieldLine>>,
}

/// About answers.
#[derive(Clone, Debug, Default)]
pub struct AnswerFieldWords {
    removed: Vec<NamePattern>,
    set: Vec<FieldLine>,
    added: Vec<FieldLine>,
    missing: Vec<FieldLine>,
    /// `security_headers = false`: none of them, whatever was said before.
    without_security: bool,
    /// `request_id = false`.
    without_request_id: bool,
}

impl FieldWords {
    /// Said after what the edits say already, it stands in its place where both are about one field.
    pub fn add_to(&self, edits: &mut FieldEdits) {
        take_back(&mut edits.set, &self.removed);
        take_back(&mut edits.added, &self.removed);
        take_back_named(&mut edits.added, &self.set);
        edits.removed.extend_from_slice(&self.removed);
        replace(&mut edits.set, &self.set);
        edits.added.extend_from_slice(&self.added);
        edits.request_id = self.request_id.clone().unwrap_or(edits.request_id.take());
    }
}

impl AnswerFieldWords {
    /// `on_success`: which of them are said of no error.
    fn keep_to_success(&mut self, table: &mut Section<'_>) {
        let lines = [&mut self.set, &mut self.added, &mut self.missing];
        let mut lines: Vec<&mut FieldLine> = lines.into_iter().flatten().collect();
        let read = |node: Node<'_>| {
            let name = text(node)?;
            let mut named = lines.iter_mut().filter(|line| line.name().eq_ignore_ascii_case(name)).peekable();
            if named.peek().is_none() {
                let why = format!("`{name}` is neither in set nor in add nor in default");
                return Err(Complaint::new(node.span(), why, "nothing says it here")
                    .suggest("name fields here that set, add or default of this table have".to_owned()));
            }
            named.for_each(|line| line.keep_to_success());
            Ok(())
        };
        table.read_list("on_success", read);
    }

    pub fn add_to(&self, edits: &mut AnswerFields) {
        for lines in [&mut edits.set, &mut edits.added, &mut edits.missing] {
            take_back(lines, &self.removed);
        }
        take_back_named(&mut edits.added, &self.set);
        if self.without_security {
            edits.missing.retain(|line| !security_lines().any(|usual| is_same(line, &usual)));
        }
        if self.without_request_id {
            edits.set.retain(|line| !is_same(line, &numbered(line.name())));
        }
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

/// Lines that were said before of fields which are now to go.
fn take_back(lines: &mut Vec<FieldLine>, removed: &[NamePattern]) {
    lines.retain(|line| !removed.iter().any(|pattern| pattern.is_match_of_field(line.name().as_bytes())));
}

/// The same of fields that now have another value.
fn take_back_named(lines: &mut Vec<FieldLine>, set: &[FieldLine]) {
    lines.retain(|line| !set.iter().any(|new| new.name().eq_ignore_ascii_case(line.name())));
}

fn is_same(one: &FieldLine, other: &FieldLine) -> bool {
    one.name().eq_ignore_ascii_case(other.name()) && one.value() == other.value()
}

fn security_lines() -> impl Iterator<Item = FieldLine> {
    SECURITY.iter().map(|(name, value)| FieldLine::new(name, FieldTemplate::of_text(value)))
}

/// The field of an answer that says the number of its request.
fn numbered(name: &str) -> FieldLine {
    let variable = format!("${{http_{}}}", name.to_ascii_lowercase().replace('-', "_"));
    FieldLine::new(name, FieldTemplate::parse(&variable).unwrap_or_else(|_| FieldTemplate::of_text("")))
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
    let explain = |why: String| {
        let name = why.split_once('$').and_then(|(_, rest)| rest.strip_suffix('`')).unwrap_or_default();
        let suggestion = match nearest(name, VARIABLES) {
            Some(meant) => format!("did you mean ${meant}? For a dollar write $$"),
            None => "write $$ for a dollar".to_owned(),
        };
        Complaint::new(node.span(), why, "no such variable").suggest(suggestion)
    };
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
            let is_host =
                written.contains('.') && written.bytes().all(|b| b.is_ascii_alphanumeric() || b".-:".contains(&b));
            Err(complaint.suggest(match is_host {
                true => format!("write \"https://{written}$request_uri\", or without $request_uri for its first page"),
                false => "write a whole URL, \"https://www.example.org$request_uri\", or a path".to_owned(),
            }))
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
pub fn of_requests(section: &mut Section<'_>, request_id: &RequestId) -> FieldWords {
    let mut words = FieldWords::default();
    if let Some(mut table) = section.section("request_headers") {
        words.set = lines(&mut table, "set", &NOT_OF_REQUESTS, template);
        words.added = lines(&mut table, "add", &not_added(), template);
        words.removed = removed(&mut table, &NOT_OF_REQUESTS);
        table.end();
    }
    words.request_id = match request_id {
        RequestId::Unsaid => None,
        RequestId::Off => Some(None),
        RequestId::Named(name) => Some(Some(FieldLine::new(name, random_number()))),
    };
    words
}

fn not_added() -> Vec<&'static str> {
    NOT_OF_REQUESTS.into_iter().chain(CLIENT_ADDRESS).collect()
}

fn random_number() -> FieldTemplate {
    FieldTemplate::parse("$request_id").expect("a variable that there is")
}

pub fn of_answers(section: &mut Section<'_>, request_id: &RequestId) -> AnswerFieldWords {
    let mut words = AnswerFieldWords::default();
    if let Some(mut table) = section.section("response_headers") {
        words.set = lines(&mut table, "set", &NOT_OF_ANSWERS, value);
        words.added = lines(&mut table, "add", &NOT_OF_ANSWERS, value);
        words.missing = lines(&mut table, "default", &NOT_OF_ANSWERS, value);
        words.removed = removed(&mut table, &NOT_OF_ANSWERS);
        words.keep_to_success(&mut table);
        table.end();
    }
    let security = section.read("security_headers", switch);
    words.without_security = security == Some(false);
    if security == Some(true) {
        replace(&mut words.missing, &security_lines().collect::<Vec<_>>());
    }
    words.without_request_id = matches!(request_id, RequestId::Off);
    if let RequestId::Named(name) = request_id {
        replace(&mut words.set, &[numbered(name)]);
    }
    words
}

/// `request_id`.
pub enum RequestId {
    Unsaid,
    Off,
    /// In the field of this name.
    Named(String),
}

/// `request_id = true`, or the name of the field.
pub fn request_id(section: &mut Section<'_>) -> RequestId {
    let Some(node) = section.get("request_id") else { return RequestId::Unsaid };
    let name = match as_switch(node) {
        Some(false) => return RequestId::Off,
        Some(true) => Some(REQUEST_ID.to_owned()),
        None => section.read("request_id", |node| {
            parsed(node, "name of a field", "true, or a name such as \"X-Request-Id\"", |name| {
                is_name(name).then(|| name.to_owned())
            })
        }),
    };
    name.map_or(RequestId::Unsaid, RequestId::Named)
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
        max_age: table.read("max_age", seconds).map(Duration::from_secs),
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
    parsed(
        node,
        "site",
        "SCHEME://HOST[:PORT], where a * stands for letters, digits, dashes and dots, such as https://*.example.org",
        |site| {
            let host = site.split_once("://").map(|(_, host)| host)?;
            (!host.is_empty() && !host.contains(['/', ' ', '?', '#'])).then(|| NamePattern::new(site))
        },
    )
    .map_err(|complaint| match text(node) {
        Ok("*") => complaint.suggest("write cors = true for every site".to_owned()),
        _ => complaint,
    })
}

#[cfg(test)]
mod tests {
    use proxy::settings::{FieldLine, RouteRules};

    use super::super::read as read_config;

    /// What holds of a route of which this is said, and this of all.
    fn rules(all: &str, route: &str) -> RouteRules {
        let text = format!("[origin.a]\nurls = \"http://a\"\n[policy]\n{all}\n[[route]]\n{route}\n");
        let plan = read_config(&text).unwrap_or_else(|wrong| panic!("{text}: {wrong:?}"));
        (*plan.settings.routes[0].rules).clone()
    }

    fn names(lines: &[FieldLine]) -> Vec<&str> {
        lines.iter().map(FieldLine::name).collect()
    }

    #[test]
    fn fields_that_are_kept_to_success_are_named_where_they_are_said() {
        let said = "set = { X-A = \"1\", X-B = \"1\" }, add = { X-C = \"1\" }, default = { X-D = \"1\" }";
        let fields =
            rules("", &format!("response_headers = {{ {said}, on_success = [\"x-a\", \"X-D\"] }}")).answer_fields;
        let kept = |lines: &[FieldLine]| lines.iter().map(FieldLine::is_kept_to_success).collect::<Vec<_>>();
        assert_eq!(
            (kept(&fields.set), kept(&fields.added), kept(&fields.missing)),
            (vec![true, false], vec![false], vec![true])
        );
        let text = format!(
            "[origin.a]\nurls = \"http://a\"\n[[route]]\nresponse_headers = {{ {said}, on_success = [\"X-E\"] }}\n"
        );
        let wrong = format!("{:?}", read_config(&text).expect_err("nothing says X-E"));
        assert!(wrong.contains("`X-E` is neither in set nor in add nor in default"), "{wrong}");
    }

    #[test]
    fn a_route_takes_back_what_is_said_of_all() {
        let all = "request_headers = { set = { X-A = \"1\", X-B = \"1\" }, add = { X-C = \"1\", X-D = \"1\" } }\n\
                   response_headers = { set = { X-A = \"1\" }, add = { X-C = \"1\", X-D = \"1\" }, default = { X-E = \"1\", X-F = \"1\" } }";
        let fields = rules(all, "").request_fields;
        assert_eq!((names(&fields.set), names(&fields.added)), (vec!["X-A", "X-B"], vec!["X-C", "X-D"]));
        let removed = "{ remove = [\"x-a\", \"X-C*\", \"X-E\"], set = { X-D = \"2\" } }";
        let route = rules(all, &format!("request_headers = {removed}\nresponse_headers = {removed}"));
        assert_eq!(
            (names(&route.request_fields.set), names(&route.request_fields.added)),
            (vec!["X-B", "X-D"], vec![]),
            "what it removes does not come, and what it sets comes once"
        );
        let answers = route.answer_fields;
        assert_eq!(
            (names(&answers.set), names(&answers.added), names(&answers.missing)),
            (vec!["X-D"], vec![], vec!["X-F"])
        );
        // And what it sets stands over what is removed of all.
        let set = rules("request_headers = { remove = [\"X-*\"] }", "request_headers = { set = { X-A = \"1\" } }");
        assert_eq!(names(&set.request_fields.set), ["X-A"]);
        // Within one table the others come after what is removed.
        let both =
            rules("", "response_headers = { remove = [\"Server\"], default = { Server = \"site\" } }").answer_fields;
        assert_eq!(names(&both.missing), ["Server"]);
    }

    #[test]
    fn a_route_switches_off_what_is_on_for_all() {
        let all = "security_headers = true\nrequest_id = true\nmaintenance = true\n\
                   response_headers = { default = { X-Frame-Options = \"DENY\" } }";
        let on = rules(all, "");
        assert!(on.answer.is_some() && on.request_fields.request_id.is_some());
        assert_eq!((on.answer_fields.missing.len(), on.answer_fields.set.len()), (3, 1));
        let off = rules(all, "security_headers = false\nrequest_id = false\nmaintenance = false");
        assert!(off.answer.is_none() && off.request_fields.request_id.is_none() && off.answer_fields.set.is_empty());
        let left = names(&off.answer_fields.missing);
        assert!(!left.contains(&"Referrer-Policy") && !left.contains(&"X-Content-Type-Options"), "{left:?}");
        let page = rules("respond = \"hello\"", "maintenance = false").answer;
        assert!(page.is_some(), "what larder answers otherwise is no maintenance");
    }
}
