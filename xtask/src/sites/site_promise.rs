//! What a preset promises beside privacy: who has a session gets no page from the store, changes are seen in time, and the pages
//! of strangers are cached. It knows no site.

use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, Default)]
pub struct Promise {
    /// Everybody sees a change after so many seconds. `None`: nobody said so.
    pub changes_seen_after_s: Option<f64>,
    /// Who has a cookie of their own gets no page from the store.
    pub own_pages_alone: bool,
    /// Who has no cookies, and asks for a page twice in a row, gets it from the store the second time.
    pub second_is_hit: bool,
}

/// A page that was changed, and the word that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub target: String,
    pub word: String,
}

/// The last change of each page, and when it was made; and what was taken back.
#[derive(Debug, Default)]
pub struct ChangeWatch {
    latest: BTreeMap<String, (String, f64)>,
    /// Words that nobody without a session may read any more, and since when.
    withdrawn: BTreeMap<String, f64>,
    /// Pages that were asked for late enough after a change to show it.
    pub looked_at: usize,
}

impl ChangeWatch {
    pub fn note(&mut self, change: Change, at_s: f64) {
        self.latest.insert(change.target, (change.word, at_s));
    }

    pub fn withdraw(&mut self, word: String, at_s: f64) {
        self.withdrawn.insert(word, at_s);
    }

    /// A word that is still in a page which was asked for so long after it was taken back.
    pub fn still_in(&self, asked_s: f64, promised_s: f64, page: &str) -> Option<&str> {
        let mut late = self.withdrawn.iter().filter(|(_, since_s)| asked_s >= **since_s + promised_s);
        late.find(|(word, _)| page.contains(word.as_str())).map(|(word, _)| word.as_str())
    }

    /// The word that is not in a page and should be: the page was asked for so long after its last change.
    pub fn missing_in(&mut self, target: &str, asked_s: f64, promised_s: f64, page: &str) -> Option<String> {
        let (word, changed_s) = self.latest.get(target)?;
        if asked_s < changed_s + promised_s {
            return None;
        }
        self.looked_at += 1;
        (!page.contains(word.as_str())).then(|| word.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_to_be_seen_when_its_time_has_come() {
        let mut watch = ChangeWatch::default();
        let change = |word: &str| Change { target: "/a".to_owned(), word: word.to_owned() };
        watch.note(change("first."), 10.0);
        let mut missing = |asked_s, page: &str| watch.missing_in("/a", asked_s, 3.0, page);
        assert_eq!(missing(12.9, "old"), None);
        assert_eq!(missing(13.0, "old"), Some("first.".to_owned()));
        assert_eq!(missing(13.0, "with first."), None);
        assert_eq!(watch.missing_in("/b", 99.0, 3.0, "old"), None);
        assert_eq!(watch.looked_at, 2);
        // The later one counts.
        watch.note(change("second."), 14.0);
        assert_eq!(watch.missing_in("/a", 16.0, 3.0, "with first."), None);
        assert_eq!(watch.missing_in("/a", 17.0, 3.0, "with first."), Some("second.".to_owned()));
    }

    #[test]
    fn what_was_taken_back_is_in_no_page_any_more() {
        let mut watch = ChangeWatch::default();
        watch.withdraw("passing-1.".to_owned(), 10.0);
        let still = |asked_s, page: &str| watch.still_in(asked_s, 3.0, page).map(str::to_owned);
        assert_eq!(still(12.9, "with passing-1."), None);
        assert_eq!(still(13.0, "with passing-1."), Some("passing-1.".to_owned()));
        assert_eq!(still(13.0, "with passing-10 alone"), None);
    }
}
