//! How many orders to purge there were, by what selected and what came of them. Nothing that clients send is counted here.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What came of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderEnd {
    Dropped,
    Softened,
    /// It was to be counted only.
    Dry,
    Refused,
}

impl OrderEnd {
    const WORDS: [&'static str; 4] = ["dropped", "softened", "dry", "refused"];
}

/// What says what is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectorKind {
    Url,
    Prefix,
    Host,
    Glob,
    Regex,
    Ban,
    Tags,
    Group,
    All,
}

impl SelectorKind {
    const WORDS: [&'static str; 9] = ["url", "prefix", "host", "glob", "regex", "ban", "tags", "group", "all"];
}

#[derive(Debug, Default)]
pub(crate) struct PurgeTally([[AtomicU64; OrderEnd::WORDS.len()]; SelectorKind::WORDS.len()]);

impl PurgeTally {
    pub(crate) fn note(&self, selector: SelectorKind, end: OrderEnd) {
        self.0[selector as usize][end as usize].fetch_add(1, Relaxed);
    }

    /// Selector, outcome, and how many.
    pub(crate) fn counts(&self) -> Vec<(&'static str, &'static str, u64)> {
        let mut counts = Vec::new();
        for (selector, row) in SelectorKind::WORDS.iter().zip(&self.0) {
            for (end, count) in OrderEnd::WORDS.iter().zip(row) {
                counts.push((*selector, *end, count.load(Relaxed)));
            }
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_counted_by_its_word_and_its_end() {
        let tally = PurgeTally::default();
        for end in [OrderEnd::Dropped, OrderEnd::Softened, OrderEnd::Dry, OrderEnd::Dry] {
            tally.note(SelectorKind::Host, end);
        }
        tally.note(SelectorKind::All, OrderEnd::Refused);
        let counted: Vec<_> = tally.counts().into_iter().filter(|(.., count)| *count > 0).collect();
        let expect = [("host", "dropped", 1), ("host", "softened", 1), ("host", "dry", 2), ("all", "refused", 1)];
        assert_eq!(counted, expect);
    }
}
