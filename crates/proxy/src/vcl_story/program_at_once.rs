//! The fast way through the story under a program: vcl_recv, vcl_hash, vcl_hit and vcl_deliver in one scope over the
//! borrowed request head, and the first write. In the ordinary case nothing is copied but the head that goes out.
//!
//! Whatever does not fit goes on as a transaction, from where this got to: no subroutine runs twice for one request.

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;

use cache::{Key, Object};
use message::{FieldName, Method, Request, Status, list_members};
use rules::{AcceptedCodings, Freshness, RequestDirectives};
use vcl::Loaded;
use vcl::subroutine_verdicts::{DeliverVerdict, HashVerdict, HitVerdict, RecvVerdict};
use vcl::subroutines::Method as Subroutine;
use wire::{Persistence, ReceivedRequest, has_length, is_nominated, says_close};

use crate::client_identity::ClientIdentity;
use crate::core::Core;
use crate::field_set::CONDITIONAL;
use crate::head_form::{CONTENT_LENGTH, HeadForm, STRICT_TRANSPORT_SECURITY};
use crate::instant_answer::{BegunStep, HitResponse, InstantClient, InstantHead, InstantOutcome};
use crate::parsed_request::ParsedRequest;
use crate::records::{RecordKind, request_records};
use crate::site::Site;
use crate::stored_head::OF_CONNECTION;
use crate::transaction::synth::Synth;
use crate::transaction::transaction_states::State;
use crate::transaction::{Outcome, Step};
use crate::transport_security;
use crate::vcl_story::client_state::ClientState;
use crate::vcl_story::completed_request;
use crate::vcl_story::field_bits::{FieldBits, Name};
use crate::vcl_story::filter_names;
use crate::vcl_story::program_scope::{Scope, Side};
use crate::vcl_story::scope_heads::{RequestHalf, sent_status, url_of};
use crate::vcl_story::stored_view::StoredView;
use crate::vcl_story::watched_scope::run_over;
use crate::vcl_story::{builtin_hit, client_steps, completed_fields, hit_records};

/// A request that must go on in the loop, with the head as the program left it.
pub(crate) struct OnItsWay {
    pub(crate) head: message::RequestHead,
    pub(crate) state: State,
    pub(crate) step: Step,
    pub(crate) outcome: Outcome,
}

impl OnItsWay {
    /// No subroutine has run yet.
    pub(crate) fn from_start(received: &ReceivedRequest<'_>, client: ClientIdentity, step: Step) -> OnItsWay {
        let completed = completed_fields::complete(received.request.fields, client.peer.ip());
        let head = Request { fields: completed.view(), ..received.request.clone() }.to_head();
        OnItsWay { head, state: State::Receive, step, outcome: Outcome::NONE }
    }
}

/// How the answer that lies in the core's tail is sent.
#[derive(Clone, Copy)]
struct RenderedHead {
    persistent: bool,
    /// Before what is in the tail, the head as it is stored.
    starts_as_stored: bool,
    has_body: bool,
}

/// What the subroutines led to, before anything is written: an answer, whose head is in the core's tail, or where the request goes instead.
type HitVerdicts = Result<RenderedHead, (State, Step)>;

pub(crate) fn run<C: InstantClient>(
    client: &mut C,
    core: &Rc<Core>,
    site: &Arc<Site>,
    state: &ClientState,
    parsed: &ParsedRequest<'_>,
) -> InstantOutcome<Box<OnItsWay>> {
    let now = core.now_at(parsed.moment);
    let program = Arc::clone(&state.vcl_site);
    let request = &parsed.received.request;
    // Declared first: what the scope shows of the object must not outlive it.
    let found = OnceCell::new();
    let led_to = {
        let arena = core.fresh_arena();
        // Made where it stays: it is large.
        let url = url_of(request, &arena);
        let req = RequestHalf::with_url(request, url.as_ref().copied().unwrap_or_default());
        let mut scope = Scope::new(core, site, &arena, Side::Client(state), req, now);
        scope.original = Some(request.clone());
        scope.completion = Some(&state.addresses.peer);
        let completed =
            completed_request::complete_in_place(&scope.req.fields, &arena, request.fields, &state.addresses.peer);
        match url.and(completed) {
            Err(_) => Err((State::Receive, Step::Synth(Synth::vcl_failed()), request.to_head())),
            Ok(()) => recv_to_deliver::<C::Form>(core, &scope, &program.loaded, parsed, &found)
                .map_err(|(state, step)| (state, step, scope.req.to_head(request))),
        }
    };
    let on_its_way =
        |head, (state, step, outcome)| InstantOutcome::Step(Box::new(OnItsWay { head, state, step, outcome }));
    match (led_to, found.get()) {
        (Ok(rendered), Some(object)) => match write(client, core, site, (state, parsed), object, rendered) {
            InstantOutcome::Answered { persistent } => InstantOutcome::Answered { persistent },
            InstantOutcome::Step(begun) => on_its_way(request.to_head(), begun),
        },
        (Ok(_), None) => unreachable!("only a hit is answered here"),
        (Err((state, step, head)), _) => on_its_way(head, (state, step, Outcome::NONE)),
    }
}

