//! This larder as a node of a fleet: orders of the log are carried out as if they had come to its own admin address.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cache::PlaceInLog;
use fleet::{Figures, Node, Reached};
use parking_lot::Mutex;
use proxy::Proxy;

use super::invalidation_requests::carry_out;
use super::looking::behind;
use super::told_order;
use super::vcl_order::{self, VclOrders};
use crate::say::say;

/// The proxy, as the log sees it.
pub struct FleetNode {
    proxy: Proxy,
    /// It takes what others have fetched: what it has purged by itself before that was in the log is purged once more at its place there, for
    /// what came from others since may be older.
    takes_from_others: bool,
    vcl_orders: VclOrders,
    /// Somebody takes out what was purged.
    is_freeing: Arc<AtomicBool>,
}

impl FleetNode {
    /// `vcl_path`: where what a VCL of the log includes is looked for; `None`: none is taken.
    pub fn of(proxy: &Proxy, takes_from_others: bool, vcl_path: Option<Vec<PathBuf>>) -> Arc<dyn Node> {
        let vcl_orders = VclOrders { vcl_path, complaint: Mutex::default() };
        Arc::new(FleetNode { proxy: proxy.clone(), takes_from_others, vcl_orders, is_freeing: Arc::default() })
    }
}

impl Node for FleetNode {
    fn now_ms(&self) -> u64 {
        self.proxy.freshness_clock_ms()
    }

    fn apply(&self, order: &str, was_done: bool) -> Result<String, String> {
        if let Some(order) = vcl_order::of_text(order) {
            let order = order?;
            return Ok(if was_done { String::new() } else { self.vcl_orders.carry_out(&self.proxy, order) });
        }
        if was_done && !self.takes_from_others {
            return Ok(String::new());
        }
        let answer = match told_order::of_text(order) {
            Some(told) => self.proxy.carry_out_told(&told?)?.to_string(),
            None => carry_out(&self.proxy, order.as_bytes()).map_err(|(_, why)| why)?.to_string(),
        };
        // What is purged is served no more; taking it out is nobody's to wait for.
        if !self.is_freeing.swap(true, Ordering::AcqRel) {
            let (freed, is_freeing) = (self.proxy.clone(), Arc::clone(&self.is_freeing));
            behind(move || {
                freed.take_out_purged();
                // What came meanwhile and was not seen is the next order's, or the cores' at their next tick.
                is_freeing.store(false, Ordering::Release);
            });
        }
        Ok(answer)
    }

    fn condemn(&self) -> u64 {
        self.proxy.condemn_stored()
    }

    fn condemned(&self, mark: u64) {
        self.proxy.condemned_before(mark);
    }

    fn hear(&self, position: u64) {
        self.proxy.hear_log_position(position);
    }

    fn stand_alone(&self, is_alone: bool) {
        self.proxy.stand_alone(is_alone);
    }

    fn reach(&self, Reached { epoch, position, is_followed }: Reached) {
        self.proxy.reach_log_position(PlaceInLog { epoch, position }, is_followed);
    }

    fn extend_lease(&self, until_ms: u64) {
        self.proxy.extend_fleet_lease(until_ms);
    }

    fn settle(&self) -> Result<(), String> {
        if self.proxy.disks_status().is_empty() {
            return Ok(());
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.map_err(|why| why.to_string())?.block_on(self.proxy.settled())
    }

    fn complaint(&self) -> String {
        self.vcl_orders.complaint.lock().clone()
    }

    fn figures(&self) -> Figures {
        let (requests, hits) = self.proxy.requests_and_hits();
        Figures { requests, hits }
    }

    fn say(&self, sentence: &str) {
        say!("{sentence}");
    }
}
