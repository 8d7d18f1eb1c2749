//! Which requests a rule of another server is about, as far as a `[[route]]` can say it: hosts, paths, methods and fields; and what
//! a route cannot choose by but refuse by: where a client comes from, whether it shows a password, how often it asks.
//!
//! Rules that are asked one after the other are a list of cells, of which the first that a request is in decides. It knows no
//! server's words.

use std::collections::BTreeSet;
use std::net::IpAddr;

use proxy::settings::NamePattern;

use crate::import::path_tests::PathTest;

/// Some requests: those that meet all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCell {
    /// Names, and `*.NAME`. None: any.
    hosts: Option<BTreeSet<String>>,
    /// All of these match the path …
    paths: Vec<PathTest>,
    /// … and none of these does.
    other_paths: Vec<PathTest>,
    /// The one whose groups the route names; the path matches it, too.
    grouped: Option<String>,
    methods: Option<BTreeSet<String>>,
    fields: Vec<(String, Option<String>)>,
    guards: Vec<ClientGuard>,
}

/// One thing that is asked of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asks {
    Host(BTreeSet<String>),
    Path(PathTest),
    Method(BTreeSet<String>),
    /// One line of a field is this, where a `*` stands for any text; `None`: there is one.
    Field(String, Option<String>),
    Guard(ClientGuard),
}

/// What is asked of a client and not of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientGuard {
    /// It comes from one of these networks.
    From(Vec<String>),
    /// It shows name and password of this file.
    LoggedIn(String),
    /// It asks more often than this `rate_limit` lets it.
    TooOften(String),
}

impl RequestCell {
    /// Those of them that meet this, too. `None`: there are none.
    pub fn asking(&self, asks: &Asks) -> Option<RequestCell> {
        let mut cell = self.clone();
        match asks {
            Asks::Host(names) => cell.hosts = Some(both_hosts(self.hosts.as_ref(), names)?),
            Asks::Path(test) => {
                let excluded = self.other_paths.iter().any(|other| test.is_within(other));
                if excluded || self.paths.iter().any(|known| known.excludes(test)) {
                    return None;
                }
                if !self.paths.iter().any(|known| known.is_within(test)) {
                    cell.paths.retain(|known| !test.is_within(known));
                    cell.paths.push(test.clone());
                }
                cell.other_paths.retain(|other| !other.excludes(test));
            }
            Asks::Method(names) => {
                let both: BTreeSet<String> = match &self.methods {
                    Some(known) => known.intersection(names).cloned().collect(),
                    None => names.clone(),
                };
                cell.methods = Some(both).filter(|both| !both.is_empty());
                cell.methods.as_ref()?;
            }
            Asks::Field(name, Some(value)) if name.eq_ignore_ascii_case("host") => cell.add_host_value(name, value)?,
            Asks::Field(name, value) => add(&mut cell.fields, &(name.clone(), value.clone())),
            Asks::Guard(ClientGuard::From(networks)) => {
                let known = self.guards.iter().position(|guard| matches!(guard, ClientGuard::From(_)));
                let known = known.map(|at| cell.guards.remove(at));
                let both = match &known {
                    Some(ClientGuard::From(known)) => networks_in_both(known, networks),
                    _ => networks.clone(),
                };
                if both.is_empty() {
                    return None;
                }
                cell.guards.push(ClientGuard::From(both));
            }
            Asks::Guard(guard) => add(&mut cell.guards, guard),
        }
        Some(cell)
    }

    /// Host has one line: of two values it has the narrower, or none has both.
    fn add_host_value(&mut self, name: &str, value: &str) -> Option<()> {
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        let known = self.fields.iter().filter(|(known, _)| is_it(known)).filter_map(|(_, value)| value.as_ref());
        if known.clone().any(|known| are_apart(known, value)) {
            return None;
        }
        if !known.clone().any(|known| is_value_within(known, value)) {
            self.fields.retain(|(known, other)| {
                !is_it(known) || !other.as_ref().is_none_or(|other| is_value_within(value, other))
            });
            self.fields.push((name.to_owned(), Some(value.to_owned())));
        }
        Some(())
    }

