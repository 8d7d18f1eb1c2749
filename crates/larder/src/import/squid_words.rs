//! What squid says of an accelerator's answers beside who is asked: how long they live (`refresh_pattern`) and how fast they go out
//! (`delay_pools`), as the words of its routes. A forward proxy has no routes: there each line is listed.

use proxy::settings::RoutePattern;

use crate::import::import_findings::{Findings, literal, quoted};
use crate::import::nginx_conf::Directive;

/// The lifetimes of squid's packaged file: what they mean larder does by itself.
const USUAL_PATTERNS: [&str; 5] =
    ["^ftp:", "^gopher:", "-i (/cgi-bin/|\\?) 0", "(Release|Packages(.gz)*)$", ". 0 20% 4320"];

const PACKAGED: &str = "as packaged: without a lifetime of its own a response lives a tenth of its age";

/// The lines of a file that are about this, in their order.
#[derive(Default)]
pub struct SquidWords {
    patterns: Vec<Directive>,
    pools: Vec<Directive>,
}

/// What becomes of them.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ImportedWords {
    /// Lines of every route.
    pub all: Vec<String>,
    /// Regexes for paths, and the lines of their routes in the place of `ttl` above.
    pub by_pattern: Vec<(String, Vec<String>)>,
}

impl SquidWords {
    /// Takes a directive in. False: it is another one.
    pub fn take(&mut self, directive: &Directive) -> bool {
        match directive.name.as_str() {
            "refresh_pattern" => self.patterns.push(directive.clone()),
            "delay_pools" | "delay_class" | "delay_parameters" | "delay_access" | "delay_initial_bucket_level" => {
                self.pools.push(directive.clone());
            }
            _ => return false,
        }
        true
    }

    /// `is_forward`: there are no routes.
    pub fn for_routes(&self, is_forward: bool, findings: &mut Findings) -> ImportedWords {
        let mut words = ImportedWords::default();
        self.lives(is_forward, &mut words, findings);
        match self.bandwidth().filter(|_| !is_forward) {
            Some((line, is_of_each)) => {
                let of_each = "each answer goes no faster than this, and a client may have several at a time";
                let of_all = "each answer goes no faster than this: what all take together has no bound";
                for pool in &self.pools {
                    match is_of_each {
                        true => findings.note(pool, of_each),
                        false => findings.leave(pool, of_all),
                    }
                }
                words.all.push(line);
            }
            None => self.pools.iter().for_each(|pool| {
                findings.leave(pool, "one bound for everybody of an accelerator becomes bandwidth, and no other");
            }),
        }
        words
    }

    fn lives(&self, is_forward: bool, words: &mut ImportedWords, findings: &mut Findings) {
        // The first that fits counts: behind one that is not carried over nothing may live longer.
        let mut is_known = true;
        for line in &self.patterns {
            let written = line.arguments.join(" ");
            let is_usual = USUAL_PATTERNS.iter().any(|usual| written.starts_with(usual));
            let life =
                RefreshLine::read(line).filter(|life| is_known && !is_forward && !(is_usual && life.minutes_min == 0));
            match life {
                Some(life) => {
                    let ttl: Vec<String> = (life.minutes_min > 0)
                        .then(|| format!("ttl = \"{}m\"", life.minutes_min))
                        .into_iter()
                        .collect();
                    match life.pattern {
                        Some(pattern) => words.by_pattern.push((pattern, ttl)),
                        None => {
                            words.all.extend(ttl);
                            // Nothing is left for those behind it.
                            is_known = false;
                        }
                    }
                    findings.note(line, "so long lives what does not say how long; shares of an age are a tenth");
                }
                None if is_usual => {
                    is_known &= written.starts_with('^');
                    findings.note(line, PACKAGED);
                }
                None => {
                    is_known = false;
                    findings.leave(line, "lifetimes are the response's own, or a route's (ttl) by path");
                }
            }
        }
    }

