//! A fetch under a policy: vcl_backend_fetch before it, vcl_backend_response or vcl_backend_error behind it, and around
//! again when the program retries.
//!
//! What comes of it is one settled answer: a head as the program left it, a body from the origin, from what is stored
//! or from the program, and whether it is kept.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Failure, Now, Object};
use message::{FieldName, Fields, Request, ResponseHead, Status, Version};
use rules::Lifetimes;
use rules::lifetimes::announced;
use rules::update;
use vcl::subroutine_verdicts::{
    BackendErrorVerdict, BackendFetchVerdict, BackendRefreshVerdict, BackendResponseVerdict, Status as Said,
};
use vcl::{BackendRef, Loaded};
use wire::{Refusal, RequestBody};

use crate::fetch::bereq::with_xid;
use crate::fetch::beresp::{received_head, says_body_of_204};
use crate::fetch::settled::{Settled, SettledBody};
use crate::fetch::{Broken, Client, Fetch, FetchState as State, Purpose, Reply, brings_body, slice_manifest};
use crate::records::{RecordKind, fetch_records};
use crate::vcl_story::backend_task::BackendTask;
use crate::vcl_story::log_notes::LifeBy;
use crate::vcl_story::policy_scope::{Scope, Side};
use crate::vcl_story::scope_heads::{RequestHalf, ResponseHalf, sent_status};
use crate::vcl_story::stored_view::StoredView;
use crate::vcl_story::watched_scope::Watched;
use crate::vcl_story::xids;

/// Why vcl_backend_error is called when the program did not say.
const FETCH_FAILED: &[u8] = b"Backend fetch failed";

/// The program failed on the origin's side. What becomes of the client is vcl_synth's to say.
const PROGRAM_FAILED: &str = "vcl-fetch-failed";

/// What one subroutine wants next.
enum Next {
    Settled(Box<Settled>),
    Go,
    Retry,
    /// vcl_backend_error is to make an answer.
    Error(u16, Option<Box<[u8]>>),
    Abandon(&'static str),
}

fn own(said: Said<'_>) -> Next {
    Next::Error(said.status, said.reason.map(Into::into))
}

impl Fetch {
    pub(crate) fn policy(&self) -> &BackendTask {
        self.vcl.as_deref().expect("only a fetch under a policy comes here")
    }

    /// From vcl_backend_fetch to an answer.
    pub(crate) async fn converse_by_policy(&mut self, client: &mut Client<'_>) -> Result<Settled, Broken> {
        self.converse_from(None, client).await
    }

    /// The same from vcl_backend_error on: a body broke off of which nobody has seen anything.
    pub(crate) async fn converse_anew(
        &mut self,
        why: &'static str,
        client: &mut Client<'_>,
    ) -> Result<Settled, Broken> {
        self.note_failure(why);
        self.converse_from(Some(Next::Error(503, Some(FETCH_FAILED.into()))), client).await
    }

    async fn converse_from(&mut self, begun: Option<Next>, client: &mut Client<'_>) -> Result<Settled, Broken> {
        let mut begun = begun;
        loop {
            let mut next = begun.take().unwrap_or_else(|| self.backend_fetch());
            if matches!(next, Next::Go) {
                next = self.ask_origin(client).await?;
            }
            if let Next::Error(status, reason) = next {
                self.enter(State::Error);
                self.departs();
                next = self.backend_error(status, reason);
            }
            match next {
                Next::Settled(settled) => return Ok(*settled),
                Next::Retry => self.begin_again(),
                Next::Abandon(why) => {
                    if self.state != State::Failed {
                        self.enter(State::Failed);
                    }
                    return Err(Broken::Origin(abandoned(why)));
                }
                Next::Go | Next::Error(..) => unreachable!("vcl_backend_error ends in an answer, a retry or nothing"),
            }
        }
    }

