//! Log: what is known of the exchange is told, and whether the connection goes on is decided.

use message::{FieldName, FieldsView, Method, Request, TargetForm, Version};
use wire::Refusal;

use crate::access_log::{CacheVerdict, write_line};
use crate::client_identity::ClientIdentity;
use crate::clock::Moment;
use crate::core::Core;
use crate::counted_routes::RouteSlot;
use crate::downstream::Downstream;
use crate::error_note::ErrorNote;
use crate::events::exchange_event::ExchangeEvent;
use crate::events::origin_try::OriginTry;
use crate::exchange_tally::EndedExchange;
use crate::held_body::Whole;
use crate::instant_answer::HitResponse;
use crate::peer::Peer;
use crate::policy_columns::{Life, LoggedTexts};
use crate::records::request_records;
use crate::records::session_records::SessionEnd;
use crate::send_outcome::End;
use crate::settings::TraceSettings;
use crate::site::Site;
use crate::tls_facts::TlsFacts;
use crate::traces::exchange_trace::ExchangeTrace;
use crate::traces::export_queue::ExportSignal;
use crate::traces::otlp_logs::write_record;
use crate::traces::otlp_spans::write_spans;
use crate::transaction::Transaction;
use crate::transaction::synth::VCL_FAILED;
use crate::vcl_story::log_notes;

/// The step. True when the client may ask again the same way.
pub(crate) async fn run(tx: &mut Transaction, downstream: &mut Downstream<'_>, end: End) -> bool {
    let ended = Moment::now();
    let counters = &tx.core.counters;
    let micros = tx.started.micros_until(ended);
    // What was left out of a page.
    let mark = tx.place_in_page.mark();
    let mut why = mark.unwrap_or(tx.outcome.why);
    match end {
        End::Sent | End::TunnelClosed => {}
        End::ClientLeft => why = "client-left",
        End::ClientSlow => why = "client-slow",
        End::MemoryNeeded => {
            why = "memory-cut";
            counters.answers_cut_memory.add(1);
        }
        End::Cut(token) | End::Unanswered(token) => why = mark.unwrap_or(token),
    }
    if !matches!(end, End::Sent | End::TunnelClosed) {
        counters.answers_cut.add(1);
    }
    // What a page includes has its place in the line of the page.
    let is_included = tx.place_in_page.level > 0;
    if !is_included {
        count(tx, micros);
    }
    if tx.core.shared.tells_exchanges() && !is_included {
        // What was asked, not what a program or its route made of it.
        let mut request = tx.asked().request();
        request.query = tx.query_cut.as_deref().or(request.query);
        let outcome = crate::transaction::Outcome { why, ..tx.outcome };
        let notes = tx.policy.log_notes();
        log_notes::with(notes, |logged, life| {
            let error = tx.error_note.as_deref();
            let tls = tx.tls.as_deref();
            let user = tx.user.as_deref();
            let route = tx.site.counted_routes.slot(tx.routed.route);
            let first_byte_micros = tx.answer_began.map(|began| tx.started.micros_until(began));
            let (outcome, forwarded, tries) = (&outcome, tx.outcome.why_forwarded(), &tx.tries[..]);
            let closing = Closing {
                outcome,
                forwarded,
                route,
                user,
                error,
                first_byte_micros,
                micros,
                ended,
                tries,
                tls,
                logged,
                life,
                is_cut: matches!(end, End::MemoryNeeded | End::Cut(_) | End::Unanswered(_)),
                trace: tx.trace.as_deref(),
            };
            tell(&tx.core, &tx.site, &request, tx.client, &closing);
        });
    }
    if let Some(records) = tx.policy.records() {
        if let End::Cut(token) = end {
            request_records::cut(records, token);
        }
        request_records::end(records, ended);
    }
    downstream.finish(tx.persistent, tx.client_closes, || session_end(tx, end)).await
}

/// Counts an exchange that took steps of the story.
fn count(tx: &Transaction, whole_micros: u64) {
    let ended = EndedExchange {
        class: tx.outcome.verdict,
        protocol: tx.head.version,
        route: tx.site.counted_routes.slot(tx.routed.route),
        body_bytes: tx.outcome.body_bytes,
        whole_micros,
    };
    let first_byte_micros = tx.answer_began.map(|began| tx.started.micros_until(began));
    tx.core.counters.exchanges.ended(&ended, first_byte_micros);
}

