//! What Varnish counts and larder's workers do not: read off the records on their way into the log, by the thread that writes
//! them. So it costs a request nothing; and what the log lost, which it says, is not counted.

use std::collections::BTreeSet;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use proxy::{RecordKind, RecordView};
use vsm::{Counter, LogPiece, LogTag};
use wire::refusals;

use super::fetch_tally::{self, AnswerNoted, FetchTally, OfBackend, OfStorages, carried};

macro_rules! tallied {
    ($($at:ident $name:literal $meaning:literal $(.$unit:ident())?),* $(,)?) => {
        #[derive(Clone, Copy, Debug)]
        enum At {
            $($at),*
        }

        /// In the order of the values.
        pub const TALLIED: [Counter; [$($name),*].len()] = [$(Counter::total($name, $meaning)$(.$unit())?),*];
    };
}

tallied! {
    ReqHead "s_req_hdrbytes" "Bytes of heads of requests".bytes(),
    ReqBody "s_req_bodybytes" "Bytes of bodies of requests".bytes(),
    RespHead "s_resp_hdrbytes" "Bytes of heads of answers".bytes(),
    RespBody "s_resp_bodybytes" "Bytes of bodies of answers".bytes(),
    Synth "s_synth" "Answers that programs were asked to make",
    Fetch "s_fetch" "Fetches begun",
    Background "s_bgfetch" "Fetches of what was served stale meanwhile",
    HitPass "cache_hitpass" "Requests passed because of a mark",
    HitMiss "cache_hitmiss" "Requests that missed because of a mark",
    Status500 "client_resp_500" "Answers with status 500",
    Uncacheable "beresp_uncacheable" "Answers of backends that must not be stored",
    ShortLived "beresp_shortlived" "Answers of backends that live less than the parameter shortlived",
    Recycled "backend_recycle" "Connections to backends that were kept for others",
    BodyOfHead "fetch_head" "Answers of backends without a body, to HEAD",
    BodyOfLength "fetch_length" "Answers of backends with Content-Length",
    BodyChunked "fetch_chunked" "Answers of backends in chunks",
    BodyToTheEnd "fetch_eof" "Answers of backends that end with the connection",
    BodyOf204 "fetch_204" "Answers of backends without a body: 204",
    BodyOf304 "fetch_304" "Answers of backends without a body: 304",
    NoBody "fetch_none" "Answers of backends without a body, for other reasons",
    RemoteClosed "sc_rem_close" "Sessions that the client closed",
    RequestCloses "sc_req_close" "Sessions whose last request said that it was",
    Junk "sc_rx_junk" "Sessions closed because of what is no request",
    BadBody "sc_rx_body" "Sessions closed because of a request's body",
    TooMuch "sc_rx_overflow" "Sessions closed because of a request over a limit",
    TooLate "sc_rx_timeout" "Sessions closed because nothing came",
    Piped "sc_tx_pipe" "Sessions that ended as a pipe",
    SendFailed "sc_tx_error" "Sessions closed because nothing could be sent",
    ResponseCloses "sc_resp_close" "Sessions whose last answer said that it was",
    ProgramFailed "sc_vcl_failure" "Sessions closed because a program failed",
    RangeShort "sc_range_short" "Sessions closed because not all of a range came from the backend",
    Http2Refused "sc_req_http20" "Sessions closed because HTTP/2 is switched off",
    Overload "sc_overload" "Sessions closed because of a limit of HTTP/2",
    RapidReset "sc_rapid_reset" "Sessions closed because streams ended too soon and too often",
    TooManyFields "losthdr" "Heads refused because they had more fields than http_max_hdr",
}

/// By the first word of how a session closed.
const CLOSINGS: [(At, &str); 14] = [
    (At::RemoteClosed, "REM_CLOSE"),
    (At::RequestCloses, "REQ_CLOSE"),
    (At::Junk, "RX_JUNK"),
    (At::BadBody, "RX_BODY"),
    (At::TooMuch, "RX_OVERFLOW"),
    (At::TooLate, "RX_TIMEOUT"),
    (At::Piped, "TX_PIPE"),
    (At::SendFailed, "TX_ERROR"),
    (At::ResponseCloses, "RESP_CLOSE"),
    (At::ProgramFailed, "VCL_FAILURE"),
    (At::RangeShort, "RANGE_SHORT"),
    (At::Http2Refused, "REQ_HTTP20"),
    (At::Overload, "OVERLOAD"),
    (At::RapidReset, "RAPID_RESET"),
];

/// What is looked at besides what is read of fetches. Most of what a request records is neither.
const NOTED: u128 = bits(&[
    RecordKind::ReqAcct,
    RecordKind::VclCall,
    RecordKind::Begin,
    RecordKind::HitPass,
    RecordKind::HitMiss,
    RecordKind::RespStatus,
    RecordKind::BackendClose,
    RecordKind::Error,
    RecordKind::FetchError,
    RecordKind::SessClose,
]);
const READ_OF_FETCHES: u128 = bits(&fetch_tally::READ);

