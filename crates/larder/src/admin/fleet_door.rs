//! This node's way to the others of its fleet.

use fleet::{Acknowledge, Fleet};

/// A node's way to the others, and what an acknowledgement means there where an order does not say it.
#[derive(Clone)]
pub struct FleetDoor {
    pub fleet: Fleet,
    pub acknowledge: Acknowledge,
    /// What is done about VCLs at one node is done at all.
    pub carries_vcl: bool,
}

impl FleetDoor {
    /// Has all nodes carry an order out. The error is a sentence about how far it came.
    pub async fn ordered(&self, text: String) -> Result<(), String> {
        let ordered = self.fleet.order(text, self.acknowledge).await;
        ordered.told?;
        match ordered.acknowledged >= self.acknowledge {
            true => Ok(()),
            false => Err(ordered.why_less.unwrap_or_default()),
        }
    }
}
