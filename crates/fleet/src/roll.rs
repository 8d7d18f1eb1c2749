//! Which nodes there are, what each has applied, and for whom an order has to wait.
//!
//! Nodes say a word of themselves several times a lease, and at once when somebody waits for them. Nobody else says who belongs to the
//! fleet. What a node serves it has heard of, or fetched, within a lease: so an order that a node does not confirm is waited for until a lease has
//! gone by since, and no longer.

use std::collections::BTreeMap;

use crate::limits::{CLOCK_MARGIN, FORGOTTEN_AFTER_MS, NODES_MAX, SILENT_TOLD_MAX};
use crate::node::Figures;
use crate::position::{Position, StreamId};

/// What a node says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub node: String,
    /// Of one process: a node that was started again is another one, for what the one before still serves nobody knows.
    pub run: String,
    pub version: String,
    /// The last order that it has applied.
    pub applied: Position,
    pub lease_ms: u64,
    pub figures: Figures,
    /// What it could not do as it was ordered.
    pub complaint: String,
    /// Nodes that it knows and has not heard for a while: who has begun to listen since would not know of them.
    pub silent: Vec<SilentNode>,
    /// It serves nothing any more.
    pub is_leaving: bool,
}

/// A node that another one tells of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentNode {
    pub node: String,
    pub run: String,
    pub lease_ms: u64,
    /// Since its last word was read.
    pub silent_ms: u64,
}

impl SilentNode {
    /// As a word has it. Names have no spaces.
    pub fn text(&self) -> String {
        let SilentNode { node, run, lease_ms, silent_ms } = self;
        format!("{node} {run} {lease_ms} {silent_ms}")
    }

    pub fn of(text: &str) -> Option<SilentNode> {
        let mut parts = text.split(' ').map(str::to_owned);
        let (node, run) = (parts.next()?, parts.next()?);
        let (lease_ms, silent_ms) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(SilentNode { node, run, lease_ms, silent_ms })
    }
}

/// A node, as this one knows it.
#[derive(Clone, Debug)]
pub struct KnownNode {
    pub word: Word,
    /// When its last word was read here: that is never before it was said.
    pub read_ms: u64,
    first_id: StreamId,
    last_id: StreamId,
}

/// The nodes of a fleet.
#[derive(Debug, Default)]
pub struct Roll {
    nodes: BTreeMap<(String, String), KnownNode>,
    /// All words up to there were read.
    read_to: StreamId,
    listening_since_ms: u64,
}

/// What is to be waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Every node has applied it, but for those that serve nothing older any more.
    Over { lapsed: Vec<String> },
    /// For these, until then at the latest (in the clock of this node).
    For { nodes: Vec<String>, until_ms: u64 },
}

/// An order that is in the log.
#[derive(Clone, Debug)]
pub struct LoggedOrder {
    pub at: Position,
    /// The last word that was said before it.
    pub words_to: StreamId,
    /// When it was known to be there.
    pub logged_ms: u64,
}

/// A lease of that length is over after so long, whichever clock it is counted on.
fn surely_over_after(lease_ms: u64) -> u64 {
    lease_ms.saturating_add(lease_ms / CLOCK_MARGIN).saturating_add(1)
}

impl Roll {
    /// A word was read.
    pub fn note(&mut self, id: StreamId, word: Word, now_ms: u64) {
        self.read_to = self.read_to.max(id);
        let key = (word.node.clone(), word.run.clone());
        if word.is_leaving {
            self.nodes.remove(&key);
            return;
        }
        if self.nodes.len() >= NODES_MAX && !self.nodes.contains_key(&key) {
            self.forget_the_silent(now_ms);
        }
        word.silent.iter().for_each(|silent| self.note_told(silent, now_ms));
        let first_id = self.nodes.get(&key).map_or(id, |known| known.first_id);
        self.nodes.insert(key, KnownNode { word, read_ms: now_ms, first_id, last_id: id });
    }

