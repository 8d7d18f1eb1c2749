//! What the admin address answers to these orders, as a person reads it.

use serde_json::Value;

use crate::log_command::shown_safely::shown_safely;
use crate::quantities::{counted, show_size};

/// Of `POST /purge`.
pub fn purged(answer: &Value) -> String {
    let took = format!("in {} ms", answer["took_ms"]);
    let number = |key: &str| answer[key].as_u64();
    let is_soft = answer["soft"] == true;
    let mut lines = vec![match (answer["dry_run"] == true, number("matched")) {
        (true, Some(matched)) if is_soft => format!("would make {} stale ({took})", responses(matched)),
        (true, Some(matched)) => format!("would drop {} ({took})", responses(matched)),
        (true, None) => format!("how many cannot be said ({took})"),
        (false, None) => format!("in force ({took}); how many it hits will be seen"),
        (false, Some(_)) if is_soft => {
            format!("made {} stale {took}", responses(number("softened").unwrap_or(0)))
        }
        (false, Some(_)) => format!("dropped {} {took}", responses(number("dropped").unwrap_or(0))),
    }];
    add_samples(answer, &mut lines);
    lines.extend(in_the_fleet(answer));
    if answer["disks"] == "acknowledged" {
        lines.push("the disks acknowledge it".to_owned());
    }
    add_notes(answer, &mut lines);
    lines.join("\n") + "\n"
}

/// How far it came among the nodes of a fleet, if there is one.
fn in_the_fleet(answer: &Value) -> Vec<String> {
    let lapsed: Vec<String> = each(&answer["lapsed"]).filter_map(Value::as_str).map(shown_safely).collect();
    let number = &answer["number"];
    match answer["acknowledged"].as_str() {
        Some("applied") if lapsed.is_empty() => vec![format!("order {number} of the fleet: every node has applied it")],
        Some("applied") => vec![
            format!("order {number} of the fleet: every node that is heard of has applied it"),
            format!("note: {} said nothing for a lease, and asks the origin for what it holds", lapsed.join(", ")),
        ],
        Some("logged") => vec![format!("order {number} of the fleet: the other nodes will apply it")],
        Some("local") => vec!["on this node; the others will hear of it".to_owned()],
        _ => Vec::new(),
    }
}

/// Of `POST /refresh` and `POST /warm`.
pub fn begun(answer: &Value) -> String {
    let rate = &answer["rate"];
    let mut lines = vec![match (answer["queued"].as_u64(), answer["dry_run"] == true) {
        (Some(0), _) => "nothing of that is stored".to_owned(),
        (Some(queued), true) => format!("would fetch {}, {rate} a second", urls(queued)),
        (Some(queued), false) => format!("fetching {}, {rate} a second", urls(queued)),
        (None, _) => format!("fetching what the sitemap lists, {rate} a second"),
    }];
    if let Some(left_out) = answer["left_out"].as_u64().filter(|count| *count > 0) {
        lines.push(format!("note: {} more are not fetched: that is as many as one run takes", urls(left_out)));
    }
    add_samples(answer, &mut lines);
    add_notes(answer, &mut lines);
    lines.join("\n") + "\n"
}

/// Of `GET /refresh`, when nothing runs any more.
pub fn ended(progress: &Value) -> String {
    let (done, failed) = (progress["done"].as_u64().unwrap_or(0), progress["failed"].as_u64().unwrap_or(0));
    let failures = match failed {
        0 => "none failed".to_owned(),
        failed => format!("{failed} failed"),
    };
    let mut lines = Vec::new();
    add_notes(progress, &mut lines);
    if let Some(why) = progress["last_failure"].as_str().filter(|_| progress["stopped"].is_null()) {
        lines.push(format!("the last that failed: {}", shown_safely(why)));
    }
    lines.push(match progress["stopped"].as_str() {
        None => format!("{done} of {} asked for, {failures}", urls(progress["queued"].as_u64().unwrap_or(done))),
        Some(why) => format!("ended early after {done} of {}, {failures}: {}", progress["queued"], shown_safely(why)),
    });
    lines.join("\n") + "\n"
}

