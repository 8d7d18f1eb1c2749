//! What a route answers by itself: `redirect`, `respond`, `maintenance`.

use std::ops::RangeInclusive;
use std::sync::Arc;

use proxy::settings::{FieldTemplate, OwnAnswer};
use toml::de::DeValue;

use super::complaint::Complaint;
use super::route_fields;
use super::section::{Node, Section, as_switch, is_text, network, parsed, seconds, text, whole};

const PLAIN: &str = "text/plain; charset=utf-8";
const MOVED: u16 = 301;
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];
/// Of answers; what comes before them (100 to 199) is none.
const STATUSES: RangeInclusive<u16> = 200..=599;
const UNAVAILABLE: u16 = 503;
const UNDER_REPAIR: &str = "This site is being worked on. Please come back in a while.\n";

/// The one of them that is said.
pub fn read(section: &mut Section<'_>) -> Option<OwnAnswer> {
    let all = [redirect(section), respond(section), maintenance(section)];
    let mut said = all.into_iter().flatten();
    let first = said.next()?;
    if said.next().is_some() {
        let what = "a route has one of redirect, respond and maintenance";
        section.complaints().add(Complaint::new(section.span(), what, "two of them"));
    }
    Some(first)
}

/// `redirect = "URL"`, or `{ to, status }`.
fn redirect(section: &mut Section<'_>) -> Option<OwnAnswer> {
    let node = section.get("redirect")?;
    if let Some(written) = number(node) {
        let status = written.parse().ok().filter(|status| REDIRECTS.contains(status)).unwrap_or(MOVED);
        let complaint = Complaint::new(node.span(), "`redirect` does not say where to", "a status alone");
        let write = format!("write redirect = {{ to = \"https://www.example.org$request_uri\", status = {status} }}");
        section.complaints().add(complaint.of_key("redirect").suggest(write));
        return None;
    }
    let (location, status) = if is_text(node) {
        (section.read("redirect", route_fields::location)?, MOVED)
    } else {
        let mut table = section.section("redirect")?;
        table.require("to", "write to = \"https://www.example.org$request_uri\"");
        let to = table.read("to", route_fields::location);
        let status = table.read("status", |node| {
            let status = whole::<u16>(node)?;
            REDIRECTS.contains(&status).then_some(status).ok_or_else(|| {
                Complaint::new(node.span(), format!("{status} is no redirect"), "301, 302, 303, 307 or 308")
            })
        });
        table.end();
        (to?, status.unwrap_or(MOVED))
    };
    Some(OwnAnswer { status, location: Some(location), ..plain(None) })
}

/// As it is written.
fn number<'a>(node: Node<'a>) -> Option<&'a str> {
    match node.get_ref() {
        DeValue::Integer(number) => Some(number.as_str()),
        _ => None,
    }
}

/// `respond = "TEXT"`, or `{ status, body, type }`.
fn respond(section: &mut Section<'_>) -> Option<OwnAnswer> {
    let node = section.get("respond")?;
    if is_text(node) {
        return section.read("respond", body).map(|body| plain(Some(body)));
    }
    if let Some(status) = number(node) {
        let complaint = Complaint::new(node.span(), "`respond` is a text or a table", "a status alone");
        let is_status = |status: &u16| STATUSES.contains(status);
        section.complaints().add(complaint.of_key("respond").suggest(match status.parse().ok().filter(is_status) {
            Some(status) => format!("write respond = {{ status = {status} }}"),
            None => "write respond = { status = 404 }: a status is 200 to 599".to_owned(),
        }));
        return None;
    }
    let mut table = section.section("respond")?;
    let status = table.read("status", |node| {
        let status = whole::<u16>(node)?;
        STATUSES.contains(&status).then_some(status).ok_or_else(|| {
            Complaint::new(node.span(), format!("{status} is no status of an answer"), "must be 200 to 599")
        })
    });
    let answer = OwnAnswer {
        status: status.unwrap_or(200),
        kind: table.read("type", kind).unwrap_or_else(|| PLAIN.into()),
        ..plain(table.read("body", body))
    };
    table.end();
    Some(answer)
}

/// `maintenance = true`, or `{ body, type, retry_after, allow }`.
fn maintenance(section: &mut Section<'_>) -> Option<OwnAnswer> {
    let node = section.get("maintenance")?;
    let usual = OwnAnswer { status: UNAVAILABLE, ..plain(Some(FieldTemplate::of_text(UNDER_REPAIR))) };
    if let Some(is_on) = as_switch(node) {
        return is_on.then_some(usual);
    }
    let mut table = section.section("maintenance")?;
    let answer = OwnAnswer {
        kind: table.read("type", kind).unwrap_or(usual.kind),
        body: table.read("body", body).or(usual.body),
        retry_after: table.read("retry_after", seconds).map(|time| u32::try_from(time).unwrap_or(u32::MAX)),
        but_for: table.read_list("allow", network).unwrap_or_default(),
        ..usual
    };
    table.end();
    Some(answer)
}

/// Is it what `maintenance` says, or says the same?
pub fn is_maintenance(answer: &OwnAnswer) -> bool {
    answer.status == UNAVAILABLE
}

fn plain(body: Option<FieldTemplate>) -> OwnAnswer {
    OwnAnswer { status: 200, location: None, body, kind: PLAIN.into(), retry_after: None, but_for: Vec::new() }
}

/// Of as many lines as it likes.
fn body(node: Node<'_>) -> Result<FieldTemplate, Complaint> {
    FieldTemplate::parse(text(node)?)
        .map_err(|why| Complaint::new(node.span(), why, "no such variable").suggest("write $$ for a dollar"))
}

fn kind(node: Node<'_>) -> Result<Arc<str>, Complaint> {
    parsed(node, "media type", "such as text/html; charset=utf-8", |written| {
        (written.contains('/') && written.bytes().all(|byte| (b' '..=b'~').contains(&byte))).then(|| written.into())
    })
}
