//! Which route a request belongs to. The most exact host counts; on it paths by pattern in the order of the file, then the longest path; of
//! those with the same path the ones that ask for more than a path come first.
//!
//! A site may have thousands of routes, and every request asks: hosts and paths are looked up by their texts.

use std::sync::Arc;

use hashbrown::HashMap;
use message::{Method, Request};
use vcl::Groups;

use crate::route_rules::heeds::Heeds;
use crate::settings::{FieldCondition, RouteSettings, RouteTarget, Selector};

type TextMap<T> = HashMap<Box<[u8]>, T, foldhash::fast::RandomState>;

/// A route's place in the table of its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RouteAt(u32);

impl RouteAt {
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The routes of one configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteTable {
    routes: Vec<RouteSettings>,
    /// What the words of each look at.
    heeds: Vec<Heeds>,
    hosts: TextMap<HostRoutes>,
    /// By what stands behind the `*`: `.example.org`.
    wildcards: TextMap<HostRoutes>,
    anywhere: HostRoutes,
}

/// Those of one host.
#[derive(Clone, Debug, Default)]
struct HostRoutes {
    /// Whose paths are patterns, in the order of the file.
    patterns: Vec<RouteAt>,
    /// Patterns that come behind longer paths.
    yielding: Vec<RouteAt>,
    /// Those of `/`.
    all: Vec<RouteAt>,
    /// Those of longer paths.
    prefixes: TextMap<Vec<RouteAt>>,
    longest_prefix: usize,
    /// The only one that there is, if it asks for nothing.
    single: Option<RouteAt>,
}

impl RouteTable {
    pub(crate) fn new(routes: Vec<RouteSettings>) -> RouteTable {
        let mut table = RouteTable { routes, ..RouteTable::default() };
        table.select_by_conditions();
        let methods = table.routes.iter().any(|route| !route.methods.is_empty());
        table.heeds = table.routes.iter().map(|route| Heeds { methods, ..Heeds::of(&route.rules) }).collect();
        let mut order: Vec<usize> = (0..table.routes.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(table.routes[at].conditions_count()));
        for at in order {
            let (route, place) = (&table.routes[at], RouteAt(at as u32));
            let host = match route.host.as_deref() {
                None => &mut table.anywhere,
                Some(host) => match host.strip_prefix('*') {
                    Some(suffix) => table.wildcards.entry(suffix.as_bytes().into()).or_default(),
                    None => table.hosts.entry(host.as_bytes().into()).or_default(),
                },
            };
            host.add(route, place);
        }
        let routes = &table.routes;
        let all = table.hosts.values_mut().chain(table.wildcards.values_mut()).chain([&mut table.anywhere]);
        // Of patterns the first that fits counts, whatever else it asks for.
        all.for_each(|host| {
            host.patterns.sort_by_key(|place| place.0);
            host.yielding.sort_by_key(|place| place.0);
            host.single = host.single_of(routes);
        });
        table
    }

    /// Where a field says who brings a response, the same URL has one for each of its values. Whom a field shuts out, or has answered here
    /// by `no-store`, gets none that anybody keeps.
    fn select_by_conditions(&mut self) {
        let bringing = self.routes.iter().filter(|route| route.target.may_be_stored());
        let names: Vec<Box<str>> = bringing.flat_map(|route| &route.fields).map(FieldCondition::key).collect();
        for name in names {
            for route in &mut self.routes {
                let selector = Selector::Field(name.clone());
                if !route.rules.caching.selected_by.contains(&selector) {
                    Arc::make_mut(&mut route.rules).caching.selected_by.push(selector);
                }
            }
        }
    }

    pub(crate) fn at(&self, place: RouteAt) -> &RouteSettings {
        &self.routes[place.0 as usize]
    }

