//! Figures of the last while, and how fast each grows: now, and over 10, 100 and 1,000 seconds.

use std::collections::VecDeque;
use std::time::Duration;

use crate::live_command::figures_source::StatusFigures;

/// Rates are shown over so many seconds, beside the last interval.
pub const SPANS_S: [u64; 3] = [10, 100, 1_000];

/// Looks that follow one another faster are not all kept.
const KEPT_APART_MIN: Duration = Duration::from_millis(900);

pub struct StatHistory {
    /// The newest one last.
    kept: VecDeque<StatusFigures>,
}

impl StatHistory {
    pub fn begin(first: StatusFigures) -> StatHistory {
        StatHistory { kept: VecDeque::from([first]) }
    }

    /// One more. What is older than the longest span leaves; one that is as old stays, to be compared with.
    pub fn add(&mut self, figures: StatusFigures) {
        let oldest = Duration::from_secs(SPANS_S[SPANS_S.len() - 1]);
        let is_over = |second: &StatusFigures| figures.at.saturating_sub(second.at) >= oldest;
        while self.kept.get(1).is_some_and(is_over) {
            self.kept.pop_front();
        }
        // About one a second is enough.
        let near = |before: &StatusFigures, last: &StatusFigures| last.at.saturating_sub(before.at) < KEPT_APART_MIN;
        if let [.., before, last] = self.kept.make_contiguous()
            && near(before, last)
        {
            self.kept.pop_back();
        }
        self.kept.push_back(figures);
    }

    pub fn newest(&self) -> &StatusFigures {
        self.kept.back().expect("there is always one")
    }

    /// How much a figure has grown a second in the last interval.
    pub fn rate_now(&self, name: &str) -> Option<f64> {
        let before = self.kept.len().checked_sub(2)?;
        self.rate(&self.kept[before], name)
    }

    /// The same over the last so many seconds, or since the first look where that is later. `None` before two looks.
    pub fn rate_over(&self, seconds: u64, name: &str) -> Option<f64> {
        let newest = self.newest();
        let span = Duration::from_secs(seconds);
        // The youngest that is old enough, else the oldest.
        let at = self.kept.partition_point(|figures| newest.at.saturating_sub(figures.at) >= span).saturating_sub(1);
        self.rate(&self.kept[at], name)
    }

    fn rate(&self, from: &StatusFigures, name: &str) -> Option<f64> {
        let newest = self.newest();
        let seconds = newest.at.saturating_sub(from.at).as_secs_f64();
        // A larder that was restarted begins again at nothing.
        (seconds > 0.0).then(|| (newest.of(name) - from.of(name)).max(0.0) / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_over_the_span_that_is_asked_for() {
        let figures = |second: u64, hits: f64| StatusFigures {
            at: Duration::from_secs(second),
            numbers: [("hits".to_owned(), hits)].into(),
        };
        let mut history = StatHistory::begin(figures(0, 0.0));
        assert_eq!((history.rate_now("hits"), history.rate_over(10, "hits")), (None, None));
        // A hundred a second, and in the last ten seconds ten.
        for second in 1..=2_000 {
            let hits = if second <= 1_990 { second as f64 * 100.0 } else { 199_000.0 + (second - 1_990) as f64 * 10.0 };
            history.add(figures(second, hits));
        }
        assert_eq!(history.rate_now("hits"), Some(10.0));
        assert_eq!(history.rate_over(10, "hits"), Some(10.0));
        assert_eq!(history.rate_over(100, "hits"), Some(91.0));
        assert_eq!(history.rate_over(1_000, "hits"), Some(99.1));
        assert!(history.kept.len() <= 1_001, "{}", history.kept.len());
        // Of quick looks as many are kept as of others.
        for quarter in 1..=400 {
            let at = Duration::from_secs(2_000) + Duration::from_millis(250) * quarter;
            history.add(StatusFigures { at, numbers: figures(0, 199_100.0).numbers });
        }
        assert!(history.kept.len() <= 1_010 && history.rate_over(10, "hits") == Some(0.0), "{}", history.kept.len());
        let figures = |second: u64, hits: f64| figures(second + 100, hits);
        // After a restart nothing is negative.
        history.add(figures(2_001, 3.0));
        assert_eq!(history.rate_now("hits"), Some(0.0));
    }
}
