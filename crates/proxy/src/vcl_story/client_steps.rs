//! What the program says at each step of a request, and where that leads.
//!
//! A function named after a subroutine runs it, over the request of a transaction. Where it returns an `Option<Step>`, `None` means: go on
//! as the step does without a program. Heads that the program changed are taken over before anything is awaited again.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use cache::{Answer, Headed, LookupOptions, Now, Object};
use message::{FieldName, Fields, FieldsView, Method, Request, RequestHead, ResponseHead, Version};
use rules::AcceptedCodings;
use smallvec::SmallVec;
use vcl::subroutine_verdicts::{
    DeliverVerdict, HashVerdict, HitVerdict, MissVerdict, PassVerdict, PipeVerdict, PurgeVerdict, RecvVerdict, Status,
    SynthVerdict,
};
use vcl::{BackendRef, Loaded, Message, Purge, Purged};

use crate::access_log::CacheVerdict;
use crate::downstream::Downstream;
use crate::fetch::begin::{self, Requester};
use crate::fetch::bereq::{BereqOf, bereq_of, with_xid};
use crate::field_set::FieldSet;
use crate::reason::Reason;
use crate::records::task_records::TaskRecords;
use crate::records::{RecordKind, request_records};
use crate::stored_head::via;
use crate::transaction::deliver::{Answer as Delivery, Made};
use crate::transaction::lookup::{ASKED_AGAIN_MAX, Lead};
use crate::transaction::synth::{Synth, VCL_FAILED};
use crate::transaction::{Step, Transaction};
use crate::vcl_story::client_state::{ClientState, Remembered};
use crate::vcl_story::field_bits::Name;
use crate::vcl_story::filter_names;
use crate::vcl_story::listener_name::listener_name;
use crate::vcl_story::program_scope::{Scope, Side};
use crate::vcl_story::scope_heads::{MadeHead, RequestHalf, ResponseHalf, sent_status};
use crate::vcl_story::stored_view::StoredView;
use crate::vcl_story::watched_scope::{Watched, run_over};
use crate::vcl_story::{hit_records, program_purge, xids};

/// What a scope is made of beside the request.
#[derive(Default)]
struct ScopeParts<'b> {
    stored: Option<StoredView<'b>>,
    bereq: Option<&'b RequestHead>,
    response: Option<(u16, Option<&'b [u8]>, &'b Fields)>,
}

/// Runs something in a scope over the transaction's request, and takes the changes over. The error is a program that
/// failed before it began.
fn within<R>(
    tx: &mut Transaction,
    beside: ScopeParts<'_>,
    run: impl for<'a> FnOnce(&Scope<'a>, &'a Loaded) -> R,
) -> Option<R> {
    let (core, site, head) = (Rc::clone(&tx.core), Arc::clone(&tx.site), Rc::clone(&tx.head));
    let state = tx.policy.program()?;
    let program = Arc::clone(&state.vcl_site);
    let result = {
        let arena = core.fresh_arena();
        let request = head.request();
        let req = RequestHalf::of(&request, &arena).ok()?;
        let mut scope = Scope::new(&core, &site, &arena, Side::Client(state), req, core.now());
        scope.request = Some(request.clone());
        scope.original = state.original.as_ref().map(|original| original.request());
        let top = state.top.as_ref().map(|top| top.head.request());
        scope.top = top.and_then(|top| RequestHalf::of(&top, &arena).ok());
        scope.stored.set(beside.stored);
        if let Some(bereq) = beside.bereq {
            scope.take_bereq(RequestHalf::of(&bereq.request(), &arena).ok()?);
        }
        if let Some((status, reason, fields)) = beside.response {
            scope.response = ResponseHalf::new(status, Version::Http11, fields.view());
            scope.response.reason.set(reason);
        }
        let result = run(&scope, &program.loaded);
        let changed = scope.req.is_changed().then(|| scope.req.to_head(&request));
        (result, changed)
    };
    if let Some(changed) = result.1 {
        tx.seen = FieldSet::of(changed.fields());
        tx.head = Rc::new(changed);
    }
    Some(result.0)
}

/// The state of the transaction, which is under a program.
fn state(tx: &Transaction) -> &ClientState {
    tx.policy.program().expect("only a request under a program comes here")
}

