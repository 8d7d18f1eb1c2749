//! A round in words: its seed and faults, what was asked and ordered, and what is wrong with the records that show it.

use std::collections::BTreeMap;

use super::fleet_round::{FleetRound, has_tier};
use super::fleet_stage::NAMES;
use super::purge_history::{Acknowledgement, AnswerRecord, Micros, PurgeOutcome};
use super::purge_promises::BrokenPromise;
use super::versioned_origin::path_of;

/// Of one kind, so many are told.
const TOLD_MAX: usize = 8;

impl FleetRound {
    pub fn lines(&self) -> Vec<String> {
        let faults: Vec<String> = self.faults.iter().map(ToString::to_string).collect();
        let mut lines = vec![
            format!(
                "seed {}{}: {}",
                self.seed,
                if has_tier(self.seed) { ", with a tier" } else { "" },
                faults.join("; ")
            ),
            format!("    {}", self.asked()),
            format!("    {}", self.ordered()),
        ];
        if !self.broken.is_empty() {
            lines.push(format!("    {} answers are older than a purge allows:", self.broken.len()));
            lines.extend(self.broken.iter().take(TOLD_MAX).map(|broken| format!("      {}", self.told(broken))));
        }
        if !self.wrong.is_empty() {
            lines.push(format!("    {} other things are wrong:", self.wrong.len()));
            lines.extend(self.wrong.iter().take(TOLD_MAX).map(|wrong| format!("      {wrong}")));
        }
        lines
    }

    pub fn hits(&self) -> usize {
        self.history.answers.iter().filter(|answer| class_of(answer) == "hit").count()
    }

    pub fn acknowledged(&self, kind: Acknowledgement) -> usize {
        self.history.purges.iter().filter(|purge| purge.kind == kind && purge.is_acknowledged()).count()
    }

    fn asked(&self) -> String {
        let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
        self.history.answers.iter().for_each(|answer| *classes.entry(class_of(answer)).or_default() += 1);
        let classes: Vec<String> = classes.iter().map(|(class, count)| format!("{class} {count}")).collect();
        let (asked, confirmed) = self.origin;
        let excused = self.history.failures.len() - self.history.unexcused().count();
        format!(
            "{} answers ({}), {excused} refused by who was killed; the origin was asked {asked} times, and confirmed {confirmed}",
            self.history.answers.len(),
            classes.join(", ")
        )
    }

    fn ordered(&self) -> String {
        let kinds: Vec<String> = Acknowledgement::ALL
            .into_iter()
            .map(|kind| {
                let all = self.history.purges.iter().filter(|purge| purge.kind == kind).count();
                format!("{} {} of {all}", kind.word(), self.acknowledged(kind))
            })
            .collect();
        let applied = self.history.purges.iter().filter(|purge| purge.kind == Acknowledgement::Applied);
        let mut took: Vec<Micros> =
            applied.filter(|purge| purge.is_acknowledged()).map(|purge| purge.ended - purge.ordered).collect();
        took.sort_unstable();
        let [p50, p99] = [50, 99].map(|part| percentile(&took, part) as f64 / 1e3);
        format!(
            "acknowledged: {}; applied took {p50:.1} ms (p50), {p99:.1} ms (p99){}",
            kinds.join(", "),
            self.refusal()
        )
    }

    /// The reason that was given most often.
    fn refusal(&self) -> String {
        let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
        for purge in &self.history.purges {
            if let PurgeOutcome::Refused(why) = &purge.outcome {
                *reasons.entry(why).or_default() += 1;
            }
        }
        let most = reasons.into_iter().max_by_key(|(_, count)| *count);
        most.map_or_else(String::new, |(why, count)| format!("; refused {count} times by {why}"))
    }

    fn told(&self, broken: &BrokenPromise) -> String {
        let (answer, purge) = (&self.history.answers[broken.answer], &self.history.purges[broken.purge]);
        let least = purge.least.iter().find(|(url, _)| *url == answer.url).map_or(0, |(_, version)| *version);
        let [begun, ended, ordered, acknowledged] =
            [answer.begun, answer.ended, purge.ordered, purge.ended].map(|moment| moment as f64 / 1e6);
        format!(
            "{} gave version {} of {}, begun {begun:.6} s, ended {ended:.6} s ({}); version {least} was promised by {} at {}, \
             {}, ordered {ordered:.6} s, acknowledged {acknowledged:.6} s",
            NAMES[answer.node],
            answer.version,
            path_of(answer.url),
            answer.cache_status,
            purge.order,
            NAMES[purge.node],
            purge.kind.word()
        )
    }
}

/// What Cache-Status says first: a hit, or why it is none.
fn class_of(answer: &AnswerRecord) -> &str {
    let mut words = answer.cache_status.split(';').map(str::trim).skip(1);
    let word = words.next().unwrap_or("none");
    word.strip_prefix("fwd=").unwrap_or(word)
}

fn percentile(sorted: &[Micros], part: usize) -> Micros {
    let at = (sorted.len() * part / 100).min(sorted.len().saturating_sub(1));
    sorted.get(at).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(cache_status: &str, expect: &str) {
        let cache_status = cache_status.to_owned();
        let answer = AnswerRecord { node: 0, url: 0, version: 1, begun: 0, ended: 1, cache_status };
        assert_eq!(class_of(&answer), expect);
    }

    #[test]
    fn an_answer_is_counted_by_its_cache_status() {
        check("larder; hit; ttl=3599", "hit");
        check("larder; fwd=uri-miss; fwd-status=200; stored", "uri-miss");
        check("larder; fwd=stale; fwd-status=304", "stale");
        check("", "none");
    }

    #[test]
    fn percentiles_are_of_what_there_is() {
        assert_eq!(percentile(&[], 99), 0);
        assert_eq!(percentile(&[7], 99), 7);
        assert_eq!(percentile(&(1..=200).collect::<Vec<_>>(), 50), 101);
        assert_eq!(percentile(&(1..=200).collect::<Vec<_>>(), 99), 199);
    }
}
