//! The addresses of an origin, whose turn it is, and who sits out: round robin over all addresses of all URLs, leaving
//! out those that failed several times in a row. `now` is an argument. What counts as a failure is the fetch's
//! judgement; this only counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use tls::Protocol;

use super::dial::DialAddress;
use super::origin_pool::Shelves;
use crate::socket::Socket;

/// When an address is left out (passive ejection).
#[derive(Clone, Copy, Debug)]
pub struct Ejection {
    /// Failures in a row; 0 ejects nobody.
    pub failures_max: u32,
    pub time_ms: u64,
}

/// One address that connections are opened to. It outlives lookups and reloads that name it again.
#[derive(Debug)]
pub struct Address {
    pub place: DialAddress,
    /// The place in text, for errors, logs and the admin.
    pub label: Arc<str>,
    /// Failures since the last success.
    failures: AtomicU32,
    /// 0: never ejected, or its sentence is served and an answer came since.
    ejected_until_ms: AtomicU64,
    /// Open to it, in use or idle; over HTTP/2, requests under way.
    pub connections: AtomicUsize,
    /// Over which HTTP/2 is spoken; each carries many of those.
    pub http2_connections: AtomicUsize,
    /// It was offered HTTP/2 last, and did not want it.
    prefers_http1: AtomicBool,
    pub shelves: Shelves,
}

impl Address {
    pub fn new(place: DialAddress, shelves_count: usize) -> Address {
        let label = place.to_string().into();
        Address {
            place,
            label,
            failures: AtomicU32::new(0),
            ejected_until_ms: AtomicU64::new(0),
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

    #[inline]
    pub fn is_ejected(&self, now_ms: u64) -> bool {
        self.ejected_until_ms.load(Ordering::Relaxed) > now_ms
    }

    pub fn ejected_for_ms(&self, now_ms: u64) -> Option<u64> {
        let left_ms = self.ejected_until_ms.load(Ordering::Relaxed).saturating_sub(now_ms);
        (left_ms > 0).then_some(left_ms)
    }

    pub fn failures(&self) -> u32 {
        self.failures.load(Ordering::Relaxed)
    }

    /// The address answered. Writes only if there is something to forget: this is on every request's way.
    #[inline]
    pub fn succeeded(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
            self.ejected_until_ms.store(0, Ordering::Relaxed);
        }
    }

    /// Counts a failure; true if it ejected the address. The count stays high, so that one more failure after the
    /// sentence ejects it again, and only an answer forgives.
    pub fn failed(&self, ejection: Ejection, now_ms: u64) -> bool {
        let failures = self.failures.load(Ordering::Relaxed).saturating_add(1);
        self.failures.store(failures, Ordering::Relaxed);
        let ejects = ejection.failures_max > 0 && failures >= ejection.failures_max && !self.is_ejected(now_ms);
        if ejects {
            self.ejected_until_ms.store(now_ms.saturating_add(ejection.time_ms), Ordering::Relaxed);
        }
        ejects
    }
}

/// The addresses of an origin at one time. Never changed, only replaced.
#[derive(Debug, Default)]
pub struct Book {
    pub addresses: Vec<Arc<Address>>,
    /// The first moment at which a name in it has to be looked up again.
    pub fresh_until_ms: u64,
    /// From here on a lookup made ahead of need spares a request the wait.
    pub renew_from_ms: u64,
}

impl Book {
    /// Whose turn it is: the first from `turn` on that is not ejected and was not tried. If all are ejected, all are
    /// used, since a wrong guess about health must not make an outage.
    #[inline]
    pub fn pick(&self, turn: usize, now_ms: u64, tried: &[Arc<Address>]) -> Option<&Arc<Address>> {
        self.in_turn(turn)
            .find(|a| !a.is_ejected(now_ms) && !was_tried(tried, a))
            .or_else(|| self.pick_ejected(turn, tried))
    }

    #[cold]
    fn pick_ejected(&self, turn: usize, tried: &[Arc<Address>]) -> Option<&Arc<Address>> {
        self.in_turn(turn).find(|a| !was_tried(tried, a))
    }

    /// All addresses, beginning with the one whose turn it is.
    #[inline]
    pub fn in_turn(&self, turn: usize) -> impl Iterator<Item = &Arc<Address>> {
        let (before, from) = self.addresses.split_at(turn.checked_rem(self.addresses.len()).unwrap_or(0));
        from.iter().chain(before)
    }
}

fn was_tried(tried: &[Arc<Address>], address: &Arc<Address>) -> bool {
    tried.iter().any(|t| Arc::ptr_eq(t, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EJECTION: Ejection = Ejection { failures_max: 3, time_ms: 10_000 };

    fn book(count: u16) -> Book {
        let place = |port: u16| DialAddress::Tcp(([10, 0, 0, 1], port).into());
        Book { addresses: (0..count).map(|n| Arc::new(Address::new(place(n), 1))).collect(), ..Book::default() }
    }

    /// The ports picked in turns 0, 1, 2 …
    fn check(book: &Book, now_ms: u64, expect: &[u16]) {
        let port = |turn| match book.pick(turn, now_ms, &[]).unwrap().place {
            DialAddress::Tcp(address) => address.port(),
            _ => unreachable!("the test has no such place"),
        };
        assert_eq!((0..expect.len()).map(port).collect::<Vec<_>>(), expect, "at {now_ms} ms");
    }

    #[test]
    fn turns_go_round() {
        check(&book(3), 0, &[0, 1, 2, 0, 1]);
        check(&book(1), 0, &[0, 0]);
        assert!(book(0).pick(5, 0, &[]).is_none());
    }

    #[test]
    fn failures_in_a_row_eject_for_a_time() {
        let book = book(3);
        let ejected: Vec<bool> = (0..4).map(|_| book.addresses[1].failed(EJECTION, 5)).collect();
        assert_eq!(ejected, [false, false, true, false]);
        check(&book, 10_004, &[0, 2, 2, 0, 2]);
        check(&book, 10_005, &[0, 1, 2]);
        assert!(book.addresses[1].failed(EJECTION, 10_005), "after its time one failure is enough");
        book.addresses[1].succeeded();
        check(&book, 10_006, &[0, 1, 2]);
        assert!(!book.addresses[1].failed(EJECTION, 10_006), "an answer forgives");
    }

    #[test]
    fn an_answer_between_failures_starts_the_count_again() {
        let book = book(2);
        for _ in 0..10 {
            assert!(!book.addresses[0].failed(EJECTION, 0));
            assert!(!book.addresses[0].failed(EJECTION, 0));
            book.addresses[0].succeeded();
        }
    }

    #[test]
    fn all_ejected_means_all_used() {
        let book = book(2);
        for address in &book.addresses {
            (0..3).for_each(|_| _ = address.failed(EJECTION, 0));
        }
        check(&book, 1, &[0, 1, 0]);
    }

    #[test]
    fn no_failures_max_ejects_nobody() {
        let book = book(1);
        assert!((0..100).all(|_| !book.addresses[0].failed(Ejection { failures_max: 0, time_ms: 1 }, 0)));
    }

    #[test]
    fn what_was_tried_is_not_picked_again() {
        let book = book(2);
        let first = Arc::clone(book.pick(0, 0, &[]).unwrap());
        let second = Arc::clone(book.pick(0, 0, std::slice::from_ref(&first)).unwrap());
        assert!(!Arc::ptr_eq(&first, &second));
        assert!(book.pick(0, 0, &[first, second]).is_none());
    }
}