pub(crate) fn synth(status: Status<'_>) -> Step {
    if sent_status(status.status) < 200 {
        return failed();
    }
    Step::Synth(Synth::asked(status.status, status.reason.map(Into::into)))
}

fn failed() -> Step {
    Step::Synth(Synth::vcl_failed())
}

/// vcl_recv, and vcl_hash behind it, whatever it says. The request has been completed: see `completed_fields`.
pub(crate) fn recv(tx: &mut Transaction) -> Step {
    /// What vcl_recv said, without its borrows.
    enum Said {
        Step(Step),
        Label(String),
    }
    // A label leads to another program, which may not lead on.
    for labels_left in [1, 0] {
        let said = within(tx, ScopeParts::default(), |scope, program| {
            let verdict = run_over!(scope, program.recv);
            if let RecvVerdict::Vcl(label) = verdict {
                return Said::Label(label.to_owned());
            }
            if let (Side::Client(state), false) = (scope.side, matches!(verdict, RecvVerdict::Fail(_))) {
                say_continue(state);
            }
            say_codings(scope, &verdict);
            let HashVerdict::Lookup = run_over!(scope, program.hash) else { return Said::Step(failed()) };
            if let Side::Client(state) = scope.side {
                scope.take_key(state, program);
            }
            Said::Step(step_of(verdict))
        });
        match said {
            None => return failed(),
            Some(Said::Step(step)) => {
                tx.key = state(tx).key.get();
                return step;
            }
            Some(Said::Label(label)) if labels_left == 1 => {
                if !change_program(tx, &label) {
                    return Step::Synth(Synth::no_label());
                }
            }
            Some(Said::Label(_)) => return Step::Synth(Synth::no_label()),
        }
    }
    failed()
}

/// Of what is looked up everybody takes gzip or nothing: so it is the same for all of them, also where a program makes a key of it.
pub(crate) fn say_codings(scope: &Scope<'_>, verdict: &RecvVerdict<'_>) {
    const NAME: Name<'static> = Name::of_known(FieldName::AcceptEncoding);
    let goes_by = matches!(verdict, RecvVerdict::Pass | RecvVerdict::Pipe);
    let fields = &scope.req.fields;
    let mut lines: SmallVec<[&[u8]; 2]> = SmallVec::new();
    if goes_by || !scope.site.settings.vcl.http_gzip_support {
        return;
    }
    fields.lines(NAME, &mut |line| lines.push(line));
    if hit_records::is_plainly_gzip(&lines) {
        return;
    }
    let takes_gzip = filter_names::names_gzip(lines.iter().copied());
    match takes_gzip {
        true => fields.set(NAME, b"gzip"),
        false => fields.unset(NAME),
    }
    if let Side::Client(ClientState { records: Some(records), .. }) = scope.side {
        hit_records::codings(records, &lines, takes_gzip);
    }
}

/// In place of varnishd a client that waits for 100 gets it here, unless the program wants that later.
fn say_continue(state: &ClientState) {
    if state.awaits_continue.get() && !state.continue_is_late.get() {
        state.continue_is_due.set(true);
        if let Some(records) = &state.records {
            request_records::continued(records);
        }
    }
}

/// Where vcl_recv leads. A label is followed elsewhere.
pub(crate) fn step_of(verdict: RecvVerdict<'_>) -> Step {
    match verdict {
        RecvVerdict::Hash => Step::Lookup,
        RecvVerdict::Pass => Step::Pass,
        RecvVerdict::Pipe => Step::Pipe,
        RecvVerdict::Purge => Step::Purge,
        RecvVerdict::Restart => Step::Restart,
        RecvVerdict::Synth(status) => synth(status),
        RecvVerdict::Fail(_) | RecvVerdict::Vcl(_) => failed(),
    }
}

/// A request that was handed to a label before it became a transaction: vcl_recv of that program.
pub(crate) fn relabel(tx: &mut Transaction, label: &str) -> Step {
    if change_program(tx, label) { recv(tx) } else { Step::Synth(Synth::no_label()) }
}