    /// What the words of this one look at.
    #[inline]
    pub(crate) fn heeds(&self, place: RouteAt) -> Heeds {
        self.heeds[place.0 as usize]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &RouteSettings> {
        self.routes.iter()
    }

    /// The route of this request.
    #[inline]
    pub(crate) fn find(&self, request: &Request<'_>) -> Option<RouteAt> {
        self.find_path(request, request.path)
    }

    /// The route of this request if it were for another path.
    #[inline]
    pub(crate) fn find_path(&self, request: &Request<'_>, path: &[u8]) -> Option<RouteAt> {
        self.find_where(&request.authority.host, path, |place| self.at(*place).conditions_fit(request))
    }

    /// Does its method lead a request to another route than a GET of the same URL? Then it shares no response with that.
    pub(crate) fn is_apart_from_get(&self, request: &Request<'_>, at: RouteAt) -> bool {
        let get = Request { method: Method::Get, method_text: b"GET", ..request.clone() };
        request.method != Method::Get && self.find(&get) != Some(at)
    }

    #[inline]
    fn find_where(&self, host: &[u8], path: &[u8], fits: impl Fn(&RouteAt) -> bool) -> Option<RouteAt> {
        let of = |routes: &HostRoutes| routes.single.or_else(|| routes.find(&self.routes, path, &fits));
        if self.hosts.is_empty() && self.wildcards.is_empty() {
            return of(&self.anywhere);
        }
        let host = without_dot(host);
        let named = self.hosts.get(host).and_then(of).or_else(|| self.beneath(host).find_map(of));
        named.or_else(|| of(&self.anywhere))
    }

    /// Which of these is asked for a path on a host, if nothing else is asked of the request.
    pub(crate) fn place_of(routes: &[RouteSettings], host: &[u8], path: &[u8]) -> Option<usize> {
        let table = RouteTable::new(routes.to_vec());
        let asks_nothing = |place: &RouteAt| table.at(*place).conditions_count() == 0;
        table.find_where(host, path, asks_nothing).map(|place| place.0 as usize)
    }

    /// Could a request for this host, whatever else it is, belong to a route of which this is true?
    pub(crate) fn any_of_host(&self, host: &[u8], is_it: impl Fn(&RouteSettings) -> bool) -> bool {
        let host = without_dot(host);
        let of = self.hosts.get(host).into_iter().chain(self.beneath(host)).chain([&self.anywhere]);
        of.flat_map(HostRoutes::iter).any(|place| is_it(self.at(place)))
    }

    /// Is a host one that some route names? It is where one is for any host, and where there are no routes.
    pub(crate) fn is_host_known(&self, host: &[u8]) -> bool {
        self.routes.is_empty() || self.any_of_host(host, |_| true)
    }

    /// Those of `*.NAME` for every NAME that the host is beneath, the longest first.
    fn beneath(&self, host: &[u8]) -> impl Iterator<Item = &HostRoutes> {
        let host = if self.wildcards.is_empty() { &[] } else { host };
        let dots = host.iter().enumerate().skip(1).filter(|(_, byte)| **byte == b'.').map(|(at, _)| at);
        dots.filter_map(|at| self.wildcards.get(&host[at..]))
    }
}

/// A name with the dot of the root behind it is the same name.
#[inline]
fn without_dot(host: &[u8]) -> &[u8] {
    host.strip_suffix(b".").unwrap_or(host)
}

impl RouteTarget {
    /// Does somebody else bring what is answered, so that it may be stored?
    pub fn may_be_stored(self) -> bool {
        match self {
            RouteTarget::Origin(_) | RouteTarget::Root(_) | RouteTarget::StatusPage(_) | RouteTarget::Memcached(_) => {
                true
            }
            RouteTarget::Itself | RouteTarget::Closed => false,
        }
    }
}

impl HostRoutes {
    fn add(&mut self, route: &RouteSettings, place: RouteAt) {
        let prefix = route.path_prefix.as_bytes();
        let places = match (&route.path_pattern, prefix) {
            (Some(_), _) if route.yields_to_paths => &mut self.yielding,
            (Some(_), _) => &mut self.patterns,
            (None, b"/") => &mut self.all,
            (None, prefix) => {
                self.longest_prefix = self.longest_prefix.max(prefix.len());
                self.prefixes.entry(prefix.into()).or_default()
            }
        };
        places.push(place);
    }

