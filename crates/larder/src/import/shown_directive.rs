//! A directive of any program's as it is said: without passwords, for what is said goes to terminals, logs and tickets. Which of its words
//! may be a secret says the table here; what of a word may be one, `shown_word.rs`.

use crate::import::nginx_conf::Directive;
use crate::import::shown_word::{MARK, is_credential_field, is_secret_name, is_variable, shown};

/// Directives whose words may be secrets, in small letters, and how many of their words are none.
const SHOWN_WORDS: [(usize, &[&str]); 3] = [
    (
        0,
        &[
            "if",
            "<if",
            "<elseif",
            "env",
            "expression",
            "cachemgr_passwd",
            "snmp_community",
            "secure_link_md5",
            "secure_link_secret",
            "proxy_set_body",
            "redis2_query",
            "redis2_raw_query",
            "redis2_raw_queries",
            "php_value",
            "php_admin_value",
            "dbdparams",
            "authbasicfake",
            "auth_jwt_key",
            "jwt",
            "jwtauth",
        ],
    ),
    (
        1,
        &[
            "setenv",
            "presetenv",
            "define",
            "setenvif",
            "setenvifnocase",
            "browsermatch",
            "note",
            "user",
            "dns",
            "acme_dns",
            "eab",
            "acme_eab",
            "crypto",
            "external_acl_type",
            "tcp-check",
            "set-var",
            "proxyfcgisetenvif",
        ],
    ),
    (2, &["http-check", "header_regexp"]),
];

/// Directives that set a field or a parameter: its name, then its value.
const SETS_FIELD: [&str; 14] = [
    "set",
    "proxy_set_header",
    "grpc_set_header",
    "fastcgi_param",
    "uwsgi_param",
    "scgi_param",
    "add_header",
    "add_trailer",
    "header_up",
    "header_down",
    "request_header",
    "header",
    "request_header_add",
    "request_header_replace",
];

/// Fields whose values everybody may read. A nonce or a password stands in none of them.
const PUBLIC_FIELDS: [&str; 24] = [
    "host",
    "cache-control",
    "expires",
    "pragma",
    "vary",
    "server",
    "via",
    "connection",
    "upgrade",
    "content-type",
    "content-encoding",
    "accept-encoding",
    "strict-transport-security",
    "content-security-policy",
    "x-frame-options",
    "x-content-type-options",
    "x-xss-protection",
    "x-robots-tag",
    "x-forwarded-proto",
    "x-forwarded-host",
    "referrer-policy",
    "permissions-policy",
    "user-agent",
    "link",
];

/// A directive as it is written, with a mark in the place of passwords.
pub fn said(directive: &Directive) -> String {
    let count = directive.arguments.len();
    let from = first_hidden(directive).filter(|from| *from < count);
    let words = directive.arguments[..from.unwrap_or(count)].iter().map(|word| shown_argument(directive, word));
    let mark = from.map(|_| MARK.to_owned());
    [shown_name(&directive.name)].into_iter().chain(words).chain(mark).collect::<Vec<_>>().join(" ")
}

/// A line that is no directive may be one of a users' file: what stands behind its colon is no port, then.
fn shown_name(name: &str) -> String {
    let word = shown(name);
    let may_be_user = |(user, rest): &(&str, &str)| {
        let is_port = rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-' || byte == b'*');
        !is_port && !user.contains(['{', '[', '@', '/']) && !rest.starts_with(['/', ':'])
    };
    match name.split_once(':').filter(may_be_user) {
        Some((user, _)) if word == name => format!("{user}:{MARK}"),
        _ => word,
    }
}

fn shown_argument(directive: &Directive, word: &str) -> String {
    let sets_fields = directive.name.starts_with("more_set_");
    match word.split_once(':').filter(|(name, value)| sets_fields && !is_public(name) && !is_variable(value.trim())) {
        Some((name, value)) if !value.trim().is_empty() => format!("{name}: {MARK}"),
        _ if directive.name.eq_ignore_ascii_case("RewriteRule") => shown(&without_set_variables(word)),
        _ => shown(word),
    }
}

/// `[E=NAME:VALUE,L]` of Apache.
fn without_set_variables(word: &str) -> String {
    let is_set = |flag: &str| flag.trim_start_matches('[').starts_with("E=");
    let flags = word.split(',').map(|flag| match flag.split_once(':').filter(|(_, value)| !value.starts_with('%')) {
        Some((name, value)) if is_set(name) => format!("{name}:{MARK}{}", if value.ends_with(']') { "]" } else { "" }),
        _ => flag.to_owned(),
    });
    if word.starts_with('[') { flags.collect::<Vec<_>>().join(",") } else { word.to_owned() }
}

