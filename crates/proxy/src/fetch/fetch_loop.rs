//! The loop of a fetch: asks the origin, lets the policy judge what comes, and goes around again where that is what it says.

use std::sync::Arc;

use message::Method;
use wire::ResponseBody;

use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::fetch_policy::FetchVerdict;
use crate::fetch::fetch_states::FetchState;
use crate::fetch::purpose::Purpose;
use crate::fetch::retry::{Again, Lost, LostBy, Tried};
use crate::fetch::settled::Settled;
use crate::fetch::{Fetch, OriginReply, failed, owner_steps, reply, retry, send};
use crate::forward::Taken;
use crate::origin::Address;
use crate::records::fetch_records;
use crate::upstream::Upstream;
use crate::vcl_story::program_waits;

impl Fetch {
    /// From Prepare to an answer: asks the origin, lets the policy judge what comes, and goes around again where that is what
    /// it says.
    pub(crate) async fn settle(&mut self, client: &mut ClientLink<'_>) -> Result<Box<Settled>, Broken> {
        loop {
            let prepared = self.prepare(client).await;
            self.wait_for_test().await;
            let mut verdict = match prepared {
                Some(verdict) => verdict,
                None => match self.converse_in_time(client).await {
                    Ok(reply) => self.judge(reply),
                    Err(broken) => self.judge_broken(client, broken),
                },
            };
            self.wait_for_test().await;
            while let FetchVerdict::Settled(settled) = verdict {
                match self.gather(settled, client).await {
                    Ok(settled) => return Ok(settled),
                    Err(broken) => verdict = self.judge_broken(client, broken),
                }
            }
            if let FetchVerdict::Fail(broken) = verdict {
                return Err(self.fail(broken));
            }
            self.note_again();
            (self.wants_fresh_connection, self.wants_http1) = (false, false);
            self.failed_at.clear();
            self.enter(FetchState::Prepare);
        }
    }

    /// From Prepare to the answer of the origin, which no policy judges: a slice of a body that was judged before, or what a question of ours
    /// is answered with.
    pub(crate) async fn ask(&mut self) -> Result<OriginReply, Broken> {
        let client = &mut ClientLink::Detached(None);
        let verdict = match self.prepare(client).await {
            Some(verdict) => verdict,
            None => match self.converse_in_time(client).await {
                Ok(reply) => return Ok(reply),
                Err(broken) => self.judge_broken(client, broken),
            },
        };
        match verdict {
            FetchVerdict::Fail(broken) => Err(self.fail(broken)),
            FetchVerdict::Settled(_) | FetchVerdict::Again => {
                unreachable!("no policy makes an answer of its own to this")
            }
        }
    }

    /// A program that is a test may want something to be waited for.
    async fn wait_for_test(&self) {
        if let Some(task) = self.policy.task().filter(|task| task.made_for.site.loaded.waits()) {
            program_waits::settle(&task.private, &task.made_for.site).await;
        }
    }

    fn fail(&mut self, broken: Broken) -> Broken {
        if self.state != FetchState::Failed {
            self.enter(FetchState::Failed);
        }
        broken
    }

    /// The same within the time that its route gives all of it.
    async fn converse_in_time(&mut self, client: &mut ClientLink<'_>) -> Result<OriginReply, Broken> {
        let Some(whole) = self.whole else { return self.converse(client).await };
        if let Ok(outcome) = whole.within(Box::pin(self.converse(client))).await {
            return outcome;
        }
        if self.state == FetchState::Prepare {
            self.enter(FetchState::Send);
        }
        Err(self.unanswered(Broken::Origin(failed::too_long(&self.origin().name, whole.time()))))
    }

    /// From Send to a final head: sends the request and reads answers until one is final.
    pub(crate) async fn converse(&mut self, client: &mut ClientLink<'_>) -> Result<OriginReply, Broken> {
        if let Err(broken) = self.find_script(client).await {
            self.enter(FetchState::Send);
            return Err(self.unanswered(broken));
        }
        loop {
            self.enter(FetchState::Send);
            let sent = send::run(self, client).await;
            let outcome = match sent {
                Ok(sent) => {
                    self.enter(FetchState::Reply);
                    reply::run(self, client, sent).await
                }
                Err(unsent) => Err(unsent),
            };
            match &outcome {
                Ok(reply) => self.tries.answered(reply.head.status.0),
                Err(lost) => self.tries.broken(&lost.broken),
            }
            let outcome = match self.owner {
                None => outcome,
                Some(_) => match owner_steps::hear(self, outcome) {
                    Some(outcome) => outcome,
                    None => {
                        self.enter(FetchState::Retry);
                        continue;
                    }
                },
            };
            let broken = match outcome {
                Ok(reply) if self.is_refused_by_parent(&reply) => Broken::Origin(failed::login_refused(self.origin())),
                Ok(reply) if self.is_unasked_tunnel(&reply) => Broken::Origin(failed::unasked_tunnel(self.origin())),
                Ok(reply) if self.is_misdirected(&reply) => {
                    self.enter(FetchState::Retry);
                    self.wants_http1 = true;
                    self.core.counters.origin_retries.add(1);
                    reply.body.into_body(self).finish();
                    continue;
                }
                Ok(reply) if self.is_blamed_and_goes_elsewhere(&reply) => {
                    self.enter(FetchState::Retry);
                    reply.body.into_body(self).finish();
                    continue;
                }
                Ok(reply) => return Ok(reply),
                Err(lost) if self.is_sent_again(&lost) => continue,
                Err(lost) => lost.broken,
            };
            return Err(self.unanswered(broken));
        }
    }

