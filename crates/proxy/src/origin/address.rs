//! One address of an origin: its connections, whether it is asked, and what of its share it gets. Three voices say so: requests that
//! failed (passive ejection), probes, and operators. `now` is an argument. What counts as a failure is the fetch's judgement; this only
//! counts.
//!
//! Every request asks, on every core: the answer is one load of a word that is rarely written. What leads to it is behind a lock that
//! requests take only when a failure ejects somebody.

use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tls::Protocol;

use super::OriginFailure;
use super::address_order::AddressOrder;
use super::dial::DialAddress;
use super::limits::SLOW_PERMILLE_MIN;
use super::origin_error::Span;
use super::origin_pool::Shelves;
use crate::backend_health::{BackendHealth, ProbeStatus};
use crate::health_notice::{HealthNotice, NoticeSubject};
use crate::probe_window::ProbeWindow;
use crate::rendezvous;
use crate::socket::Socket;

/// When an address is left out (passive ejection).
#[derive(Clone, Copy, Debug)]
pub struct Ejection {
    /// Failures in a row; 0 ejects nobody.
    pub failures_max: u32,
    pub time_ms: u64,
}

/// What an address did wrong.
pub enum AddressFault<'a> {
    /// Nobody could be connected to there: it is down, whatever else is known of it.
    Unreachable(&'a dyn Display),
    /// It was asked. That may be the request's fault, so that it is down only when this ejects it.
    Answer(OriginFailure),
}

/// Whether an address is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It gets so many thousandths of its share.
    Serves { permille: u32 },
    /// It is believed not to answer: it is asked only where all others are, too.
    LastResort,
    /// An operator wants it to be asked nothing.
    Out,
}

const FULL: Standing = Standing::Serves { permille: 1_000 };

/// Bits of an address's word. Zero: it serves.
mod mark {
    /// By an operator.
    pub const OUT: u32 = 1;
    /// Of these who want it to be asked what belongs to it alone.
    pub const DRAINED: u32 = 2;
    /// By an operator: what failed does not count.
    pub const FORCED_UP: u32 = 4;
    pub const DOWN_BY_PROBE: u32 = 8;
    /// It was ejected, and has given no answer since; `ejected_until_ms` says whether it still is, or is on trial.
    pub const EJECTED: u32 = 16;
    /// It came back; `slow_since_ms` says when.
    pub const SLOW: u32 = 32;
}

/// One address that connections are opened to. It outlives lookups and reloads that name it again.
#[derive(Debug)]
pub struct Address {
    pub place: DialAddress,
    /// The place in text, for errors, logs and the admin.
    pub label: Arc<str>,
    /// What stands for it where keys are shared out.
    pub seed: u64,
    /// See [`mark`]. Written with `decided` locked.
    marks: AtomicU32,
    /// Failures since the last success.
    failures: AtomicU32,
    /// 0: never ejected, or an answer came since.
    ejected_until_ms: AtomicU64,
    /// A request is under way whose answer, or failure, decides whether it is asked by all again.
    is_tried: AtomicBool,
    /// Its share grows from then on.
    slow_since_ms: AtomicU64,
    decided: Mutex<Decided>,
    /// What the operator is to be told of its health is held back for now.
    owes_line: AtomicBool,
    subject: Arc<NoticeSubject>,
    /// Requests under way, where the balance asks for them.
    pub in_use: AtomicU32,
    /// Open to it, in use or idle; over HTTP/2, requests under way.
    pub connections: AtomicUsize,
    /// Over which HTTP/2 is spoken; each carries many of those.
    pub http2_connections: AtomicUsize,
    /// It was offered HTTP/2 last, and did not want it.
    prefers_http1: AtomicBool,
    pub shelves: Shelves,
}

/// What others than requests say of an address.
#[derive(Debug, Default)]
struct Decided {
    order: AddressOrder,
    /// In place of what the configuration says.
    weight: Option<u32>,
    probes: Option<BackendHealth>,
    /// Its probes have not told anything yet, and it is asked meanwhile.
    is_unprobed: bool,
    is_ejected: bool,
    is_slow: bool,
    /// Nobody could be connected to, or what was asked of it ejected it; and it has not answered since.
    is_failing: bool,
    notice: HealthNotice,
}

