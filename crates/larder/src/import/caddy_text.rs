//! Texts of a Caddyfile, with their placeholders as variables of larder's; times and sizes as Caddy writes them.

/// What stands for what in a text, at one place of a site.
#[derive(Clone, Copy, Debug, Default)]
pub struct TextScope<'a> {
    /// The path has been rewritten: what says it says another one than the client's.
    pub is_rewritten: bool,
    /// The name of the expression whose groups the route's pattern has, and how many stand before them.
    pub groups: Option<(Option<&'a str>, usize)>,
    /// Who comes has shown a password: it is known who that is.
    pub has_login: bool,
    /// Where the upstream is, for its Host.
    pub upstream: Option<&'a str>,
}

/// The text as larder writes it. `None`: something in it has no variable.
pub fn text(written: &str, scope: TextScope<'_>) -> Option<String> {
    let (mut out, mut rest) = (String::new(), written);
    loop {
        let Some(at) = rest.find(['{', '$', '\\']) else { return Some(out + rest) };
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(escaped) = ["\\{", "\\}"].iter().find(|escaped| rest.starts_with(**escaped)) {
            out.push_str(&escaped[1..]);
            rest = &rest[2..];
        } else if let Some(behind) = rest.strip_prefix('$') {
            out.push_str("$$");
            rest = behind;
        } else if let Some((name, behind)) = rest.strip_prefix('{').and_then(placeholder_at) {
            out.push_str(&variable(name, scope)?);
            rest = behind;
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
}

/// A name that ends in `}`; what is no name, such as JSON, is text.
fn placeholder_at(text: &str) -> Option<(&str, &str)> {
    let (name, behind) = text.split_once('}')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"._-[]:*?/$%".contains(&byte);
    (!name.is_empty() && name.bytes().all(is_name)).then_some((name, behind))
}

fn variable(name: &str, scope: TextScope<'_>) -> Option<String> {
    let name = name.strip_prefix("http.request.").unwrap_or(name);
    let plain = |variable: &str| Some(format!("${{{variable}}}"));
    let is_word =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    let named = |prefix: &str, kind: &str| {
        let rest = name.strip_prefix(prefix).filter(|rest| is_word(rest))?;
        Some(format!(
            "${{{kind}_{}}}",
            if kind == "http" { rest.to_lowercase().replace('-', "_") } else { rest.to_owned() }
        ))
    };
    match name {
        "uri" | "path" | "uri.path" | "query" | "uri.query" | "?query" if scope.is_rewritten => None,
        "uri" | "orig_uri" => plain("request_uri"),
        "path" | "uri.path" | "orig_path" | "orig_uri.path" => plain("uri"),
        "query" | "uri.query" | "orig_uri.query" => plain("args"),
        "?query" | "uri.prefixed_query" | "orig_?query" => Some("${is_args}${args}".to_owned()),
        "host" => plain("host"),
        "hostport" => plain("http_host"),
        "scheme" => plain("scheme"),
        "method" | "orig_method" => plain("request_method"),
        "remote_host" | "remote.host" | "client_ip" | "vars.client_ip" => plain("remote_addr"),
        "uuid" => plain("request_id"),
        "http.auth.user.id" | "auth.user.id" => plain("remote_user"),
        "upstream_hostport" | "http.reverse_proxy.upstream.hostport" => scope.upstream.map(str::to_owned),
        _ => named("header.", "http")
            .or_else(|| named("cookie.", "cookie"))
            .or_else(|| named("query.", "arg"))
            .or_else(|| named("uri.query.", "arg"))
            .or_else(|| group(name, scope)),
    }
}

/// `{re.NAME.N}`, or `{re.N}` of the only expression.
fn group(name: &str, scope: TextScope<'_>) -> Option<String> {
    let rest = name.strip_prefix("re.").or_else(|| name.strip_prefix("http.regexp."))?;
    let (of, before) = scope.groups?;
    let number = match rest.rsplit_once('.') {
        Some((name, number)) => (of == Some(name)).then_some(number)?,
        None => rest,
    };
    let number = number.parse::<usize>().ok()?.checked_add(before)?;
    (1..=9).contains(&number).then(|| format!("${{{number}}}"))
}

/// `30s`, `1m30s`, `500ms`, `1d`, in milliseconds.
pub fn milliseconds(written: &str) -> Option<u64> {
    let (mut total, mut rest) = (0.0, written);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = &rest[end..];
        let end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let unit = match &rest[..end] {
            "ms" => 1.0,
            "s" => 1e3,
            "m" => 60e3,
            "h" => 3_600e3,
            "d" => 86_400e3,
            _ => return None,
        };
        total += number * unit;
        rest = &rest[end..];
    }
    (total > 0.0 && total < 1e15).then_some(total as u64)
}

/// The same as a time of larder.toml.
pub fn time(written: &str) -> Option<String> {
    milliseconds(written).filter(|&ms| ms > 0).map(|ms| format!("\"{ms}ms\""))
}

/// `10MB` (thousands), `10MiB`, or a number of bytes.
pub fn bytes(written: &str) -> Option<u64> {
    let lower = written.to_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(lower.len());
    let number: f64 = lower[..end].parse().ok()?;
    let unit: f64 = match lower[end..].trim() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "t" | "tb" => 1e12,
        "ki" | "kib" => 1024.0,
        "mi" | "mib" => 1024.0 * 1024.0,
        "gi" | "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let bytes = number * unit;
    (1.0..1e15).contains(&bytes).then_some(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_variables() {
        for (written, expect) in [
            ("https://{host}{uri}", Some("https://${host}${request_uri}")),
            ("{http.request.header.X-A-B} {header.User-Agent}", Some("${http_x_a_b} ${http_user_agent}")),
            ("{remote_host} {method} {scheme}", Some("${remote_addr} ${request_method} ${scheme}")),
            ("{\"a\": 1} $5 \\{x\\}", Some("{\"a\": 1} $$5 {x}")),
            ("{query.q}{cookie.sid}", Some("${arg_q}${cookie_sid}")),
            ("{labels.1}", None),
            ("{env.HOME}", None),
            ("{$UNSET}", None),
            ("{upstream_hostport}", None),
            ("{re.x.1}", None),
        ] {
            assert_eq!(text(written, TextScope::default()).as_deref(), expect, "{written}");
        }
        let groups = TextScope { groups: Some((Some("x"), 1)), ..TextScope::default() };
        assert_eq!(text("/{re.x.1}/{re.2}", groups).as_deref(), Some("/${2}/${3}"));
        assert_eq!(text("{re.y.1}", groups), None);
        let rewritten = TextScope { is_rewritten: true, ..TextScope::default() };
        assert_eq!(text("{uri}", rewritten), None);
        assert_eq!(text("{orig_uri}", rewritten).as_deref(), Some("${request_uri}"));
        for written in ["https://{host}{uri}", "{?query}", "{http.auth.user.id}"] {
            let said = text(written, TextScope::default()).expect("variables");
            assert!(proxy::settings::FieldTemplate::parse(&said).is_ok(), "{said}");
        }
    }

    #[test]
    fn times_and_sizes_are_read_as_caddy_reads_them() {
        for (written, expect) in [
            ("30s", Some(30_000)),
            ("1m30s", Some(90_000)),
            ("500ms", Some(500)),
            ("1d", Some(86_400_000)),
            ("5", None),
            ("x", None),
        ] {
            assert_eq!(milliseconds(written), expect, "{written}");
        }
        for (written, expect) in [
            ("10MB", Some(10_000_000)),
            ("1MiB", Some(1 << 20)),
            ("512", Some(512)),
            ("1.5k", Some(1_500)),
            ("x", None),
        ] {
            assert_eq!(bytes(written), expect, "{written}");
        }
    }
}