const fn bit(kind: RecordKind) -> u128 {
    1 << kind as u8
}

const fn bits(kinds: &[RecordKind]) -> u128 {
    let (mut all, mut at) = (0, 0);
    while at < kinds.len() {
        all |= bit(kinds[at]);
        at += 1;
    }
    all
}

const _: () = assert!(RecordKind::ALL.len() <= u128::BITS as usize, "a bit for each kind of record");

/// Is it looked at here?
pub fn is_counted(kind: RecordKind) -> bool {
    (NOTED | READ_OF_FETCHES) & bit(kind) != 0
}

/// These kinds by the numbers that they have in the log.
static COUNTED: LazyLock<[Option<RecordKind>; 256]> = LazyLock::new(|| {
    let mut kinds = [None; 256];
    for kind in RecordKind::ALL.iter().filter(|kind| is_counted(**kind)) {
        let tag = LogTag::named(kind.name()).unwrap_or_else(|| panic!("the log has no {kind:?}"));
        kinds[usize::from(tag.number())] = Some(*kind);
    }
    kinds
});

/// Of the word that names a transaction: its number, and whose it is.
const XID_BITS: u32 = (1 << 30) - 1;
const OF_BACKENDS: u32 = 1 << 31;

/// Varnish's parameter `shortlived` by default, in seconds.
const SHORT_LIFE_S: f64 = 10.0;

#[derive(Debug)]
pub struct LogTally {
    served: [AtomicU64; TALLIED.len()],
    fetches: Mutex<FetchTally>,
    /// Requests for what pages include: their bytes are those of the pages.
    included: Mutex<BTreeSet<u32>>,
}

impl Default for LogTally {
    fn default() -> LogTally {
        LogTally {
            served: [const { AtomicU64::new(0) }; TALLIED.len()],
            fetches: Mutex::default(),
            included: Mutex::default(),
        }
    }
}

impl LogTally {
    pub fn values(&self) -> impl Iterator<Item = u64> {
        self.served.iter().map(|value| value.load(Ordering::Relaxed))
    }

    /// Of a backend, by `PROGRAM.BACKEND`.
    pub fn of_backend(&self, name: &str) -> OfBackend {
        self.fetches.lock().of_backend(name)
    }

    pub fn of_storages(&self) -> OfStorages {
        self.fetches.lock().of_storages()
    }

    pub fn forget_backend(&self, name: &str) {
        self.fetches.lock().forget_backend(name);
    }

