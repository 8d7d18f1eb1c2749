//! A directive of any program's as it is said: without passwords, for what is said goes to terminals, logs and tickets. Of a directive that
//! `harmless_words.rs` has not only the name is said; what of a word may be a secret that may be said says `shown_word.rs`.

use crate::import::harmless_words::{HarmlessWords, harmless_words};
use crate::import::nginx_conf::Directive;
use crate::import::shown_rule;
use crate::import::shown_word::{MARK, is_credential_field, is_public, is_secret_name, is_switch, is_variable, shown};

/// Options whose values are no secrets.
const OPTIONS: &str = "acquire backup burst cert connect-timeout disablereuse enablereuse fail_timeout flushpackets group inactive keepalive \
    levels loadfactor max max-conn max_conns max_fails max_size min name nocanon ping processes python-path rate retry route smax status threads \
    timeout ttl upgrade user weight zone";

/// Words that are options by themselves.
const SWITCHES: &str = "accel allow-miss backup carp check closest-only default default_server deferred down htcp http2 httponly indirect \
    insert intercept maxidle no-digest no-netdb-exchange no-query nocache nodelay nokeepalive originserver postonly prefix preserve \
    proxy-only proxy_protocol quic resolve reuseport rewrite round-robin secure sourcehash ssl ssl-bump tproxy transparent userhash vhost \
    weighted-round-robin";

/// A directive as it is written, with a mark in the place of what is not known to be harmless.
pub fn said(directive: &Directive) -> String {
    let mut said = vec![shown_name(&directive.name)];
    for word in shown_arguments(directive) {
        match word {
            Some(word) => said.push(word),
            None if said.last().is_some_and(|last| last == MARK) => {}
            None => said.push(MARK.to_owned()),
        }
    }
    said.join(" ")
}

/// Its words, or none in the place of those that may be secrets.
fn shown_arguments(directive: &Directive) -> Vec<Option<String>> {
    let words = &directive.arguments;
    let may_be_said = match is_secret_name(&directive.name) || is_credential_line(directive) {
        true => vec![false; words.len()],
        false => harmless(directive),
    };
    // Behind a secret's name stands the secret, whatever is known of the directive.
    let from = behind_secret_name(directive).unwrap_or(words.len());
    let each = words.iter().zip(may_be_said).enumerate();
    let mut shown: Vec<Option<String>> =
        each.map(|(at, (word, may))| (may && at < from).then(|| shown_argument(directive, word))).collect();
    if let Some(fetches) = shown_rule::cut_fetches(directive) {
        shown.iter_mut().zip(fetches).for_each(|(shown, cut)| {
            if let (Some(word), Some(cut)) = (shown, cut) {
                *word = cut;
            }
        });
    }
    shown
}

/// Which of its words are no secrets, by what is known of the directive.
fn harmless(directive: &Directive) -> Vec<bool> {
    let words = &directive.arguments;
    let first = directive.argument(0);
    let up_to = |count: usize| (0..words.len()).map(|at| at < count).collect::<Vec<_>>();
    let with_options =
        |count: usize| words.iter().enumerate().map(|(at, word)| at < count || is_option(word)).collect();
    match harmless_words(&directive.name.to_lowercase()) {
        Some(HarmlessWords::All) => up_to(words.len()),
        Some(HarmlessWords::First(count)) => up_to(count),
        Some(HarmlessWords::Options(count)) => with_options(count),
        Some(HarmlessWords::Server) if is_address(directive.argument(1)) => up_to(2),
        Some(HarmlessWords::Server) => with_options(1),
        Some(HarmlessWords::Field) => up_to(of_field(directive)),
        Some(HarmlessWords::Answer) => words.iter().map(|word| is_place(word)).collect(),
        Some(HarmlessWords::Rule(action)) => shown_rule::of_action(directive, action),
        Some(HarmlessWords::Test(from)) => shown_rule::of_test(words, from),
        // In quotes a program stands in one word with what it is told.
        Some(HarmlessWords::Program) if directive.argument(1) == "program" => {
            up_to(if directive.argument(2).contains(char::is_whitespace) { 2 } else { 3 })
        }
        Some(HarmlessWords::Program) => up_to(words.len()),
        Some(HarmlessWords::Unless(secret)) if secret.contains(&first) => up_to(1),
        Some(HarmlessWords::Unless(_)) => up_to(words.len()),
        Some(HarmlessWords::Where(known)) if known.contains(&first) => up_to(words.len()),
        Some(HarmlessWords::Where(_)) => up_to(1),
        Some(HarmlessWords::Asks(known, _)) if known.iter().any(|asked| is_begun_by(first, asked)) => {
            up_to(words.len())
        }
        Some(HarmlessWords::Asks(_, count)) => up_to(count),
        // A matcher of Caddy's, by a name of its own.
        None if directive.name.starts_with('@') => shown_rule::of_test(words, 0),
        None if is_public(&directive.name) => up_to(words.len()),
        None => words.iter().map(|word| is_switch(word)).collect(),
    }
}

