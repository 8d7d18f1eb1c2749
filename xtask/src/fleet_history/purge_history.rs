//! What was seen of a fleet in one round: each answer, each order to purge, each request that failed and each time in which a node was
//! not there, all by one clock. It judges nothing.

use crate::project::Stopwatch;

/// Since the round began, in microseconds.
pub type Micros = u64;

/// The one clock of a round.
pub struct HistoryClock(Stopwatch);

/// What the answer to an order means where it is 200.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Acknowledgement {
    /// Done on the node that was told.
    Local,
    /// Done there, and durable in the log.
    Logged,
    /// Every node has done it, or serves nothing that is older.
    Applied,
}

/// A page as a client got it.
#[derive(Clone, Debug)]
pub struct AnswerRecord {
    pub node: usize,
    pub url: usize,
    pub version: u64,
    /// Before the first byte of the request was written.
    pub begun: Micros,
    /// After the last byte of the answer was read.
    pub ended: Micros,
    pub cache_status: String,
}

/// An order, and what became of it.
#[derive(Clone, Debug)]
pub struct PurgeRecord {
    pub node: usize,
    /// Its body.
    pub order: String,
    pub kind: Acknowledgement,
    /// The URLs that it means, each with the version that the origin had when it was ordered.
    pub least: Vec<(usize, u64)>,
    pub ordered: Micros,
    /// After the last byte of the answer was read.
    pub ended: Micros,
    pub outcome: PurgeOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PurgeOutcome {
    Acknowledged,
    /// 503, with its reason: it may hold in part.
    Refused(String),
    /// Nobody knows whether it holds.
    Unanswered,
}

/// A request that should have been answered otherwise.
#[derive(Clone, Debug)]
pub struct FailureRecord {
    pub node: usize,
    pub what: String,
    pub begun: Micros,
    pub ended: Micros,
}

/// A node was killed, and listened again.
#[derive(Clone, Copy, Debug)]
pub struct AbsenceRecord {
    pub node: usize,
    pub from: Micros,
    pub to: Micros,
}

/// All of a round, or what one thread of it saw.
#[derive(Default)]
pub struct PurgeHistory {
    pub answers: Vec<AnswerRecord>,
    pub purges: Vec<PurgeRecord>,
    pub failures: Vec<FailureRecord>,
    pub absences: Vec<AbsenceRecord>,
}

impl HistoryClock {
    pub fn start() -> HistoryClock {
        HistoryClock(Stopwatch::start())
    }

    pub fn now(&self) -> Micros {
        (self.0.seconds() * 1e6) as Micros
    }
}

impl Acknowledgement {
    pub const ALL: [Acknowledgement; 3] = [Acknowledgement::Local, Acknowledgement::Logged, Acknowledgement::Applied];

    pub fn word(self) -> &'static str {
        match self {
            Acknowledgement::Local => "local",
            Acknowledgement::Logged => "logged",
            Acknowledgement::Applied => "applied",
        }
    }
}

impl PurgeRecord {
    pub fn is_acknowledged(&self) -> bool {
        self.outcome == PurgeOutcome::Acknowledged
    }
}

impl PurgeHistory {
    pub fn add(&mut self, other: PurgeHistory) {
        self.answers.extend(other.answers);
        self.purges.extend(other.purges);
        self.failures.extend(other.failures);
        self.absences.extend(other.absences);
    }

    /// A record a line, in the order in which they began.
    pub fn text(&self) -> String {
        let mut lines: Vec<(Micros, String)> = Vec::new();
        lines.extend(self.answers.iter().map(|record| (record.begun, format!("{record:?}"))));
        lines.extend(self.purges.iter().map(|record| (record.ordered, format!("{record:?}"))));
        lines.extend(self.failures.iter().map(|record| (record.begun, format!("{record:?}"))));
        lines.extend(self.absences.iter().map(|record| (record.from, format!("{record:?}"))));
        lines.sort();
        lines.into_iter().map(|(began, record)| format!("{began:>9} {record}\n")).collect()
    }

    /// Those that no absence of their node excuses.
    pub fn unexcused(&self) -> impl Iterator<Item = &FailureRecord> {
        let excuses = |failure: &FailureRecord, absence: &AbsenceRecord| {
            absence.node == failure.node && absence.from <= failure.ended && failure.begun <= absence.to
        };
        self.failures.iter().filter(move |failure| !self.absences.iter().any(|absence| excuses(failure, absence)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(absences: &[(usize, Micros, Micros)], expect: usize) {
        let failure = FailureRecord { node: 1, what: "refused".to_owned(), begun: 50, ended: 60 };
        let absences = absences.iter().map(|&(node, from, to)| AbsenceRecord { node, from, to }).collect();
        let history = PurgeHistory { failures: vec![failure], absences, ..PurgeHistory::default() };
        assert_eq!(history.unexcused().count(), expect);
    }

    #[test]
    fn a_failure_is_excused_while_its_own_node_is_away() {
        check(&[], 1);
        check(&[(1, 55, 58)], 0);
        check(&[(1, 10, 50)], 0);
        check(&[(1, 60, 90)], 0);
        check(&[(1, 10, 49), (1, 61, 90)], 1);
        check(&[(0, 10, 90)], 1);
    }
}