    /// May it go out once more, and is it about to?
    fn is_sent_again(&mut self, lost: &Lost) -> bool {
        let tried = Tried { anew: self.wants_fresh_connection, http1: self.wants_http1 };
        match retry::way(lost, tried, self.method(), self.origin().retries()) {
            Some(Again::Anew) => self.wants_fresh_connection = true,
            Some(Again::OverHttp1) => self.wants_http1 = true,
            Some(Again::Elsewhere) if lost.at.as_ref().is_some_and(|at| self.goes_elsewhere(at)) => {}
            Some(Again::Elsewhere) => return false,
            None if lost.by == LostBy::Unconnected && self.go_another_way() => {
                self.enter(FetchState::Retry);
                return true;
            }
            None => return false,
        }
        self.enter(FetchState::Retry);
        self.core.counters.origin_retries.add(1);
        true
    }

    /// Does its answer have a status for which another address is asked?
    fn is_blamed_and_goes_elsewhere(&mut self, reply: &OriginReply) -> bool {
        let settings = self.origin().retries();
        let may_go = settings.blames(reply.head.status.0)
            && retry::may_go_elsewhere(settings, self.method())
            && !self.body.follows();
        let goes = may_go && self.goes_elsewhere(reply.body.upstream.address());
        if goes {
            self.core.counters.origin_retries.add(1);
        }
        goes
    }

    /// One address has failed it. Is another one asked?
    fn goes_elsewhere(&mut self, failed_at: &Arc<Address>) -> bool {
        self.failed_at.push(Arc::clone(failed_at));
        let (origin, now_ms) = (self.origin(), self.core.now().mono_ms);
        self.failed_at.len() <= origin.retries().others_max && origin.serves_beside(&self.failed_at, now_ms)
    }

    /// A 421 over a connection that others share is about that (RFC 9110 §15.5.20): one of its own may be the right one.
    fn is_misdirected(&self, reply: &OriginReply) -> bool {
        reply.head.status.0 == 421
            && reply.body.upstream.is_stream()
            && self.origin().may_speak_http1()
            && !self.body.follows()
    }

    /// Notes that no final head came.
    fn unanswered(&mut self, broken: Broken) -> Broken {
        self.enter(FetchState::Failed);
        if let (Some(records), Broken::Origin(failure)) = (self.records(), &broken) {
            fetch_records::failed(records, &self.origin().name, failure);
        }
        broken
    }

    /// A connection of our own, with the head on it.
    pub(crate) async fn open_pipe(&mut self, client: &mut ClientLink<'_>) -> Result<Upstream, Broken> {
        // One from the pool may be dead, and what is piped cannot be sent again.
        self.wants_fresh_connection = true;
        self.enter(FetchState::Send);
        match send::run(self, client).await {
            Ok(upstream) => Ok(upstream),
            Err(lost) => {
                self.tries.broken(&lost.broken);
                Err(self.unanswered(lost.broken))
            }
        }
    }

    /// Nothing was sent: somebody else may be asked. False when there is nobody.
    fn go_another_way(&mut self) -> bool {
        if self.ways.is_empty() {
            return false;
        }
        let taken = self.site.forward.take_way(&mut self.ways, &self.head.request(), self.core.now().mono_ms);
        let Ok(Taken { origin, parent }) = taken else { return false };
        self.chosen = Some(origin);
        self.parent = parent;
        true
    }

    /// A 407 of the next proxy is about what we said to it: our client can do nothing about it. Who asks for a tunnel
    /// looks itself.
    fn is_refused_by_parent(&self, reply: &OriginReply) -> bool {
        self.parent.is_some() && reply.head.status.0 == 407 && self.method() != Method::Connect
    }

    /// A CONNECT that a program passes and does not pipe: what comes behind a 2xx is no body of an answer (RFC 9110 §9.3.6) and
    /// would have no end.
    fn is_unasked_tunnel(&self, reply: &OriginReply) -> bool {
        matches!(self.purpose, Purpose::Pass | Purpose::Store(_))
            && self.method() == Method::Connect
            && reply.framing == ResponseBody::Tunnel
    }
}