impl Decided {
    fn is_down_by_probe(&self) -> bool {
        !self.is_unprobed && self.probes.as_ref().is_some_and(|probes| !probes.read().healthy)
    }

    fn marks(&self) -> u32 {
        let by_order = match self.order {
            AddressOrder::Auto => 0,
            AddressOrder::Up => mark::FORCED_UP,
            AddressOrder::Down => mark::OUT,
            AddressOrder::Drain => mark::OUT | mark::DRAINED,
        };
        let bit = |is_set: bool, bit| if is_set { bit } else { 0 };
        by_order
            | bit(self.is_down_by_probe(), mark::DOWN_BY_PROBE)
            | bit(self.is_ejected, mark::EJECTED)
            | bit(self.is_slow, mark::SLOW)
    }
}

/// Do these, but for ejection, let it be asked?
fn is_asked(marks: u32) -> bool {
    marks & mark::OUT == 0 && (marks & mark::DOWN_BY_PROBE == 0 || marks & mark::FORCED_UP != 0)
}

impl Address {
    /// `subject`: of what its health is told.
    pub(super) fn new(place: DialAddress, shelves_count: usize, subject: Arc<NoticeSubject>) -> Address {
        let label: Arc<str> = place.to_string().into();
        Address {
            place,
            seed: rendezvous::seed(label.as_bytes()),
            label,
            marks: AtomicU32::new(0),
            failures: AtomicU32::new(0),
            ejected_until_ms: AtomicU64::new(0),
            is_tried: AtomicBool::new(false),
            slow_since_ms: AtomicU64::new(0),
            decided: Mutex::default(),
            owes_line: AtomicBool::new(false),
            subject,
            in_use: AtomicU32::new(0),
            connections: AtomicUsize::new(0),
            http2_connections: AtomicUsize::new(0),
            prefers_http1: AtomicBool::new(false),
            shelves: Shelves::new(shelves_count),
        }
    }

    /// Is HTTP/2 likely to be spoken with it, where it is offered?
    pub fn expects_http2(&self) -> bool {
        match self.place {
            DialAddress::Http2(_) => true,
            DialAddress::Tls(..) => !self.prefers_http1.load(Ordering::Relaxed),
            DialAddress::Tcp(_) | DialAddress::Unix(_) | DialAddress::Mocked(_) => false,
        }
    }

    /// Was it agreed upon to speak HTTP/2 on this connection, where that was offered? What is spoken here is remembered.
    pub fn speaks_http2(&self, connection: &Socket) -> bool {
        match &self.place {
            DialAddress::Http2(_) => true,
            DialAddress::Tls(..) => {
                let agreed = connection.tls().and_then(|tls| tls.session().protocol());
                self.prefers_http1.store(agreed != Some(Protocol::Http2), Ordering::Relaxed);
                agreed == Some(Protocol::Http2)
            }
            DialAddress::Tcp(_) | DialAddress::Unix(_) | DialAddress::Mocked(_) => false,
        }
    }
}

/// Whether it is asked.
impl Address {
    /// The usual case, asked first: nothing is said against it.
    #[inline]
    pub fn is_unmarked(&self) -> bool {
        self.marks.load(Ordering::Relaxed) == 0
    }

    /// `slow_ms`: within which one that comes back has its whole share again.
    #[inline]
    pub fn standing(&self, now_ms: u64, slow_ms: u64) -> Standing {
        match self.marks.load(Ordering::Relaxed) {
            0 => FULL,
            marks => self.marked_standing(marks, now_ms, slow_ms),
        }
    }

