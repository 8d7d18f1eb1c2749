//! The steps of a fetch under a program: vcl_backend_fetch before it, vcl_backend_response or vcl_backend_error behind it, and
//! what their verdicts lead to. What is made of an answer that the program lets go is in `program_answer.rs`.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Failure, Object};
use message::{FieldName, Fields, Method, Request, ResponseHead, Status, Version};
use rules::Lifetimes;
use rules::content_coding;
use rules::lifetimes::announced;
use rules::update;
use vcl::subroutine_verdicts::{
    BackendErrorVerdict, BackendFetchVerdict, BackendRefreshVerdict, BackendResponseVerdict, Status as Said,
};
use vcl::{BackendRef, Loaded};
use wire::RequestBody;

use crate::fetch::arrival::Arrival;
use crate::fetch::bereq::{self, BereqOf, with_xid};
use crate::fetch::beresp::{received_head, says_body_of_204};
use crate::fetch::body_filters::{self, BodyFilters};
use crate::fetch::broken::Broken;
use crate::fetch::client_link::ClientLink;
use crate::fetch::fetch_policy::{FetchPolicy, FetchVerdict};
use crate::fetch::fetch_states::FetchState as State;
use crate::fetch::program_answer::settled;
use crate::fetch::purpose::Purpose;
use crate::fetch::settled::SettledBody;
use crate::fetch::slice_fetch::SliceProgram;
use crate::fetch::{Fetch, OriginReply};
use crate::records::RecordKind;
use crate::records::fetch_records::{self, FetchReason};
use crate::transaction::synth::Synth;
use crate::vcl_story::backend_task::{BackendTask, MadeFor};
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::log_notes::LifeBy;
use crate::vcl_story::program_scope::{Scope, Side};
use crate::vcl_story::scope_heads::{MadeHead, RequestHalf, ResponseHalf, sent_status};
use crate::vcl_story::stored_view::StoredView;
use crate::vcl_story::watched_scope::Watched;
use crate::vcl_story::xids;

/// Why vcl_backend_error is called when the program did not say.
const FETCH_FAILED: &[u8] = b"Backend fetch failed";

/// The program failed on the origin's side. What becomes of the client is vcl_synth's to say.
const PROGRAM_FAILED: &str = "vcl-fetch-failed";

/// What a subroutine wants in place of going on.
enum Instead {
    Retry,
    /// vcl_backend_error is to make an answer.
    Error(u16, Option<Box<[u8]>>),
    Abandon(&'static str),
}

impl Instead {
    const PROGRAM_FAILED: Instead = Instead::Abandon(PROGRAM_FAILED);

