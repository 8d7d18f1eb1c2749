//! Which words of a rule are said: of HAProxy's `http-request deny if { hdr(x-key) secret }`, of an `acl`, and of matchers of Caddy's. What a
//! test compares a client's word with may be what lets somebody in.

use crate::import::nginx_conf::Directive;
use crate::import::shown_word::{is_public, is_variable};

/// What is asked of a request that is no word of a client's, or one that everybody may say: HAProxy's, Squid's, Caddy's.
const OPEN_TESTS: &str = "path path_beg path_end path_dir path_sub path_reg path_len path_regexp src src_port dst dst_port method ssl_fc \
    ssl_fc_sni ssl_fc_sni_end req.ssl_sni req_ssl_sni req.proto_http nbsrv connslots fe_conn be_conn fe_sess_rate be_sess_rate src_conn_cur \
    src_conn_rate src_http_req_rate src_http_err_rate src_get_gpc0 srv_is_up http_auth http_auth_group wait_end hour host protocol remote_ip \
    client_ip dstdomain srcdomain dstdom_regex localip localport myportname myip myport port proto time arp maxconn max_user_ip at_step \
    ssl::server_name peername hier_code http_status random any-of all-of expr not";

/// Words between an action and its condition that are not values of fields.
const OF_ACTIONS: &str = "deny_status status code location prefix scheme permanent temp seeother";

/// Which words are said of a rule whose action is preceded by as many.
pub fn of_action(directive: &Directive, before: usize) -> Vec<bool> {
    let words = &directive.arguments;
    let condition = words.iter().position(|word| word == "if" || word == "unless").unwrap_or(words.len());
    let name = directive.name.to_lowercase();
    let action = directive.argument(before);
    let leads = matches!(name.as_str(), "redirect" | "use_backend" | "use-server" | "block") || action == "redirect";
    let is_open =
        leads || action.starts_with("track-sc") || matches!(action, "use-service" | "set-path" | "replace-path");
    let field = directive.argument(before + 1);
    let value = words.get(before + 2..condition).unwrap_or_default();
    let names_field = action.ends_with("-header") || action.ends_with("-value");
    let is_open = is_open || names_field && (is_public(field) || value.iter().all(|word| is_variable(word)));
    let of_head = |(at, word): (usize, &String)| {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit()) && word.len() <= 3;
        let is_of_action = OF_ACTIONS.split_whitespace().any(|known| known == word);
        at <= before || is_open || names_field && at == before + 1 || is_number || is_of_action
    };
    let head = words[..condition].iter().enumerate().map(of_head);
    head.chain(of_condition(&words[condition..])).collect()
}

/// Names of tests, and tests in braces.
fn of_condition(words: &[String]) -> Vec<bool> {
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_alphanumeric() || "!_.:-|&".contains(c));
    let mut of_test = None;
    let mut said = Vec::new();
    for word in words {
        said.push(match (word.as_str(), &mut of_test) {
            ("{" | "!{", of_test) => {
                *of_test = Some(None);
                true
            }
            ("}", of_test) => {
                *of_test = None;
                true
            }
            (_, None) => is_name(word),
            (_, Some(Some(is_open))) => *is_open,
            (fetch, Some(is_open)) => {
                *is_open = Some(is_open_test(fetch));
                true
            }
        });
    }
    said
}

/// A test whose name is preceded by as many words.
pub fn of_test(words: &[String], before: usize) -> Vec<bool> {
    let is_open = words.get(before).is_some_and(|test| is_open_test(test));
    (0..words.len()).map(|at| at <= before || is_open).collect()
}

fn is_open_test(fetch: &str) -> bool {
    let (name, rest) = fetch.split_once('(').unwrap_or((fetch, ""));
    let asks_header = ["hdr", "req.hdr", "req.fhdr", "shdr", "res.hdr"]
        .iter()
        .any(|known| name.strip_prefix(known).is_some_and(|how| how.is_empty() || how.starts_with('_')));
    // What is made of it by a converter is one of its words, too.
    let is_plain = !rest.contains(',') || rest.ends_with("lower") || rest.ends_with("-1)") || rest.ends_with("1)");
    let is_known = OPEN_TESTS.split_whitespace().any(|known| known == name)
        || asks_header && is_public(rest.split([')', ',']).next().unwrap_or_default());
    is_known && is_plain
}

/// Where the converters of a fetch begin, if one of them is told something: at the first comma outside of parentheses.
fn first_converter(word: &str) -> Option<usize> {
    let mut depth = 0i32;
    let at = word.bytes().position(|byte| {
        depth += i32::from(byte == b'(') - i32::from(byte == b')');
        byte == b',' && depth == 0
    })?;
    (word[..at].ends_with(')') || word[at..].contains('(')).then_some(at)
}

/// Fetches without what converters are told (`hmac(sha256,secret)`), in the place of the words that have them.
pub fn cut_fetches(directive: &Directive) -> Option<Vec<Option<String>>> {
    let has_fetches = matches!(directive.name.as_str(), "acl" | "use_backend" | "use-server" | "redirect")
        || directive.name.starts_with("http-")
        || directive.name.starts_with("tcp-");
    let cut = |word: &String| {
        let end = first_converter(word)?;
        let name = word[..end].split('(').next().unwrap_or_default();
        let is_fetch =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte));
        is_fetch.then(|| word[..end].to_owned())
    };
    has_fetches.then(|| directive.arguments.iter().map(cut).collect())
}
