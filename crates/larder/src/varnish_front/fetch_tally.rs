//! What the records of a fetch say of its backend and of the answer. They name program, backend and sizes in records of their own, so
//! they are read as one story.

use std::collections::HashMap;

use proxy::RecordKind;
use vsm::Counter;

/// Of each backend, in the order of the values.
pub const TALLIED_OF_BACKENDS: [Counter; 9] = [
    Counter::total("req", "Requests sent"),
    Counter::total("bereq_hdrbytes", "Bytes of heads of requests").bytes(),
    Counter::total("bereq_bodybytes", "Bytes of bodies of requests").bytes(),
    Counter::total("beresp_hdrbytes", "Bytes of heads of answers").bytes(),
    Counter::total("beresp_bodybytes", "Bytes of bodies of answers").bytes(),
    Counter::total("unhealthy", "Fetches refused because it was sick"),
    Counter::total("busy", "Fetches refused because it had max_connections"),
    Counter::total("fail", "Fetches for which no connection could be opened"),
    Counter::total("fail_econnrefused", "Of these, those that it refused"),
];

/// Their values.
pub type OfBackend = [u64; TALLIED_OF_BACKENDS.len()];

/// Of the store, and of what passes by it.
pub const TALLIED_OF_STORAGES: [Counter; 2] = [
    Counter::total("c_req", "Heads and bodies of answers that were to be kept here, or passed by"),
    Counter::total("c_bytes", "Bytes of these").bytes(),
];

/// Their values: of the store, and of Transient.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfStorages {
    pub store: [u64; TALLIED_OF_STORAGES.len()],
    pub transient: [u64; TALLIED_OF_STORAGES.len()],
}

const REQ: usize = 0;
const BYTES: usize = 1;
const UNHEALTHY: usize = 5;
const BUSY: usize = 6;
const FAIL: usize = 7;
const REFUSED: usize = 8;

/// What is looked at: a few of many records.
pub const READ: [RecordKind; 10] = [
    RecordKind::VclUse,
    RecordKind::Link,
    RecordKind::BackendOpen,
    RecordKind::BereqMethod,
    RecordKind::BerespStatus,
    RecordKind::Ttl,
    RecordKind::Storage,
    RecordKind::FetchBody,
    RecordKind::FetchError,
    RecordKind::BereqAcct,
];

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AnswerNoted {
    /// ttl, grace and keep in seconds; `None`: it must not be stored.
    Life(Option<f64>),
    /// From a backend. The mode is the first word of Fetch_Body: 0 none, 2 chunks, 3 a length, 4 to the end of the connection.
    Body { mode: u8, status: u16, is_to_head: bool },
}

/// Backends that are counted at once; those of programs that are gone are forgotten. Of one more nothing is counted.
const BACKENDS_TALLIED_MAX: usize = 10_000;
/// Fetches that are tried again and have not come yet; if there are more, what is lost is who asks.
const RETRIES_AWAITED_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub struct FetchTally {
    /// By `PROGRAM.BACKEND`.
    backends: HashMap<String, OfBackend>,
    /// A retry is a transaction of its own that does not name its program: by its number.
    retries: HashMap<u32, String>,
    /// The transaction that is read.
    xid: u32,
    program: String,
    backend: String,
    status: u16,
    is_to_head: bool,
    life_s: f64,
    /// Where its answer goes, once that is known.
    is_transient: Option<bool>,
    storages: OfStorages,
}

impl FetchTally {
    /// The next records are of this transaction. What is known of another one is void.
    pub fn go_on(&mut self, xid: u32) {
        if self.xid != xid {
            self.forget(xid);
        }
    }

    fn forget(&mut self, xid: u32) {
        self.xid = xid;
        // Every fetch comes by here: what there is room for already is used again.
        self.program.clear();
        self.backend.clear();
        if let Some(program) = self.retries.remove(&xid) {
            self.program = program;
        }
        (self.status, self.is_to_head, self.life_s, self.is_transient) = (0, false, 0.0, None);
    }

    fn await_retry(&mut self, xid: u32) {
        if self.retries.len() >= RETRIES_AWAITED_MAX {
            self.retries.clear();
        }
        self.retries.insert(xid, self.program.clone());
    }

    /// Of `PROGRAM.BACKEND`.
    pub fn of_backend(&self, name: &str) -> OfBackend {
        self.backends.get(name).copied().unwrap_or_default()
    }

    pub fn of_storages(&self) -> OfStorages {
        self.storages
    }

