//! Which node of a fleet owns what, without the nodes: for who computes what a fleet would do. The draws are those by which nodes ask.

use crate::rendezvous;

/// The nodes as they stand in `peers`.
#[derive(Clone, Debug)]
pub struct NodeDraws(Vec<(u64, u32)>);

impl NodeDraws {
    /// Each by its address and port, with its weight.
    pub fn new<'a>(nodes: impl IntoIterator<Item = (&'a str, u32)>) -> NodeDraws {
        NodeDraws(nodes.into_iter().map(|(label, weight)| (rendezvous::seed(label.as_bytes()), weight)).collect())
    }

    /// The place of the node that owns what has this key, where all are well. `None`: there are no nodes.
    pub fn owner(&self, key: u64) -> Option<usize> {
        let drawing = self.0.iter().enumerate().filter(|(_, (_, weight))| *weight > 0);
        rendezvous::highest_draw(key, drawing.map(|(at, (seed, weight))| (at, *seed, *weight)))
    }

    /// A key for a name. Nodes draw by a digest under their secret, which spreads as this one does.
    pub fn key_of(name: &[u8]) -> u64 {
        rendezvous::seed(name)
    }
}
