//! What a list of rules of another server decides, the first that a request is in, as the `[[route]]`s of a larder.toml: in the same
//! order, for each host that a rule names.
//!
//! A route is not chosen by who asks, only refused by it. So where a rule opens something to some clients and refuses the others, the
//! route has `allow` or `basic_auth`; where it refuses some and the next ones are for all, these have `deny` or `rate_limit`. What
//! neither says is closed, and listed. It knows no server's words.

use std::collections::BTreeSet;

use crate::import::import_findings::{Findings, literal, quoted};
use crate::import::nginx_conf::Directive;
use crate::import::request_cells::{ClientGuard, RequestCell};

/// More routes than this are none that a person could look through.
const ROUTES_MAX: usize = 5_000;

/// One rule's word.
#[derive(Clone, Debug)]
pub struct DecidedCell {
    pub cell: RequestCell,
    /// The lines of the route that answers; `None`: nobody is answered.
    pub lines: Option<Vec<String>>,
    /// The status of a refusal for asking too often.
    pub refused_with: u16,
    /// The line that says so.
    pub line: Directive,
}

/// What is said of clients on a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ClientWords {
    allowed: Option<Vec<String>>,
    denied: Vec<String>,
    users: Option<String>,
    rates: Vec<String>,
}

/// A refusal that holds for whatever comes behind it within its cell.
struct RefusedBefore {
    cell: RequestCell,
    words: ClientWords,
}

#[derive(Clone, Debug)]
struct MadeRoute {
    cell: RequestCell,
    lines: Vec<String>,
}

/// The routes, each as the lines of its section. `realm`: what users are told that they are asked for.
pub fn routes(decided: &[DecidedCell], realm: &str, findings: &mut Findings) -> Result<Vec<Vec<String>>, String> {
    let mut made: Vec<MadeRoute> = Vec::new();
    let mut refused: Vec<RefusedBefore> = Vec::new();
    for (at, one) in decided.iter().enumerate() {
        let cell = one.cell.without_guards().with_fields_once();
        let own = own_words(one.cell.guards()).filter(|_| !one.cell.asks_a_field_twice());
        let words = match (own, &one.lines) {
            (Some(words), _) if words == ClientWords::default() => words,
            (Some(words), _) if !words.rates.is_empty() => {
                refused.push(refused_for_often(one, &words, &decided[at + 1..], findings));
                continue;
            }
            (Some(words), Some(lines)) => {
                if let Some(also) = refused_of_the_rest(one, &decided[at + 1..]) {
                    if !also.is_empty() {
                        findings.leave(&one.line, "who is let in here is refused by later lines as others are");
                    }
                    let all = refused.iter().chain(&also);
                    made.extend(refused_before((cell, ClientWords::default()), all, lines, realm));
                    continue;
                }
                if !refuses_the_rest(one, &decided[at + 1..]) {
                    findings.leave(&one.line, "who is not let in here is refused, whatever a later line says of him");
                }
                words
            }
            (Some(words), None) => match refusal_of(words, one.refused_with) {
                Some(words) => {
                    refused.push(RefusedBefore { cell, words });
                    continue;
                }
                None => {
                    findings.leave(&one.line, "closed: routes cannot refuse some clients by what is asked here");
                    made.push(MadeRoute { cell, lines: closed() });
                    continue;
                }
            },
            (None, _) => {
                findings.leave(&one.line, "closed: routes cannot ask all of this of a client");
                made.push(MadeRoute { cell, lines: closed() });
                continue;
            }
        };
        match &one.lines {
            None => made.push(MadeRoute { cell, lines: closed() }),
            Some(lines) => made.extend(refused_before((cell, words), refused.iter(), lines, realm)),
        }
        if made.len() > ROUTES_MAX {
            return Err(format!("more than {ROUTES_MAX} routes would come of it"));
        }
    }
    Ok(by_host(&made))
}

/// Routes of somebody who answers, in the parts in which the same is refused.
fn refused_before<'a>(
    one: (RequestCell, ClientWords),
    refused: impl Iterator<Item = &'a RefusedBefore>,
    lines: &[String],
    realm: &str,
) -> Vec<MadeRoute> {
    let parts = with_refusals(one, refused).into_iter();
    let with = |words: ClientWords| lines.iter().cloned().chain(words.lines(realm)).collect();
    parts.map(|(cell, words)| MadeRoute { cell, lines: with(words) }).collect()
}

