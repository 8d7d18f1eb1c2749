//! Holds what clients were answered against what acknowledged purges promise, in real time: a pure function over the records of a round.
//!
//! Who was told that a purge is `applied` finds it done everywhere from then on; who was told that it is `logged`, or `local`, finds it
//! done on the node that said so, and after `logged` on every other one a lease later. An order that was not acknowledged promises nothing,
//! and nothing is promised of what nobody purged.

use std::collections::BTreeMap;

use super::purge_history::{Acknowledgement, Micros, PurgeHistory, PurgeRecord};

/// Beyond the lease, for a machine that has other things to do.
pub const SLACK: Micros = 250_000;

/// An answer that is older than a purge allows, both by their place in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenPromise {
    pub answer: usize,
    pub purge: usize,
}

/// What a purge asks of the answers of one URL.
struct FreshnessDemand {
    /// Of requests that are begun later.
    from: Micros,
    /// Of all nodes, where it is none.
    node: Option<usize>,
    version: u64,
    purge: usize,
}

/// Every answer that is too old, with the purge that asks most of it.
pub fn broken_promises(history: &PurgeHistory, lease: Micros) -> Vec<BrokenPromise> {
    let mut demands: BTreeMap<usize, Vec<FreshnessDemand>> = BTreeMap::new();
    for (purge, record) in history.purges.iter().enumerate().filter(|(_, record)| record.is_acknowledged()) {
        for (from, node) in promised(record, lease) {
            for &(url, version) in &record.least {
                demands.entry(url).or_default().push(FreshnessDemand { from, node, version, purge });
            }
        }
    }
    let mut answers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (answer, record) in history.answers.iter().enumerate() {
        answers.entry(record.url).or_default().push(answer);
    }
    let mut broken = Vec::new();
    for (url, mut demands) in demands {
        demands.sort_by_key(|demand| demand.from);
        let mut answers = answers.remove(&url).unwrap_or_default();
        answers.sort_by_key(|&answer| history.answers[answer].begun);
        broken.extend(too_old(history, &demands, &answers));
    }
    broken.sort_by_key(|broken| history.answers[broken.answer].begun);
    broken
}

/// From when on it holds, and on which node alone.
fn promised(purge: &PurgeRecord, lease: Micros) -> Vec<(Micros, Option<usize>)> {
    let here = (purge.ended, Some(purge.node));
    match purge.kind {
        Acknowledgement::Local => vec![here],
        Acknowledgement::Logged => vec![here, (purge.ended + lease + SLACK, None)],
        Acknowledgement::Applied => vec![(purge.ended, None)],
    }
}

/// Of the answers of one URL, in the order in which they were asked for.
fn too_old(history: &PurgeHistory, demands: &[FreshnessDemand], answers: &[usize]) -> Vec<BrokenPromise> {
    let mut strongest: BTreeMap<Option<usize>, &FreshnessDemand> = BTreeMap::new();
    let mut demands = demands.iter().peekable();
    let mut broken = Vec::new();
    for &answer in answers {
        let record = &history.answers[answer];
        while let Some(demand) = demands.next_if(|demand| demand.from < record.begun) {
            let held = strongest.entry(demand.node).or_insert(demand);
            if held.version < demand.version {
                *held = demand;
            }
        }
        let holds = [None, Some(record.node)].into_iter().filter_map(|node| strongest.get(&node));
        if let Some(demand) = holds.max_by_key(|demand| demand.version).filter(|held| record.version < held.version) {
            broken.push(BrokenPromise { answer, purge: demand.purge });
        }
    }
    broken
}

#[cfg(test)]
mod tests {
    use super::super::purge_history::{AnswerRecord, PurgeOutcome};
    use super::*;

    const LEASE: Micros = 2_000_000;
    const ACKNOWLEDGED: PurgeOutcome = PurgeOutcome::Acknowledged;
    use Acknowledgement::{Applied, Local, Logged};

    /// An order at node 0 for URL 7, of which the origin had version 5. It was answered at 2,000.
    fn purge(kind: Acknowledgement, outcome: PurgeOutcome) -> PurgeRecord {
        let (order, least) = (String::new(), vec![(7, 5)]);
        PurgeRecord { node: 0, order, kind, least, ordered: 1_000, ended: 2_000, outcome }
    }