    /// Somebody knows of a node that has said nothing since this one listens.
    fn note_told(&mut self, silent: &SilentNode, now_ms: u64) {
        let SilentNode { node, run, lease_ms, silent_ms } = silent.clone();
        let key = (node.clone(), run.clone());
        if self.nodes.len() >= NODES_MAX || self.nodes.contains_key(&key) {
            return;
        }
        let word = Word { node, run, lease_ms, ..Word::default() };
        let (first_id, last_id) = (StreamId::NONE, StreamId::NONE);
        let read_ms = now_ms.saturating_sub(silent_ms);
        self.nodes.insert(key, KnownNode { word, read_ms, first_id, last_id });
    }

    /// Those of whom others are to be told.
    pub fn silent(&self, now_ms: u64) -> Vec<SilentNode> {
        let told = |known: &KnownNode| {
            let KnownNode { word, read_ms, .. } = known;
            let silent_ms = now_ms.saturating_sub(*read_ms);
            let is_silent = silent_ms > word.lease_ms / 2 && !self.is_replaced(word);
            let (node, run, lease_ms) = (word.node.clone(), word.run.clone(), word.lease_ms);
            is_silent.then_some(SilentNode { node, run, lease_ms, silent_ms })
        };
        self.nodes.values().filter_map(told).take(SILENT_TOLD_MAX).collect()
    }

    /// Words are read from the first one on: at the start, and where the stream of words has begun anew.
    pub fn begin(&mut self, now_ms: u64) {
        self.read_to = StreamId::default();
        self.listening_since_ms = now_ms;
    }

    pub fn read_to(&self) -> StreamId {
        self.read_to
    }

    /// Nodes that have not been heard for long are no longer shown, nor waited for: what they serve, if they do, is at most a lease old.
    pub fn forget_the_silent(&mut self, now_ms: u64) {
        self.nodes.retain(|_, node| {
            let kept_ms = FORGOTTEN_AFTER_MS.max(surely_over_after(node.word.lease_ms));
            now_ms.saturating_sub(node.read_ms) <= kept_ms
        });
    }

    pub fn nodes(&self) -> impl Iterator<Item = &KnownNode> {
        self.nodes.values()
    }

    /// Who is to be waited for with an order that this run itself has applied.
    ///
    /// A node that does not confirm it may serve what it heard of, or fetched, just before the order: for a lease of its own from then on, whether
    /// it is heard or not. By then at the latest that is over.
    pub fn waiting(&self, order: &LoggedOrder, own: &Word, now_ms: u64) -> Waiting {
        let (mut nodes, mut lapsed, mut until_ms) = (Vec::new(), Vec::new(), now_ms);
        let over_ms = |lease_ms: u64| order.logged_ms.saturating_add(surely_over_after(lease_ms));
        for KnownNode { word, .. } in self.nodes.values() {
            if word.run == own.run || word.applied.includes(&order.at) || self.is_replaced(word) {
                continue;
            }
            let over_ms = over_ms(word.lease_ms);
            match now_ms > over_ms {
                true => lapsed.push(word.node.clone()),
                false => {
                    nodes.push(word.node.clone());
                    until_ms = until_ms.max(over_ms.saturating_add(1));
                }
            }
        }
        // Who has not listened for a lease yet may not know of a node that is silent just now.
        let knows_all = order.logged_ms >= self.listening_since_ms.saturating_add(surely_over_after(own.lease_ms));
        if !knows_all && now_ms <= over_ms(own.lease_ms) {
            until_ms = until_ms.max(over_ms(own.lease_ms).saturating_add(1));
            return Waiting::For { nodes, until_ms };
        }
        match nodes.is_empty() && self.read_to >= order.words_to {
            true => Waiting::Over { lapsed },
            false => Waiting::For { nodes, until_ms },
        }
    }