    /// Those whose path does not match. `None`: there are none.
    pub fn without_path(&self, test: &PathTest) -> Option<RequestCell> {
        let mut cell = self.clone();
        let says_nothing = self.paths.iter().any(|known| known.excludes(test))
            || self.other_paths.iter().any(|known| test.is_within(known));
        if !says_nothing {
            cell.other_paths.retain(|known| !known.is_within(test));
            cell.other_paths.push(test.clone());
        }
        (!self.paths.iter().any(|known| known.is_within(test))).then_some(cell)
    }

    /// Those whose path matches, whose groups the route may name. `None`: it names those of another expression.
    pub fn grouped_by(&self, regex: &str) -> Option<RequestCell> {
        self.grouped.is_none().then(|| RequestCell { grouped: Some(regex.to_owned()), ..self.clone() })
    }

    pub fn guards(&self) -> &[ClientGuard] {
        &self.guards
    }

    pub fn without_guards(&self) -> RequestCell {
        RequestCell { guards: Vec::new(), ..self.clone() }
    }

    /// Those of either that are in both.
    pub fn meet(&self, other: &RequestCell) -> Option<RequestCell> {
        let mut cell = self.clone();
        let asks = other.hosts.iter().cloned().map(Asks::Host);
        let asks = asks.chain(other.methods.iter().cloned().map(Asks::Method));
        let grouped = other.grouped.iter().map(|regex| PathTest::matching(regex));
        let asks = asks.chain(other.paths.iter().cloned().chain(grouped).map(Asks::Path));
        let asks = asks.chain(other.fields.iter().cloned().map(|(name, value)| Asks::Field(name, value)));
        for asks in asks.chain(other.guards.iter().cloned().map(Asks::Guard)) {
            cell = cell.asking(&asks)?;
        }
        other.other_paths.iter().try_fold(cell, |cell, test| cell.without_path(test))
    }

    /// Is each of them one of the others, as far as that can be told?
    pub fn is_within(&self, other: &RequestCell) -> bool {
        let hosts = match (&self.hosts, &other.hosts) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(others)) => own.iter().all(|name| others.iter().any(|other| covers(other, name))),
        };
        let methods = match (&self.methods, &other.methods) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(own), Some(others)) => own.is_subset(others),
        };
        hosts
            && methods
            && other.paths.iter().all(|test| self.paths.iter().any(|own| own.is_within(test)))
            && other.grouped.iter().all(|regex| self.grouped.as_ref() == Some(regex))
            && other.other_paths.iter().all(|test| {
                self.paths.iter().any(|own| own.excludes(test))
                    || self.other_paths.iter().any(|own| test.is_within(own))
            })
            && other.fields.iter().all(|field| self.fields.contains(field))
            && other.guards.iter().all(|guard| self.guards.contains(guard))
    }

    pub fn of_any_host(&self) -> RequestCell {
        RequestCell { hosts: None, ..self.clone() }
    }

    pub fn hosts(&self) -> Option<&BTreeSet<String>> {
        self.hosts.as_ref()
    }

    /// Are some of them for this host, which is a name or `*.NAME`?
    pub fn is_for(&self, host: &str) -> bool {
        self.hosts.as_ref().is_none_or(|hosts| hosts.iter().any(|known| covers(known, host)))
    }

    pub fn methods(&self) -> Option<&BTreeSet<String>> {
        self.methods.as_ref()
    }

    /// Two values of one field, which no route can ask.
    pub fn asks_a_field_twice(&self) -> bool {
        self.with_fields_once().fields.len() < self.fields.len()
    }

    /// All of whom the first thing is met that is asked of each field.
    pub fn with_fields_once(&self) -> RequestCell {
        let mut fields: Vec<(String, Option<String>)> = Vec::new();
        for field in &self.fields {
            if !fields.iter().any(|(known, _)| known.eq_ignore_ascii_case(&field.0)) {
                fields.push(field.clone());
            }
        }
        RequestCell { fields, ..self.clone() }
    }

    pub fn fields(&self) -> &[(String, Option<String>)] {
        &self.fields
    }

    /// Is nothing asked but the host?
    pub fn is_all_of_its_hosts(&self) -> bool {
        self.pattern().is_none() && self.methods.is_none() && self.fields.is_empty() && self.guards.is_empty()
    }

    /// Is nothing asked but that a path is none of some?
    pub fn is_all_but_some_paths(&self) -> bool {
        *self == RequestCell { other_paths: self.other_paths.clone(), ..RequestCell::default() }
    }

    /// One expression for all that is asked of the path. `None`: nothing is.
    pub fn pattern(&self) -> Option<String> {
        let grouped = self.grouped.iter().map(String::as_str);
        let matching: Vec<&str> = grouped.chain(self.paths.iter().map(PathTest::regex)).collect();
        match (&matching[..], &self.other_paths[..]) {
            ([], []) => None,
            ([one], []) => Some((*one).to_owned()),
            _ => {
                let ahead = |sign: char| move |regex: &str| format!("(?{sign}{})", from_the_start(regex));
                let is: String = matching.iter().map(|regex| ahead('=')(regex)).collect();
                let is_not: String = self.other_paths.iter().map(|test| ahead('!')(test.regex())).collect();
                Some(format!("^{is}{is_not}"))
            }
        }
    }
}