    /// One more time from the start: a new transaction for the same wish.
    fn begin_again(&mut self) {
        let policy = self.policy();
        policy.retries.set(policy.retries.get() + 1);
        let xid = xids::next(&self.core);
        policy.xid.set(xid);
        policy.was_304.set(false);
        if let Some(records) = self.records() {
            fetch_records::again(records, xid, &self.head.request());
        }
        self.head = Rc::new(with_xid(&self.head.request(), xid));
        self.retried = false;
        self.core.counters.origin_retries.add(1);
        self.enter(State::Prepare);
    }

    /// Its number, as retries left it.
    pub(crate) fn xid(&self) -> u64 {
        self.policy().xid.get()
    }

    /// What is banned or purged from now on is about what comes.
    fn departs(&self) {
        if let Some(departure) = &self.departure {
            departure.note();
        }
    }

    fn may_retry(&self) -> bool {
        self.policy().retries.get() < self.site.settings.vcl.max_retries
    }

    /// Connects to the backend that the program chose, and lets it judge the answer.
    async fn ask_origin(&mut self, client: &mut Client<'_>) -> Result<Next, Broken> {
        Ok(match self.reply_of_origin(client).await? {
            Ok(reply) => self.judge_reply(reply),
            Err(next) => next,
        })
    }

    /// A slice of a body of which vcl_backend_response has said all that there is to say: the program makes the request to the
    /// origin, and hears no more of it.
    pub(crate) async fn converse_for_slice(&mut self) -> Result<Reply, Broken> {
        let next = match self.backend_fetch() {
            Next::Go => self.reply_of_origin(&mut Client::Detached(None)).await?,
            next => Err(next),
        };
        next.map_err(|next| {
            if self.state != State::Failed {
                self.enter(State::Failed);
            }
            Broken::Origin(match next {
                Next::Abandon(why) => abandoned(why),
                _ => {
                    abandoned(Some(self.policy().why_failed.get()).filter(|why| !why.is_empty()).unwrap_or("abandoned"))
                }
            })
        })
    }

    /// What the backend answers that the program chose; else what is to be done without.
    async fn reply_of_origin(&mut self, client: &mut Client<'_>) -> Result<Result<Reply, Next>, Broken> {
        if self.policy().retries.get() > 0 && brings_body(self.body) && self.carried.is_none() {
            // It was read from the client once, and nobody kept it: what failed is the request, and vcl_synth answers it.
            return Ok(Err(Next::Abandon("request-body-gone")));
        }
        if !self.choose_origin() {
            self.note_failure("no-healthy-backend");
            self.record_no_backend();
            return Ok(Err(Next::Error(503, Some(FETCH_FAILED.into()))));
        }
        if let Some(records) = self.records() {
            records.stamp("Fetch");
        }
        self.departs();
        let begun = self.body_begun(client).await;
        let replied = match begun {
            Ok(()) => self.converse(client).await,
            Err(broken) => Err(broken),
        };
        match replied {
            Ok(reply) => Ok(Ok(reply)),
            Err(Broken::ClientFault(refusal)) if self.takes_faults(client) => {
                Ok(Err(self.body_broke(client, &refusal)))
            }
            Err(Broken::Origin(failure)) => {
                if let Some(records) = self.records() {
                    fetch_records::failed(records, &self.origin().name, &failure);
                }
                self.note_failure(failure.token);
                Ok(Err(Next::Error(503, Some(FETCH_FAILED.into()))))
            }
            Err(broken) => Err(broken),
        }
    }

    /// In place of varnishd no backend hears of a body that is none, if that is seen at once.
    async fn body_begun(&self, client: &mut Client<'_>) -> Result<(), Broken> {
        match client {
            Client::Attached(downstream) if self.body != RequestBody::None && self.site.settings.as_varnishd => {
                poll_fn(|cx| downstream.poll_body_begun(cx)).await
            }
            _ => Ok(()),
        }
    }

    /// There what a client sends as a body is a fetch that failed.
    fn takes_faults(&self, client: &Client<'_>) -> bool {
        self.site.settings.as_varnishd && matches!(client, Client::Attached(_))
    }