/// Who asks too often is refused in all of a cell: routes do not ask at first who it is.
fn refused_for_often(
    one: &DecidedCell,
    words: &ClientWords,
    later: &[DecidedCell],
    findings: &mut Findings,
) -> RefusedBefore {
    let guards = one.cell.guards();
    let is_rate = |guard: &ClientGuard| matches!(guard, ClientGuard::TooOften(_));
    let cell = one.cell.without_guards().with_fields_once();
    let is_of_them = |next: &&DecidedCell| next.lines.is_some() && cell.meet(&next.cell.without_guards()).is_some();
    let has_them =
        |next: &DecidedCell| guards.iter().filter(|guard| !is_rate(guard)).all(|own| next.cell.guards().contains(own));
    if one.lines.is_some() {
        findings.leave(&one.line, "who asks too often is refused, and led nowhere else");
    } else if !reached(&cell, later).filter(is_of_them).all(has_them) {
        findings.leave(&one.line, "who asks too often is refused, whoever it is");
    }
    findings.note(&one.line, "each route counts its own requests, and not those of others");
    // Where these are let through it says no status: the next line about as many does.
    let is_same = |next: &&DecidedCell| {
        next.lines.is_none() && guards.iter().any(|own| is_rate(own) && next.cell.guards().contains(own))
    };
    let saying = one.lines.as_ref().and_then(|_| later.iter().find(is_same)).unwrap_or(one);
    let rates = ClientWords { rates: words.rates.clone(), ..ClientWords::default() };
    RefusedBefore { cell, words: refusal_of(rates, saying.refused_with).unwrap_or_default() }
}

/// What those of a cell may come to behind a rule: up to the first that is for them all.
fn reached<'a>(cell: &'a RequestCell, later: &'a [DecidedCell]) -> impl Iterator<Item = &'a DecidedCell> {
    let is_last = |next: &DecidedCell| next.cell.guards().is_empty() && cell.is_within(&next.cell);
    let end = later.iter().position(is_last).map_or(later.len(), |at| at + 1);
    later[..end].iter()
}

/// Is everybody else in the cell of a rule that lets some in answered alike by later ones? Then what these refuse before.
fn refused_of_the_rest(one: &DecidedCell, later: &[DecidedCell]) -> Option<Vec<RefusedBefore>> {
    let [guard] = one.cell.guards() else { return None };
    let (cell, mut refused) = (one.cell.without_guards(), Vec::new());
    for next in later {
        let all = next.cell.without_guards();
        if next.cell.guards().contains(guard) || cell.meet(&all).is_none() {
            continue;
        }
        let words = own_words(next.cell.guards()).filter(|_| !next.cell.asks_a_field_twice())?;
        match &next.lines {
            lines if words == ClientWords::default() => match *lines == one.lines {
                true if cell.is_within(&all) => return Some(refused),
                true => {}
                false => return None,
            },
            _ if !words.rates.is_empty() => {
                refused.push(refused_for_often(next, &words, &[], &mut Findings::default()));
            }
            Some(_) => return None,
            None => refused.push(RefusedBefore { cell: all, words: refusal_of(words, next.refused_with)? }),
        }
    }
    None
}

fn closed() -> Vec<String> {
    vec!["closed = true".to_owned()]
}

/// `None`: two things of a kind are asked, which a route cannot say.
fn own_words(guards: &[ClientGuard]) -> Option<ClientWords> {
    let mut words = ClientWords::default();
    for guard in guards {
        match guard {
            ClientGuard::From(networks) if words.allowed.is_none() => words.allowed = Some(networks.clone()),
            ClientGuard::LoggedIn(file) if words.users.is_none() => words.users = Some(file.clone()),
            ClientGuard::TooOften(rate) if words.rates.is_empty() => words.rates.push(rate.clone()),
            _ => return None,
        }
    }
    Some(words)
}

