//! `map` of nginx: what its variables are, as far as routes can say it. A map without conditions is a text; one of hosts makes servers of
//! a server; one of methods, paths and hosts makes rules of an `if`. Where a variable is used in another way, it is one that larder has not.

use std::collections::BTreeMap;

use crate::import::nginx_conf::Directive;
use crate::import::nginx_field_cases::{self, FieldCase};
use crate::import::nginx_order::escaped;

/// All maps of a configuration, by the names of their variables.
#[derive(Clone, Debug, Default)]
pub struct Maps(BTreeMap<String, Map>);

#[derive(Clone, Debug)]
struct Map {
    source: String,
    default: String,
    /// As they are asked: whole texts, then regexes in their order.
    entries: Vec<(Key, String)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Key {
    /// Of any case.
    Text(String),
    Regex(String),
    /// Something that is neither, and that nobody here compares.
    Pattern,
}

/// For which requests a variable has values that are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapTest {
    /// For none, or all.
    Never,
    Always,
    /// For these, each with its value.
    For(Vec<(MapCase, String)>),
    /// For all but these methods.
    ButForMethods(Vec<String>),
    /// Only for who says so of itself, and may leave it out.
    ByWordOfClient,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapCase {
    Method(String),
    /// A regex for paths.
    Path(String),
    Host(String),
    /// One of these holds.
    Fields(Vec<FieldCase>),
}

impl Maps {
    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive) -> bool {
        if directive.name != "map" {
            return false;
        }
        let mut map = Map { source: directive.argument(0).to_owned(), default: String::new(), entries: Vec::new() };
        let has_hostnames = directive.children().iter().any(|line| line.name == "hostnames");
        let mut regexes = Vec::new();
        for line in directive.children() {
            let value = line.argument(0).to_owned();
            match line.name.as_str() {
                "hostnames" | "volatile" => {}
                "default" => map.default = value,
                name => match name.strip_prefix('~').map(|regex| (regex, regex.strip_prefix('*'))) {
                    Some((_, Some(regex))) => regexes.push((Key::Regex(format!("(?i){regex}")), value)),
                    Some((regex, None)) => regexes.push((Key::Regex(regex.to_owned()), value)),
                    None => {
                        let text = name.strip_prefix('\\').unwrap_or(name).to_lowercase();
                        match text.strip_prefix('.').filter(|_| has_hostnames) {
                            Some(rest) => {
                                map.entries.push((Key::Text(rest.to_owned()), value.clone()));
                                map.entries.push((Key::Text(format!("*.{rest}")), value));
                            }
                            // Without `hostnames` a text that no host is.
                            None if !has_hostnames && text.contains('*') => map.entries.push((Key::Pattern, value)),
                            None => map.entries.push((Key::Text(text), value)),
                        }
                    }
                },
            }
        }
        map.entries.extend(regexes);
        self.0.insert(directive.argument(1).to_owned(), map);
        true
    }

    /// Variables that always are the same text.
    pub fn constants(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_constant =
            |map: &&Map| !map.default.contains('$') && map.entries.iter().all(|(_, value)| *value == map.default);
        self.0
            .iter()
            .filter_map(move |(name, map)| Some((name.as_str(), Some(map).filter(is_constant)?.default.as_str())))
    }

    /// The variable that says the same, where one only says whether there is something: `map $cookie_a $b { default 1; "" 0; }`.
    pub fn presence_of<'a>(&'a self, variable: &'a str) -> &'a str {
        let is_presence = |map: &&Map| {
            let is_empty = matches!(&map.entries[..], [(Key::Text(text), value)] if text.is_empty() && !is_true(value));
            is_empty && is_true(&map.default) && !map.default.contains('$')
        };
        self.0.get(variable).filter(is_presence).map_or(variable, |map| &map.source)
    }