/// Goes on under the program of a label, with the request as it came.
fn change_program(tx: &mut Transaction, label: &str) -> bool {
    let Some(site) = tx.policy.program().and_then(|state| state.vcl_site.labelled(label)) else { return false };
    let Some(state) = tx.policy.program_mut() else { return false };
    if let Some(original) = &state.original {
        tx.head = Rc::clone(original);
        tx.seen = FieldSet::of(original.fields());
    }
    let mut next = ClientState::new(site, Rc::clone(&state.addresses), state.xid.get(), state.started_s);
    next.came_to = Arc::clone(&state.came_to);
    (next.esi_level, next.top) = (state.esi_level, state.top.take());
    next.original = state.original.take();
    next.is_refresh = state.is_refresh;
    next.body = state.body.take();
    next.body_was_read = std::mem::take(&mut state.body_was_read);
    next.awaits_continue = state.awaits_continue.clone();
    next.log_notes = std::mem::take(&mut state.log_notes);
    next.records = state.records.take();
    if let Some(records) = &next.records {
        records.put(RecordKind::VclUse, &[next.vcl_site.name.as_bytes(), b" via ", label.as_bytes()]);
    }
    *state = next;
    true
}

/// The request as it came: what a program that failed made of it is not seen by vcl_synth.
pub(crate) fn roll_back(tx: &mut Transaction) {
    let Some(original) = tx.policy.program().and_then(|state| state.original.clone()) else { return };
    tx.seen = FieldSet::of(original.fields());
    tx.head = original;
}

/// Did its body go to an origin as it came, so that nothing can ask with it again?
pub(crate) fn body_is_gone(tx: &Transaction, downstream: &Downstream<'_>) -> bool {
    let is_kept = tx.policy.program().is_none_or(|state| state.body.is_some());
    !is_kept && tx.body.follows() && !downstream.has_untouched_body()
}

/// Restart: the same request again, as the program left it.
pub(crate) fn restart(tx: &mut Transaction) -> Step {
    let restarts_max = tx.site.settings.vcl.max_restarts;
    let xid = xids::next(&tx.core.xids);
    let state = tx.policy.program_mut().expect("only a program restarts");
    if state.restarts.get() >= restarts_max {
        // One too many is counted, and vcl_synth sees it.
        state.restarts.set(state.restarts.get().saturating_add(1));
        if let Some(records) = &state.records {
            records.put(RecordKind::VclError, &[b"Too many restarts"]);
        }
        return Step::Synth(Synth::restarts_too_many());
    }
    if let Some(records) = &state.records {
        records.stamp("Restart");
        records.go_on_as(xid, "req", "restart");
        records.stamp("Start");
        let listeners = &tx.site.settings.listeners;
        let listener = listener_name(listeners, state.addresses.local, state.addresses.unix_path.as_deref());
        request_records::started(records, state.addresses.client, &listener);
        let request = tx.head.request();
        request_records::request_line(records, Message::Req, &request, request.version);
        request_records::fields(records, RecordKind::ReqHeader, tx.head.fields());
    }
    state.restart(xid);
    tx.asked_again_count = 0;
    tx.recalled = None;
    tx.key = None;
    tx.core.counters.restarts.add(1);
    Step::Receive
}

/// Asks the cache, with what the program set.
pub(crate) fn look_up(tx: &mut Transaction) -> Step {
    let ms = |seconds: Option<f64>| seconds.filter(|&s| s >= 0.0).map(|s| (s * 1_000.0) as u64);
    let (core, key) = (Rc::clone(&tx.core), tx.key());
    tx.asked_again_count += 1;
    let waited_enough = tx.asked_again_count > ASKED_AGAIN_MAX;
    let state = state(tx);
    let always_miss = state.is_refresh || state.misses_once.take() || state.hash_always_miss.get();
    let options = LookupOptions {
        core: core.index,
        always_miss,
        ignore_busy: state.hash_ignore_busy.get(),
        alone: always_miss || waited_enough,
        ignore_vary: state.hash_ignore_vary.get(),
        newest_first: true,
        says_departure: true,
        ttl_max_ms: ms(state.ttl_s.get()),
        grace_max_ms: ms(state.grace_s.get()),
        age_max_ms: ms(state.age_max_s.get()),
        ..LookupOptions::default()
    };
    // Who has waited for nobody is answered by what was fresh when the request came, however long vcl_recv took since.
    let is_first = tx.asked_again_count == 1 && state.restarts.get() == 0;
    let now = if is_first { core.now_at(tx.started) } else { core.now() };
    let answer = core.shared.cache.ask(key, &tx.head.request(), &options, now);
    note(tx, &answer);
    if let Answer::Fresh(object) = &answer
        && object.body().on_disk().is_none()
    {
        core.hot.borrow_mut().remember(key, AcceptedCodings::default(), object);
    }
    let has_recalled = tx.has_recalled();
    let may_recall = || !always_miss && !has_recalled && core.shared.cache.may_recall(key);
    let Lead { step, outcome, refresh } = Lead::of(answer, (key, now), may_recall);
    let state = tx.policy.program_mut().expect("as above");
    state.refresh = refresh;
    tx.outcome.verdict = outcome.verdict;
    tx.outcome.why = match state.remembered.get() {
        Remembered::Nothing => "",
        Remembered::HitForMiss => Reason::HitForMiss.token(),
        Remembered::HitForPass => Reason::HitForPass.token(),
    };
    step
}

