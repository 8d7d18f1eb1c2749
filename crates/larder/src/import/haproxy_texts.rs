//! Texts of HAProxy with samples in them (`%[req.hdr(host)]`, `%ci`) as texts of a `[[route]]` with variables.

use proxy::settings::FieldTemplate;

/// With larder's variables in the place of samples. `None`: there is one that larder has not.
pub fn template(text: &str) -> Option<String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('%') {
        push_text(&mut out, &rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('%') {
            out.push('%');
            rest = behind;
            continue;
        }
        let (name, behind) = match rest.strip_prefix('[') {
            Some(sample) => sample.split_once(']').map(|(sample, behind)| (variable(sample), behind))?,
            None => (short_variable(rest.get(..2)?), &rest[2..]),
        };
        out.push_str(&format!("${{{}}}", name?));
        rest = behind;
    }
    push_text(&mut out, rest);
    FieldTemplate::parse(&out).is_ok().then_some(out)
}

/// A text that has no samples.
pub fn plain(text: &str) -> String {
    text.replace('$', "$$")
}

fn push_text(out: &mut String, text: &str) {
    out.push_str(&plain(text));
}

fn variable(sample: &str) -> Option<String> {
    let (fetch, of) = sample.split_once('(').map_or((sample, ""), |(fetch, rest)| (fetch, rest.trim_end_matches(')')));
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    Some(match fetch {
        "src" => "remote_addr".to_owned(),
        "path" => "uri".to_owned(),
        "query" => "args".to_owned(),
        "url" | "pathq" | "capture.req.uri" => "request_uri".to_owned(),
        "method" => "request_method".to_owned(),
        "uuid" | "unique-id" => "request_id".to_owned(),
        "hdr" | "req.hdr" | "req.fhdr" | "capture.req.hdr" if of.eq_ignore_ascii_case("host") => "host".to_owned(),
        "hdr" | "req.hdr" | "req.fhdr" if is_name(of) => format!("http_{}", of.to_lowercase().replace('-', "_")),
        "cook" | "req.cook" if is_name(of) && !of.contains('-') => format!("cookie_{of}"),
        _ => return None,
    })
}

fn short_variable(name: &str) -> Option<String> {
    let name = match name {
        "ci" => "remote_addr",
        "HM" => "request_method",
        "HP" => "uri",
        "HU" => "request_uri",
        "ID" => "request_id",
        _ => return None,
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_become_variables() {
        for (text, expect) in [
            ("https://%[hdr(host)]%[capture.req.uri]", Some("https://${host}${request_uri}")),
            ("https://new.test%[path]?%[query]", Some("https://new.test${uri}?${args}")),
            ("100%% of $5", Some("100% of $$5")),
            ("%ci", Some("${remote_addr}")),
            ("%[req.hdr(X-A-B)]!", Some("${http_x_a_b}!")),
            ("%[ssl_c_s_dn]", None),
            ("%[path,regsub(a,b)]", None),
            ("%[src", None),
            ("%", None),
        ] {
            assert_eq!(template(text).as_deref(), expect, "{text}");
        }
    }
}
