//! The rows and annotations that are kept, newest last: by age and by number, so that they never take more room.

use std::collections::VecDeque;

use super::annotation::Annotation;
use super::history_columns::HistoryRow;
use crate::limits::{ANNOTATION_JOINED_S, ANNOTATIONS_MAX, HISTORY_MINUTES_KEPT, HISTORY_SECONDS_KEPT};

/// How fine a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryStep {
    Second,
    Minute,
}

impl HistoryStep {
    pub const fn seconds(self) -> u64 {
        match self {
            HistoryStep::Second => 1,
            HistoryStep::Minute => 60,
        }
    }

    pub const fn kept(self) -> usize {
        match self {
            HistoryStep::Second => HISTORY_SECONDS_KEPT,
            HistoryStep::Minute => HISTORY_MINUTES_KEPT,
        }
    }
}

#[derive(Default)]
pub struct HistoryRing {
    seconds: VecDeque<HistoryRow>,
    minutes: VecDeque<HistoryRow>,
    annotations: VecDeque<Annotation>,
    /// Changes with every annotation, so that who saves them knows.
    annotations_version: u64,
}

impl HistoryRing {
    pub fn rows(&self, step: HistoryStep) -> &VecDeque<HistoryRow> {
        match step {
            HistoryStep::Second => &self.seconds,
            HistoryStep::Minute => &self.minutes,
        }
    }

    pub fn annotations(&self) -> &VecDeque<Annotation> {
        &self.annotations
    }

    pub fn annotations_version(&self) -> u64 {
        self.annotations_version
    }

    /// One more. When the clock was set back, what is later than now is no history.
    pub fn add(&mut self, step: HistoryStep, row: HistoryRow) {
        let rows = match step {
            HistoryStep::Second => &mut self.seconds,
            HistoryStep::Minute => &mut self.minutes,
        };
        while rows.back().is_some_and(|last| last.at_s() >= row.at_s()) {
            rows.pop_back();
        }
        rows.push_back(row);
        let oldest_s = row.at_s().saturating_sub(step.kept() as u64 * step.seconds());
        while rows.len() > step.kept() || rows.front().is_some_and(|first| first.at_s() <= oldest_s) {
            rows.pop_front();
        }
    }

    /// The same thing again within some seconds is one annotation that counts.
    pub fn annotate(&mut self, annotation: Annotation) {
        self.annotations_version += 1;
        let near = |last: &&mut Annotation| {
            let is_near = annotation.at_s.abs_diff(last.until_s) <= ANNOTATION_JOINED_S;
            is_near && last.kind == annotation.kind && last.text == annotation.text && annotation.kind.is_counted()
        };
        // Others may have come between two.
        match self.annotations.iter_mut().rev().take(ANNOTATION_JOINED_S as usize).find(near) {
            Some(last) => {
                last.count = last.count.saturating_add(annotation.count);
                last.until_s = last.until_s.max(annotation.until_s);
            }
            None => self.annotations.push_back(annotation),
        }
        let oldest_s = self
            .annotations
            .back()
            .map_or(0, |last| last.at_s)
            .saturating_sub(HistoryStep::Minute.kept() as u64 * HistoryStep::Minute.seconds());
        while self.annotations.len() > ANNOTATIONS_MAX
            || self.annotations.front().is_some_and(|first| first.until_s < oldest_s)
        {
            self.annotations.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::annotation::AnnotationKind;
    use super::*;

    fn times(ring: &HistoryRing, step: HistoryStep) -> Vec<u64> {
        ring.rows(step).iter().map(HistoryRow::at_s).collect()
    }

    #[test]
    fn an_hour_of_seconds_is_kept_and_no_more() {
        let mut ring = HistoryRing::default();
        (10_000..20_000).for_each(|at_s| ring.add(HistoryStep::Second, HistoryRow::sample(at_s)));
        assert_eq!(times(&ring, HistoryStep::Second), (16_400..20_000).collect::<Vec<_>>());
        // After a pause only what is young enough is left.
        ring.add(HistoryStep::Second, HistoryRow::sample(23_590));
        assert_eq!(times(&ring, HistoryStep::Second), (19_991..20_000).chain([23_590]).collect::<Vec<_>>());
    }

    #[test]
    fn a_day_of_minutes_is_kept() {
        let mut ring = HistoryRing::default();
        (0..3_000).for_each(|minute| ring.add(HistoryStep::Minute, HistoryRow::sample(minute * 60)));
        let minutes = times(&ring, HistoryStep::Minute);
        assert_eq!((minutes.len(), minutes[0]), (1_440, 1_560 * 60));
    }

    #[test]
    fn a_clock_that_is_set_back_takes_the_future_away() {
        let mut ring = HistoryRing::default();
        (100..200).for_each(|at_s| ring.add(HistoryStep::Second, HistoryRow::sample(at_s)));
        ring.add(HistoryStep::Second, HistoryRow::sample(150));
        assert_eq!(times(&ring, HistoryStep::Second), (100..=150).collect::<Vec<_>>());
    }

    #[test]
    fn annotations_of_the_same_thing_are_counted_and_their_number_is_bounded() {
        let mut ring = HistoryRing::default();
        let purge = |at_s| Annotation::new(at_s, AnnotationKind::Purge, "");
        (100..130).for_each(|at_s| ring.annotate(purge(at_s)));
        ring.annotate(Annotation::new(130, AnnotationKind::Out, "app"));
        ring.annotate(purge(131));
        let all: Vec<(u64, u64, u64)> = ring
            .annotations()
            .iter()
            .map(|annotation| (annotation.at_s, annotation.until_s, annotation.count))
            .collect();
        assert_eq!(all, [(100, 131, 31), (130, 130, 1)]);
        (0..2_000).for_each(|at| ring.annotate(Annotation::new(200, AnnotationKind::Out, &at.to_string())));
        assert_eq!(ring.annotations().len(), ANNOTATIONS_MAX);
        let restart = Annotation::new(200, AnnotationKind::Restart, "0.1.0");
        (0..2).for_each(|_| ring.annotate(restart.clone()));
        let last: Vec<&Annotation> = ring.annotations().iter().rev().take(2).collect();
        assert_eq!(last, [&restart, &restart]);
        ring.annotate(purge(200 + 2 * 86_400));
        assert_eq!(ring.annotations().len(), 1);
    }
}