/// Stands in front of a value of a field whose letters are alike in either case.
const EITHER_CASE: &str = "(?i)";

/// Can no line be both, where a star stands for any text? By how they begin and end, without the case of letters.
fn are_apart(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(|value| value.strip_prefix(EITHER_CASE).unwrap_or(value).to_lowercase());
    let begins = |value: &str| value.split('*').next().unwrap_or_default().to_owned();
    let ends = |value: &str| value.rsplit('*').next().unwrap_or_default().to_owned();
    let (is_begun, is_ended) = ((begins(&one), begins(&other)), (ends(&one), ends(&other)));
    let is_met =
        |whole: &str, pattern: &str| whole.contains('*') || NamePattern::new(pattern).is_match(whole.as_bytes());
    !(is_begun.0.starts_with(&is_begun.1) || is_begun.1.starts_with(&is_begun.0))
        || !(is_ended.0.ends_with(&is_ended.1) || is_ended.1.ends_with(&is_ended.0))
        || !is_met(&one, &other)
        || !is_met(&other, &one)
}

/// Is whatever the first value stands for what the second stands for?
fn is_value_within(one: &str, other: &str) -> bool {
    let in_either_case = other.strip_prefix(EITHER_CASE);
    let is_met = |whole: &str, pattern: &str| NamePattern::new(pattern).is_match(whole.as_bytes());
    one == other
        || match (in_either_case, one.strip_prefix(EITHER_CASE)) {
            _ if one.contains('*') => false,
            (Some(pattern), whole) => is_met(&whole.unwrap_or(one).to_lowercase(), &pattern.to_lowercase()),
            (None, None) => is_met(one, other),
            (None, Some(_)) => false,
        }
}

fn add<T: Clone + PartialEq>(to: &mut Vec<T>, one: &T) {
    if !to.contains(one) {
        to.push(one.clone());
    }
}

/// Is the second, a name or `*.NAME`, one of the first's?
fn covers(pattern: &str, host: &str) -> bool {
    pattern == host || pattern.strip_prefix('*').is_some_and(|end| host.ends_with(end) && host.len() > end.len())
}

fn both_hosts(known: Option<&BTreeSet<String>>, names: &BTreeSet<String>) -> Option<BTreeSet<String>> {
    let Some(known) = known else { return Some(names.clone()) };
    let narrower = |one: &String, other: &String| covers(other, one).then(|| one.clone());
    let pairs = known.iter().flat_map(|one| names.iter().map(move |other| (one, other)));
    let both: BTreeSet<String> =
        pairs.filter_map(|(one, other)| narrower(one, other).or_else(|| narrower(other, one))).collect();
    (!both.is_empty()).then_some(both)
}