    fn said(said: Said<'_>) -> Instead {
        Instead::Error(said.status, said.reason.map(Into::into))
    }
}

impl Fetch {
    pub(super) fn task(&self) -> &BackendTask {
        self.policy.task().expect("only a fetch under a program comes here")
    }
}

/// The fetch of a request under a program. Fails when that pipes, and named no backend that can be asked.
pub(super) fn begin(fetch: &mut Fetch, client: &ClientState) -> Result<(), Synth> {
    let is_pass = !fetch.purpose.is_for_many();
    let stale = match &fetch.purpose {
        Purpose::Store(stale) => stale.as_ref(),
        _ => None,
    };
    let (core, xid) = (Rc::clone(&fetch.core), xids::next(&fetch.core.xids));
    // What vcl_pipe has seen is asked as it is.
    let (reason, is_seen) = match fetch.purpose {
        _ if fetch.client.is_none() => (FetchReason::Background, false),
        Purpose::Store(_) | Purpose::Slice { .. } => (FetchReason::Miss, false),
        Purpose::Pass | Purpose::Question | Purpose::Mirrored | Purpose::Tunnel => (FetchReason::Pass, false),
        Purpose::Upgrade | Purpose::Piped | Purpose::Raw => (FetchReason::Pipe, true),
    };
    if !is_seen {
        let original = client.original.as_ref().map(|original| original.fields());
        let of = BereqOf::of(is_pass, &fetch.site);
        let bereq = bereq::bereq_of(&fetch.head.request(), original, stale, of);
        fetch.head = Rc::new(with_xid(&bereq.request(), xid));
    }
    let mut task = BackendTask::new(MadeFor::of(client), Rc::clone(&fetch.head), xid, core.now());
    task.is_pass = is_pass;
    task.uncacheable.set(is_pass);
    task.is_background = fetch.client.is_none();
    if !task.is_background && core.shared.tells_exchanges() {
        task.log_notes = Some(Rc::clone(client.log_notes.get_or_init(Default::default)));
    }
    let (client_records, program) = (client.records.as_deref(), &client.vcl_site.name);
    task.records = fetch_records::begin(&core, client_records, (xid, reason), program, &fetch.head.request());
    if client.body.is_some() {
        (fetch.body, fetch.carried) = (RequestBody::None, client.body.clone());
    }
    fetch.expects_continue |= matches!(fetch.purpose, Purpose::Raw) && client.awaits_continue.get();
    take(fetch, task);
    if is_seen && !choose_origin(fetch) {
        return Err(Synth::unfetched("no-backend"));
    }
    Ok(())
}

/// The fetch of a slice. The range is in its request, where the program sees it.
pub(super) fn begin_slice(fetch: &mut Fetch, program: &SliceProgram) {
    let (core, xid) = (Rc::clone(&fetch.core), xids::next(&fetch.core.xids));
    let bereq = bereq::with_range(&program.bereq.request(), &fetch.purpose);
    fetch.head = Rc::new(with_xid(&bereq.request(), xid));
    let mut task = BackendTask::new(Rc::clone(&program.made_for), Rc::clone(&fetch.head), xid, core.now());
    let name = &program.made_for.site.name;
    task.records = fetch_records::begin(&core, None, (xid, FetchReason::Miss), name, &fetch.head.request());
    take(fetch, task);
}

fn take(fetch: &mut Fetch, mut task: BackendTask) {
    task.watched = fetch.core.watch.as_ref().map(|watch| watch.fetch_began());
    fetch.policy = FetchPolicy::Program(Box::new(task));
}

/// vcl_backend_fetch, and the backend that it chose. `None`: that one is asked.
pub(super) async fn prepare(fetch: &mut Fetch, client: &mut ClientLink<'_>) -> Option<FetchVerdict> {
    if let Some(instead) = backend_fetch(fetch) {
        return Some(go(fetch, instead));
    }
    let has_body = match client {
        ClientLink::Attached(downstream) => downstream.has_untouched_body(),
        ClientLink::Detached(_) => false,
    };
    if fetch.task().retries.get() > 0 && fetch.body.follows() && fetch.carried.is_none() && !has_body {
        // It was read from the client once, and nobody kept it: what failed is the request, and vcl_synth answers it.
        return Some(abandon("request-body-gone"));
    }
    if !choose_origin(fetch) {
        record_no_backend(fetch);
        return Some(error_after_failure(fetch, "no-healthy-backend"));
    }
    if let Some(records) = fetch.records() {
        records.stamp("Fetch");
    }
    departs(fetch);
    let begun = body_begun(fetch, client).await;
    begun.err().map(|broken| judge_broken(fetch, client, broken))
}

fn backend_fetch(fetch: &mut Fetch) -> Option<Instead> {
    let said = in_scope(fetch, None, None, |scope, program| match program.backend_fetch(&Watched::over(scope)) {
        BackendFetchVerdict::Fetch => None,
        BackendFetchVerdict::Abandon => Some(Instead::Abandon("abandoned")),
        BackendFetchVerdict::Error(status) => Some(Instead::said(status)),
        BackendFetchVerdict::Fail(_) => Some(Instead::PROGRAM_FAILED),
    });
    if fetch.task().without_body.get() {
        (fetch.body, fetch.carried) = (RequestBody::None, None);
    }
    said.unwrap_or(Some(Instead::PROGRAM_FAILED))
}

/// The backend behind whatever the program named. A sick one is not asked.
fn choose_origin(fetch: &mut Fetch) -> bool {
    let task = fetch.task();
    let (site, wanted) = (Arc::clone(&task.made_for.site), task.backend.get());
    let chosen = in_scope(fetch, None, None, |scope, program| program.resolve(&Watched::over(scope), wanted)).flatten();
    fetch.task().chosen.set(chosen);
    let configured = Arc::clone(&fetch.site.origins);
    let origin = chosen.filter(|id| site.may_be_asked(*id, &configured));
    let origin = origin.and_then(|id| site.origin(id, &configured));
    if let Some(origin) = &origin {
        fetch.timeouts = fetch.task().timeouts(origin, &fetch.site.settings.limits);
        fetch.chosen = Some(Arc::clone(origin));
    }
    origin.is_some()
}

fn record_no_backend(fetch: &Fetch) {
    let Some(records) = fetch.records() else { return };
    let task = fetch.task();
    match task.chosen.get() {
        None => records.put(RecordKind::FetchError, &[b"No backend"]),
        Some(id) => {
            let name = task.made_for.site.loaded.backend_name(BackendRef::Named(id));
            records.write(RecordKind::FetchError, format_args!("backend {name}: unhealthy"));
        }
    }
}

/// What is banned or purged from now on is about what comes.
fn departs(fetch: &Fetch) {
    if let Some(departure) = &fetch.departure {
        departure.note();
    }
}

/// In place of varnishd no backend hears of a body that is none, if that is seen at once.
async fn body_begun(fetch: &Fetch, client: &mut ClientLink<'_>) -> Result<(), Broken> {
    match client {
        ClientLink::Attached(downstream) if fetch.body != RequestBody::None && fails_by_body(fetch) => {
            poll_fn(|cx| downstream.poll_body_begun(cx)).await
        }
        _ => Ok(()),
    }
}

fn fails_by_body(fetch: &Fetch) -> bool {
    fetch.site.settings.bad_body_fails_the_fetch()
}

/// One more time: a new transaction for the same reason.
pub(super) fn note_again(fetch: &mut Fetch) {
    let (task, xid) = (fetch.task(), xids::next(&fetch.core.xids));
    task.retries.set(task.retries.get() + 1);
    task.xid.set(xid);
    task.was_304.set(false);
    if let Some(records) = fetch.records() {
        fetch_records::again(records, xid, &fetch.head.request());
    }
    fetch.head = Rc::new(with_xid(&fetch.head.request(), xid));
    fetch.core.counters.vcl_retries.add(1);
}

/// There is no answer, or not all of it: vcl_backend_error makes one.
pub(super) fn judge_broken(fetch: &mut Fetch, client: &mut ClientLink<'_>, broken: Broken) -> FetchVerdict {
    match broken {
        Broken::Origin(failure) => error_after_failure(fetch, failure.token),
        Broken::ClientFault(refusal) if fails_by_body(fetch) => {
            if let ClientLink::Attached(downstream) = client {
                downstream.body_broke();
            }
            if let Some(records) = fetch.records() {
                fetch_records::body_broken(records, &refusal);
            }
            error_after_failure(fetch, refusal.token)
        }
        broken => FetchVerdict::Fail(broken),
    }
}

/// The program hears 503; the log line says why.
fn error_after_failure(fetch: &mut Fetch, why: &'static str) -> FetchVerdict {
    fetch.core.counters.vcl_fetches_failed.add(1);
    fetch.task().why_failed.set(why);
    backend_error(fetch, 503, Some(FETCH_FAILED.into()))
}

/// The answer of an origin. A 304 to our own conditions is about what is stored; no other is an answer to a fetch for many.
pub(super) fn judge(fetch: &mut Fetch, reply: OriginReply) -> FetchVerdict {
    fetch.task().responded_s.set(reply.arrival.received.wall_ms as f64 / 1_000.0);
    if reply.head.status == Status::NOT_MODIFIED
        && let Purpose::Store(Some(stale)) = fetch.purpose.clone()
        && has_conditions(&fetch.head.request())
    {
        return refresh(fetch, reply, &stale);
    }
    if reply.head.status == Status::NOT_MODIFIED && fetch.purpose.is_for_many() {
        reply.body.into_body(fetch).finish();
        return backend_error(fetch, 503, Some(b"304 to an unconditional request"[..].into()));
    }
    if fetch.site.settings.refuses_length_of_204() && says_body_of_204(&reply.head) {
        return backend_error(fetch, 503, Some(FETCH_FAILED.into()));
    }
    let asked = fetch.head.request();
    let (said, length) = (reply.head.response(), reply.body.length());
    if fetch.site.settings.refuses_unasked_ranges() && !rules::range::is_asked_for(asked.fields, said, length) {
        reply.body.into_body(fetch).finish();
        return backend_error(fetch, 503, Some(FETCH_FAILED.into()));
    }
    let head = received_head(&reply.head);
    backend_response(fetch, head, SettledBody::Origin(reply.body), reply.arrival)
}

fn has_conditions(request: &Request<'_>) -> bool {
    request.fields.contains(FieldName::IfNoneMatch) || request.fields.contains(FieldName::IfModifiedSince)
}

/// 304: the stored head under what the origin said now; then as any response.
fn refresh(fetch: &mut Fetch, reply: OriginReply, stale: &Arc<Object>) -> FetchVerdict {
    fetch.task().was_304.set(true);
    let view = StoredView::of(stale, reply.arrival.received);
    let update = received_head(&reply.head);
    let said = in_scope(fetch, Some((304, None, &update.fields)), Some(view), |scope, program| {
        match program.backend_refresh(&Watched::over(scope)) {
            BackendRefreshVerdict::Merge | BackendRefreshVerdict::Beresp => Ok(true),
            BackendRefreshVerdict::ObjStale => Ok(false),
            BackendRefreshVerdict::Retry => Err(Instead::Retry),
            BackendRefreshVerdict::Abandon => Err(Instead::Abandon("abandoned")),
            BackendRefreshVerdict::Error(status) => Err(Instead::said(status)),
            BackendRefreshVerdict::Fail(_) => Err(Instead::PROGRAM_FAILED),
        }
    });
    let merges = match said.unwrap_or(Err(Instead::PROGRAM_FAILED)) {
        Ok(merges) => merges,
        Err(instead) => {
            reply.body.into_body(fetch).finish();
            return go(fetch, instead);
        }
    };
    let mut head = stale.response().to_head();
    head.fields.retain(|field| !field.name_text.eq_ignore_ascii_case(b"x-varnish"));
    if merges {
        update::merge_304(&mut head, reply.head.response(), &fetch.store_defaults());
        if stale.etag().is_some_and(|tag| tag.starts_with(b"W/")) {
            // The body may have been put into another coding on its way here.
            content_coding::weaken_tag(&mut head.fields);
        }
    }
    // It is as old as the update says: an Age that was stored would be counted twice.
    head.fields.remove(FieldName::Age);
    if let Some(age) = reply.head.fields.view().get(FieldName::Age) {
        head.fields.push(FieldName::Age, age);
    }
    let arrival = reply.arrival;
    // A 304 has no body: the connection is free.
    reply.body.into_body(fetch).finish();
    backend_response(fetch, head, SettledBody::Stored { own: Fields::default() }, arrival)
}

/// vcl_backend_response, and what its verdict makes of the answer.
fn backend_response(fetch: &mut Fetch, head: ResponseHead, mut body: SettledBody, arrival: Arrival) -> FetchVerdict {
    announce(fetch, &head, arrival);
    let stale = match &fetch.purpose {
        Purpose::Store(stale) => stale.clone(),
        _ => None,
    };
    let view = stale.as_ref().map(|object| StoredView::of(object, arrival.received));
    let uncacheable_s = fetch.site.settings.vcl.uncacheable_ttl.as_secs_f64();
    let response = Some((head.status.0, head.reason.as_deref(), &head.fields));
    let made = in_scope(fetch, response, view, |scope, program| {
        let pass_for = match program.backend_response(&Watched::over(scope)) {
            BackendResponseVerdict::Deliver => None,
            BackendResponseVerdict::Pass(seconds) => Some(seconds.unwrap_or(uncacheable_s)),
            BackendResponseVerdict::Retry => return Err(Instead::Retry),
            BackendResponseVerdict::Abandon => return Err(Instead::Abandon("abandoned")),
            BackendResponseVerdict::Error(status) => return Err(Instead::said(status)),
            BackendResponseVerdict::Fail(_) => return Err(Instead::PROGRAM_FAILED),
        };
        if brings_error_for_refresh(scope) {
            return Err(Instead::Abandon("abandoned"));
        }
        Ok((scope.response.to_made(), pass_for))
    });
    match made.unwrap_or(Err(Instead::PROGRAM_FAILED)) {
        Ok((mut made, pass_for)) => match filtered(fetch, &mut made, &mut body) {
            Ok(filters) => settled(fetch, made, (body, filters), pass_for, arrival),
            Err(why) => {
                body.finish(fetch);
                unfilterable(fetch, &why)
            }
        },
        Err(instead) => {
            // A connection on which nothing more comes can be used again.
            body.finish(fetch);
            go(fetch, instead)
        }
    }
}

/// What the program wants done to the body. Of a HEAD there is none, and its head is that of a GET.
fn filtered(fetch: &Fetch, made: &mut MadeHead, body: &mut SettledBody) -> Result<BodyFilters, String> {
    let SettledBody::Origin(arriving) = body else { return Ok(BodyFilters::default()) };
    if fetch.method() == Method::Head {
        return Ok(BodyFilters::default());
    }
    let (task, vcl) = (fetch.task(), &fetch.site.settings.vcl);
    let named = task.filters.borrow();
    let is_part = made.status == Status::PARTIAL_CONTENT.0;
    body_filters::apply((&fetch.core, vcl), (named.as_deref(), task.changes.get()), (&mut made.head, is_part), arriving)
}

/// What the program wants done to the body cannot be done.
fn unfilterable(fetch: &mut Fetch, why: &str) -> FetchVerdict {
    if let Some(records) = fetch.records() {
        records.put(RecordKind::FetchError, &[why.as_bytes()]);
    }
    error_after_failure(fetch, "filter-unknown")
}

/// How long the answer lives by what its head says, before the program has its say.
fn announce(fetch: &Fetch, head: &ResponseHead, arrival: Arrival) {
    let (task, defaults) = (fetch.task(), fetch.site.settings.vcl.lifetimes());
    let now_s = (arrival.received.wall_ms / 1_000) as i64;
    let announced = announced(head.status, head.fields.view(), now_s, &defaults);
    let (mut lifetimes, mut life_by) = (announced.lifetimes, LifeBy::announced(&announced));
    if task.is_pass {
        // Nothing is stored, and files that keep cookies off what has a lifetime must leave this one alone.
        lifetimes = Lifetimes { ttl_ms: 0, grace_ms: 0, keep_ms: 0, ..lifetimes };
        life_by = LifeBy::PASS;
    }
    task.lifetimes.set(lifetimes);
    task.life_by.set(life_by);
    // What is passed has no life to speak of.
    if let Some(records) = fetch.records().filter(|_| !task.is_pass) {
        fetch_records::announced(records, &lifetimes, task.uncacheable.get(), head, arrival.received);
    }
}

/// Does what a subroutine wants in place of going on. One retry too many is a failure.
fn go(fetch: &mut Fetch, instead: Instead) -> FetchVerdict {
    match instead {
        Instead::Retry if may_retry(fetch) => FetchVerdict::Again,
        Instead::Retry => backend_error(fetch, 503, Some(FETCH_FAILED.into())),
        Instead::Error(status, reason) => backend_error(fetch, status, reason),
        Instead::Abandon(why) => abandon(why),
    }
}

/// A page or a mark of an origin that fails would answer everybody in place of what is stored.
fn brings_error_for_refresh(scope: &Scope<'_>) -> bool {
    let Side::Fetch(task) = scope.side else { return false };
    task.made_for.is_refresh && scope.response.status.get() >= 500
}

fn may_retry(fetch: &Fetch) -> bool {
    fetch.task().retries.get() < fetch.site.settings.vcl.max_retries
}

/// vcl_backend_error: an answer that the program makes, which lives only if it says so.
fn backend_error(fetch: &mut Fetch, status: u16, reason: Option<Box<[u8]>>) -> FetchVerdict {
    if matches!(fetch.purpose, Purpose::Slice { .. }) {
        // vcl_backend_response has said all that there is to say of a body: of its slices the program hears no more.
        let why = fetch.task().why_failed.get();
        return abandon(if why.is_empty() { "abandoned" } else { why });
    }
    fetch.enter(State::Error);
    departs(fetch);
    let received = fetch.core.now();
    let mut fields = Fields::default();
    fields.push(FieldName::Date, rules::date::write_date((received.wall_ms / 1_000) as i64));
    fields.push(FieldName::Server, fetch.site.settings.server_of_programs());
    fetch.task().lifetimes.set(Lifetimes::default());
    fetch.task().life_by.set(LifeBy::ERROR);
    // 1xx is never an answer.
    let status = if sent_status(status) < 200 { 503 } else { status };
    if let Some(records) = fetch.records() {
        fetch_records::error(records, status, reason.as_deref(), fields.view());
    }
    let made = in_scope(fetch, Some((status, reason.as_deref(), &fields)), None, |scope, program| {
        match program.backend_error(&Watched::over(scope)) {
            BackendErrorVerdict::Deliver if brings_error_for_refresh(scope) => Err(Instead::Abandon("abandoned")),
            BackendErrorVerdict::Deliver => Ok((scope.response.to_made(), Bytes::from(scope.made_body()))),
            BackendErrorVerdict::Retry => Err(Instead::Retry),
            BackendErrorVerdict::Abandon => Err(Instead::Abandon("abandoned")),
            BackendErrorVerdict::Fail(_) => Err(Instead::PROGRAM_FAILED),
        }
    });
    match made.unwrap_or(Err(Instead::PROGRAM_FAILED)) {
        Ok((made, body)) => {
            let arrival = Arrival { received, delay_ms: 0 };
            settled(fetch, made, (SettledBody::Made(body), BodyFilters::default()), None, arrival)
        }
        Err(Instead::Retry) if !may_retry(fetch) => abandon("retries-too-many"),
        Err(instead) => go(fetch, instead),
    }
}

/// Runs something in a scope over the request to the origin, and takes the changes over.
fn in_scope<R>(
    fetch: &mut Fetch,
    response: Option<(u16, Option<&[u8]>, &Fields)>,
    stale: Option<StoredView<'_>>,
    run: impl for<'a> FnOnce(&Scope<'a>, &'a Loaded) -> R,
) -> Option<R> {
    let (core, site, head) = (Rc::clone(&fetch.core), Arc::clone(&fetch.site), Rc::clone(&fetch.head));
    let program = Arc::clone(&fetch.task().made_for.site);
    let (result, changed) = {
        let arena = core.fresh_arena();
        let request = head.request();
        let task = fetch.task();
        let mut scope = Scope::new(&core, &site, &arena, Side::Fetch(task), RequestHalf::none(), core.now());
        scope.take_bereq(RequestHalf::of(&request, &arena).ok()?);
        scope.original = Some(task.original.request());
        scope.stored.set(stale);
        if let Some((status, reason, fields)) = response {
            scope.response = ResponseHalf::new(status, Version::Http11, fields.view());
            scope.response.reason.set(reason);
        }
        let result = run(&scope, &program.loaded);
        (result, scope.changed_bereq(&request))
    };
    if let Some(changed) = changed {
        fetch.head = Rc::new(changed);
    }
    Some(result)
}

/// The program wants no answer.
fn abandon(why: &'static str) -> FetchVerdict {
    let text = "The VCL abandoned the fetch.".into();
    FetchVerdict::Fail(Broken::Origin(Failure { status: 503, token: why, text, remember_ms: 0 }))
}