    fn body_broke(&mut self, client: &mut Client<'_>, refusal: &Refusal) -> Next {
        if let Client::Attached(downstream) = client {
            downstream.body_broke();
        }
        if let Some(records) = self.records() {
            fetch_records::body_broken(records, refusal);
        }
        self.note_failure(refusal.token);
        Next::Error(503, Some(FETCH_FAILED.into()))
    }

    fn record_no_backend(&self) {
        let Some(records) = self.records() else { return };
        let policy = self.policy();
        match policy.chosen.get() {
            None => records.put(RecordKind::FetchError, &[b"No backend"]),
            Some(id) => {
                let name = policy.made_for.site.loaded.backend_name(BackendRef::Named(id));
                records.write(RecordKind::FetchError, format_args!("backend {name}: unhealthy"));
            }
        }
    }

    /// The program hears 503; the log line says why.
    fn note_failure(&self, why: &'static str) {
        self.core.counters.vcl_fetches_failed.add(1);
        self.policy().why_failed.set(why);
    }

    /// The backend behind whatever the program named.
    pub(crate) fn choose_origin(&mut self) -> bool {
        let policy = self.policy();
        let site = Arc::clone(&policy.made_for.site);
        let wanted = policy.backend.get();
        let chosen =
            self.in_scope(None, None, |scope, program| program.resolve(&Watched::over(scope), wanted)).flatten();
        self.policy().chosen.set(chosen);
        // A sick backend is not asked.
        match chosen.filter(|id| site.health(*id).healthy).and_then(|id| site.origin(id)) {
            Some(origin) => {
                self.timeouts = self.policy().timeouts(&origin, &self.site.settings.limits);
                self.chosen = Some(origin);
                true
            }
            None => false,
        }
    }

    fn backend_fetch(&mut self) -> Next {
        let said = self.in_scope(None, None, |scope, program| match program.backend_fetch(&Watched::over(scope)) {
            BackendFetchVerdict::Fetch => Next::Go,
            BackendFetchVerdict::Abandon => Next::Abandon("abandoned"),
            BackendFetchVerdict::Error(status) => own(status),
            BackendFetchVerdict::Fail(_) => Next::Abandon(PROGRAM_FAILED),
        });
        if self.policy().without_body.get() {
            self.body = RequestBody::None;
            self.carried = None;
        }
        said.unwrap_or(Next::Abandon(PROGRAM_FAILED))
    }

    fn judge_reply(&mut self, reply: Reply) -> Next {
        let now_s = reply.received.wall_ms as f64 / 1_000.0;
        self.policy().responded_s.set(now_s);
        if reply.head.status == Status::NOT_MODIFIED
            && let Purpose::Store(Some(stale)) = self.purpose.clone()
            && has_conditions(&self.head.request())
        {
            return self.refresh(reply, &stale);
        }
        let was_asked = matches!(self.purpose, Purpose::Pass);
        if reply.head.status == Status::NOT_MODIFIED && !was_asked {
            return Next::Error(503, Some(b"304 to an unconditional request"[..].into()));
        }
        if self.site.settings.as_varnishd && says_body_of_204(&reply.head) {
            return Next::Error(503, Some(FETCH_FAILED.into()));
        }
        self.policy().ranges_tag.replace(slice_manifest::ranges_tag(&reply.head));
        let (head, framing, received) = (received_head(&reply.head), reply.framing, reply.received);
        let body = SettledBody::Origin(Box::new(reply.body), framing);
        self.backend_response(head, body, received)
    }

