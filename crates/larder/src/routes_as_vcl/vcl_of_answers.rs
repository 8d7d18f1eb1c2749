//! What routes make of answers, as statements of vcl_deliver and vcl_synth, and what they answer themselves.

use proxy::settings::{FieldTemplate, OwnAnswer, RoutePattern, TemplatePiece};

use super::printed_route::{DECIDED, Needs, Printed, ROUTE, by_route, subroutine};
use super::vcl_fields::{self, Put};
use super::vcl_of_storing::selectors;
use super::vcl_statements::Statements;
use super::vcl_texts::{RequestSide, escaped, quoted, template};

const FIELDS_OF_ANSWERS: &str = "fields_of_answers";

/// Fields of all answers: vcl_deliver, and what it calls.
pub fn answers(known: &[Printed<'_>], needs: &mut Needs) -> String {
    let which = format!("req.http.{ROUTE}");
    let fields = by_route(known, &which, |printed, out| {
        let rules = &printed.route.rules;
        let (edits, pattern) = (&rules.answer_fields, printed.route.path_pattern.as_deref());
        for name in selectors(known, rules) {
            vcl_fields::vary(if name == "X-Device" { "User-Agent" } else { &name }, needs, out);
        }
        vcl_fields::remove("resp", &edits.removed, out);
        vcl_fields::put(("resp", Put::InPlace), &edits.set, pattern, needs, out);
        vcl_fields::put(("resp", Put::Beside), &edits.added, pattern, needs, out);
        vcl_fields::put(("resp", Put::IfMissing), &edits.missing, pattern, needs, out);
        if let Some(cors) = &edits.cross_origin {
            vcl_fields::cross_origin(cors, needs, out);
        }
    });
    if fields.is_empty() {
        return String::new();
    }
    let mut deliver = Statements::default();
    deliver.say(format!("call {FIELDS_OF_ANSWERS}"));
    let fields = subroutine(FIELDS_OF_ANSWERS, "Of all answers, errors and redirects too.", &fields);
    format!("{fields}\n{}", subroutine("vcl_deliver", "", &deliver))
}

/// vcl_synth: what routes answer themselves. `has_fields`: there are fields of answers.
pub fn synth(known: &[Printed<'_>], has_fields: bool, needs: &mut Needs) -> String {
    let mut all = Statements::default();
    let says = by_route(known, &format!("req.http.{ROUTE}"), |printed, out| {
        if let Some(answer) = &printed.route.rules.answer {
            own(answer, printed.route.path_pattern.as_deref(), needs, out);
        }
    });
    let mut own = says;
    let is_own = !own.is_empty();
    if has_fields {
        own.say(format!("call {FIELDS_OF_ANSWERS}"));
    }
    if is_own {
        own.say("return (deliver)");
        all.when(&format!("req.http.{DECIDED} == \"answer\""), own);
    }
    if has_fields {
        all.say(format!("call {FIELDS_OF_ANSWERS}"));
    }
    if known.iter().any(|printed| printed.route.rules.answer_fields.cross_origin.is_some()) {
        all.when_say("resp.status == 204", "return (deliver)");
    }
    subroutine("vcl_synth", "", &all)
}

fn own(answer: &OwnAnswer, pattern: Option<&RoutePattern>, needs: &mut Needs, out: &mut Statements) {
    if let Some(location) = answer.location.as_ref().and_then(|location| leads_to(location, pattern, needs)) {
        out.say(format!("set resp.http.Location = {location}"));
    }
    if let Some(seconds) = answer.retry_after {
        out.say(format!("set resp.http.Retry-After = \"{seconds}\""));
    }
    let body = answer.body.as_ref().and_then(|body| template(body, RequestSide::Client, pattern, &mut needs.modules));
    if let Some(body) = body {
        out.say(format!("set resp.http.Content-Type = {}", quoted(&answer.kind).unwrap_or_default()));
        out.say(format!("synthetic({body})"));
    } else {
        out.say("synthetic(\"\")");
    }
}

/// What the request says must not become another host: a path that begins with two slashes has one, and what stands behind a host a slash.
fn leads_to(location: &FieldTemplate, pattern: Option<&RoutePattern>, needs: &mut Needs) -> Option<String> {
    let value = template(location, RequestSide::Client, pattern, &mut needs.modules)?;
    let mut pieces = location.pieces();
    let first = match pieces.next() {
        Some(TemplatePiece::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        _ => String::new(),
    };
    let is_host_behind = matches!(pieces.next(), Some(TemplatePiece::Variable(name)) if name == "host");
    let Some((_, authority)) = first.split_once("//") else {
        return Some(format!("regsub({value}, \"^[/\\\\]+\", \"/\")"));
    };
    if authority.is_empty() || authority.contains('/') || is_host_behind {
        return Some(value);
    }
    Some(format!("regsub({value}, \"^({})(?=[^/?#])\", \"\\1/\")", escaped(first.as_bytes())))
}