    /// (node, url, version, begun)
    fn history(purges: Vec<PurgeRecord>, answers: &[(usize, usize, u64, Micros)]) -> PurgeHistory {
        let record = |&(node, url, version, begun): &(usize, usize, u64, Micros)| AnswerRecord {
            node,
            url,
            version,
            begun,
            ended: begun + 10,
            cache_status: String::new(),
        };
        PurgeHistory { answers: answers.iter().map(record).collect(), purges, ..PurgeHistory::default() }
    }

    /// `expect`: which answers are too old.
    fn check(purges: &[PurgeRecord], answers: &[(usize, usize, u64, Micros)], expect: &[usize]) {
        let broken = broken_promises(&history(purges.to_vec(), answers), LEASE);
        let answers: Vec<usize> = broken.iter().map(|broken| broken.answer).collect();
        assert_eq!(answers, expect, "{purges:?}");
    }

    #[test]
    fn what_is_as_new_as_promised_breaks_nothing() {
        for kind in Acknowledgement::ALL {
            let new = [(0, 7, 5, 2_001), (1, 7, 6, 2_001), (1, 7, 5, 9_000_000)];
            check(&[purge(kind, ACKNOWLEDGED)], &new, &[]);
            let of_others = [(0, 8, 1, 2_001), (1, 8, 1, 9_000_000)];
            check(&[purge(kind, ACKNOWLEDGED)], &of_others, &[]);
            let asked_before = [(0, 7, 4, 500), (1, 7, 4, 1_500), (0, 7, 4, 2_000)];
            check(&[purge(kind, ACKNOWLEDGED)], &asked_before, &[]);
        }
    }

    #[test]
    fn after_applied_no_node_may_be_older() {
        let answers = [(0, 7, 4, 2_001), (1, 7, 4, 2_001), (2, 7, 5, 2_002), (2, 7, 4, 9_000_000)];
        check(&[purge(Applied, ACKNOWLEDGED)], &answers, &[0, 1, 3]);
    }

    #[test]
    fn after_logged_the_own_node_is_bound_at_once_and_others_a_lease_later() {
        let later = 2_000 + LEASE + SLACK;
        let answers = [(1, 7, 4, 2_001), (0, 7, 4, 2_001), (1, 7, 4, later), (1, 7, 4, later + 1)];
        check(&[purge(Logged, ACKNOWLEDGED)], &answers, &[1, 3]);
    }

    #[test]
    fn after_local_the_own_node_alone_is_bound() {
        let answers = [(1, 7, 4, 2_001), (0, 7, 4, 2_001), (1, 7, 4, 9_000_000), (0, 7, 4, 9_000_000)];
        check(&[purge(Local, ACKNOWLEDGED)], &answers, &[1, 3]);
    }

    #[test]
    fn what_was_not_acknowledged_promises_nothing() {
        for kind in Acknowledgement::ALL {
            for outcome in [PurgeOutcome::Refused("503".to_owned()), PurgeOutcome::Unanswered] {
                check(&[purge(kind, outcome)], &[(0, 7, 4, 2_001), (1, 7, 4, 9_000_000)], &[]);
            }
        }
    }

    #[test]
    fn a_purge_binds_every_url_that_it_means() {
        let mut tag = purge(Applied, ACKNOWLEDGED);
        tag.least = vec![(7, 5), (8, 2)];
        check(&[tag], &[(1, 7, 5, 3_000), (1, 8, 2, 3_000), (1, 8, 1, 3_000), (1, 9, 0, 3_000)], &[2]);
    }

    #[test]
    fn of_several_purges_the_one_that_asks_most_is_named() {
        let mut newer = purge(Applied, ACKNOWLEDGED);
        newer.least = vec![(7, 9)];
        newer.ended = 4_000;
        // An older one that is acknowledged later takes nothing back.
        let mut late = purge(Applied, ACKNOWLEDGED);
        late.ended = 6_000;
        let purges = vec![late, purge(Applied, ACKNOWLEDGED), newer];
        let history = history(purges, &[(1, 7, 4, 3_000), (1, 7, 6, 3_000), (1, 7, 6, 7_000)]);
        let expect = [BrokenPromise { answer: 0, purge: 1 }, BrokenPromise { answer: 2, purge: 2 }];
        assert_eq!(broken_promises(&history, LEASE), expect);
    }
}