    /// For which requests is the variable such a value? `None`: nobody can tell.
    pub fn test(&self, variable: &str, is_wanted: impl Fn(&str) -> bool) -> Option<MapTest> {
        let map = self.0.get(variable)?;
        let values = map.entries.iter().map(|(_, value)| value).chain([&map.default]);
        if values.clone().any(|value| value.contains('$')) {
            return None;
        }
        if values.clone().all(|value| is_wanted(value)) {
            return Some(MapTest::Always);
        }
        if !values.clone().any(|value| is_wanted(value)) {
            return Some(MapTest::Never);
        }
        if is_wanted(&map.default) {
            return map.but_for(is_wanted);
        }
        if map.source.starts_with("$http_") {
            return map.fields(is_wanted).or(map.is_by_word_of_client().then_some(MapTest::ByWordOfClient));
        }
        // One that is not wanted takes requests from those behind it.
        let first_other = map.entries.iter().position(|(_, value)| !is_wanted(value)).unwrap_or(map.entries.len());
        let regexes = map.entries.iter().enumerate().filter(|(_, (key, _))| matches!(key, Key::Regex(_)));
        if regexes.clone().any(|(at, (_, value))| at > first_other && is_wanted(value)) {
            return None;
        }
        // One more exact that is not wanted takes some from a `*.NAME` that is.
        let wanted_texts = map.entries.iter().filter_map(|(key, value)| match key {
            Key::Text(text) if is_wanted(value) && text.starts_with("*.") => Some(text),
            _ => None,
        });
        let is_excepted = |wide: &String| {
            map.entries
                .iter()
                .any(|(key, value)| matches!(key, Key::Text(text) if !is_wanted(value) && covers(wide, text)))
        };
        if wanted_texts.into_iter().any(is_excepted) {
            return None;
        }
        let wanted = map.entries.iter().filter(|(_, value)| is_wanted(value));
        let cases: Option<Vec<_>> = wanted.map(|(key, value)| Some((map.case(key)?, value.clone()))).collect();
        cases.map(MapTest::For)
    }

    /// Is the variable made of what a client says of itself, and may leave out?
    pub fn is_by_word_of_client(&self, variable: &str) -> bool {
        self.0.get(variable).is_some_and(Map::is_by_word_of_client)
    }

    /// Servers in the place of those that ask by a map of hosts, one for each host that is named.
    pub fn by_host(&self, servers: &[&Directive]) -> Vec<Directive> {
        let names: Vec<&String> = servers.iter().flat_map(|server| names_of(server)).collect();
        let mut found = Vec::new();
        for server in servers {
            let mut of_hosts = self.0.iter().filter(|(name, map)| map.is_of_hosts() && uses(server, name));
            let (Some((variable, map)), None) = (of_hosts.next(), of_hosts.next()) else {
                found.push((*server).clone());
                continue;
            };
            let is_all = names_of(server).all(|name| name == "_");
            let is_unclear = |name: &&String| name.starts_with('~') || name.ends_with('*');
            let has_wide = map.entries.iter().any(|(key, _)| matches!(key, Key::Text(host) if host.starts_with("*.")));
            // Whose a host is must be known: what asks by the variable is closed then.
            if names.iter().any(is_unclear) || has_wide && !is_all {
                found.push((*server).clone());
                continue;
            }
            let others: Vec<&String> = servers
                .iter()
                .filter(|other| !std::ptr::eq(**other, *server))
                .flat_map(|other| names_of(other))
                .collect();
            let is_own = |host: &&String| {
                let is_named = names_of(server).any(|name| covers(name, host));
                let is_of_other = |name: &&String| match is_named {
                    true => name.eq_ignore_ascii_case(host),
                    false => covers(name, host),
                };
                (is_named || is_all) && !others.iter().any(is_of_other)
            };
            let texts = map.entries.iter().filter_map(|(key, value)| match key {
                Key::Text(host) => Some((host, value)),
                Key::Regex(_) | Key::Pattern => None,
            });
            let parts: Vec<(&String, &String)> = texts.filter(|(host, _)| is_own(host)).collect();
            let mut rest = with_text(server, variable, &map.default);
            let mut left: Vec<String> = names_of(server).cloned().collect();
            left.retain(|name| !parts.iter().any(|(host, _)| *host == name));
            // The name of nobody: what is left of the server has none of its own.
            if left.is_empty() && names_of(server).next().is_some() {
                left.push("_".to_owned());
            }
            name_it(&mut rest, &left, true);
            found.push(rest);
            for (host, value) in parts {
                let mut part = with_text(server, variable, value);
                name_it(&mut part, std::slice::from_ref(host), false);
                found.push(part);
            }
        }
        found
    }
}

