//! What all exchanges with one FastCGI application share: how it is asked, and how many wait for it.
//!
//! An application is a few processes, each of which works for one connection until that is closed. One that is kept keeps a process from
//! all others, so none is kept while somebody waits for a first byte.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::settings::FastCgiSettings;

/// An application that speaks FastCGI.
#[derive(Debug)]
pub struct FastCgiOrigin {
    pub name: Arc<str>,
    pub settings: FastCgiSettings,
    /// Requests that were sent and of whose answer nothing has come, on all cores.
    unanswered: AtomicUsize,
}

/// A request that waits for the first byte of its answer, until it is dropped.
#[derive(Debug)]
pub struct AwaitsAnswer(Arc<FastCgiOrigin>);

impl FastCgiOrigin {
    pub fn new(name: Arc<str>, settings: &FastCgiSettings) -> FastCgiOrigin {
        FastCgiOrigin { name, settings: settings.clone(), unanswered: AtomicUsize::new(0) }
    }

    /// May a connection be kept that nobody has a use for now?
    pub fn may_keep(&self) -> bool {
        self.settings.keep_alive && self.unanswered.load(Ordering::Relaxed) == 0
    }
}

impl AwaitsAnswer {
    pub fn begin(origin: &Arc<FastCgiOrigin>) -> AwaitsAnswer {
        origin.unanswered.fetch_add(1, Ordering::Relaxed);
        AwaitsAnswer(Arc::clone(origin))
    }
}

impl Drop for AwaitsAnswer {
    fn drop(&mut self) {
        self.0.unanswered.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(keep_alive: bool, waiting: usize, expect: bool) {
        let settings = FastCgiSettings { keep_alive, ..FastCgiSettings::default() };
        let origin = Arc::new(FastCgiOrigin::new("php".into(), &settings));
        let waiting: Vec<_> = (0..waiting).map(|_| AwaitsAnswer::begin(&origin)).collect();
        assert_eq!(origin.may_keep(), expect, "{keep_alive}, {} wait", waiting.len());
        drop(waiting);
        assert_eq!(origin.may_keep(), keep_alive, "nobody waits any more");
    }

    #[test]
    fn a_connection_is_kept_where_that_is_wanted_and_nobody_waits() {
        check(true, 0, true);
        check(true, 2, false);
        check(false, 0, false);
        check(false, 1, false);
    }
}