/// Counts one that took none.
#[inline]
pub(crate) fn count_at_once<T: Whole>(
    core: &Core,
    site: &Site,
    hit: &HitResponse<'_>,
    _: &T,
    (body_bytes, ended): (u64, Moment),
) {
    let ended = EndedExchange {
        class: T::VERDICT,
        protocol: hit.request.received.request.version,
        route: site.counted_routes.slot(hit.request.route),
        body_bytes,
        whole_micros: hit.request.moment.micros_until(ended),
    };
    core.counters.exchanges.ended_at_once(&ended);
}

/// Why the connection ends with this answer, if it does.
fn session_end(tx: &Transaction, end: End) -> SessionEnd {
    match end {
        End::TunnelClosed => SessionEnd::Pipe,
        End::Cut(_) if tx.outcome.status == 206 => SessionEnd::RangeShort,
        End::ClientSlow | End::MemoryNeeded | End::Cut(_) => SessionEnd::TransmitFailed,
        End::Unanswered(_) => SessionEnd::Body,
        End::Sent if tx.client_closes => SessionEnd::Request,
        End::Sent if !tx.persistent && tx.outcome.why == VCL_FAILED => SessionEnd::ProgramFailed,
        End::Sent if !tx.persistent => SessionEnd::Response,
        End::Sent | End::ClientLeft => SessionEnd::Remote,
    }
}

/// The event of an answer that never became a transaction.
#[inline]
pub(crate) fn instant_hit<T: Whole>(
    core: &Core,
    site: &Site,
    hit: &HitResponse<'_>,
    held: &T,
    total: u64,
    ended: Moment,
) {
    let parsed = hit.request;
    let outcome = crate::transaction::Outcome {
        status: held.status(),
        verdict: T::VERDICT,
        body_bytes: if hit.head_only { 0 } else { held.length().min(total) },
        ..crate::transaction::Outcome::NONE
    };
    let micros = parsed.moment.micros_until(ended);
    log_notes::with(hit.notes, |logged, life| {
        let tls = parsed.tls.as_deref();
        let named = parsed.client.is_user.then(|| core.user());
        let user = named.as_ref().map(|name| name.as_slice());
        let route = site.counted_routes.slot(parsed.route);
        // What goes out by one write begins and ends in the same moment.
        let (outcome, first_byte_micros) = (&outcome, Some(micros));
        let closing = Closing {
            outcome,
            forwarded: None,
            route,
            user,
            error: None,
            first_byte_micros,
            micros,
            ended,
            tries: &[],
            tls,
            logged,
            life,
            is_cut: false,
            trace: None,
        };
        let request = &parsed.received.request;
        match parsed.query_sent() {
            sent if sent == request.query => tell(core, site, request, parsed.client, &closing),
            query => tell(core, site, &Request { query, ..request.clone() }, parsed.client, &closing),
        }
    });
}

/// The event of bytes that were no request. `body_bytes`: of the answer that said so.
pub(crate) fn refused(
    core: &Core,
    (peer, tls): (Peer, Option<&TlsFacts>),
    (refusal, error): (&Refusal, Option<&ErrorNote>),
    (version, body_bytes): (Version, u64),
) {
    let verdict = CacheVerdict::Refused;
    let ended =
        EndedExchange { class: verdict, protocol: version, route: RouteSlot::NONE, body_bytes, whole_micros: 0 };
    core.counters.exchanges.ended(&ended, None);
    if !core.shared.tells_exchanges() {
        return;
    }
    let site = core.site_ref();
    let request = Request {
        method: Method::Other,
        method_text: b"",
        version,
        form: TargetForm::Origin,
        scheme: message::Scheme::Http,
        authority: message::Authority::EMPTY,
        path: b"",
        query: None,
        fields: FieldsView::default(),
    };
    let outcome = crate::transaction::Outcome {
        status: refusal.status,
        verdict,
        body_bytes,
        why: refusal.token,
        ..crate::transaction::Outcome::NONE
    };
    let ended = Moment::now();
    let closing = Closing {
        outcome: &outcome,
        forwarded: None,
        route: RouteSlot::NONE,
        user: None,
        error,
        first_byte_micros: None,
        micros: 0,
        ended,
        tries: &[],
        tls,
        logged: None,
        life: None,
        is_cut: false,
        trace: None,
    };
    tell(core, &site, &request, ClientIdentity::of_peer(peer), &closing);
}