    #[cold]
    fn marked_standing(&self, marks: u32, now_ms: u64, slow_ms: u64) -> Standing {
        if marks & mark::OUT != 0 {
            return Standing::Out;
        }
        let is_left_out = marks & mark::DOWN_BY_PROBE != 0 || self.is_ejected(now_ms) || self.waits_for_trial();
        if is_left_out && marks & mark::FORCED_UP == 0 {
            return Standing::LastResort;
        }
        match now_ms.checked_sub(self.slow_since_ms.load(Ordering::Relaxed)) {
            Some(since_ms) if marks & mark::SLOW != 0 && since_ms < slow_ms => {
                Standing::Serves { permille: ((since_ms * 1_000 / slow_ms) as u32).max(SLOW_PERMILLE_MIN) }
            }
            _ => FULL,
        }
    }

    /// Does an operator want it to be asked nothing?
    #[inline]
    pub fn is_out(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & mark::OUT != 0
    }

    /// The same, but for what belongs to it alone.
    pub fn is_drained(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & mark::DRAINED != 0
    }

    pub fn is_down_by_probe(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & mark::DOWN_BY_PROBE != 0
    }

    #[inline]
    pub fn is_ejected(&self, now_ms: u64) -> bool {
        self.ejected_until_ms.load(Ordering::Relaxed) > now_ms
    }

    /// Its sentence is served, and it is being found out what it is like now: one request is enough for that.
    fn waits_for_trial(&self) -> bool {
        self.ejected_until_ms.load(Ordering::Relaxed) > 0 && self.is_tried.load(Ordering::Relaxed)
    }

    /// True if this request is the one.
    #[inline]
    pub fn begins_trial(&self) -> bool {
        self.marks.load(Ordering::Relaxed) & mark::EJECTED != 0
            && self.ejected_until_ms.load(Ordering::Relaxed) > 0
            && !self.is_tried.swap(true, Ordering::Relaxed)
    }

    pub fn ends_trial(&self) {
        self.is_tried.store(false, Ordering::Relaxed);
    }

    pub fn ejected_for_ms(&self, now_ms: u64) -> Option<u64> {
        let left_ms = self.ejected_until_ms.load(Ordering::Relaxed).saturating_sub(now_ms);
        (left_ms > 0).then_some(left_ms)
    }

    pub fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }
}

/// What requests find.
impl Address {
    /// The address answered. Writes only if there is something to forget: this is on every request's way. One that was ejected begins
    /// slowly from then on, which is why it may have to ask for the time.
    #[inline]
    pub fn succeeded(&self, now_ms: impl FnOnce() -> u64) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.forgive(now_ms());
        }
    }

    #[cold]
    fn forgive(&self, now_ms: u64) {
        let mut decided = self.decided.lock();
        self.failures.store(0, Ordering::Relaxed);
        if self.ejected_until_ms.swap(0, Ordering::Relaxed) > 0 {
            self.slow_since_ms.store(now_ms, Ordering::Relaxed);
        }
        decided.is_failing = false;
        let line = if decided.is_down_by_probe() { None } else { decided.notice.up(now_ms) };
        self.tell(decided, line);
    }

    /// Says the line, and whether there is one that has to wait, when nothing is locked any more.
    fn tell(&self, decided: MutexGuard<'_, Decided>, line: Option<String>) {
        self.owes_line.store(decided.notice.owes_line(), Ordering::Relaxed);
        drop(decided);
        self.subject.say(&self.label, line);
    }

    /// Since when it is down, and why, if it is.
    pub fn down(&self) -> Option<(u64, String)> {
        self.decided.lock().notice.reason()
    }

    /// Says what was held back, if its time has come.
    pub fn tell_what_is_due(&self, now_ms: u64) {
        if self.owes_line.load(Ordering::Relaxed) {
            let mut decided = self.decided.lock();
            let line = decided.notice.due(now_ms);
            self.tell(decided, line);
        }
    }

    /// Counts a failure; true if it ejected the address. The count stays high, so that one more failure after the
    /// sentence ejects it again, and only an answer forgives.
    pub fn failed(&self, ejection: Ejection, now_ms: u64, fault: AddressFault<'_>) -> bool {
        let failures = self.failures.load(Ordering::Relaxed).saturating_add(1);
        self.failures.store(failures, Ordering::Relaxed);
        let ejects = ejection.failures_max > 0 && failures >= ejection.failures_max && !self.is_ejected(now_ms);
        let is_unreachable = matches!(fault, AddressFault::Unreachable(_));
        if !ejects && !is_unreachable {
            return false;
        }
        let mut decided = self.decided.lock();
        if ejects {
            let until_ms = now_ms.saturating_add(ejection.time_ms);
            self.ejected_until_ms.store(until_ms, Ordering::Relaxed);
            // Not before an answer came: until then it has its turns, but one request at a time.
            self.slow_since_ms.store(u64::MAX, Ordering::Relaxed);
            (decided.is_ejected, decided.is_slow) = (true, true);
            self.marks.store(decided.marks(), Ordering::Relaxed);
        }
        decided.is_failing = true;
        let line = decided.notice.down(now_ms, || match fault {
            AddressFault::Unreachable(why) => why.to_string(),
            AddressFault::Answer(why) => {
                let time = Span(Duration::from_millis(ejection.time_ms));
                format!("{why}; {failures} failures in a row (ejection_failures), left out for {time} (ejection_time)")
            }
        });
        self.tell(decided, line);
        ejects
    }
}