/// The first of its words that may be a secret, or an option with one.
fn first_hidden(directive: &Directive) -> Option<usize> {
    let name = directive.name.to_lowercase();
    if is_secret_name(&directive.name) || is_field_line(directive) {
        return directive.arguments.iter().any(|word| !is_variable(word)).then_some(0);
    }
    let behind_name = directive.arguments.iter().enumerate().find_map(|(at, word)| {
        // `lb_policy cookie NAME` has the name of a cookie there.
        let is_its = is_secret_name(word) && !word.starts_with('$') || is_credential_field(word) && name != "lb_policy";
        let value = directive.argument(at + 1);
        (is_its && !value.is_empty() && !is_variable(value)).then_some(at + 1)
    });
    let in_table = SHOWN_WORDS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(count, _)| *count);
    [behind_name, in_table, of_field(&name, directive), of_test(directive), of_its_own(&name, directive)]
        .into_iter()
        .flatten()
        .min()
}

/// Within a block of Caddy's `header` the directive is the field.
fn is_field_line(directive: &Directive) -> bool {
    let name = directive.name.trim_start_matches(['+', '-', '?', '>']).to_lowercase();
    // HAProxy's `cookie NAME insert` sets one by itself.
    let is_of_balancing = name == "cookie" && directive.arguments.len() > 1;
    is_credential_field(&name) && !is_of_balancing || name.starts_with("x-") && !is_public(&name)
}

fn is_public(field: &str) -> bool {
    let field = field.trim().trim_start_matches(['+', '-', '?', '>']).to_lowercase();
    PUBLIC_FIELDS.contains(&field.as_str()) || field.starts_with("access-control-")
}

/// The value of a field that is set.
fn of_field(name: &str, directive: &Directive) -> Option<usize> {
    const ACTIONS: [&str; 9] = ["set", "setifempty", "add", "append", "merge", "edit", "edit*", "echo", "note"];
    const HAPROXY: [&str; 4] = ["http-request", "http-response", "http-after-response", "tcp-request"];
    let is = |at: usize, words: &[&str]| words.contains(&directive.argument(at).to_lowercase().as_str());
    let behind_always = usize::from(is(0, &["always"]) || is(0, &["onsuccess", "early"]));
    let has_matcher = directive.argument(0).starts_with(['@', '/', '*']);
    let field = match name {
        "header" | "requestheader" if is(behind_always, &ACTIONS) => behind_always + 1,
        _ if SETS_FIELD.contains(&name) => usize::from(has_matcher),
        _ if HAPROXY.contains(&name) => return of_haproxy_action(directive),
        _ => return None,
    };
    let value = directive.argument(field + 1);
    let is_plain = is_public(directive.argument(field)) || value.is_empty() || is_variable(value);
    (!is_plain).then_some(field + 1)
}

fn of_haproxy_action(directive: &Directive) -> Option<usize> {
    let at = usize::from(directive.name == "tcp-request");
    let action = directive.argument(at);
    let sets = action.ends_with("-header") || action.ends_with("-value");
    match action {
        _ if sets && !is_public(directive.argument(at + 1)) => Some(at + 2),
        _ if action.starts_with("set-var") || action == "return" => Some(at + 1),
        _ => None,
    }
}

/// What a test compares a client's word with, which may be what lets somebody in.
fn of_test(directive: &Directive) -> Option<usize> {
    const FETCHES: [&str; 14] = [
        "hdr",
        "hdr_",
        "req.hdr",
        "req.fhdr",
        "shdr",
        "res.hdr",
        "cook",
        "scook",
        "req.cook",
        "res.cook",
        "url_param",
        "urlp",
        "var",
        "req.",
    ];
    let is_fetch = |word: &String| {
        let Some((fetch, rest)) = word.split_once('(') else { return false };
        let field = rest.split([')', ',']).next().unwrap_or_default();
        FETCHES.iter().any(|known| fetch == *known || known.ends_with(['_', '.']) && fetch.starts_with(known))
            && !is_public(field)
    };
    directive.arguments.iter().position(is_fetch).map(|at| at + 1)
}