    /// 304: the stored head under what the origin said now; then as any response.
    fn refresh(&mut self, reply: Reply, stale: &Arc<Object>) -> Next {
        self.policy().was_304.set(true);
        let view = StoredView::of(stale, reply.received);
        let update = received_head(&reply.head);
        let said = self.in_scope(Some((304, None, &update.fields)), Some(view), |scope, program| {
            match program.backend_refresh(&Watched::over(scope)) {
                BackendRefreshVerdict::Merge => Ok(true),
                BackendRefreshVerdict::ObjStale => Ok(false),
                BackendRefreshVerdict::Beresp => Ok(true),
                BackendRefreshVerdict::Retry => Err(Next::Retry),
                BackendRefreshVerdict::Abandon => Err(Next::Abandon("abandoned")),
                BackendRefreshVerdict::Error(status) => Err(own(status)),
                BackendRefreshVerdict::Fail(_) => Err(Next::Abandon(PROGRAM_FAILED)),
            }
        });
        let merges = match said.unwrap_or(Err(Next::Abandon(PROGRAM_FAILED))) {
            Ok(merges) => merges,
            Err(Next::Retry) if !self.may_retry() => return Next::Error(503, Some(FETCH_FAILED.into())),
            Err(next) => return next,
        };
        let mut head = stale.response().to_head();
        head.fields.retain(|field| !field.name_text.eq_ignore_ascii_case(b"x-varnish"));
        if merges {
            update::merge_304(&mut head, reply.head.response(), &self.store_defaults());
        }
        // It is as old as the update says: an Age that was stored would be counted twice.
        head.fields.remove(FieldName::Age);
        if let Some(age) = reply.head.fields.view().get(FieldName::Age) {
            head.fields.push(FieldName::Age, age);
        }
        let received = reply.received;
        // A 304 has no body: the connection is free.
        reply.body.into_body(self).finish();
        self.backend_response(head, SettledBody::Stored, received)
    }

    /// vcl_backend_response, and what its verdict makes of the answer.
    fn backend_response(&mut self, head: ResponseHead, body: SettledBody, received: Now) -> Next {
        let now_s = (received.wall_ms / 1_000) as i64;
        let defaults = self.site.settings.vcl.lifetimes();
        let announced = announced(head.status, head.fields.view(), now_s, &defaults);
        let (mut lifetimes, mut life_by) = (announced.lifetimes, LifeBy::announced(&announced));
        if self.policy().is_pass {
            // Nothing is stored, and files that keep cookies off what has a lifetime must leave this one alone.
            lifetimes = Lifetimes { ttl_ms: 0, grace_ms: 0, keep_ms: 0, ..lifetimes };
            life_by = LifeBy::PASS;
        }
        self.policy().lifetimes.set(lifetimes);
        self.policy().life_by.set(life_by);
        // What is passed has no life to speak of.
        if let Some(records) = self.records().filter(|_| !self.policy().is_pass) {
            fetch_records::announced(records, &lifetimes, self.policy().uncacheable.get(), &head, received);
        }
        let stale = match &self.purpose {
            Purpose::Store(stale) => stale.clone(),
            _ => None,
        };
        let view = stale.as_ref().map(|object| StoredView::of(object, received));
        let uncacheable_s = self.site.settings.vcl.uncacheable_ttl.as_secs_f64();
        let made =
            self.in_scope(Some((head.status.0, head.reason.as_deref(), &head.fields)), view, |scope, program| {
                let next = match program.backend_response(&Watched::over(scope)) {
                    BackendResponseVerdict::Deliver => Ok(None),
                    BackendResponseVerdict::Pass(seconds) => Ok(Some(seconds.unwrap_or(uncacheable_s))),
                    BackendResponseVerdict::Retry => Err(Next::Retry),
                    BackendResponseVerdict::Abandon => Err(Next::Abandon("abandoned")),
                    BackendResponseVerdict::Error(status) => Err(own(status)),
                    BackendResponseVerdict::Fail(_) => Err(Next::Abandon(PROGRAM_FAILED)),
                };
                next.map(|pass_for| (scope.response.to_made(), pass_for))
            });
        match made.unwrap_or(Err(Next::Abandon(PROGRAM_FAILED))) {
            Ok((made, pass_for)) => Next::Settled(Box::new(self.settled(made, body, pass_for, received))),
            Err(next) => {
                // A connection on which nothing more comes can be used again.
                if let SettledBody::Origin(arriving, _) = body {
                    arriving.into_body(self).finish();
                }
                match next {
                    Next::Retry if !self.may_retry() => Next::Error(503, Some(FETCH_FAILED.into())),
                    next => next,
                }
            }
        }
    }

