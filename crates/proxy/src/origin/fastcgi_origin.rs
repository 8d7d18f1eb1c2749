//! What all exchanges with one FastCGI application share: how it is asked, and how many wait for it.
//!
//! An application is a few processes, each of which works for one connection until that is closed. One that is kept keeps a process from
//! all others, so none is kept while somebody waits for a first byte, unless it is known that there are processes for all of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::settings::{FastCgiKeepAlive, FastCgiSettings};

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

    /// May a connection be kept that nobody has a use for now? `open`: those to its address, this one included.
    pub fn may_keep(&self, open: usize) -> bool {
        let nobody_waits = self.unanswered.load(Ordering::Relaxed) == 0;
        match self.settings.keep_alive {
            FastCgiKeepAlive::Never => false,
            FastCgiKeepAlive::WhileNobodyWaits => nobody_waits,
            FastCgiKeepAlive::UpTo(processes) => nobody_waits || open <= processes as usize,
        }
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

    fn check(keep_alive: FastCgiKeepAlive, (waiting, open): (usize, usize), expect: bool) {
        let settings = FastCgiSettings { keep_alive, ..FastCgiSettings::default() };
        let origin = Arc::new(FastCgiOrigin::new("php".into(), &settings));
        let waiting: Vec<_> = (0..waiting).map(|_| AwaitsAnswer::begin(&origin)).collect();
        assert_eq!(origin.may_keep(open), expect, "{keep_alive:?}, {} wait, {open} are open", waiting.len());
        drop(waiting);
        assert_eq!(origin.may_keep(open), keep_alive != FastCgiKeepAlive::Never, "nobody waits any more");
    }

    #[test]
    fn a_connection_is_kept_where_that_is_wanted_and_nobody_waits() {
        check(FastCgiKeepAlive::WhileNobodyWaits, (0, 1), true);
        check(FastCgiKeepAlive::WhileNobodyWaits, (2, 3), false);
        check(FastCgiKeepAlive::Never, (0, 1), false);
        check(FastCgiKeepAlive::Never, (1, 2), false);
    }

    #[test]
    fn where_there_are_processes_for_all_a_connection_is_kept_whoever_waits() {
        check(FastCgiKeepAlive::UpTo(3), (2, 3), true);
        check(FastCgiKeepAlive::UpTo(3), (2, 4), false);
        check(FastCgiKeepAlive::UpTo(3), (0, 4), true);
    }
}