/// Is the variable that is asked for this one alone? Behind it another, of the client's own words, might stand.
fn is_begun_by(first: &str, asked: &str) -> bool {
    first.strip_prefix(asked).is_some_and(|rest| {
        let is_family = !asked.ends_with(|c: char| c.is_ascii_alphanumeric());
        (is_family || rest.is_empty()) && !rest.contains(['$', '%'])
    })
}

/// A line that is no directive may be one of a users' file: what stands behind its colon is no port, then.
fn shown_name(name: &str) -> String {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || "_.-+:/<>@*{}$[]?,%".contains(c);
    if !name.chars().all(is_of_name) {
        return MARK.to_owned();
    }
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
    match directive.name.eq_ignore_ascii_case("RewriteRule") {
        true => shown(&without_set_variables(word)),
        false => shown(word),
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

/// Where the secret stands whose name is one of its words.
fn behind_secret_name(directive: &Directive) -> Option<usize> {
    directive.arguments.iter().enumerate().find_map(|(at, word)| {
        // `lb_policy cookie NAME` has the name of a cookie there.
        let is_of_balancing = directive.name == "lb_policy";
        let is_its = is_secret_name(word) && !word.starts_with('$') || is_credential_field(word) && !is_of_balancing;
        let value = directive.argument(at + 1);
        (is_its && !value.is_empty() && !is_variable(value)).then_some(at + 1)
    })
}

/// Within a block of Caddy's `header` the directive is the field.
fn is_credential_line(directive: &Directive) -> bool {
    let name = directive.name.trim_start_matches(['+', '-', '?', '>']).to_lowercase();
    // HAProxy's `cookie NAME insert` sets one by itself.
    is_credential_field(&name) && !(name == "cookie" && directive.arguments.len() > 1)
}

/// How many words of a directive that sets a field are said: all where everybody reads its value, else those up to its name.
fn of_field(directive: &Directive) -> usize {
    const ACTIONS: [&str; 10] =
        ["set", "setifempty", "add", "append", "merge", "edit", "edit*", "echo", "note", "unset"];
    let is = |at: usize, words: &[&str]| words.contains(&directive.argument(at).to_lowercase().as_str());
    let behind_always = usize::from(is(0, &["always", "onsuccess", "early"]));
    let has_matcher = directive.argument(0).starts_with(['@', '/', '*']);
    let is_of_apache = directive.name.to_lowercase().ends_with("header") && is(behind_always, &ACTIONS);
    let field = if is_of_apache { behind_always + 1 } else { usize::from(has_matcher) };
    let value = directive.argument(field + 1);
    let is_plain = is_public(directive.argument(field)) || value.is_empty() || is_variable(value);
    if is_plain { directive.arguments.len() } else { field + 1 }
}

/// HAProxy's server has a name in front of its address, nginx's has none.
fn is_address(word: &str) -> bool {
    word.contains([':', '.']) && !word.contains('=')
}

fn is_option(word: &str) -> bool {
    let is_of = |list: &str, word: &str| list.split_whitespace().any(|known| known == word);
    match word.split_once('=') {
        Some((name, _)) => is_of(OPTIONS, name),
        None => is_of(SWITCHES, word),
    }
}

/// A status, a matcher of Caddy's, or where it leads. A text is for those who may read it.
fn is_place(word: &str) -> bool {
    let is_number = !word.is_empty() && word.len() <= 3 && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_url = word.starts_with(['/', '@']) || word.starts_with("http://") || word.starts_with("https://");
    is_number || is_variable(word) || !word.contains(char::is_whitespace) && (is_url || word.starts_with("$scheme://"))
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
        check("more_set_input_headers 'Authorization: Basic secret'", "more_set_input_headers …");
        check("sub_filter secret other", "sub_filter …");
        check("set_by_lua $x 'return 1'", "set_by_lua …");
        check("content_by_lua 'ngx.say(1)'", "content_by_lua …");
        check("return 200 secret", "return 200 …");
        check("server 10.0.0.1:80 weight=3 route=a", "server 10.0.0.1:80 weight=3 route=a");
        check("set $name secret", "set $name …");
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
        check("ProxyPass / http://app.test/ key=secret", "ProxyPass / http://app.test/ …");
        check("SetEnv DB_PASSWORD secret", "SetEnv DB_PASSWORD …");
        check("RequestHeader set Authorization secret", "RequestHeader set Authorization …");
        check("RequestHeader set X-Inner secret", "RequestHeader set X-Inner …");
        check("Header always set X-Key secret", "Header always set X-Key …");
        check("SetEnvIf X-Token ^secret$ let_in", "SetEnvIf X-Token …");
        check("AuthLDAPBindPassword secret", "AuthLDAPBindPassword …");
        check("RewriteCond %{HTTP:X-Key} !^secret$", "RewriteCond %{HTTP:X-Key} …");
        check("RewriteRule ^ - [E=HTTP_AUTHORIZATION:secret,L]", "RewriteRule ^ - [E=HTTP_AUTHORIZATION:…,L]");
        check("Require expr %{HTTP:X}=='secret'", "Require expr …");
        check("MDExternalAccountBinding secret secret", "MDExternalAccountBinding …");
        check("SSLRequire %{HTTP:X}=~m/secret/", "SSLRequire …");
        check("SecRule ARGS secret", "SecRule …");
        check("ProxyPass / http://app.test/ timeout=5 secret=x", "ProxyPass / http://app.test/ timeout=5 …");
        check("ErrorDocument 403 'a secret'", "ErrorDocument 403 …");
        check("CustomLog '|/usr/bin/log -k secret' combined", "CustomLog |… combined");
        check("DBDParams 'host=a pass=secret'", "DBDParams …");
    }

    #[test]
    fn no_secret_of_haproxy_is_said() {
        check("http-request set-header Authorization secret", "http-request set-header Authorization …");
        check("http-request set-header X-Inner words if a", "http-request set-header X-Inner … if a");
        check("http-request set-var(txn.k) str(secret)", "http-request set-var(txn.k) …");
        check("tcp-request content set-var(txn.k) str(secret)", "tcp-request content set-var(txn.k) …");
        check("set-var proc.k str(secret)", "set-var proc.k …");
        check("http-request return content-type text/plain string secret", "http-request return …");
        check("http-request deny if { hdr(x-key) words }", "http-request deny if { hdr(x-key) … }");
        check("http-request deny if !{ req.cook(sid) -m str words }", "http-request deny if !{ req.cook(sid) … }");
        check("acl known hdr(x-key) secret", "acl known hdr(x-key) …");
        check("acl known urlp(k) secret", "acl known urlp(k) …");
        check("stats auth a:secret", "stats auth …");
        check("user ann insecure-password secret", "user ann …");
        check("server a 10.0.0.1:80 check cookie secret", "server a 10.0.0.1:80 …");
        check("http-check send hdr Authorization secret", "http-check send …");
        check("option httpchk GET /a 'HTTP/1.1\r\nAuthorization: secret'", "option httpchk …");
        check("http_auth_pass secret", "http_auth_pass …");
        check("rspadd 'X-Inner: secret'", "rspadd …");
        check("reqirep ^X-Inner: secret", "reqirep …");
        check("http-request deny if a { hdr(x),hmac(sha256,words) b } !c", "http-request deny if a { hdr(x) … } !c");
        check("acl known path,concat(words) b", "acl known path …");
        check(
            "http-request deny unless { hdr(user-agent) -m str words }",
            "http-request deny unless { hdr(user-agent) … }",
        );
        check("http-request replace-header X-Inner a words unless b", "http-request replace-header X-Inner … unless b");
        check("setenv KEY secret", "setenv KEY …");
    }

    #[test]
    fn no_secret_of_squid_is_said() {
        check("cache_peer p.test parent 3128 0 login=ann:secret name=up", "cache_peer p.test parent 3128 0 … name=up");
        check("auth_param basic program /usr/lib/ldap_auth -w secret", "auth_param basic program /usr/lib/ldap_auth …");
        check("auth_param basic program '/usr/lib/ldap_auth -w secret'", "auth_param basic program …");
        check("external_acl_type groups %LOGIN /usr/lib/groups -w secret", "external_acl_type groups …");
        check("url_rewrite_program /usr/lib/rewrite secret", "url_rewrite_program /usr/lib/rewrite …");
        check("cachemgr_passwd secret all", "cachemgr_passwd …");
        check("acl snmppublic snmp_community secret", "acl snmppublic snmp_community …");
        check("acl known req_header X-Key secret", "acl known req_header …");
        check("acl known browser secret", "acl known browser …");
        check("header_replace X-Inner secret", "header_replace …");
        check("request_header_replace X-Inner secret", "request_header_replace X-Inner …");
        check("request_header_add Authorization secret all", "request_header_add Authorization …");
        check("request_header_add X-Inner secret all", "request_header_add X-Inner …");
        check("wccp2_service standard 0 password=secret", "wccp2_service …");
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
        check("zerossl secret", "zerossl …");
        check("cert_issuer zerossl secret", "cert_issuer zerossl …");
        check("respond @inner words 403", "respond @inner … 403");
        check("@inner header X-Inner secret", "@inner header …");
        check("lb_policy cookie lb secret", "lb_policy cookie lb …");
        check("sign_key secret", "sign_key …");
        check("crypto key sign-verify secret", "crypto key …");
        check("jwt secret", "jwt …");
        check("client_secret secret", "client_secret …");
        check("header_regexp a X-Key ^secret$", "header_regexp a X-Key …");
        check("expression {header.X-Key}=='secret'", "expression …");
        check("basic_auth_user ann $2a$14$abc more", "basic_auth_user …");
    }

    #[test]
    fn no_word_that_looks_like_a_secret_is_said() {
        check("ann $2y$10$abcdef", "ann …");
        check("AuthToken secret", "AuthToken …");
        check("x-api-token: secret", "x-api-token: …");
        check("requirepass_options db.password=secret b", "requirepass_options …");
        check("option password secret more", "option password …");
        check("listen_user ann:{SHA}abc", "listen_user …");
        // A line of a users' file begins with it.
        check("ann:$2a$14$abc", "ann:…");
        check("ann:hunter2 more", "ann:… …");
        check("https://ann:hunter2@a.test more", "https://…@a.test …");
    }

    /// A directive of a module, or of a later release: who knows what it is told?
    #[test]
    fn what_nobody_knows_is_said_by_its_name_alone() {
        check("unheard_of secret other", "unheard_of …");
        check("UnheardOf Secret", "UnheardOf …");
        check("unheard_of on", "unheard_of on");
        check("'se cret' 1", "…");
        check("sec!ret 1", "…");
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
            "listen 443 ssl http2",
            "if ($host = a.test)",
            "return 301 https://$host$request_uri",
            "return 404",
            "use_backend app if api !office or { path_beg /x }",
            "redirect prefix https://a.test code 301 if plain",
            "http-request deny deny_status 429 if { src 10.0.0.0/8 }",
            "ProxyPass / http://app.test:3000/ timeout=60",
            "Require ip 10.0.0.0/8",
            "RewriteRule ^/a(.*)$ https://b.test/$1 [R=301,L]",
            "refresh_pattern ^ftp: 1440 20% 10080",
            "@api path /api/*",
            "X-Frame-Options DENY",
            "fastcgi_buffers 8 16k",
            "timeout client 30s",
        ] {
            check(plain, plain);
        }
    }
}