fn add_notes(answer: &Value, lines: &mut Vec<String>) {
    lines.extend(each(&answer["notes"]).filter_map(Value::as_str).map(|note| format!("note: {}", shown_safely(note))));
}

/// Of `GET /tags`.
pub fn tags(answer: &Value) -> String {
    let mut lines = vec![format!("{:>9}  {:>9}  {:13}  TAG", "RESPONSES", "URLS", "FIELD")];
    lines.extend(each(&answer["tags"]).map(|tag| {
        let text = |key: &str| tag[key].as_str().unwrap_or_default();
        let field = text("field");
        format!(
            "{:>9}  {:>9}  {field:13}  {}",
            tag["objects"].to_string(),
            tag["urls"].to_string(),
            shown_safely(text("tag"))
        )
    }));
    let shown = lines.len() - 1;
    lines.push(match answer["truncated"] == true {
        true => format!("{shown} of {} (--limit shows more)", counted(answer["total"].as_u64().unwrap_or(0), "tag")),
        false => counted(shown as u64, "tag"),
    });
    lines.join("\n") + "\n"
}

fn add_samples(answer: &Value, lines: &mut Vec<String>) {
    for sample in each(&answer["samples"]) {
        let url = sample["url"].as_str().map_or("(its URL is not known)".into(), shown_safely);
        let size = show_size(sample["bytes"].as_u64().unwrap_or(0));
        let state = if sample["fresh"] == true { "fresh" } else { "stale" };
        lines.push(format!(
            "  {} {size}, {state}, age {} s, {}: {url}",
            sample["status"],
            sample["age_s"],
            counted(sample["hits"].as_u64().unwrap_or(0), "hit")
        ));
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn responses(count: u64) -> String {
    counted(count, "response")
}

fn urls(count: u64) -> String {
    counted(count, "URL")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_done_is_said_in_words() {
        let check = |answer: Value, expect: &str| assert_eq!(purged(&answer), expect, "{answer}");
        let answer = json!({"soft": false, "dry_run": false, "matched": 12, "dropped": 12, "softened": 0, "took_ms": 1.3, "disks": "none"});
        check(answer, "dropped 12 responses in 1.3 ms\n");
        let answer = json!({"soft": true, "dry_run": false, "matched": 1, "dropped": 0, "softened": 1, "took_ms": 0.2, "disks": "acknowledged"});
        check(answer, "made 1 response stale in 0.2 ms\nthe disks acknowledge it\n");
        let sample =
            json!({"url": "http://a/\u{202e}x", "status": 200, "bytes": 2048, "age_s": 3, "hits": 4, "fresh": true});
        let answer = json!({"dry_run": true, "matched": 1, "took_ms": 0.2, "samples": [sample], "notes": ["so"]});
        let said = purged(&answer);
        assert!(
            said.starts_with("would drop 1 response (in 0.2 ms)\n  200 2 KiB, fresh, age 3 s, 4 hits: http://a/"),
            "{said}"
        );
        assert!(said.ends_with("note: so\n") && !said.contains('\u{202e}'), "{said}");
        check(json!({"matched": null, "took_ms": 0}), "in force (in 0 ms); how many it hits will be seen\n");
    }

    #[test]
    fn a_run_says_how_it_ended() {
        assert_eq!(begun(&json!({"queued": 0, "rate": 10})), "nothing of that is stored\n");
        assert_eq!(begun(&json!({"queued": 2, "rate": 10, "left_out": 0})), "fetching 2 URLs, 10 a second\n");
        assert_eq!(
            ended(&json!({"queued": 2, "done": 2, "failed": 0, "stopped": null})),
            "2 of 2 URLs asked for, none failed\n"
        );
        let failed = json!({"queued": 2, "done": 2, "failed": 1, "stopped": null, "last_failure": "http://a/: status 403", "notes": ["so"]});
        assert_eq!(
            ended(&failed),
            "note: so\nthe last that failed: http://a/: status 403\n2 of 2 URLs asked for, 1 failed\n"
        );
        let stopped = json!({"queued": 20, "done": 10, "failed": 10, "stopped": "ten failed"});
        assert_eq!(ended(&stopped), "ended early after 10 of 20, 10 failed: ten failed\n");
    }
}