    /// The line that says how fast answers go, and whether that is what each client has in squid, too.
    fn bandwidth(&self) -> Option<(String, bool)> {
        let one = |name: &str| {
            let mut lines = self.pools.iter().filter(|line| line.name == name);
            lines.next().filter(|_| lines.next().is_none())
        };
        let mut access = self.pools.iter().filter(|line| line.name == "delay_access");
        let is_for_all = access.next().is_some_and(|line| line.arguments[1..] == ["allow", "all"])
            && access.all(|line| line.arguments[1..] == ["deny", "all"]);
        let is_one = one("delay_pools").is_some_and(|pools| pools.argument(0) == "1") && is_for_all;
        let bounds: Vec<Option<(u64, u64)>> =
            one("delay_parameters")?.arguments.iter().skip(1).map(|written| bound(written)).collect::<Option<_>>()?;
        let (bound, is_of_each) = match (one("delay_class")?.argument(1), &bounds[..]) {
            ("1", [Some(all)]) => (all, false),
            ("2", [Some(all), None]) => (all, false),
            ("2", [None, Some(each)]) => (each, true),
            _ => return None,
        };
        let (rate, after) = bound;
        is_one.then(|| (format!("bandwidth = {{ rate = \"{rate}B/s\", after = {after} }}"), is_of_each))
    }
}

/// `RATE/MAX` in bytes; `-1/-1` and `none`: no bound. `None`: it is no such thing, or nothing would go out.
fn bound(written: &str) -> Option<Option<(u64, u64)>> {
    if matches!(written, "-1/-1" | "none") {
        return Some(None);
    }
    let (rate, max) = written.split_once('/')?;
    Some(Some((rate.parse().ok().filter(|rate| *rate > 0)?, max.parse().ok()?)))
}

/// A line that routes can say.
struct RefreshLine {
    /// `None`: for everything.
    pattern: Option<String>,
    minutes_min: u64,
}

impl RefreshLine {
    /// `[-i] REGEX MIN PERCENT MAX`, without options, of the end of a path: squid looks at whole URLs.
    fn read(line: &Directive) -> Option<RefreshLine> {
        let ignores_case = line.argument(0) == "-i";
        let words: Vec<&str> = line.arguments.iter().skip(usize::from(ignores_case)).map(String::as_str).collect();
        let [regex, min, _, _] = words[..] else { return None };
        let minutes_min = min.parse().ok()?;
        if regex == "." {
            return Some(RefreshLine { pattern: None, minutes_min });
        }
        let is_of_an_end = regex.ends_with('$') && !regex.ends_with("\\$") && !regex.contains(['^', '?', ':']);
        let pattern = if ignores_case { format!("(?i){regex}") } else { regex.to_owned() };
        let is_said =
            is_of_an_end && !regex.contains("|") | regex.ends_with(")$") && RoutePattern::new(&pattern).is_ok();
        is_said.then_some(RefreshLine { pattern: Some(pattern), minutes_min })
    }
}

