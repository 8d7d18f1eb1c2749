//! The thread that shows the figures, four times a second, for as long as anything is served.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use varnishd::Served;

use super::front_figures::{Figures, SharedSets};
use super::front_log::FrontLog;
use super::front_service::FrontService;
use crate::say::say;

/// How old a figure may be.
const FIGURES_EVERY: Duration = Duration::from_millis(250);

/// Ends when it is dropped.
pub struct Showing {
    /// Dropped first, which is what the thread hears.
    end: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Showing {
    /// `log`: where records come from, and how many bytes of them are kept.
    pub fn begin(sets: SharedSets, service: Arc<FrontService>, log: (Arc<FrontLog>, u64)) -> Result<Showing, String> {
        let (end, ended) = mpsc::channel();
        let show = move || {
            let (mut shown, mut is_failing) = (None, false);
            loop {
                let now = show_now(&mut shown, &sets, &service, &log);
                if let Err(error) = &now
                    && !is_failing
                {
                    say!("warning: the figures for varnishstat: {error}");
                }
                is_failing = now.is_err();
                if ended.recv_timeout(FIGURES_EVERY) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("figures".into()).spawn(show);
        let thread = thread.map_err(|error| format!("no thread for the figures: {error}"))?;
        Ok(Showing { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Showing {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // It has said what went wrong.
            let _ = thread.join();
        }
    }
}

/// What is stopped shows nothing, as Varnish's child that is not there.
fn show_now(
    shown: &mut Option<Figures>,
    sets: &SharedSets,
    service: &FrontService,
    log: &(Arc<FrontLog>, u64),
) -> std::io::Result<()> {
    let Some(now) = service.observe() else {
        *shown = None;
        return Ok(());
    };
    let figures = match shown {
        Some(figures) => figures,
        None => shown.insert(Figures::publish(sets, &service.storages(), log, now.loads.len())?),
    };
    figures.show(&now)
}