/// Does `if` take it for true?
pub fn is_true(value: &str) -> bool {
    !matches!(value, "" | "0")
}

impl Map {
    fn case(&self, key: &Key) -> Option<MapCase> {
        match (self.source.as_str(), key) {
            ("$request_method", Key::Text(method)) => Some(MapCase::Method(method.to_uppercase())),
            ("$uri" | "$document_uri", Key::Text(path)) => Some(MapCase::Path(format!("(?i)^{}$", escaped(path)))),
            ("$uri" | "$document_uri", Key::Regex(regex)) => Some(MapCase::Path(regex.clone())),
            ("$host", Key::Text(host)) if !host.is_empty() => Some(MapCase::Host(host.clone())),
            _ => None,
        }
    }

    /// Each entry is met where none before it is.
    fn fields(&self, is_wanted: impl Fn(&str) -> bool) -> Option<MapTest> {
        let (mut before, mut cases): (Vec<String>, Vec<(MapCase, String)>) = (Vec::new(), Vec::new());
        for (key, value) in &self.entries {
            let regex = match key {
                Key::Text(text) => format!("(?i)^{}$", escaped(text)),
                Key::Regex(regex) => regex.clone(),
                Key::Pattern => continue,
            };
            match is_wanted(value) {
                true => cases.push((
                    MapCase::Fields(nginx_field_cases::of_regex_behind(&self.source, &regex, &before)?),
                    value.clone(),
                )),
                false => before.push(regex),
            }
        }
        Some(MapTest::For(cases))
    }

    /// Wanted for all but those that are named.
    fn but_for(&self, is_wanted: impl Fn(&str) -> bool) -> Option<MapTest> {
        let others = self.entries.iter().filter(|(_, value)| !is_wanted(value));
        let methods: Option<Vec<String>> = others
            .map(|(key, _)| match self.case(key) {
                Some(MapCase::Method(method)) => Some(method),
                _ => None,
            })
            .collect();
        methods.map(MapTest::ButForMethods)
    }

    fn is_by_word_of_client(&self) -> bool {
        matches!(self.source.as_str(), "$http_user_agent" | "$http_referer")
    }

    fn is_of_hosts(&self) -> bool {
        let is_plain = |(key, value): &(Key, String)| {
            let is_host = matches!(key, Key::Text(host) if !host.is_empty() && !host.ends_with('*'));
            is_host && !value.contains('$')
        };
        // A port may stand in $http_host.
        self.source == "$host"
            && !self.entries.is_empty()
            && !self.default.contains('$')
            && self.entries.iter().all(is_plain)
    }
}

fn names_of(server: &Directive) -> impl Iterator<Item = &String> {
    server.children().iter().filter(|child| child.name == "server_name").flat_map(|names| &names.arguments)
}

/// Is this host one of a name's?
pub fn covers(name: &str, host: &str) -> bool {
    let (name, beneath) = match (name.strip_prefix("*."), name.strip_prefix('.')) {
        (Some(rest), _) => (rest, true),
        (None, Some(rest)) => (rest, true),
        (None, None) => (name, false),
    };
    host.eq_ignore_ascii_case(name) || beneath && host.to_lowercase().ends_with(&format!(".{}", name.to_lowercase()))
}