/// What probes and operators say.
impl Address {
    /// Changes what is decided. Who is asked again by that begins slowly.
    fn decide<T>(&self, now_ms: u64, change: impl FnOnce(&mut Decided) -> T) -> T {
        let mut decided = self.decided.lock();
        let before = decided.marks();
        let result = change(&mut decided);
        if !is_asked(before) && is_asked(decided.marks()) {
            self.slow_since_ms.store(now_ms, Ordering::Relaxed);
            decided.is_slow = true;
        }
        self.marks.store(decided.marks(), Ordering::Relaxed);
        result
    }

    /// It is new beside others.
    pub fn begin_slowly(&self, now_ms: u64) {
        self.slow_since_ms.store(now_ms, Ordering::Relaxed);
        self.decide(now_ms, |decided| decided.is_slow = true);
    }

    /// Takes away marks that say nothing any more.
    pub fn settle_marks(&self, now_ms: u64, slow_ms: u64) {
        if self.marks.load(Ordering::Relaxed) & (mark::EJECTED | mark::SLOW) == 0 {
            return;
        }
        self.decide(now_ms, |decided| {
            decided.is_ejected = self.ejected_until_ms.load(Ordering::Relaxed) > 0;
            let full_from_ms = self.slow_since_ms.load(Ordering::Relaxed).saturating_add(slow_ms);
            decided.is_slow &= now_ms < full_from_ms;
        });
    }

    /// It is probed from now on with this window, or not any more. What was found before stays where the window is the same. Else it is
    /// asked until the first probe tells, unless it is new beside others: these can wait for it.
    pub fn set_probed(&self, window: Option<&ProbeWindow>, is_new: bool, now_ms: u64, wall_ms: u64) {
        self.decide(now_ms, |decided| {
            let known = decided.probes.as_ref().and_then(BackendHealth::record);
            match (window, known) {
                (Some(window), Some(known)) if window.is_alike(&known.window) => {}
                (window, _) => {
                    decided.probes = window.map(|window| BackendHealth::probed(window.clone(), wall_ms));
                    decided.is_unprobed = !is_new;
                }
            }
        });
    }

    /// A probe ended.
    pub fn note_probe(&self, good: bool, last: String, took_ms: u64, now_ms: u64, wall_ms: u64) {
        self.decide(now_ms, |decided| {
            if let Some(probes) = &decided.probes {
                probes.note(good, last, took_ms, wall_ms);
                decided.is_unprobed = false;
            }
        });
        let mut decided = self.decided.lock();
        // It answers, and nobody may have asked it for anything since it failed.
        decided.is_failing &= !good || self.is_ejected(now_ms);
        let line = match decided.is_down_by_probe() {
            true => {
                let status = decided.probes.as_ref().and_then(BackendHealth::probe_status);
                decided.notice.down(now_ms, || status.map(|status| status.to_string()).unwrap_or_default())
            }
            false if decided.is_failing => None,
            false => decided.notice.up(now_ms),
        };
        self.tell(decided, line);
    }

    pub fn probe_status(&self) -> Option<ProbeStatus> {
        self.decided.lock().probes.as_ref().and_then(BackendHealth::probe_status)
    }