/// What keeps out those of whom exactly this is asked.
fn refusal_of(words: ClientWords, status: u16) -> Option<ClientWords> {
    match words {
        ClientWords { allowed: Some(networks), users: None, rates, .. } if rates.is_empty() => {
            Some(ClientWords { denied: networks, ..ClientWords::default() })
        }
        ClientWords { allowed: None, users: None, rates, .. } => {
            let status = if (400..=599).contains(&status) { status } else { 429 };
            let rates = rates.iter().map(|rate| rate.replace("STATUS", &status.to_string())).collect();
            Some(ClientWords { rates, ..ClientWords::default() })
        }
        _ => None,
    }
}

/// Is everybody else refused who is in the cell of a rule that lets some in? Asked of those who fail each of its guards, or several.
fn refuses_the_rest(one: &DecidedCell, later: &[DecidedCell]) -> bool {
    let guards = one.cell.guards();
    (1..1_u32 << guards.len()).all(|failed| {
        let fails =
            |guard: &ClientGuard| guards.iter().position(|own| own == guard).is_some_and(|at| failed >> at & 1 == 1);
        refuses_who_fails(one, later, &fails)
    })
}

fn refuses_who_fails(one: &DecidedCell, later: &[DecidedCell], fails: &dyn Fn(&ClientGuard) -> bool) -> bool {
    let cell = one.cell.without_guards();
    for next in later {
        let all = next.cell.without_guards();
        if next.cell.guards().iter().any(fails) || cell.meet(&all).is_none() {
            continue;
        }
        let is_met = next.cell.guards().iter().all(|guard| one.cell.guards().contains(guard));
        match next.lines.is_some() {
            true => return false,
            false if is_met && cell.is_within(&all) => return true,
            false => {}
        }
    }
    false
}

/// The parts of a cell with what was refused before in each.
fn with_refusals<'a>(
    one: (RequestCell, ClientWords),
    refused: impl Iterator<Item = &'a RefusedBefore>,
) -> Vec<(RequestCell, ClientWords)> {
    let mut parts = vec![one];
    for before in refused {
        let mut divided = Vec::new();
        for (cell, words) in parts {
            if cell.is_within(&before.cell) {
                divided.push((cell, words.and(&before.words)));
            } else {
                let both = cell.meet(&before.cell).map(|both| both.with_fields_once());
                divided.extend(both.map(|both| (both, words.and(&before.words))));
                divided.push((cell, words));
            }
        }
        parts = divided;
    }
    parts
}

impl ClientWords {
    fn and(&self, other: &ClientWords) -> ClientWords {
        let mut words = self.clone();
        words.denied.extend(other.denied.iter().filter(|network| !self.denied.contains(network)).cloned());
        words.rates.extend(other.rates.iter().filter(|rate| !self.rates.contains(rate)).cloned());
        words
    }

    fn lines(&self, realm: &str) -> Vec<String> {
        let list = |networks: &[String]| networks.iter().map(|one| quoted(one)).collect::<Vec<_>>().join(", ");
        let mut lines = Vec::new();
        lines.extend(self.allowed.as_ref().map(|networks| format!("allow = [{}]", list(networks))));
        if !self.denied.is_empty() {
            lines.push(format!("deny = [{}]", list(&self.denied)));
        }
        if let Some(file) = &self.users {
            lines.push(format!("basic_auth = {{ file = {}, realm = {} }}", quoted(file), quoted(realm)));
        }
        if !self.rates.is_empty() {
            lines.push(format!("rate_limit = [{}]", self.rates.join(", ")));
        }
        lines
    }
}

/// A name that comes before others in larder's order is asked first: each has all that is about it, in the order of the rules.
fn by_host(made: &[MadeRoute]) -> Vec<Vec<String>> {
    let hosts: BTreeSet<&String> = made.iter().filter_map(|route| route.cell.hosts()).flatten().collect();
    let mut lists: Vec<(Vec<String>, Vec<&MadeRoute>)> = Vec::new();
    for host in hosts {
        let mut own = reachable(made.iter().filter(|route| route.cell.is_for(host)));
        // What is left is found behind the name: for names that it is beneath, and for all.
        while own.last().is_some_and(|route| route.cell.hosts().is_none()) {
            own.pop();
        }
        let is_same =
            |one: &[&MadeRoute]| one.len() == own.len() && one.iter().zip(&own).all(|(a, b)| std::ptr::eq(*a, *b));
        match lists.iter_mut().find(|(_, known)| is_same(known)) {
            Some((hosts, _)) => hosts.push(host.clone()),
            None => lists.push((vec![host.clone()], own)),
        }
    }
    lists.push((Vec::new(), reachable(made.iter().filter(|route| route.cell.hosts().is_none()))));
    lists.iter().flat_map(|(hosts, list)| list.iter().map(|route| section(route, hosts))).collect()
}