    /// It is gone, and another of its name begins anew.
    pub fn forget_backend(&mut self, name: &str) {
        self.backends.remove(name);
    }

    /// A record, and what is known of the answer with it.
    pub fn note(&mut self, kind: RecordKind, text: &[u8]) -> Option<AnswerNoted> {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let mut words = text.split(' ');
        match kind {
            RecordKind::VclUse => {
                self.program.clear();
                self.program.push_str(words.next().unwrap_or_default());
            }
            // `bereq NUMBER retry`
            RecordKind::Link if text.ends_with(" retry") => {
                self.await_retry(words.nth(1).and_then(|word| word.parse().ok()).unwrap_or(0));
            }
            RecordKind::BackendOpen => {
                self.backend = words.nth(1).unwrap_or_default().to_owned();
                self.add(REQ, 1);
            }
            RecordKind::BereqMethod => self.is_to_head = text == "HEAD",
            RecordKind::BerespStatus => self.status = text.parse().unwrap_or(0),
            RecordKind::Ttl => self.life_s = words.skip(1).take(3).filter_map(|word| word.parse::<f64>().ok()).sum(),
            RecordKind::Storage => {
                let is_transient = text.ends_with(" Transient");
                self.is_transient = Some(is_transient);
                return Some(AnswerNoted::Life((!is_transient).then_some(self.life_s)));
            }
            // Of what a program made instead there is none.
            RecordKind::FetchBody => {
                return Some(AnswerNoted::Body {
                    mode: words.next().and_then(|word| word.parse().ok()).unwrap_or(0),
                    status: self.status,
                    is_to_head: self.is_to_head,
                });
            }
            RecordKind::FetchError => self.note_failure(text),
            RecordKind::BereqAcct => {
                carried(text.as_bytes()).enumerate().for_each(|(at, bytes)| self.add(BYTES + at, bytes));
                self.note_storage(carried(text.as_bytes()).skip(2));
                self.forget(0);
            }
            _ => {}
        }
        None
    }

    /// An answer takes room for its head, and for its body if it has one.
    fn note_storage(&mut self, answer: impl Iterator<Item = u64>) {
        let of = match self.is_transient {
            None => return,
            Some(true) => &mut self.storages.transient,
            Some(false) => &mut self.storages.store,
        };
        for bytes in answer.filter(|bytes| *bytes > 0) {
            of[0] += 1;
            of[1] += bytes;
        }
    }

    /// `backend NAME: WHY`: there was no connection.
    fn note_failure(&mut self, text: &str) {
        let Some((name, why)) = text.strip_prefix("backend ").and_then(|text| text.split_once(": ")) else { return };
        self.backend = name.to_owned();
        match why.split([' ', ':']).next().unwrap_or_default() {
            "unhealthy" => self.add(UNHEALTHY, 1),
            "busy" => self.add(BUSY, 1),
            "fail" => {
                self.add(FAIL, 1);
                self.add(REFUSED, u64::from(why.contains("refused")));
            }
            _ => {}
        }
        // What the program answers instead does not come from it.
        self.backend.clear();
    }

    fn add(&mut self, at: usize, n: u64) {
        if self.program.is_empty() || self.backend.is_empty() {
            return;
        }
        let name = format!("{}.{}", self.program, self.backend);
        if self.backends.len() < BACKENDS_TALLIED_MAX || self.backends.contains_key(&name) {
            self.backends.entry(name).or_default()[at] += n;
        }
    }
}

