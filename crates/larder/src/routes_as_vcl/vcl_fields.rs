//! Fields that a route takes out of requests and answers or puts into them, as statements.

use proxy::settings::{CrossOrigin, FieldLine, NamePattern, RoutePattern, SUCCESSES};

use super::printed_route::Needs;
use super::vcl_statements::Statements;
use super::vcl_texts::{self, RequestSide, alternatives, plain_name, quoted, template};

/// Takes fields out: those that are named without a star.
pub fn remove(of: &str, names: &[NamePattern], out: &mut Statements) {
    names.iter().filter_map(plain_name).for_each(|name| out.say(format!("unset {of}.http.{name}")));
}

/// Which way a field is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    InPlace,
    Beside,
    IfMissing,
}

/// Puts fields in.
pub fn put(
    (of, put): (&str, Put),
    lines: &[FieldLine],
    pattern: Option<&RoutePattern>,
    needs: &mut Needs,
    out: &mut Statements,
) {
    for line in lines.iter().filter(|line| vcl_texts::is_field(line.name())) {
        let mut said = Statements::default();
        put_line((of, &put), line, pattern, needs, &mut said);
        match line.is_kept_to_success() {
            true if !said.is_empty() => out.when(&on_success(), said),
            _ => out.append(said),
        }
    }
}

/// Is an answer no error?
fn on_success() -> String {
    SUCCESSES.map(|status| format!("resp.status == {status}")).join(" || ")
}

fn put_line(
    (of, put): (&str, &Put),
    line: &FieldLine,
    pattern: Option<&RoutePattern>,
    needs: &mut Needs,
    out: &mut Statements,
) {
    let (name, may_be_empty) = (line.name(), line.value().pieces().count() != 1);
    let Some(value) = template(line.value(), RequestSide::Client, pattern, &mut needs.modules) else { return };
    let set = format!("set {of}.http.{name} = {value}");
    match put {
        Put::InPlace => {
            out.say(set);
            if may_be_empty || value.starts_with("req.") || value.starts_with("regsub") {
                out.when_say(&format!("{of}.http.{name} == \"\""), format!("unset {of}.http.{name}"));
            }
        }
        Put::Beside => {
            needs.modules.insert("header");
            out.say(format!("header.append({of}.http.{name}, {value})"));
        }
        Put::IfMissing => out.when_say(&format!("!{of}.http.{name}"), set),
    }
}

/// Says that an answer is another for each value of a field.
pub fn vary(name: &str, needs: &mut Needs, out: &mut Statements) {
    needs.modules.insert("header");
    let listed = format!("resp.http.Vary !~ \"(?i)(?:^|[\\s,]){name}(?:[\\s,]|$)\"");
    out.when_say(&listed, format!("header.append(resp.http.Vary, \"{name}\")"));
}

/// What an answer says to scripts of other sites.
pub fn cross_origin(cors: &CrossOrigin, needs: &mut Needs, out: &mut Statements) {
    for name in ["Origin", "Credentials", "Methods", "Headers"] {
        out.say(format!("unset resp.http.Access-Control-Allow-{name}"));
    }
    out.say("unset resp.http.Access-Control-Expose-Headers");
    out.say("unset resp.http.Access-Control-Max-Age");
    let is_told_by_origin = cors.origins.is_some() || cors.credentials;
    if is_told_by_origin {
        vary("Origin", needs, out);
    }
    let mut allowed = Statements::default();
    let who = if is_told_by_origin { "req.http.Origin" } else { "\"*\"" };
    allowed.say(format!("set resp.http.Access-Control-Allow-Origin = {who}"));
    if cors.credentials {
        allowed.say("set resp.http.Access-Control-Allow-Credentials = \"true\"");
    }
    allowed.when(PREFLIGHT, of_preflight(cors));
    if !cors.exposed_fields.is_empty() {
        let mut exposed = Statements::default();
        exposed.say(format!("set resp.http.Access-Control-Expose-Headers = \"{}\"", cors.exposed_fields));
        allowed.otherwise(exposed);
    }
    let is_one = match &cors.origins {
        None => "req.http.Origin".to_owned(),
        Some(origins) => {
            let expression = quoted(&format!("^(?:{})$", alternatives(origins, "[A-Za-z0-9.-]*"))).unwrap_or_default();
            format!("req.http.Origin ~ {expression}")
        }
    };
    out.when(&is_one, allowed);
    if !is_told_by_origin {
        let mut all = Statements::default();
        all.say("set resp.http.Access-Control-Allow-Origin = \"*\"");
        out.otherwise(all);
    }
}

/// A browser asks beforehand whether a script may ask.
pub const PREFLIGHT: &str = "req.method == \"OPTIONS\" && req.http.Origin && req.http.Access-Control-Request-Method";

fn of_preflight(cors: &CrossOrigin) -> Statements {
    let mut says = Statements::default();
    says.say(format!("set resp.http.Access-Control-Allow-Methods = \"{}\"", cors.methods));
    if cors.request_fields.is_empty() {
        let asked = "req.http.Access-Control-Request-Headers";
        says.when_say(asked, format!("set resp.http.Access-Control-Allow-Headers = {asked}"));
    } else {
        says.say(format!("set resp.http.Access-Control-Allow-Headers = \"{}\"", cors.request_fields));
    }
    if let Some(max_age) = cors.max_age {
        says.say(format!("set resp.http.Access-Control-Max-Age = \"{}\"", max_age.as_secs()));
    }
    says
}
