//! A thread that looks after the certificates that larder orders by itself: a renewer for each set of names, and a look at what other
//! nodes are asked. What it stores is picked up by whoever watches the files.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use acme::limits::{CHALLENGE_LOOK_EVERY, ORDERS_MAX};
use acme::{
    AcmeAuthority, Challenge, ChallengeKind, ChallengeSink, NameSet, News, Renewer, SharedChallenges, Surroundings,
};
use proxy::{HttpChallenges, Vital, vital_thread, wall_now_ms};
use tls::AlpnChallenges;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, LocalSet, spawn_local};

use crate::acme_board::AcmeBoard;
use crate::acme_plan::{AcmePlan, AcmeSettings};
use crate::expiry_watch::show_date;
use crate::limits::SAID_AGAIN_S;
use crate::say::say;
use crate::tls_files;

/// The thread, as it is told what to do.
pub struct AcmeService {
    plans: mpsc::UnboundedSender<Option<AcmePlan>>,
}

impl AcmeService {
    pub fn start(board: Arc<AcmeBoard>, http: Arc<HttpChallenges>) -> io::Result<AcmeService> {
        let (plans, mut told) = mpsc::unbounded_channel::<Option<AcmePlan>>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let sink = Arc::new(ChallengeAnswers { http, alpn: tls_files::challenges_of_process() });
        let mut all = UnderWay { board, sink, orders: Arc::new(Semaphore::new(ORDERS_MAX)), tasks: Vec::new() };
        vital_thread("larder-acme", "what orders certificates", move || {
            LocalSet::new().block_on(&runtime, async move {
                while let Some(plan) = told.recv().await {
                    all.take_over(plan);
                }
            });
        })?;
        Ok(AcmeService { plans })
    }

    /// From here on these are looked after. What was before and is the same goes on.
    pub fn take_over(&self, plan: Option<AcmePlan>) {
        // It ends with the process alone.
        let _ = self.plans.send(plan);
    }
}

/// Answers authorities: over HTTP the proxy does, over TLS the listeners.
struct ChallengeAnswers {
    http: Arc<HttpChallenges>,
    alpn: Arc<AlpnChallenges>,
}

impl ChallengeSink for ChallengeAnswers {
    fn offer(&self, challenge: &Challenge) -> Result<(), String> {
        match challenge.kind {
            ChallengeKind::Http => self.http.offer(&challenge.token, &challenge.answer),
            ChallengeKind::Alpn => {
                let (certificate, key) = challenge.certificate()?;
                self.alpn.offer(&challenge.name, &certificate, &key).map_err(|fault| fault.to_string())?;
            }
        }
        Ok(())
    }

    fn withdraw(&self, challenge: &Challenge) {
        match challenge.kind {
            ChallengeKind::Http => self.http.withdraw(&challenge.token),
            ChallengeKind::Alpn => self.alpn.withdraw(&challenge.name),
        }
    }
}

struct UnderWay {
    board: Arc<AcmeBoard>,
    sink: Arc<ChallengeAnswers>,
    orders: Arc<Semaphore>,
    /// `None`: the look at what other nodes are asked.
    tasks: Vec<(AcmeSettings, Option<NameSet>, AbortHandle)>,
}

impl UnderWay {
    fn take_over(&mut self, plan: Option<AcmePlan>) {
        let wanted = plan.map_or(Vec::new(), |AcmePlan { settings, sets }| {
            let sets = sets.into_iter().map(Some).chain([None]);
            sets.map(|set| (settings.clone(), set)).collect::<Vec<_>>()
        });
        self.tasks.retain(|(settings, set, task)| {
            let is_kept = wanted.iter().any(|wanted| (&wanted.0, &wanted.1) == (settings, set));
            if !is_kept {
                task.abort();
            }
            is_kept
        });
        self.board.retain(|names, directory| {
            wanted
                .iter()
                .any(|(settings, set)| set.as_ref() == Some(names) && settings.authority.directory.url() == directory)
        });
        for (settings, set) in wanted {
            if self.tasks.iter().any(|(known, of, _)| (known, of) == (&settings, &set)) {
                continue;
            }
            let task = match &set {
                Some(names) => spawn_local(self.look_after(&settings, names.clone())).abort_handle(),
                None => spawn_local(look_at_others(&settings, Arc::clone(&self.sink))).abort_handle(),
            };
            self.tasks.push((settings, set, task));
        }
    }

