//! The condition of nginx's `if` and what is done by it, as words: no more is known here than what they ask.

use crate::import::nginx_conf::Directive;

/// What only says how requests that go on are treated.
const HARMLESS: [&str; 14] = [
    "set",
    "break",
    "add_header",
    "expires",
    "access_log",
    "error_log",
    "log_not_found",
    "more_set_headers",
    "etag",
    "gzip",
    "rewrite_log",
    "limit_rate",
    "tcp_nodelay",
    "charset",
];

/// What an `if` does, if it does more than that.
pub fn act_of(directive: &Directive) -> Option<&Directive> {
    directive.children().iter().find(|child| !HARMLESS.contains(&child.name.as_str()))
}

/// Is there an `if` that answers nobody? Who meets it is led past `try_files`.
pub fn has_mere_condition(location: &Directive) -> bool {
    location.children().iter().any(|child| child.name == "if" && act_of(child).is_none())
}

/// The words of a condition, without its parentheses.
pub fn condition_of(directive: &Directive) -> Vec<String> {
    let mut words = directive.arguments.clone();
    if let Some(first) = words.first_mut() {
        *first = first.trim_start_matches('(').to_owned();
    }
    if let Some(last) = words.last_mut().and_then(|last| last.strip_suffix(')').map(str::to_owned)) {
        *words.last_mut().expect("there is one") = last;
    }
    words.retain(|word| !word.is_empty());
    words
}

pub fn with_case(operator: &str, regex: &str) -> String {
    if operator.ends_with('*') { format!("(?i){regex}") } else { regex.to_owned() }
}

/// Methods that origins know. A regex that is not anchored is for each that it is in.
const KNOWN_METHODS: [&str; 25] = [
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "DELETE",
    "PATCH",
    "OPTIONS",
    "CONNECT",
    "TRACE",
    "TRACK",
    "PURGE",
    "BAN",
    "PROPFIND",
    "PROPPATCH",
    "MKCOL",
    "COPY",
    "MOVE",
    "LOCK",
    "UNLOCK",
    "SEARCH",
    "REPORT",
    "MKCALENDAR",
    "ACL",
    "BIND",
    "UNBIND",
];

/// The methods that `^(A|B)$` is for, and no other. `None`: nobody knows for which.
pub fn methods_of(regex: &str) -> Option<Vec<String>> {
    let (begins, inside) = regex.strip_prefix('^').map_or((false, regex), |rest| (true, rest));
    let (ends, inside) = inside.strip_suffix('$').map_or((false, inside), |rest| (true, rest));
    let group = inside.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let words: Vec<String> =
        group.map_or(inside, |group| group.strip_prefix("?:").unwrap_or(group)).split('|').map(str::to_owned).collect();
    // `^A|B$` anchors each of both at one end alone.
    let (begins, ends) = if group.is_none() && words.len() > 1 { (false, false) } else { (begins, ends) };
    let is_method = |word: &String| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase());
    let is_for = |word: &str, method: &str| match (begins, ends) {
        (true, true) => word == method,
        (true, false) => method.starts_with(word),
        (false, true) => method.ends_with(word),
        (false, false) => method.contains(word),
    };
    let is_whole = |word: &String| {
        begins && ends
            || KNOWN_METHODS.contains(&word.as_str())
                && KNOWN_METHODS.iter().all(|method| method == word || !is_for(word, method))
    };
    words.iter().all(|word| is_method(word) && is_whole(word)).then_some(words)
}

pub fn matches_everything(regex: &str) -> bool {
    matches!(
        regex,
        "^" | ".*" | "^.*" | "^.*$" | "(.*)" | "^(.*)$" | "^(.*)" | "^/(.*)$" | "^/(.*)" | "/(.*)" | "^/.*$" | "^/"
    )
}

/// What only a client's own word says, which it may leave out.
pub fn says_a_client_alone(variable: &str) -> bool {
    matches!(variable, "$http_user_agent" | "$http_referer" | "$http_x_forwarded_proto" | "$ssl_protocol")
}

/// What a block says by `if` of requests in the clear alone, in it or within it.
pub fn says_of_the_clear(block: &Directive) -> Vec<&Directive> {
    let mut found = Vec::new();
    for child in block.children() {
        if child.name == "if" && act_of(child).is_some() && asks_for_the_clear(&condition_of(child)) == Some(true) {
            found.push(child);
        }
        found.extend(says_of_the_clear(child));
    }
    found
}

/// Does a block ask for each of these hosts before it does anything else: `if ($host = NAME) { … }`, as certbot writes it?
pub fn asks_for_each_host(block: &Directive, hosts: &[String]) -> bool {
    let asked_for = |child: &Directive| match condition_of(child).as_slice() {
        [variable, sign, host] if variable == "$host" && sign == "=" => Some(host.to_lowercase()),
        _ => None,
    };
    let conditions = block.children().iter().filter(|child| child.name == "if" && act_of(child).is_some());
    let asked: Vec<Option<String>> = conditions.map(asked_for).collect();
    let is_asked = |host: &String| asked.contains(&Some(host.to_lowercase()));
    !hosts.is_empty() && asked.iter().all(Option::is_some) && hosts.iter().all(is_asked)
}

/// Is it a condition that holds in the clear alone? `Some(false)`: by TLS alone.
pub fn asks_for_the_clear(words: &[String]) -> Option<bool> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["$scheme", "=", "http"] | ["$scheme" | "$https", "!=", "https" | "on"] | ["$https" | "$ssl_protocol", "="] => {
            Some(true)
        }
        ["$scheme" | "$https", "=", "https" | "on"] | ["$scheme", "!=", "http"] | ["$https" | "$ssl_protocol"] => {
            Some(false)
        }
        ["$https" | "$ssl_protocol", "!="] => Some(false),
        ["$server_port", "=", "80"] | ["$server_port", "!=", "443"] => Some(true),
        ["$server_port", "=", "443"] | ["$server_port", "!=", "80"] => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    #[test]
    fn certbot_asks_for_each_host() {
        let case = |head: &str| Directive {
            block: Some(vec![directive("return 301 https://$host$request_uri")]),
            ..directive(head)
        };
        let check = |heads: &[&str], hosts: &[&str], expect: bool| {
            let block = Directive { block: Some(heads.iter().map(|head| case(head)).collect()), ..directive("server") };
            let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
            assert_eq!(asks_for_each_host(&block, &hosts), expect, "{heads:?} {hosts:?}");
        };
        check(&["if ($host = a.test)"], &["a.test"], true);
        check(&["if ($host = www.a.test)", "if ($host = a.test)"], &["a.test", "www.A.test"], true);
        check(&["if ($host = a.test)"], &["a.test", "b.test"], false);
        check(&["if ($host = a.test)", "if ($http_x = y)"], &["a.test"], false);
        check(&["if ($host = a.test)"], &[], false);
        check(&[], &["a.test"], false);
    }
}
