//! The body of a reply as it flows: a block at a time, each when it is due, with what a fault does to its bytes. How a block is
//! framed is the business of who sends it.

use std::time::Duration;

use tokio::time::sleep;

use crate::constructed_body::append_constructed;
use crate::fake_origin::origin_delivery::wait_for_stall;
use crate::fake_origin::origin_desk::OriginDesk;
use crate::fake_origin::origin_plan::Place;
use crate::fake_origin::origin_reply::Reply;
use crate::lab_clock::Nanos;
use crate::limits::{DRIP_STEP, ORIGIN_BLOCK_BYTES};

pub(crate) struct BodyBlocks<'r> {
    reply: &'r Reply,
    /// What a fault leaves of it.
    most: u64,
    pub(crate) sent: u64,
    block_bytes: u64,
    begun: Nanos,
}

impl<'r> BodyBlocks<'r> {
    pub(crate) fn of(reply: &'r Reply) -> BodyBlocks<'r> {
        let whole = reply.to - reply.from;
        let most = match reply.faults.ending {
            Some((_, Place::Body(most))) => whole.min(most),
            _ => whole,
        };
        let block_bytes = match reply.faults.drip {
            Some(rate) => ((rate as f64 * DRIP_STEP.as_secs_f64()) as u64).clamp(1, ORIGIN_BLOCK_BYTES),
            None => ORIGIN_BLOCK_BYTES,
        };
        BodyBlocks { reply, most, sent: 0, block_bytes, begun: Nanos::now() }
    }

    /// Is there nothing to be sent?
    pub(crate) fn is_empty(&self) -> bool {
        self.most == 0
    }

    /// Was all of the body sent, no fault having cut it?
    pub(crate) fn is_whole(&self) -> bool {
        self.sent == self.reply.to - self.reply.from && self.reply.faults.ending.is_none()
    }

    /// How long the next block is, once it is due; none: that was all.
    pub(crate) async fn due(&self, desk: &OriginDesk) -> Option<u64> {
        if self.sent >= self.most {
            return None;
        }
        if let Some(rate) = self.reply.faults.drip {
            let due = self.begun.after(Duration::from_secs_f64(self.sent as f64 / rate as f64));
            sleep(Nanos::now().until(due)).await;
        }
        if self.sent > 0 {
            wait_for_stall(desk).await;
        }
        Some(self.block_bytes.min(self.most - self.sent))
    }

    /// So many bytes more.
    pub(crate) fn append(&mut self, length: u64, block: &mut Vec<u8>) {
        let from = self.reply.from + self.sent;
        let to = from + length;
        let data_at = block.len();
        append_constructed(block, self.reply.rule, from, to);
        if let Some(flip) = self.reply.faults.flip.filter(|flip| (from..to).contains(flip)) {
            block[data_at + (flip - from) as usize] ^= 1;
        }
        self.sent += length;
    }
}
