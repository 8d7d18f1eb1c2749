//! In which order nginx holds the locations of a server against a path, as the places of one list: the first whose pattern
//! matches is the one. Whole paths come first, then `^~`, then regexes as they stand, then beginnings of paths, the longest
//! before others; those within another location come before it, for the paths alone that are its own.
//!
//! It knows what locations are called, and nothing of what stands in them.

use std::cmp::Reverse;

use proxy::settings::RoutePattern;

use crate::import::nginx_conf::Directive;

/// A location, or what of a server no location takes.
#[derive(Clone, Debug)]
pub struct Spot<'a> {
    /// The locations around it, the outermost first, and itself. Empty: the server.
    pub blocks: Vec<&'a Directive>,
    pub matcher: Matcher,
    pub kind: Kind,
    /// How its paths begin; `None`: a regex says which they are.
    pub path: Option<String>,
    /// Beginnings of longer paths, which are others'.
    longer: Vec<String>,
    compiled: PathKnown,
}

/// How a route says which paths these are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Matcher {
    /// By the beginning of a path, in whole segments.
    Path(String),
    Pattern(String),
}

/// What nginx asks before and after a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Usual,
    /// `=`
    Exact,
    /// `^~`: no regex is looked at.
    BeforeRegexes,
    /// `~` and `~*`
    Regex,
}

/// A pattern, ready to be held against paths.
type PathKnown = Option<std::sync::Arc<RoutePattern>>;

/// The places of a server in the order in which they are looked at.
pub struct LocationOrder<'a> {
    pub spots: Vec<Spot<'a>>,
    /// Locations whose paths nobody can tell: nginx would not take them, or PCRE2 does not take their regex.
    pub unknown: Vec<&'a Directive>,
    /// Locations of a path without a slash in front, which no request has.
    pub never: Vec<&'a Directive>,
}

/// A location's own word on its paths.
enum Written {
    Path(String, Kind),
    Regex(String),
    Named,
    Unknown,
}

fn written(location: &Directive) -> Written {
    let words: Vec<&str> = location.arguments.iter().map(String::as_str).collect();
    let by_regex = |regex: &str, ignores_case: bool| {
        Written::Regex(if ignores_case { format!("(?i){regex}") } else { regex.to_owned() })
    };
    match words[..] {
        [name] if name.starts_with('@') => Written::Named,
        ["=", path] => Written::Path(path.to_owned(), Kind::Exact),
        ["^~", path] => Written::Path(path.to_owned(), Kind::BeforeRegexes),
        ["~", regex] => by_regex(regex, false),
        ["~*", regex] => by_regex(regex, true),
        [attached] => match attached.strip_prefix('~').map(|regex| (regex, regex.strip_prefix('*'))) {
            Some((_, Some(regex))) => by_regex(regex, true),
            Some((regex, None)) => by_regex(regex, false),
            None => match (attached.strip_prefix('='), attached.strip_prefix("^~")) {
                (Some(path), _) => Written::Path(path.to_owned(), Kind::Exact),
                (_, Some(path)) => Written::Path(path.to_owned(), Kind::BeforeRegexes),
                _ => Written::Path(attached.to_owned(), Kind::Usual),
            },
        },
        _ => Written::Unknown,
    }
}

/// As a regex that matches this text alone.
pub fn escaped(text: &str) -> String {
    text.chars()
        .flat_map(|c| (c.is_ascii_punctuation() && !"/-_@~%".contains(c)).then_some('\\').into_iter().chain([c]))
        .collect()
}

/// A regex that is looked for anywhere, in paths of which something is said, too.
fn anywhere(region: &str, regex: &str) -> String {
    match region.is_empty() {
        true => regex.to_owned(),
        // Its groups are the first ones, whatever groups the region has: `$1` is said of them.
        false if !refers_back(region) => format!("^(?=(?s:.*?)(?:{regex})){region}"),
        false => format!("^{region}(?s:.*?)(?:{regex})"),
    }
}