/// What the program and the records learn of what the cache said.
fn note(tx: &Transaction, answer: &Answer) {
    let (state, now) = (state(tx), tx.core.now());
    let records = state.records.as_deref();
    match answer {
        Answer::Fresh(object) | Answer::Stale(object, _) => record_hit(records, object, now),
        Answer::HitForMiss(_, mark) => {
            record_mark(records, RecordKind::HitMiss, mark.as_ref(), now);
            state.remembered.set(Remembered::HitForMiss);
        }
        Answer::HitForPass(mark) => {
            record_mark(records, RecordKind::HitPass, Some(mark), now);
            state.remembered.set(Remembered::HitForPass);
        }
        Answer::Miss(_) | Answer::Uncacheable | Answer::Busy(_) | Answer::RecentFailure(_) => {}
    }
}

fn record_hit(records: Option<&TaskRecords>, object: &Arc<Object>, now: Now) {
    if let Some(records) = records {
        request_records::hit(records, &StoredView::of(object, now), None);
    }
}

fn record_mark(records: Option<&TaskRecords>, kind: RecordKind, mark: Option<&Arc<Object>>, now: Now) {
    if let Some((records, mark)) = records.zip(mark) {
        request_records::marked(records, kind, &StoredView::of(mark, now));
    }
}

/// vcl_hit. What is served stale is refreshed meanwhile, if the program wants it served.
pub(crate) fn hit(tx: &mut Transaction, object: &Arc<Object>) -> Option<Step> {
    let now = tx.core.now();
    let refresh = tx.policy.program_mut()?.refresh.take();
    let elsewhere = said_of_hit(tx, StoredView::of(object, now));
    match (elsewhere, refresh) {
        (None, Some(ticket)) => {
            begin::spawn_refresh(&Requester { client: None, tells_tries: false, ..Requester::of(tx) }, ticket);
            None
        }
        // Of old: fetch it, and let the client wait.
        (Some(Step::Lookup), Some(ticket)) => Some(Step::Miss(ticket)),
        (Some(Step::Lookup), None) => {
            state(tx).misses_once.set(true);
            // Asked like this the cache gives a ticket.
            Some(look_up(tx))
        }
        (elsewhere, Some(ticket)) => {
            ticket.give_back();
            elsewhere
        }
        (elsewhere, None) => elsewhere,
    }
}

/// vcl_hit for an answer that is still arriving.
pub(crate) fn hit_followed(tx: &mut Transaction, headed: &Headed) -> Option<Step> {
    let now = tx.core.now();
    state(tx).is_streaming.set(true);
    if let Some(records) = &state(tx).records {
        request_records::hit(records, &StoredView::of_headed(headed, now), Some((0, headed.length)));
    }
    said_of_hit(tx, StoredView::of_headed(headed, now)).map(|step| match step {
        Step::Lookup => Step::Pass,
        step => step,
    })
}

fn said_of_hit(tx: &mut Transaction, stored: StoredView<'_>) -> Option<Step> {
    let beside = ScopeParts { stored: Some(stored), ..ScopeParts::default() };
    let said = within(tx, beside, |scope, program| {
        let verdict = run_over!(scope, program.hit);
        step_after_hit(scope, verdict)
    });
    said.unwrap_or_else(|| Some(failed()))
}

