//! What one test of HAProxy's asks of a request (`path_beg /api`, `hdr(host) -i a.test`, `src 10.0.0.0/8`), as alternatives of
//! which a `[[route]]` can say each.
//!
//! What it cannot say stays in the list as unsure: requests that are in it may have met the test or not, and who uses the list closes
//! them. It knows no rules.

use std::path::Path;

use proxy::settings::PathPattern;

use crate::bounded_file;
use crate::import::haproxy_rates::RatesTracked;
use crate::import::haproxy_users::UserLists;
use crate::import::nginx_order::escaped;
use crate::import::path_tests::{PathStart, PathTest};
use crate::import::request_cells::{Asks, ClientGuard};

/// Values that a test may read from a file.
const VALUES_FILE_BYTES_MAX: u64 = 1 << 20;
const VALUES_MAX: usize = 4_096;

/// One way in which a test may be met. Without `asks` it is met by all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alternative {
    pub asks: Option<Asks>,
    /// Who is in it has met the test; else nobody knows.
    pub is_sure: bool,
}

/// What a test may know that is not in its line.
#[derive(Clone, Copy)]
pub struct TestWorld<'a> {
    /// Of a listener with TLS.
    pub is_secure: bool,
    pub users: &'a UserLists,
    pub rates: &'a RatesTracked,
}

/// How a value is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Whole,
    Beginning,
    End,
    Within,
    Segments,
    Labels,
    Regex,
    Found,
    Unknown,
}

/// A test, taken apart.
struct WrittenTest {
    fetch: String,
    /// In the parentheses behind it.
    of: String,
    comparison: Comparison,
    ignores_case: bool,
    values: Vec<String>,
}

pub fn met_by_all() -> Vec<Alternative> {
    vec![Alternative { asks: None, is_sure: true }]
}

pub fn unsure() -> Vec<Alternative> {
    vec![Alternative { asks: None, is_sure: false }]
}

fn is_method(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-')
}

fn sure(asks: Asks) -> Alternative {
    Alternative { asks: Some(asks), is_sure: true }
}

/// Those that HAProxy knows without a line that says them.
pub fn predefined(name: &str) -> Option<Vec<Alternative>> {
    let methods = |names: &[&str]| vec![sure(Asks::Method(names.iter().map(|&name| name.to_owned()).collect()))];
    Some(match name {
        "TRUE" | "HTTP" | "WAIT_END" | "REQ_CONTENT" => met_by_all(),
        "FALSE" => Vec::new(),
        "LOCALHOST" => vec![sure(Asks::Guard(ClientGuard::From(["127.0.0.0/8", "::1"].map(str::to_owned).into())))],
        "METH_GET" => methods(&["GET", "HEAD"]),
        "METH_CONNECT" | "METH_DELETE" | "METH_HEAD" | "METH_OPTIONS" | "METH_POST" | "METH_PUT" | "METH_TRACE" => {
            methods(&[&name["METH_".len()..]])
        }
        "HTTP_URL_ABS" | "HTTP_URL_SLASH" | "HTTP_URL_STAR" | "HTTP_CONTENT" | "HTTP_1.0" | "HTTP_1.1" | "HTTP_2.0" => {
            unsure()
        }
        _ => return None,
    })
}

/// The alternatives of a test, as the words of its line.
pub fn alternatives(words: &[String], world: &TestWorld<'_>) -> Vec<Alternative> {
    let Some(test) = WrittenTest::read(words) else { return unsure() };
    match test.fetch.as_str() {
        "always_true" | "wait_end" => met_by_all(),
        "always_false" => Vec::new(),
        "ssl_fc" if test.values.iter().all(|value| value == "1") => {
            if world.is_secure {
                met_by_all()
            } else {
                Vec::new()
            }
        }
        "path" => test.by_path(),
        "method" if !test.ignores_case && test.values.iter().all(|value| is_method(value)) => {
            vec![sure(Asks::Method(test.values.iter().cloned().collect()))]
        }
        "src" => test.by_network(),
        "http_auth" => test.by_login(None, world.users),
        "http_auth_group" => test.by_login(Some(&test.values), world.users),
        "hdr" | "req.hdr" | "req.fhdr" if test.of.eq_ignore_ascii_case("host") => test.by_host(),
        "hdr" | "req.hdr" | "req.fhdr" if !test.of.is_empty() && !test.of.contains(',') => test.by_field(),
        // larder leaves out who does not answer, and asks backups by itself.
        "nbsrv" | "srv_is_up" => test.by_servers(),
        _ => world
            .rates
            .rate(&test.fetch, &test.of, &test.values)
            .map_or_else(unsure, |rate| vec![sure(Asks::Guard(ClientGuard::TooOften(rate)))]),
    }
}

