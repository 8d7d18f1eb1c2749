//! Sessions whose clients may send early data (0-RTT, RFC 8446 §8.1): kept here, each resumed once. What was sent with one can so be
//! replayed to nobody, for the second time there is no session. They end with the process, unlike tickets.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::server::StoresServerSessions;
use rustls::time_provider::{DefaultTimeProvider, TimeProvider};

use crate::limits::{EARLY_SESSION_S, EARLY_SESSIONS_BYTES_MAX, TICKET_BYTES_MAX};

/// What a session costs beside its bytes.
const OVERHEAD_BYTES: usize = 160;

/// Of all listeners that take early data, and all cores.
pub struct EarlySessions {
    kept: Mutex<Kept>,
    bytes_max: usize,
    time: Arc<dyn TimeProvider>,
}

#[derive(Default)]
struct Kept {
    by_name: HashMap<Vec<u8>, (Vec<u8>, u64)>,
    /// The oldest first. Those that were taken leave when their turn comes.
    names: VecDeque<(Vec<u8>, usize)>,
    bytes: usize,
}

impl fmt::Debug for EarlySessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EarlySessions")
    }
}

impl Default for EarlySessions {
    fn default() -> EarlySessions {
        EarlySessions::new(EARLY_SESSIONS_BYTES_MAX, Arc::new(DefaultTimeProvider))
    }
}

impl EarlySessions {
    fn new(bytes_max: usize, time: Arc<dyn TimeProvider>) -> EarlySessions {
        EarlySessions { kept: Mutex::default(), bytes_max, time }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_s(&self) -> u64 {
        self.time.current_time().map_or(0, |time| time.as_secs())
    }

    fn put(&self, name: Vec<u8>, session: Vec<u8>) -> bool {
        if session.len() > TICKET_BYTES_MAX {
            return false;
        }
        let (now_s, bytes) = (self.now_s(), 2 * name.len() + session.len() + OVERHEAD_BYTES);
        let mut kept = self.kept();
        kept.bytes += bytes;
        kept.names.push_back((name.clone(), bytes));
        kept.by_name.insert(name, (session, now_s));
        while kept.bytes > self.bytes_max
            && let Some((name, bytes)) = kept.names.pop_front()
        {
            kept.bytes -= bytes;
            kept.by_name.remove(&name);
        }
        true
    }

    fn take(&self, name: &[u8]) -> Option<Vec<u8>> {
        let now_s = self.now_s();
        let (session, since_s) = self.kept().by_name.remove(name)?;
        (now_s < since_s + EARLY_SESSION_S).then_some(session)
    }
}

/// Those of listeners that let in clients under the same terms.
pub(crate) struct SessionsUnder {
    pub(crate) sessions: Arc<EarlySessions>,
    pub(crate) terms: Vec<u8>,
}

impl fmt::Debug for SessionsUnder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionsUnder")
    }
}

impl SessionsUnder {
    fn name(&self, id: &[u8]) -> Vec<u8> {
        [&self.terms, id].concat()
    }
}

impl StoresServerSessions for SessionsUnder {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        self.sessions.put(self.name(&id), session)
    }

    /// TLS 1.2 asks so, and would go on using it: once is enough for it, too.
    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.take(id)
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.sessions.take(&self.name(id))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use rustls::pki_types::UnixTime;

    use super::*;

    #[derive(Debug, Default)]
    struct Watch(AtomicU64);

    impl TimeProvider for Watch {
        fn current_time(&self) -> Option<UnixTime> {
            Some(UnixTime::since_unix_epoch(Duration::from_secs(self.0.load(Ordering::Relaxed))))
        }
    }

    #[test]
    fn a_session_is_taken_once_and_in_its_time_by_who_has_its_terms() {
        let watch = Arc::new(Watch::default());
        let sessions = Arc::new(EarlySessions::new(1 << 20, Arc::clone(&watch) as Arc<_>));
        let under = |terms: &[u8]| SessionsUnder { sessions: Arc::clone(&sessions), terms: terms.to_vec() };
        assert!(under(b"a").put(vec![1], b"first".to_vec()) && under(b"a").put(vec![2], b"second".to_vec()));
        assert_eq!(under(b"b").take(&[1]), None, "others are let in there");
        assert_eq!(under(b"a").take(&[1]).as_deref(), Some(&b"first"[..]));
        assert_eq!(under(b"a").take(&[1]), None, "once");
        watch.0.store(EARLY_SESSION_S, Ordering::Relaxed);
        assert_eq!(under(b"a").take(&[2]), None, "its time is over");
    }

    #[test]
    fn the_oldest_make_room_and_a_long_one_is_not_kept() {
        let sessions = EarlySessions::new(100_000, Arc::new(Watch::default()));
        for number in 0..10_000u32 {
            assert!(sessions.put(number.to_be_bytes().to_vec(), vec![0; 200]));
        }
        assert!(sessions.kept().bytes <= 100_000);
        assert!(sessions.take(&0u32.to_be_bytes()).is_none() && sessions.take(&9_999u32.to_be_bytes()).is_some());
        // What was taken leaves no trace when its turn has come.
        for number in 0..10_000u32 {
            sessions.put(number.to_be_bytes().to_vec(), vec![0; 200]);
            sessions.take(&number.to_be_bytes());
        }
        assert!(sessions.kept().by_name.is_empty() && sessions.kept().bytes <= 100_000);
        assert!(!sessions.put(vec![1], vec![0; TICKET_BYTES_MAX + 1]));
    }
}