    fn single_of(&self, routes: &[RouteSettings]) -> Option<RouteAt> {
        let [single] = self.iter().collect::<Vec<_>>()[..] else { return None };
        (self.all.contains(&single) && routes[single.0 as usize].conditions_count() == 0).then_some(single)
    }

    fn iter(&self) -> impl Iterator<Item = RouteAt> {
        self.patterns.iter().chain(&self.yielding).chain(&self.all).chain(self.prefixes.values().flatten()).copied()
    }

    fn find(&self, routes: &[RouteSettings], path: &[u8], fits: impl Fn(&RouteAt) -> bool) -> Option<RouteAt> {
        let matches = |place: &&RouteAt| {
            let pattern = routes[place.0 as usize].path_pattern.as_ref();
            pattern.is_some_and(|pattern| pattern.is_match(path)) && fits(place)
        };
        if let Some(found) = self.patterns.iter().find(matches) {
            return Some(*found);
        }
        if !self.prefixes.is_empty()
            && let Some(found) = self.longest(path, &fits)
        {
            return Some(found);
        }
        if let Some(found) = self.yielding.iter().find(matches) {
            return Some(*found);
        }
        self.all.iter().find(|place| fits(place)).copied()
    }

    /// By whole segments: `/a` is for `/a` and `/a/b`, not for `/ab`; `/a/` for what is beneath it.
    fn longest(&self, path: &[u8], fits: impl Fn(&RouteAt) -> bool) -> Option<RouteAt> {
        let is_end = |len: &usize| path[len - 1] == b'/' || path.get(*len).is_none_or(|next| *next == b'/');
        let ends = (1..=path.len().min(self.longest_prefix)).rev().filter(is_end);
        ends.filter_map(|len| self.prefixes.get(&path[..len])).flatten().find(|place| fits(place)).copied()
    }
}

impl RouteSettings {
    /// What the groups of its pattern are in a path, where a word of the route names one.
    pub(crate) fn groups_named(&self, path: &[u8]) -> Option<Groups> {
        let pattern = self.path_pattern.as_ref().filter(|_| self.rules.names_groups())?;
        pattern.groups(path)
    }

    /// Some origins read `post` as a POST, and so does a route that keeps somebody out. One that lets in is for the method that it names.
    pub fn guards_methods_in_either_case(&self) -> bool {
        matches!(self.target, RouteTarget::Closed) || self.rules.guards()
    }

    pub(crate) fn conditions_count(&self) -> usize {
        usize::from(!self.methods.is_empty()) + self.fields.len()
    }

    #[inline]
    pub(crate) fn conditions_fit(&self, request: &Request<'_>) -> bool {
        (self.methods.is_empty() && self.fields.is_empty()) || self.conditions_hold(request)
    }

    fn conditions_hold(&self, request: &Request<'_>) -> bool {
        // A purge is about what a GET of the same URL is given: whoever may purge that says so where that is answered.
        let meant: [&[u8]; 2] = [request.method_text, if request.method == Method::Purge { b"GET" } else { b"" }];
        let is_same = |one: &[u8], other: &[u8]| match self.guards_methods_in_either_case() {
            true => one.eq_ignore_ascii_case(other),
            false => one == other,
        };
        let is_meant = |method: &[u8]| meant.iter().any(|meant| is_same(meant, method));
        let is_one = self.methods.iter().any(|method| is_meant(method.as_bytes()));
        let shuts_out = self.target == RouteTarget::Closed;
        (self.methods.is_empty() || is_one) && self.fields.iter().all(|condition| condition.fits(request, shuts_out))
    }

    /// Which of these routes answers for a path on a host, which is in lower case, if nothing else is asked of a request.
    pub fn among<'a>(routes: &'a [RouteSettings], host: &[u8], path: &[u8]) -> Option<&'a RouteSettings> {
        RouteTable::place_of(routes, host, path).map(|at| &routes[at])
    }
}