/// Is this variable in a text, and not only the beginning of another's name?
pub fn is_named_in(text: &str, variable: &str) -> bool {
    with_value(text, variable, "").len() != text.len()
}

/// A text with a value in place of a variable.
pub fn with_value(text: &str, variable: &str, value: &str) -> String {
    let mut pieces = text.split(variable);
    let mut out = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_longer = piece.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        out.extend([if is_longer { variable } else { value }, piece]);
    }
    out
}

/// Is somebody asked by the variable, or are files of it shown?
fn uses(block: &Directive, variable: &str) -> bool {
    block.children().iter().any(|child| {
        let is_place = child.name.ends_with("_pass") || matches!(child.name.as_str(), "root" | "alias");
        is_place && child.arguments.iter().any(|word| is_named_in(word, variable)) || uses(child, variable)
    })
}

fn with_text(directive: &Directive, variable: &str, text: &str) -> Directive {
    let mut found = directive.clone();
    for word in found.arguments.iter_mut().filter(|word| is_named_in(word, variable)) {
        *word = with_value(word, variable, text);
    }
    if let Some(block) = &mut found.block {
        block.iter_mut().for_each(|child| *child = with_text(child, variable, text));
    }
    found
}

/// Another name for a server; `is_rest`: it may go on being for all others.
fn name_it(server: &mut Directive, names: &[String], is_rest: bool) {
    let Some(block) = &mut server.block else { return };
    let Some(first) = block.iter().find(|child| child.name == "server_name").or(block.first()).cloned() else { return };
    block.retain(|child| child.name != "server_name");
    if !names.is_empty() {
        block.push(Directive { name: "server_name".to_owned(), arguments: names.to_vec(), block: None, ..first });
    }
    if !is_rest {
        for listen in block.iter_mut().filter(|child| child.name == "listen") {
            listen.arguments.retain(|word| word != "default_server" && word != "default");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn block(head: &str, lines: &[&str]) -> Directive {
        let line = |line: &&str| {
            let mut line = directive(line);
            line.arguments.iter_mut().for_each(|word| *word = word.replace('\'', ""));
            line.name = line.name.replace('\'', "");
            line
        };
        Directive { block: Some(lines.iter().map(line).collect()), ..directive(head) }
    }

    fn maps(head: &str, lines: &[&str]) -> Maps {
        let mut maps = Maps::default();
        assert!(maps.take(&block(head, lines)) && !maps.take(&directive("geo $x")));
        maps
    }

    #[test]
    fn a_map_that_is_always_the_same_is_a_text() {
        let constants = |lines: &[&str]| {
            let maps = maps("map $host $x", lines);
            maps.constants().map(|(name, text)| format!("{name} {text}")).collect::<Vec<_>>()
        };
        assert_eq!(constants(&["default a"]), ["$x a"]);
        assert_eq!(constants(&["default a", "b a"]), ["$x a"]);
        assert!(constants(&["default a", "b c"]).is_empty() && constants(&["default $host"]).is_empty());
    }

    #[test]
    fn a_condition_on_a_map_is_one_on_what_it_is_made_of() {
        let test = |source: &str, lines: &[&str]| maps(&format!("map {source} $x"), lines).test("$x", is_true);
        let path = |regex: &str| (MapCase::Path(regex.to_owned()), "1".to_owned());
        assert_eq!(
            test("$request_method", &["default 1", "GET 0", "HEAD 0"]),
            Some(MapTest::ButForMethods(vec!["GET".to_owned(), "HEAD".to_owned()]))
        );
        assert_eq!(
            test("$request_method", &["default 0", "POST 1"]),
            Some(MapTest::For(vec![(MapCase::Method("POST".to_owned()), "1".to_owned())]))
        );
        assert_eq!(
            test("$uri", &["/a 1", "~^/b/ 1", "~*^/c/ 1"]),
            Some(MapTest::For(vec![path("(?i)^/a$"), path("^/b/"), path("(?i)^/c/")]))
        );
        assert_eq!(
            test("$host", &["a.test 1"]),
            Some(MapTest::For(vec![(MapCase::Host("a.test".to_owned()), "1".to_owned())]))
        );
        let by_fields = |lines: &[&str]| match test("$http_user_agent", lines) {
            Some(MapTest::For(cases)) => cases
                .into_iter()
                .flat_map(|(case, _)| match case {
                    MapCase::Fields(fields) => fields.iter().map(FieldCase::line).collect(),
                    other => vec![format!("{other:?}")],
                })
                .collect(),
            other => vec![format!("{other:?}")],
        };
        assert_eq!(
            by_fields(&["default 0", "~bot 1", "'' 1", "curl 0", "~*x 1"]),
            [
                "header = { user-agent = false }",
                "header = { user-agent = '~^(?!(?s:.*?)(?:(?i)^curl$))(?s:.*?)(?:bot)' }",
                "header = { user-agent = '~^(?!(?s:.*?)(?:(?i)^curl$))(?s:.*?)(?:(?i)x)' }"
            ]
        );
        assert_eq!(by_fields(&["default 0", "~( 1"]), ["Some(ByWordOfClient)"]);
        assert_eq!(
            (test("$uri", &["default 0"]), test("$uri", &["default 1"])),
            (Some(MapTest::Never), Some(MapTest::Always))
        );
        for (source, lines) in [
            // What comes first is not wanted, and takes some away.
            ("$uri", &["~^/a/b 0", "~^/a 1"][..]),
            ("$uri", &["/a/b 0", "~^/a 1"]),
            ("$uri", &["default 1", "/a 0"]),
            ("$host", &["~^a 1"]),
            ("$remote_addr", &["10.0.0.1 1"]),
            ("$http_user_agent", &["default 1", "~good 0"]),
            ("$uri", &["default $host"]),
        ] {
            assert_eq!(test(source, lines), None, "{source} {lines:?}");
        }
        assert_eq!(Maps::default().test("$x", is_true), None);
    }

    #[test]
    fn whether_there_is_something_is_said_by_that() {
        let of = |lines: &[&str]| maps("map $cookie_sid $x", lines).presence_of("$x").to_owned();
        assert_eq!(of(&["default 1", "'' 0"]), "$cookie_sid");
        assert_eq!((of(&["default 0", "'' 1"]), of(&["default 1", "a 0"])), ("$x".to_owned(), "$x".to_owned()));
    }

    #[test]
    fn a_map_of_hosts_makes_servers() {
        let server = |lines: &[&str]| block("server", lines);
        let made = |lines: &[&str], own: &[&str]| {
            let other = server(&["server_name other.test"]);
            let made = maps("map $host $to", lines).by_host(&[&server(own), &other]);
            let shown =
                |server: &Directive| server.children().iter().map(Directive::text).collect::<Vec<_>>().join("; ");
            made.iter().take(made.len() - 1).map(shown).collect::<Vec<_>>()
        };
        let pass = "proxy_pass http://$to";
        assert_eq!(
            made(
                &["default one", "b.test two", "c.test three"],
                &["listen 80 default_server", "server_name a.test b.test", pass]
            ),
            [
                "listen 80 default_server; proxy_pass http://one; server_name a.test",
                "listen 80; proxy_pass http://two; server_name b.test",
            ]
        );
        assert_eq!(made(&["b.test two", "other.test x"], &["server_name _", pass]).len(), 2);
        assert_eq!(made(&["b.test two"], &["server_name b.test", pass])[0], "proxy_pass http://; server_name _");
        for (lines, own) in [(&["~b two"][..], pass), (&["b.test $host"], pass), (&["b.test two"], "add_header X $to")]
        {
            assert_eq!(made(lines, &["server_name b.test", own]), [format!("server_name b.test; {own}")], "{lines:?}");
        }
    }
}