impl WrittenTest {
    fn read(words: &[String]) -> Option<WrittenTest> {
        let (criterion, mut rest) = words.split_first()?;
        let (fetch, of, mut ignores_case) = fetch_of(criterion)?;
        let (fetch, mut comparison) = by_suffix(&fetch);
        let mut values = Vec::new();
        // Behind the first value all words are values.
        let mut may_be_flag = true;
        while let Some((word, behind)) = rest.split_first() {
            rest = behind;
            match word.as_str() {
                word if !may_be_flag => values.push(word.to_owned()),
                "-i" => ignores_case = true,
                "-m" => {
                    let (how, behind) = rest.split_first()?;
                    (comparison, rest) = (comparison_named(how), behind);
                }
                "-f" => {
                    let (file, behind) = rest.split_first()?;
                    values.extend(values_of_file(file)?);
                    rest = behind;
                }
                "-n" => {}
                "--" => {
                    values.extend(rest.iter().cloned());
                    break;
                }
                flag if flag.starts_with('-') => return None,
                _ => {
                    may_be_flag = false;
                    values.push(word.clone());
                }
            }
        }
        (values.len() <= VALUES_MAX).then_some(WrittenTest { fetch, of, comparison, ignores_case, values })
    }

    fn by_path(&self) -> Vec<Alternative> {
        if self.values.is_empty() {
            return unsure();
        }
        let is_whole = self.comparison == Comparison::Whole;
        if (is_whole || self.comparison == Comparison::Beginning) && !self.ignores_case {
            let starts = self.values.iter().map(|text| PathStart { text: text.clone(), is_whole });
            return vec![sure(Asks::Path(PathTest::starting(starts.collect())))];
        }
        let all: Option<Vec<String>> =
            self.values.iter().map(|value| path_expression(value, self.comparison)).collect();
        let regex = match all.as_deref() {
            None => return unsure(),
            Some([one]) => one.clone(),
            Some(several) => several.iter().map(|one| format!("(?:{one})")).collect::<Vec<_>>().join("|"),
        };
        let regex = if self.ignores_case { format!("(?i){regex}") } else { regex };
        if PathPattern::new(&regex).is_ok() { vec![sure(Asks::Path(PathTest::matching(&regex)))] } else { unsure() }
    }

    /// Names of hosts; larder's have no letters' size and no port.
    fn by_host(&self) -> Vec<Alternative> {
        let mut names = std::collections::BTreeSet::new();
        // An end that begins within a label, and labels anywhere, are met by hosts that no list of names is.
        let mut others_may_meet_it = false;
        for value in &self.values {
            if !self.ignores_case && value.bytes().any(|byte| byte.is_ascii_uppercase()) {
                return unsure();
            }
            let value = value.to_lowercase();
            let (name, port) = value.split_once(':').map_or((&*value, None), |(name, port)| (name, Some(port)));
            // One port of a name alone is none of larder's hosts.
            if port.is_some() && !self.values.iter().any(|other| other.eq_ignore_ascii_case(name)) {
                return unsure();
            }
            let is_name = |name: &str| {
                !name.is_empty()
                    && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b))
            };
            match (self.comparison, name.strip_prefix('.')) {
                (Comparison::Whole, None) if is_name(name) => drop(names.insert(name.to_owned())),
                (Comparison::End, Some(below)) if is_name(below) => drop(names.insert(format!("*.{below}"))),
                (Comparison::End | Comparison::Labels, None) if is_name(name) => {
                    names.extend([name.to_owned(), format!("*.{name}")]);
                    others_may_meet_it = true;
                }
                _ => return unsure(),
            }
        }
        if names.is_empty() {
            return unsure();
        }
        let others = others_may_meet_it.then(unsure).into_iter().flatten();
        [sure(Asks::Host(names))].into_iter().chain(others).collect()
    }

    /// HAProxy divides a field at commas and compares each part: a line that only has the value in it is unsure.
    fn by_field(&self) -> Vec<Alternative> {
        let field = |value: Option<String>| Asks::Field(self.of.clone(), value);
        if self.comparison == Comparison::Found {
            return vec![sure(field(None))];
        }
        // Where nobody says what is compared, a request without the field may have met it.
        if matches!(self.comparison, Comparison::Unknown | Comparison::Segments | Comparison::Labels) {
            return unsure();
        }
        let mut all = Vec::new();
        let mut rest = Vec::new();
        for value in &self.values {
            if value.is_empty() || value.contains(['*', ',']) {
                return unsure();
            }
            for value in self.spellings(value) {
                let exact = match self.comparison {
                    Comparison::Whole => value.clone(),
                    Comparison::Beginning => format!("{value}*"),
                    Comparison::End => format!("*{value}"),
                    Comparison::Within => format!("*{value}*"),
                    _ => continue,
                };
                all.push(sure(field(Some(exact))));
                rest.push(Alternative { asks: Some(field(Some(format!("*{value}*")))), is_sure: false });
            }
        }
        // In whatever other size of letters, or by an expression: whoever has the field may have met it.
        if self.ignores_case || all.is_empty() {
            rest = vec![Alternative { asks: Some(field(None)), is_sure: false }];
        } else if self.comparison == Comparison::Within {
            rest.clear();
        }
        all.extend(rest);
        all
    }

    fn spellings(&self, value: &str) -> Vec<String> {
        let mut all = vec![value.to_owned()];
        if self.ignores_case {
            let lower = value.to_lowercase();
            let capital = lower[..1].to_uppercase() + &lower[1..];
            for spelling in [lower, capital, value.to_uppercase()] {
                if !all.contains(&spelling) {
                    all.push(spelling);
                }
            }
        }
        all
    }

    fn by_network(&self) -> Vec<Alternative> {
        let is_one = |text: &String| crate::import::nginx_access::is_network(text);
        match !self.values.is_empty() && self.values.iter().all(is_one) {
            true => vec![sure(Asks::Guard(ClientGuard::From(self.values.clone())))],
            false => unsure(),
        }
    }

    fn by_login(&self, groups: Option<&[String]>, users: &UserLists) -> Vec<Alternative> {
        match users.file_for(&self.of, groups) {
            Some(file) => vec![sure(Asks::Guard(ClientGuard::LoggedIn(file)))],
            None => unsure(),
        }
    }

    /// Servers are taken to be there.
    fn by_servers(&self) -> Vec<Alternative> {
        match self.values.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["lt", "1"] | ["le" | "eq", "0"] | ["0"] => Vec::new(),
            ["gt" | "ne", "0"] | ["ge", "1"] | [] => met_by_all(),
            _ => unsure(),
        }
    }
}