    fn look_after(&self, settings: &AcmeSettings, names: NameSet) -> impl Future<Output = ()> + use<> {
        let (folder, board) = (settings.state_folder(), Arc::clone(&self.board));
        let directory = settings.authority.directory.url().to_owned();
        let authority =
            AcmeAuthority::new(settings.authority.clone(), folder.clone(), Arc::clone(&self.sink) as Arc<_>);
        let orders = Arc::clone(&self.orders);
        let mut renewer = Renewer::new(names.clone(), folder, authority, settings.pause_first, orders);
        async move {
            let _vital = Vital::part("what renews certificates");
            let voice = Voice { names: &names, directory: &directory, board: &board, said_at_s: Cell::new(None) };
            let around = Surroundings { now_s: &now_s, luck: &fastrand::f64, tell: &|news| voice.tell(news) };
            loop {
                let turn = renewer.turn(&around).await;
                board.note(&names, &directory, &turn);
                tokio::time::sleep(turn.next).await;
            }
        }
    }
}

fn look_at_others(settings: &AcmeSettings, sink: Arc<ChallengeAnswers>) -> impl Future<Output = ()> + use<> {
    let mut shared = SharedChallenges::new(&settings.state_folder(), sink);
    async move {
        let _vital = Vital::part("what answers for other nodes' orders");
        loop {
            shared.look(now_s());
            tokio::time::sleep(CHALLENGE_LOOK_EVERY).await;
        }
    }
}

fn now_s() -> u64 {
    wall_now_ms() / 1_000
}

/// What the log is told of one set of names.
struct Voice<'a> {
    names: &'a NameSet,
    directory: &'a str,
    board: &'a AcmeBoard,
    /// When it was last said that orders fail.
    said_at_s: Cell<Option<u64>>,
}

impl Voice<'_> {
    fn tell(&self, news: News) {
        let Voice { names, directory, .. } = self;
        match news {
            News::Ordering => {
                self.board.count_order();
                if self.said_at_s.get().is_none() {
                    say!("acme: ordering a certificate for {names} from {directory}");
                }
            }
            News::Stored { until_s } => {
                self.said_at_s.set(None);
                say!("acme: the certificate for {names} has come; it is good until {}", show_date(until_s));
            }
            News::Failed { why, failures, try_at_s } => {
                self.board.count_failure();
                let now_s = now_s();
                if !may_say(self.said_at_s.get(), now_s) {
                    return;
                }
                self.said_at_s.set(Some(now_s));
                let (pause, times) = (Duration::from_secs(try_at_s.saturating_sub(now_s)), times(failures));
                say!(
                    "warning: acme: no certificate for {names} has come ({times}; it is tried again in {} s, and this is said \
                     once a day): {why}",
                    pause.as_secs()
                );
            }
            News::Waiting { owner } => {
                say!("acme: somebody else orders the certificate for {names} ({owner}); waiting for it")
            }
            News::Broken(why) => say!("warning: acme: {names}: {why}"),
            News::Explained(url) => {
                say!("acme: {directory} says when to renew the certificate for {names}, and why: {url}")
            }
        }
    }
}

/// What goes on failing is said once a day.
fn may_say(said_at_s: Option<u64>, now_s: u64) -> bool {
    said_at_s.is_none_or(|said_at_s| now_s < said_at_s || now_s >= said_at_s + SAID_AGAIN_S)
}

fn times(failures: u32) -> String {
    if failures == 1 { "for the first time".to_owned() } else { format!("{failures} tries in a row") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_failing_is_said_once_a_day() {
        assert!(may_say(None, 5));
        assert!(!may_say(Some(5), 5) && !may_say(Some(5), 86_404) && may_say(Some(5), 86_405));
    }
}
