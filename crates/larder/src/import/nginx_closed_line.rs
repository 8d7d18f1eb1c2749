//! The line of a route that closes spellings of a path: sources where they are files, and what another route answers.

use crate::import::import_findings::literal;
use crate::import::nginx_closed_paths::{kept_from, leading_out, matches};
use crate::import::nginx_found::{AnsweredBy, FoundLocation};
use crate::import::nginx_found_server::FoundServer;
use crate::import::nginx_order::escaped;
use crate::import::nginx_rulings::{CaseOf, Ruling};

/// What a script has behind its name.
pub const BEHIND_A_SCRIPT: &str = "/any-name.php/behind";

/// The paths of those who have.
const BEHIND_ANY_SCRIPT: &str = "(?i)[.]php/";

/// All that is no script, nor a directory, nor what answers where there is none.
const NO_SCRIPT: &str = r"^(?!.*(?:[.]php(?:/|$)|/$|/not-in-nginx[.]html$))";

impl FoundServer<'_, '_> {
    /// Paths that are closed: sources where they are files, and spellings of what another route answers.
    pub fn closed_line(&self, at: usize, shown_elsewhere: &[String], runs_scripts: bool) -> Option<String> {
        let found = &self.found[at];
        let is_root = matches!(found.answer, AnsweredBy::Files | AnsweredBy::Scripts(_));
        let mut closed: Vec<String> = Vec::new();
        match (&found.answer, self.sources) {
            (AnsweredBy::Files, Some(sources)) if !runs_scripts => closed.push(sources.to_owned()),
            (AnsweredBy::Scripts(_), _) if !names_scripts_alone(&found.spot.pattern()) => {
                closed.push(NO_SCRIPT.to_owned());
            }
            _ => {}
        }
        // What is no file is the server's own script's to answer, where it has one.
        let takes_what_is_behind =
            found.level.scripts.splits() && !found.level.looks_for_whole_path && self.of_server.fallback.is_none();
        if matches!(found.answer, AnsweredBy::Scripts(_)) && !takes_what_is_behind {
            closed.push(BEHIND_ANY_SCRIPT.to_owned());
        }
        if found.answer == AnsweredBy::Files && runs_scripts {
            let is_run = self
                .find(BEHIND_A_SCRIPT)
                .is_some_and(|to| to < at && matches!(self.found[to].answer, AnsweredBy::Scripts(_)));
            let runs_behind = |path: &String| {
                let to = self.find(&format!("{path}/behind"));
                to.is_some_and(|to| matches!(self.found[to].answer, AnsweredBy::Scripts(_)))
            };
            let but_for = shown_elsewhere.iter().filter(|path| path.ends_with(".php") && runs_behind(path));
            let but_for: String = but_for.map(|path| format!("(?!{}/)", escaped(path))).collect();
            if !is_run {
                closed.push(format!("(?i)^{but_for}.*[.]php/"));
            }
            closed.extend(self.scripts_run_by_nobody(at, shown_elsewhere));
        }
        if found.answer.is_for_all_spellings() || is_root {
            let others = self.found[..at].iter().filter(|other| {
                // What is closed is that in every spelling, but not the path of its folder.
                let is_answered = other.answer != AnsweredBy::Closed;
                (is_answered || other.is_led_to_its_slash())
                    && (!other.answers_like(found)
                        || runs_scripts && other.shows_files_alone()
                        || is_root && other.falls_back_unlike(found))
            });
            // And longer paths, which are asked behind it.
            let longer = self.found[at + 1..].iter().filter(|other| {
                (!other.treats_alike(found) || is_root && other.falls_back_unlike(found))
                    && other.spot.path.as_ref().is_some_and(|path| found.spot.is_shorter_than(path))
            });
            closed.extend(others.chain(longer).map(own_pattern));
            // A folder's path is led to its slash by whoever answers there, alike or not.
            let is_open = |other: &&FoundLocation<'_>| !is_root && other.answer != AnsweredBy::Closed;
            let folders = self.found.iter().filter(is_open).filter(|other| !closed.contains(&own_pattern(other)));
            let folders: Vec<String> = folders.filter_map(|other| self.folder_pattern(other)).collect();
            closed.extend(folders);
            let cases =
                self.found[..=at].iter().flat_map(|other| other.rulings.cases.iter().map(move |case| (other, case)));
            let is_other =
                |(_, case): &(&FoundLocation<'_>, &CaseOf)| case.methods.is_empty() && case.ruling != Ruling::Closed;
            let patterns = cases
                .filter(is_other)
                .filter_map(|(other, case)| Some(other.spot.where_it_matches(case.pattern.as_deref()?)));
            closed.extend(patterns);
        }
        closed.extend(kept_from(&self.found, at));
        closed.retain(|pattern| !shown_elsewhere.iter().any(|path| matches(pattern, path)));
        // What answers here under other paths has its own, which may lie elsewhere.
        let but_for: String = shown_elsewhere.iter().map(|path| format!("(?!{}$)", escaped(path))).collect();
        let runs_others = found.answer == AnsweredBy::Files && runs_scripts;
        let out = leading_out(&self.found, at, runs_others);
        closed.extend(out.map(|pattern| pattern.replacen('^', &format!("^{but_for}"), 1)));
        closed.sort_unstable();
        closed.dedup();
        let closed: Vec<String> = closed.iter().map(|pattern| literal(pattern)).collect();
        (!closed.is_empty()).then(|| format!("closed_paths = [{}]", closed.join(", ")))
    }
}

impl FoundServer<'_, '_> {
    /// Scripts of a root that nginx shows as files, for no location that runs any has their paths: larder would run them beside the one that
    /// answers for others. `None`: all are run by another location.
    fn scripts_run_by_nobody(&self, at: usize, shown_elsewhere: &[String]) -> Option<String> {
        let own = &self.found[at].spot;
        let runs = |other: &&FoundLocation<'_>| matches!(other.answer, AnsweredBy::Scripts(_));
        let longer =
            |other: &&FoundLocation<'_>| other.spot.path.as_ref().is_some_and(|path| own.is_shorter_than(path));
        let before = self.found[..at].iter().filter(runs);
        let runners = before.chain(self.found[at + 1..].iter().filter(runs).filter(longer));
        let patterns: Vec<String> = runners.map(|other| other.spot.pattern()).collect();
        if patterns.iter().any(|pattern| matches_every_script(pattern)) {
            return None;
        }
        let shown = shown_elsewhere.iter().filter(|path| path.ends_with(".php"));
        let but_for = shown.map(|path| format!("(?!{}$)", escaped(path)));
        let but_for: String =
            but_for.chain(patterns.iter().map(|pattern| format!("(?!(?s:.*?)(?:{pattern}))"))).collect();
        Some(format!("^{but_for}(?i:.*[.]php)$"))
    }
}

/// Does a pattern match the path of whatever is a script?
fn matches_every_script(pattern: &str) -> bool {
    const EVERY: [&str; 7] = [r"\.php", "[.]php", r"[^/]\.php", r"[^/]+\.php", r".+\.php", r"^.+\.php", r"^(.+\.php)"];
    let pattern = pattern.strip_prefix("(?i)").unwrap_or(pattern);
    EVERY.iter().any(|every| pattern.strip_prefix(every).is_some_and(|behind| BEHIND_A_NAME.contains(&behind)))
}

/// What a pattern may have behind the name of a script.
const BEHIND_A_NAME: [&str; 8] = ["", "$", "(?:$|/)", "(?:/|$)", "($|/)", "(/|$)", "(?:/.*)?$", "(/.*)?$"];

/// Is it plain that a pattern matches scripts and nothing else? `/php-fpm-status` matches whatever lies there.
fn names_scripts_alone(pattern: &str) -> bool {
    BEHIND_A_NAME.iter().filter_map(|behind| pattern.strip_suffix(behind)).any(|begin| {
        let ends_in_script = begin.ends_with(r"\.php") || begin.ends_with("[.]php");
        ends_in_script && !has_choice(begin)
    })
}

/// Is there a `|` outside of all parentheses?
fn has_choice(pattern: &str) -> bool {
    let mut depth = 0;
    let mut is_escaped = false;
    pattern.chars().any(|c| {
        match c {
            _ if std::mem::take(&mut is_escaped) => {}
            '\\' => is_escaped = true,
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' => return depth <= 0,
            _ => {}
        }
        false
    })
}

/// What a location answers, with the path of its folder where nginx leads from that to it.
pub fn own_pattern(found: &FoundLocation<'_>) -> String {
    match found.is_led_to_its_slash() {
        true => found.spot.pattern_with_folder(),
        false => found.spot.pattern(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ends_like_a_script_names_scripts_alone() {
        for pattern in
            [r"\.php$", r"[.]php$", r"^/index\.php$", r"^/(?:index|cron)\.php(?:$|/)", r"[^/]\.php(/|$)", r"\.php"]
        {
            assert!(names_scripts_alone(pattern), "{pattern}");
        }
        for pattern in ["/php-fpm-status", "^/php/", r"/status|\.php$", r"\.(php|html)$", r"\.php-status", "", "php$"] {
            assert!(!names_scripts_alone(pattern), "{pattern}");
        }
        assert!(!names_scripts_alone(r"a\|b|c\.php$") && names_scripts_alone(r"a\|b\.php$"));
    }
}
