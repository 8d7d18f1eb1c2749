//! The lanes of one core: to each server that was asked, as many as its load wants and its settings allow.

use std::rc::Rc;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use smallvec::SmallVec;
use wire::memcached::Command;

use crate::counters::CoreCounters;
use crate::memcached_gateway::gateway_call::{Failure, FailureKind, GatewayCall};
use crate::memcached_gateway::memcached_lane::Lane;
use crate::memcached_gateway::memcached_server::Server;

#[derive(Default)]
pub(crate) struct LaneTable {
    by_server: HashMap<u64, SmallVec<[Rc<Lane>; 1]>, RandomState>,
}

impl LaneTable {
    /// Sends a command to this server, on the first lane that has room, or on a new one.
    pub(crate) fn push(
        &mut self,
        (counters, now_ms): (&Arc<CoreCounters>, u64),
        server: &Arc<Server>,
        call: &Arc<GatewayCall>,
        command: &Command<'_>,
    ) {
        let lanes = self.by_server.entry(server.id).or_default();
        if lanes.iter().any(|lane| lane.is_retired()) {
            lanes.retain(|lane| !lane.is_retired());
        }
        let lane = match lanes.iter().find(|lane| lane.has_room()) {
            Some(lane) => lane,
            None if lanes.len() < server.terms.connections_max => {
                lanes.push(Lane::open(counters, now_ms, server));
                &lanes[lanes.len() - 1]
            }
            None => match lanes.iter().filter(|lane| !lane.is_full()).min_by_key(|lane| lane.waiting_count()) {
                Some(lane) => lane,
                None => {
                    let failure = Failure { kind: FailureKind::Busy, unsent: true };
                    return server.settle(counters, call, Err(failure));
                }
            },
        };
        lane.push(Arc::clone(call), command);
    }

    /// For the core's tick: forgets servers that nothing leads to any more, and leaves addresses that a name no longer
    /// stands for.
    pub(crate) fn sweep(&mut self, now_ms: u64) {
        self.by_server.retain(|_, lanes| {
            if let Some(lane) = lanes.first() {
                lane.server.whereabouts.load().follow(now_ms);
                lane.server.tell_what_is_due(now_ms);
            }
            lanes.iter().for_each(|lane| lane.retire_if_moved());
            lanes.retain(|lane| !lane.is_retired());
            !lanes.is_empty()
        });
    }
}