    /// Counts what has come. Is all that is counted to be shown as it is?
    pub fn read_all(&self, came: &LogPiece, shows: impl Fn(&RecordView<'_>) -> bool) -> bool {
        let (counted, mut shows_all) = (&*COUNTED, true);
        for unit in came.units() {
            let mut rest = unit.records;
            while let Some((record, behind)) = RecordView::split_first(rest) {
                rest = behind;
                if let Some(kind) = counted[usize::from(record.number)] {
                    shows_all &= shows(&record);
                    self.read(record.transaction, kind, record.text());
                }
            }
        }
        shows_all
    }

    fn read(&self, transaction: u32, kind: RecordKind, text: &[u8]) {
        let (xid, kind_bit) = (transaction & XID_BITS, bit(kind));
        if xid == 0 {
            return;
        }
        if NOTED & kind_bit != 0 && !self.is_of_included(xid, kind, text) {
            self.note(kind, text);
        }
        if transaction & OF_BACKENDS != 0 && READ_OF_FETCHES & kind_bit != 0 {
            let mut fetches = self.fetches.lock();
            fetches.go_on(xid);
            if let Some(answer) = fetches.note(kind, text) {
                self.note_answer(answer);
            }
        }
    }

    /// Is this the account of a request for what a page includes?
    fn is_of_included(&self, xid: u32, kind: RecordKind, text: &[u8]) -> bool {
        match kind {
            RecordKind::Begin if !text.ends_with(b" rxreq") && is_of_included(text) => {
                self.included.lock().insert(xid);
                false
            }
            RecordKind::ReqAcct => self.included.lock().remove(&xid),
            _ => false,
        }
    }

    fn note(&self, kind: RecordKind, text: &[u8]) {
        match kind {
            RecordKind::ReqAcct => self.note_bytes(text),
            RecordKind::VclCall if text == b"SYNTH" => self.add(At::Synth, 1),
            RecordKind::Begin if text.starts_with(b"bereq ") => self.note_fetch(text),
            RecordKind::HitPass => self.add(At::HitPass, 1),
            RecordKind::HitMiss => self.add(At::HitMiss, 1),
            RecordKind::RespStatus if text == b"500" => self.add(At::Status500, 1),
            RecordKind::BackendClose if text.ends_with(b" recycle") => self.add(At::Recycled, 1),
            RecordKind::Error if text == refusals::REQUEST_FIELDS_TOO_MANY.token.as_bytes() => {
                self.add(At::TooManyFields, 1);
            }
            RecordKind::FetchError if says(text, refusals::RESPONSE_FIELDS_TOO_MANY.token) => {
                self.add(At::TooManyFields, 1);
            }
            RecordKind::SessClose => {
                if let Some((at, _)) = CLOSINGS.iter().find(|(_, word)| text.starts_with(word.as_bytes())) {
                    self.add(*at, 1);
                }
            }
            _ => {}
        }
    }

    /// A retry is the same fetch, and a pipe is none.
    fn note_fetch(&self, begin: &[u8]) {
        let why = begin.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
        self.add(At::Fetch, u64::from(matches!(why, b"fetch" | b"pass" | b"bgfetch")));
        self.add(At::Background, u64::from(why == b"bgfetch"));
    }

    fn note_bytes(&self, text: &[u8]) {
        for (at, bytes) in [At::ReqHead, At::ReqBody, At::RespHead, At::RespBody].into_iter().zip(carried(text)) {
            self.add(at, bytes);
        }
    }

    fn note_answer(&self, answer: AnswerNoted) {
        let at = match answer {
            AnswerNoted::Life(None) => At::Uncacheable,
            AnswerNoted::Life(Some(seconds)) if seconds < SHORT_LIFE_S => At::ShortLived,
            AnswerNoted::Life(Some(_)) => return,
            AnswerNoted::Body { mode: 2, .. } => At::BodyChunked,
            AnswerNoted::Body { mode: 3, .. } => At::BodyOfLength,
            AnswerNoted::Body { mode: 4, .. } => At::BodyToTheEnd,
            AnswerNoted::Body { is_to_head: true, .. } => At::BodyOfHead,
            AnswerNoted::Body { status: 204, .. } => At::BodyOf204,
            AnswerNoted::Body { status: 304, .. } => At::BodyOf304,
            AnswerNoted::Body { .. } => At::NoBody,
        };
        self.add(at, 1);
    }

    fn add(&self, at: At, n: u64) {
        if n == 0 {
            return;
        }
        self.served[at as usize].fetch_add(n, Ordering::Relaxed);
    }
}

/// `req NUMBER esi LEVEL`
fn is_of_included(begin: &[u8]) -> bool {
    begin.starts_with(b"req ") && begin.windows(5).any(|part| part == b" esi ")
}

/// Is that the reason, as a sentence has it?
fn says(sentence: &[u8], token: &str) -> bool {
    String::from_utf8_lossy(sentence).contains(&token.replace('-', " "))
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
            (RecordKind::Begin, "bereq 5 retry"),
            (RecordKind::Begin, "bereq 5 pipe"),
            (RecordKind::HitPass, "7 1.0"),
            (RecordKind::HitMiss, "7 1.0"),
            (RecordKind::RespStatus, "500"),
            (RecordKind::RespStatus, "200"),
            (RecordKind::BackendClose, "28 s1 recycle"),
            (RecordKind::BackendClose, "28 s1 close RESP_CLOSE"),
            (RecordKind::SessClose, "REM_CLOSE 0.001"),
            (RecordKind::Error, "request-fields-too-many"),
            (RecordKind::Error, "request-line-invalid"),
            (RecordKind::FetchError, "origin \"s1\" (x): its answer was refused: response fields too many (a limit)"),
            (RecordKind::FetchError, "first byte timeout"),
        ] {
            tally.read(1 << 30 | 7, kind, text.as_bytes());
        }
        for answer in [
            AnswerNoted::Life(None),
            AnswerNoted::Life(Some(9.0)),
            AnswerNoted::Life(Some(10.0)),
            AnswerNoted::Body { mode: 2, status: 200, is_to_head: false },
            AnswerNoted::Body { mode: 0, status: 200, is_to_head: true },
            AnswerNoted::Body { mode: 3, status: 200, is_to_head: false },
        ] {
            tally.note_answer(answer);
        }
        let counted: Vec<(&str, u64)> =
            TALLIED.iter().map(|counter| counter.name).zip(tally.values()).filter(|(_, value)| *value > 0).collect();
        let expect = [
            ("s_req_hdrbytes", 101),
            ("s_req_bodybytes", 22),
            ("s_resp_hdrbytes", 304),
            ("s_resp_bodybytes", 4005),
            ("s_synth", 1),
            ("s_fetch", 2),
            ("s_bgfetch", 1),
            ("cache_hitpass", 1),
            ("cache_hitmiss", 1),
            ("client_resp_500", 1),
            ("beresp_uncacheable", 1),
            ("beresp_shortlived", 1),
            ("backend_recycle", 1),
            ("fetch_head", 1),
            ("fetch_length", 1),
            ("fetch_chunked", 1),
            ("sc_rem_close", 1),
            ("losthdr", 2),
        ];
        assert_eq!(counted, expect);
    }
}
