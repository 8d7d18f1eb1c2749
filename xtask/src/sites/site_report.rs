//! What came of a play in front of a site: what should not have been, and what was seen, counted.

use std::collections::BTreeMap;

use crate::sites::site_promise::Promise;

/// So many violations are printed; all are counted.
const SHOWN_MAX: usize = 12;
/// Answers that nobody finished are no judgement; more than one in so many make the run worth nothing.
const UNANSWERED_ONE_IN: usize = 10;

/// Classes of the requests for each public page, at the end of a play.
pub const FIRST_LOOK: &str = "public pages, a first time";
pub const SECOND_LOOK: &str = "public pages, a second time";

/// Asked for, and hits.
#[derive(Debug, Default)]
pub struct Counts {
    pub asked: usize,
    pub hits: usize,
}

impl Counts {
    pub fn add(&mut self, is_hit: bool) {
        self.asked += 1;
        self.hits += usize::from(is_hit);
    }

    fn percent(&self) -> usize {
        self.hits * 100 / self.asked.max(1)
    }
}

#[derive(Debug, Default)]
pub struct Report {
    pub promise: Promise,
    pub violations: Vec<String>,
    pub answers: usize,
    pub unanswered: usize,
    /// Of the stranger, by class.
    pub by_class: BTreeMap<&'static str, Counts>,
    /// Pages that anybody may have, at whoever has no cookie of their own.
    pub public: Counts,
    /// Answers to users.
    pub users: Counts,
    /// Pages made for nobody that a user with a session got from the store.
    pub strangers_pages: usize,
    pub pages_of_users: usize,
    /// Users who have logged out, and hits of theirs afterwards.
    pub logouts: usize,
    pub hits_after_logout: usize,
    /// Pages that were looked at for a change.
    pub changes_looked_at: usize,
    /// What has to be seen, and how often it was.
    pub sights: BTreeMap<&'static str, usize>,
    /// Requests that PHP had to answer, those to it alone included.
    pub php_requests: usize,
}

impl Report {
    /// Has it tested anything?
    pub fn is_worth_something(&self) -> bool {
        self.answers > 0 && self.unanswered * UNANSWERED_ONE_IN <= self.answers && self.pages_of_users > 0
    }

    /// What should have been seen and was not, in front of a preset.
    fn shortfalls(&self) -> Vec<String> {
        let missed = self.sights.iter().filter(|(_, count)| **count == 0);
        let mut all: Vec<String> = missed.map(|(sight, _)| format!("nobody has seen {sight}")).collect();
        let second = self.by_class.get(SECOND_LOOK);
        let are_kept = second.is_some_and(|of| of.asked > 0 && of.hits == of.asked);
        if self.promise.second_is_hit && !are_kept {
            let (hits, asked) = second.map_or((0, 0), |of| (of.hits, of.asked));
            all.push(format!("{hits} of {asked} public pages were hits when they were asked for a second time"));
        }
        if self.promise.changes_seen_after_s.is_some() && self.changes_looked_at == 0 {
            all.push("nobody has looked for a change".to_owned());
        }
        all
    }

    /// The same of all plays in front of one.
    pub fn shortfalls_of(all: &[Report]) -> Vec<String> {
        let mut missed: Vec<String> = all.iter().flat_map(Report::shortfalls).collect();
        if all.iter().all(|report| report.hits_after_logout == 0) {
            missed.push("who has logged out had no hit".to_owned());
        }
        missed
    }

    pub fn lines(&self) -> Vec<String> {
        let (asked, hits) = self.by_class.values().fold((0, 0), |(a, h), of| (a + of.asked, h + of.hits));
        let mut lines = vec![format!(
            "{} answers, {} without one, {} requests to PHP; {} were made for a user; the stranger had {hits} hits of {asked}, \
             users {} of {}, {} of these made for nobody; {} that should not have been",
            self.answers,
            self.unanswered,
            self.php_requests,
            self.pages_of_users,
            self.users.hits,
            self.users.asked,
            self.strangers_pages,
            self.violations.len()
        )];
        lines.push(format!(
            "    public pages, without cookies of their own: {} of {} hits ({} %); {} logouts, and {} hits after them; {} looks for a change",
            self.public.hits,
            self.public.asked,
            self.public.percent(),
            self.logouts,
            self.hits_after_logout,
            self.changes_looked_at
        ));
        lines.extend(
            self.by_class
                .iter()
                .map(|(class, counts)| format!("    {class}: {} of {} hits", counts.hits, counts.asked)),
        );
        lines.extend(self.sights.iter().map(|(sight, count)| format!("    seen: {sight}, {count} times")));
        lines.extend(self.violations.iter().take(SHOWN_MAX).cloned());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is missed in a report that is good but for what `spoil` does to it.
    fn missed(spoil: impl FnOnce(&mut Report)) -> Vec<String> {
        let mut report = Report {
            promise: Promise { changes_seen_after_s: Some(1.0), own_pages_alone: true, second_is_hit: true },
            by_class: [(SECOND_LOOK, Counts { asked: 5, hits: 5 })].into(),
            hits_after_logout: 1,
            changes_looked_at: 1,
            sights: [("a cart", 1)].into(),
            ..Report::default()
        };
        spoil(&mut report);
        Report::shortfalls_of(&[report])
    }

    #[test]
    fn what_nobody_has_seen_was_not_tested() {
        assert_eq!(missed(|_| {}), Vec::<String>::new());
        let hits = "4 of 5 public pages were hits when they were asked for a second time";
        assert_eq!(missed(|report| report.by_class.get_mut(SECOND_LOOK).unwrap().hits = 4), [hits]);
        assert_eq!(missed(|report| report.by_class.clear()).len(), 1);
        assert_eq!(missed(|report| report.sights = [("a cart", 0)].into()), ["nobody has seen a cart"]);
        assert_eq!(missed(|report| report.hits_after_logout = 0), ["who has logged out had no hit"]);
        assert_eq!(missed(|report| report.changes_looked_at = 0), ["nobody has looked for a change"]);
    }
}