/// Does a regex ask for what one of its groups has found? Then they keep their numbers.
fn refers_back(regex: &str) -> bool {
    let is_reference = |two: &[u8]| matches!(two, [b'\\', b'1'..=b'9' | b'k' | b'g']);
    regex.as_bytes().windows(2).any(is_reference)
        || ["(?R", "(?&", "(?P=", "(?P>"].iter().any(|it| regex.contains(it))
        || regex.contains("(?(")
        || regex.as_bytes().windows(3).any(|three| matches!(three, [b'(', b'?', b'0'..=b'9' | b'+']))
}

/// Can the path be said as it is sent?
fn is_sendable(path: &str) -> bool {
    path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) && !path.contains(['?', '#', '%'])
}

/// The locations of one level, and what is known of the paths that come to it.
#[derive(Clone, Default)]
struct Around<'a> {
    blocks: Vec<&'a Directive>,
    /// Lookaheads: what a path has to be to come here.
    region: String,
    is_within: bool,
}

/// What comes before the regexes of the level around, and what comes behind them.
#[derive(Default)]
struct Halves<'a> {
    early: Vec<Spot<'a>>,
    late: Vec<Spot<'a>>,
}

impl<'a> LocationOrder<'a> {
    pub fn of(server: &'a Directive) -> LocationOrder<'a> {
        let mut order = LocationOrder { spots: Vec::new(), unknown: Vec::new(), never: Vec::new() };
        let Halves { early, mut late } = order.level(server, &Around::default());
        if !late.iter().any(|spot| spot.path.as_deref() == Some("/")) {
            late.push(spot(&Around::default(), None, Matcher::Path("/".to_owned()), Kind::Usual, Some("/")));
        }
        late.sort_by_key(|spot| Reverse(spot.path.as_deref().map_or(0, str::len)));
        say_as_paths(&mut late);
        order.spots = early.into_iter().chain(late).collect();
        for spot in &mut order.spots {
            spot.compiled = RoutePattern::new(&spot.pattern()).ok().map(std::sync::Arc::new);
            if spot.compiled.is_none() {
                order.unknown.extend(spot.blocks.last());
            }
        }
        order
    }

    fn level(&mut self, block: &'a Directive, around: &Around<'a>) -> Halves<'a> {
        let (mut halves, mut paths, mut regexes) = (Halves::default(), Vec::new(), Vec::new());
        for location in block.children().iter().filter(|child| child.name == "location") {
            match written(location) {
                Written::Path(path, kind) if path.starts_with('/') => paths.push((location, path, kind)),
                Written::Regex(regex) => regexes.push((location, regex)),
                Written::Named => {}
                Written::Path(path, _) if !path.is_empty() => self.never.push(location),
                Written::Path(..) | Written::Unknown => self.unknown.push(location),
            }
        }
        paths.sort_by_key(|(_, path, _)| Reverse(path.len()));
        for (location, path, _) in paths.iter().filter(|(.., kind)| *kind == Kind::Exact) {
            let pattern = format!("^{}{}$", around.region, escaped(path));
            halves.early.push(spot(around, Some(location), Matcher::Pattern(pattern), Kind::Exact, Some(path)));
        }
        paths.retain(|(.., kind)| *kind != Kind::Exact);
        for at in 0..paths.len() {
            self.path(&paths, at, around, &mut halves);
        }
        // Within another location `^~` keeps the regexes of its own level off, and not those around.
        let kept_off = paths.iter().filter(|(.., kind)| around.is_within && *kind == Kind::BeforeRegexes);
        let kept_off: String = kept_off.map(|(_, path, _)| format!("(?!{})", escaped(path))).collect();
        for (location, regex) in regexes {
            let region = format!("{}{kept_off}", around.region);
            let beneath = around.inside(location, format!("{region}(?=(?s:.*?)(?:{regex}))"));
            let Halves { early, late } = self.level(location, &beneath);
            halves.early.extend(early.into_iter().chain(late));
            let pattern = Matcher::Pattern(anywhere(&region, &regex));
            halves.early.push(spot(around, Some(location), pattern, Kind::Regex, None));
        }
        halves
    }

