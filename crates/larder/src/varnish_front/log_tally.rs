//! What Varnish counts and larder's workers do not: read off the records on their way into the log, by the thread that writes
//! them. So it costs a request nothing; and what the log lost, which it says, is not counted.

use std::sync::atomic::{AtomicU64, Ordering};

use proxy::RecordKind;
use vsm::Counter;

/// In the order of the values.
pub const TALLIED: [Counter; 9] = [
    Counter::total("s_req_hdrbytes", "Bytes of heads of requests").bytes(),
    Counter::total("s_req_bodybytes", "Bytes of bodies of requests").bytes(),
    Counter::total("s_resp_hdrbytes", "Bytes of heads of answers").bytes(),
    Counter::total("s_resp_bodybytes", "Bytes of bodies of answers").bytes(),
    Counter::total("s_synth", "Answers that programs were asked to make"),
    Counter::total("s_bgfetch", "Fetches of what was served stale meanwhile"),
    Counter::total("cache_hitpass", "Requests passed because of a mark"),
    Counter::total("cache_hitmiss", "Requests that missed because of a mark"),
    Counter::total("client_resp_500", "Answers with status 500"),
];

const S_REQ_HDRBYTES: usize = 0;
const S_SYNTH: usize = 4;
const S_BGFETCH: usize = 5;
const CACHE_HITPASS: usize = 6;
const CACHE_HITMISS: usize = 7;
const CLIENT_RESP_500: usize = 8;

#[derive(Debug, Default)]
pub struct LogTally([AtomicU64; TALLIED.len()]);

impl LogTally {
    pub fn values(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|value| value.load(Ordering::Relaxed))
    }

    /// A record of a transaction.
    pub fn note(&self, kind: RecordKind, text: &[u8]) {
        match kind {
            RecordKind::ReqAcct => self.note_bytes(text),
            RecordKind::VclCall if text == b"SYNTH" => self.add(S_SYNTH, 1),
            RecordKind::Begin if text.starts_with(b"bereq ") && text.ends_with(b" bgfetch") => self.add(S_BGFETCH, 1),
            RecordKind::HitPass => self.add(CACHE_HITPASS, 1),
            RecordKind::HitMiss => self.add(CACHE_HITMISS, 1),
            RecordKind::RespStatus if text == b"500" => self.add(CLIENT_RESP_500, 1),
            _ => {}
        }
    }

    /// Head, body and sum of what came, then of what went.
    fn note_bytes(&self, text: &[u8]) {
        let numbers = std::str::from_utf8(text).unwrap_or_default().split(' ').map(|word| word.parse().unwrap_or(0));
        // The sums are left out.
        let each = numbers.enumerate().filter(|(at, _)| at % 3 != 2).map(|(_, bytes)| bytes);
        each.take(4).enumerate().for_each(|(at, bytes)| self.add(S_REQ_HDRBYTES + at, bytes));
    }

    fn add(&self, at: usize, n: u64) {
        self.0[at].fetch_add(n, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_counted_under_varnish_s_names() {
        let tally = LogTally::default();
        for (kind, text) in [
            (RecordKind::ReqAcct, "100 20 120 300 4000 4300"),
            (RecordKind::ReqAcct, "1 2 3 4 5 9"),
            (RecordKind::VclCall, "SYNTH"),
            (RecordKind::VclCall, "RECV"),
            (RecordKind::Begin, "bereq 5 bgfetch"),
            (RecordKind::Begin, "bereq 5 fetch"),
            (RecordKind::HitPass, "7 1.0"),
            (RecordKind::HitMiss, "7 1.0"),
            (RecordKind::RespStatus, "500"),
            (RecordKind::RespStatus, "200"),
        ] {
            tally.note(kind, text.as_bytes());
        }
        assert_eq!(tally.values().collect::<Vec<_>>(), [101, 22, 304, 4005, 1, 1, 1, 1, 1]);
        assert_eq!(TALLIED[S_BGFETCH].name, "s_bgfetch");
        assert_eq!(TALLIED[CLIENT_RESP_500].name, "client_resp_500");
    }
}