    /// vcl_backend_error: an answer that the program makes, which lives only if it says so.
    fn backend_error(&mut self, status: u16, reason: Option<Box<[u8]>>) -> Next {
        let received = self.core.now();
        let mut fields = Fields::default();
        fields.push(FieldName::Date, rules::date::write_date((received.wall_ms / 1_000) as i64));
        fields.push(FieldName::Server, self.site.settings.server_of_programs());
        self.policy().lifetimes.set(Lifetimes::default());
        self.policy().life_by.set(LifeBy::ERROR);
        // 1xx is never an answer.
        let status = if sent_status(status) < 200 { 503 } else { status };
        if let Some(records) = self.records() {
            fetch_records::error(records, status, reason.as_deref(), fields.view());
        }
        let made = self.in_scope(Some((status, reason.as_deref(), &fields)), None, |scope, program| {
            match program.backend_error(&Watched::over(scope)) {
                BackendErrorVerdict::Deliver => Ok((scope.response.to_made(), Bytes::from(scope.made_body()))),
                BackendErrorVerdict::Retry => Err(Next::Retry),
                BackendErrorVerdict::Abandon => Err(Next::Abandon("abandoned")),
                BackendErrorVerdict::Fail(_) => Err(Next::Abandon(PROGRAM_FAILED)),
            }
        });
        match made.unwrap_or(Err(Next::Abandon(PROGRAM_FAILED))) {
            Ok((made, body)) => Next::Settled(Box::new(self.settled(made, SettledBody::Program(body), None, received))),
            Err(Next::Retry) if !self.may_retry() => Next::Abandon("retries-too-many"),
            Err(next) => next,
        }
    }

    /// vcl_backend_error for an answer whose body broke off before anybody saw it.
    pub(crate) fn settle_broken(&mut self, why: &'static str) -> Option<Settled> {
        self.note_failure(why);
        self.enter(State::Error);
        match self.backend_error(503, Some(FETCH_FAILED.into())) {
            Next::Settled(settled) => Some(*settled),
            _ => {
                self.enter(State::Failed);
                None
            }
        }
    }

    /// Runs something in a scope over the request to the origin, and takes the changes over.
    fn in_scope<R>(
        &mut self,
        response: Option<(u16, Option<&[u8]>, &Fields)>,
        stale: Option<StoredView<'_>>,
        run: impl for<'a> FnOnce(&Scope<'a>, &'a Loaded) -> R,
    ) -> Option<R> {
        let (core, settings, head) = (Rc::clone(&self.core), Arc::clone(&self.site), Rc::clone(&self.head));
        let site = Arc::clone(&self.policy().made_for.site);
        let (result, changed) = {
            let arena = core.fresh_arena();
            let request = head.request();
            let policy = self.policy();
            let req = RequestHalf::none();
            let mut scope = Scope::new(&core, &settings, &arena, Side::Fetch(policy), req, core.now());
            scope.take_bereq(RequestHalf::of(&request, &arena).ok()?);
            scope.original = Some(policy.original.request());
            scope.stored.set(stale);
            if let Some((status, reason, fields)) = response {
                scope.response = ResponseHalf::new(status, Version::Http11, fields.view());
                scope.response.reason.set(reason);
            }
            let result = run(&scope, &site.loaded);
            (result, scope.changed_bereq(&request))
        };
        if let Some(changed) = changed {
            self.head = Rc::new(changed);
        }
        Some(result)
    }
}

/// The failure of an answer that the program did not want.
fn abandoned(why: &'static str) -> Failure {
    Failure { status: 503, token: why, text: "The policy abandoned the fetch.".into(), remember_ms: 0 }
}

fn has_conditions(request: &Request<'_>) -> bool {
    request.fields.contains(FieldName::IfNoneMatch) || request.fields.contains(FieldName::IfModifiedSince)
}
