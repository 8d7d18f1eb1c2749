//! One memcached: where it is, whether it is asked, and the gets that are on their way to it. All cores share it. Every
//! command to it ends here, wherever it got to.
//!
//! | state | what is asked of it | until |
//! |---|---|---|
//! | in use | everything | `ejection_failures` commands in a row failed |
//! | ejected | nothing | `ejection_time` has passed |
//! | half open | one command, the probe; after another `ejection_time` one more | a reply of any kind |

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use wire::memcached::Reply;

use crate::clock::mono_now_ms;
use crate::counters::CoreCounters;
use crate::health_notice::HealthNotice;
use crate::memcached_gateway::gateway_call::{Failure, FailureKind, GatewayCall, ReceivedReply};
use crate::memcached_gateway::gateway_settings::{MemcachedAddress, MemcachedLogin, MemcachedSettings, MemcachedTls};
use crate::memcached_gateway::read_flights::ReadFlights;
use crate::origin::Whereabouts;
use crate::stderr_line::complain;

#[derive(Debug)]
pub(crate) struct Server {
    /// No two have the same, over all configurations.
    pub(crate) id: u64,
    pub(crate) terms: ServerTerms,
    pub(crate) flights: ReadFlights,
    /// Where its name leads.
    pub(crate) whereabouts: ArcSwap<Whereabouts>,
    pub(crate) tls: Option<tls::ClientTls>,
    failures: AtomicU32,
    /// 0: in use.
    ejected_until_ms: AtomicU64,
    notice: Mutex<HealthNotice>,
}

/// What makes two servers the same across routes and reloads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerTerms {
    pub(crate) address: MemcachedAddress,
    pub(crate) login: Option<MemcachedLogin>,
    tls: Option<MemcachedTls>,
    pub(crate) connect_timeout: Duration,
    pub(crate) connections_max: usize,
    ejection_failures: u32,
    ejection_time_ms: u64,
}

impl ServerTerms {
    pub(crate) fn of(settings: &MemcachedSettings, address: &MemcachedAddress) -> ServerTerms {
        ServerTerms {
            address: address.clone(),
            login: settings.login.clone(),
            tls: settings.tls.clone(),
            connect_timeout: settings.connect_timeout,
            connections_max: settings.connections_max,
            ejection_failures: settings.ejection_failures,
            ejection_time_ms: settings.ejection_time.as_millis().try_into().unwrap_or(u64::MAX),
        }
    }
}

impl Server {
    pub(crate) fn new(terms: ServerTerms, whereabouts: Whereabouts) -> Server {
        static SERVERS_COUNT: AtomicU64 = AtomicU64::new(0);
        let tls = terms.tls.as_ref().map(|tls| {
            let name = tls.name.as_deref().unwrap_or(terms.address.host());
            tls::ClientTls::new(&tls::ClientSettings::verifying(&tls.authorities, name))
                .expect("names are looked at when settings are read")
        });
        Server {
            id: SERVERS_COUNT.fetch_add(1, Ordering::Relaxed),
            terms,
            whereabouts: ArcSwap::from_pointee(whereabouts),
            tls,
            flights: ReadFlights::new(),
            failures: AtomicU32::new(0),
            ejected_until_ms: AtomicU64::new(0),
            notice: Mutex::default(),
        }
    }

    /// May a command be sent to it now? Of an ejected server one command in each `ejection_time` finds out.
    #[inline]
    pub(crate) fn admits(&self, now_ms: u64) -> bool {
        let until_ms = self.ejected_until_ms.load(Ordering::Relaxed);
        until_ms == 0 || until_ms <= now_ms && self.takes_probe(until_ms, now_ms)
    }