/// Of an account: bytes of head and body that went one way, then of those that went the other. The sums are left out.
pub fn carried(account: &[u8]) -> impl Iterator<Item = u64> {
    let digits = |word: &[u8]| {
        word.iter()
            .fold(0_u64, |number, digit| number.wrapping_mul(10).wrapping_add(u64::from(digit.wrapping_sub(b'0'))))
    };
    let numbers = account.split(|byte| *byte == b' ').map(digits);
    numbers.enumerate().filter(|(at, _)| at % 3 != 2).map(|(_, bytes)| bytes).take(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(tally: &mut FetchTally, xid: u32, records: &[(RecordKind, &str)]) -> Vec<AnswerNoted> {
        tally.go_on(xid);
        records.iter().filter_map(|(kind, text)| tally.note(*kind, text.as_bytes())).collect()
    }

    #[test]
    fn a_fetch_counts_for_its_backend_and_says_what_its_answer_is() {
        use RecordKind as K;
        let mut tally = FetchTally::default();
        let first = [(K::VclUse, "vcl1"), (K::BereqMethod, "GET"), (K::BackendOpen, "28 s1 127.0.0.1 80 connect")];
        let life = [(K::BerespStatus, "200"), (K::Ttl, "RFC 1 2 3 1000 cacheable"), (K::Storage, "malloc s0")];
        let end = [(K::FetchBody, "3 length stream"), (K::BereqAcct, "1 2 3 40 50 90")];
        assert!(read(&mut tally, 7, &first).is_empty());
        // Another piece of the same transaction.
        let answers = read(&mut tally, 7, &[&life[..], &end].concat());
        let body = AnswerNoted::Body { mode: 3, status: 200, is_to_head: false };
        assert_eq!(answers, [AnswerNoted::Life(Some(6.0)), body]);
        assert_eq!(tally.of_backend("vcl1.s1"), [1, 1, 2, 40, 50, 0, 0, 0, 0]);
        // Of this one nobody saw the beginning: it is nobody's.
        read(&mut tally, 8, &end);
        assert_eq!(tally.of_backend("vcl1.s1")[1..5], [1, 2, 40, 50]);
        assert_eq!(tally.of_backend("vcl2.s1"), OfBackend::default());
    }

    #[test]
    fn an_answer_counts_for_where_it_goes() {
        use RecordKind as K;
        let mut tally = FetchTally::default();
        read(&mut tally, 7, &[(K::Storage, "malloc s0"), (K::BereqAcct, "1 2 3 40 50 90")]);
        read(&mut tally, 8, &[(K::Storage, "malloc Transient"), (K::BereqAcct, "1 2 3 40 0 40")]);
        read(&mut tally, 9, &[(K::Storage, "malloc Transient"), (K::BereqAcct, "1 2 3 4 5 9")]);
        // There was no answer.
        read(&mut tally, 10, &[(K::BereqAcct, "1 2 3 0 0 0")]);
        assert_eq!(tally.of_storages(), OfStorages { store: [2, 90], transient: [3, 49] });
    }

    #[test]
    fn a_fetch_without_a_connection_counts_by_its_reason() {
        let mut tally = FetchTally::default();
        for why in ["unhealthy", "busy: too many wait", "fail: Connection refused", "fail: timeout"] {
            let error = format!("backend s1: {why}");
            read(&mut tally, 7, &[(RecordKind::VclUse, "vcl1"), (RecordKind::FetchError, &error)]);
        }
        assert_eq!(tally.of_backend("vcl1.s1"), [0, 0, 0, 0, 0, 1, 1, 2, 1]);
    }

    #[test]
    fn backends_that_are_counted_have_a_limit_and_make_room_when_they_are_gone() {
        let mut tally = FetchTally::default();
        let open = |tally: &mut FetchTally, n: usize| {
            let opened = format!("28 b{n} 127.0.0.1 80 connect");
            read(tally, n as u32 + 1, &[(RecordKind::VclUse, "v"), (RecordKind::BackendOpen, &opened)]);
            tally.of_backend(&format!("v.b{n}"))[REQ]
        };
        let counted: u64 = (0..BACKENDS_TALLIED_MAX).map(|n| open(&mut tally, n)).sum();
        assert_eq!(counted, BACKENDS_TALLIED_MAX as u64);
        assert_eq!((open(&mut tally, BACKENDS_TALLIED_MAX), open(&mut tally, 0)), (0, 2));
        tally.forget_backend("v.b0");
        assert_eq!((open(&mut tally, 0), open(&mut tally, 1)), (1, 2));
    }

    #[test]
    fn a_retry_counts_for_the_program_of_the_first_try() {
        let mut tally = FetchTally::default();
        let open = (RecordKind::BackendOpen, "28 s1 127.0.0.1 80 connect");
        read(&mut tally, 7, &[(RecordKind::VclUse, "vcl1"), open, (RecordKind::Link, "bereq 9 retry")]);
        // Others come between.
        read(&mut tally, 8, &[open]);
        read(&mut tally, 9, &[open]);
        assert_eq!(tally.of_backend("vcl1.s1")[REQ], 2);
        (0..=RETRIES_AWAITED_MAX).for_each(|n| {
            read(&mut tally, 7, &[(RecordKind::Link, &format!("bereq {} retry", n + 10))]);
        });
        assert!(tally.retries.len() <= RETRIES_AWAITED_MAX);
    }
}