/// How it went.
struct Closing<'a> {
    outcome: &'a crate::transaction::Outcome,
    /// Why an origin was asked, whatever became of the answer.
    forwarded: Option<&'static str>,
    route: RouteSlot,
    user: Option<&'a [u8]>,
    error: Option<&'a ErrorNote>,
    first_byte_micros: Option<u64>,
    micros: u64,
    ended: Moment,
    tries: &'a [OriginTry],
    tls: Option<&'a TlsFacts>,
    logged: Option<&'a LoggedTexts>,
    life: Option<&'a Life>,
    is_cut: bool,
    /// Of what was told of it to origins, if it took steps.
    trace: Option<&'a ExchangeTrace>,
}

/// The event of an exchange that is over, for everybody who wants to know of it.
#[inline]
fn tell(core: &Core, site: &Site, request: &Request<'_>, client: ClientIdentity, closing: &Closing<'_>) {
    let &Closing { outcome, forwarded, route, user, error, first_byte_micros, micros, ended, .. } = closing;
    let &Closing { tries, tls, logged, life, is_cut, trace, .. } = closing;
    let target = asked_of_proxy(request);
    let event = ExchangeEvent {
        wall_ms: core.clock().at(ended).wall_ms,
        client: client.ip,
        user,
        method: request.method_text,
        path: target.as_deref().unwrap_or(request.path),
        query: request.query,
        version: request.version,
        scheme: request.scheme,
        host: request.fields.get(FieldName::Host),
        referer: request.fields.get(FieldName::Referer),
        user_agent: request.fields.get(FieldName::UserAgent),
        route: site.counted_routes.name(route),
        status: outcome.status,
        body_bytes: outcome.body_bytes,
        verdict: outcome.verdict,
        forwarded,
        micros,
        first_byte_micros,
        is_cut,
        why: outcome.why,
        tries,
        error,
        tls,
        life,
        logged,
    };
    if let Some(watch) = &core.watch {
        watch.answered(&event);
    }
    core.tell(&event);
    if let Some(traces) = site.settings.traces.as_ref().filter(|traces| traces.exports) {
        export((core, traces), (request.fields, client.peer_is_trusted), (&event, trace), ended);
    }
    if core.shared.logs() {
        let format = site.settings.log_format;
        core.log_line(|out| write_line(out, &event, &core.dates, format));
    }
}

/// The spans of an exchange that is sampled, or stands out, and its log record.
fn export(
    (core, traces): (&Core, &TraceSettings),
    asked: (FieldsView<'_>, bool),
    (event, trace): (&ExchangeEvent<'_>, Option<&ExchangeTrace>),
    ended: Moment,
) {
    // A connection that was handed over is as slow as those who talk over it.
    let is_slow = traces.slow_micros.is_some_and(|slow| event.micros >= slow && event.verdict != CacheVerdict::Pipe);
    let stands_out = is_slow || traces.errors && event.is_error();
    let begun;
    let trace = match trace {
        Some(trace) => Some(trace).filter(|trace| trace.is_sampled || stands_out),
        None => {
            begun = ExchangeTrace::of_ended(traces, &core.trace_dice, asked, stands_out);
            begun.as_ref()
        }
    };
    if let Some(trace) = trace {
        let moment = (core.clock(), ended);
        core.export(ExportSignal::Spans, |out| write_spans(out, event, trace, moment));
        if traces.logs.have(event.is_error()) {
            core.export(ExportSignal::Logs, |out| {
                write_record(out, event, trace, moment);
                1
            });
        }
    }
}

/// What a proxy is asked for has a host of its own, whatever Host says: a URL in absolute-form up to its query, or the
/// host and port of a CONNECT.
#[inline]
fn asked_of_proxy(request: &Request<'_>) -> Option<Vec<u8>> {
    if matches!(request.form, TargetForm::Origin | TargetForm::Asterisk) {
        return None;
    }
    let mut target = Vec::new();
    if request.form == TargetForm::Absolute {
        target.extend_from_slice(request.scheme.text().as_bytes());
        target.extend_from_slice(b"://");
    }
    request.authority.write_to(&mut target);
    if request.path != b"*" {
        target.extend_from_slice(request.path);
    }
    Some(target)
}
