//! What one test of HAProxy's asks of a request (`path_beg /api`, `hdr(host) -i a.test`, `src 10.0.0.0/8`), as alternatives of
//! which a `[[route]]` can say each.
//!
//! What it cannot say stays in the list as unsure: requests that are in it may have met the test or not, and who uses the list closes
//! them. It knows no rules.

use std::path::Path;

use proxy::settings::RoutePattern;

use crate::bounded_file;
use crate::import::field_values;
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
        if RoutePattern::new(&regex).is_ok() { vec![sure(Asks::Path(PathTest::matching(&regex)))] } else { unsure() }
    }

    /// Names of hosts; larder's have no letters' size, no port and no dot behind. What is another comparison is one of the field.
    fn by_host(&self) -> Vec<Alternative> {
        let (mut names, mut fields) = (std::collections::BTreeSet::new(), Vec::new());
        for value in &self.values {
            let lower = value.to_lowercase();
            let (name, port) = lower.split_once(':').map_or((&*lower, None), |(name, port)| (name, Some(port)));
            let is_name = |name: &str| {
                !name.is_empty()
                    && !name.ends_with('.')
                    && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._".contains(&b))
            };
            let is_larders = self.ignores_case || lower == *value;
            // A port beside the name alone says no more than the name.
            let is_told = port.is_none() || self.values.iter().any(|other| other.eq_ignore_ascii_case(name));
            match (self.comparison, name.strip_prefix('.')) {
                (Comparison::Whole, None) if is_name(name) && is_larders && is_told => {
                    names.insert(name.to_owned());
                }
                (Comparison::End, Some(below)) if is_name(below) && is_larders && port.is_none() => {
                    names.insert(format!("*.{below}"));
                }
                _ => match self.host_values(value) {
                    Some(values) => fields.extend(values),
                    None => return unsure(),
                },
            }
        }
        let hosts = (!names.is_empty()).then(|| sure(Asks::Host(names)));
        let fields = fields.into_iter().map(|value| sure(Asks::Field("Host".to_owned(), Some(self.in_case(&value)))));
        let all: Vec<Alternative> = hosts.into_iter().chain(fields).collect();
        if all.is_empty() { unsure() } else { all }
    }

    /// What Host has to be, where a star stands for any text.
    fn host_values(&self, value: &str) -> Option<Vec<String>> {
        if value.is_empty() || value.contains(['*', '/', '?', ',']) && self.comparison != Comparison::Regex {
            return None;
        }
        Some(match self.comparison {
            Comparison::Whole => vec![value.to_owned()],
            Comparison::Beginning => vec![format!("{value}*")],
            Comparison::End => vec![format!("*{value}")],
            Comparison::Within => vec![format!("*{value}*")],
            Comparison::Labels => {
                let label = value.trim_matches(['.', ':']);
                // What is a number may be a port.
                let is_plain = label.bytes().any(|byte| !byte.is_ascii_digit()) && !label.contains(':');
                let around = ["", "*."].into_iter().flat_map(|before| ["", ".*", ":*"].map(|behind| (before, behind)));
                is_plain.then(|| around.map(|(before, behind)| format!("{before}{label}{behind}")).collect())?
            }
            Comparison::Regex => field_values::of_regex(value)?,
            _ => return None,
        })
    }

    /// As a value whose letters are compared as this test compares them.
    fn in_case(&self, value: &str) -> String {
        let case = if self.ignores_case { "(?i)" } else { "" };
        format!("{case}{value}")
    }

    /// HAProxy divides a field at commas and compares each part: a line that only has the value in it is unsure.
    fn by_field(&self) -> Vec<Alternative> {
        let field = |value: Option<String>| Asks::Field(self.of.clone(), value);
        // What larder takes out before it looks for a stored response tells no routes apart.
        if ["cookie", "authorization"].iter().any(|name| self.of.eq_ignore_ascii_case(name)) {
            return unsure();
        }
        if self.comparison == Comparison::Found {
            return vec![sure(field(None))];
        }
        // Where nobody says what is compared, a request without the field may have met it.
        if matches!(self.comparison, Comparison::Unknown | Comparison::Segments | Comparison::Labels) {
            return unsure();
        }
        let (mut all, mut rest) = (Vec::new(), Vec::new());
        for value in &self.values {
            let is_regex = self.comparison == Comparison::Regex;
            if value.is_empty() || !is_regex && value.contains(['*', ',']) || value.starts_with("(?i)") {
                return unsure();
            }
            let values = match self.comparison {
                Comparison::Whole => vec![value.clone()],
                Comparison::Beginning => vec![format!("{value}*")],
                Comparison::End => vec![format!("*{value}")],
                Comparison::Within => vec![format!("*{value}*")],
                _ => match field_values::of_regex(value) {
                    Some(values) => values,
                    None => {
                        rest.push(Alternative { asks: Some(field(None)), is_sure: false });
                        continue;
                    }
                },
            };
            for value in values {
                let within = self.in_case(&format!("*{}*", value.trim_matches('*')));
                let exact = self.in_case(&value);
                // Any text in the middle may have a comma in it.
                let is_one_part = !value.trim_matches('*').contains(['*', ',']);
                if exact != within || !is_one_part {
                    rest.push(Alternative { asks: Some(field(Some(within))), is_sure: false });
                }
                all.extend(is_one_part.then(|| sure(field(Some(exact)))));
            }
        }
        all.extend(rest);
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
        let pattern = RoutePattern::new(regex).unwrap();
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
            "hdr_reg(host) ^[ab]",
            "hdr_len(host) gt 5",
            "hdr_val(x) gt 5",
            "src office.test",
            "ssl_c_verify 0",
            "http_auth(none)",
            "path,url_dec -m beg /a",
            "var(txn.a) b",
            "nbsrv(app) lt 2",
            "path_beg -M /a",
            "hdr_cnt(x) eq 0",
            "cook_cnt(x) eq 0",
            "cook(session)",
            "hdr(cookie) a=1",
            "hdr(Authorization) -m found",
            "path,field(1,:) /a",
            "hdr(x-a),field(1,:) b",
            "hdr_dom(host) 8080",
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
        // What names of larder's do not say is asked of the field.
        let values = |line: &str, expect: &[&str]| {
            let value = |value: &&str| sure(Asks::Field("Host".to_owned(), Some((*value).to_owned())));
            assert_eq!(of(line), expect.iter().map(value).collect::<Vec<_>>(), "{line}");
        };
        values("hdr_beg(host) -i www.", &["(?i)www.*"]);
        values("hdr_end(host) a.test", &["*a.test"]);
        values("hdr_sub(host) .cdn.", &["*.cdn.*"]);
        values("hdr_dom(host) .a.test", &["a.test", "a.test.*", "a.test:*", "*.a.test", "*.a.test.*", "*.a.test:*"]);
        values("hdr_reg(host) -i ^(www|m)\\.", &["(?i)www.*", "(?i)m.*"]);
        values("hdr(host) a.test:8080", &["a.test:8080"]);
        values("hdr(host) B.test", &["B.test"]);
        values("hdr(host) a.test.", &["a.test."]);
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
        assert_eq!(shown("hdr(upgrade) -i WebSocket"), ["true (?i)WebSocket", "false (?i)*WebSocket*"]);
        assert_eq!(shown("hdr_sub(x-a) -i b"), ["true (?i)*b*"]);
        assert_eq!(shown("hdr_reg(x-a) ^b"), ["true b*", "false *b*"]);
        assert_eq!(shown("hdr_reg(x-a) b.*c|d"), ["true *d*", "false *b*c*"]);
        assert_eq!(shown("hdr_reg(x-a) [bc]"), ["false any"]);
        assert_eq!(shown("hdr(x-a) -m found"), ["true any"]);
    }
}
