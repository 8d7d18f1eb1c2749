//! The expressions of `ban(…)`, as far as they are known before the program runs.
//!
//! A ban is words parted by blanks: field, operator, value, and `&&` between conditions. Nothing is quoted, so a missing
//! blank makes the whole ban fail, at run time and silently in Varnish.

/// What can be said of a ban.
#[derive(Debug, Default, PartialEq)]
pub struct BanVerdict {
    /// Why it can never be added.
    pub fault: Option<String>,
    /// It has a condition on the request.
    pub on_request: bool,
}

/// Stands for what is known only at run time.
const UNKNOWN: char = '\u{1}';

/// Checks a ban of these parts in a row; `None` is one that is known only at run time, and may hold blanks.
pub fn check(parts: &[Option<&[u8]>]) -> BanVerdict {
    let mut text = String::new();
    for part in parts {
        match part {
            Some(part) => text.push_str(&String::from_utf8_lossy(part)),
            None => text.push(UNKNOWN),
        }
    }
    // With a whole condition unknown, nothing is known of how many words there are.
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut verdict = BanVerdict::default();
    for condition in words.split(|word| *word == "&&") {
        if verdict.fault.is_none() {
            verdict.fault = fault(condition);
        }
        verdict.on_request |= condition.first().is_some_and(|field| field.to_ascii_lowercase().starts_with("req."));
    }
    verdict
}

fn fault(condition: &[&str]) -> Option<String> {
    if let Some(glued) = condition.iter().find(|word| word.contains("&&")) {
        return Some(format!("a blank is missing beside `&&` in `{}`", show(glued)));
    }
    let [field, operator, value @ ..] = condition else {
        let known = condition.iter().all(|word| !word.contains(UNKNOWN));
        return known.then(|| match condition {
            [] => "a condition is empty".to_owned(),
            _ => format!("`{}` is no condition", show(&condition.join(" "))),
        });
    };
    if field.contains(UNKNOWN) {
        return None;
    }
    let lower = field.to_ascii_lowercase();
    let is_text = ["req.url", "obj.url", "obj.host", "obj.full_url", "obj.status"].contains(&lower.as_str())
        || ["req.http.", "obj.http."].iter().any(|prefix| lower.len() > prefix.len() && lower.starts_with(prefix));
    let is_duration = ["obj.ttl", "obj.age", "obj.grace", "obj.keep", "obj.last_hit"].contains(&lower.as_str());
    if !is_text && !is_duration {
        return Some(format!("there is no field `{field}`"));
    }
    let operators: &[&str] = if is_text { &["==", "!=", "~", "!~"] } else { &["==", "!=", ">", ">=", "<", "<="] };
    if operator.contains(UNKNOWN) && operators.iter().any(|known| operator.starts_with(known)) {
        return Some(format!("a blank is missing after the operator in `{}`", show(operator)));
    }
    if operator.contains(UNKNOWN) {
        return None;
    }
    if !operators.contains(operator) {
        return Some(format!("`{field}` has no operator `{operator}`"));
    }
    match value {
        [] => Some("a condition has no value".to_owned()),
        [_] => None,
        [first, second, ..] => {
            let known = !first.contains(UNKNOWN) && !second.contains(UNKNOWN);
            known.then(|| format!("`{}` is one word too many: a value has no blanks", show(second)))
        }
    }
}

fn show(word: &str) -> String {
    word.replace(UNKNOWN, "…")
}

#[cfg(test)]
mod tests {
    /// `$` stands for what is known at run time only.
    fn check(text: &str, expect: Option<&str>, on_request: bool) {
        let mut parts: Vec<Option<&[u8]>> = Vec::new();
        for (index, part) in text.split('$').enumerate() {
            if index > 0 {
                parts.push(None);
            }
            parts.push(Some(part.as_bytes()));
        }
        let verdict = super::check(&parts);
        let fits = match (&verdict.fault, expect) {
            (Some(fault), Some(expect)) => fault.contains(expect),
            (None, None) => true,
            _ => false,
        };
        assert!(fits && verdict.on_request == on_request, "{text}: {verdict:?}");
    }

    #[test]
    fn bans_are_held_against_their_grammar() {
        check("req.url ~ $", None, true);
        check("req.http.host == $ && req.url ~ $", None, true);
        check("obj.http.x-url ~ ^/a$ && obj.ttl > 10s", None, false);
        check("req.url ~ $&& obj.status == 200", Some("blank is missing beside"), true);
        check("req.http.host == $ && req.url ~$", Some("after the operator"), true);
        check("beresp.url ~ x", Some("no field"), false);
        check("req.url > x", Some("no operator"), true);
        check("req.url ~", Some("no value"), true);
        check("req.url", Some("no condition"), true);
        check("$", None, false);
        check("req.url ~ a b", Some("too many"), true);
    }
}