#[cfg(test)]
mod tests {
    use message::{Authority, Fields, Scheme, TargetForm, Version};

    use super::*;
    use crate::route_rules::RouteAccess;
    use crate::settings::{RoutePattern, RouteRules};

    fn route(host: Option<&str>, path: &str, origin: usize) -> RouteSettings {
        let to = RouteSettings::to(RouteTarget::Origin(origin));
        RouteSettings { host: host.map(str::to_owned), path_prefix: path.to_owned(), ..to }
    }

    fn by_pattern(pattern: &str, origin: usize) -> RouteSettings {
        let path_pattern = Some(Arc::new(RoutePattern::new(pattern).expect("a pattern")));
        RouteSettings { path_pattern, ..route(None, "/", origin) }
    }

    fn request_for(path: &[u8]) -> Request<'_> {
        Request {
            method: Method::Other,
            method_text: b"GET",
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority: Authority::EMPTY,
            path,
            query: None,
            fields: message::FieldsView::default(),
        }
    }

    fn written(name: &str, value: &str) -> FieldCondition {
        FieldCondition::written(name, value).expect("a condition")
    }

    fn asked(routes: &[RouteSettings], method: &str, url: &str, field: Option<(&str, &str)>) -> Option<usize> {
        let (host, path) = url.split_at(url.find('/').expect("a path"));
        let mut fields = Fields::default();
        field.iter().for_each(|(name, value)| fields.push_named(name.as_bytes(), value.as_bytes()));
        let request = Request {
            method: Method::classify(method.as_bytes()),
            method_text: method.as_bytes(),
            version: Version::Http11,
            form: TargetForm::Origin,
            scheme: Scheme::Http,
            authority: Authority::parse(host.as_bytes(), Scheme::Http).expect("a host"),
            path: path.as_bytes(),
            query: None,
            fields: fields.view(),
        };
        let table = RouteTable::new(routes.to_vec());
        table.find(&request).map(|place| match table.at(place).target {
            RouteTarget::Origin(origin) => origin,
            ref other => unreachable!("{other:?}"),
        })
    }

    fn check(routes: &[RouteSettings], url: &str, expect: Option<usize>) {
        assert_eq!(asked(routes, "GET", url, None), expect, "{url}");
    }

    #[test]
    fn a_host_is_known_where_a_route_names_it_or_any() {
        let named = RouteTable::new(vec![route(Some("a.test"), "/x", 0), route(Some("*.b.test"), "/", 1)]);
        for (host, expect) in
            [("a.test", true), ("a.test.", true), ("w.b.test", true), ("b.test", false), ("evil.test", false)]
        {
            assert_eq!(named.is_host_known(host.as_bytes()), expect, "{host}");
        }
        let any = RouteTable::new(vec![route(Some("a.test"), "/", 0), route(None, "/x", 1)]);
        assert!(any.is_host_known(b"evil.test") && RouteTable::default().is_host_known(b"evil.test"));
    }

    #[test]
    fn the_most_exact_host_wins_then_the_longest_path() {
        let routes = [
            route(None, "/shared", 1),
            route(Some("*.b.test"), "/", 2),
            route(Some("a.test"), "/", 3),
            route(Some("a.test"), "/img/", 4),
            route(Some("x.b.test"), "/", 5),
            route(Some("*.c.b.test"), "/deep/er", 6),
        ];
        for (url, expect) in [
            ("a.test/", Some(3)),
            ("a.test/img/x.png", Some(4)),
            ("a.test/img", Some(3)),
            ("a.test/images", Some(3)),
            ("x.b.test/", Some(5)),
            ("y.z.b.test/", Some(2)),
            ("y.c.b.test/deep/er/x", Some(6)),
            ("y.c.b.test/deep/erx", Some(2)),
            ("b.test/", None),
            ("c.test/shared", Some(1)),
            ("c.test/shared/a", Some(1)),
            ("c.test/sharedx", None),
            ("a.test./img/x.png", Some(4)),
            ("y.z.b.test./", Some(2)),
        ] {
            check(&routes, url, expect);
        }
    }

    #[test]
    fn patterns_come_first_in_the_order_of_the_file() {
        let routes =
            [route(None, "/img", 1), by_pattern(r"\.png$", 2), by_pattern(r"^/img/big", 3), route(None, "/", 4)];
        for (url, expect) in [("a/img/x", 1), ("a/img/x.png", 2), ("a/img/big.png", 2), ("a/img/big", 3), ("a/x", 4)] {
            check(&routes, url, Some(expect));
        }
    }

    #[test]
    fn patterns_of_presets_come_behind_paths() {
        let of_preset = RouteSettings { yields_to_paths: true, ..by_pattern(r"\.pdf$", 2) };
        let routes = [route(None, "/", 1), of_preset, route(None, "/intern", 3)];
        for (url, expect) in [("a/x.pdf", 2), ("a/intern/x.pdf", 3), ("a/x", 1)] {
            check(&routes, url, Some(expect));
        }
    }

    #[test]
    fn who_asks_for_more_than_a_path_comes_first() {
        let post = RouteSettings { methods: vec!["POST".into()], ..route(None, "/api", 2) };
        let condition = written("X-Beta", "y*");
        let beta = RouteSettings { fields: vec![condition], ..route(None, "/", 3) };
        let read = RouteSettings { methods: vec!["GET".into()], ..route(None, "/read", 5) };
        let routes = [route(None, "/api", 1), post, beta, route(None, "/", 4), read];
        let check = |method, url, field, expect| assert_eq!(asked(&routes, method, url, field), Some(expect), "{url}");
        check("GET", "a/api/x", None, 1);
        check("POST", "a/api/x", None, 2);
        check("post", "a/api/x", None, 1);
        check("GET", "a/read", None, 5);
        check("PURGE", "a/read", None, 5);
        check("HEAD", "a/read", None, 4);
        check("GET", "a/x", Some(("x-beta", "yes")), 3);
        check("GET", "a/x", Some(("x-beta", "no")), 4);
        // A longer path is more exact than a condition.
        check("GET", "a/api/x", Some(("x-beta", "yes")), 1);
    }

    #[test]
    fn who_keeps_a_method_out_keeps_it_out_in_either_case_and_who_lets_one_in_lets_in_no_other() {
        let by = |target, rules: RouteRules| RouteSettings {
            methods: vec!["POST".into()],
            path_prefix: "/".to_owned(),
            rules: Arc::new(rules),
            ..RouteSettings::to(target)
        };
        let denies = RouteRules {
            access: RouteAccess { allowed: Some(Vec::new()), ..RouteAccess::default() },
            ..RouteRules::default()
        };
        for (first, fits) in [
            (by(RouteTarget::Closed, RouteRules::default()), true),
            (by(RouteTarget::Origin(1), denies), true),
            (by(RouteTarget::Origin(1), RouteRules::default()), false),
        ] {
            let routes = [first, RouteSettings::to(RouteTarget::Origin(2))];
            for method in ["post", "Post"] {
                let path: &[u8] = b"/";
                let request = Request { method_text: method.as_bytes(), ..request_for(path) };
                assert_eq!(routes[0].conditions_fit(&request), fits, "{method} {:?}", routes[0].target);
            }
        }
    }

    #[test]
    fn a_condition_may_look_away_from_the_case_of_letters() {
        let host = written("X-Beta", "(?i)*Yes");
        let beta = RouteSettings { fields: vec![host], ..route(None, "/", 3) };
        let routes = [beta, route(None, "/", 4)];
        for (value, expect) in [("yes", 3), ("OH YES", 3), ("yes!", 4), ("(?i)yEs", 3)] {
            assert_eq!(asked(&routes, "GET", "a/", Some(("x-beta", value))), Some(expect), "{value}");
        }
    }

    #[test]
    fn a_condition_may_be_for_every_other_value() {
        let others = ["!(?i)h2c", "!web*"].map(|value| written("X-Beta", value));
        let beta = RouteSettings { fields: others.into(), ..route(None, "/", 3) };
        let routes = [beta, route(None, "/", 4)];
        for (value, expect) in [("h2c", 4), ("H2C", 4), ("websocket", 4), ("Websocket", 3), ("h2c, web", 3), ("", 3)] {
            assert_eq!(asked(&routes, "GET", "a/", Some(("x-beta", value))), Some(expect), "{value}");
        }
        assert_eq!(asked(&routes, "GET", "a/", None), Some(4));
    }

    #[test]
    fn a_condition_may_be_a_pattern_or_that_the_field_says_nothing() {
        let field = "User-Agent";
        for (condition, fitting, others) in [
            (written(field, "~(?i)bot|^$"), &["GoodBot/1", "a bot b", ""][..], &["Mozilla"][..]),
            (written(field, "!~(?i)bot"), &["Mozilla", ""], &["Robot"]),
            (FieldCondition::missing(field), &[""], &["Mozilla"]),
        ] {
            let routes = [RouteSettings { fields: vec![condition], ..route(None, "/", 3) }, route(None, "/", 4)];
            for (values, expect) in [(fitting, 3), (others, 4)] {
                for value in values {
                    assert_eq!(asked(&routes, "GET", "a/", Some((field, value))), Some(expect), "{value:?} {routes:?}");
                }
            }
        }
        let routes =
            |condition| [RouteSettings { fields: vec![condition], ..route(None, "/", 3) }, route(None, "/", 4)];
        assert_eq!(asked(&routes(FieldCondition::missing(field)), "GET", "a/", None), Some(3));
        assert_eq!(
            asked(&routes(written(field, "~^$")), "GET", "a/", None),
            Some(4),
            "a field that is not there matches nothing"
        );
        assert!(FieldCondition::written(field, "~(").is_err());
    }

    #[test]
    fn where_a_pattern_reaches_its_limits_who_shuts_out_does_and_who_answers_does_not() {
        let endless = "a".repeat(4_000);
        let mut fields = Fields::default();
        fields.push_named(b"X-Beta", endless.as_bytes());
        let request = Request { fields: fields.view(), ..request_for(b"/") };
        for pattern in ["~^(a+)+$(?<!a)", "!~^(a+)+$(?<!a)"] {
            for (target, expect) in [(RouteTarget::Closed, true), (RouteTarget::Origin(1), false)] {
                let route = RouteSettings { fields: vec![written("X-Beta", pattern)], ..RouteSettings::to(target) };
                assert_eq!(route.conditions_fit(&request), expect, "{pattern} {:?}", route.target);
            }
        }
    }

    #[test]
    fn a_field_by_which_nobody_is_asked_selects_no_response() {
        let with = |target| {
            let fields = vec![FieldCondition::present("X-Bad")];
            let table =
                RouteTable::new(vec![RouteSettings { fields, target, ..route(None, "/", 1) }, route(None, "/", 2)]);
            table.iter().map(|route| route.rules.caching.selected_by.len()).collect::<Vec<_>>()
        };
        let found = [RouteTarget::Closed, RouteTarget::Itself, RouteTarget::Origin(1)].map(with);
        assert_eq!(found, [vec![0, 0], vec![0, 0], vec![1, 1]]);
    }

    #[test]
    fn thousands_of_routes_are_told_apart() {
        let mut routes: Vec<_> = (0..3_000).map(|n| route(None, &format!("/s{}/p{n}", n % 7), n)).collect();
        routes.push(route(None, "/", 9_999));
        for n in [0, 1, 6, 7, 2_999] {
            check(&routes, &format!("a/s{}/p{n}/x/y", n % 7), Some(n));
            check(&routes, &format!("a/s{}/p{n}x", n % 7), Some(9_999));
        }
    }
}