/// Networks divide one another or have nothing in common: the narrower one is what both have.
fn networks_in_both(some: &[String], others: &[String]) -> Vec<String> {
    let mut both = Vec::new();
    for (one, other) in some.iter().flat_map(|one| others.iter().map(move |other| (one, other))) {
        match (is_in_network(one, other), is_in_network(other, one)) {
            (true, _) => add(&mut both, one),
            (_, true) => add(&mut both, other),
            _ => {}
        }
    }
    both
}

/// Is the first, an address or a network, all within the second?
fn is_in_network(one: &str, other: &str) -> bool {
    let bits_of = |text: &str| {
        let (address, bits) =
            text.split_once('/').map_or((text, None), |(address, bits)| (address, bits.parse::<u32>().ok()));
        match address.parse::<IpAddr>().ok()? {
            IpAddr::V4(address) => Some((u128::from(u32::from(address)) << 96, bits.unwrap_or(32), 4)),
            IpAddr::V6(address) => Some((u128::from(address), bits.unwrap_or(128), 6)),
        }
    };
    let (Some((one, one_bits, kind)), Some((other, bits, other_kind))) = (bits_of(one), bits_of(other)) else {
        return false;
    };
    let is_same = bits == 0 || (one ^ other).checked_shr(128 - bits).is_none_or(|rest| rest == 0);
    kind == other_kind && one_bits >= bits && is_same
}

/// An expression that is looked for anywhere, as one that is held against the start of a text.
fn from_the_start(regex: &str) -> String {
    match regex.strip_prefix('^') {
        Some(rest) if !has_bare_bar(rest) => rest.to_owned(),
        _ => format!("(?s:.*?)(?:{regex})"),
    }
}

