//! This larder as a node of a fleet: orders of the log are carried out as if they had come to its own admin address.

use std::sync::Arc;

use fleet::{Figures, Node};
use proxy::Proxy;

use super::invalidation_requests::carry_out;
use super::looking::behind;
use crate::say::say;

/// The proxy, as the log sees it.
pub struct FleetNode(pub Proxy);

impl FleetNode {
    pub fn of(proxy: &Proxy) -> Arc<dyn Node> {
        Arc::new(FleetNode(proxy.clone()))
    }
}

impl Node for FleetNode {
    fn now_ms(&self) -> u64 {
        self.0.freshness_clock_ms()
    }

    fn apply(&self, order: &str) -> Result<String, String> {
        let answer = carry_out(&self.0, order.as_bytes()).map_err(|(_, why)| why)?;
        // What is purged is served no more; taking it out is nobody's to wait for.
        let freed = self.0.clone();
        behind(move || freed.take_out_purged());
        Ok(answer.to_string())
    }

    fn condemn(&self) -> u64 {
        self.0.condemn_stored()
    }

    fn condemned(&self, mark: u64) {
        self.0.condemned_before(mark);
    }

    fn hear(&self, position: u64) {
        self.0.hear_log_position(position);
    }

    fn stand_alone(&self, is_alone: bool) {
        self.0.stand_alone(is_alone);
    }

    fn reach(&self, position: u64) {
        self.0.reach_log_position(position);
    }

    fn extend_lease(&self, until_ms: u64) {
        self.0.extend_fleet_lease(until_ms);
    }

    fn settle(&self) -> Result<(), String> {
        if self.0.disks_status().is_empty() {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|why| why.to_string())?.block_on(self.0.settled())
    }

    fn figures(&self) -> Figures {
        let (requests, hits) = self.0.requests_and_hits();
        Figures { requests, hits }
    }

    fn say(&self, sentence: &str) {
        say!("{sentence}");
    }
}