/// What is fetched, of what, and whether its letters' size counts for nothing. `None`: it is changed in a way that is not known.
fn fetch_of(criterion: &str) -> Option<(String, String, bool)> {
    let (fetch, rest) = match criterion.split_once('(') {
        Some((fetch, rest)) if !fetch.contains(',') => {
            let (of, behind) = rest.split_once(')')?;
            let behind = if of.eq_ignore_ascii_case("host") { without_port(behind) } else { behind.to_owned() };
            return converted(&behind).map(|ignores_case| (fetch.to_owned(), of.to_owned(), ignores_case));
        }
        _ => criterion.split_once(',').map_or((criterion, ""), |(fetch, _)| (fetch, &criterion[fetch.len()..])),
    };
    converted(rest).map(|ignores_case| (fetch.to_owned(), String::new(), ignores_case))
}

/// Without the converter that takes the port from a host, which larder's hosts do not have.
fn without_port(behind: &str) -> String {
    let converter = [",field(1,:)", ",host_only"].into_iter().find(|converter| behind.contains(converter));
    converter.map_or(behind.to_owned(), |converter| behind.replacen(converter, "", 1))
}

/// Converters that change nothing but the size of letters.
fn converted(behind: &str) -> Option<bool> {
    match behind {
        "" => Some(false),
        ",lower" => Some(true),
        _ => None,
    }
}

/// `path_beg` is `path` compared by its beginning.
fn by_suffix(fetch: &str) -> (String, Comparison) {
    match fetch.rsplit_once('_') {
        Some((base @ ("path" | "hdr" | "req.hdr" | "req.fhdr"), how)) => (base.to_owned(), comparison_named(how)),
        _ => (fetch.to_owned(), Comparison::Whole),
    }
}

fn comparison_named(how: &str) -> Comparison {
    match how {
        "str" => Comparison::Whole,
        "beg" => Comparison::Beginning,
        "end" => Comparison::End,
        "sub" => Comparison::Within,
        "dir" => Comparison::Segments,
        "dom" => Comparison::Labels,
        "reg" => Comparison::Regex,
        "found" => Comparison::Found,
        _ => Comparison::Unknown,
    }
}

/// An expression that a path matches as HAProxy would compare it with this.
fn path_expression(value: &str, comparison: Comparison) -> Option<String> {
    let text = escaped(value);
    Some(match comparison {
        Comparison::Whole => format!("^{text}$"),
        Comparison::Beginning => format!("^{text}"),
        Comparison::End => format!("{text}$"),
        Comparison::Within => text,
        Comparison::Segments => format!("(?:^|/){}(?:/|$)", escaped(value.trim_matches('/'))),
        Comparison::Regex => value.to_owned(),
        Comparison::Labels | Comparison::Found | Comparison::Unknown => return None,
    })
}