    pub fn order(&self, order: AddressOrder, now_ms: u64) {
        self.decide(now_ms, |decided| decided.order = order);
    }

    pub fn ordered(&self) -> AddressOrder {
        self.decided.lock().order
    }

    /// `None`: as the configuration says.
    pub fn order_weight(&self, weight: Option<u32>) {
        self.decided.lock().weight = weight;
    }

    pub fn ordered_weight(&self) -> Option<u32> {
        self.decided.lock().weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin::in_use::InUse;

    const EJECTION: Ejection = Ejection { failures_max: 3, time_ms: 10_000 };
    const SILENT: AddressFault<'static> = AddressFault::Answer(OriginFailure::FirstByte);

    fn address() -> Address {
        Address::new(DialAddress::Tcp(([10, 0, 0, 1], 80).into()), 1, Arc::default())
    }

    #[test]
    fn an_answer_between_failures_starts_the_count_again() {
        let address = address();
        for _ in 0..10 {
            assert!(!address.failed(EJECTION, 0, SILENT));
            assert!(!address.failed(EJECTION, 0, SILENT));
            address.succeeded(|| 0);
        }
    }

    #[test]
    fn no_failures_max_ejects_nobody() {
        let address = address();
        assert!((0..100).all(|_| !address.failed(Ejection { failures_max: 0, time_ms: 1 }, 0, SILENT)));
    }

    #[test]
    fn who_comes_back_from_an_ejection_gets_its_share_little_by_little() {
        let address = address();
        (0..3).for_each(|_| _ = address.failed(EJECTION, 0, SILENT));
        assert_eq!(address.standing(9_999, 1_000), Standing::LastResort);
        assert_eq!(address.standing(10_000, 1_000), FULL, "it is found out what it is like");
        address.succeeded(|| 10_000);
        assert_eq!(address.standing(10_000, 1_000), Standing::Serves { permille: SLOW_PERMILLE_MIN });
        assert_eq!(address.standing(10_500, 1_000), Standing::Serves { permille: 500 });
        assert_eq!(address.standing(11_000, 1_000), FULL);
        assert_eq!(address.standing(10_001, 0), FULL, "nobody asked for a slow start");
        address.settle_marks(10_500, 1_000);
        assert_eq!(address.standing(10_500, 1_000), Standing::Serves { permille: 500 }, "it is still slow");
        assert!(!address.is_unmarked());
        address.settle_marks(11_000, 1_000);
        assert!(address.is_unmarked());
    }

    #[test]
    fn who_answers_before_its_sentence_is_over_begins_then() {
        let address = address();
        (0..3).for_each(|_| _ = address.failed(EJECTION, 0, SILENT));
        address.succeeded(|| 4_000);
        assert_eq!(address.standing(4_500, 1_000), Standing::Serves { permille: 500 });
        assert_eq!(address.standing(10_000, 1_000), FULL, "and not once more when it would have been over");
    }

    #[test]
    fn one_request_finds_out_what_an_address_is_like_whose_sentence_is_served() {
        let address = Arc::new(address());
        assert!(InUse::begin(false, &address).is_none(), "nobody asks");
        (0..3).for_each(|_| _ = address.failed(EJECTION, 0, SILENT));
        let trial = InUse::begin(false, &address).expect("it was ejected");
        assert!(InUse::begin(false, &address).is_none(), "one is enough");
        assert_eq!(address.standing(10_000, 0), Standing::LastResort, "the others are not for it meanwhile");
        drop(trial);
        assert_eq!(address.standing(10_000, 0), FULL, "it was found out nothing: the next one tries");
        let trial = InUse::begin(false, &address).expect("it is the next");
        address.succeeded(|| 10_000);
        assert_eq!(address.standing(10_000, 0), FULL, "who answers serves all, before the trial's answer has ended");
        drop(trial);
        address.settle_marks(10_000, 0);
        assert!(address.is_unmarked());
    }

    #[test]
    fn a_trial_that_fails_ejects_again() {
        let address = Arc::new(address());
        (0..3).for_each(|_| _ = address.failed(EJECTION, 0, SILENT));
        address.settle_marks(10_000, 0);
        let trial = InUse::begin(false, &address).expect("what is settled leaves it on trial");
        assert!(address.failed(EJECTION, 10_000, SILENT));
        drop(trial);
        assert_eq!(address.standing(19_999, 0), Standing::LastResort);
    }

    #[test]
    fn an_order_is_above_probes_and_failures_until_it_is_taken_back() {
        let address = address();
        address.set_probed(Some(&ProbeWindow::new(1, 1, 1)), false, 0, 0);
        assert!(address.is_unmarked());
        address.note_probe(false, "refused".to_owned(), 1, 10, 10);
        (0..3).for_each(|_| _ = address.failed(EJECTION, 10, SILENT));
        assert_eq!(address.standing(10, 0), Standing::LastResort);
        address.order(AddressOrder::Up, 10);
        assert_eq!(address.standing(10, 0), FULL);
        for order in [AddressOrder::Down, AddressOrder::Drain] {
            address.order(order, 20);
            assert_eq!((address.standing(20, 0), address.is_out()), (Standing::Out, true), "{order:?}");
        }
        assert!(address.is_drained());
        address.order(AddressOrder::Auto, 30);
        assert_eq!(address.standing(20_000, 0), Standing::LastResort, "the probe says so");
        address.note_probe(true, "200".to_owned(), 1, 20_000, 20_000);
        assert_eq!(address.standing(21_000, 2_000), Standing::Serves { permille: 500 }, "it begins slowly");
        assert_eq!(address.standing(20_000, 0), FULL);
    }

    #[test]
    fn who_cannot_be_connected_to_is_down_at_once_and_who_answers_badly_when_it_is_ejected() {
        let address = address();
        address.failed(EJECTION, 0, AddressFault::Unreachable(&"refused"));
        assert!(address.down().is_some());
        address.succeeded(|| 5_000);
        assert!(address.down().is_none());
        (0..2).for_each(|_| _ = address.failed(EJECTION, 6_000, SILENT));
        assert!(address.down().is_none());
        address.failed(EJECTION, 6_000, SILENT);
        assert!(address.down().is_some());
    }

    #[test]
    fn who_fails_and_is_probed_is_back_when_a_probe_says_so_and_its_sentence_is_served() {
        let address = address();
        address.set_probed(Some(&ProbeWindow::new(1, 1, 1)), false, 0, 0);
        (0..3).for_each(|_| _ = address.failed(EJECTION, 0, SILENT));
        address.note_probe(false, "refused".to_owned(), 1, 5_000, 5_000);
        assert!(address.down().is_some());
        address.note_probe(true, "200".to_owned(), 1, 6_000, 6_000);
        assert!(address.down().is_some(), "requests do not go there yet");
        address.note_probe(true, "200".to_owned(), 1, 11_000, 11_000);
        assert!(address.down().is_none());
        address.note_probe(false, "503 instead of 200".to_owned(), 1, 12_000, 12_000);
        address.succeeded(|| 13_000);
        assert!(address.down().is_some(), "its probes still fail");
    }

    #[test]
    fn what_probes_found_outlives_a_reload_that_asks_for_the_same() {
        let address = address();
        address.set_probed(Some(&ProbeWindow::new(2, 1, 0)), false, 0, 0);
        assert!(address.is_unmarked(), "it is asked until the first probe tells");
        address.note_probe(true, "200".to_owned(), 1, 0, 0);
        address.set_probed(Some(&ProbeWindow::new(2, 1, 1)), false, 0, 0);
        assert_eq!(address.probe_status().unwrap().probes_count, 1);
        address.set_probed(Some(&ProbeWindow::new(3, 1, 0)), true, 0, 0);
        let count = address.probe_status().unwrap().probes_count;
        assert_eq!(
            (count, address.standing(0, 0)),
            (0, Standing::LastResort),
            "new beside others it waits for a probe"
        );
        address.set_probed(None, false, 0, 0);
        assert!(address.probe_status().is_none() && !address.is_down_by_probe());
    }
}