/// Without those of which all are in one before.
fn reachable<'a>(routes: impl Iterator<Item = &'a MadeRoute>) -> Vec<&'a MadeRoute> {
    let mut list: Vec<&MadeRoute> = Vec::new();
    for route in routes {
        let own = route.cell.of_any_host();
        // Two that ask for the same are no configuration.
        let asks = |cell: &RequestCell| (cell.pattern(), cell.methods().cloned(), cell.fields().to_vec());
        let is_reached =
            |known: &&MadeRoute| own.is_within(&known.cell.of_any_host()) || asks(&own) == asks(&known.cell);
        if !list.iter().any(is_reached) {
            list.push(route);
        }
    }
    list
}

fn section(route: &MadeRoute, hosts: &[String]) -> Vec<String> {
    let cell = &route.cell;
    let list = |names: &mut dyn Iterator<Item = &String>| names.map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let mut lines = vec![match cell.pattern() {
        Some(pattern) => format!("path_pattern = {}", literal(&pattern)),
        None if cell.is_all_of_its_hosts() => "path = \"/\"".to_owned(),
        // Patterns come before paths: all of the list are patterns but the last.
        None => "path_pattern = '^/'".to_owned(),
    }];
    if !hosts.is_empty() {
        lines.push(format!("host = [{}]", list(&mut hosts.iter())));
    }
    if let Some(methods) = cell.methods() {
        lines.push(format!("method = [{}]", list(&mut methods.iter())));
    }
    if !cell.fields().is_empty() {
        let value = |value: &Option<String>| value.as_ref().map_or("true".to_owned(), |value| quoted(value));
        let fields: Vec<String> =
            cell.fields().iter().map(|(name, asked)| format!("{} = {}", quoted(name), value(asked))).collect();
        lines.push(format!("header = {{ {} }}", fields.join(", ")));
    }
    lines.extend(route.lines.iter().cloned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;
    use crate::import::path_tests::PathTest;
    use crate::import::request_cells::Asks;

    fn decided(asks: &[Asks], lines: Option<&str>) -> DecidedCell {
        let cell = asks.iter().try_fold(RequestCell::default(), |cell, asks| cell.asking(asks)).unwrap();
        let lines = lines.map(|line| vec![line.to_owned()]);
        DecidedCell { cell, lines, refused_with: 429, line: directive("rule x") }
    }

    fn check(decided: &[DecidedCell], expect: &[&str], left: usize) {
        let mut findings = Findings::default();
        let made = routes(decided, "ours", &mut findings).unwrap();
        let shown: Vec<String> = made.iter().map(|lines| lines.join("; ")).collect();
        assert_eq!(shown, expect);
        assert_eq!(findings.left_count(), left, "{findings:?}");
    }

    fn path(regex: &str) -> Asks {
        Asks::Path(PathTest::beginning(regex.trim_start_matches('^')))
    }

    fn host(name: &str) -> Asks {
        Asks::Host([name.to_owned()].into())
    }

    fn from(network: &str) -> Asks {
        Asks::Guard(ClientGuard::From(vec![network.to_owned()]))
    }

    #[test]
    fn the_first_that_a_request_is_in_decides() {
        let all = [
            decided(&[path("^/closed")], None),
            decided(&[host("a"), path("^/x")], Some("origin = \"a\"")),
            decided(&[host("a")], Some("origin = \"b\"")),
            decided(&[], Some("origin = \"c\"")),
            decided(&[path("^/never")], Some("origin = \"d\"")),
        ];
        check(
            &all,
            &[
                "path_pattern = '^/closed'; host = [\"a\"]; closed = true",
                "path_pattern = '^/x'; host = [\"a\"]; origin = \"a\"",
                "path = \"/\"; host = [\"a\"]; origin = \"b\"",
                "path_pattern = '^/closed'; closed = true",
                "path = \"/\"; origin = \"c\"",
            ],
            0,
        );
    }

    #[test]
    fn clients_are_let_in_or_kept_out() {
        // All others are refused behind it.
        let office = [
            decided(&[path("^/a"), from("10.0.0.0/8")], Some("x")),
            decided(&[path("^/a")], None),
            decided(&[], Some("y")),
        ];
        let expect = ["path_pattern = '^/a'; x; allow = [\"10.0.0.0/8\"]", "path = \"/\"; y"];
        check(&office, &expect, 0);
        // Some are refused, and the rest goes on.
        let bad = [decided(&[from("10.0.0.1")], None), decided(&[path("^/a")], Some("x")), decided(&[], Some("y"))];
        let expect = ["path_pattern = '^/a'; x; deny = [\"10.0.0.1\"]", "path = \"/\"; y; deny = [\"10.0.0.1\"]"];
        check(&bad, &expect, 0);
        // A part of what comes behind.
        let part = [decided(&[path("^/a"), from("10.0.0.1")], None), decided(&[], Some("y"))];
        check(&part, &["path_pattern = '^/a'; y; deny = [\"10.0.0.1\"]", "path = \"/\"; y"], 0);
        // Others would go elsewhere: they are refused, and it is said.
        let elsewhere = [decided(&[from("10.0.0.1")], Some("x")), decided(&[], Some("y"))];
        check(&elsewhere, &["path = \"/\"; x; allow = [\"10.0.0.1\"]"], 1);
        // Others are answered alike: nobody has to be told from them.
        let alike =
            [decided(&[from("10.0.0.1")], Some("x")), decided(&[from("10.0.0.2")], None), decided(&[], Some("x"))];
        check(&alike, &["path = \"/\"; x; deny = [\"10.0.0.2\"]"], 1);
        let alike = [decided(&[path("^/a"), from("10.0.0.1")], Some("x")), decided(&[], Some("x"))];
        check(&alike, &["path_pattern = '^/a'; x", "path = \"/\"; x"], 0);
        // All that is let in by the same.
        let same = [
            decided(&[path("^/a"), from("10.0.0.1")], Some("x")),
            decided(&[from("10.0.0.1")], Some("y")),
            decided(&[], None),
        ];
        check(
            &same,
            &["path_pattern = '^/a'; x; allow = [\"10.0.0.1\"]", "path = \"/\"; y; allow = [\"10.0.0.1\"]"],
            0,
        );
    }

    #[test]
    fn what_cannot_be_asked_of_a_client_is_closed() {
        let login = |file: &str| Asks::Guard(ClientGuard::LoggedIn(file.to_owned()));
        check(&[decided(&[login("a"), login("b")], Some("x"))], &["path = \"/\"; closed = true"], 1);
        check(&[decided(&[login("a")], None), decided(&[], Some("y"))], &["path = \"/\"; closed = true"], 1);
        let too_often = Asks::Guard(ClientGuard::TooOften("{ requests = 5, status = STATUS }".to_owned()));
        let rate = "path = \"/\"; y; rate_limit = [{ requests = 5, status = 429 }]";
        check(&[decided(std::slice::from_ref(&too_often), None), decided(&[], Some("y"))], &[rate], 0);
        check(&[decided(std::slice::from_ref(&too_often), Some("slow")), decided(&[], Some("y"))], &[rate], 1);
        // Beside who it is: a password is asked for behind it, and networks make no difference.
        let known =
            [decided(&[login("a"), too_often.clone()], None), decided(&[login("a")], Some("y")), decided(&[], None)];
        let both = "path = \"/\"; y; basic_auth = { file = \"a\", realm = \"ours\" }; rate_limit = [{ requests = 5, status = 429 }]";
        check(&known, &[both], 0);
        let office = [
            decided(&[too_often.clone(), from("10.0.0.1")], Some("y")),
            decided(std::slice::from_ref(&too_often), None),
            decided(&[], Some("y")),
        ];
        check(&office, &[rate], 1);
        let office = [decided(&[from("10.0.0.1")], Some("y")), decided(&[too_often], None), decided(&[], Some("y"))];
        check(&office, &[rate], 1);
    }
}