    fn path(
        &mut self,
        paths: &[(&'a Directive, String, Kind)],
        at: usize,
        around: &Around<'a>,
        halves: &mut Halves<'a>,
    ) {
        let (location, path, kind) = &paths[at];
        let is_longer =
            |(_, other, _): &&(&Directive, String, Kind)| other.len() > path.len() && other.starts_with(path);
        let not = |(_, other, _): &(&Directive, String, Kind)| format!("(?!{})", escaped(other));
        let longer: String = paths.iter().filter(is_longer).map(not).collect();
        let region = match (around.is_within, longer.is_empty(), path.as_str()) {
            (false, true, "/") => String::new(),
            _ => format!("{}(?={}){longer}", around.region, escaped(path)),
        };
        let beneath = around.inside(location, region);
        let Halves { early, late } = self.level(location, &beneath);
        halves.early.extend(early);
        match kind {
            Kind::BeforeRegexes if !around.is_within => {
                // A path would be asked behind the pattern of the location around it.
                halves.early.extend(late.into_iter().map(Spot::by_pattern));
                let others: Vec<_> = paths.iter().filter(is_longer).filter(|(.., kind)| *kind == Kind::Usual).collect();
                let longer: String = others.iter().copied().map(not).collect();
                let pattern = Matcher::Pattern(format!("^{}{longer}{}", around.region, escaped(path)));
                let longer = others.into_iter().map(|(_, path, _)| path.clone()).collect();
                halves.early.push(Spot { longer, ..spot(around, Some(location), pattern, *kind, Some(path)) });
            }
            _ => {
                halves.late.extend(late);
                let is_plain = !around.region.contains("(?!") && !around.region.contains("(?s:");
                let matcher = match is_plain {
                    true => Matcher::Path(path.clone()),
                    false => Matcher::Pattern(format!("^{}{}", around.region, escaped(path))),
                };
                halves.late.push(spot(around, Some(location), matcher, *kind, Some(path)));
            }
        }
    }
}

impl<'a> Around<'a> {
    fn inside(&self, location: &'a Directive, region: String) -> Around<'a> {
        let blocks = self.blocks.iter().copied().chain([location]).collect();
        Around { blocks, region, is_within: true }
    }
}

fn spot<'a>(
    around: &Around<'a>,
    location: Option<&'a Directive>,
    matcher: Matcher,
    kind: Kind,
    path: Option<&str>,
) -> Spot<'a> {
    let blocks = around.blocks.iter().copied().chain(location).collect();
    Spot { blocks, matcher, kind, path: path.map(str::to_owned), longer: Vec::new(), compiled: None }
}

/// Beginnings of paths are `path` where that means the same: whole segments, and no pattern that would come before.
fn say_as_paths(late: &mut [Spot<'_>]) {
    let path_of = |spot: &Spot<'_>| spot.path.clone().unwrap_or_default();
    let by_pattern = |spot: &Spot<'_>| matches!(spot.matcher, Matcher::Pattern(_)) || !path_of(spot).ends_with('/');
    let patterns: Vec<String> = late.iter().filter(|spot| by_pattern(spot)).map(path_of).collect();
    let all: Vec<String> = late.iter().map(path_of).collect();
    for spot in late {
        let path = path_of(spot);
        let is_behind = patterns.iter().any(|pattern| path.starts_with(pattern.as_str()) && path != *pattern);
        if let (Matcher::Path(_), true) = (&spot.matcher, is_behind || !path.ends_with('/')) {
            spot.matcher = Matcher::Pattern(format!("^{}", escaped(&path)));
        }
        spot.longer =
            all.iter().filter(|other| other.len() > path.len() && other.starts_with(&path)).cloned().collect();
    }
}

impl Spot<'_> {
    /// A regex for its paths, if it is asked in its turn.
    pub fn pattern(&self) -> String {
        match &self.matcher {
            Matcher::Path(path) => format!("^{}", escaped(path)),
            Matcher::Pattern(pattern) => pattern.clone(),
        }
    }

    /// The same with the path of its folder, which nginx leads to the path with a slash.
    pub fn pattern_with_folder(&self) -> String {
        let pattern = self.pattern();
        match self.path.as_deref().filter(|path| pattern == format!("^{}", escaped(path))) {
            Some(path) if path.len() > 1 && path.ends_with('/') => {
                format!("^{}(?:/|$)", escaped(path.trim_end_matches('/')))
            }
            _ => pattern,
        }
    }

    /// The same of a location by the beginning of a path, with what stands behind that as its first group.
    pub fn pattern_with_rest(&self) -> String {
        let longer: String = self.longer.iter().map(|path| format!("(?!{})", escaped(path))).collect();
        match &self.matcher {
            Matcher::Path(path) => format!("^{longer}{}(.*)$", escaped(path)),
            // Regexes around it may have groups, and this one is the first.
            Matcher::Pattern(pattern) => match (escaped(self.path.as_deref().unwrap_or_default()), pattern) {
                (own, pattern) if *pattern == format!("^{own}") => format!("{pattern}(.*)$"),
                (own, pattern) => format!("^(?={own}(.*)$){}", pattern.trim_start_matches('^')),
            },
        }
    }

    /// Is this path one of those that are others', for they are longer?
    pub fn is_shorter_than(&self, path: &str) -> bool {
        self.longer.iter().any(|longer| longer == path)
    }

    fn by_pattern(self) -> Self {
        Spot { matcher: Matcher::Pattern(self.pattern()), ..self }
    }

    /// Those of its paths that a regex matches, where nothing longer comes first.
    pub fn where_it_matches(&self, regex: &str) -> String {
        let longer: String = self.longer.iter().map(|path| format!("(?!{})", escaped(path))).collect();
        match &self.matcher {
            Matcher::Path(path) if path == "/" => anywhere(&longer, regex),
            Matcher::Path(path) => anywhere(&format!("(?={}){longer}", escaped(path)), regex),
            Matcher::Pattern(pattern) => anywhere(&format!("(?=(?s:.*?)(?:{pattern})){longer}"), regex),
        }
    }

    /// A path that no request has as it is written here, or a pattern that PCRE2 does not take.
    pub fn is_unsayable(&self) -> bool {
        self.compiled.is_none() || self.path.as_deref().is_some_and(|path| !is_sendable(path))
    }

    /// What cannot be compiled matches: nobody knows what it guards.
    pub fn matches(&self, path: &str) -> bool {
        self.compiled.as_ref().is_none_or(|pattern| pattern.is_match(path.as_bytes()))
    }

    /// May groups of the location's regex be named as they are?
    pub fn has_own_groups(&self) -> bool {
        self.kind == Kind::Regex && self.blocks.len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn location(head: &str, children: Vec<Directive>) -> Directive {
        Directive { block: Some(children), ..directive(&format!("location {head}")) }
    }

    fn server(children: Vec<Directive>) -> Directive {
        Directive { block: Some(children), ..directive("server") }
    }

    fn usual(heads: &[&str]) -> Directive {
        server(heads.iter().map(|head| location(head, Vec::new())).collect())
    }

    /// The place that a path belongs to.
    fn find(order: &LocationOrder<'_>, path: &str) -> Option<usize> {
        order.spots.iter().position(|spot| spot.matches(path))
    }

    /// The location of each path, as nginx would choose it.
    fn check(server: &Directive, paths: &[(&str, &str)]) {
        let order = LocationOrder::of(server);
        for (path, expect) in paths {
            let found = find(&order, path).map(|at| &order.spots[at]);
            let named = found
                .and_then(|spot| spot.blocks.last())
                .map_or("server".to_owned(), |block| block.arguments.join(" "));
            assert_eq!(named, *expect, "{path}");
        }
    }

    #[test]
    fn the_longest_beginning_counts_unless_a_regex_matches() {
        let heads = ["/", "= /", "/docs/", "^~ /img/", "~* \\.(gif|jpg)$", "~ ^/docs/a", "/api", "/api/v2/"];
        check(
            &usual(&heads),
            &[
                ("/", "= /"),
                ("/index.html", "/"),
                ("/docs/x", "/docs/"),
                ("/docs/a.html", "~ ^/docs/a"),
                ("/docs/a.GIF", "~* \\.(gif|jpg)$"),
                ("/img/a.gif", "^~ /img/"),
                ("/img", "/"),
                ("/apix", "/api"),
                ("/api/v2/x", "/api/v2/"),
                ("/api/v2/x.jpg", "~* \\.(gif|jpg)$"),
            ],
        );
        check(&usual(&["/a/"]), &[("/b", "server"), ("/a/x", "/a/")]);
    }

    #[test]
    fn a_longer_path_takes_regexes_back() {
        let heads = ["^~ /a/", "/a/b/", "~ \\.php$"];
        check(&usual(&heads), &[("/a/x.php", "^~ /a/"), ("/a/b/x.php", "~ \\.php$"), ("/a/b/x", "/a/b/")]);
    }

    #[test]
    fn locations_within_others_come_first_and_for_their_paths_alone() {
        let within = vec![location("~ \\.php$", Vec::new()), location("/admin/keys/", Vec::new())];
        let all = server(vec![
            location("/admin/", within),
            location("/admin/x/", Vec::new()),
            location("~ \\.(php|html)$", Vec::new()),
            location("/", Vec::new()),
        ]);
        check(
            &all,
            &[
                ("/admin/a.php", "~ \\.php$"),
                ("/admin/x/a.php", "~ \\.(php|html)$"),
                ("/a.php", "~ \\.(php|html)$"),
                ("/admin/keys/a.html", "~ \\.(php|html)$"),
                ("/admin/keys/a", "/admin/keys/"),
                ("/admin/a", "/admin/"),
                ("/x", "/"),
            ],
        );
        let in_regex = server(vec![location("~ ^/u/", vec![location("~ \\.php$", Vec::new())]), location("/", vec![])]);
        check(&in_regex, &[("/u/a.php", "~ \\.php$"), ("/a.php", "/"), ("/u/a", "~ ^/u/")]);
    }

    #[test]
    fn what_nobody_can_tell_is_said() {
        let server = usual(&["~ (a", "relative", "/"]);
        let order = LocationOrder::of(&server);
        assert_eq!((order.unknown.len(), order.never.len()), (1, 1));
        // What is guarded there may be anything.
        assert_eq!(find(&order, "/x"), Some(0));
    }

    #[test]
    fn paths_are_said_as_paths_where_that_means_the_same() {
        let shown = |heads: &[&str]| -> Vec<Matcher> {
            LocationOrder::of(&usual(heads)).spots.iter().map(|spot| spot.matcher.clone()).collect()
        };
        let path = |text: &str| Matcher::Path(text.to_owned());
        let pattern = |text: &str| Matcher::Pattern(text.to_owned());
        assert_eq!(shown(&["/a/", "/"]), [path("/a/"), path("/")]);
        assert_eq!(shown(&["/a", "/a/b/"]), [pattern("^/a/b/"), pattern("^/a"), path("/")]);
        assert_eq!(shown(&["= /x.y", "/"]), [pattern("^/x\\.y$"), path("/")]);
    }
}