/// The subroutines, one after another, as far as the request goes at once.
fn recv_to_deliver<'a, F: HeadForm>(
    core: &Core,
    scope: &Scope<'a>,
    program: &'a Loaded,
    parsed: &ParsedRequest<'_>,
    found: &'a OnceCell<Arc<Object>>,
) -> HitVerdicts {
    let Side::Client(state) = scope.side else { unreachable!("a hit is a client's") };
    let verdict = run_over!(scope, program.recv);
    if let RecvVerdict::Vcl(label) = verdict {
        return Err((State::Receive, Step::Relabel(label.into())));
    }
    client_steps::say_codings(scope, &verdict);
    let HashVerdict::Lookup = run_over!(scope, program.hash) else {
        return Err((State::Receive, Step::Synth(Synth::vcl_failed())));
    };
    let key = scope.take_key(state, program);
    if !matches!(verdict, RecvVerdict::Hash) {
        return Err((State::Receive, client_steps::step_of(verdict)));
    }
    let Some(object) = find(core, scope, state, key, parsed).filter(|object| goes_as_it_is(scope, program, object))
    else {
        return Err((State::Receive, Step::Lookup));
    };
    core.edges.take(State::Receive, State::Lookup);
    core.edges.take(State::Lookup, State::Hit);
    object.touch(core.now_at(parsed.moment));
    if let Some(records) = &state.records {
        request_records::hit(records, &StoredView::of(&object, scope.now), None);
    }
    hit_and_deliver::<F>(core, scope, program, parsed, found.get_or_init(|| object))
}

/// A fresh object that can be sent whole, from the core's own table.
fn find(
    core: &Core,
    scope: &Scope<'_>,
    state: &ClientState,
    key: Key,
    parsed: &ParsedRequest<'_>,
) -> Option<Arc<Object>> {
    let wants_special = state.is_refresh
        || state.hash_always_miss.get()
        || state.hash_ignore_vary.get()
        || state.ttl_s.get().is_some()
        || state.age_max_s.get().is_some();
    let method = Method::classify(scope.req.method.get());
    if wants_special
        || !matches!(method, Method::Get | Method::Head)
        || parsed.is_conditional()
        || scope.req.fields.sets_any(CONDITIONAL)
    {
        return None;
    }
    let mut hot = core.hot.borrow_mut();
    let object = match hot.get_plain(key) {
        Some(object) => object,
        // It may be one of several variants, and those are chosen by the fields as the program left them.
        None => {
            let fields = scope.req.fields.to_fields();
            let request = Request { fields: fields.view(), ..parsed.received.request.clone() };
            hot.get(key, AcceptedCodings::default(), &request)?
        }
    };
    (object.freshness(scope.now, &RequestDirectives::default()) == Freshness::Fresh).then(|| Arc::clone(object))
}

/// Does its body go through no filter on its way to this client?
fn goes_as_it_is(scope: &Scope<'_>, program: &Loaded, object: &Object) -> bool {
    let is_gzip = scope.site.settings.vcl.http_gzip_support && filter_names::is_gzip(object.fields());
    let takes_gzip = || scope.req.fields.first(ACCEPT_ENCODING) == Some(b"gzip");
    (!is_gzip || takes_gzip()) && !program.names_filters() && object.esi().is_none()
}