/// Does a `|` stand outside of all groups?
fn has_bare_bar(regex: &str) -> bool {
    let (mut depth, mut is_class, mut letters) = (0_i32, false, regex.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            ']' => is_class = false,
            _ if is_class => {}
            '[' => is_class = true,
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth <= 0 => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use proxy::settings::RoutePattern;

    use super::*;

    fn names(list: &[&str]) -> BTreeSet<String> {
        list.iter().map(|&name| name.to_owned()).collect()
    }

    fn path(regex: &str) -> Asks {
        Asks::Path(PathTest::matching(regex))
    }

    fn cell(asks: &[Asks]) -> Option<RequestCell> {
        asks.iter().try_fold(RequestCell::default(), |cell, asks| cell.asking(asks))
    }

    #[test]
    fn hosts_are_those_of_both() {
        let check = |one: &[&str], other: &[&str], expect: Option<&[&str]>| {
            let both = cell(&[Asks::Host(names(one)), Asks::Host(names(other))]);
            assert_eq!(both.and_then(|cell| cell.hosts), expect.map(names), "{one:?} {other:?}");
        };
        check(&["a", "b"], &["b", "c"], Some(&["b"]));
        check(&["a"], &["b"], None);
        check(&["x.a.b", "a.b"], &["*.a.b"], Some(&["x.a.b"]));
        check(&["*.b"], &["*.a.b"], Some(&["*.a.b"]));
    }

    /// The pattern is held against paths by what the routes are looked up with.
    #[test]
    fn a_pattern_asks_for_all_that_is_asked() {
        let check = |asks: &[&str], not: &[&str], paths: &[(&str, bool)]| {
            let all = cell(&asks.iter().map(|regex| path(regex)).collect::<Vec<_>>()).unwrap();
            let all = not.iter().fold(all, |cell, regex| cell.without_path(&PathTest::matching(regex)).unwrap());
            let pattern = RoutePattern::new(&all.pattern().unwrap()).unwrap();
            for (path, expect) in paths {
                assert_eq!(pattern.is_match(path.as_bytes()), *expect, "{path} {:?}", all.pattern());
            }
        };
        check(&["^/api"], &[], &[("/api/x", true), ("/x/api", false)]);
        let both = [("/api/x.js", true), ("/api/x", false), ("/x.js", false)];
        check(&["^/api", "\\.js$"], &[], &both);
        check(&["^/a|^/b", "c"], &[], &[("/bc", true), ("/b", false), ("/c", false)]);
        check(
            &["^/api"],
            &["^/api/open", "(?i)\\.png$"],
            &[("/api/x", true), ("/api/open", false), ("/api/X.PNG", false)],
        );
        check(&[], &["^/a$"], &[("/a", false), ("/ab", true)]);
        check(&["^(?:/a|/b)"], &["x"], &[("/b/y", true), ("/b/x", false), ("/c", false)]);
    }

    #[test]
    fn what_is_within_what_is_told() {
        let wide = cell(&[Asks::Host(names(&["*.a"]))]).unwrap();
        let narrow = cell(&[Asks::Host(names(&["x.a"])), path("^/b"), Asks::Method(names(&["GET"]))]).unwrap();
        assert!(narrow.is_within(&wide) && !wide.is_within(&narrow));
        assert!(narrow.is_within(&RequestCell::default()));
        assert_eq!(wide.meet(&narrow), Some(narrow.clone()));
        let other = cell(&[Asks::Method(names(&["POST"]))]).unwrap();
        assert_eq!(narrow.meet(&other), None);
        assert_eq!(narrow.without_path(&PathTest::matching("^/b")), None);
    }

    #[test]
    fn a_host_has_one_value() {
        let check = |one: &str, other: &str, expect: Option<&[&str]>| {
            let host = |value: &str| Asks::Field("Host".to_owned(), Some(value.to_owned()));
            let values = cell(&[host(one), host(other)])
                .map(|cell| cell.fields.into_iter().filter_map(|(_, value)| value).collect::<Vec<_>>());
            let expect = expect.map(|all| all.iter().map(|&one| one.to_owned()).collect());
            assert_eq!(values, expect, "{one} {other}");
        };
        check("(?i)www.*", "(?i)img.*", None);
        check("www.*", "*.test", Some(&["www.*", "*.test"]));
        check("*.org", "*.test", None);
        check("(?i)WWW.*", "www.a", Some(&["www.a"]));
        check("www.a", "www.*", Some(&["www.a"]));
        check("(?i)www.a", "www.*", Some(&["(?i)www.a", "www.*"]));
        check("www.a", "*b*", None);
        check("(?i)WWW.*", "www.b*", Some(&["(?i)WWW.*", "www.b*"]));
    }

    #[test]
    fn beginnings_say_no_more_than_they_must() {
        let pattern = |asks: &[Asks], not: &[&str]| {
            let cell = cell(asks)?;
            not.iter().try_fold(cell, |cell, text| cell.without_path(&PathTest::beginning(text)))?.pattern()
        };
        let starts = |text: &str| Asks::Path(PathTest::beginning(text));
        assert_eq!(pattern(&[starts("/a"), starts("/a/b")], &[]).as_deref(), Some("^/a/b"));
        assert_eq!(pattern(&[starts("/a"), starts("/b")], &[]), None);
        assert_eq!(pattern(&[starts("/a")], &["/b"]).as_deref(), Some("^/a"));
        assert_eq!(pattern(&[starts("/a")], &["/a/b", "/a/b/c"]).as_deref(), Some("^(?=/a)(?!/a/b)"));
        assert_eq!(pattern(&[starts("/a/b")], &["/a"]), None);
    }

    #[test]
    fn networks_are_those_in_both() {
        let check = |some: &[&str], others: &[&str], expect: Option<&[&str]>| {
            let from = |list: &[&str]| Asks::Guard(ClientGuard::From(list.iter().map(|&one| one.to_owned()).collect()));
            let guards = cell(&[from(some), from(others)]).map(|cell| cell.guards);
            let expect = expect.map(|list| vec![ClientGuard::From(list.iter().map(|&one| one.to_owned()).collect())]);
            assert_eq!(guards, expect, "{some:?} {others:?}");
        };
        check(&["10.0.0.0/8"], &["10.1.0.0/16", "1.2.3.4"], Some(&["10.1.0.0/16"]));
        check(&["10.0.0.0/8"], &["11.0.0.1"], None);
        check(&["0.0.0.0/0"], &["::1"], None);
        check(&["::/0", "1.2.3.4"], &["2001:db8::/32", "1.2.3.4/32"], Some(&["2001:db8::/32", "1.2.3.4"]));
    }
}
