//! An explanation, as a person reads it.

use serde_json::Value;

use crate::quantities::{counted, show_size};

/// Of the JSON that the admin address answers.
pub fn of(answer: &Value) -> String {
    let mut lines = vec![format!("would be: {}: {}", text(&answer["would_be"]), text(&answer["says"]))];
    if let Some(said) = answer["answer"]["text"].as_str().filter(|said| !said.is_empty()) {
        lines.push(format!("  it says: {said}"));
    }
    if answer["route"].is_object() {
        lines.push(format!("route: {}, {}", text(&answer["route"]["name"]), text(&answer["route"]["target"])));
    } else {
        lines.push("route: none".to_owned());
    }
    if let Some(key) = answer["key"].as_str() {
        lines.push(format!("key: {key}"));
        add_stored(answer, &mut lines);
    }
    for reason in each(&answer["reasons"]) {
        let about = reason["about"].as_str().filter(|about| !about.is_empty());
        let about = about.map(|about| format!(" [{about}]")).unwrap_or_default();
        lines.push(format!("no hit because: {}{about}: {}", text(&reason["word"]), text(&reason["means"])));
        if let Some(way_out) = reason["way_out"].as_str() {
            lines.push(format!("  to change it: {way_out} ({})", text(&reason["page"])));
        }
    }
    lines.extend(each(&answer["notes"]).map(|note| format!("note: {}", text(note))));
    lines.push(format!("at: {}", text(&answer["at"])));
    lines.join("\n") + "\n"
}

fn add_stored(answer: &Value, lines: &mut Vec<String>) {
    let stored: Vec<&Value> = each(&answer["stored"]).collect();
    lines.push(match stored.len() {
        0 => "stored: nothing under this key".to_owned(),
        1 => "stored: 1 response".to_owned(),
        count => format!("stored: {count} responses"),
    });
    for (at, response) in stored.iter().enumerate() {
        lines.push(format!("  {}. {}", at + 1, response_line(response)));
        lines.push(format!("     {}", fresh_line(response)));
    }
    let chosen = &answer["chosen"];
    if chosen.is_object() {
        lines.push(format!("chosen: {}, because {}", chosen["number"], text(&chosen["because"])));
    } else if !stored.is_empty() {
        lines.push("chosen: none of them".to_owned());
    }
}

/// Status, size, what it varies on.
fn response_line(response: &Value) -> String {
    let bytes = response["body_bytes"].as_u64().unwrap_or(0);
    let mut parts = vec![format!("status {}", response["status"]), show_size(bytes)];
    if let Some(coding) = response["coding"].as_str() {
        parts.push(coding.to_owned());
    }
    if let (Some(from), Some(to)) = (response["part"][0].as_u64(), response["part"][1].as_u64()) {
        parts.push(format!("the bytes {from} to {}", to.saturating_sub(1)));
    }
    let vary: Vec<&str> = each(&response["vary"]).filter_map(Value::as_str).collect();
    if !vary.is_empty() {
        parts.push(format!("Vary: {}", vary.join(", ")));
    }
    if response["on_disk"] == true {
        parts.push("its body on a disk".to_owned());
    }
    parts.push(counted(response["hits"].as_u64().unwrap_or(0), "hit"));
    parts.join(", ")
}

/// Until when, and by what.
fn fresh_line(response: &Value) -> String {
    let (until, by) = (text(&response["fresh_until"]), text(&response["fresh_by"]));
    let fresh = match (response["always_confirmed"] == true, response["fresh"] == true) {
        (true, _) => "confirmed for each request, as it says no-cache".to_owned(),
        (false, true) => format!("fresh until {until} by {by}"),
        (false, false) => format!("not fresh since {until}: by {by}"),
    };
    let mut parts = vec![fresh, format!("age {} s", response["age_s"])];
    if let Some(ms) = response["stale_while_revalidate_ms"].as_u64().filter(|ms| *ms > 0) {
        parts.push(format!("then served stale for {} s while it is refreshed", ms / 1_000));
    }
    if let Some(ms) = response["stale_if_error_ms"].as_u64().filter(|ms| *ms > 0) {
        parts.push(format!("and for {} s if the origin fails", ms / 1_000));
    }
    parts.join("; ")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn each(values: &Value) -> impl Iterator<Item = &Value> {
    values.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_hit_is_told() {
        let told = of(&json!({
            "would_be": "hit", "says": "answered from the store",
            "route": { "name": "a.test/", "target": "origin app" },
            "key": "http://a.test/",
            "stored": [{
                "status": 200, "body_bytes": 2048, "coding": "gzip", "vary": ["accept-encoding"], "hits": 3,
                "fresh": true, "fresh_until": "Fri, 27 Nov 2026 12:00:00 GMT", "fresh_by": "Cache-Control: max-age=60",
                "age_s": 7, "stale_while_revalidate_ms": 10_000,
            }],
            "chosen": { "number": 1, "because": "it is the only one" },
            "reasons": [], "notes": [], "at": "Fri, 27 Nov 2026 11:59:07 GMT",
        }));
        assert_eq!(
            told,
            "would be: hit: answered from the store\n\
             route: a.test/, origin app\n\
             key: http://a.test/\n\
             stored: 1 response\n\
             \x20 1. status 200, 2 KiB, gzip, Vary: accept-encoding, 3 hits\n\
             \x20    fresh until Fri, 27 Nov 2026 12:00:00 GMT by Cache-Control: max-age=60; age 7 s; \
             then served stale for 10 s while it is refreshed\n\
             chosen: 1, because it is the only one\n\
             at: Fri, 27 Nov 2026 11:59:07 GMT\n"
        );
    }

    #[test]
    fn what_is_no_hit_is_told_with_the_way_out() {
        let told = of(&json!({
            "would_be": "pass", "says": "the origin is asked past the store", "route": null, "key": null,
            "reasons": [{
                "word": "cookie", "means": "A cookie.", "way_out": "Strip it.", "page": "docs/routes.md", "about": "PHPSESSID",
            }],
            "notes": ["it is so"], "at": "x",
        }));
        assert_eq!(
            told,
            "would be: pass: the origin is asked past the store\n\
             route: none\n\
             no hit because: cookie [PHPSESSID]: A cookie.\n\
             \x20 to change it: Strip it. (docs/routes.md)\n\
             note: it is so\n\
             at: x\n"
        );
    }
}