/// Where vcl_hit leads, if not to vcl_deliver. `Step::Lookup` stands for the fetch that it could ask for in old versions.
pub(crate) fn step_after_hit(scope: &Scope<'_>, verdict: HitVerdict<'_>) -> Option<Step> {
    if let Side::Client(state) = scope.side {
        state.passes_hit.set(matches!(verdict, HitVerdict::Pass));
    }
    match verdict {
        HitVerdict::Deliver => None,
        HitVerdict::Miss => Some(Step::Lookup),
        HitVerdict::Pass => Some(Step::Pass),
        HitVerdict::Restart => Some(Step::Restart),
        HitVerdict::Synth(status) => Some(synth(status)),
        HitVerdict::Fail(_) => Some(failed()),
    }
}

/// vcl_miss.
pub(crate) fn miss(tx: &mut Transaction) -> Option<Step> {
    let said = within(tx, ScopeParts::default(), |scope, program| match run_over!(scope, program.miss) {
        MissVerdict::Fetch => None,
        MissVerdict::Pass => Some(Step::Pass),
        MissVerdict::Restart => Some(Step::Restart),
        MissVerdict::Synth(status) => Some(synth(status)),
        MissVerdict::Fail(_) => Some(failed()),
    });
    said.unwrap_or_else(|| Some(failed()))
}

/// vcl_pass.
pub(crate) fn pass(tx: &mut Transaction) -> Option<Step> {
    let said = within(tx, ScopeParts::default(), |scope, program| match run_over!(scope, program.pass) {
        PassVerdict::Fetch => None,
        PassVerdict::Restart => Some(Step::Restart),
        PassVerdict::Synth(status) => Some(synth(status)),
        PassVerdict::Fail(_) => Some(failed()),
    });
    said.unwrap_or_else(|| Some(failed()))
}

/// The request as it came.
pub(crate) fn original_of(tx: &Transaction) -> Option<FieldsView<'_>> {
    tx.policy.program()?.original.as_ref().map(|original| original.fields())
}

/// vcl_pipe. What it makes of `bereq` is what the origin gets.
pub(crate) fn pipe(tx: &mut Transaction) -> Option<Step> {
    let mut bereq =
        with_xid(&bereq_of(&tx.head.request(), original_of(tx), None, BereqOf::Pass).request(), state(tx).xid.get());
    if tx.site.settings.as_varnishd {
        // The program may have it otherwise.
        let mut fields = Fields::default();
        bereq.fields().iter().for_each(|field| fields.push_named(field.name_text, field.value));
        fields.push(FieldName::Connection, "close");
        bereq = Request { fields: fields.view(), ..bereq.request() }.to_head();
    }
    let bereq = Rc::new(bereq);
    let mut piped = None;
    let beside = ScopeParts { bereq: Some(&bereq), ..ScopeParts::default() };
    let said = within(tx, beside, |scope, program| {
        let Some(request) = scope.request.as_ref() else { return Some(failed()) };
        match run_over!(scope, program.pipe) {
            PipeVerdict::Pipe => {
                piped = scope.changed_bereq(request);
                choose_for_pipe(scope, program);
                None
            }
            PipeVerdict::Synth(status) => Some(synth(status)),
            PipeVerdict::Fail(_) => Some(failed()),
        }
    });
    tx.head = piped.map_or(bereq, Rc::new);
    said.unwrap_or_else(|| Some(failed()))
}

/// What a director chooses for a pipe: later there is no bereq to choose by.
fn choose_for_pipe<'a>(scope: &Scope<'a>, program: &'a Loaded) {
    if let Side::Client(state) = scope.side
        && let Some(chosen) = program.resolve(&Watched::over(scope), state.backend_hint.get())
    {
        state.backend_hint.set(BackendRef::Named(chosen));
    }
}

/// Takes all variants of the request's hash out of the store; then vcl_purge.
pub(crate) fn purge(tx: &mut Transaction) -> Step {
    let said = within(tx, ScopeParts::default(), |scope, program| {
        let objects = program_purge::purge(scope, Purged::This, Purge::Hard);
        if objects.is_err() {
            return failed();
        }
        match run_over!(scope, program.purge) {
            PurgeVerdict::Synth(status) => synth(status),
            PurgeVerdict::Restart => Step::Restart,
            PurgeVerdict::Fail(_) => failed(),
        }
    });
    tx.core.counters.purges.add(1);
    said.unwrap_or_else(failed)
}