    /// Has a node of this name been started since that is another process, and has this one said nothing behind it? Then it is gone: each node
    /// has another name.
    fn is_replaced(&self, word: &Word) -> bool {
        let of_run = |run: &str| self.nodes.get(&(word.node.clone(), run.to_owned()));
        let Some(this) = of_run(&word.run) else { return false };
        self.nodes
            .values()
            .any(|other| other.word.node == word.node && other.word.run != word.run && other.first_id > this.last_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE_MS: u64 = 1_000;

    fn word(node: &str, applied: u64) -> Word {
        Word {
            node: node.to_owned(),
            run: format!("run of {node}"),
            applied: at("e", applied),
            lease_ms: LEASE_MS,
            ..Word::default()
        }
    }

    /// An order lies at its number.
    fn at(epoch: &str, number: u64) -> Position {
        Position { epoch: epoch.to_owned(), number, id: StreamId(number, 0) }
    }

    fn order(number: u64, words_to: u64) -> LoggedOrder {
        LoggedOrder { at: at("e", number), words_to: StreamId(words_to, 0), logged_ms: 10_000 }
    }

    fn of_three() -> Roll {
        let mut roll = Roll::default();
        roll.begin(5_000);
        for (at, node) in [(1, "a"), (2, "b"), (3, "c")] {
            roll.note(StreamId(at, 0), word(node, 4), 9_900);
        }
        roll
    }

    fn waits(roll: &Roll, order: &LoggedOrder, now_ms: u64) -> Vec<String> {
        match roll.waiting(order, &word("a", 9), now_ms) {
            Waiting::For { nodes, .. } => nodes,
            Waiting::Over { lapsed } => lapsed.into_iter().map(|node| format!("{node} lapsed")).collect(),
        }
    }

    #[test]
    fn an_order_waits_for_every_node_that_has_not_applied_it() {
        let mut roll = of_three();
        let order = order(5, 3);
        assert_eq!(waits(&roll, &order, 10_001), ["b", "c"]);
        roll.note(StreamId(4, 0), word("c", 5), 10_010);
        assert_eq!(waits(&roll, &order, 10_011), ["b"]);
        roll.note(StreamId(5, 0), word("b", 7), 10_020);
        assert_eq!(roll.waiting(&order, &word("a", 9), 10_021), Waiting::Over { lapsed: vec![] });
    }

    #[test]
    fn a_silent_node_is_waited_for_until_a_lease_has_gone_by() {
        let roll = of_three();
        let order = order(5, 3);
        // The lease has a hundredth and a millisecond more.
        let nodes = vec!["b".to_owned(), "c".to_owned()];
        assert_eq!(roll.waiting(&order, &word("a", 9), 10_001), Waiting::For { nodes, until_ms: 11_012 });
        assert_eq!(waits(&roll, &order, 11_011), ["b", "c"]);
        assert_eq!(waits(&roll, &order, 11_012), ["b lapsed", "c lapsed"]);
    }

    /// It may have asked the origin just before the order, and may serve that for a lease.
    #[test]
    fn a_node_that_was_silent_for_long_is_waited_for_no_less() {
        let mut roll = of_three();
        roll.note(StreamId(4, 0), word("c", 4), 1_000);
        assert_eq!(waits(&roll, &order(5, 4), 11_011), ["b", "c"]);
    }

    #[test]
    fn before_all_earlier_words_are_read_nothing_is_over() {
        let mut roll = of_three();
        let order = order(5, 9);
        assert!(matches!(roll.waiting(&order, &word("a", 9), 11_012), Waiting::For { nodes, .. } if nodes.is_empty()));
        roll.note(StreamId(9, 0), word("d", 4), 11_012);
        assert_eq!(
            waits(&roll, &order, 11_012),
            ["b lapsed", "c lapsed", "d lapsed"],
            "d too has heard nothing since the order"
        );
    }

    #[test]
    fn who_has_just_begun_to_listen_waits_for_those_that_it_does_not_know() {
        let mut roll = of_three();
        for (at, node) in [(4, "b"), (5, "c")] {
            roll.note(StreamId(at, 0), word(node, 5), 10_010);
        }
        assert_eq!(roll.waiting(&order(5, 3), &word("a", 9), 10_011), Waiting::Over { lapsed: vec![] });
        roll.begin(9_500);
        roll.note(StreamId(5, 0), word("c", 5), 10_010);
        assert_eq!(roll.waiting(&order(5, 3), &word("a", 9), 10_011), Waiting::For { nodes: vec![], until_ms: 11_012 });
        assert_eq!(roll.waiting(&order(5, 3), &word("a", 9), 11_012), Waiting::Over { lapsed: vec![] });
    }

    #[test]
    fn a_word_of_another_log_confirms_nothing() {
        let mut roll = of_three();
        roll.note(StreamId(4, 0), Word { applied: at("f", 99), ..word("b", 4) }, 10_001);
        assert_eq!(waits(&roll, &order(5, 3), 10_002), ["b", "c"]);
        // It has applied an order of that number before the log came back without its end.
        let lost = Position { id: StreamId(4, 1), ..at("e", 6) };
        roll.note(StreamId(5, 0), Word { applied: lost, ..word("b", 4) }, 10_001);
        assert_eq!(waits(&roll, &order(5, 3), 10_002), ["b", "c"]);
    }

    #[test]
    fn a_node_that_was_started_again_stands_for_the_one_before() {
        let mut roll = of_three();
        roll.note(StreamId(4, 0), Word { run: "second".to_owned(), ..word("b", 5) }, 10_001);
        assert_eq!(waits(&roll, &order(5, 3), 10_002), ["c"]);
        // Two that are called alike are two.
        roll.note(StreamId(5, 0), word("b", 4), 10_003);
        assert_eq!(waits(&roll, &order(5, 3), 10_004), ["b", "c"]);
    }

    #[test]
    fn who_begins_to_listen_is_told_of_those_that_are_silent() {
        let roll = of_three();
        assert_eq!(roll.silent(10_000), []);
        let silent = roll.silent(10_500);
        assert_eq!(
            silent.iter().map(|silent| (silent.node.as_str(), silent.silent_ms)).collect::<Vec<_>>(),
            [("a", 600), ("b", 600), ("c", 600)]
        );
        let mut newcomer = Roll::default();
        let mut word_of_a = word("a", 5);
        word_of_a.silent = silent.into_iter().filter(|silent| silent.node != "a").collect();
        newcomer.note(StreamId(9, 0), word_of_a, 10_500);
        assert_eq!(waits(&newcomer, &order(5, 3), 10_500), ["b", "c"]);
        // What is told again makes nobody younger: the rumour ends with its subject.
        assert_eq!(newcomer.silent(10_600).iter().map(|silent| silent.silent_ms).max(), Some(700));
        newcomer.note(StreamId(10, 0), word("b", 5), 10_700);
        assert_eq!(waits(&newcomer, &order(5, 3), 10_700), ["c"]);
    }

    #[test]
    fn who_is_told_of_is_written_in_a_line() {
        let silent = SilentNode { node: "edge-1".into(), run: "0a1b".into(), lease_ms: 5_000, silent_ms: 9 };
        assert_eq!(SilentNode::of(&silent.text()), Some(silent));
        for wrong in ["", "a", "a b 1", "a b 1 x"] {
            assert_eq!(SilentNode::of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn nobody_waits_for_who_has_left() {
        let mut roll = of_three();
        for node in ["b", "c"] {
            roll.note(StreamId(5, 0), Word { is_leaving: true, ..word(node, 4) }, 10_001);
        }
        assert_eq!(roll.waiting(&order(5, 3), &word("a", 9), 10_002), Waiting::Over { lapsed: vec![] });
    }

    #[test]
    fn the_long_silent_are_forgotten_and_those_with_a_long_lease_are_not() {
        let mut roll = of_three();
        roll.note(StreamId(4, 0), Word { lease_ms: 2 * FORGOTTEN_AFTER_MS, ..word("b", 4) }, 9_900);
        roll.forget_the_silent(9_900 + FORGOTTEN_AFTER_MS + 1);
        assert_eq!(roll.nodes().map(|node| node.word.node.as_str()).collect::<Vec<_>>(), ["b"]);
    }
}