fn values_of_file(file: &str) -> Option<Vec<String>> {
    let bytes = bounded_file::read(Path::new(file), VALUES_FILE_BYTES_MAX).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    Some(lines.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Vec<Alternative> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let world = TestWorld { is_secure: true, users: &UserLists::default(), rates: &RatesTracked::default() };
        alternatives(&words, &world)
    }

    /// The expression of the path that a test asks for, held against paths.
    fn check_path(line: &str, paths: &[(&str, bool)]) {
        let [Alternative { asks: Some(Asks::Path(test)), is_sure: true }] = &of(line)[..] else { panic!("{line}") };
        let regex = test.regex();
        let pattern = PathPattern::new(regex).unwrap();
        for (path, expect) in paths {
            assert_eq!(pattern.is_match(path.as_bytes()), *expect, "{line}: {path} by {regex}");
        }
    }

    #[test]
    fn paths_are_compared_as_haproxy_does() {
        check_path("path /a.b", &[("/a.b", true), ("/aXb", false), ("/a.b/", false)]);
        check_path("path_beg /a /b", &[("/ax", true), ("/b/c", true), ("/c/a", false)]);
        check_path("path_end -i .PHP", &[("/x.php", true), ("/x.phpx", false)]);
        check_path("path_dir api", &[("/api", true), ("/v/api/x", true), ("/apix", false)]);
        check_path("path_sub ..", &[("/a/../b", true), ("/ab", false)]);
        check_path("path -m reg ^/a|b$", &[("/ax", true), ("/xb", true), ("/x", false)]);
        check_path("path_beg /a -i", &[("/ax", true), ("/A", false), ("-ix", true)]);
        check_path("path,lower -m beg /a", &[("/AB", true), ("/b", false)]);
    }

    #[test]
    fn what_cannot_be_said_is_unsure() {
        for line in [
            "path_reg (a",
            "path_len gt 5",
            "url_beg /a",
            "hdr_beg(host) www.",
            "hdr_reg(host) ^a",
            "hdr_val(x) gt 5",
            "src office.test",
            "ssl_c_verify 0",
            "http_auth(none)",
            "path,url_dec -m beg /a",
            "var(txn.a) b",
            "nbsrv(app) lt 2",
            "path_beg -M /a",
            "hdr(host) a.test:8080",
            "hdr_cnt(x) eq 0",
            "cook_cnt(x) eq 0",
            "cook(session)",
            "path,field(1,:) /a",
            "hdr(x-a),field(1,:) b",
            "hdr(host) B.test",
            "hdr_dom(host) .a.test",
            "method get",
            "sc_http_req_rate(0) gt 5",
        ] {
            assert_eq!(of(line), unsure(), "{line}");
        }
    }

    #[test]
    fn hosts_and_clients_are_told() {
        let host = |line: &str, expect: &[&str]| {
            let names = expect.iter().map(|&name| name.to_owned()).collect();
            assert_eq!(of(line), [sure(Asks::Host(names))], "{line}");
        };
        host("hdr(host) -i A.test a.test:8080 b.test", &["a.test", "b.test"]);
        host("hdr_end(host) .a.test", &["*.a.test"]);
        host("req.hdr(host),lower,field(1,:) a.test", &["a.test"]);
        // Also met by nota.test, and by a.test.example.
        for line in ["hdr_end(host) a.test", "hdr_dom(host) a.test"] {
            let names = ["*.a.test", "a.test"].map(str::to_owned).into();
            assert_eq!(of(line), [vec![sure(Asks::Host(names))], unsure()].concat(), "{line}");
        }
        assert_eq!(
            of("src 10.0.0.0/8 ::1"),
            [sure(Asks::Guard(ClientGuard::From(vec!["10.0.0.0/8".into(), "::1".into()])))]
        );
        assert_eq!(of("ssl_fc"), met_by_all());
        assert_eq!(of("nbsrv(app) lt 1"), []);
    }

    /// What may have met the test without being written so is unsure, and never left out.
    #[test]
    fn a_field_is_met_by_one_of_its_parts() {
        let shown = |line: &str| -> Vec<String> {
            let asked = |one: &Alternative| match &one.asks {
                Some(Asks::Field(_, value)) => format!("{} {}", one.is_sure, value.as_deref().unwrap_or("any")),
                other => panic!("{other:?}"),
            };
            of(line).iter().map(asked).collect()
        };
        assert_eq!(shown("hdr(x-a) b"), ["true b", "false *b*"]);
        assert_eq!(shown("hdr_sub(x-a) b"), ["true *b*"]);
        assert_eq!(
            shown("hdr(upgrade) -i WebSocket"),
            ["true WebSocket", "true websocket", "true Websocket", "true WEBSOCKET", "false any"]
        );
        assert_eq!(shown("hdr_reg(x-a) ^b"), ["false any"]);
        assert_eq!(shown("hdr(x-a) -m found"), ["true any"]);
    }
}