/// vcl_synth: the answer that the program makes, or where it sends the request instead.
pub(crate) fn synthesize(tx: &mut Transaction, wanted: &Synth) -> Step {
    let mut head = ResponseHead::new(message::Status(wanted.status));
    let now_s = (tx.core.now().wall_ms / 1_000) as i64;
    head.fields.push(FieldName::Date, rules::date::write_date(now_s));
    head.fields.push(FieldName::Server, tx.site.settings.server_of_programs());
    head.fields.push_named(b"X-Varnish", state(tx).xid.get().to_string().as_bytes());
    if state(tx).awaits_continue.get() {
        // Who takes this off reads a body that nobody wants.
        head.fields.push(FieldName::Connection, "close");
    }
    record_response(tx, wanted.status, wanted.reason.as_deref(), &head.fields);
    let beside = ScopeParts {
        stored: None,
        bereq: None,
        response: Some((wanted.status, wanted.reason.as_deref(), &head.fields)),
    };
    if wanted.status == 501 && matches!(tx.head.method, Method::Other | Method::Purge | Method::Connect) {
        // Nobody knows whether a body follows.
        tx.persistent = false;
    }
    let has_restarts = state(tx).restarts.get() <= tx.site.settings.vcl.max_restarts;
    let said = within(tx, beside, |scope, program| match run_over!(scope, program.synth) {
        SynthVerdict::Restart if has_restarts => Some(Step::Restart),
        // Who may not restart any more is answered.
        SynthVerdict::Deliver | SynthVerdict::Restart => {
            let made = Made {
                made: scope.response.to_made(),
                body: Bytes::from(scope.made_body()),
                is_final: true,
                page: None,
            };
            Some(Step::Deliver(Box::new(Delivery::Made(made))))
        }
        SynthVerdict::Fail(_) => None,
    });
    record_processed(tx);
    said.flatten().unwrap_or_else(|| {
        (tx.outcome.verdict, tx.outcome.why) = (CacheVerdict::Error, VCL_FAILED);
        Step::Deliver(Box::new(Delivery::Made(Made::bare_failure())))
    })
}

/// vcl_deliver over the head of an answer. `Err` says where the request goes instead.
pub(crate) fn deliver(
    tx: &mut Transaction,
    stored: Option<StoredView<'_>>,
    status: u16,
    reason: Option<&[u8]>,
    fields: &Fields,
) -> Result<MadeHead, Step> {
    record_response(tx, status, reason, fields);
    let beside = ScopeParts { stored, bereq: None, response: Some((status, reason, fields)) };
    let said = within(tx, beside, |scope, program| match run_over!(scope, program.deliver) {
        DeliverVerdict::Deliver => Ok(scope.response.to_made()),
        DeliverVerdict::Restart => Err(Step::Restart),
        DeliverVerdict::Synth(status) => Err(synth(status)),
        DeliverVerdict::Fail(fault) => Err(Step::Synth(Synth::deliver_failed(&fault))),
    });
    record_processed(tx);
    said.unwrap_or_else(|| Err(failed()))
}

fn record_processed(tx: &Transaction) {
    if let Some(records) = &state(tx).records {
        records.stamp("Process");
    }
}

fn record_response(tx: &Transaction, status: u16, reason: Option<&[u8]>, fields: &Fields) {
    if let Some(records) = &state(tx).records {
        let lines = fields.view();
        let lines = lines.iter().map(|field| (field.name_text, field.value));
        request_records::response(records, Message::Resp, (status, reason), lines);
    }
}

/// What every answer of ours carries, so that vcl_deliver sees it and may take it off: who we are, which transactions
/// made it, how old it is.
pub(crate) fn add_ours(tx: &Transaction, fields: &mut Fields, version: Version, fetched_by: Option<u64>, age_s: u64) {
    let xid = state(tx).xid.get();
    let xids = match fetched_by {
        Some(fetch) => format!("{xid} {fetch}"),
        None => xid.to_string(),
    };
    fields.push_named(b"X-Varnish", xids.as_bytes());
    fields.push(FieldName::Age, age_s.to_string());
    fields.push(FieldName::Via, via(version, &tx.site));
}