/// What no table says of a directive.
fn of_its_own(name: &str, directive: &Directive) -> Option<usize> {
    const TESTS_OF_SQUID: [&str; 4] = ["snmp_community", "req_header", "rep_header", "note"];
    const ASKED_OF_CLIENTS: [&str; 3] = ["%{HTTP", "%{QUERY", "%{THE_REQUEST"];
    let first = directive.argument(0);
    // HAProxy's has a name in front of its address, nginx's has none.
    let is_address = |word: &str| word.contains([':', '.']) && !word.contains('=');
    match name {
        "server" if is_address(directive.argument(1)) => Some(2),
        "acl" if TESTS_OF_SQUID.contains(&directive.argument(1)) => Some(2),
        "auth_param" if directive.argument(1) == "program" => Some(3),
        "stats" if first == "auth" => Some(1),
        "option" if first.ends_with("chk") || first.ends_with("-check") => Some(4),
        "lb_policy" if first == "cookie" => Some(2),
        "require" if first == "expr" => Some(1),
        "rewritecond" if ASKED_OF_CLIENTS.iter().any(|asked| first.starts_with(asked)) && !first.contains("HOST") => {
            Some(1)
        }
        name if name.ends_with("_program") => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::Place;

    /// What is said of a directive whose words are divided by single blanks, but for those in single quotes.
    fn check(written: &str, expect: &str) {
        let pieces: Vec<&str> = written.split('\'').collect();
        let words = pieces.iter().enumerate().flat_map(|(at, piece)| match at % 2 {
            0 => piece.split(' ').filter(|word| !word.is_empty()).map(str::to_owned).collect(),
            _ => vec![(*piece).to_owned()],
        });
        let mut words = words.collect::<Vec<_>>().into_iter();
        let place = Place { file: "f".into(), line: 1 };
        let name = words.next().unwrap_or_default();
        assert_eq!(said(&Directive { name, arguments: words.collect(), block: None, place }), expect, "{written}");
    }

    #[test]
    fn no_secret_of_nginx_is_said() {
        for field in ["Authorization", "proxy-authorization", "Cookie", "X-Api-Key", "X-Inner"] {
            check(&format!("proxy_set_header {field} secret"), &format!("proxy_set_header {field} …"));
            check(&format!("add_header {field} secret always"), &format!("add_header {field} …"));
        }
        check("more_set_input_headers 'Authorization: Basic secret'", "more_set_input_headers Authorization: …");
        check("more_set_headers 'X-Inner: secret' 'Server: a'", "more_set_headers X-Inner: … Server: a");
        check("fastcgi_param DB_PASSWORD secret", "fastcgi_param DB_PASSWORD …");
        check("set $api_key secret", "set $api_key …");
        check("secure_link_md5 $uri$secure_link_expires secret", "secure_link_md5 …");
        check("if ($http_x_token != secret)", "if …");
        check("proxy_set_body user=ann&pass=secret", "proxy_set_body …");
        check("redis2_query auth secret", "redis2_query …");
        check("proxy_pass http://ann:secret@app.test/a?k=secret", "proxy_pass http://…@app.test/a?k=…");
        check("return 302 https://a.test/?code=secret", "return 302 https://a.test/?code=…");
        check("auth_jwt_key file", "auth_jwt_key …");
        check("env DB_PASSWORD secret", "env …");
    }

    #[test]
    fn no_secret_of_apache_is_said() {
        check("ProxyPass / http://ann:secret@app.test/", "ProxyPass / http://…@app.test/");
        check("ProxyPass / http://app.test/ key=secret", "ProxyPass / http://app.test/ key=…");
        check("SetEnv DB_PASSWORD secret", "SetEnv DB_PASSWORD …");
        check("RequestHeader set Authorization secret", "RequestHeader set Authorization …");
        check("RequestHeader set X-Inner secret", "RequestHeader set X-Inner …");
        check("Header always set X-Key secret", "Header always set X-Key …");
        check("SetEnvIf X-Token ^secret$ let_in", "SetEnvIf X-Token …");
        check("AuthLDAPBindPassword secret", "AuthLDAPBindPassword …");
        check("RewriteCond %{HTTP:X-Key} !^secret$", "RewriteCond %{HTTP:X-Key} …");
        check("RewriteRule ^ - [E=HTTP_AUTHORIZATION:secret,L]", "RewriteRule ^ - [E=HTTP_AUTHORIZATION:…,L]");
        check("Require expr %{HTTP:X}=='secret'", "Require expr …");
        check("DBDParams 'host=a pass=secret'", "DBDParams …");
    }

    #[test]
    fn no_secret_of_haproxy_is_said() {
        check("http-request set-header Authorization secret", "http-request set-header Authorization …");
        check("http-request set-header X-Inner secret if a", "http-request set-header X-Inner …");
        check("http-request set-var(txn.k) str(secret)", "http-request set-var(txn.k) …");
        check("tcp-request content set-var(txn.k) str(secret)", "tcp-request content set-var(txn.k) …");
        check("set-var proc.k str(secret)", "set-var proc.k …");
        check("http-request return content-type text/plain string secret", "http-request return …");
        check("http-request deny if { hdr(x-key) secret }", "http-request deny if { hdr(x-key) …");
        check("http-request deny if !{ req.cook(sid) -m str secret }", "http-request deny if !{ req.cook(sid) …");
        check("acl known hdr(x-key) secret", "acl known hdr(x-key) …");
        check("acl known urlp(k) secret", "acl known urlp(k) …");
        check("stats auth a:secret", "stats auth …");
        check("user ann insecure-password secret", "user ann …");
        check("server a 10.0.0.1:80 check cookie secret", "server a 10.0.0.1:80 …");
        check("http-check send hdr Authorization secret", "http-check send hdr …");
        check("setenv KEY secret", "setenv KEY …");
    }

    #[test]
    fn no_secret_of_squid_is_said() {
        check(
            "cache_peer p.test parent 3128 0 login=ann:secret name=up",
            "cache_peer p.test parent 3128 0 login=… name=up",
        );
        check("auth_param basic program /usr/lib/ldap_auth -w secret", "auth_param basic program /usr/lib/ldap_auth …");
        check("external_acl_type groups %LOGIN /usr/lib/groups -w secret", "external_acl_type groups …");
        check("url_rewrite_program /usr/lib/rewrite secret", "url_rewrite_program /usr/lib/rewrite …");
        check("cachemgr_passwd secret all", "cachemgr_passwd …");
        check("acl snmppublic snmp_community secret", "acl snmppublic snmp_community …");
        check("acl known req_header X-Key secret", "acl known req_header …");
        check("request_header_add Authorization secret all", "request_header_add Authorization …");
        check("request_header_add X-Inner secret all", "request_header_add X-Inner …");
        check("wccp2_service standard 0 password=secret", "wccp2_service standard 0 password=…");
    }

    #[test]
    fn no_secret_of_caddy_is_said() {
        check("header_up Authorization secret", "header_up Authorization …");
        check("header_up +X-Inner secret", "header_up +X-Inner …");
        check("header @inner X-Inner secret", "header @inner X-Inner …");
        check("+Authorization secret", "+Authorization …");
        check("X-Inner secret", "X-Inner …");
        check("request_header X-Api-Key secret", "request_header X-Api-Key …");
        check("acme_dns cloudflare secret", "acme_dns cloudflare …");
        check("lb_policy cookie lb secret", "lb_policy cookie lb …");
        check("sign_key secret", "sign_key …");
        check("crypto key sign-verify secret", "crypto key …");
        check("jwt secret", "jwt …");
        check("client_secret secret", "client_secret …");
        check("header_regexp a X-Key ^secret$", "header_regexp a X-Key …");
        check("expression {header.X-Key}=='secret'", "expression …");
        check("basic_auth_user ann $2a$14$abc more", "basic_auth_user ann … more");
    }

    #[test]
    fn no_word_that_looks_like_a_secret_is_said() {
        check("ann $2y$10$abcdef", "ann …");
        check("AuthToken secret", "AuthToken …");
        check("x-api-token: secret", "x-api-token: …");
        check("requirepass_options db.password=secret b", "requirepass_options db.password=… b");
        check("option password secret more", "option password …");
        check("listen_user ann:{SHA}abc", "listen_user ann:…");
        // A line of a users' file begins with it.
        check("ann:$2a$14$abc", "ann:…");
        check("ann:hunter2 more", "ann:… more");
        check("https://ann:hunter2@a.test more", "https://…@a.test more");
    }

    #[test]
    fn what_is_no_secret_is_said() {
        for plain in [
            "http_access deny slow",
            "acl office src 10.0.0.0/8",
            "acl api path_beg /api",
            "acl shop hdr(host) -i shop.test",
            "auth_param basic realm our proxy",
            "proxy_set_header Host app.test",
            "proxy_set_header Authorization $http_authorization",
            "proxy_hide_header Set-Cookie",
            "add_header Cache-Control no-store always",
            "Header always set X-Frame-Options DENY",
            "http-response set-header Cache-Control no-store",
            "http-request deny if !office",
            "header_up X-Real-IP {remote_host}",
            "header -Server",
            "lb_policy cookie lb",
            "cookie SRV insert indirect nocache",
            "proxy_set_header X-Real-IP $remote_addr",
            "set $item $arg_key",
            "proxy_pass https://app",
            "location /private/",
            "location /forgotten-password",
            "server_tokens off",
            "server 127.0.0.1:80 weight=3",
            "ssl_certificate_key /etc/ssl/a.key",
            "proxy_cache_key $scheme$uri",
            "hash $cookie_token consistent",
            "proxy_pass http://app.test/a@b",
            "cache_peer p.test sibling 3128 3130",
            "RewriteCond %{HTTP_HOST} ^a",
            "a.test:8080",
            ":80",
            "[::1]:80",
            "https://a.test:8443",
        ] {
            check(plain, plain);
        }
    }
}