impl ImportedWords {
    /// The routes of an origin: the lines of each.
    pub fn routes(&self, host: Option<String>, origin: &str) -> Vec<Vec<String>> {
        let lines = |pattern: Option<&String>, words: &[String]| -> Vec<String> {
            let pattern = pattern.map(|pattern| format!("path_pattern = {}", literal(pattern)));
            let origin = format!("origin = {}", quoted(origin));
            host.clone().into_iter().chain(pattern).chain([origin]).chain(words.iter().cloned()).collect()
        };
        let by_pattern = self.by_pattern.iter().map(|(pattern, own)| {
            let others = self.all.iter().filter(|line| !line.starts_with("ttl"));
            lines(Some(pattern), &own.iter().chain(others).cloned().collect::<Vec<_>>())
        });
        by_pattern.chain([lines(None, &self.all)]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::nginx_conf::directive;

    fn words(lines: &[&str], is_forward: bool) -> (ImportedWords, usize) {
        let (mut words, mut findings) = (SquidWords::default(), Findings::default());
        assert!(lines.iter().all(|line| words.take(&directive(line))));
        let made = words.for_routes(is_forward, &mut findings);
        for lines in made.routes(None, "a") {
            let text = format!("[origin.a]\nurls = \"http://a\"\n[[route]]\n{}\n", lines.join("\n"));
            assert!(crate::config::read(&text).is_ok(), "{text}");
        }
        (made, findings.left_count())
    }

    fn check(lines: &[&str], all: &[&str], by_pattern: &[(&str, &[&str])], left: usize) {
        let owned = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect::<Vec<_>>();
        let by_pattern = by_pattern.iter().map(|(pattern, lines)| ((*pattern).to_owned(), owned(lines))).collect();
        assert_eq!(words(lines, false), (ImportedWords { all: owned(all), by_pattern }, left), "{lines:?}");
    }

    #[test]
    fn lives_by_the_end_of_a_path_are_those_of_routes() {
        let images = "refresh_pattern -i \\.(gif|png)$ 1440 50% 43200";
        let ttl: &[&str] = &["ttl = \"1440m\""];
        check(&[images], &[], &[("(?i)\\.(gif|png)$", ttl)], 0);
        check(&[images, "refresh_pattern . 5 20% 60"], &["ttl = \"5m\""], &[("(?i)\\.(gif|png)$", ttl)], 0);
        // First that says nothing of a time keeps what stands behind it from saying one.
        let none: &[&str] = &[];
        check(
            &["refresh_pattern \\.rpm$ 0 90% 1", "refresh_pattern . 5 20% 60"],
            &["ttl = \"5m\""],
            &[("\\.rpm$", none)],
            0,
        );
        check(&["refresh_pattern -i (/cgi-bin/|\\?) 0 0% 0", "refresh_pattern . 5 20% 60"], &[], &[], 1);
        check(&["refresh_pattern ^ftp: 1440 20% 10080", "refresh_pattern . 0 20% 4320"], &[], &[], 0);
        for unsaid in [
            "\\.gif$ 5 20% 9 override-expire",
            "^http://a/ 5 20% 9",
            "\\.gif 5 20% 9",
            "\\.gif$|\\.png$ 5 20% 9",
            "a?b$ 5 20% 9",
        ] {
            check(&[&format!("refresh_pattern {unsaid}")], &[], &[], 1);
        }
        assert_eq!(words(&[images, "refresh_pattern . 5 20% 60"], true), (ImportedWords::default(), 2));
    }

    #[test]
    fn one_bound_for_everybody_is_how_fast_answers_go() {
        let pools = |class: &str, bounds: &str, access: &str| {
            let lines = [
                "delay_pools 1".to_owned(),
                format!("delay_class 1 {class}"),
                format!("delay_parameters 1 {bounds}"),
                format!("delay_access 1 {access}"),
            ];
            let (made, left) = words(&lines.iter().map(String::as_str).collect::<Vec<_>>(), false);
            (made.all.first().cloned().unwrap_or_default(), left)
        };
        let slow = "bandwidth = { rate = \"64000B/s\", after = 128000 }".to_owned();
        assert_eq!(pools("2", "-1/-1 64000/128000", "allow all"), (slow.clone(), 0));
        // What all have together is each one's own now.
        assert_eq!(pools("1", "64000/128000", "allow all"), (slow.clone(), 4));
        for (class, bounds, access) in [
            ("2", "64000/64000 8000/8000", "allow all"),
            ("3", "-1/-1 -1/-1 8000/8000", "allow all"),
            ("2", "-1/-1 8000/8000", "allow staff"),
            ("2", "-1/-1 0/0", "allow all"),
        ] {
            assert_eq!(pools(class, bounds, access), (String::new(), 4), "{class} {bounds}");
        }
    }
}