fn hit_and_deliver<'a, F: HeadForm>(
    core: &Core,
    scope: &Scope<'a>,
    program: &'a Loaded,
    parsed: &ParsedRequest<'_>,
    object: &'a Arc<Object>,
) -> HitVerdicts {
    scope.stored.set(Some(StoredView::of(object, scope.now)));
    let Side::Client(state) = scope.side else { unreachable!("a hit is a client's") };
    let records = state.records.as_deref();
    let is_left_to_builtin = |subroutine| program.is_builtin(subroutine) && core.watch.is_none();
    let said = match is_left_to_builtin(Subroutine::Hit) {
        true => {
            if let Some(records) = records {
                hit_records::builtin_hit(records);
            }
            HitVerdict::Deliver
        }
        false => run_over!(scope, program.hit),
    };
    match client_steps::step_after_hit(scope, said) {
        None => {}
        Some(Step::Lookup) => {
            // Of old: fetch it, and let the client wait. The loop asks for that right.
            state.misses_once.set(true);
            return Err((State::Receive, Step::Lookup));
        }
        Some(step) => return Err((State::Hit, step)),
    }
    core.edges.take(State::Hit, State::Deliver);
    let begins = || {
        hit_records::begin_response(&scope.response, (scope.site, scope.arena), object, (state.xid.get(), scope.now))
    };
    if is_left_to_builtin(Subroutine::Deliver) && builtin_hit::can_go_as_stored(object) {
        match records.map(|records| begins().map(|()| hit_records::builtin_deliver(records, &scope.response))) {
            Some(Err(_)) => return Err((State::Deliver, Step::Synth(Synth::vcl_failed()))),
            _ => return render_as_stored::<F>(core, scope, parsed, object),
        }
    }
    if begins().is_err() {
        return Err((State::Deliver, Step::Synth(Synth::vcl_failed())));
    }
    if let Some(records) = records {
        hit_records::response(records, &scope.response);
    }
    let said = run_over!(scope, program.deliver);
    if let Some(records) = records {
        records.stamp("Process");
    }
    let elsewhere = match said {
        DeliverVerdict::Deliver => return render::<F>(core, scope, parsed, object),
        DeliverVerdict::Restart => Step::Restart,
        DeliverVerdict::Synth(status) => client_steps::synth(status),
        DeliverVerdict::Fail(fault) => Step::Synth(Synth::deliver_failed(&fault)),
    };
    Err((State::Deliver, elsewhere))
}

const ACCEPT_ENCODING: Name<'static> = Name::of_known(FieldName::AcceptEncoding);
const CONNECTION: Name<'static> = Name::of_known(FieldName::Connection);

/// What goes out behind the stored head, which the program leaves as it is.
fn render_as_stored<F: HeadForm>(
    core: &Core,
    scope: &Scope<'_>,
    parsed: &ParsedRequest<'_>,
    object: &Object,
) -> HitVerdicts {
    let Side::Client(state) = scope.side else { unreachable!("as above") };
    let mut out = core.tail.borrow_mut();
    out.clear();
    let (persistent, has_body) = (parsed.persistent, has_length(object.status()));
    builtin_hit::write_tail::<F>(&mut out, scope.site, object, state.xid.get(), scope.now, parsed);
    Ok(RenderedHead { persistent, starts_as_stored: true, has_body })
}

/// What is about the connection or the framing, whatever a program makes of it.
const WRITTEN_BY_US: FieldBits =
    FieldBits::of_known(&OF_CONNECTION).or(FieldBits::of_known(&[FieldName::ContentLength]));

/// The head that goes out, into the core's tail.
fn render<F: HeadForm>(core: &Core, scope: &Scope<'_>, parsed: &ParsedRequest<'_>, object: &Object) -> HitVerdicts {
    let status = sent_status(scope.response.status.get());
    let mut out = core.tail.borrow_mut();
    out.clear();
    F::status(&mut out, Status(status), Some(scope.response.reason_text()));
    let (mut closes, mut nominated, fields) = (false, Vec::new(), &scope.response.fields);
    fields.lines(CONNECTION, &mut |value| {
        closes |= says_close(value);
        nominated.extend(list_members(value).filter(|option| is_nominated(option)));
    });
    // Its Connection is not what goes out, so nothing would say that these are of one connection.
    nominated.into_iter().for_each(|name| fields.unset(Name::of(name)));
    F::edited(&mut out, fields, WRITTEN_BY_US);
    if has_length(Status(status)) {
        F::number(&mut out, CONTENT_LENGTH, object.body_len());
    }
    let persistent = parsed.persistent && !closes;
    let is_said = || fields.first(STRICT_TRANSPORT_SECURITY).is_some();
    transport_security::write::<F>(&mut out, scope.site, parsed.tls.is_some(), is_said);
    F::end(&mut out, Persistence::of(persistent, parsed.received.request.version));
    let Side::Client(state) = scope.side else { unreachable!("as above") };
    if let Some(records) = &state.records {
        records.word(RecordKind::Filters, b"");
    }
    Ok(RenderedHead { persistent, starts_as_stored: false, has_body: has_length(Status(status)) })
}

/// The first write.
fn write(
    client: &mut impl InstantClient,
    core: &Rc<Core>,
    site: &Site,
    (state, parsed): (&ClientState, &ParsedRequest<'_>),
    object: &Arc<Object>,
    RenderedHead { persistent, starts_as_stored, has_body }: RenderedHead,
) -> InstantOutcome<BegunStep> {
    let tail = core.tail.borrow();
    let head = if starts_as_stored { InstantHead::Stored { tail: &tail } } else { InstantHead::Made(&tail) };
    let response = HitResponse {
        head_only: parsed.received.request.method == Method::Head || !has_body,
        persistent,
        waits: state.has_invalidated.get(),
        notes: state.log_notes.get(),
        records: state.records.as_ref(),
        ..HitResponse::to(parsed)
    };
    client.send(core, site, &response, object, head)
}