    #[cold]
    fn takes_probe(&self, until_ms: u64, now_ms: u64) -> bool {
        let next_ms = now_ms.saturating_add(self.terms.ejection_time_ms).max(1);
        self.ejected_until_ms.compare_exchange(until_ms, next_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// It answered, whatever it said.
    #[inline]
    pub(crate) fn answered(&self) {
        if self.failures.load(Ordering::Relaxed) != 0 {
            self.failures.store(0, Ordering::Relaxed);
            if self.ejected_until_ms.swap(0, Ordering::Relaxed) > 0 {
                self.tell(|notice| notice.up(mono_now_ms()));
            }
        }
    }

    /// Says what was held back of how it is, if its time has come.
    pub(crate) fn tell_what_is_due(&self, now_ms: u64) {
        self.tell(|notice| notice.due(now_ms));
    }

    fn tell(&self, line_of: impl FnOnce(&mut HealthNotice) -> Option<String>) {
        let line = line_of(&mut self.notice.lock());
        if let Some(line) = line {
            complain(format_args!("memcached ({}) {line}", self.label()));
        }
    }

    /// So many commands failed. True when that ejects it.
    pub(crate) fn failed(&self, count: u32, now_ms: u64, why: FailureKind) -> bool {
        let before =
            self.failures.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| Some(n.saturating_add(count)));
        let failures = before.unwrap_or_else(|n| n).saturating_add(count);
        if failures < self.terms.ejection_failures {
            return false;
        }
        let until_ms = now_ms.saturating_add(self.terms.ejection_time_ms).max(1);
        let ejects = self.ejected_until_ms.swap(until_ms, Ordering::Relaxed) == 0;
        if ejects {
            let line = || format!("{}, {failures} failures in a row (ejection_failures)", why.token());
            self.tell(|notice| notice.down(mono_now_ms(), line));
        }
        ejects
    }

    /// Ends a command: counts a failure that nobody hears of, sees to it that nobody joins what is older than a change, and
    /// tells all who wait.
    pub(crate) fn settle(
        &self,
        counters: &CoreCounters,
        call: &Arc<GatewayCall>,
        outcome: Result<ReceivedReply, Failure>,
    ) {
        if call.is_unheard
            && !matches!(&outcome, Ok(ReceivedReply { reply, .. }) if !matches!(reply, Reply::Error { .. }))
        {
            counters.memcached_unheard_failures.add(1);
        }
        match (call.is_read, call.is_flush) {
            (true, _) => self.flights.leave(call),
            (false, true) => self.flights.forget_all(),
            (false, false) => self.flights.forget(&call.key),
        }
        call.end(outcome);
    }

    /// For messages: names an address and nothing secret.
    pub(crate) fn label(&self) -> String {
        self.terms.address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::memcached_gateway::gateway_settings::MemcachedMode;
    use crate::origin::Origins;
    use crate::settings::ResolverSettings;

    fn server() -> Server {
        let address = MemcachedAddress::Tcp { host: "127.0.0.1".to_owned(), port: 1 };
        let mut settings = MemcachedSettings::of(Vec::new(), MemcachedMode::Clean);
        (settings.ejection_failures, settings.ejection_time) = (3, Duration::from_millis(100));
        let origins = Origins::without_any(&Limits::default(), &ResolverSettings::default());
        Server::new(ServerTerms::of(&settings, &address), origins.whereabouts(address.url()))
    }

    #[test]
    fn failures_in_a_row_eject_and_one_probe_at_a_time_finds_the_way_back() {
        let server = server();
        assert!(!server.failed(2, 1_000, FailureKind::Lost) && server.admits(1_000));
        server.answered();
        assert!(!server.failed(2, 1_000, FailureKind::Lost) && server.admits(1_000), "the answer between counts");
        assert!(server.failed(1, 1_000, FailureKind::Lost), "the third in a row");
        assert!(!server.admits(1_099));
        assert!(server.admits(1_100), "the probe");
        assert!(!server.admits(1_100) && !server.admits(1_199), "one is enough");
        assert!(!server.failed(1, 1_150, FailureKind::Lost), "it was ejected already");
        assert!(server.notice.lock().is_told_down());
        assert!(!server.admits(1_249) && server.admits(1_250));
        server.answered();
        assert!(!server.notice.lock().is_told_down());
        assert!(server.admits(1_250) && server.admits(1_250));
    }

    #[test]
    fn many_failures_at_once_eject_at_once() {
        assert!(server().failed(3, 1_000, FailureKind::Lost));
    }
}
